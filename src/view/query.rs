//! The words a row must hold (`query` of protocol.md §6).

use super::preview::RowFacts;
use crate::log::scan::Role;

/// Words, all of which must occur, case-folded; white space separates them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query(Vec<String>);

impl Query {
    /// `None` if there are no words: everything matches.
    pub fn parse(text: &str) -> Option<Self> {
        let words: Vec<String> = text.split_whitespace().map(fold_case).collect();
        (!words.is_empty()).then_some(Self(words))
    }

    /// Whether each word occurs in the label, the role, a tool name or the preview. `facts` must
    /// have been read with tool names.
    pub fn matches(&self, label: Option<&str>, role: Role, facts: &RowFacts) -> bool {
        let role = role.name().or(facts.role.as_deref());
        let tools = facts.tool_name.iter().chain(&facts.called_tools);
        let fields = label
            .into_iter()
            .chain(role)
            .chain(tools.map(String::as_str))
            .chain([facts.preview.as_str()]);
        // No word holds white space, so none can reach from one field into the next.
        let mut hay = String::new();
        for field in fields {
            push_folded(&mut hay, field);
            hay.push('\n');
        }
        self.0.iter().all(|word| hay.contains(word.as_str()))
    }
}

fn fold_case(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    push_folded(&mut folded, text);
    folded
}

/// Character by character, by way of upper case: that is where "ß" becomes "ss", and both small
/// sigmas the same.
fn push_folded(out: &mut String, text: &str) {
    let upper = text.chars().flat_map(char::to_uppercase);
    out.extend(upper.flat_map(char::to_lowercase));
}
