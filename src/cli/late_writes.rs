//! What other programs still write into a session file that a command has replaced: the old file is
//! watched, and whole lines that arrive in it are carried over (storage.md §2).
//!
//! Owns how long a command waits for them, and what it says of that. Carrying over is the session's.

use super::screen::Screen;
use crate::cancel::Cancel;
use crate::durability::Durability;
use crate::error::Result;
use crate::flow::PlannedLines;
use crate::os::process;
use crate::session::Session;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// How long nothing may have arrived in the old file before it is left alone, if no other program has it
/// open any more.
const QUIET: Duration = Duration::from_secs(1);
/// Between two attempts to carry over what has arrived.
const SHORT_PAUSE: Duration = Duration::from_millis(1);
/// Between two looks at the old file.
const PAUSE: Duration = Duration::from_millis(20);
/// Between two looks at which programs have it open.
const LONG_PAUSE: Duration = Duration::from_millis(250);

/// Says, before a file is replaced, what cannot be promised.
pub fn warn(screen: &mut Screen) -> io::Result<()> {
    writeln!(
        screen,
        "The file is replaced. What programs that take no lock still write into the old one is carried over\n\
         for a minute at most. What they write later, or after this command was killed, is lost, and a line\n\
         that they write piece by piece may be cut in two. End them before, or have them open the file again."
    )?;
    screen.flush()
}

/// Takes in the file that has the session's name now, and carries over what has arrived in the old one.
/// With a file of an old version it is migrated first.
pub async fn commit(session: &Session) -> Result<()> {
    let cancel = Cancel::new();
    let turn = session.guard(Instant::now(), ())?;
    let (_turn, _changes, committed) = turn.commit(&cancel, |_| Ok(PlannedLines::default())).await;
    let Some(file) = committed?.unsynced else {
        return Ok(());
    };
    let untold = || {};
    let synced = session.syncer.after_write(Durability::Always, file, untold);
    synced.await
}

/// Carries over what arrives in the old file: for a second after the last line, and as long as another
/// program has it open, but no longer than a minute.
pub async fn carry_over(session: &Session, screen: &mut Screen) -> anyhow::Result<()> {
    let mut quiet_since = Instant::now();
    let mut writers = BTreeSet::new();
    loop {
        let mut turn = session.guard(Instant::now(), ())?;
        let (is_held, has_arrivals) = (turn.has_predecessor(), turn.has_arrivals());
        let replaced: Vec<_> = turn.predecessors().collect();
        drop(turn);
        if has_arrivals {
            commit(session).await?;
            quiet_since = Instant::now();
            // It may have to wait for the end of a line that somebody else is writing.
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
        let found = replaced.into_iter().map(process::writers_of);
        let Some(found) = found.collect::<Option<Vec<_>>>() else {
            // Nobody can say whether it is open: the whole minute it is.
            tokio::time::sleep(LONG_PAUSE).await;
            continue;
        };
        let found: BTreeSet<u32> = found.into_iter().flatten().collect();
        if found.is_empty() {
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

fn say_who_remains(screen: &mut Screen, writers: &BTreeSet<u32>) -> io::Result<()> {
    if writers.is_empty() {
        return Ok(());
    }
    let names = named(writers);
    writeln!(
        screen,
        "after a minute the old file is still open in {names}: what is written there from now on is lost"
    )?;
    screen.flush()
}

/// `process 12`, `processes 12, 13`.
fn named(processes: &BTreeSet<u32>) -> String {
    let numbers: Vec<String> = processes.iter().map(u32::to_string).collect();
    let noun = match processes.len() {
        1 => "process",
        _ => "processes",
    };
    format!("{noun} {}", numbers.join(", "))
}
