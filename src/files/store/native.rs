//! Where a session comes from: the conversations of other tools from which an import made it, or the agent whose
//! session was recorded in it.

use crate::log::body::Bodies;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use treelined_core::bytes::part;
use treelined_core::entry::Kind;
use treelined_core::error::Result;
use treelined_core::json::{self, Elements};
use treelined_core::tags::Sorting;
use treelined_core::tree::Tree;

/// The most ids of other tools in a row.
const MOST_NATIVE_IDS: usize = 64;
/// The most continuations of a session in its row (session-file.md §4.6), and the most recordings of agents' sessions
/// (session-file.md §5.8). The last ones are kept. Each has at most three texts of `MOST_RECORDED_BYTES`.
const MOST_KEPT: usize = 4096;
/// The custom type of the entry with which a recording begins.
const RECORD_TYPE: &str = "acp.session";
/// The longest id from an agent, and the longest name of a tool, in bytes.
const MOST_RECORDED_BYTES: usize = 256;

/// The conversations of another tool from which a session was made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportSource {
    /// The name of the tool that the session was imported from, as in `import`. `None` if no import made the session,
    /// and an agent continued in it.
    pub tool: Option<String>,
    /// The ids that the tool gave to these conversations, the main one first.
    pub native_ids: Vec<String>,
}

impl ImportSource {
    /// Adds the import that a leaf record describes; other leaf records are ignored. If the session `has_continued`
    /// before its first import, this import has not made the session. It has only added the answer of an agent.
    fn take(source: &mut Option<Self>, record: &[u8], has_continued: bool) {
        let Some(import) = json::get_path(record, &["data", "import"]) else {
            return;
        };
        let text = |path: &[&str]| json::get_path(import, path).and_then(json::string);
        let Some(tool) = text(&["report", "session", "tool"]) else {
            return;
        };
        let source = source.get_or_insert_with(|| Self {
            tool: (!has_continued).then(|| tool.into_owned()),
            ..Self::default()
        });
        for id in text(&["report", "session", "nativeId"])
            .into_iter()
            .chain(strings_of(import, "natives"))
        {
            let is_known = source.native_ids.iter().any(|known| *known == *id);
            if !is_known && source.native_ids.len() < MOST_NATIVE_IDS {
                source.native_ids.push(id.into_owned());
            }
        }
    }
}

/// A conversation of another tool to which a path of a session was handed over (session-file.md §4.6).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ContinuedIn {
    pub tool: String,
    /// The id that the conversation gets; `None` if the tool chooses the id.
    pub native_id: Option<String>,
    /// The last entry of the path that was handed over.
    pub entry_id: String,
}

/// An agent's session that was recorded in a session (session-file.md §5.8).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The id that the agent gave to its session.
    pub native_id: String,
    /// The entry with which the recording begins.
    pub entry_id: String,
}

/// The values that were set last, by their keys. At most `MOST_KEPT` are kept.
#[derive(Debug)]
struct Last<T> {
    /// The values, in the order in which they were set.
    values: BTreeMap<u64, (String, T)>,
    places: HashMap<String, u64>,
    next: u64,
}

impl<T> Default for Last<T> {
    fn default() -> Self {
        Self {
            values: BTreeMap::new(),
            places: HashMap::new(),
            next: 0,
        }
    }
}

impl<T> Last<T> {
    fn set(&mut self, key: String, value: T) {
        if let Some(earlier) = self.places.insert(key.clone(), self.next) {
            self.values.remove(&earlier);
        }
        self.values.insert(self.next, (key, value));
        self.next += 1;
        if self.values.len() > MOST_KEPT
            && let Some((_, (oldest, _))) = self.values.pop_first()
        {
            self.places.remove(&oldest);
        }
    }

    fn into_values(self) -> impl Iterator<Item = T> {
        self.values.into_values().map(|(_, value)| value)
    }
}

/// The continuations of a session by their ids, in file order.
#[derive(Debug, Default)]
struct Continuations(Last<ContinuedIn>);

