//! Completion of filters and their values.

use super::keys::{BRANCHES, FIELDS, Filter, ROLES, TIMES, TYPES};
use super::token::{TokenKind, characters, filter_in, tokens};
use crate::agent::Tool;

/// The candidates for completing a part of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completion {
    /// The start of the part that an item replaces, in characters.
    pub start: usize,
    pub end: usize,
    pub items: Vec<CompletionItem>,
    /// A filter whose values are only in the sessions, and the beginning of the value.
    pub unknown: Option<(&'static str, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletionItem {
    /// A filter with its colon, or a value.
    pub text: String,
    /// A few words for people; empty for a value.
    pub about: &'static str,
}

/// The filters that may continue the word before `position`. If this word is a filter already: the values that may
/// follow the filter. `position` is in characters.
pub fn complete(text: &str, position: usize) -> Completion {
    let cursor = text.char_indices().nth(position);
    let before = text.get(..cursor.map_or(text.len(), |(at, _)| at));
    let before = before.unwrap_or(text);
    let end = characters(text, before.len());
    let word = match tokens(before)
        .last()
        .filter(|token| token.end == before.len())
    {
        None => "",
        Some(token) => {
            let word = before.get(token.start..).unwrap_or_default();
            let is_word = matches!(token.kind, TokenKind::Word(_) | TokenKind::Filter { .. });
            if !is_word || word.contains('"') {
                return Completion {
                    start: end,
                    end,
                    ..Completion::default()
                };
            }
            word
        }
    };
    let filter = filter_in(word);
    let of_sessions = |filter: Filter| matches!(filter, Filter::Tool | Filter::Tag | Filter::Git);
    let unknown = filter.filter(|(filter, _)| of_sessions(*filter));
    let unknown = unknown.map(|(filter, value)| (filter.name(), value.to_owned()));
    let (typed, items) = match filter {
        Some((Filter::In, fields)) => {
            let field = fields.rsplit(',').next().unwrap_or_default();
            (field, values(Filter::In, field))
        }
        Some((filter, value)) => (value, values(filter, value)),
        None => (word, filters(word)),
    };
    let start = end - typed.chars().count();
    Completion {
        start,
        end,
        items,
        unknown,
    }
}

fn filters(typed: &str) -> Vec<CompletionItem> {
    let offered = Filter::ALL.into_iter();
    let fitting = offered.filter(|filter| filter.name().starts_with(typed));
    let item = |filter: Filter| CompletionItem {
        text: format!("{}:", filter.name()),
        about: filter.about(),
    };
    fitting.map(item).collect()
}

fn values(filter: Filter, typed: &str) -> Vec<CompletionItem> {
    let all: Vec<&str> = match filter {
        Filter::Role => ROLES.to_vec(),
        Filter::In => FIELDS.iter().map(|(name, _)| *name).collect(),
        Filter::Branch => BRANCHES.iter().map(|(name, _)| *name).collect(),
        Filter::Since | Filter::Before => TIMES.to_vec(),
        Filter::Source => Tool::ALL.map(Tool::name).to_vec(),
        Filter::Type => TYPES.to_vec(),
        Filter::Cwd => vec!["."],
        Filter::Tool | Filter::Tag | Filter::Git => Vec::new(),
    };
    let typed = typed.to_ascii_lowercase();
    let fitting = all.into_iter();
    let fitting = fitting.filter(|name| name.to_ascii_lowercase().starts_with(&typed));
    let item = |name: &str| CompletionItem {
        text: name.to_owned(),
        about: "",
    };
    fitting.map(item).collect()
}
