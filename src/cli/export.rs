//! `treelined export`: writes a session as a page, Markdown, text, a session file or data.

use super::daemon::{ChildDaemon, RawJson};
use super::entry_choice;
use super::export_review::{self, ReviewChoices};
use super::failure::{ShellError, USAGE, warn};
use super::opened::{OpenedSession, SessionUse, open};
use super::options::Options;
use super::progress::{self, call_with_progress};
use super::scratch::Scratch;
use super::session_choice::SessionChoice;
use super::words::count;
use anyhow::Context;
use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use treelined_core::id::random_token;
use treelined_core::terminal;
use treelined_files::clock::SystemSource;
use treelined_redact::{ValueHash, secret_variables};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  treelined export --html -o talk.html                a page of the newest session of this directory
  treelined export \"A tour\" --markdown | less        the branch of the leaf as a document
  treelined export \"A tour\" --html -o tour.html --review  shows what is replaced, and asks
  treelined export a1b2c3d4 --jsonl --branch q2 -o part.jsonl
  treelined export a1b2c3d4 --format dpo > pairs.jsonl      the better and the worse answers to one prompt")]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    session: SessionChoice,
    #[command(flatten)]
    format: FormatArgs,
    /// The file to write, in place of stdout; `-` is stdout too
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    part: PartArgs,
    /// Keep keys, tokens and passwords
    #[arg(long)]
    no_redact: bool,
    /// Show what is replaced and what may be secret, and ask before the export is written; with --json only list it
    #[arg(long, conflicts_with = "no_redact")]
    review: bool,
    /// Keep this secret, by the id that --review --json prints
    #[arg(long, value_name = "ID", conflicts_with = "no_redact")]
    keep: Vec<String>,
    /// Replace this text too, by the id that --review --json prints
    #[arg(long, value_name = "ID", conflicts_with = "no_redact")]
    replace: Vec<String>,
    /// Show the home directory as ~ in paths
    #[arg(long)]
    shorten_home: bool,
    /// Replace an existing file
    #[arg(long)]
    overwrite: bool,
    /// Print the result as JSON; needs --output or --review
    #[arg(long)]
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
    /// One of the formats above, or data: `sft` and `atif` write a line for each branch, `dpo` a line for each pair of
    /// answers, `verifiers` a graph, `trace` a session file of one branch without secrets
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<NamedFormat>,
}

/// The form of an export, as `export_session` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum NamedFormat {
    Html,
    Markdown,
    Jsonl,
    Text,
    Sft,
    Dpo,
    Trace,
    Atif,
    Verifiers,
}

impl NamedFormat {
    /// A number of lines of data, in words. Each format has its own word for a line.
    fn items(self, number: u64) -> String {
        match self {
            Self::Dpo => count(number, "pair", "pairs"),
            _ => count(number, "line", "lines"),
        }
    }
}

impl FormatArgs {
    fn named(&self) -> NamedFormat {
        match self {
            Self {
                format: Some(format),
                ..
            } => *format,
            Self { html: true, .. } => NamedFormat::Html,
            Self { markdown: true, .. } => NamedFormat::Markdown,
            Self { jsonl: true, .. } => NamedFormat::Jsonl,
            _ => NamedFormat::Text,
        }
    }
}

