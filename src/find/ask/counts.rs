//! The counts of terms in a part of a session file.

use super::entries::{CountedEntry, EntryList};
use super::request::fact;
use crate::request::called_tools;
use hashbrown::{HashMap, HashSet};
use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::ops::{ControlFlow, Range};
use std::time::Instant;
use treelined_core::entry::{ARCHIVED, Envelope, Facts, Kind, Line, Parent, Role, scan};
use treelined_core::json;
use treelined_core::search::ask::{Corpus, Form, Term, Tokenizer, field_weight};
use treelined_core::search::{decoded, each_field_with_kind};
use treelined_core::timestamp;
use treelined_files::cancel::Cancel;
use treelined_files::log::lines::Lines;

/// The most bytes of words that are kept for each session. The words are for `didYouMean`.
const VOCABULARY: usize = 256 << 10;
/// The most bytes of values of filters that are kept for each session, and the longest value.
const VALUES: usize = 16 << 10;
pub(super) const MOST_VALUE: usize = 128;
/// This text among the values of a session shows that the session has more values.
pub(super) const VALUES_LEFT_OUT: &str = ":";
/// The bytes of a file that are read at a time if only its first line is needed.
const FIRST: usize = 4 << 10;
/// The number of letters of a word that is kept for `didYouMean`.
const WORD: std::ops::RangeInclusive<usize> = 4..=24;

/// How often an entry has a term, and in which fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Posting {
    /// The number of the entry.
    pub entry: u32,
    /// The sum of the weights of the term, one for each time that it occurs in the entry; 0 for a fact.
    pub weight: u8,
    /// The kinds of fields that have the term, one bit for each kind.
    pub fields: u8,
}

/// For each leaf record, the hash of its id and the number of the entry that it records as the leaf.
pub(super) type LeafRecords = Vec<(u64, u32)>;

/// The counts of a part of a file.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Counts {
    pub cwd: Option<String>,
    /// The entries in file order.
    pub entries: Vec<CountedEntry>,
    pub branches: u32,
    /// Leaf records are not entries, but a program that does not know them appends entries below them (session-file.md
    /// §4.1).
    pub records: LeafRecords,
    /// Whether a record archives a branch.
    pub has_archive: bool,
    /// The postings of each term, in the order of the entries.
    pub postings: HashMap<Term, Vec<Posting>>,
    /// Words as they are written, folded; and the values of filters, such as `tool:bash`.
    pub vocabulary: HashSet<Box<str>>,
    /// The end of the last line that was read.
    pub end: u64,
}

impl Counts {
    /// The numbers that the session adds to a corpus. Entries without terms do not count.
    pub(super) fn corpus(&self) -> Corpus {
        let texts = self.entries.iter().filter(|entry| entry.terms > 0);
        Corpus {
            entries: texts.clone().count() as u64,
            sessions: 1,
            branches: u64::from(self.branches),
            terms: texts.map(|entry| u64::from(entry.terms)).sum(),
        }
    }
}

/// The counts of a session for one question.
pub(super) struct SessionCounts<'c> {
    pub corpus: Corpus,
    pub has_archive: bool,
    pub entries: EntryList<'c>,
    /// The postings of each term of the question.
    pub terms: Vec<Cow<'c, [Posting]>>,
    /// The postings of each fact that an entry must have.
    pub facts: Vec<Cow<'c, [Posting]>>,
    pub labels: Cow<'c, [Posting]>,
}

impl SessionCounts<'_> {
    /// The number of terms of each branch. A repeated term counts each time.
    pub(super) fn terms_of_branches(&self) -> Vec<u64> {
        if self.corpus.branches == 1 {
            return vec![self.corpus.terms];
        }
        let branches = usize::try_from(self.corpus.branches).unwrap_or_default();
        let mut terms = vec![0; branches];
        for entry in (0..).map_while(|number| self.entries.get(number)) {
            if let Some(of_branch) = terms.get_mut(entry.branch as usize) {
                *of_branch += u64::from(entry.terms);
            }
        }
        terms
    }
}

