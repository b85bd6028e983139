//! `treelined schema` and `treelined completions`: files that are generated from the program.

use super::Arguments;
use super::screen::Screen;
use crate::schema;
use crate::terminal;
use anyhow::Context;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// The folder for the documents; created if missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

/// Writes the documents of the protocol and the file format.
pub(super) fn schema(schema: &Schema) -> anyhow::Result<ExitCode> {
    let Schema { out } = schema;
    std::fs::create_dir_all(out).with_context(|| format!("make {}", out.display()))?;
    let mut screen = Screen::new();
    for (name, text) in schema::documents() {
        let path = out.join(name);
        std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        writeln!(screen, "{}", terminal::line(&path.display().to_string()))?;
    }
    screen.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Prints a completion script.
pub(super) fn completions(completions: &Completions) -> anyhow::Result<ExitCode> {
    // The script is written into memory first, since the generator panics if it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(
        completions.shell,
        &mut Arguments::command(),
        "treelined",
        &mut script,
    );
    let mut screen = Screen::new();
    screen.write_all(&script)?;
    screen.flush()?;
    Ok(ExitCode::SUCCESS)
}
