//! Copies lines that are written to a session file after another file has replaced it (session-file.md §2).
//!
//! A program that takes no lock may have opened the old file before it was replaced, and may still write to it.
//! So the old file is kept open for a minute, and complete lines that arrive in it are copied to the new file.
//! This module reads the old file and keeps the late lines; the session writes them to the new file.

use super::append::Lock;
use super::file_log::Tail;
use super::header::CURRENT_VERSION;
use super::lines::Lines;
use super::state::{Log, LogStorage};
use crate::cancel::Cancel;
use crate::invariant::always;
use crate::os::file;
use crate::os::file::File;
use crate::os::handle::HandleAccess;
use crate::os::time;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use treelined_core::defect::breaks;
use treelined_core::entry::{Line, scan};
use treelined_core::error::{Error, Result};
use treelined_core::tree::Tree;

/// How long the old file is kept open for late lines.
const HELD: Duration = Duration::from_secs(60);
/// How long late lines wait for the end of an incomplete last line in the new file.
const IN_FLIGHT: Duration = Duration::from_secs(2);

/// The hidden command of the process that continues to copy late lines after a daemon has ended.
pub const CARRY_OVER_COMMAND: &str = "carry-over";

/// How far a process has followed a replaced file. Another process continues from there.
#[derive(Debug, Clone, Copy)]
pub struct Handover {
    /// The offset in bytes up to which the lines of the old file are in the new file.
    pub carried_to: u64,
    /// The offset in bytes of the end of the unfinished line that was kept when the file was replaced; 0 if there was
    /// none.
    pub tail_kept_to: u64,
    /// How much longer late lines must be copied.
    pub remaining: Duration,
}

impl Handover {
    /// The arguments with which this program continues in another process. The stdin of that process is the old
    /// file.
    pub fn arguments(&self, successor: &Path) -> [OsString; 5] {
        [
            CARRY_OVER_COMMAND.into(),
            format!("--carried-to={}", self.carried_to).into(),
            format!("--tail-kept-to={}", self.tail_kept_to).into(),
            format!("--remaining-ms={}", self.remaining.as_millis()).into(),
            successor.into(),
        ]
    }
}

/// A session file that another file has replaced.
pub struct ReplacedFile {
    log: Log,
    /// The entries of the old file. They are needed for version 1, where only the position of an entry gives
    /// its parent.
    tree: Tree,
    /// The old file. It must stay open, since its path leads to the new file.
    file: Arc<File>,
    /// When the wait for late lines ends.
    until: Instant,
    /// The offset in bytes up to which lines were read. These lines are pending or in the new file.
    read_to: u64,
    /// The offset in bytes up to which the lines are in the new file.
    carried_to: u64,
    /// The offset in bytes of the end of the unfinished line that was kept when the file was replaced; 0 if there was
    /// none.
    tail_kept_to: u64,
    /// The size of the file at the last check. It is larger than `read_to` if the last line is incomplete.
    looked_at: u64,
    /// Whether the file was read for the last time, after `until`.
    is_settled: bool,
    /// Set if pending lines wait for the end of an incomplete line in the new file: the length of the new file,
    /// and the time since which it has this length.
    waits_for: Option<(u64, Instant)>,
    /// Lines read from the old file and not yet written to the new one.
    pending: Vec<Vec<u8>>,
}

impl ReplacedFile {
    /// Follows the replaced file of `log`; `None` if that file is closed.
    pub(crate) fn of(log: Log, tree: Tree) -> Option<Self> {
        let LogStorage::File(file_log) = &log.store else {
            return None;
        };
        let open = file_log.open.as_ref()?;
        let file = open.handle.get(HandleAccess::Read, || Err(())).ok()?;
        let (read_to, tail_kept_to) = (file_log.end, file_log.tail_kept_to);
        Some(Self {
            log,
            tree,
            file,
            until: time::now() + HELD,
            read_to,
            carried_to: read_to,
            tail_kept_to,
            looked_at: read_to,
            is_settled: false,
            waits_for: None,
            pending: Vec::new(),
        })
    }