impl Counts {
    /// The part of the counts that a question with these terms and facts needs.
    pub(super) fn of_terms(&self, terms: &[Term], facts: &[Term]) -> SessionCounts<'_> {
        let of = |term: &Term| Cow::from(self.postings.get(term).map_or(&[][..], Vec::as_slice));
        SessionCounts {
            corpus: self.corpus(),
            has_archive: self.has_archive,
            entries: EntryList::Counted(&self.entries),
            terms: terms.iter().map(of).collect(),
            facts: facts.iter().map(of).collect(),
            labels: of(&labels()),
        }
    }
}

/// The fact that an entry is a label.
pub(super) fn labels() -> Term {
    fact("type", "label")
}

/// Counts the terms of lines.
pub(super) struct Counter<'q> {
    counts: Counts,
    tokenizer: Tokenizer,
    /// The terms that are counted. `None` counts all terms and also keeps the words.
    only: Option<&'q HashSet<Term>>,
    numbers: HashMap<u64, u32>,
    vocabulary_bytes: usize,
    value_bytes: usize,
    /// No line is begun after this time.
    until: Option<Instant>,
}

impl<'q> Counter<'q> {
    /// `before` has the counts of the earlier lines of the file.
    pub(super) fn new(only: Option<&'q HashSet<Term>>, before: Counts) -> Self {
        let entries = before.entries.iter().zip(0..);
        let numbers = entries.map(|(entry, number)| (entry.id, number));
        let bytes_of = |are_values: bool| {
            let words = before.vocabulary.iter();
            let words = words.filter(|word| word.contains(':') == are_values);
            words.map(|word| word.len()).sum()
        };
        Self {
            numbers: numbers.chain(before.records.iter().copied()).collect(),
            vocabulary_bytes: bytes_of(false),
            value_bytes: bytes_of(true),
            counts: before,
            tokenizer: Tokenizer::default(),
            only,
            until: None,
        }
    }

    /// Reads no more lines after a time.
    pub(super) fn until(self, until: Option<Instant>) -> Self {
        Self { until, ..self }
    }

    /// Reads the complete lines of a part of a file; at most `most` bytes.
    pub(super) fn read(
        mut self,
        file: &File,
        span: Range<u64>,
        cancel: &Cancel,
    ) -> io::Result<Counts> {
        let mut lines = Lines::new(file, span.start).with_cancel(cancel);
        self.counts.end = span.start;
        while self.until.is_none_or(|until| Instant::now() < until)
            && let Some(line) = lines.next()?
        {
            let end = line.offset + line.len + 1;
            if !line.terminated || end > span.end {
                break;
            }
            if let Some(bytes) = line.bytes {
                self.line(bytes, line.offset);
            }
            self.counts.end = end;
        }
        Ok(self.counts)
    }

    pub(super) fn end(self) -> Counts {
        self.counts
    }

    /// Counts a line. The offsets of lines ascend; only a header has the offset 0.
    pub(super) fn line(&mut self, bytes: &[u8], offset: u64) {
        match scanned(bytes) {
            Some(Line::Header(header)) if offset == 0 => {
                self.counts.cwd = header.cwd.map(std::borrow::Cow::into_owned);
            }
            Some(Line::Entry(envelope)) if envelope.kind == Kind::LeafRecord => {
                self.record(bytes, &envelope);
            }
            Some(Line::Entry(envelope)) => self.entry(bytes, offset, &envelope),
            _ => {}
        }
    }

    /// A leaf record does not begin or continue a branch. An entry below the record counts as an entry below the
    /// recorded leaf.
    fn record(&mut self, bytes: &[u8], envelope: &Envelope<'_>) {
        let custom_type = json::get(bytes, "customType").and_then(json::string);
        self.counts.has_archive |= custom_type.as_deref() == Some(ARCHIVED);
        let place = match &envelope.parent {
            Parent::Id(id) => self.numbers.get(&hash(id)),
            _ => None,
        };
        if let (Some(place), Some(id)) = (place.copied(), envelope.id.as_deref()) {
            self.numbers.insert(hash(id), place);
            self.counts.records.push((hash(id), place));
        }
    }

