//! The sessions of subagents, which are nested in trajectories. The header of such a session names the session that
//! spawned it (session-file.md §1.2).

use super::super::content::ContentSource;
use super::super::request::Part;
use super::budget::too_large;
use super::reading::DataReader;
use super::steps::Steps;
use crate::export::tally::RedactionTally;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use treelined_core::error::Result;
use treelined_core::tree::Node;
use treelined_files::cancel::Cancel;
use treelined_files::log::Log;
use treelined_files::os::file::Location;
use treelined_files::store::catalogue::CatalogueRow;

/// The most levels of subagents within subagents. The levels are limited because headers are untrusted and each level
/// is a recursive call.
const DEEPEST: usize = 64;

/// The session of a subagent.
#[derive(Debug, Clone)]
pub(super) struct Subagent {
    pub session_id: String,
    path: PathBuf,
}

/// The subagents of one session, the oldest first.
#[derive(Default)]
struct Spawned {
    by_call: HashMap<String, Vec<Subagent>>,
    /// The subagents that name an entry, by this entry. Subagents that also name a call are included, since the call
    /// may be missing or on another branch.
    by_entry: HashMap<String, Vec<Subagent>>,
    /// Subagents that name neither a call nor an entry.
    loose: Vec<Subagent>,
}

/// The subagents of all sessions.
#[derive(Default)]
pub(super) struct Subagents(HashMap<String, Spawned>);

impl Subagents {
    pub(super) fn of<'r>(rows: impl Iterator<Item = &'r CatalogueRow>) -> Self {
        let mut rows: Vec<_> = rows.map(|row| &row.listing).collect();
        rows.sort_by(|a, b| (a.created, &a.path).cmp(&(b.created, &b.path)));
        let mut all = Self::default();
        for row in rows {
            let Some(header) = &row.header else { continue };
            let Some(by) = &header.spawned_by else {
                continue;
            };
            let subagent = Subagent {
                session_id: header.id.clone(),
                path: row.path.clone(),
            };
            let spawned = all.0.entry(by.session_id.clone()).or_default();
            if let Some(call) = &by.tool_call_id {
                let of_call = spawned.by_call.entry(call.clone()).or_default();
                of_call.push(subagent.clone());
            }
            match (&by.entry_id, &by.tool_call_id) {
                (Some(entry), _) => {
                    let of_entry = spawned.by_entry.entry(entry.clone()).or_default();
                    of_entry.push(subagent);
                }
                (None, None) => spawned.loose.push(subagent),
                (None, Some(_)) => {}
            }
        }
        all
    }

    fn found(&self, session_id: &str, at: At<'_>) -> &[Subagent] {
        let found = self.0.get(session_id).and_then(|spawned| match at {
            At::Call(id) => spawned.by_call.get(id),
            At::Entry(id) => spawned.by_entry.get(id),
            At::Nowhere => Some(&spawned.loose),
        });
        found.map_or(&[], Vec::as_slice)
    }
}

/// The position at which a session spawned a subagent, as the header of the subagent names it.
#[derive(Clone, Copy)]
pub(super) enum At<'i> {
    Call(&'i str),
    Entry(&'i str),
    Nowhere,
}

/// The subagents that are nested in one line.
pub(super) struct Nesting<'s> {
    all: &'s Subagents,
    content: &'s ContentSource,
    cancel: &'s Cancel,
    /// The sessions that are in the line already.
    seen: HashSet<String>,
    depth: usize,
    /// The number of bytes that the export has read and will read. This must not exceed `limit`.
    bytes: u64,
    limit: u64,
    pub tally: RedactionTally,
}

impl<'s> Nesting<'s> {
    /// `bytes` is the number of bytes of the paths of the session itself.
    pub(super) fn new(
        all: &'s Subagents,
        content: &'s ContentSource,
        cancel: &'s Cancel,
        bytes: u64,
        limit: u64,
    ) -> Self {
        Self {
            all,
            content,
            cancel,
            seen: HashSet::new(),
            depth: 0,
            bytes,
            limit,
            tally: RedactionTally::default(),
        }
    }

    /// Begins the line of another session.
    pub(super) fn begin(&mut self, session_id: &str) {
        self.seen.clear();
        self.seen.insert(session_id.to_owned());
    }

    /// The subagents at this position that have a message and are not yet in the line.
    pub(super) fn take(&mut self, session_id: &str, at: At<'_>) -> Result<Vec<Subagent>> {
        let mut taken = Vec::new();
        for subagent in self.all.found(session_id, at) {
            if self.depth >= DEEPEST || !self.seen.insert(subagent.session_id.clone()) {
                continue;
            }
            let opened = self.open(subagent)?;
            let Some(end) = opened.end else { continue };
            let mut reader = DataReader::new(&opened.steps, &opened.content, self.cancel);
            if !reader.says_anything(end)? {
                continue;
            }
            self.bytes += opened.steps.get(end).map_or(0, |step| step.path_bytes);
            if self.bytes > self.limit {
                let lines = "the branches with their subagents";
                return Err(too_large(lines, self.bytes, self.limit));
            }
            taken.push(subagent.clone());
        }
        Ok(taken)
    }

    /// Calls `write` for a subagent, with a reader of its session and the end of its path.
    pub(super) fn nest<T>(
        &mut self,
        subagent: &Subagent,
        write: impl FnOnce(&mut Self, &mut DataReader<'_>, Node) -> Result<T>,
    ) -> Result<Option<T>> {
        let opened = self.open(subagent)?;
        let Some(end) = opened.end else {
            return Ok(None);
        };
        let mut reader = DataReader::new(&opened.steps, &opened.content, self.cancel);
        self.depth += 1;
        let written = write(self, &mut reader, end);
        self.depth -= 1;
        self.tally.append(reader.into_tally());
        written.map(Some)
    }

    fn open(&self, subagent: &Subagent) -> Result<Opened> {
        let opened = Log::open_unless(Location::of_path(&subagent.path)?, self.cancel)?;
        let bodies = opened.log.bodies();
        let part = Part::Branch(opened.tree.leaf());
        let steps = Steps::take(&opened.tree, &bodies, part)?;
        let end = steps.in_order().next_back().map(|step| step.node);
        Ok(Opened {
            content: self.content.beside(bodies),
            steps,
            end,
        })
    }
}

/// The path to the leaf of a subagent's session.
struct Opened {
    steps: Steps,
    content: ContentSource,
    end: Option<Node>,
}
