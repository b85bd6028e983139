//! Moves the lines of archived branches into the cold file (session-file.md §4.10). `unshed` moves them back.
//!
//! The cold file is written before lines leave the session file, and cleared after they are back. So after a crash at
//! any point each line is in the session file, or its branch has a record there and the line is in the cold file.

use super::append::{self, Lock};
use super::body::Bodies;
use super::cold::{self, ColdReader, Digest, Piece, SUFFIX, ShedRecords};
use super::lines::{Lines, RawLine};
use super::rewrite::{self, copy_range};
use super::state::{Log, LogStorage};
use crate::invariant::{always, never};
use crate::os::file::{self, File, Location};
use crate::os::temporary;
use hashbrown::{HashMap, HashSet};
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;
use treelined_core::defect::breaks;
use treelined_core::entry::{Kind as EntryKind, Role, draft};
use treelined_core::error::{Error, Kind, Result};
use treelined_core::flow::shed::{self, ShedBranch};
use treelined_core::id::Source;
use treelined_core::json;
use treelined_core::tree::{Node, Tree};

/// The most bytes of a line that is moved.
const MOST_LINE: u64 = 64 << 20;
/// The most bytes of the first prompt in a record.
const MOST_PROMPT: usize = 200;

/// The reason why an archived branch stays in the session file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StayReason {
    /// An entry that stays names an entry of the branch.
    Named,
    /// The branch has a label, a note or a name of the session.
    Names,
    /// A line of the branch is damaged, is too long, or is in the file twice.
    Damaged,
}

/// An archived branch that stays in the session file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StayingBranch {
    /// The id of the first entry.
    pub entry_id: String,
    pub reason: StayReason,
    /// The id of the entry that is the reason, if it has one.
    pub by: Option<String>,
}

/// The session file of a move to or from the cold file.
pub(super) struct ShedSource<'a> {
    pub(super) at: &'a Location,
    tree: &'a Tree,
    bodies: Bodies,
    pub(super) records: ShedRecords,
    /// The locked file.
    pub(super) file: &'a File,
    /// The lines after the header.
    pub(super) lines: Range<u64>,
}

/// The archived branches, and whether each of them moves or stays.
struct ShedPlan {
    heads: Vec<Node>,
    /// The branch of a line that moves, by the offset of the line.
    line_of: HashMap<u64, usize>,
    stays: Vec<Option<(StayReason, Option<String>)>>,
}

impl Log {
    /// Moves the lines of the archived branches that begin with these entries into the cold file. Requires the lock,
    /// and all lines in `tree`. After this call the caller must reopen the log. Returns the branches that were moved,
    /// and those that stay.
    pub fn shed(
        &self,
        lock: &Lock,
        tree: &Tree,
        heads: Vec<Node>,
        source: &dyn Source,
    ) -> Result<(Vec<ShedBranch>, Vec<StayingBranch>)> {
        let session = self.shed_source(lock, tree)?;
        let failed = |error: io::Error| session.failed("shed branches of", &error);
        temporary::remove_abandoned(&session.at.folder).map_err(failed)?;
        let plan = session.plan(heads).map_err(failed)?;
        let staying = plan.staying(tree);
        if plan.stays.iter().all(Option::is_some) {
            return Ok((Vec::new(), staying));
        }
        never!(
            "The path to the position where the file opens is never shed",
            plan.holds(tree, tree.file_leaf())
        )?;
        never!(
            "The path of the leaf is never shed",
            plan.holds(tree, tree.leaf())
        )?;
        let branches = session.write_cold(&plan)?;
        let entries: u64 = branches.iter().map(|branch| branch.entries).sum();
        always!(
            "Each line that leaves the session file is in the cold file before",
            entries == plan.moved()
        )?;
        let records = shed::records(tree, source, &branches);
        always!(
            "Each branch in the cold file has a record in the session file",
            records.len() == branches.len()
        )?;
        session.write_without(&plan, &records)?;
        Ok((branches, staying))
    }

