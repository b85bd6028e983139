//! Reads JSON values that other tools store as text in their records, and writes the raw JSON of entries.

use std::borrow::Cow;
use std::collections::BTreeMap;
use treelined_core::json::{self, Key, Members, Span, Visitor};
use treelined_core::timestamp::{self, Millis};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The deepest nesting of a value that is read.
const DEEPEST: usize = 256;
/// The longest name of a type, in bytes, and the most names that are counted separately.
const LONGEST_NAME: usize = 64;
const MOST_NAMES: usize = 256;

/// A JSON value that was checked to be whole.
#[derive(Debug, Clone)]
pub(super) struct Value<'a> {
    text: Cow<'a, [u8]>,
    span: Span,
    /// The hash of the value. It does not depend on the order of members. Top-level members that are ignored do not
    /// count.
    pub(super) hash: u64,
}

impl<'a> Value<'a> {
    /// The value whose JSON is the text of a string literal.
    pub(super) fn of_literal(literal: &'a [u8], ignored: &'static [&'static str]) -> Option<Self> {
        let text = match json::string(literal)? {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        };
        Self::new(text, ignored)
    }

    pub(super) fn of_raw(raw: &'a [u8], ignored: &'static [&'static str]) -> Option<Self> {
        Self::new(Cow::Borrowed(raw), ignored)
    }

    fn new(text: Cow<'a, [u8]>, ignored: &'static [&'static str]) -> Option<Self> {
        let start = json::skip_space(&text, 0);
        let mut digest = Digest::new(ignored);
        let end = json::walk(&text, start, &mut digest).ok()?;
        let is_whole = json::skip_space(&text, end) == text.len();
        (is_whole && digest.deepest <= DEEPEST).then_some(Self {
            text,
            span: start..end,
            hash: digest.value,
        })
    }

    /// A member of the value, as a separate value.
    pub(super) fn into_member(self, name: &str, ignored: &'static [&'static str]) -> Option<Self> {
        let mut span = None;
        let mut members = Members::open(&self.text, self.span.start).ok()?;
        while let Some(member) = members.next_member().ok()? {
            if member.is(&self.text, name) {
                span = Some(member.value);
            }
        }
        let span = span?;
        let mut digest = Digest::new(ignored);
        json::walk(&self.text, span.start, &mut digest).ok()?;
        Some(Self {
            text: self.text,
            span,
            hash: digest.value,
        })
    }

    pub(super) fn raw(&self) -> &[u8] {
        self.text.get(self.span.clone()).unwrap_or_default()
    }

    pub(super) fn get(&self, name: &str) -> Option<&[u8]> {
        json::get(self.raw(), name)
    }

    pub(super) fn each<const N: usize>(&self, names: [&str; N]) -> [Option<&[u8]>; N] {
        json::get_each(self.raw(), names)
    }
}

/// Computes the hash of a value while the value is read.
struct Digest {
    ignored: &'static [&'static str],
    open: Vec<OpenContainer>,
    /// The hash of the key whose value comes next; `None` if the member is ignored.
    key: Option<u64>,
    deepest: usize,
    value: u64,
}

struct OpenContainer {
    is_object: bool,
    key: Option<u64>,
    hash: u64,
}

impl Digest {
    fn new(ignored: &'static [&'static str]) -> Self {
        Self {
            ignored,
            open: Vec::new(),
            key: None,
            deepest: 0,
            value: 0,
        }
    }

    fn add(&mut self, value: u64) {
        match self.open.last_mut() {
            None => self.value = value,
            Some(array) if !array.is_object => array.hash = mixed(array.hash, value),
            Some(object) => {
                let member = self.key.map_or(0, |key| mixed(key, value));
                object.hash = object.hash.wrapping_add(member);
            }
        }
    }
}

impl Visitor for Digest {
    fn open(&mut self, _at: usize, is_object: bool) {
        self.open.push(OpenContainer {
            is_object,
            key: self.key,
            hash: u64::from(is_object),
        });
        self.deepest = self.deepest.max(self.open.len());
    }

    fn key(&mut self, text: &[u8], key: &Key) {
        let name = key.name(text);
        let is_ignored =
            self.open.len() == 1 && self.ignored.iter().any(|other| name == other.as_bytes());
        self.key = (!is_ignored).then(|| xxh3_64(&name));
    }

