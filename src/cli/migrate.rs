//! `treelined migrate`: a file of version 1 or 2 rewritten as version 3 (storage.md §2), which else
//! happens with the first write.
//!
//! The rewriting is the session's own, and so is carrying over what still arrives in the old file: a
//! commit with nothing in it.

use super::Options;
use super::screen::Screen;
use crate::cancel::Cancel;
use crate::error::{Error, Kind, Result};
use crate::log::Log;
use crate::log::file::Location;
use crate::log::handle::Access;
use crate::log::ingest::CURRENT_VERSION;
use crate::session::{Planned, Session};
use crate::sync::Durability;
use crate::terminal;
use anyhow::Context;
use clap::Args;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How long nothing may have arrived in the old file before it is left alone, and the pause between
/// two looks.
const QUIET: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Debug, Args)]
pub struct Migrate {
    /// A session file
    file: PathBuf,
}

pub fn run(options: &Options, migrate: &Migrate) -> anyhow::Result<ExitCode> {
    let location = Location::of_path(&migrate.file)?;
    // Still the original when another file has its name.
    let original = location.folder.file(&location.name, Access::Read)?;
    let opened = Log::open(location.clone())?;
    let version = opened.log.version();
    let path = location.path();
    let path = path.display().to_string();
    let path = terminal::line(&path);
    let mut screen = Screen::new();
    if version > CURRENT_VERSION {
        let newer = format!("{path} is version {version}, newer than this program");
        return Err(Error::new(Kind::VersionUnsupported, newer).into());
    }
    if version == CURRENT_VERSION {
        writeln!(screen, "{path} is version {version} already")?;
        screen.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    let session = Session::new(opened, false, options.config()?.durability);
    let runtime = super::small_runtime()?;
    runtime.block_on(async {
        super::outlive_the_size_limit()?;
        anyhow::Ok(commit(&session).await?)
    })?;
    let kept = original_kept(&location, &original).context("look for the original")?;
    writeln!(
        screen,
        "{path} is version {CURRENT_VERSION} now; it was {version}"
    )?;
    if let Some(kept) = kept {
        let kept = kept.display().to_string();
        writeln!(screen, "the original is kept as {}", terminal::line(&kept))?;
    }
    screen.flush()?;
    runtime.block_on(carry_over(&session))?;
    Ok(ExitCode::SUCCESS)
}

/// Migrates, and carries over what has arrived in the old file.
async fn commit(session: &Session) -> Result<()> {
    let cancel = Cancel::new();
    let turn = session.turn(&cancel).await?;
    let (_turn, _changes, committed) = turn.commit(&cancel, |_| Ok(Planned::default())).await;
    let Some(file) = committed?.unsynced else {
        return Ok(());
    };
    let untold = || {};
    let synced = session.syncer.after_write(Durability::Always, file, untold);
    synced.await
}

/// Looks after the old file until nothing has arrived in it for a while: a writer that takes no lock
/// may have opened it before.
async fn carry_over(session: &Session) -> Result<()> {
    let mut quiet_since = Instant::now();
    loop {
        let mut turn = session.turn(&Cancel::new()).await?;
        let (is_held, has_arrivals) = (turn.has_predecessor(), turn.has_arrivals());
        drop(turn);
        if has_arrivals {
            commit(session).await?;
            quiet_since = Instant::now();
        }
        if !is_held || quiet_since.elapsed() >= QUIET {
            return Ok(());
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The file beside `location` that has all of the original: an earlier migration may have left
/// others.
fn original_kept(location: &Location, original: &File) -> io::Result<Option<PathBuf>> {
    let mut start = location.name.clone();
    start.push(".");
    for (name, _) in location.folder.list()? {
        let beside = name.as_encoded_bytes();
        if beside.starts_with(start.as_encoded_bytes())
            && let Ok(file) = location.folder.file(&name, Access::Read)
            && same_content(&file, original)?
        {
            return Ok(Some(location.folder.path().join(name)));
        }
    }
    Ok(None)
}

fn same_content(a: &File, mut b: &File) -> io::Result<bool> {
    if a.metadata()?.len() != b.metadata()?.len() {
        return Ok(false);
    }
    b.rewind()?;
    let (mut a, mut b) = (BufReader::new(a), BufReader::new(b));
    loop {
        let (left, right) = (a.fill_buf()?, b.fill_buf()?);
        let common = left.len().min(right.len());
        if common == 0 {
            return Ok(left.len() == right.len());
        }
        if left.get(..common) != right.get(..common) {
            return Ok(false);
        }
        a.consume(common);
        b.consume(common);
    }
}
