//! `treelined doctor --repair`: reports the changes of a repair, or with `--dry-run` those it would make. The log does
//! the repair.

use super::late_writes;
use super::screen::{Screen, Style};
use super::tree::count;
use crate::durability::Durability;
use crate::log::OpenedLog;
use crate::log::repair::{self, RepairReport};
use crate::os::file::Location;
use crate::session::Session;
use crate::terminal;
use std::io::{self, Write};
use std::path::Path;

/// Repairs one file; false if a necessary repair was not done.
pub(super) fn mend(screen: &mut Screen, path: &Path, dry_run: bool) -> anyhow::Result<bool> {
    writeln!(screen)?;
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

fn carry_over(screen: &mut Screen, replaced: OpenedLog) -> anyhow::Result<()> {
    let session = Session::new(replaced, false, Durability::Always);
    super::small_runtime()?.block_on(async {
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