    /// Continues with a replaced file that another process has handed over. `None` if the file is closed.
    pub fn taken_over(log: Log, tree: Tree, handed: Handover) -> Option<Self> {
        let mut replaced = Self::of(log, tree)?;
        replaced.until = time::now() + handed.remaining.min(HELD);
        // The number comes from the arguments of a command, so it may be too large.
        replaced.read_to = match breaks("The read of a replaced file continues where it stopped") {
            true => handed.carried_to,
            false => handed.carried_to.min(replaced.read_to),
        };
        replaced.carried_to = replaced.read_to;
        replaced.looked_at = replaced.read_to;
        replaced.tail_kept_to = handed.tail_kept_to;
        Some(replaced)
    }

    /// Returns the old file and the progress, for another process to continue. `None` if no more lines
    /// are expected.
    pub(crate) fn handover(&self) -> Option<(Arc<File>, Handover)> {
        let remaining = self.until.checked_duration_since(time::now())?;
        let carried_to = self.carried_to;
        let handover = Handover {
            carried_to,
            tail_kept_to: self.tail_kept_to,
            remaining,
        };
        Some((Arc::clone(&self.file), handover))
    }

    /// The identity of the old file.
    pub(crate) fn identity(&self) -> Option<file::Identity> {
        self.log.identity()
    }

    /// Whether no more lines are expected.
    pub(crate) fn is_over(&self) -> bool {
        self.pending.is_empty() && time::now() >= self.until
    }

    /// Ends the wait for late lines, since no program can write them any more. The next check is the last one.
    pub(crate) fn end_waiting(&mut self) {
        self.until = self.until.min(time::now());
    }

    /// Whether there are lines to copy. This takes one `fstat`.
    pub(crate) fn has_arrivals(&self) -> bool {
        let Ok(status) = file::status_of(&self.file) else {
            return !self.pending.is_empty();
        };
        let is_last_look = !self.is_settled && time::now() >= self.until;
        !self.pending.is_empty()
            || status.size > self.looked_at
            || (is_last_look && status.size > self.read_to)
    }

    /// Returns the complete late lines, migrated to version 3. Leaves out lines whose entries are in
    /// `successor` already, since another process may have copied them.
    pub(crate) fn arrivals(&mut self, successor: &Tree) -> Result<Vec<Vec<u8>>> {
        let LogStorage::File(log) = &mut self.log.store else {
            return Ok(Vec::new());
        };
        let from = self.read_to;
        let size = file::status_of(&self.file).map_or(from, |status| status.size);
        // The last check also reads a line without a line break, unless this line has not changed since the file was
        // replaced.
        let is_last_look = time::now() >= self.until;
        let tail = if is_last_look && size != self.tail_kept_to {
            Tail::Take
        } else {
            Tail::Leave
        };
        log.read_on(&mut self.tree, &mut self.log.ingest, tail, &Cancel::new())?;
        let end = log.end;
        always!(
            "The read of a replaced file continues where it stopped",
            end >= from
        )?;
        self.read_to = end;
        self.looked_at = size.max(end);
        self.is_settled = is_last_look;
        if end > from {
            let new = if self.log.version() < CURRENT_VERSION {
                self.log.migrated(&self.tree, from)?
            } else {
                lines_between(&self.file, from, end)?
            };
            self.pending.extend(new);
        }
        if tail == Tail::Take && size > end && size != self.tail_kept_to {
            // A fragment of a line is not an entry. The new file gets it as damage.
            self.pending.extend(lines_between(&self.file, end, size)?);
            self.tail_kept_to = size;
        }
        self.pending.retain(|line| !is_known(successor, line));
        if self.pending.is_empty() {
            self.carried_to = self.read_to;
        }
        Ok(self.pending.clone())
    }

    /// Whether late lines can be appended to the new file. While the last line of the new file is incomplete, they
    /// wait, since an append would cut this line in two. They do not wait if the line has stopped growing, nor after
    /// the last check.
    pub(crate) fn may_append(&mut self, successor: &Log) -> bool {
        let Some(end) = successor.end_in_fragment() else {
            return true;
        };
        let waits = self.waits_for.filter(|(at, _)| *at == end);
        let (_, since) = *self.waits_for.insert(waits.unwrap_or((end, time::now())));
        self.is_settled || time::since(since) >= IN_FLIGHT
    }

    /// Records that the lines from [`ReplacedFile::arrivals`] are in the new file.
    pub(crate) fn carried(&mut self) {
        self.pending.clear();
        self.carried_to = self.read_to;
        self.waits_for = None;
    }
}