    pub(super) fn shed_source<'a>(
        &'a self,
        lock: &'a Lock,
        tree: &'a Tree,
    ) -> Result<ShedSource<'a>> {
        let (LogStorage::File(log), Some(locked)) = (&self.store, lock.file()) else {
            return Err(in_memory());
        };
        let header = self.header().map(|header| header.place);
        let header = header.ok_or_else(append::replaced)?;
        let bodies = self.bodies();
        let records = ShedRecords::of(tree, &bodies)?;
        let failed = |error: io::Error| log.failed("read", &error);
        let status = file::status_of(locked).map_err(failed)?;
        if status.size > log.end {
            let why = "the file ends inside a line, which a program may be writing: try again, or run \
                       `treelined doctor --repair`";
            return Err(Error::new(Kind::SessionLocked, why));
        }
        let start = cold::first_line(locked, header).map_err(failed)?;
        Ok(ShedSource {
            at: &log.at,
            tree,
            bodies,
            records,
            file: locked,
            lines: start..log.end,
        })
    }
}

/// The error for a session without a file.
pub(crate) fn in_memory() -> Error {
    Error::invalid_params("sessionId", "names a session without a file")
}

impl ShedSource<'_> {
    pub(super) fn failed(&self, action: &str, error: &io::Error) -> Error {
        Error::io(&format!("{action} {}", self.at.path().display()), error)
    }

    pub(super) fn walk(
        &self,
        cold: &mut ColdReader<'_>,
        take: impl FnMut(Piece<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        cold::walk(self.file, self.lines.clone(), &self.records, cold, take)
    }

    /// The offsets of the records that other lines name.
    pub(super) fn named_records(&self) -> io::Result<HashSet<u64>> {
        self.records.named(self.file, self.lines.clone())
    }

    /// Gives the new file the modification time of the old file, since pi continues the session with the newest time.
    pub(super) fn keep_time(&self, new: &File) -> io::Result<()> {
        new.set_modified(self.file.metadata()?.modified()?)
    }

    fn plan(&self, heads: Vec<Node>) -> io::Result<ShedPlan> {
        let mut plan = ShedPlan::of(self.tree, heads);
        let mut owner: HashMap<Node, usize> = HashMap::new();
        let mut lines: HashMap<u64, Node> = HashMap::new();
        let mut missing: Vec<usize> = vec![0; plan.heads.len()];
        for (branch, head) in plan.heads.iter().enumerate() {
            for node in self.tree.subtree(*head) {
                owner.insert(node, branch);
                lines.insert(self.tree.place(node).offset, node);
                if let Some(missing) = missing.get_mut(branch) {
                    *missing += 1;
                }
            }
        }
        // The lines that name an entry of another branch. The key has the branch of the line and the other branch, and
        // the value is the id of the line.
        let mut names: HashMap<(Option<usize>, usize), Option<String>> = HashMap::new();
        let mut reader = Lines::new(self.file, self.lines.start);
        while let Some(line) = reader.next()? {
            if line.offset >= self.lines.end {
                break;
            }
            let Some(bytes) = line.bytes.filter(|_| !self.records.is_at(line.offset)) else {
                continue;
            };
            let node = lines
                .get(&line.offset)
                .filter(|node| self.is_whole(**node, &line));
            let branch = node.and_then(|node| owner.get(node)).copied();
            if let Some(branch) = branch {
                plan.line_of.insert(line.offset, branch);
                if let Some(missing) = missing.get_mut(branch) {
                    *missing -= 1;
                }
            }
            let reference = Reference::of(bytes);
            for id in &reference.names {
                let named = self
                    .tree
                    .find(id)
                    .and_then(|node| owner.get(&node))
                    .copied();
                if let Some(named) = named.filter(|named| branch != Some(*named)) {
                    names
                        .entry((branch, named))
                        .or_insert_with(|| reference.id.clone());
                }
            }
        }
        for (branch, missing) in missing.iter().enumerate() {
            if *missing > 0 {
                plan.stay(branch, StayReason::Damaged, None);
            }
        }
        plan.keep_named(&names);
        Ok(plan)
    }

    /// Whether the line contains only this entry and has no damage, so that it can be moved.
    fn is_whole(&self, node: Node, line: &RawLine<'_>) -> bool {
        use treelined_core::tree::Flags;
        let damage = [
            Flags::DUPLICATE_ID,
            Flags::RECOVERED,
            Flags::INVALID_UTF8,
            Flags::SELF_PARENT,
            Flags::CYCLE,
        ];
        let flags = self.tree.flags(node);
        let place = self.tree.place(node);
        line.terminated
            && line.len <= MOST_LINE
            && (place.offset, u64::from(place.len)) == (line.offset, line.len)
            && !damage.iter().any(|flag| flags.has(*flag))
    }

    /// Writes the cold file with its present lines and the lines of the branches that move into it.
    fn write_cold(&self, plan: &ShedPlan) -> Result<Vec<ShedBranch>> {
        let stored = cold::open(self.at)?;
        let mut sums: HashMap<usize, (u64, u64, Digest)> = HashMap::new();
        let to = self.at.beside(SUFFIX);
        rewrite::replace(&to, &to, |out| {
            let mut reader = ColdReader::new(stored.as_ref(), &self.records)?;
            self.walk(&mut reader, |piece| {
                let (at, line) = match piece {
                    Piece::Cold(line) => {
                        return cold::write_cold(out, line.at, &line.of, &line.line);
                    }
                    Piece::Record(..) => return Ok(()),
                    Piece::Hot(at, line) => (at, line),
                };
                let Some((branch, bytes)) = plan.moves(line.offset).zip(line.bytes) else {
                    return Ok(());
                };
                if breaks("Each line that leaves the session file is in the cold file before") {
                    return Ok(());
                }
                let (entries, size, digest) = sums.entry(branch).or_default();
                *entries += 1;
                *size += line.len + 1;
                digest.add(bytes);
                cold::write_cold(out, at, plan.id(self.tree, branch), bytes)
            })
        })?;
        let mut branches = Vec::with_capacity(sums.len());
        for (number, head) in plan.heads.iter().enumerate() {
            if let Some((entries, bytes, digest)) = sums.remove(&number) {
                let named = self.tree.named_by(*head);
                let name = named.and_then(|named| self.tree.branch_name(named));
                branches.push(ShedBranch {
                    entry_id: self.tree.id(*head).to_owned(),
                    fork_id: shed::fork_id(self.tree, *head),
                    entries,
                    bytes,
                    name: name.map(str::to_owned),
                    first_prompt: self.first_prompt(*head)?,
                    sha256: digest.finish(),
                });
            }
        }
        Ok(branches)
    }

    /// The first message of the user in a branch, on one line and cut.
    fn first_prompt(&self, head: Node) -> Result<Option<String>> {
        let mut nodes = self.tree.subtree(head);
        nodes.sort_unstable();
        let prompt = nodes
            .into_iter()
            .find(|node| self.tree.role(*node) == Role::User);
        let Some(prompt) = prompt else {
            return Ok(None);
        };
        let text = draft::draft(&self.bodies.read(self.tree.place(prompt))?).text;
        let words: Vec<&str> = text.split_whitespace().collect();
        let text = words.join(" ");
        let mut ends = (0..=text.len().min(MOST_PROMPT)).rev();
        let end = ends.find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        Ok(text
            .get(..end)
            .map(str::to_owned)
            .filter(|text| !text.is_empty()))
    }

    /// Replaces the session file with one that has records in place of the branches that move.
    fn write_without(&self, plan: &ShedPlan, records: &[Vec<u8>]) -> Result<()> {
        rewrite::replace(self.at, self.at, |out| {
            copy_range(out, self.file, 0, self.lines.start)?;
            let mut lines = Lines::new(self.file, self.lines.start);
            while let Some(line) = lines.next()? {
                if line.offset >= self.lines.end {
                    break;
                }
                if plan.moves(line.offset).is_none() {
                    cold::write_hot(out, self.file, &line)?;
                }
            }
            for record in records {
                out.write_all(record)?;
                out.write_all(b"\n")?;
            }
            out.flush()?;
            self.keep_time(out.get_ref())
        })
    }
}

