//! New sessions: written beside, and named when they are whole.

use super::line::{Contents, LineLinks, LineMaker, push_text};
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::import::family::{EntryContent, SessionTree, SpawnPoint, TreeEntry};
use crate::import::ids::NodeId;
use crate::import::member::Member;
use crate::json;
use crate::log::copy::LogWriter;
use crate::log::header::Header;
use crate::name;
use crate::store::Store;
use crate::timestamp::{self, Millis};
use crate::tree::Tree;
use crate::wire::{ImportedFile, ImportedSession};
use serde_json::json;
use std::collections::HashSet;

/// Lengths of the hexadecimal ids of imported entries.
const ID_BYTES: usize = 16;

/// A session to be written, with its share of the import's report.
pub(super) struct SessionWork<'a> {
    pub(super) tree: &'a SessionTree,
    pub(super) maker: &'a LineMaker<'a>,
    /// What is known of it before it is written.
    pub(super) row: ImportedSession,
    /// The files of its members.
    pub(super) files: &'a [&'a ImportedFile],
    /// Time of the import.
    pub(super) now: Millis,
    pub(super) cancel: &'a Cancel,
}

impl SessionWork<'_> {
    /// The header of the session's file. Its time is that of the conversation.
    pub(super) fn header(&self) -> Header {
        let tree = self.tree;
        let first = tree.entries.first().map(|entry| entry.time);
        let started = tree.started.or(first).unwrap_or_default();
        let cwd = tree.cwd.as_deref().unwrap_or_default();
        Header::new(
            &tree.session_id,
            started,
            cwd,
            tree.parent_session.as_deref(),
        )
    }

    /// Fails if the import is cancelled.
    pub(super) fn check(&self) -> Result<()> {
        match self.cancel.is_cancelled() {
            true => Err(Error::cancelled()),
            false => Ok(()),
        }
    }

    /// Writes the file of a new session. Nothing is there before it is whole.
    pub(super) fn create(
        mut self,
        store: &Store,
        contents: &mut dyn Contents,
    ) -> Result<ImportedSession> {
        let header = self.header();
        let at = store.place(&header)?;
        self.row.path = at.path().display().to_string();
        self.count_new();
        let entries = &self.tree.entries;
        let tree = Tree::with_room(entries.len(), ID_BYTES * entries.len());
        let line = with_spawner(header.to_line(), self.tree.spawned_by.as_ref());
        let mut file = LogWriter::begin(at, line, tree)?;
        for entry in entries {
            self.check()?;
            let parent = entry.parent.and_then(|parent| entries.get(parent));
            let parent = parent.map(|parent| parent.id.to_string());
            let body = self.maker.body(contents, entry)?;
            let links = LineLinks {
                id: entry.id,
                parent: parent.as_deref(),
                copied_from: entry.copied_from.as_ref().map(|_| entry.id),
                first_kept: first_kept(entry),
            };
            file.line(&self.maker.line(entry, &body, &links))?;
        }
        for label in &self.tree.labels {
            if let Some(entry) = entries.get(label.entry)
                && let Some(line) = label_line(label.id, entry.id, &label.text, entry.time)
            {
                file.line(&line)?;
            }
        }
        let leaf = self.tree.leaf.and_then(|leaf| entries.get(leaf));
        let leaf_id = leaf.map(|leaf| leaf.id.to_string());
        let last = entries.last().map(|last| last.id.to_string());
        if let (Some(name), Some(leaf)) = (&self.row.name, leaf) {
            let line = self.name_line(name, leaf_id.as_deref(), leaf.time, entries.len());
            file.line(&line)?;
        }
        let record = self.leaf_record(&MovedLeaf {
            from: last.as_deref(),
            to: leaf_id.as_deref(),
            source: leaf_id.as_deref(),
            entries: entries.len(),
        });
        file.line(&record)?;
        self.check()?;
        file.finish(true)?;
        Ok(self.row)
    }

    /// Counts what a new session has, as it will be.
    pub(super) fn count_new(&mut self) {
        let entries = &self.tree.entries;
        let mut has_children = vec![false; entries.len()];
        for entry in entries {
            if let Some(slot) = entry.parent.and_then(|parent| has_children.get_mut(parent)) {
                *slot = true;
            }
        }
        let tips = has_children.iter().filter(|has| !**has).count();
        self.row.created = true;
        self.row.entries_added = entries.len() as u64;
        self.row.branches = (tips as u64).saturating_sub(1);
    }

    /// The entry that names the session. `entries` distinguishes names given at different times.
    pub(super) fn name_line(
        &self,
        name: &str,
        parent: Option<&str>,
        at: Millis,
        entries: usize,
    ) -> Vec<u8> {
        let key = format!("name/{entries}/{name}");
        let id = NodeId::of(self.maker.tool, &self.tree.native_id, &key);
        let mut line = line_start("session_info", id, parent, at);
        push_text(&mut line, "name", name);
        line.extend_from_slice(b",\"origin\":{\"tool\":");
        json::push_string(&mut line, self.maker.tool.name());
        line.extend_from_slice(b"}}");
        line
    }

    /// The leaf record with which each import of a session ends (session-file.md §4).
    pub(super) fn leaf_record(&self, moved: &MovedLeaf<'_>) -> Vec<u8> {
        let key = format!("leaf/{}/{}", moved.entries, self.now);
        let id = NodeId::of(self.maker.tool, &self.tree.native_id, &key);
        let mut line = b"{\"type\":\"custom\",\"customType\":\"treelined.leaf\"".to_vec();
        push_text(&mut line, "id", &id.to_string());
        line.extend_from_slice(b",\"parentId\":");
        line.extend_from_slice(&json::quoted_or_null(moved.to));
        line.extend_from_slice(b",\"timestamp\":\"");
        timestamp::push(&mut line, self.now);
        line.extend_from_slice(b"\",\"data\":");
        let natives = natives(self.tree, self.maker.members);
        let data = json!({
            "from": moved.from,
            "cause": "import",
            "import": {
                "report": { "session": &self.row, "files": &self.files },
                "sourceLeaf": moved.source,
                "natives": natives,
            },
        });
        line.extend_from_slice(data.to_string().as_bytes());
        line.push(b'}');
        line
    }
}