impl Log {
    /// Returns the length of the file if its last line has no line break.
    fn end_in_fragment(&self) -> Option<u64> {
        use crate::os::FileAt;
        let LogStorage::File(log) = &self.store else {
            return None;
        };
        let file = log.file(log.open.as_ref()?, HandleAccess::Read).ok()?;
        let size = file::status_of(&file).map_or(0, |status| status.size);
        let mut last = [b'\n'];
        let read = file.read_exact_at(&mut last, size.saturating_sub(1));
        (read.is_ok() && last != *b"\n").then_some(size)
    }

    /// Appends lines that other programs wrote to the old file. They are read into the tree as entries that
    /// this process did not write.
    pub fn write_for_others(
        &mut self,
        lock: &Lock,
        tree: &mut Tree,
        lines: Vec<Vec<u8>>,
    ) -> Result<Option<Arc<File>>> {
        let outcome = self.write(lock, lines)?;
        if !breaks("A late line is passed only when it is in the new file, and read from there") {
            // The last line has no line break if the disk became full before the line break was written.
            let tail = match outcome.ends_in_break {
                true => Tail::Leave,
                false => Tail::Take,
            };
            self.read_others(tree, tail)?;
        }
        let written_to = outcome.start + outcome.bytes as u64;
        if let (LogStorage::File(log), None) = (&self.store, &outcome.failure) {
            always!(
                "A late line is passed only when it is in the new file, and read from there",
                log.end >= written_to
            )?;
        }
        match outcome.failure {
            Some(failure) => Err(failure),
            None => Ok(outcome.file),
        }
    }
}

/// The lines between two offsets of the file, in bytes.
fn lines_between(file: &File, from: u64, end: u64) -> Result<Vec<Vec<u8>>> {
    let failed = |error| Error::io("read the replaced session file", &error);
    let mut lines = Lines::new(file, from);
    let mut found = Vec::new();
    while let Some(line) = lines.next().map_err(failed)? {
        if line.offset >= end {
            break;
        }
        if let Some(bytes) = line.bytes.filter(|bytes| !bytes.trim_ascii().is_empty()) {
            found.push(bytes.to_vec());
        }
    }
    Ok(found)
}

fn is_known(successor: &Tree, line: &[u8]) -> bool {
    match scan::scan_line(line) {
        Ok(Line::Entry(entry)) => entry.id.is_some_and(|id| successor.find_any(&id).is_some()),
        Ok(Line::Header(_) | Line::Title(_) | Line::Blank) => true,
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::state::{Log, OpenedLog};
    use crate::os::file::Location;
    use std::io::Write;

    /// A fragment at the end of the old file once counted as an arrival for ever. So `migrate` never ended, and the
    /// daemon kept the deleted file open even after the session was closed. The fragment is read once, and once more at
    /// the end.
    #[test]
    fn an_incomplete_fragment_is_not_an_arrival() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        std::fs::write(
            &path,
            "{\"type\":\"session\",\"version\":2,\"id\":\"s\"}\n{\"torn",
        )
        .unwrap();
        let OpenedLog { log, tree, .. } = Log::open(Location::of_path(&path).unwrap()).unwrap();
        let mut old = ReplacedFile::of(log, tree).unwrap();
        let new = Tree::new();
        // The line may be in flight at the first check.
        assert!(old.has_arrivals());
        assert!(old.arrivals(&new).unwrap().is_empty());
        assert!(!old.has_arrivals());
        let mut late = std::fs::File::options().append(true).open(&path).unwrap();
        let entry = "{\"type\":\"custom\",\"id\":\"a\",\"parentId\":null,\"timestamp\":\"t\"}";
        late.write_all(format!("\n{entry}").as_bytes()).unwrap();
        assert!(old.has_arrivals());
        assert_eq!(old.arrivals(&new).unwrap(), [b"{\"torn".to_vec()]);
        old.carried();
        assert!(!old.has_arrivals() && !old.is_over());
        // The last check also takes a whole line without a line break.
        old.until = Instant::now();
        assert!(old.has_arrivals());
        assert_eq!(old.arrivals(&new).unwrap(), [entry.as_bytes().to_vec()]);
        old.carried();
        late.write_all(b"\n{\"torn again").unwrap();
        // The check also takes a fragment, once.
        assert_eq!(old.arrivals(&new).unwrap(), [b"{\"torn again".to_vec()]);
        old.carried();
        assert!(old.is_over() && !old.has_arrivals());
    }
}