impl ShedPlan {
    fn of(tree: &Tree, heads: Vec<Node>) -> Self {
        let names_others = |node: &Node| {
            let kind = tree.kind(*node);
            matches!(
                kind,
                EntryKind::Label | EntryKind::SessionInfo | EntryKind::Note
            )
        };
        let stays = heads.iter().map(|head| {
            let by = tree.subtree(*head).into_iter().find(names_others)?;
            Some((StayReason::Names, Some(tree.id(by).to_owned())))
        });
        Self {
            stays: stays.collect(),
            line_of: HashMap::new(),
            heads,
        }
    }

    fn id<'t>(&self, tree: &'t Tree, branch: usize) -> &'t str {
        self.heads.get(branch).map_or("", |head| tree.id(*head))
    }

    /// The branch of the line at this offset, if it moves.
    fn moves(&self, offset: u64) -> Option<usize> {
        let branch = self.line_of.get(&offset).copied();
        branch.filter(|branch| self.stays.get(*branch).is_some_and(Option::is_none))
    }

    /// Whether the position is in a branch that moves.
    fn holds(&self, tree: &Tree, position: Option<Node>) -> bool {
        let moving = self.heads.iter().zip(&self.stays);
        let mut moving = moving.filter(|(_, stays)| stays.is_none());
        position.is_some_and(|position| moving.any(|(head, _)| tree.is_ancestor(*head, position)))
    }

    /// The number of lines that move.
    fn moved(&self) -> u64 {
        let lines = self.line_of.keys();
        lines
            .filter(|offset| self.moves(**offset).is_some())
            .count() as u64
    }

    fn stay(&mut self, branch: usize, reason: StayReason, by: Option<String>) -> bool {
        match self.stays.get_mut(branch) {
            Some(stays @ None) => {
                *stays = Some((reason, by));
                true
            }
            _ => false,
        }
    }

    /// A branch stays if a line that stays names it. `names` has the branch of the line, the named branch, and the id
    /// of the line.
    fn keep_named(&mut self, names: &HashMap<(Option<usize>, usize), Option<String>>) {
        let mut named: HashMap<Option<usize>, Vec<(usize, &Option<String>)>> = HashMap::new();
        for ((by, branch), id) in names {
            named.entry(*by).or_default().push((*branch, id));
        }
        let kept =
            (0..self.heads.len()).filter(|at| self.stays.get(*at).is_some_and(Option::is_some));
        let mut open: Vec<Option<usize>> = kept.map(Some).chain([None]).collect();
        while let Some(by) = open.pop() {
            for (branch, id) in named.get(&by).into_iter().flatten() {
                if self.stay(*branch, StayReason::Named, (*id).clone()) {
                    open.push(Some(*branch));
                }
            }
        }
    }

    fn staying(&self, tree: &Tree) -> Vec<StayingBranch> {
        let staying = self.heads.iter().zip(&self.stays);
        let staying = staying.filter_map(|(head, stays)| {
            let (reason, by) = stays.clone()?;
            Some(StayingBranch {
                entry_id: tree.id(*head).to_owned(),
                reason,
                by,
            })
        });
        staying.collect()
    }
}

