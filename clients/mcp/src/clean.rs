//! Makes old text safe to show to a model: without secrets, without characters that nobody sees, with links that no
//! program follows.

use crate::portable::portable;
use crate::text::{Passage, boundary};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use treelined_client::Entry;
use treelined_redact::unseen::is_unseen;
use treelined_redact::{FOREIGN_MEMBERS, ID_MEMBERS, Redactor};

/// The most characters of a line that the daemon sends of a text; a longer text is cut there.
const DAEMON_LINE: usize = 200;
/// The most characters of an id that are shown; files of other programs may have ids of 64 KiB.
const MAX_ID: usize = 256;
/// The characters before a match that an excerpt shows.
const BEFORE: usize = 60;

/// The secrets of one kind that an answer shows as `[redacted:KIND]`.
#[derive(Serialize, JsonSchema)]
#[schemars(transform = portable)]
pub struct Redaction {
    pub kind: String,
    pub count: u64,
}

/// Cleans the texts of one answer, and counts their secrets.
pub struct Cleaner<'r> {
    redactor: &'r Redactor,
    counts: BTreeMap<&'static str, u64>,
}

impl<'r> Cleaner<'r> {
    pub fn new(redactor: &'r Redactor) -> Cleaner<'r> {
        let counts = BTreeMap::new();
        Cleaner { redactor, counts }
    }

    /// The text without secrets, inert.
    pub fn text(&mut self, text: &str) -> String {
        let mut secrets = Vec::new();
        let text = self.replace(text, &mut secrets);
        self.count(&secrets);
        text
    }

    /// One line of at most `max` characters.
    pub fn line(&mut self, text: &str, max: usize) -> String {
        let line = self.text(&folded(text));
        shortened(&line, max)
    }

    /// As [`line`](Cleaner::line), for a text that the daemon may have cut. A word that is cut may be a part of a
    /// secret, which has no form, and is left out.
    pub fn cut_line(&mut self, text: &str, max: usize) -> String {
        let is_cut = text.chars().count() >= DAEMON_LINE;
        let mut words: Vec<&str> = text.split_whitespace().collect();
        for word in &mut words {
            if word.starts_with('…') || word.ends_with('…') {
                *word = "…";
            }
        }
        if let Some(last) = words.last_mut().filter(|_| is_cut) {
            *last = "…";
        }
        self.line(&words.join(" "), max)
    }

    /// An excerpt that the daemon has made of this entry. If the entry may have a secret, of which the excerpt may have a
    /// part, the same place in the clean text instead; its beginning if it has no `matched` text.
    pub fn excerpt(&mut self, entry: &Entry, excerpt: &str, matched: &str, max: usize) -> String {
        if !self.redactor.may_change(entry.json().get().as_bytes()) {
            return self.cut_line(excerpt, max);
        }
        let Some(passage) = Passage::of(entry, self) else {
            return String::new();
        };
        self.count(&passage.secrets);
        let text = folded(&passage.text);
        let at = text.find(matched).unwrap_or_default();
        let start = boundary(&text, at.saturating_sub(BEFORE));
        shortened(text.get(start..).unwrap_or_default(), max)
    }

    /// The strings of JSON in an entry, ids aside.
    pub fn entry_json(&mut self, entry: &Entry) -> String {
        let raw = entry.json().get();
        let Ok(json) = entry.json().parse::<Value>() else {
            return match self.redactor.may_change(raw.as_bytes()) {
                true => {
                    "(it may have secrets, and is nested too deeply to replace them)".to_owned()
                }
                false => inert_text(raw),
            };
        };
        let mut secrets = Vec::new();
        let json = self.replace_members(json, true, &mut secrets);
        self.count(&secrets);
        inert_text(&json.to_string())
    }

    /// The strings and keys of JSON in which no member is an id.
    pub fn value(&mut self, value: Value) -> Value {
        let mut secrets = Vec::new();
        let value = self.replace_foreign(value, &mut secrets);
        self.count(&secrets);
        value
    }

    pub fn count(&mut self, secrets: &[&'static str]) {
        for kind in secrets {
            *self.counts.entry(kind).or_default() += 1;
        }
    }

    /// The counts by kind.
    pub fn into_redactions(self) -> Vec<Redaction> {
        let redaction = |(kind, count): (&str, u64)| Redaction {
            kind: kind.to_owned(),
            count,
        };
        self.counts.into_iter().map(redaction).collect()
    }

    /// The text without secrets, inert. Adds their kinds to `secrets`.
    pub fn replace(&self, text: &str, secrets: &mut Vec<&'static str>) -> String {
        let redacted = self.redactor.text(text, &mut |kind| secrets.push(kind));
        let visible: String = redacted.chars().filter(is_visible).collect();
        if visible.len() == redacted.len() {
            return broken_links(&visible);
        }
        // A character that nobody sees may have been in a secret.
        let redacted = self.redactor.text(&visible, &mut |kind| secrets.push(kind));
        broken_links(&redacted)
    }

    /// See [`value`](Cleaner::value). Adds the kinds of the secrets to `secrets`.
    pub fn replace_foreign(&self, value: Value, secrets: &mut Vec<&'static str>) -> Value {
        self.replace_members(value, false, secrets)
    }

    fn replace_members(
        &self,
        value: Value,
        has_ids: bool,
        secrets: &mut Vec<&'static str>,
    ) -> Value {
        match value {
            Value::String(text) => Value::String(self.replace(&text, secrets)),
            Value::Array(items) => {
                let items = items.into_iter();
                items
                    .map(|item| self.replace_members(item, has_ids, secrets))
                    .collect()
            }
            Value::Object(members) => {
                let member = |(name, value): (String, Value)| {
                    let is_id = has_ids && ID_MEMBERS.contains(&name.as_str());
                    let has_ids = has_ids && !FOREIGN_MEMBERS.contains(&name.as_str());
                    let value = match is_id && value.is_string() {
                        true => value,
                        false => self.replace_members(value, has_ids, secrets),
                    };
                    (self.replace(&name, secrets), value)
                };
                Value::Object(members.into_iter().map(member).collect())
            }
            other => other,
        }
    }
}

/// An id on one line, which stays as it is but for characters that nobody sees and links. A long one is cut.
pub fn inert(id: &str) -> String {
    inert_text(&shortened(id, MAX_ID))
}

/// The id for the next call. A long one is cut: its entry cannot be asked for.
pub fn usable(id: &str) -> String {
    shortened(id, MAX_ID)
}

fn inert_text(text: &str) -> String {
    let visible: String = text.chars().filter(|c| !is_unseen(*c)).collect();
    broken_links(&visible)
}

fn is_visible(c: &char) -> bool {
    matches!(c, '\n' | '\t') || !is_unseen(*c)
}

fn broken_links(text: &str) -> String {
    text.replace("://", "[:]//")
}

/// The text on one line, its white space folded.
pub fn folded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// At most `max` characters.
pub fn shortened(line: &str, max: usize) -> String {
    match line.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line.to_owned(),
    }
}

/// The beginning and the end of a message, of at most `max` characters: its end says what to do.
pub fn abridged(message: &str, max: usize) -> String {
    let length = message.chars().count();
    if length <= max {
        return message.to_owned();
    }
    let (start, end) = (max / 2, length - max / 2);
    let chars = message.chars();
    let end: String = chars.skip(end).collect();
    format!("{} {end}", shortened(message, start))
}
