//! The parts of `treelined doctor --cluster` for all kinds of servers.

use super::screen::{Screen, Style};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use treelined_core::terminal;
use treelined_files::os::file::owner_and_mode;

/// A line of the report.
pub(super) fn fact(screen: &Screen, name: &str, value: &str) -> String {
    let name = screen.style(Style::Dim, &format!("{name:<9}"));
    format!("  {name}{}", terminal::line(value))
}

/// Prints the problems. The exit code is 0 if there are none.
pub(super) fn end(mut screen: Screen, problems: &[String]) -> anyhow::Result<ExitCode> {
    for problem in problems {
        let name = screen.style(Style::Red, "problem");
        writeln!(screen, "  {name}: {}", terminal::line(problem))?;
    }
    screen.flush()?;
    Ok(match problems.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// The problems of files with secrets that other users of this machine can read.
pub(super) fn exposed(secrets: &[(&str, Option<&Path>)]) -> Vec<String> {
    let problem = |(what, file): &(&str, Option<&Path>)| {
        let file = (*file)?;
        let (_, mode) = owner_and_mode(&file.metadata().ok()?).ok()?;
        let name = file.display();
        (mode & 0o077 != 0).then(|| {
            format!("other users can read {what} {name}: `chmod 600 {name}` keeps them out")
        })
    };
    secrets.iter().filter_map(problem).collect()
}
