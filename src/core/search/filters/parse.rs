//! Reads a text as a search.

use super::keys::{BRANCHES, BranchFilter, FIELDS, Filter, ROLES};
use super::token::{TokenKind, characters, filter_in, tokens};
use crate::search::fields::FieldKind;
use crate::search::query::{Mode, Query};
use crate::suggest;
use crate::tags;
use crate::timestamp::{self, Millis};

/// A search that was read from a text. A filter that the text does not have is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filters {
    /// The words and phrases, or the pattern; empty if there are none.
    pub text: String,
    /// Whether `text` is a pattern.
    pub is_pattern: bool,
    /// Words and phrases that an entry must not have; empty if there are none.
    pub without: String,
    pub fields: Option<Vec<FieldKind>>,
    /// The directory as written, and its position in the text.
    pub cwd: Option<Written>,
    pub tool: Option<String>,
    pub source: Option<String>,
    pub role: Option<String>,
    /// The type of the entry, or its custom type.
    pub entry_type: Option<String>,
    /// Only entries of this time or later.
    pub since: Option<Millis>,
    /// Only entries before this time.
    pub before: Option<Millis>,
    pub branches: Option<BranchFilter>,
    /// Only sessions with this tag.
    pub tag: Option<String>,
    /// Only sessions on the git branch with this name.
    pub git: Option<String>,
}

/// A value, and the number of characters before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    pub value: String,
    pub position: usize,
}

/// The reason why a text is not a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The number of characters before the fault.
    pub position: usize,
    /// The reason, without a subject: the caller puts the name of the text before it.
    pub reason: String,
}

impl Filters {
    /// Reads a text; `now` is the time from which ages such as `2w` count.
    pub fn parse(text: &str, now: Millis) -> Result<Self, Fault> {
        Self::read(text, now, false)
    }

    /// Reads a question as [`Filters::parse`] reads a text. A copied error such as `source: No such file` may contain
    /// the name of a filter without a value. Such a name is a word, unless it is at the end of the text.
    pub fn parse_question(text: &str, now: Millis) -> Result<Self, Fault> {
        Self::read(text, now, true)
    }

    fn read(text: &str, now: Millis, is_question: bool) -> Result<Self, Fault> {
        let mut filters = Self::default();
        // At the end of a text, the person may still be typing the value.
        let last = text.trim_end().len();
        let (mut words, mut without) = (Vec::new(), Vec::new());
        let mut seen: Vec<Filter> = Vec::new();
        for token in tokens(text) {
            let fault = |at, reason| Err(Fault::at(text, at, reason));
            match token.kind {
                TokenKind::Word(word) => {
                    if let Some(reason) = mistyped(word) {
                        return fault(token.start, reason);
                    }
                    words.push(word.to_owned());
                }
                TokenKind::Phrase("") | TokenKind::ExcludedPhrase("") => {}
                TokenKind::Phrase(phrase) => words.push(quoted(phrase)),
                TokenKind::Excluded(word) => {
                    if let Some((filter, _)) = filter_in(word) {
                        let reason =
                            format!("`{}:` cannot be excluded; only words can", filter.name());
                        return fault(token.start, reason);
                    }
                    without.push(word.to_owned());
                }
                TokenKind::ExcludedPhrase(phrase) => without.push(quoted(phrase)),
                TokenKind::Pattern(pattern) if filters.text.is_empty() => {
                    filters.text = pattern.to_owned();
                    filters.is_pattern = true;
                    if let Err(reason) = Query::parse(pattern, Mode::Regex) {
                        return fault(token.start, reason);
                    }
                }
                TokenKind::Pattern(_) => {
                    return fault(
                        token.start,
                        "is a second pattern; one is possible".to_owned(),
                    );
                }
                TokenKind::Filter {
                    filter, value: "", ..
                } if is_question && token.end < last => words.push(filter.name().to_owned()),
                TokenKind::Filter {
                    filter,
                    value,
                    value_at,
                } => {
                    if seen.contains(&filter) && filter != Filter::In {
                        let reason = format!("says `{}:` a second time", filter.name());
                        return fault(token.start, reason);
                    }
                    seen.push(filter);
                    filters
                        .add(filter, value, value_at, text, now)
                        .map_err(|reason| Fault::at(text, value_at, reason))?;
                }
            }
            if filters.is_pattern && !words.is_empty() {
                let reason = "has a pattern and words; put all into one pattern, or leave one out";
                return fault(token.start, reason.to_owned());
            }
        }
        if !filters.is_pattern {
            filters.text = words.join(" ");
        }
        filters.without = without.join(" ");
        Ok(filters)
    }

