//! The content of a fork. It is prepared while the guard of the source is held, and copied without the guard
//! (session-file.md §5).
//!
//! `flow` decides which entries a fork has, and `log` writes its file.

use super::state::SessionState;
use crate::log::body::{Bodies, Fetch};
use crate::log::copy::{CHUNK, CopiedLine, FinishedLog, LogWriter};
use crate::log::header::Header;
use crate::log::{Log, OpenedLog};
use crate::os::file::Location;
use treelined_core::error::Result;
use treelined_core::flow::fork::{self, End, ForkPlan, OpenCall};
use treelined_core::id;
use treelined_core::tree::{FilePlace, Flags, Node, PlainFacts, Tree};

/// The lines of a fork.
pub struct ForkContent {
    plan: ForkPlan,
    bodies: Bodies,
    kept: Vec<KeptEntry>,
    /// The ids of the copied entries, one after the other, without separators.
    ids: String,
    /// How to read the entries that are not copied byte for byte, in order.
    others: Vec<Fetch>,
    /// The lines that the fork adds: error results for tool calls without results, and the name of the fork.
    results: Vec<Vec<u8>>,
    /// The id of the last entry before the labels.
    last_id: Option<String>,
    labels: Vec<(Fetch, String)>,
}

/// An entry that the fork copies.
struct KeptEntry {
    place: FilePlace,
    /// The end of the id of the entry in `ids`.
    id_end: usize,
    /// The facts of the copy for the tree, if the stored line is copied byte for byte.
    facts: Option<PlainFacts>,
}

/// The next lines of a fork.
enum ForkPart<'a> {
    /// Adjacent lines of the source, copied byte for byte.
    Run(&'a [CopiedLine<'a>]),
    Line(&'a [u8]),
}

impl ForkContent {
    /// Prepares a fork of `state`, with or without a name. Reads a body only if a reference in it must be resolved.
    pub fn prepare(
        state: &SessionState,
        end: End,
        open_calls: &[OpenCall],
        name: Option<&str>,
        minter: &dyn id::Source,
    ) -> Result<Self> {
        let (tree, bodies) = (&state.tree, state.bodies());
        let mut plan = fork::plan(tree, end);
        let mut kept = Vec::with_capacity(plan.kept.len());
        let (mut ids, mut others) = (String::new(), Vec::new());
        let mut before = None;
        for node in std::mem::take(&mut plan.kept) {
            ids.push_str(tree.id(node));
            // The line is unchanged if its parent in the source is the entry before it.
            let is_linked = before.is_some()
                && tree.parent(node) == before
                && !tree.flags(node).has(Flags::REPARENTED);
            let facts = tree.plain_facts(node).filter(|_| is_linked);
            let facts = facts.filter(|_| bodies.is_verbatim(tree, node));
            if facts.is_none() {
                others.push(bodies.fetch(tree, node)?);
            }
            kept.push(KeptEntry {
                place: tree.place(node),
                id_end: ids.len(),
                facts,
            });
            before = Some(node);
        }
        let label = |node: &Node| Ok((bodies.fetch(tree, *node)?, tree.id(*node).to_owned()));
        let labels = plan.labels.iter().map(label).collect::<Result<Vec<_>>>()?;
        let last_id = before.map(|node| tree.id(node).to_owned());
        let (results, last_id) = fork::added_lines(tree, minter, open_calls, name, last_id);
        Ok(Self {
            plan,
            bodies,
            kept,
            ids,
            others,
            results,
            last_id,
            labels,
        })
    }

    /// The number of bytes of the copied entries, as stored.
    pub fn size(&self) -> u64 {
        let sizes = self.kept.iter().map(|kept| kept.place.len);
        sizes.map(u64::from).sum()
    }

    /// Whether there is nothing to copy.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty() && self.results.is_empty()
    }

    /// Passes all parts to `take`, in order.
    fn pieces(&self, mut take: impl FnMut(ForkPart<'_>) -> Result<()>) -> Result<()> {
        let mut reader = self.bodies.reader();
        let mut others = self.others.iter();
        let mut run: Vec<CopiedLine<'_>> = Vec::new();
        let mut run_end = 0;
        let mut id_start = 0;
        let mut parent_id = None;
        for kept in &self.kept {
            let id = self.ids.get(id_start..kept.id_end);
            debug_assert!(id.is_some(), "`ids` has the id of each kept entry");
            let id = id.unwrap_or_default();
            id_start = kept.id_end;
            let FilePlace { offset, len } = kept.place;
            let goes_on = run.first().is_some_and(|first| {
                kept.facts.is_some()
                    && offset == run_end + 1
                    && offset + u64::from(len) - first.place.offset < CHUNK as u64
            });
            if !goes_on && !run.is_empty() {
                take(ForkPart::Run(&run))?;
                run.clear();
            }
            run_end = offset + u64::from(len);
            match kept.facts {
                Some(facts) => run.push(CopiedLine {
                    place: kept.place,
                    id,
                    facts,
                }),
                None => {
                    if let Some(fetch) = others.next() {
                        let entry = reader.entry(fetch)?;
                        take(ForkPart::Line(&self.plan.copy(entry, parent_id)))?;
                    }
                }
            }
            parent_id = Some(id);
        }
        if !run.is_empty() {
            take(ForkPart::Run(&run))?;
        }
        for line in &self.results {
            take(ForkPart::Line(line))?;
        }
        parent_id = self.last_id.as_deref();
        for (fetch, id) in &self.labels {
            let entry = reader.entry(fetch)?;
            take(ForkPart::Line(&self.plan.copy(entry, parent_id)))?;
            parent_id = Some(id);
        }
        Ok(())
    }

    /// Passes each line to `take`, without its line break. The header is not included.
    pub fn each_line(&self, take: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.pieces(|piece| match piece {
            ForkPart::Line(line) => take(line),
            ForkPart::Run(run) => run.iter().try_for_each(|line| {
                let stored = self.bodies.read(line.place)?;
                self.bodies.check_line(&stored, stored.len(), line.id)?;
                take(&stored)
            }),
        })
    }

    /// Makes an ephemeral session.
    pub fn to_memory(&self, header: Header) -> Result<OpenedLog> {
        let mut lines = Vec::new();
        self.each_line(&mut |line| {
            lines.push(line.to_vec());
            Ok(())
        })?;
        let mut log = Log::ephemeral(header);
        let mut tree = Tree::new();
        log.fill(&mut tree, lines)?;
        tree.set_leaf(tree.file_leaf());
        Ok(OpenedLog {
            log,
            tree,
            diagnostics: Vec::new(),
        })
    }

    /// Makes the session file. If `synced`, the file is synced together with its folder.
    pub fn to_file(&self, at: Location, header_line: Vec<u8>, synced: bool) -> Result<FinishedLog> {
        // Room for the error results and the labels, which are written besides the entries.
        let more = self.results.len() + self.labels.len();
        let tree = Tree::with_room(self.kept.len() + more, self.ids.len() + 8 * more);
        let mut draft = LogWriter::begin(at, header_line, tree)?;
        self.pieces(|piece| match piece {
            ForkPart::Line(line) => draft.line(line),
            ForkPart::Run(run) => draft.copy(&self.bodies, run),
        })?;
        draft.finish(synced)
    }
}
