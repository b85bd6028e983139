//! Templates: texts with members of an entry in braces, such as `{details.done}/{details.total} {content}`.

use std::fmt;
use treelined_core::json::{self, Elements, Malformed, Members, Span};
use treelined_core::view::PreviewLine;

/// The most bytes of a template.
const MAX_BYTES: usize = 1024;
/// The most different members that a template names.
const MAX_PATHS: usize = 32;
/// The most names in a path.
const MAX_DEPTH: usize = 16;
const IMAGE: &str = "[image]";

/// A parsed template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    parts: Vec<Part>,
    /// The paths, each once. A path is the names that lead from the entry to a member.
    paths: Vec<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    /// The index of the path of the member.
    Member(usize),
}

/// The reason why a text is not a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadTemplate {
    /// The number of characters before the fault.
    pub position: usize,
    pub reason: String,
}

impl fmt::Display for BadTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (position {})", self.reason, self.position)
    }
}

impl Template {
    pub(crate) fn parse(text: &str) -> Result<Self, BadTemplate> {
        let mut template = Self {
            parts: Vec::new(),
            paths: Vec::new(),
        };
        if text.len() > MAX_BYTES {
            let fits = text.char_indices().take_while(|(at, _)| *at < MAX_BYTES);
            let reason = format!("a template has at most {MAX_BYTES} bytes");
            return Err(bad(fits.count(), reason));
        }
        let mut said = String::new();
        let mut chars = text.chars().enumerate().peekable();
        while let Some((at, char)) = chars.next() {
            let is_double = |next: Option<&(usize, char)>| next.is_some_and(|next| next.1 == char);
            match char {
                '{' | '}' if is_double(chars.peek()) => {
                    chars.next();
                    said.push(char);
                }
                '{' => {
                    let mut path = String::new();
                    let is_closed = loop {
                        match chars.next() {
                            Some((_, '}')) => break true,
                            Some((_, '{')) | None => break false,
                            Some((_, char)) => path.push(char),
                        }
                    };
                    if !is_closed {
                        return Err(bad(at, "the brace is not closed; `{{` is a brace"));
                    }
                    if !said.is_empty() {
                        template.parts.push(Part::Text(std::mem::take(&mut said)));
                    }
                    let path = template.path(&path).map_err(|why| bad(at, why))?;
                    template.parts.push(Part::Member(path));
                }
                '}' => return Err(bad(at, "the brace closes nothing; `}}` is a brace")),
                _ => said.push(char),
            }
        }
        if !said.is_empty() {
            template.parts.push(Part::Text(said));
        }
        Ok(template)
    }

    /// The index of a path, which is added if it is new.
    fn path(&mut self, text: &str) -> Result<usize, String> {
        let path: Vec<String> = text.split('.').map(str::to_owned).collect();
        if path.iter().any(String::is_empty) {
            return Err("the braces name no member".to_owned());
        }
        if path.len() > MAX_DEPTH {
            return Err(format!("a path has at most {MAX_DEPTH} names"));
        }
        if let Some(known) = self.paths.iter().position(|known| *known == path) {
            return Ok(known);
        }
        if self.paths.len() >= MAX_PATHS {
            return Err(format!("a template names at most {MAX_PATHS} members"));
        }
        self.paths.push(path);
        Ok(self.paths.len() - 1)
    }

    /// Fills in the template with the members of `object`. A missing member is empty. If the object is damaged, only
    /// the members before the damage are used.
    pub(super) fn fill(&self, object: &[u8]) -> String {
        let mut values = vec![None; self.paths.len()];
        let all: Vec<usize> = (0..self.paths.len()).collect();
        if !all.is_empty() {
            let start = json::skip_space(object, 0);
            let _damaged = self.find(object, start, (&all, 0), &mut values);
        }
        let mut line = PreviewLine::default();
        for part in &self.parts {
            match part {
                Part::Text(text) => line.push_str(text),
                Part::Member(path) => {
                    let span = values.get(*path).cloned().flatten();
                    let raw = span.and_then(|span| object.get(span));
                    push_value(&mut line, raw.unwrap_or_default());
                }
            }
        }
        line.into_text()
    }

    /// Finds the values of the paths `wanted`. The first `depth` names of these paths lead to the object at `at`.
    /// Returns the position after the object. The recursion is as deep as the longest path.
    fn find(
        &self,
        text: &[u8],
        at: usize,
        (wanted, depth): (&[usize], usize),
        values: &mut [Option<Span>],
    ) -> Result<usize, Malformed> {
        let mut members = Members::open(text, at)?;
        while let Some(key) = members.next_key()? {
            let name = key.name(text);
            let path = |path: &usize| self.paths.get(*path).map(Vec::as_slice).unwrap_or_default();
            let is_named = |it: &&usize| {
                path(it)
                    .get(depth)
                    .is_some_and(|it| *it.as_bytes() == *name)
            };
            let named = wanted.iter().filter(is_named);
            let (ends, deeper): (Vec<usize>, Vec<usize>) =
                named.partition(|it| path(it).len() == depth + 1);
            // Of members with the same name, the last member counts.
            for slot in &deeper {
                set(values, *slot, None);
            }
            let end = match text.get(key.value_at) {
                Some(b'{') if !deeper.is_empty() => {
                    self.find(text, key.value_at, (&deeper, depth + 1), values)?
                }
                _ => json::skip_value(text, key.value_at)?,
            };
            for slot in ends {
                set(values, slot, Some(key.value_at..end));
            }
            members.resume(end);
        }
        Ok(members.end())
    }
}

fn set(values: &mut [Option<Span>], slot: usize, value: Option<Span>) {
    if let Some(place) = values.get_mut(slot) {
        *place = value;
    }
}

fn bad(position: usize, reason: impl Into<String>) -> BadTemplate {
    BadTemplate {
        position,
        reason: reason.into(),
    }
}

/// Appends the text of a value: a string, a number, true or false, or the elements of an array and the text of its
/// blocks. Null and objects have no text.
fn push_value(line: &mut PreviewLine, raw: &[u8]) {
    match raw.first() {
        Some(b'[') => {
            let _damaged = push_elements(line, raw);
        }
        Some(b'{' | b'n') | None => {}
        Some(b'"') => line.push_literal(raw, false),
        Some(_) => line.push_str(&String::from_utf8_lossy(raw)),
    }
}

fn push_elements(line: &mut PreviewLine, array: &[u8]) -> Result<(), Malformed> {
    let mut elements = Elements::open(array, 0)?;
    while let Some(span) = elements.next_value()? {
        if line.is_full() {
            break;
        }
        let element = array.get(span).unwrap_or_default();
        line.gap();
        match element.first() {
            Some(b'{') => push_block(line, element),
            Some(b'[') => {}
            _ => push_value(line, element),
        }
    }
    Ok(())
}

/// Appends a block of a content.
fn push_block(line: &mut PreviewLine, block: &[u8]) {
    let [kind, text] = json::get_each(block, ["type", "text"]);
    match kind.and_then(json::string).as_deref() {
        Some("text") => push_value(
            line,
            text.filter(|text| text.starts_with(b"\""))
                .unwrap_or_default(),
        ),
        Some("image") => line.push_str(IMAGE),
        _ => {}
    }
}