/// The native sessions of a session, in the order in which they own what they share.
pub(super) fn natives(tree: &SessionTree, members: &[Member]) -> Vec<String> {
    let mut seen = HashSet::new();
    let members = tree.members.iter().filter_map(|at| members.get(*at));
    let natives = members.map(|member| &member.native_id);
    natives
        .filter(|native| seen.insert(*native))
        .cloned()
        .collect()
}

/// The leaf before and after an import.
pub(super) struct MovedLeaf<'a> {
    pub(super) from: Option<&'a str>,
    pub(super) to: Option<&'a str>,
    /// Where the tool goes on.
    pub(super) source: Option<&'a str>,
    /// Entries of the session: distinguishes records.
    pub(super) entries: usize,
}

pub(super) fn first_kept(entry: &TreeEntry) -> Option<NodeId> {
    match &entry.content {
        EntryContent::Node { first_kept, .. } => *first_kept,
        EntryContent::Gap { .. } => None,
    }
}

fn line_start(kind: &str, id: NodeId, parent: Option<&str>, at: Millis) -> Vec<u8> {
    let mut line = b"{\"type\":".to_vec();
    json::push_string(&mut line, kind);
    push_text(&mut line, "id", &id.to_string());
    line.extend_from_slice(b",\"parentId\":");
    line.extend_from_slice(&json::quoted_or_null(parent));
    line.extend_from_slice(b",\"timestamp\":\"");
    timestamp::push(&mut line, at);
    line.push(b'"');
    line
}

/// The label of a fork, below the entry that it labels; `None` for a blank one.
pub(super) fn label_line(id: NodeId, target: NodeId, text: &str, at: Millis) -> Option<Vec<u8>> {
    let text = name::given(text)?;
    let target = target.to_string();
    let mut line = line_start("label", id, Some(&target), at);
    push_text(&mut line, "targetId", &target);
    push_text(&mut line, "label", &text);
    line.push(b'}');
    Some(line)
}

/// The header's line with the call that spawned the session.
fn with_spawner(line: Vec<u8>, spawned_by: Option<&SpawnPoint>) -> Vec<u8> {
    let Some(spawn) = spawned_by else {
        return line;
    };
    let value = json!({
        "sessionId": spawn.session_id,
        "entryId": spawn.entry.map(|entry| entry.to_string()),
        "toolCallId": spawn.tool_call_id,
    });
    json::with_member(&line, "spawnedBy", value.to_string().as_bytes())
}