/// The entries that a line names, other than its parent.
struct Reference {
    id: Option<String>,
    /// The id of the line itself is included, since a second line with the id of an entry counts as a line that names
    /// the entry.
    names: Vec<String>,
}

impl Reference {
    fn of(line: &[u8]) -> Self {
        let [id, target, from, kept, copied, custom_type, data] = json::get_each(
            line,
            [
                "id",
                "targetId",
                "fromId",
                "firstKeptEntryId",
                "copiedFrom",
                "customType",
                "data",
            ],
        );
        let custom_type = custom_type.and_then(json::string).unwrap_or_default();
        let data = data.filter(|_| !custom_type.is_empty());
        let of_data = match custom_type.starts_with("treelined.") {
            // The entries that a move of the leaf names do not count, since undo skips positions that are not in the
            // file.
            true => data.and_then(|data| json::get_path(data, &["continuation", "entryId"])),
            false => data.and_then(|data| json::get(data, "targetId")),
        };
        let named = [id, target, from, kept, copied, of_data];
        let names = named.into_iter().flatten().filter_map(json::id);
        Self {
            id: id.and_then(json::id).map(Into::into),
            names: names.map(Into::into).collect(),
        }
    }
}

/// A line without an offset in the session file.
fn alone(bytes: &[u8]) -> RawLine<'_> {
    RawLine {
        offset: 0,
        bytes: Some(bytes),
        len: bytes.len() as u64,
        terminated: true,
    }
}