    fn leaf(&mut self, text: &[u8], value: Span) {
        let raw = text.get(value).unwrap_or_default();
        let hash = match (raw.first(), json::string(raw)) {
            (_, Some(text)) => xxh3_64(text.as_bytes()),
            // An empty container may have white space inside, so its raw bytes are not hashed.
            (Some(open @ (b'{' | b'[')), None) => u64::from(*open),
            (_, None) => xxh3_64_with_seed(raw, 1),
        };
        self.add(hash);
    }

    fn close(&mut self, _end: usize, _is_object: bool) {
        if let Some(container) = self.open.pop() {
            self.key = container.key;
            self.add(mixed(container.hash, 2));
        }
    }
}

/// Combines two hashes.
pub(super) fn mixed(a: u64, b: u64) -> u64 {
    xxh3_64_with_seed(&a.to_le_bytes(), b)
}

/// The hash of a string literal's text.
pub(super) fn text_hash(literal: &[u8]) -> u64 {
    json::string(literal).map_or(0, |text| xxh3_64(text.as_bytes()))
}

/// Whether the text of a string literal is empty or only white space.
pub(super) fn is_blank(literal: &[u8]) -> bool {
    json::chars(literal).all(char::is_whitespace)
}

/// The text of a string literal; `None` if it is missing or not a string.
pub(super) fn text(raw: Option<&[u8]>) -> Option<Cow<'_, str>> {
    raw.and_then(json::id)
}

/// A boxed copy of the text of a string literal.
pub(super) fn boxed(raw: Option<&[u8]>) -> Option<Box<str>> {
    text(raw).map(|text| text.into_owned().into_boxed_str())
}

/// The raw value, if it is a string literal.
pub(super) fn literal(raw: Option<&[u8]>) -> Option<&[u8]> {
    raw.filter(|raw| raw.first() == Some(&b'"'))
}

/// The value, if it is a number.
pub(super) fn number(raw: Option<&[u8]>) -> Option<f64> {
    let number: f64 = std::str::from_utf8(raw?).ok()?.parse().ok()?;
    number.is_finite().then_some(number)
}

/// A count of tokens.
pub(super) fn count(raw: Option<&[u8]>) -> Option<u64> {
    number(raw).map(json::saturated)
}

/// A time in Unix milliseconds. Times after the year 9999 become the last millisecond of that year.
pub(super) fn millis(raw: Option<&[u8]>) -> Option<Millis> {
    const LAST: u64 = 253_402_300_799_999;
    let millis = number(raw).filter(|millis| *millis >= 0.0)?;
    let millis = json::saturated(millis);
    (millis <= LAST).then(|| millis.cast_signed())
}

/// A time in ISO 8601, in Unix milliseconds.
pub(super) fn instant(raw: Option<&[u8]>) -> Option<Millis> {
    timestamp::parse(&text(raw)?)
}

/// A time in Unix seconds, with a fraction, as Unix milliseconds.
pub(super) fn millis_of_seconds(raw: Option<&[u8]>) -> Option<Millis> {
    let seconds = number(raw)?;
    millis(Some((seconds * 1000.0).round().to_string().as_bytes()))
}

/// The names of record types, each with an index.
#[derive(Debug, Default)]
pub(super) struct TypeNames {
    names: Vec<String>,
    indexes: BTreeMap<String, u16>,
}

impl TypeNames {
    /// The index of a name. A long name is cut. Above the limit, all further names share one index.
    pub(super) fn index(&mut self, name: &str) -> u16 {
        if let Some(index) = self.indexes.get(name) {
            return *index;
        }
        let mut end = name.len().min(LONGEST_NAME);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        let name = match self.names.len() {
            MOST_NAMES.. => "other",
            _ => name.get(..end).unwrap_or_default(),
        };
        if let Some(index) = self.indexes.get(name) {
            return *index;
        }
        let index = u16::try_from(self.names.len()).unwrap_or(u16::MAX);
        self.names.push(name.to_owned());
        self.indexes.insert(name.to_owned(), index);
        index
    }

