//! Writes new sessions, each into its own file. A file gets its name once it is complete.

use super::git::InGit;
use super::line::{Contents, LineLinks, LineMaker, push_text};
use super::new_file::NewFile;
use crate::family::forest::{EntryContent, SessionTree, SpawnPoint, TreeEntry};
use crate::ids::NodeId;
use crate::importer::report::{ImportedFile, ImportedSession};
use crate::member::Member;
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use treelined_core::entry::{GIT, LEAF_RECORD};
use treelined_core::error::{Error, Result};
use treelined_core::timestamp::{self, Millis};
use treelined_core::{json, name};
use treelined_files::cancel::Cancel;
use treelined_files::log::header::Header;
pub(crate) use treelined_files::os::file::{Folder, Location};
use treelined_files::store::Store;

/// A session to write, with its part of the report.
pub(super) struct SessionWork<'a> {
    pub(super) tree: &'a SessionTree,
    pub(super) maker: &'a LineMaker<'a>,
    /// The row of the session in the report.
    pub(super) row: ImportedSession,
    /// The reports of the files that have its conversations.
    pub(super) files: &'a [&'a ImportedFile],
    pub(super) git: InGit,
    /// The time of the import.
    pub(super) now: Millis,
    pub(super) cancel: &'a Cancel,
}

impl SessionWork<'_> {
    /// The header of the session file. Its time is the time at which the conversation began.
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

    /// Writes the file of a new session. The file gets its name once it is complete. The name becomes durable when the
    /// returned folder is synced. An older file of the session is moved to the trash just before.
    pub(super) fn create(
        mut self,
        store: &Store,
        contents: &mut dyn Contents,
        old: Option<&Location>,
    ) -> Result<(ImportedSession, Arc<Folder>)> {
        let header = self.header();
        let at = store.place(&header)?;
        self.row.path = at.path().display().to_string();
        self.count_new();
        let entries = &self.tree.entries;
        let mut file = NewFile::begin(at)?;
        let line = with_spawner(header.to_line(), self.tree.spawned_by.as_ref());
        file.line(|out| out.extend_from_slice(&line))?;
        for entry in entries {
            self.check()?;
            let parent = entry.parent.and_then(|parent| entries.get(parent));
            let parent = parent.map(|parent| parent.id.to_string());
            let body = self.maker.body(contents, entry)?;
            let links = LineLinks {
                id: entry.id,
                parent: parent.as_deref(),
                copied_from: entry.copied_from.as_ref().map(|_| entry.id),
                first_kept: first_kept(entry).map(|kept| kept.to_string()),
            };
            file.line(|out| self.maker.line(out, entry, &body, &links))?;
        }
        for line in self.last_lines() {
            file.line(|out| out.extend_from_slice(&line))?;
        }
        self.check()?;
        if let Some(old) = old {
            store.trash(old)?;
        }
        let at = file.finish()?;
        Ok((self.row, at.folder))
    }

    /// The lines that follow the entries of a new session: labels, the name and the leaf record.
    fn last_lines(&self) -> Vec<Vec<u8>> {
        let entries = &self.tree.entries;
        let mut lines = Vec::new();
        for label in &self.tree.labels {
            let entry = entries.get(label.entry);
            let line = entry.and_then(|entry| {
                let text = self.maker.redaction.text(&label.text);
                label_line(label.id, &entry.id.to_string(), &text, entry.time)
            });
            lines.extend(line);
        }
        let leaf = self.tree.leaf.and_then(|leaf| entries.get(leaf));
        let leaf_id = leaf.map(|leaf| leaf.id.to_string());
        let last = entries.last().map(|last| last.id.to_string());
        if let (Some(name), Some(leaf)) = (&self.row.name, leaf) {
            lines.push(self.name_line(name, leaf_id.as_deref(), leaf.time, entries.len()));
        }
        let git_before = InGit::default();
        lines.extend(self.git_record(&git_before, leaf_id.as_deref(), entries.len()));
        lines.push(self.leaf_record(&MovedLeaf {
            from: last.as_deref(),
            to: leaf_id.as_deref(),
            source: leaf_id.as_deref(),
            entries: entries.len(),
            git_before: &git_before,
        }));
        lines
    }

    /// Counts the entries and branches of a new session before it is written.
    pub(super) fn count_new(&mut self) {
        let entries = &self.tree.entries;
        // For each entry, the nearest step at or above it. Bookkeeping does not make branches, so only steps count.
        let mut steps: Vec<Option<usize>> = Vec::with_capacity(entries.len());
        let mut has_steps_below = vec![false; entries.len()];
        let mut tips = 0;
        for (at, entry) in entries.iter().enumerate() {
            let above = entry.parent.and_then(|parent| *steps.get(parent)?);
            let is_step = self.maker.is_step(entry);
            if is_step {
                tips += 1;
                if let Some(slot) = above.and_then(|above| has_steps_below.get_mut(above)) {
                    tips -= usize::from(!std::mem::replace(slot, true));
                }
            }
            steps.push(if is_step { Some(at) } else { above });
        }
        let labels = self.tree.labels.iter();
        let labels = labels.filter(|label| name::given(&label.text).is_some());
        let has_name = self.row.name.is_some() && self.tree.leaf.is_some();
        self.row.created = true;
        self.row.entries_added = (entries.len() + labels.count()) as u64 + u64::from(has_name);
        self.row.branches = (tips as u64).saturating_sub(1);
        // The first branch is never counted. So it is not counted as recovered either, even if the tool does not show
        // it.
        self.row.recovered = self.row.recovered.min(self.row.branches);
    }

    /// The entry that names the session. `entries` is a part of its id, so that names of different times have
    /// different ids.
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

    /// The record of the session's position in git; `None` if it is not new.
    pub(super) fn git_record(
        &self,
        before: &InGit,
        at: Option<&str>,
        entries: usize,
    ) -> Option<Vec<u8>> {
        let place = self.git.news(before)?;
        let key = format!("git/{entries}/{}", self.now);
        let id = NodeId::of(self.maker.tool, &self.tree.native_id, &key);
        let mut line = self.record_start(GIT, id, at);
        line.extend_from_slice(&place.data());
        line.push(b'}');
        Some(line)
    }

    /// The beginning of a record, up to its data. Its time is the time of the import.
    fn record_start(&self, custom_type: &str, id: NodeId, at: Option<&str>) -> Vec<u8> {
        let mut line = b"{\"type\":\"custom\"".to_vec();
        push_text(&mut line, "customType", custom_type);
        push_text(&mut line, "id", &id.to_string());
        line.extend_from_slice(b",\"parentId\":");
        line.extend_from_slice(&json::quoted_or_null(at));
        line.extend_from_slice(b",\"timestamp\":\"");
        timestamp::push(&mut line, self.now);
        line.extend_from_slice(b"\",\"data\":");
        line
    }

    /// The leaf record of this import (session-file.md §4). Every import of a session ends with one.
    pub(super) fn leaf_record(&self, moved: &MovedLeaf<'_>) -> Vec<u8> {
        let key = format!("leaf/{}/{}", moved.entries, self.now);
        let id = NodeId::of(self.maker.tool, &self.tree.native_id, &key);
        let mut line = self.record_start(LEAF_RECORD, id, moved.to);
        let natives = natives(self.tree, self.maker.members);
        let mut import = json!({
            "report": { "session": &self.row, "files": &self.files },
            "sourceLeaf": moved.source,
            "natives": natives,
        });
        let adopted = &self.tree.adopted.new;
        if let Some(import) = import.as_object_mut().filter(|_| !adopted.is_empty()) {
            import.insert("adopted".to_owned(), json!(adopted));
        }
        let git = self.git.to_json(moved.git_before);
        if let (Some(git), Some(import)) = (git, import.as_object_mut()) {
            import.insert("git".to_owned(), git);
        }
        let data = json!({ "from": moved.from, "cause": "import", "import": import });
        line.extend_from_slice(data.to_string().as_bytes());
        line.push(b'}');
        line
    }
}

