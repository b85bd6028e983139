//! The words a row must hold (`query` of protocol.md §6).

use super::preview::{PREVIEW_CHARS, RowFacts};
use crate::log::scan::Role;
use memchr::memmem::Finder;

/// Words, all of which must occur, case-folded; white space separates them.
#[derive(Debug, Clone)]
pub struct Query(Vec<Finder<'static>>);

impl Query {
    /// `None` if there are no words: everything matches.
    pub fn parse(text: &str) -> Option<Self> {
        let words = text.split_whitespace().map(|word| {
            let mut folded = Vec::with_capacity(word.len());
            push_folded(&mut folded, word);
            Finder::new(&folded).into_owned()
        });
        let words: Vec<_> = words.collect();
        (!words.is_empty()).then_some(Self(words))
    }

    /// Whether each word occurs in the label, the role, a tool name or the preview. `facts` must
    /// have been read with tool names.
    pub fn matches(&self, label: Option<&str>, role: Role, facts: &RowFacts<'_>) -> bool {
        let role = role.name().or(facts.role.as_deref());
        let tools = facts.tool_name.iter().chain(&facts.called_tools);
        let fields = label
            .into_iter()
            .chain(role)
            .chain(tools.map(|tool| &**tool))
            .chain([&*facts.preview]);
        // No word holds white space, so none can reach from one field into the next.
        let mut hay = Vec::with_capacity(2 * PREVIEW_CHARS);
        for field in fields {
            push_folded(&mut hay, field);
            hay.push(b'\n');
        }
        self.0.iter().all(|word| word.find(&hay).is_some())
    }
}

/// Character by character, by way of upper case: that is where "ß" becomes "ss", and both small
/// sigmas the same.
fn push_folded(out: &mut Vec<u8>, text: &str) {
    let mut rest = text;
    loop {
        let ascii = rest.bytes().take_while(u8::is_ascii).count();
        let (plain, other) = rest.split_at_checked(ascii).unwrap_or((rest, ""));
        out.extend(plain.bytes().map(|byte| byte.to_ascii_lowercase()));
        let mut chars = other.chars();
        let Some(char) = chars.next() else { return };
        for lower in char.to_uppercase().flat_map(char::to_lowercase) {
            out.extend_from_slice(lower.encode_utf8(&mut [0; 4]).as_bytes());
        }
        rest = chars.as_str();
    }
}