    fn entry(&mut self, bytes: &[u8], offset: u64, envelope: &Envelope<'_>) {
        let Ok(number) = u32::try_from(self.counts.entries.len()) else {
            return;
        };
        let id = envelope.id.as_deref().map_or(offset, hash);
        let entry = CountedEntry {
            offset,
            at: envelope.timestamp.as_deref().and_then(timestamp::parse),
            terms: self.terms(bytes, number, envelope),
            branch: self.branch(&envelope.parent),
            id,
            has_child: false,
        };
        self.facts(bytes, number, envelope.kind);
        self.numbers.insert(id, number);
        self.counts.entries.push(entry);
    }

    /// The branch of the next entry. A first child is in the branch of its parent.
    fn branch(&mut self, parent: &Parent<'_>) -> u32 {
        let above = match parent {
            Parent::Id(id) => self.numbers.get(&hash(id)),
            _ => None,
        };
        let above = above.and_then(|number| self.counts.entries.get_mut(*number as usize));
        match above.filter(|above| !above.has_child) {
            Some(above) => {
                above.has_child = true;
                above.branch
            }
            None => {
                self.counts.branches += 1;
                self.counts.branches - 1
            }
        }
    }

    /// Counts the terms in the text of an entry; returns their number.
    fn terms(&mut self, bytes: &[u8], number: u32, envelope: &Envelope<'_>) -> u32 {
        let (kind, role, mut terms) = (envelope.kind, role_of(envelope), 0_u32);
        let Self {
            counts,
            tokenizer,
            only,
            vocabulary_bytes,
            ..
        } = self;
        each_field_with_kind(bytes, kind, role, |field, raw| {
            let weight = field_weight(kind, field, role);
            tokenizer.each(&decoded(raw), |token| {
                terms = terms.saturating_add(u32::from(token.form != Form::Whole));
                if only.is_some_and(|only| !only.contains(&token.term)) {
                    return;
                }
                let weight = match token.form {
                    Form::Part => (weight / 2).max(1),
                    Form::Word | Form::Whole => weight,
                };
                add(
                    &mut counts.postings,
                    token.term,
                    number,
                    weight,
                    1 << field as u8,
                );
                if only.is_none()
                    && *vocabulary_bytes < VOCABULARY
                    && is_kept(token.letters, token.form)
                    && !counts.vocabulary.contains(token.letters)
                {
                    *vocabulary_bytes += token.letters.len();
                    counts.vocabulary.insert(token.letters.into());
                }
            });
            ControlFlow::Continue(())
        });
        terms
    }

    /// Adds the facts by which entries are filtered.
    fn facts(&mut self, bytes: &[u8], number: u32, kind: Kind) {
        let Self {
            counts,
            only,
            value_bytes,
            ..
        } = self;
        each_value(bytes, kind, |name, value| {
            let term = fact(name, value);
            if only.is_some_and(|only| !only.contains(&term)) {
                return;
            }
            // The value is known already if an entry before this one has it.
            if only.is_none()
                && !counts.postings.contains_key(&term)
                && let Some(word) = value_word(kind, name, value)
            {
                *value_bytes += word.len();
                let word = match *value_bytes > VALUES {
                    true => VALUES_LEFT_OUT,
                    false => &word,
                };
                counts.vocabulary.insert(word.into());
            }
            add(&mut counts.postings, term, number, 0, 0);
        });
    }
}

/// Whether a word is kept for `didYouMean`, and for questions with a word that is a part of it. A number at the end of
/// the word, as in `oauth2`, may have three digits. Hashes and ids are not kept. Words in scripts without case, such as
/// Chinese, are not kept: there, each pair of characters is a word. The other parts of an identifier are terms already.
fn is_kept(word: &str, form: Form) -> bool {
    let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
    let has_form = match word.len() - letters.len() {
        0 => form == Form::Word,
        1..=3 => form != Form::Whole,
        _ => false,
    };
    has_form && WORD.contains(&letters.chars().count()) && letters.chars().all(char::is_lowercase)
}

/// Passes the name of each filter of entries with each value that an entry has: its source, its types, its role and its
/// tools.
pub(super) fn each_value(bytes: &[u8], kind: Kind, mut see: impl FnMut(&str, &str)) {
    let mut see_member = |name: &str, path: &[&str]| {
        let value = json::get_path(bytes, path).and_then(json::string);
        if let Some(value) = value {
            see(name, &value);
        }
    };
    see_member("source", &["origin", "tool"]);
    see_member("type", &["type"]);
    see_member("type", &["customType"]);
    if kind == Kind::Message {
        see_member("role", &["message", "role"]);
        see_member("tool", &["message", "toolName"]);
        called_tools(bytes, |tool| {
            see("tool", tool);
            false
        });
    }
}