/// The native sessions of a session. If several native sessions share an entry, the first of them owns it.
pub(super) fn natives(tree: &SessionTree, members: &[Member]) -> Vec<String> {
    let mut seen = HashSet::new();
    let members = tree.members.iter().filter_map(|at| members.get(*at));
    let natives = members.map(|member| &member.native_id);
    natives
        .filter(|native| seen.insert(*native))
        .cloned()
        .collect()
}

/// The leaf of a session before and after an import.
pub(super) struct MovedLeaf<'a> {
    pub(super) from: Option<&'a str>,
    pub(super) to: Option<&'a str>,
    /// The entry at which the tool continues.
    pub(super) source: Option<&'a str>,
    /// The number of entries. It makes the ids of leaf records differ.
    pub(super) entries: usize,
    /// The positions in git that the leaf record of the last import has.
    pub(super) git_before: &'a InGit,
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

/// The entry that labels a fork, below the labelled entry `target`; `None` if the text is blank.
pub(super) fn label_line(id: NodeId, target: &str, text: &str, at: Millis) -> Option<Vec<u8>> {
    let text = name::given(text)?;
    let mut line = line_start("label", id, Some(target), at);
    push_text(&mut line, "targetId", target);
    push_text(&mut line, "label", &text);
    line.push(b'}');
    Some(line)
}

/// The line of the header, with the call that spawned the session added.
fn with_spawner(line: Vec<u8>, spawned_by: Option<&SpawnPoint>) -> Vec<u8> {
    let Some(spawn) = spawned_by else {
        return line;
    };
    let mut spawner = Map::new();
    spawner.insert("sessionId".to_owned(), json!(spawn.session_id));
    if let Some(entry) = spawn.entry {
        spawner.insert("entryId".to_owned(), json!(entry.to_string()));
    }
    if let Some(call) = &spawn.tool_call_id {
        spawner.insert("toolCallId".to_owned(), json!(call));
    }
    let spawner = Value::Object(spawner).to_string();
    json::with_member(&line, "spawnedBy", spawner.as_bytes())
}