    /// How to understand `text`.
    pub fn mode(&self) -> Mode {
        match self.is_pattern {
            true => Mode::Regex,
            false => Mode::Words,
        }
    }

    fn add(
        &mut self,
        filter: Filter,
        value: &str,
        value_at: usize,
        text: &str,
        now: Millis,
    ) -> Result<(), String> {
        if value.is_empty() {
            let (name, example) = (filter.name(), filter.example());
            return Err(format!(
                "`{name}:` has no value, such as {name}:{example}; \"{name}:\" in quotes is a word"
            ));
        }
        let own = || Some(value.to_owned());
        match filter {
            Filter::Role => self.role = Some(role(value)?),
            Filter::Tool => self.tool = own(),
            Filter::Source => self.source = own(),
            Filter::Type => self.entry_type = own(),
            Filter::Git => self.git = own(),
            Filter::Cwd => {
                let position = characters(text, value_at);
                let value = value.to_owned();
                self.cwd = Some(Written { value, position });
            }
            Filter::Since => self.since = Some(time(value, now)?),
            Filter::Before => self.before = Some(time(value, now)?),
            Filter::In => {
                let fields = self.fields.get_or_insert_default();
                for name in value.split(',') {
                    fields.push(known(name, "field", &FIELDS)?);
                }
            }
            Filter::Branch => self.branches = Some(known(value, "choice of branches", &BRANCHES)?),
            Filter::Tag => {
                let tag = tags::given(value)
                    .ok_or("is not a tag: a tag is one word of at most 64 bytes")?;
                self.tag = Some(tag);
            }
        }
        Ok(())
    }
}

impl Fault {
    fn at(text: &str, byte: usize, reason: String) -> Self {
        let position = characters(text, byte);
        Self { position, reason }
    }
}

/// A phrase in the form of a query of words: in quotes.
fn quoted(phrase: &str) -> String {
    format!("\"{phrase}\"")
}

/// The reason why a word is probably a mistyped filter.
fn mistyped(word: &str) -> Option<String> {
    let (name, value) = word.split_once(':')?;
    let is_name = name.len() > 2 && name.bytes().all(|byte| byte.is_ascii_lowercase());
    // Names such as `std::fs` and URLs such as `http://…` are words.
    if !is_name || value.is_empty() || value.starts_with([':', '/']) {
        return None;
    }
    // Many words, such as `get:` and `bag:`, are similar to a filter name of three letters.
    let names = Filter::ALL.map(Filter::name).into_iter();
    let meant = match name {
        "until" => "before",
        "after" => "since",
        _ => suggest::nearest(name, names.filter(|name| name.len() > 3))?,
    };
    Some(format!(
        "`{name}:` is not a filter; did you mean `{meant}:`? Quote the word to search for it"
    ))
}

/// One of the known roles, in upper or lower case. Any other role is kept unchanged, unless it is similar to a known
/// role.
fn role(value: &str) -> Result<String, String> {
    let known = ROLES.iter().find(|name| name.eq_ignore_ascii_case(value));
    match known {
        Some(name) => Ok((*name).to_owned()),
        None if value == "tool" => Ok("toolResult".to_owned()),
        None => match suggest::nearest(value, ROLES) {
            Some(meant) => Err(format!("{value:?} is not a role; did you mean {meant:?}?")),
            None => Ok(value.to_owned()),
        },
    }
}

/// The known value with this name, in upper or lower case.
fn known<T: Copy>(name: &str, what: &str, all: &[(&str, T)]) -> Result<T, String> {
    let found = all
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        format!("{name:?} is not a {what}: {}", names.join(", "))
    })
}

fn time(value: &str, now: Millis) -> Result<Millis, String> {
    timestamp::read(value, now)
        .ok_or_else(|| format!("{value:?} is not a time: write {}", timestamp::TIMES))
}