    pub(super) fn name(&self, index: u16) -> &str {
        self.names
            .get(usize::from(index))
            .map_or("other", |name| name)
    }
}

/// The types of all records of a source. They are used to count the records that do not become a node.
#[derive(Debug, Default)]
pub(super) struct RecordTypes {
    names: TypeNames,
    /// For each record, the position where it begins and the index of its type.
    records: Vec<(u64, u16)>,
}

impl RecordTypes {
    pub(super) fn add(&mut self, at: u64, name: &str) {
        self.records.push((at, self.names.index(name)));
    }

    /// The number of records, for each type, that do not begin at one of the places in `used`.
    pub(super) fn unused(&self, mut used: Vec<u64>) -> BTreeMap<String, u64> {
        used.sort_unstable();
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for (at, name) in &self.records {
            if used.binary_search(at).is_err() {
                *counts.entry(self.names.name(*name).to_owned()).or_default() += 1;
            }
        }
        counts
    }
}

/// Writes JSON members and content blocks.
#[derive(Debug, Default)]
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    /// Opens the member `message`.
    pub(super) fn open_message(&mut self, role: &str) {
        self.open(Some("message"), b'{');
        self.text("role", role);
    }

    /// Closes the message, with its time.
    pub(super) fn close_message(&mut self, time: Option<Millis>) {
        if let Some(time) = time {
            self.number("timestamp", time);
        }
        self.close(b'}');
    }

    /// Writes a comma, unless the container is empty.
    fn separate(&mut self) {
        if !matches!(self.0.last(), Some(b'{' | b'[')) {
            self.0.push(b',');
        }
    }

    /// Opens a container: as a member if it has a name, else as an element.
    pub(super) fn open(&mut self, name: Option<&str>, bracket: u8) {
        self.separate();
        if let Some(name) = name {
            json::push_string(&mut self.0, name);
            self.0.push(b':');
        }
        self.0.push(bracket);
    }

    pub(super) fn close(&mut self, bracket: u8) {
        self.0.push(bracket);
    }

    /// Writes a member with a raw value.
    pub(super) fn member(&mut self, name: &str, value: &[u8]) {
        self.separate();
        json::push_string(&mut self.0, name);
        self.0.push(b':');
        json::push_one_line(&mut self.0, value);
    }

    /// Writes a member, if the raw value is present.
    pub(super) fn optional(&mut self, name: &str, value: Option<&[u8]>) {
        if let Some(value) = value {
            self.member(name, value);
        }
    }

    pub(super) fn text(&mut self, name: &str, value: &str) {
        self.member(name, &json::quoted(value));
    }

    pub(super) fn number(&mut self, name: &str, value: impl std::fmt::Display) {
        self.member(name, value.to_string().as_bytes());
    }

    /// Writes a block `{"type":kind,name:value}`.
    pub(super) fn block(&mut self, kind: &str, name: &str, value: &[u8]) {
        self.open(None, b'{');
        self.text("type", kind);
        self.member(name, value);
        self.close(b'}');
    }

    pub(super) fn image(&mut self, data: &[u8], mime: &[u8]) {
        self.open(None, b'{');
        self.text("type", "image");
        self.member("data", data);
        self.member("mimeType", mime);
        self.close(b'}');
    }

    pub(super) fn call(&mut self, id: &[u8], name: &[u8], arguments: Option<&[u8]>) {
        self.open(None, b'{');
        self.text("type", "toolCall");
        self.member("id", id);
        self.member("name", name);
        self.member("arguments", &object(arguments));
        self.close(b'}');
    }
}

/// The arguments of a call as an object. Any other value becomes `{"_raw":"…"}`.
fn object(arguments: Option<&[u8]>) -> Cow<'_, [u8]> {
    match arguments {
        None | Some(b"null") => Cow::Borrowed(b"{}"),
        Some(object) if object.first() == Some(&b'{') => Cow::Borrowed(object),
        Some(other) => {
            let literal = match literal(Some(other)) {
                Some(literal) => Cow::Borrowed(literal),
                None => Cow::Owned(json::quoted(&String::from_utf8_lossy(other))),
            };
            Cow::Owned([b"{\"_raw\":", &*literal, b"}"].concat())
        }
    }
}