impl Continuations {
    /// Adds the continuation that a leaf record describes. Ignores other leaf records, and records with a name or an id
    /// that is too long.
    fn take(&mut self, record: &[u8]) {
        let Some(record) = json::get_path(record, &["data", "continuation"]) else {
            return;
        };
        let text = |name: &str| json::get(record, name).and_then(json::string);
        let short = |name: &str| {
            let text = text(name).filter(|text| text.len() <= MOST_RECORDED_BYTES);
            text.map(Cow::into_owned)
        };
        let (Some(id), Some(tool), Some(entry_id)) = (short("id"), short("tool"), short("entryId"))
        else {
            return;
        };
        let native_id = short("nativeId");
        if native_id.is_none() && text("nativeId").is_some() {
            return;
        }
        let continued = ContinuedIn {
            tool,
            native_id,
            entry_id,
        };
        self.0.set(id, continued);
    }

    /// The continuations without repetitions.
    fn distinct(self) -> Vec<ContinuedIn> {
        let mut seen = HashSet::new();
        let distinct = self
            .0
            .into_values()
            .filter(|continued| seen.insert(continued.clone()));
        distinct.collect()
    }
}

/// The strings in the array that is the member `name` of an object.
fn strings_of<'a>(object: &'a [u8], name: &str) -> Vec<Cow<'a, str>> {
    let array = json::get(object, name).unwrap_or_default();
    let Ok(mut elements) = Elements::open(array, 0) else {
        return Vec::new();
    };
    let spans = std::iter::from_fn(|| elements.next_value().ok()?);
    spans
        .filter_map(|span| json::string(part(array, span)))
        .collect()
}

/// The tags of a session and its place in git, from its records.
pub fn sorting_of(tree: &Tree, bodies: &Bodies) -> Result<Sorting> {
    Ok(Elsewhere::of(tree, bodies)?.sorting)
}

/// The import, the continuations, the tags and the place in git of a session, from its records.
#[derive(Debug, Default)]
pub(super) struct Elsewhere {
    pub(super) source: Option<ImportSource>,
    pub(super) sorting: Sorting,
    continued: Continuations,
}

impl Elsewhere {
    pub(super) fn of(tree: &Tree, bodies: &Bodies) -> Result<Self> {
        let mut reader = bodies.reader();
        let mut found = Self::default();
        let nodes = (0..tree.node_count()).filter_map(|number| tree.node(number));
        for node in nodes.filter(|node| tree.kind(*node) == Kind::LeafRecord) {
            found.take(&reader.entry(&bodies.fetch(tree, node)?)?);
        }
        Ok(found)
    }

    pub(super) fn take(&mut self, record: &[u8]) {
        ImportSource::take(
            &mut self.source,
            record,
            !self.continued.0.values.is_empty(),
        );
        self.sorting.take(record);
        self.continued.take(record);
    }

    pub(super) fn continued(self) -> Vec<ContinuedIn> {
        self.continued.distinct()
    }
}

/// The recordings of agents' sessions in a session, from its `custom` entries.
#[derive(Debug, Default)]
pub(super) struct Records(Last<Recorded>);

impl Records {
    pub(super) fn of(tree: &Tree, bodies: &Bodies, session_id: &str) -> Result<Self> {
        let mut reader = bodies.reader();
        let mut found = Self::default();
        for node in tree
            .entries()
            .filter(|node| tree.kind(*node) == Kind::Custom)
        {
            found.take(&reader.entry(&bodies.fetch(tree, node)?)?, session_id);
        }
        Ok(found)
    }

    pub(super) fn take(&mut self, entry: &[u8], session_id: &str) {
        let Some(new) = recorded_by(entry, session_id) else {
            return;
        };
        self.0.set(new.native_id.clone(), new);
    }

    pub(super) fn finish(self) -> Vec<Recorded> {
        self.0.into_values().collect()
    }
}

