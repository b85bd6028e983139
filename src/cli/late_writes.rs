//! Copies lines that other programs write to the old file of a session after a command has replaced the file
//! (session-file.md §2).
//!
//! This module decides how long a command waits for such lines, and has the messages. The session does the copying.

use super::screen::Screen;
use clap::Args;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use treelined_core::durability::Durability;
use treelined_core::error::{Kind, Result};
use treelined_core::flow::PlannedLines;
use treelined_files::cancel::Cancel;
use treelined_files::log::Log;
use treelined_files::log::late_writes::{Handover, ReplacedFile};
use treelined_files::os::file::{Identity, Location};
use treelined_files::os::{process, stream};
use treelined_files::session::Session;

/// If no new lines arrive for this time, and no other program has the old file open, the old file is closed.
const QUIET: Duration = Duration::from_secs(1);
/// How long late lines wait for the lock of the new file.
const LOCK_PATIENCE: Duration = Duration::from_secs(60);
/// The pause between two attempts to copy lines.
const SHORT_PAUSE: Duration = Duration::from_millis(1);
/// The pause between two checks of the old file.
const PAUSE: Duration = Duration::from_millis(20);
/// The pause between two checks of which programs have the old file open.
const LONG_PAUSE: Duration = Duration::from_millis(250);

/// Warns, before a file is replaced, that late lines of other programs may be lost.
pub(super) fn warn(screen: &mut Screen) -> io::Result<()> {
    writeln!(
        screen,
        "The file is replaced. What programs that take no lock still write into the old one is carried over\n\
         for a minute at most. What they write later, or after this command was killed, is lost, and a line\n\
         that they write piece by piece may be cut in two. End them before, or have them open the file again."
    )?;
    screen.flush()
}

/// Opens the new file of the session, and copies the late lines of the old file to it. A file of an old version is
/// migrated first.
pub(super) async fn commit(session: &Session) -> Result<()> {
    let cancel = Cancel::new();
    let guard = session.guard(Instant::now(), ())?;
    let (_guard, _changes, committed) =
        guard.commit(&cancel, |_| Ok(PlannedLines::default())).await;
    let Some(file) = committed?.unsynced else {
        return Ok(());
    };
    let unreported = || {};
    let synced = session
        .syncer
        .after_write(Durability::Always, file, unreported);
    synced.await
}

/// Continues the work of a daemon that has ended. Another file has replaced the file on stdin; lines that still arrive
/// in the old file are copied into the new file.
#[derive(Debug, Args)]
pub(crate) struct CarryOver {
    /// Bytes from the start of the old file whose lines are in the new one
    #[arg(long)]
    carried_to: u64,
    /// Where the unfinished line ended that was kept when the file was replaced
    #[arg(long, default_value_t = 0)]
    tail_kept_to: u64,
    /// The milliseconds in which lines may still arrive
    #[arg(long)]
    remaining_ms: u64,
    /// The new file
    file: PathBuf,
}

