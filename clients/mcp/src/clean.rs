//! Makes old text safe to show to a model: replaces secrets, removes invisible characters, and breaks links so that no
//! program follows them.

use super::cuts::{is_line_end, shortened};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;
use treelined_client::{Entry, SearchHit};
use treelined_redact::unseen::is_unseen;
use treelined_redact::{FOREIGN_MEMBERS, ID_MEMBERS, Redactor, flag, mark};

/// The most characters of one line in an answer of the daemon. The daemon cuts a longer text there.
const DAEMON_LINE: usize = 200;
/// The most characters of an id that are shown; files of other programs may have ids of 64 KiB.
const MAX_ID: usize = 256;

/// Cleans the texts of one answer, and counts the secrets that it replaces.
pub struct Cleaner<'r> {
    pub(super) redactor: &'r Redactor,
    counts: BTreeMap<&'static str, u64>,
}

impl<'r> Cleaner<'r> {
    pub fn new(redactor: &'r Redactor) -> Cleaner<'r> {
        let counts = BTreeMap::new();
        Cleaner { redactor, counts }
    }

    /// The text with its secrets replaced, its invisible characters removed and its links broken.
    pub fn text(&mut self, text: &str) -> String {
        let mut secrets = Vec::new();
        let text = self.replace(text, &mut secrets);
        self.count(&secrets);
        text
    }

    /// See [`word`].
    pub fn word(&mut self, name: &str) -> String {
        let mut secrets = Vec::new();
        let name = word(name, self, &mut secrets);
        self.count(&secrets);
        name
    }

    /// One line of at most `max` characters.
    pub fn line(&mut self, text: &str, max: usize) -> String {
        let line = self.text(&folded(text));
        shortened(&line, max)
    }

    /// Like [`line`](Cleaner::line), for a text that the daemon may have cut. The last word of a cut text is left out:
    /// it may be a part of a secret, which no rule recognizes.
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

    /// The strings of JSON in an entry, except the ids.
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
        let json = self.replace_members("", json, true, &mut secrets);
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

    /// The number of replaced secrets of each kind.
    pub fn into_counts(self) -> BTreeMap<&'static str, u64> {
        self.counts
    }

    /// The cleaned text. Adds the kinds of its secrets to `secrets`.
    pub fn replace(&self, text: &str, secrets: &mut Vec<&'static str>) -> String {
        let redacted = self.redactor.text(text, &mut |kind, _| secrets.push(kind));
        let seen = Seen::of(&redacted);
        if seen.gaps.is_empty() {
            return broken_links(&seen.text);
        }
        // An invisible character may be inside a secret. The secret is found in the text without these characters.
        let mut gaps = seen.gaps.as_slice();
        let (mut out, mut done) = (String::new(), 0);
        for (kind, span) in self.redactor.secrets(&seen.text) {
            seen.show(done..span.start, &mut gaps, &mut out);
            let within = gaps.iter().take_while(|gap| gap.at < span.end).count();
            gaps = gaps.get(within..).unwrap_or_default();
            out.push_str(&mark(kind));
            secrets.push(kind);
            done = span.end;
        }
        seen.show(done..seen.text.len(), &mut gaps, &mut out);
        broken_links(&out)
    }

    /// See [`value`](Cleaner::value). Adds the kinds of the secrets to `secrets`.
    pub fn replace_foreign(&self, value: Value, secrets: &mut Vec<&'static str>) -> Value {
        self.replace_members("", value, false, secrets)
    }

    /// `name` is the last key above the value. In JSON with ids (an entry), the name of a key never makes its value a
    /// secret.
    fn replace_members(
        &self,
        name: &str,
        value: Value,
        has_ids: bool,
        secrets: &mut Vec<&'static str>,
    ) -> Value {
        match value {
            Value::String(text) => {
                let before = secrets.len();
                let replaced = self.replace(&text, secrets);
                let is_foreign = !has_ids && secrets.len() == before;
                match self.redactor.member(name, &text).filter(|_| is_foreign) {
                    Some(kind) => {
                        secrets.push(kind);
                        Value::String(mark(kind))
                    }
                    None => Value::String(replaced),
                }
            }
            Value::Array(items) => {
                let mut before = None;
                let replaced = items.into_iter().map(|item| {
                    let next = item.as_str().and_then(flag).map(str::to_owned);
                    let name = match before.take() {
                        Some(flag) if item.is_string() => flag,
                        _ => name.to_owned(),
                    };
                    before = next;
                    self.replace_members(&name, item, has_ids, secrets)
                });
                replaced.collect()
            }
            Value::Object(members) => {
                let member = |(name, value): (String, Value)| {
                    let is_id = has_ids && ID_MEMBERS.contains(&name.as_str());
                    let has_ids = has_ids && !FOREIGN_MEMBERS.contains(&name.as_str());
                    let value = match is_id && value.is_string() {
                        true => value,
                        false => self.replace_members(&name, value, has_ids, secrets),
                    };
                    (self.replace(&name, secrets), value)
                };
                Value::Object(members.into_iter().map(member).collect())
            }
            other => other,
        }
    }
}