/// A value as it is kept among the words. `None` for a long value, for a value that a query cannot have, and for the
/// type of labels, which are not hits.
pub(super) fn value_word(kind: Kind, name: &str, value: &str) -> Option<String> {
    let is_bad = |c: char| c.is_control() || c == '"';
    let is_good = (1..=MOST_VALUE).contains(&value.len()) && !value.contains(is_bad);
    (is_good && kind != Kind::Label).then(|| format!("{name}:{}", value.to_ascii_lowercase()))
}

/// The directory of a session, as [`Counts`] has it.
pub(super) fn directory(file: &File, size: u64) -> io::Result<Option<String>> {
    let mut lines = Lines::in_chunks(file, 0, FIRST);
    let first = lines.next()?;
    let first = first.filter(|line| line.terminated && line.len < size);
    let header = match first.and_then(|line| line.bytes).and_then(scanned) {
        Some(Line::Header(header)) => header.cwd,
        _ => None,
    };
    Ok(header.map(Cow::into_owned))
}

/// A line as it is counted; `None` if it is damaged.
pub(super) fn scanned(bytes: &[u8]) -> Option<Line<'_>> {
    match simdutf8::basic::from_utf8(bytes) {
        Ok(_) => scan::scan_line(bytes).ok(),
        Err(_) => None,
    }
}

/// The role of an entry's message.
pub(super) fn role_of(envelope: &Envelope<'_>) -> Role {
    match envelope.facts {
        Facts::Message { role, .. } => role,
        _ => Role::None,
    }
}

fn add(postings: &mut HashMap<Term, Vec<Posting>>, term: Term, entry: u32, weight: u8, fields: u8) {
    let all = postings.entry(term).or_default();
    match all.last_mut().filter(|last| last.entry == entry) {
        Some(last) => {
            last.weight = last.weight.saturating_add(weight);
            last.fields |= fields;
        }
        None => all.push(Posting {
            entry,
            weight,
            fields,
        }),
    }
}

fn hash(id: &str) -> u64 {
    xxhash_rust::xxh3::xxh3_64(id.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use treelined_core::search::ask::Tokenizer;

    fn term(word: &str) -> Term {
        let mut term = None;
        Tokenizer::default().each(word, |token| term = Some(token.term));
        term.unwrap()
    }

    fn counted(text: &str, before: Counts) -> Counts {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let counter = Counter::new(None, before.clone());
        let span = before.end..text.len() as u64;
        counter.read(&file, span, &Cancel::new()).unwrap()
    }

    fn entry(id: &str, above: &str) -> String {
        format!(
            "{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":\"{above}\",\"message\":{{\"role\":\"user\",\"content\":\"cache\"}}}}\n"
        )
    }

    /// A move once counted as an entry below the new leaf, so that the step after it began a new branch.
    #[test]
    fn leaf_records_begin_no_branch() {
        let record = |id: &str, kind: &str, above: &str| {
            format!(
                "{{\"type\":\"custom\",\"customType\":\"{kind}\",\"id\":\"{id}\",\"parentId\":\"{above}\",\"data\":{{}}}}\n"
            )
        };
        let first = format!(
            "{}{}{}",
            entry("a", ""),
            entry("b", "a"),
            record("r", "treelined.leaf", "b")
        );
        let text = format!(
            "{first}{}{}{}{}",
            entry("c", "b"),
            record("q", "treelined.archived", "c"),
            // A program that does not know records appends below a record.
            entry("d", "q"),
            entry("e", "r"),
        );
        let whole = counted(&text, Counts::default());
        let branches: Vec<u32> = whole.entries.iter().map(|entry| entry.branch).collect();
        assert_eq!(branches, [0, 0, 0, 0, 1]);
        assert!(whole.has_archive && whole.postings.contains_key(&term("cache")));
        // The counts are the same if the lines after the record are read later.
        let before = counted(&first, Counts::default());
        assert!(!before.has_archive);
        assert_eq!(counted(&text, before), whole);
    }
}
