//! Where a session comes from: the conversations of other tools of which an import made it, or the agent whose session a
//! recorder wrote.

use crate::log::body::Bodies;
use std::borrow::Cow;
use treelined_core::bytes::part;
use treelined_core::entry::Kind;
use treelined_core::error::Result;
use treelined_core::json::{self, Elements};
use treelined_core::tree::Tree;

/// The most native ids of a row.
const MOST_NATIVE_IDS: usize = 64;
/// The most continuations of a row, the last ones.
const MOST_CONTINUED: usize = 256;
/// The first entries, one of which says that the session is a record of an agent's.
pub(super) const RECORD_ENTRIES: usize = 4;
/// The custom type of that entry.
const RECORD_TYPE: &str = "acp.session";
/// The longest id that an agent gave, in bytes.
const MOST_RECORDED_BYTES: usize = 256;

/// The conversations of another tool of which a session was made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportSource {
    /// The name of the tool, as `import` has it.
    pub tool: String,
    /// The ids that the tool gave them, the main one first.
    pub native_ids: Vec<String>,
}

impl ImportSource {
    /// Adds what a leaf record says about an import. Other leaf records say nothing.
    fn take(source: &mut Option<Self>, record: &[u8]) {
        let Some(import) = json::get_path(record, &["data", "import"]) else {
            return;
        };
        let text = |path: &[&str]| json::get_path(import, path).and_then(json::string);
        let Some(tool) = text(&["report", "session", "tool"]) else {
            return;
        };
        let source = source.get_or_insert_with(|| Self {
            tool: tool.into_owned(),
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContinuedIn {
    pub tool: String,
    /// `None` if the tool gives its own id.
    pub native_id: Option<String>,
}

impl ContinuedIn {
    /// Adds what a leaf record says about a continuation. Other leaf records say nothing.
    fn take(continued: &mut Vec<Self>, record: &[u8]) {
        let Some(record) = json::get_path(record, &["data", "continuation"]) else {
            return;
        };
        let text = |name: &str| Some(json::string(json::get(record, name)?)?.into_owned());
        let Some(tool) = text("tool") else {
            return;
        };
        let native_id = text("nativeId").filter(|id| id.len() <= MOST_RECORDED_BYTES);
        let continuation = Self { tool, native_id };
        if !continued.contains(&continuation) {
            if continued.len() == MOST_CONTINUED {
                continued.remove(0);
            }
            continued.push(continuation);
        }
    }
}

/// The strings of an array that is a member of an object.
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

/// The origin of a session and its continuations, from its leaf records.
#[derive(Debug, Default)]
pub(super) struct Elsewhere {
    pub(super) source: Option<ImportSource>,
    pub(super) continued: Vec<ContinuedIn>,
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
        ImportSource::take(&mut self.source, record);
        ContinuedIn::take(&mut self.continued, record);
    }
}

pub(super) fn recorded(tree: &Tree, bodies: &Bodies) -> Result<Option<String>> {
    let first = tree.entries().take(RECORD_ENTRIES);
    for node in first.filter(|node| tree.kind(*node) == Kind::Custom) {
        let id = recorded_by(&bodies.entry(&bodies.fetch(tree, node)?)?);
        if id.is_some() {
            return Ok(id);
        }
    }
    Ok(None)
}

/// The agent's own id of its session in a `custom` entry of a recorder.
pub(super) fn recorded_by(entry: &[u8]) -> Option<String> {
    let text = |path: &[&str]| json::get_path(entry, path).and_then(json::string);
    text(&["customType"]).filter(|custom| custom == RECORD_TYPE)?;
    let id = text(&["data", "sessionId"])?;
    let is_short = !id.is_empty() && id.len() <= MOST_RECORDED_BYTES;
    is_short.then(|| id.into_owned())
}