#[derive(Debug, Clone, Args)]
#[group(multiple = false)]
struct PartArgs {
    /// Only the path to this entry, by its id, label or beginning of the id [without ENTRY: to the leaf]
    #[arg(long, value_name = "ENTRY", num_args = 0..=1, default_missing_value = "",
          add = ArgValueCompleter::new(super::entry_candidates::entries))]
    branch: Option<String>,
    /// Only this entry and all entries below it
    #[arg(long, value_name = "ENTRY",
          add = ArgValueCompleter::new(super::entry_candidates::entries))]
    subtree: Option<String>,
    /// All branches (the default for a page, a session file, pairs and a graph)
    #[arg(long)]
    tree: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExportAnswer {
    bytes: u64,
    items: Option<u64>,
    redactions: Vec<AnsweredRedaction>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnsweredRedaction {
    kind: String,
    count: u64,
    entry_ids: Vec<String>,
}

/// The exported part of the session, as params of `export_session`.
struct ExportedPart {
    scope: Option<&'static str>,
    entry: Option<String>,
}

impl PartArgs {
    /// The part of the session that is open in the daemon.
    fn of(
        &self,
        daemon: &mut ChildDaemon,
        session: &OpenedSession,
    ) -> anyhow::Result<ExportedPart> {
        let Self {
            branch,
            subtree,
            tree,
        } = self;
        let (scope, named) = match (branch, subtree, tree) {
            (Some(entry), ..) => (
                Some("branch"),
                Some(entry).filter(|entry| !entry.is_empty()),
            ),
            (_, Some(entry), _) => (Some("subtree"), Some(entry)),
            (.., true) => (Some("tree"), None),
            _ => (None, None),
        };
        let entry = match named {
            Some(text) => Some(entry_choice::find(daemon, session, text)?),
            None => None,
        };
        Ok(ExportedPart { scope, entry })
    }
}

impl ExportArgs {
    fn is_session_file(&self) -> bool {
        self.format.named() == NamedFormat::Jsonl
    }

    /// The file to write; `None` for stdout.
    fn file(&self) -> Option<&Path> {
        let output = self.output.as_deref();
        output.filter(|path| *path != Path::new("-"))
    }
}

pub(super) fn run(options: &Options, export: &ExportArgs) -> anyhow::Result<ExitCode> {
    if export.review {
        export_review::check(export.is_session_file())?;
    } else if export.json && export.file().is_none() {
        let message = "--json prints the result on stdout, where the export is";
        let remedy = "--output FILE with a name for the file";
        return Err(ShellError::new(USAGE, message, remedy).into());
    }
    let is_list = export.review && export.json;
    if export.format.named() == NamedFormat::Html
        && !is_list
        && export.file().is_none()
        && io::stdout().is_terminal()
    {
        let message = "a page is not for a terminal";
        let remedy = "--output FILE, or a pipe";
        return Err(ShellError::new(USAGE, message, remedy).into());
    }
    let mut daemon = ChildDaemon::start(options)?;
    let exported = write(&mut daemon, export);
    daemon.end()?;
    exported.map(|()| ExitCode::SUCCESS)
}

fn write(daemon: &mut ChildDaemon, export: &ExportArgs) -> anyhow::Result<()> {
    let has_bar = progress::is_wanted();
    if has_bar {
        progress::introduce(daemon, "treelined export")?;
    }
    let session = open(daemon, &export.session.query(), SessionUse::Read)?;
    let part = export.part.of(daemon, &session)?;
    if export.is_session_file() {
        warn(
            "keys, tokens and passwords stay in a session file",
            "look at it before you send it; in every other format they are replaced",
        );
    } else if export.no_redact {
        warn(
            "keys, tokens and passwords stay in the export",
            "look at it before you send it; without --no-redact they are replaced",
        );
    }
    let mut choices = ReviewChoices {
        keep: export.keep.clone(),
        replace: export.replace.clone(),
        words: Vec::new(),
    };
    if export.review {
        let asked = params(export, &part, &choices);
        let listed = export_review::list(daemon, asked, has_bar)?;
        if export.json {
            writeln!(io::stdout(), "{}", terminal::json(listed.get()))?;
            return Ok(());
        }
        export_review::ask(&listed, &mut choices)?;
    }
    let params = params(export, &part, &choices);
    let answered = match export.file() {
        Some(path) => {
            let path = std::path::absolute(path).context("find the path of the output")?;
            ask(daemon, params, &path, export.overwrite, has_bar)?
        }
        None => {
            let folder = Scratch::new("export")?;
            let path = folder.0.join("export");
            let answered = ask(daemon, params, &path, false, has_bar)?;
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
    mut params: Value,
    path: &Path,
    overwrite: bool,
    has_bar: bool,
) -> anyhow::Result<RawJson> {
    if let Some(params) = params.as_object_mut() {
        params.insert("path".to_owned(), path.display().to_string().into());
        params.insert("overwrite".to_owned(), overwrite.into());
    }
    call_with_progress(daemon, "export_session", &params.to_string(), has_bar)
}

/// The params of `export_session`, without the file.
fn params(export: &ExportArgs, part: &ExportedPart, choices: &ReviewChoices) -> Value {
    json!({
        "format": export.format.named(),
        "scope": part.scope,
        "entryId": part.entry,
        "redact": export.no_redact.then_some(false),
        "values": (!export.no_redact).then(secret_values),
        "keep": choices.keep,
        "replace": choices.replace,
        "words": choices.words,
        "home": export.shorten_home.then_some("shorten"),
    })
}

/// The hashes of the values of environment variables whose names suggest secrets. The command sends them, because a
/// shared daemon has other environment variables.
fn secret_values() -> Value {
    let salt = random_token(&SystemSource);
    let values = secret_variables(std::env::vars_os(), &[]);
    let hashes = values
        .iter()
        .filter_map(|value| ValueHash::of(salt.as_bytes(), value));
    let hashes = hashes
        .map(|hash| json!({ "length": hash.length, "check": hash.check, "sha256": hash.digits() }));
    json!({ "salt": salt, "hashes": hashes.collect::<Vec<_>>() })
}

/// Reports on stderr what was written and what was replaced.
fn report(answer: &ExportAnswer, export: &ExportArgs) -> io::Result<()> {
    let mut stderr = io::stderr().lock();
    if let Some(path) = export.file() {
        let path = path.display().to_string();
        let bytes = count(answer.bytes, "byte", "bytes");
        let items = answer
            .items
            .map(|items| export.format.named().items(items) + ", ");
        let items = items.unwrap_or_default();
        writeln!(stderr, "wrote {}: {items}{bytes}", terminal::line(&path))?;
    }
    for redaction in &answer.redactions {
        let entries = count(redaction.entry_ids.len() as u64, "entry", "entries");
        let line = format!(
            "redacted {} × {} in {entries}",
            redaction.count, redaction.kind
        );
        writeln!(stderr, "{}", terminal::line(&line))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_formats_are_those_of_the_protocol() {
        crate::cli::options::assert_values::<super::NamedFormat>("ExportFormat");
    }
}
