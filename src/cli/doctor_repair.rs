//! `treelined doctor --repair`: repairs session files and reports the changes. With `--dry-run` it reports the changes
//! that it would make. The module `log` makes the repair.

use super::late_writes;
use super::options::Options;
use super::screen::{Screen, Style};
use super::words::count;
use std::io::{self, Write};
use std::path::Path;
use treelined_core::durability::Durability;
use treelined_core::error::Result;
#[cfg(not(feature = "team"))]
use treelined_core::error::{Error, Kind};
use treelined_core::terminal;
use treelined_files::log::OpenedLog;
use treelined_files::log::repair::{self, RepairReport};
use treelined_files::log::upstream;
use treelined_files::os::file::Location;
use treelined_files::session::Session;

/// Repairs one file; returns false if the file needs a repair that was not made.
pub(super) fn mend(
    options: &Options,
    screen: &mut Screen,
    path: &Path,
    dry_run: bool,
) -> anyhow::Result<bool> {
    writeln!(screen)?;
    if is_replica(path) {
        return mend_replica(options, screen, path, dry_run);
    }
    if !dry_run {
        late_writes::warn(screen)?;
    }
    match Location::of_path(path).and_then(|at| repair::repair(&at, dry_run)) {
        Ok(report) => {
            tell(screen, &report)?;
            let is_done = report.replaced.is_some() || report.lines == 0;
            if let Some(replaced) = report.replaced {
                screen.flush()?;
                carry_over(screen, replaced)?;
            }
            Ok(is_done)
        }
        Err(error) => {
            let kind = screen.style(Style::Red, error.kind.name());
            writeln!(
                screen,
                "  not repaired: {kind}: {}",
                terminal::line(&error.message)
            )?;
            Ok(false)
        }
    }
}

/// Whether the file is a replica of a team's stream (fleet.md).
pub(super) fn is_replica(path: &Path) -> bool {
    Location::of_path(path).is_ok_and(|at| upstream::is_replica(&at))
}

/// Makes a replica again from its stream, since a repaired replica would differ from the stream.
fn mend_replica(
    options: &Options,
    screen: &mut Screen,
    path: &Path,
    dry_run: bool,
) -> anyhow::Result<bool> {
    if dry_run {
        writeln!(
            screen,
            "  a repair would make the file again from the team's stream"
        )?;
        return Ok(true);
    }
    let remade = Location::of_path(path).and_then(|at| remake(options, at));
    match &remade {
        Ok(()) => writeln!(screen, "  made again from the team's stream")?,
        Err(error) => {
            let kind = screen.style(Style::Red, error.kind.name());
            let message = terminal::line(&error.message);
            writeln!(screen, "  not repaired: {kind}: {message}")?;
        }
    }
    Ok(remade.is_ok())
}

#[cfg(feature = "team")]
fn remake(options: &Options, at: Location) -> Result<()> {
    super::fleet::remake(options, at)
}

#[cfg(not(feature = "team"))]
fn remake(_: &Options, _: Location) -> Result<()> {
    let why = "the file is a replica of the team's stream; a build with the feature `nats` or `postgres` makes it again from there";
    Err(Error::new(Kind::LogMisconfigured, why))
}

fn carry_over(screen: &mut Screen, replaced: OpenedLog) -> anyhow::Result<()> {
    let session = Session::new(replaced, false, Durability::Always);
    super::runtime::small_runtime()?.block_on(async {
        late_writes::commit(&session).await?;
        late_writes::carry_over(&session, screen).await
    })
}

fn tell(screen: &mut Screen, report: &RepairReport) -> io::Result<()> {
    if report.lines == 0 {
        return writeln!(screen, "  no line needs repair");
    }
    let lines = count(report.lines as u64, "line", "lines");
    let bytes = count(report.quarantined_bytes, "byte", "bytes");
    let entries = count(report.recovered as u64, "entry", "entries");
    if report.replaced.is_none() {
        return writeln!(
            screen,
            "  a repair would mend {lines}, move {bytes} to quarantine and keep {entries} found in them"
        );
    }
    writeln!(
        screen,
        "  repaired: {lines} mended, {entries} found in them kept"
    )?;
    match &report.quarantine {
        Some(kept) => {
            let kept = kept.display().to_string();
            writeln!(screen, "  {bytes} are kept in {}", terminal::line(&kept))
        }
        None => Ok(()),
    }
}
