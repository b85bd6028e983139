//! `treelined schema` and `treelined man`: write files that are generated from the program.

use super::completions::{COMPANIONS, help_of};
use super::screen::Screen;
use anyhow::Context;
use clap::{Args, Command};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use treelined_core::terminal;
use treelined_wire::schema;

#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// The folder for the documents; created if missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The folder for the pages; created if missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
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

/// Writes a man page for this program, for each of its commands, and for each program of another package that is
/// beside it. `program` is the command line of this program.
pub(super) fn man(man: &Man, program: Command) -> anyhow::Result<ExitCode> {
    let Man { out } = man;
    std::fs::create_dir_all(out).with_context(|| format!("make {}", out.display()))?;
    clap_mangen::generate_to(program, out)
        .with_context(|| format!("write the pages into {}", out.display()))?;
    for name in COMPANIONS {
        if let Some(help) = help_of(name, None) {
            let path = out.join(format!("{name}.1"));
            let page = page_of_help(name, &help);
            std::fs::write(&path, page).with_context(|| format!("write {}", path.display()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A man page whose description is the help of the program.
fn page_of_help(name: &str, help: &str) -> String {
    let about = roff(help.lines().next().unwrap_or_default());
    let help: Vec<String> = help.lines().map(roff).collect();
    let version = env!("CARGO_PKG_VERSION");
    format!(
        ".TH {name} 1 \"\" \"treelined {version}\"\n.SH NAME\n{} \\- {about}\n.SH DESCRIPTION\n.nf\n{}\n.fi\n\
         .SH SEE ALSO\ntreelined(1)\n",
        roff(name),
        help.join("\n")
    )
}

/// A line of text, with the characters that have a meaning in roff escaped.
fn roff(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-");
    match line.starts_with(['.', '\'']) {
        true => format!("\\&{line}"),
        false => line,
    }
}