/// The lines of a session file and its cold file at one point in time.
pub(super) struct WholeLines {
    at: Location,
    records: ShedRecords,
    file: Arc<File>,
    lines: Range<u64>,
    cold: Option<File>,
}

impl WholeLines {
    /// `None` if no branch is shed.
    pub(super) fn of(log: &Log, tree: &Tree, file: &Arc<File>, end: u64) -> Result<Option<Self>> {
        let (Some(header), LogStorage::File(stored)) = (log.header(), &log.store) else {
            return Ok(None);
        };
        if !tree.has_shed() {
            return Ok(None);
        }
        let start = cold::first_line(file, header.place);
        Ok(Some(Self {
            at: stored.at.clone(),
            records: ShedRecords::of(tree, &log.bodies())?,
            file: Arc::clone(file),
            lines: start.map_err(|error| stored.failed("read", &error))?..end,
            cold: cold::open(&stored.at)?,
        }))
    }

    /// Passes each line after the header to `take`, without its line break. If the cold file is damaged, fails before
    /// it passes a line.
    pub(super) fn each(&self, mut take: impl FnMut(&RawLine<'_>) -> Result<()>) -> Result<()> {
        cold::check(&self.at, &self.records, |_| true, |_| false)?;
        let mut failure = None;
        let walked = (|| {
            let mut reader = ColdReader::new(self.cold.as_ref(), &self.records)?;
            let named = self.records.named(&self.file, self.lines.clone())?;
            cold::walk(
                &self.file,
                self.lines.clone(),
                &self.records,
                &mut reader,
                |piece| {
                    let taken = match piece {
                        Piece::Hot(_, line) => take(line),
                        Piece::Record(line, _) => match cold::left_record(line, &named) {
                            Some(left) => take(&alone(&left)),
                            None => Ok(()),
                        },
                        Piece::Cold(line) => take(&alone(&line.line)),
                    };
                    taken.map_err(|error| {
                        failure = Some(error);
                        io::ErrorKind::Other.into()
                    })
                },
            )
        })();
        match (failure, walked) {
            (Some(error), _) => Err(error),
            (None, walked) => walked.map_err(|error| Error::io("read the session file", &error)),
        }
    }

    /// For each entry in the cold file: the id of the first entry of its branch.
    pub(super) fn branches(&self) -> io::Result<HashMap<String, String>> {
        let mut branches = HashMap::new();
        let mut reader = ColdReader::new(self.cold.as_ref(), &self.records)?;
        while let Some(line) = reader.take()? {
            if let Some(id) = json::get(&line.line, "id").and_then(json::id) {
                branches.insert(id.into_owned(), line.of);
            }
        }
        Ok(branches)
    }

    /// The bytes of the lines in the cold file, as the records say.
    pub(super) fn cold_bytes(&self) -> u64 {
        self.records.bytes()
    }

    /// The offset of the first line after the header.
    pub(super) fn start(&self) -> u64 {
        self.lines.start
    }
}