impl CarryOver {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let at = Location::of_path(&self.file)?;
        let old = Log::open_replaced(at.clone(), stream::stdin()?)?;
        let handed = Handover {
            carried_to: self.carried_to,
            tail_kept_to: self.tail_kept_to,
            remaining: Duration::from_millis(self.remaining_ms),
        };
        let opened = Log::open(at)?;
        let id = |log: &Log| log.header().map(|header| header.id.clone());
        if id(&opened.log) == id(&old.log) {
            let replaced = ReplacedFile::taken_over(old.log, old.tree, handed);
            let session = Session::new(opened, false, Durability::Always);
            let mut turn = session.guard(Instant::now(), ())?;
            replaced.into_iter().for_each(|old| turn.take_over(old));
            drop(turn);
            super::runtime::small_runtime()?.block_on(carry_over(&session, &mut io::sink()))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Copies late lines until no line has arrived for one second and no other program has the old file open, but at most
/// for a minute.
pub(super) async fn carry_over(session: &Session, screen: &mut impl Write) -> anyhow::Result<()> {
    carry_over_beside(session, screen, process::writers_of).await
}

/// Like [`carry_over`]. `writers_of` finds the other programs that have a file open, if the system can name them.
async fn carry_over_beside(
    session: &Session,
    screen: &mut impl Write,
    writers_of: impl Fn(Identity) -> Option<Vec<u32>>,
) -> anyhow::Result<()> {
    let began = Instant::now();
    let mut quiet_since = began;
    let mut writers = BTreeSet::new();
    loop {
        let mut turn = session.guard(Instant::now(), ())?;
        let (is_held, has_arrivals) = (turn.has_predecessor(), turn.has_arrivals());
        let replaced: Vec<_> = turn.predecessors().collect();
        drop(turn);
        if has_arrivals {
            match commit(session).await {
                // On a busy machine another program, such as a second repair, may hold the lock for seconds.
                Err(error)
                    if error.kind == Kind::SessionLocked && began.elapsed() < LOCK_PATIENCE => {}
                committed => committed?,
            }
            quiet_since = Instant::now();
            // Another program may have written an incomplete line to the new file, so the copy is tried again.
            tokio::time::sleep(SHORT_PAUSE).await;
            continue;
        }
        if !is_held {
            return Ok(say_who_remains(screen, &writers)?);
        }
        if quiet_since.elapsed() < QUIET {
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        let found = replaced.into_iter().map(&writers_of);
        let Some(found) = found.collect::<Option<Vec<_>>>() else {
            // It is unknown which programs have the file open, so the whole minute is waited.
            tokio::time::sleep(LONG_PAUSE).await;
            continue;
        };
        let found: BTreeSet<u32> = found.into_iter().flatten().collect();
        if found.is_empty() {
            writers.clear();
            let mut turn = session.guard(Instant::now(), ())?;
            turn.end_waiting(|_| true);
            // The last writer may have written and closed the file after the check for arrivals.
            if turn.has_arrivals() {
                continue;
            }
            return Ok(());
        }
        if found != writers {
            let names = named(&found);
            writeln!(
                screen,
                "waiting for {names}: the old file is still open there"
            )?;
            screen.flush()?;
            writers = found;
        }
        tokio::time::sleep(LONG_PAUSE).await;
    }
}

fn say_who_remains(screen: &mut impl Write, writers: &BTreeSet<u32>) -> io::Result<()> {
    if writers.is_empty() {
        return Ok(());
    }
    let names = named(writers);
    writeln!(
        screen,
        "after a minute the old file is still open in {names}: lines written there from now on are lost"
    )?;
    screen.flush()
}

/// Processes by their numbers, such as `process 12` or `processes 12, 13`.
fn named(processes: &BTreeSet<u32>) -> String {
    let numbers: Vec<String> = processes.iter().map(u32::to_string).collect();
    let noun = match processes.len() {
        1 => "process",
        _ => "processes",
    };
    format!("{noun} {}", numbers.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::fs::{self, File, OpenOptions};
    use std::path::Path;
    use std::sync::Arc;
    use std::thread;

    fn entry(id: &str) -> String {
        format!(
            r#"{{"type":"custom","id":"{id}","parentId":null,"timestamp":"2025-01-01T00:00:00.000Z","customType":"c"}}"#
        ) + "\n"
    }

    /// A migrated session at this path, and its old file, opened for appending.
    fn migrated(path: &Path) -> (Arc<Session>, File) {
        migrated_with(path, "")
    }

    /// Like [`migrated`], with an unfinished line at the end.
    fn migrated_with(path: &Path, fragment: &str) -> (Arc<Session>, File) {
        let header = r#"{"type":"session","version":2,"id":"s","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/"}"#;
        fs::write(path, format!("{header}\n{}{fragment}", entry("a"))).unwrap();
        let late = OpenOptions::new().append(true).open(path).unwrap();
        let opened = Log::open(Location::of_path(path).unwrap()).unwrap();
        let session = Session::new(opened, false, Durability::Os);
        run(async { commit(&session).await.unwrap() });
        (session, late)
    }

    fn run(test: impl Future<Output = ()>) {
        crate::cli::runtime::small_runtime().unwrap().block_on(test);
    }

    /// A program may write its last line and close the old file while the programs that have it open are looked for.
    /// That line was once lost, more often on a busy machine.
    #[test]
    fn a_line_that_arrives_during_the_search_for_writers_is_carried_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let (session, late) = migrated(&path);
        let line = RefCell::new(Some(entry("last")));
        let writers_of = |_| {
            if let Some(line) = line.take() {
                (&late).write_all(line.as_bytes()).unwrap();
            }
            Some(Vec::new())
        };
        run(async {
            let mut out = io::sink();
            let carried = carry_over_beside(&session, &mut out, writers_of);
            carried.await.unwrap();
        });
        assert!(fs::read_to_string(&path).unwrap().contains("\"last\""));
    }

    /// A last line without a line break was once lost if the program that wrote the line ended within the minute, since
    /// the line counted as unfinished. The fragment that was there before is not copied twice.
    #[test]
    fn an_unfinished_line_of_a_writer_that_is_gone_is_carried_over() {
        let whole = entry("last");
        for (before, last) in [("", whole.trim_end()), ("", "{\"torn"), ("{\"torn", "")] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("s.jsonl");
            let (session, late) = migrated_with(&path, before);
            (&late).write_all(last.as_bytes()).unwrap();
            run(async {
                let mut out = io::sink();
                let carried = carry_over_beside(&session, &mut out, |_| Some(Vec::new()));
                carried.await.unwrap();
            });
            let text = fs::read_to_string(&path).unwrap();
            let expected = format!("\n{before}{last}\n");
            assert_eq!(text.matches(&expected).count(), 1, "{text}");
        }
    }

    /// If another program held the lock of the new file for more than two seconds, the copying once ended with an
    /// error, and late lines were lost.
    #[test]
    fn late_lines_wait_for_the_lock_of_the_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let (session, late) = migrated(&path);
        let holder = File::open(&path).unwrap();
        holder.lock().unwrap();
        (&late).write_all(entry("last").as_bytes()).unwrap();
        let holding = thread::spawn(move || {
            thread::sleep(Duration::from_secs(3));
            drop(holder);
        });
        run(async {
            let mut out = io::sink();
            let carried = carry_over_beside(&session, &mut out, |_| Some(Vec::new()));
            carried.await.unwrap();
        });
        holding.join().unwrap();
        assert!(fs::read_to_string(&path).unwrap().contains("\"last\""));
    }
}