/// An id on one line, with its links broken and its invisible characters removed. A long id is cut.
pub fn inert(id: &str) -> String {
    inert_text(&shortened(id, MAX_ID))
}

/// Whether an id can be shown outside of a quotation. Files of other programs may have text as ids, and a model would
/// read this text as a text of the server.
pub fn is_plain_id(id: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
    (1..=MAX_ID).contains(&id.len()) && id.bytes().all(is_plain)
}

/// Whether the entry of a hit and its session have plain ids.
pub fn has_plain_ids(hit: &SearchHit) -> bool {
    is_plain_id(&hit.entry_id) && is_plain_id(&hit.session_id)
}

/// A cursor without invisible characters.
pub fn visible(text: &str) -> String {
    let is_shown = |c: &char| !c.is_control() && is_visible(c);
    text.chars().filter(is_shown).collect()
}

fn inert_text(text: &str) -> String {
    broken_links(&visible(text))
}

fn is_visible(c: &char) -> bool {
    matches!(c, '\n' | '\t') || !(is_unseen(*c) || is_line_end(*c))
}

/// The visible characters of a text, and the positions of the removed characters.
struct Seen {
    text: String,
    gaps: Vec<Gap>,
}

struct Gap {
    /// The first byte of the text after the gap.
    at: usize,
    is_line_end: bool,
}

impl Seen {
    fn of(text: &str) -> Seen {
        let (mut seen, mut gaps) = (String::with_capacity(text.len()), Vec::<Gap>::new());
        for c in text.chars() {
            if is_visible(&c) {
                seen.push(c);
                continue;
            }
            let (at, is_line_end) = (seen.len(), is_line_end(c));
            match gaps.last_mut().filter(|gap| gap.at == at) {
                Some(gap) => gap.is_line_end |= is_line_end,
                None => gaps.push(Gap { at, is_line_end }),
            }
        }
        Seen { text: seen, gaps }
    }

    /// Adds a part of the text to `out`. At a gap in this part, the words or lines on both sides stay separate.
    fn show(&self, part: Range<usize>, gaps: &mut &[Gap], out: &mut String) {
        let mut done = part.start;
        while let Some((gap, rest)) = gaps.split_first().filter(|(gap, _)| gap.at <= part.end) {
            *gaps = rest;
            out.push_str(self.text.get(done..gap.at).unwrap_or_default());
            done = gap.at;
            let after = self.text.get(gap.at..).and_then(|text| text.chars().next());
            let is_apart = |c: Option<char>| c.is_none_or(char::is_whitespace);
            if gap.is_line_end && after != Some('\n') {
                out.push('\n');
            } else if !is_apart(out.chars().next_back()) && !is_apart(after) {
                out.push(' ');
            }
        }
        out.push_str(self.text.get(done..part.end).unwrap_or_default());
    }
}

/// The schemes that begin a link with or without slashes. Every other scheme begins a link only with `://`.
const LINK_STARTS: [&str; 11] = [
    "http:",
    "https:",
    "ftp:",
    "file:",
    "data:",
    "blob:",
    "ws:",
    "wss:",
    "javascript:",
    "vbscript:",
    "www.",
];

/// The text with its links broken, so that no program follows them.
fn broken_links(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for (at, mark) in text.match_indices([':', '.']) {
        let (before, behind) = text.split_at(at);
        let behind = behind.get(1..).unwrap_or_default();
        let is_link = behind.starts_with("//") && mark == ":"
            || starts_link(before, mark) && !behind.starts_with(|c: char| c.is_whitespace());
        if is_link && !behind.is_empty() {
            out.push_str(text.get(done..at).unwrap_or_default());
            out.extend(["[", mark, "]"]);
            done = at + 1;
        }
    }
    out.push_str(text.get(done..).unwrap_or_default());
    out
}

/// Whether the last word of `before` and the mark after it begin a link.
fn starts_link(before: &str, mark: &str) -> bool {
    LINK_STARTS.iter().any(|start| {
        let Some(word) = start.strip_suffix(mark) else {
            return false;
        };
        let at = before.len().checked_sub(word.len());
        let found = at.and_then(|at| Some((before.get(..at)?, before.get(at..)?)));
        found.is_some_and(|(head, tail)| {
            tail.eq_ignore_ascii_case(word) && !head.ends_with(|c: char| c.is_alphanumeric())
        })
    })
}

/// The text on one line, its white space folded.
pub fn folded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The beginning and the end of a message, together at most `max` characters. The end is kept because it says what to
/// do.
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

/// The most characters of a name outside of a quotation.
pub(super) const MAX_NAME: usize = 64;

/// A name in a record, such as the name of a tool, as one word. It is shown outside of a quotation.
pub fn word(name: &str, cleaner: &Cleaner<'_>, secrets: &mut Vec<&'static str>) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-.:/[]".contains(c);
    let plain = |c: char| if is_plain(c) { c } else { '_' };
    let name = cleaner.replace(name, secrets);
    shortened(&name.chars().map(plain).collect::<String>(), MAX_NAME)
}