/// The recording that a `custom` entry of a session begins. `None` for other entries, and for an entry that was copied
/// from another session.
pub fn recorded_by(entry: &[u8], session_id: &str) -> Option<Recorded> {
    let text = |path: &[&str]| json::get_path(entry, path).and_then(json::string);
    text(&["customType"]).filter(|custom| custom == RECORD_TYPE)?;
    let short = |path: &[&str]| {
        let text = text(path)?;
        let is_short = !text.is_empty() && text.len() <= MOST_RECORDED_BYTES;
        is_short.then(|| text.into_owned())
    };
    // Older recorders do not write the session's id.
    if text(&["data", "in"]).is_some_and(|its| its != session_id) {
        return None;
    }
    Some(Recorded {
        native_id: short(&["data", "sessionId"])?,
        entry_id: short(&["id"])?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn continued(records: &[Value]) -> Vec<(String, Option<String>)> {
        let mut found = Elsewhere::default();
        for record in records {
            let mut record = record.clone();
            record["entryId"] = json!("e");
            let line = json!({ "data": { "cause": "continue", "continuation": record } });
            found.take(line.to_string().as_bytes());
        }
        let continued = found.continued().into_iter();
        continued.map(|it| (it.tool, it.native_id)).collect()
    }

    /// If an id was added to a continuation, the row once kept both records. The record without an id made the session
    /// a candidate for every conversation of the tool.
    #[test]
    fn a_later_record_of_a_continuation_replaces_the_earlier_one() {
        let records = [
            json!({ "id": "1", "tool": "goose" }),
            json!({ "id": "2", "tool": "goose" }),
            json!({ "id": "1", "tool": "goose", "nativeId": "n" }),
        ];
        let named = ("goose".to_owned(), Some("n".to_owned()));
        let unnamed = ("goose".to_owned(), None);
        assert_eq!(continued(&records), [unnamed, named.clone()]);
        let both = [
            &records[..],
            &[json!({ "id": "2", "tool": "goose", "nativeId": "n" })],
        ];
        assert_eq!(continued(&both.concat()), [named]);
    }

    /// A native id that was too long once counted as absent, so the session was a candidate for every conversation of
    /// the tool. The length of the name of a tool was not limited.
    #[test]
    fn a_record_with_too_long_a_text_says_nothing() {
        let long = "x".repeat(MOST_RECORDED_BYTES + 1);
        let records = [
            json!({ "id": "1", "tool": "codex", "nativeId": long }),
            json!({ "id": "2", "tool": long }),
            json!({ "id": long, "tool": "codex" }),
        ];
        assert_eq!(continued(&records), []);
    }

    #[test]
    fn a_row_knows_the_last_continuations() {
        let records: Vec<Value> = (0..MOST_KEPT + 2)
            .map(|at| json!({ "id": at.to_string(), "tool": "pi", "nativeId": at.to_string() }))
            .collect();
        let known = continued(&records);
        let first = known.first().and_then(|(_, native)| native.clone());
        assert_eq!((known.len(), first.as_deref()), (MOST_KEPT, Some("2")));
    }

    /// A copy of a recorded session once counted as the recording of the conversation.
    #[test]
    fn a_record_says_nothing_in_a_copy_or_with_a_long_id() {
        let recorded = |data: Value| {
            let entry =
                json!({ "type": "custom", "id": "e", "customType": RECORD_TYPE, "data": data });
            recorded_by(entry.to_string().as_bytes(), "s").map(|found| found.native_id)
        };
        let named = Some("n".to_owned());
        assert_eq!(recorded(json!({ "sessionId": "n", "in": "s" })), named);
        assert_eq!(recorded(json!({ "sessionId": "n" })), named);
        assert_eq!(recorded(json!({ "sessionId": "n", "in": "t" })), None);
        let long = "x".repeat(MOST_RECORDED_BYTES + 1);
        assert_eq!(recorded(json!({ "sessionId": long, "in": "s" })), None);
        assert_eq!(recorded(json!({ "sessionId": "", "in": "s" })), None);
    }

    /// A row once had 64 records only. After 200 moves in an editor, an import did not find the records of the first
    /// agents' sessions, and made new sessions of them.
    #[test]
    fn a_row_knows_the_last_records() {
        let mut records = Records::default();
        for at in (0..MOST_KEPT + 2).chain([5]) {
            let entry = json!({ "id": format!("e{at}"), "customType": RECORD_TYPE,
                "data": { "sessionId": at.to_string() } });
            records.take(entry.to_string().as_bytes(), "s");
        }
        let known = records.finish();
        let ids = known.iter().map(|known| known.native_id.as_str());
        let ids: Vec<&str> = ids.collect();
        assert_eq!(
            (ids.len(), ids.first(), ids.last()),
            (MOST_KEPT, Some(&"2"), Some(&"5"))
        );
    }
}