/// Joins string literals into one, with line breaks between the texts. Escapes are not changed.
pub(super) fn joined<'a>(literals: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut out = vec![b'"'];
    for literal in literals {
        let inner = literal.get(1..literal.len().saturating_sub(1));
        if out.len() > 1 {
            out.extend_from_slice(b"\\n");
        }
        out.extend_from_slice(inner.unwrap_or_default());
    }
    out.push(b'"');
    out
}

/// The tokens of a message, and their cost in dollars.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Usage {
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) cache_read: u64,
    pub(super) cache_write: u64,
    pub(super) total: Option<u64>,
    pub(super) cost: Option<f64>,
}

impl Usage {
    pub(super) fn write(&self, out: &mut Writer) {
        out.open(Some("usage"), b'{');
        out.number("input", self.input);
        out.number("output", self.output);
        out.number("cacheRead", self.cache_read);
        out.number("cacheWrite", self.cache_write);
        out.number("totalTokens", self.total.unwrap_or_else(|| self.sum()));
        if let Some(cost) = self.cost {
            out.open(Some("cost"), b'{');
            out.number("total", cost);
            out.close(b'}');
        }
        out.close(b'}');
    }

    pub(super) fn sum(&self) -> u64 {
        let others = [self.output, self.cache_read, self.cache_write];
        others
            .iter()
            .fold(self.input, |sum, count| sum.saturating_add(*count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(raw: &str) -> u64 {
        Value::of_raw(raw.as_bytes(), &["id"]).expect(raw).hash
    }

    #[test]
    fn the_hash_of_a_value_ignores_order_and_space_but_nothing_else() {
        assert_eq!(
            hash(r#"{"a":1,"b":[1,{"c":2,"d":""}]}"#),
            hash(r#"{ "b":[1,{"d":"","c":2}],"a":1 }"#)
        );
        assert_eq!(hash(r#"{"a":1,"id":5}"#), hash(r#"{"a":1}"#));
        assert_eq!(hash(r#"{"a":"\u0041"}"#), hash(r#"{"a":"A"}"#));
        for (one, other) in [
            (r#"{"a":1}"#, r#"{"a":"1"}"#),
            (r#"{"a":1,"b":2}"#, r#"{"a":2,"b":1}"#),
            (r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#),
            (r#"{"a":{"id":1}}"#, r#"{"a":{"id":2}}"#),
            (r#"{"a":{}}"#, r#"{"a":[]}"#),
            (r#"{"a":[[1],2]}"#, r#"{"a":[[1,2]]}"#),
        ] {
            assert_ne!(hash(one), hash(other), "{one} {other}");
        }
    }

    #[test]
    fn a_value_too_deep_or_with_something_after_it_is_refused() {
        let nested = |depth: usize| ["[".repeat(depth), "1".into(), "]".repeat(depth)].concat();
        assert!(Value::of_raw(nested(DEEPEST).as_bytes(), &[]).is_some());
        assert!(Value::of_raw(nested(DEEPEST + 1).as_bytes(), &[]).is_none());
        assert!(Value::of_raw(b"{} {}", &[]).is_none());
        assert!(Value::of_literal(br#""{\"a\":1}""#, &[]).is_some());
        assert!(Value::of_literal(b"{}", &[]).is_none());
    }

    #[test]
    fn arguments_that_are_not_an_object_are_kept_as_text() {
        for (arguments, object) in [
            (r#"{"a":1}"#, r#"{"a":1}"#),
            ("null", "{}"),
            (r#""ls \ud83d""#, r#"{"_raw":"ls \ud83d"}"#),
            (r#"["a"]"#, r#"{"_raw":"[\"a\"]"}"#),
        ] {
            assert_eq!(super::object(Some(arguments.as_bytes())), object.as_bytes());
        }
        assert_eq!(super::object(None), &b"{}"[..]);
    }

    #[test]
    fn texts_are_joined_without_decoding_them() {
        let literals: [&[u8]; 2] = [br#""a\ud83d""#, br#""b""#];
        assert_eq!(joined(literals), br#""a\ud83d\nb""#);
        assert_eq!(joined([]), br#""""#);
    }
}
