//! `treelined export`: writes a session as a page, Markdown, text or a session file.

use super::Options;
use super::daemon::{ChildDaemon, ErrorResponse, RawJson};
use super::progress::call_with_progress;
use super::scratch::Scratch;
use super::session_choice::{ChoiceError, SessionChoice};
use crate::terminal;
use anyhow::Context;
use clap::Args;
use serde::Deserialize;
use serde_json::json;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The exit code for arguments that do not fit together, or that the daemon refuses.
const USAGE: u8 = 2;
/// The exit code if the session or the entry does not exist.
const NOT_FOUND: u8 = 3;

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    session: SessionChoice,
    #[command(flatten)]
    format: FormatArgs,
    /// The file to write, in place of stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    part: PartArgs,
    /// Keep keys, tokens and passwords
    #[arg(long)]
    no_redact: bool,
    /// Show the home directory as ~ in paths
    #[arg(long)]
    shorten_home: bool,
    /// Replace an existing file
    #[arg(long)]
    overwrite: bool,
    /// Print the result as JSON; needs --output
    #[arg(long, requires = "output")]
    json: bool,
}

#[derive(Debug, Clone, Args)]
#[group(required = true, multiple = false)]
struct FormatArgs {
    /// A page that opens in a browser, in one file
    #[arg(long)]
    html: bool,
    /// A document
    #[arg(long)]
    markdown: bool,
    /// A session file, for this program and pi
    #[arg(long)]
    jsonl: bool,
    /// Plain text
    #[arg(long)]
    text: bool,
}

#[derive(Debug, Clone, Args)]
#[group(multiple = false)]
struct PartArgs {
    /// Only the path to this entry; without an id, to the leaf
    #[arg(long, value_name = "ENTRY", num_args = 0..=1, default_missing_value = "")]
    branch: Option<String>,
    /// Only this entry and all entries below it
    #[arg(long, value_name = "ENTRY")]
    subtree: Option<String>,
    /// All branches (the default for a page and a session file)
    #[arg(long)]
    tree: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExportAnswer {
    bytes: u64,
    redactions: Vec<AnsweredRedaction>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnsweredRedaction {
    kind: String,
    count: u64,
    entry_ids: Vec<String>,
}

pub(super) fn run(options: &Options, export: &ExportArgs) -> anyhow::Result<ExitCode> {
    if export.format.html && export.output.is_none() && io::stdout().is_terminal() {
        let message = "a page needs --output FILE, or a pipe";
        return Ok(refuse(message, USAGE));
    }
    let mut daemon = ChildDaemon::start(options)?;
    let exported = write(&mut daemon, export);
    daemon.end()?;
    match exported {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => match exit_code(&error) {
            Some(code) => Ok(refuse(&error.to_string(), code)),
            None => Err(error),
        },
    }
}

fn refuse(message: &str, code: u8) -> ExitCode {
    // There is no other place for the message.
    let _unsaid = writeln!(io::stderr(), "treelined: {message}");
    ExitCode::from(code)
}

/// The exit code of errors that are neither success nor failure.
fn exit_code(error: &anyhow::Error) -> Option<u8> {
    if let Some(choice) = error.downcast_ref::<ChoiceError>() {
        return Some(choice.exit_code());
    }
    let answered = error.downcast_ref::<ErrorResponse>()?;
    match answered.kind().as_deref() {
        Some("invalidParams") => Some(USAGE),
        Some("entryNotFound" | "sessionNotFound") => Some(NOT_FOUND),
        _ => None,
    }
}

fn write(daemon: &mut ChildDaemon, export: &ExportArgs) -> anyhow::Result<()> {
    let has_bar = io::stderr().is_terminal();
    if has_bar {
        super::progress::introduce(daemon, "treelined export")?;
    }
    let session = export.session.find(daemon)?;
    let opening = json!({ "path": session.display().to_string(), "mode": "read" });
    daemon.call("open_session", &opening.to_string())?;
    if export.no_redact && !export.format.jsonl {
        let note = "secrets are not redacted: look at the export before you send it";
        writeln!(io::stderr(), "treelined: {note}")?;
    }
    let answered = match &export.output {
        Some(path) => {
            let path = std::path::absolute(path).context("find the path of the output")?;
            ask(daemon, export, &path, export.overwrite, has_bar)?
        }
        None => {
            let folder = Scratch::new("export")?;
            let path = folder.0.join("export");
            let answered = ask(daemon, export, &path, false, has_bar)?;
            let mut file = File::open(&path).context("read the export")?;
            io::copy(&mut file, &mut io::stdout().lock())?;
            answered
        }
    };
    let answer: ExportAnswer =
        serde_json::from_str(answered.get()).context("read the answer to export_session")?;
    if export.json {
        writeln!(io::stdout(), "{}", terminal::json(answered.get()))?;
        return Ok(());
    }
    report(&answer, export)?;
    Ok(())
}

fn ask(
    daemon: &mut ChildDaemon,
    export: &ExportArgs,
    path: &Path,
    overwrite: bool,
    has_bar: bool,
) -> anyhow::Result<RawJson> {
    let FormatArgs {
        html,
        markdown,
        jsonl,
        ..
    } = export.format;
    let format = match (html, markdown, jsonl) {
        (true, ..) => "html",
        (_, true, _) => "markdown",
        (.., true) => "jsonl",
        _ => "text",
    };
    let PartArgs {
        branch,
        subtree,
        tree,
    } = &export.part;
    let (scope, entry) = match (branch, subtree, tree) {
        (Some(entry), ..) => (
            Some("branch"),
            Some(entry).filter(|entry| !entry.is_empty()),
        ),
        (_, Some(entry), _) => (Some("subtree"), Some(entry)),
        (.., true) => (Some("tree"), None),
        _ => (None, None),
    };
    let params = json!({
        "format": format,
        "scope": scope,
        "entryId": entry,
        "path": path.display().to_string(),
        "overwrite": overwrite,
        "redact": export.no_redact.then_some(false),
        "home": export.shorten_home.then_some("shorten"),
    });
    call_with_progress(daemon, "export_session", &params.to_string(), has_bar)
}

/// Says on stderr what was written and what was replaced.
fn report(answer: &ExportAnswer, export: &ExportArgs) -> io::Result<()> {
    let mut stderr = io::stderr().lock();
    if let Some(path) = &export.output {
        let path = path.display().to_string();
        let bytes = super::tree::count(answer.bytes, "byte", "bytes");
        writeln!(stderr, "wrote {}: {bytes}", terminal::line(&path))?;
    }
    for redaction in &answer.redactions {
        let entries = super::tree::count(redaction.entry_ids.len() as u64, "entry", "entries");
        let line = format!(
            "redacted {} × {} in {entries}",
            redaction.count, redaction.kind
        );
        writeln!(stderr, "{}", terminal::line(&line))?;
    }
    Ok(())
}
