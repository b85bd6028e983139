//! `treelined migrate`: rewrites a file of version 1 or 2 as version 3 (session-file.md §2), like the first
//! write to it.
//!
//! A session rewrites its file before a commit. This command makes a commit without lines.

use super::late_writes;
use super::options::Options;
use super::screen::Screen;
use super::session_choice::NamedSession;
use anyhow::Context;
use clap::Args;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use treelined_core::error::{Error, Kind};
use treelined_core::terminal;
use treelined_files::log::header::CURRENT_VERSION;
use treelined_files::log::{Log, OpenedLog};
use treelined_files::os::file::Location;
use treelined_files::os::handle::HandleAccess;
use treelined_files::session::Session;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  treelined migrate old.jsonl    the original is kept beside it")]
pub(crate) struct Migrate {
    #[command(flatten)]
    session: NamedSession,
}

pub(super) fn run(options: &Options, migrate: &Migrate) -> anyhow::Result<ExitCode> {
    let location = Location::of_path(&migrate.session.query().find_alone(options)?)?;
    // This handle still leads to the original after another file has its name.
    let original = location.folder.file(&location.name, HandleAccess::Read)?;
    let opened = Log::open(location.clone())?;
    let version = opened.log.version();
    let path = location.path();
    let path = path.display().to_string();
    let path = terminal::line(&path);
    let mut screen = Screen::new();
    if version > CURRENT_VERSION {
        let newer = opened.log.version_text();
        let newer = format!("{path} is of {newer}, newer than this program");
        return Err(Error::new(Kind::VersionUnsupported, newer).into());
    }
    if version == CURRENT_VERSION {
        writeln!(screen, "{path} is version {version} already")?;
        screen.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    late_writes::warn(&mut screen)?;
    rewrite(options, opened, &original, &mut screen)?;
    Ok(ExitCode::SUCCESS)
}

/// Migrates the file at this location, and reports it on stderr.
#[cfg(feature = "team")]
pub(super) fn quietly(options: &Options, location: &Location) -> anyhow::Result<()> {
    let original = location.folder.file(&location.name, HandleAccess::Read)?;
    let opened = Log::open(location.clone())?;
    rewrite(options, opened, &original, &mut io::stderr())
}

/// Migrates a file, and copies the lines that other programs still write to the old file. `out` receives
/// messages for a person.
fn rewrite(
    options: &Options,
    opened: OpenedLog,
    original: &File,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let version = opened.log.version();
    let location = opened.log.location().cloned();
    let location = location.context("the session has no file")?;
    let session = Session::new(opened, false, options.config()?.daemon.durability);
    let runtime = super::runtime::small_runtime()?;
    runtime.block_on(async {
        treelined_files::os::signal::outlive_the_size_limit()?;
        anyhow::Ok(late_writes::commit(&session).await?)
    })?;
    let kept = original_kept(&location, original).context("look for the original")?;
    let path = location.path().display().to_string();
    writeln!(
        out,
        "{} is version {CURRENT_VERSION} now; it was {version}",
        terminal::line(&path)
    )?;
    if let Some(kept) = kept {
        let kept = kept.display().to_string();
        writeln!(out, "the original is kept as {}", terminal::line(&kept))?;
    }
    out.flush()?;
    runtime.block_on(late_writes::carry_over(&session, out))
}

/// The file beside `location` that has the same bytes as the original. Earlier migrations may have left other
/// files.
fn original_kept(location: &Location, original: &File) -> io::Result<Option<PathBuf>> {
    let mut start = location.name.clone();
    start.push(".");
    for (name, _) in location.folder.list()? {
        let beside = name.as_encoded_bytes();
        if beside.starts_with(start.as_encoded_bytes())
            && let Ok(file) = location.folder.file(&name, HandleAccess::Read)
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
