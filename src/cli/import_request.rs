//! The arguments of `treelined import` as a request to a daemon, and its answer.

use super::candidates;
use super::daemon::{ChildDaemon, RawJson};
use super::progress::{self, call_with_progress};
use super::tool_names;
use super::words::count;
use anyhow::Context;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Deserialize;
use serde_json::json;
use std::path::PathBuf;
use treelined_core::id::Source;
use treelined_core::terminal;
use treelined_core::timestamp;
use treelined_files::clock::SystemSource;
use treelined_import::Tool;
use treelined_wire::{ImportedFile, ImportedSession};

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  treelined import                          everything new, from all tools
  treelined import --dry-run                shows what would be imported
  treelined import --from codex --cwd .     the conversations of Codex in this directory
  treelined import ~/Downloads/export.zip   an export of ChatGPT or Claude.ai, as downloaded
  treelined import --watch                  again whenever a tool has written something
  treelined import --redact                 from now on without secrets, in all imports
  treelined import --final                  with answers that are held back because they may still grow
  treelined import --hook claude-code       the conversation that a hook names on stdin (`treelined setup` writes the hook)")]
pub(crate) struct ImportArgs {
    /// Files and folders [default: the folders where the tools keep their sessions]
    #[arg(value_name = "PATH")]
    pub(super) paths: Vec<PathBuf>,
    /// The tool that has written the conversations
    #[arg(long, value_parser = tool_names::tool_or_auto(), default_value = "auto")]
    pub(super) from: String,
    /// Only conversations of this working directory
    #[arg(long, value_name = "DIR")]
    pub(super) cwd: Option<PathBuf>,
    /// Only conversations with activity since then: 2w, 2026-11-22
    #[arg(long, value_name = "DATE")]
    pub(super) since: Option<String>,
    /// Write nothing; show what would be imported
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Import forks as separate sessions, not as branches
    #[arg(long)]
    pub(super) split: bool,
    /// Also import the end of conversations that may still grow: without end mark, and changed in the last 10 minutes
    #[arg(long)]
    pub(super) r#final: bool,
    /// Also import conversations that exceed the limits, for instance a small file that becomes very large
    #[arg(long)]
    pub(super) large: bool,
    /// From now on, replace secrets in what imports write, and keep no sources; earlier imports do not change
    #[arg(long, conflicts_with_all = ["hook", "forget"])]
    pub(super) redact: bool,
    /// From now on, replace no secrets
    #[arg(long, conflicts_with_all = ["redact", "hook", "forget"])]
    pub(super) no_redact: bool,
    /// Import this session again, also if it was deleted, and move its old file to the trash. SESSION-ID is its id, or
    /// its id in the tool; exit code 3 if it does not come from an import
    #[arg(long, value_name = "SESSION-ID", add = ArgValueCompleter::new(candidates::all_ids))]
    pub(super) again: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Import again whenever a tool has written something, until interrupted
    #[arg(long, conflicts_with_all = ["dry_run", "again", "forget"])]
    pub(super) watch: bool,
    /// Import in the background the conversation that a hook of this tool names, in JSON on stdin or as PATH. The exit
    /// code is always 0, and failures are in .imports/hooks.log of the session directory
    #[arg(long, value_name = "TOOL", value_parser = tool_names::agent(), conflicts_with_all = ["watch", "again", "forget"])]
    pub(super) hook: Option<Tool>,
    /// Import what hooks have asked for
    #[arg(long, hide = true)]
    pub(super) requested: bool,
    /// Delete the kept sources of this imported session, and import nothing. SESSION-ID is its id, or its id in the
    /// tool; exit code 3 if it does not come from an import
    #[arg(long, value_name = "SESSION-ID", conflicts_with_all = ["paths", "again", "dry_run"],
          add = ArgValueCompleter::new(candidates::all_ids))]
    pub(super) forget: Option<String>,
}

impl ImportArgs {
    /// The line that says how later imports treat secrets; `None` if the options do not change this.
    pub(super) fn said_of_redaction(&self) -> Option<&'static str> {
        let redacts = self.redaction().filter(|_| !self.dry_run)?;
        Some(match redacts {
            true => {
                "secrets are replaced in all imports from now on, until treelined import --no-redact"
            }
            false => {
                "secrets are not replaced in imports from now on; treelined import --again SESSION-ID writes an earlier one anew"
            }
        })
    }

    /// Whether secrets are replaced from now on; `None` if the options do not change this.
    fn redaction(&self) -> Option<bool> {
        match (self.redact, self.no_redact) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        }
    }
}

#[derive(Deserialize)]
pub(super) struct Imported {
    pub(super) sessions: Vec<ImportedSession>,
    pub(super) files: Vec<ImportedFile>,
    pub(super) totals: Totals,
    #[serde(default)]
    pub(super) places: Vec<Place>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Totals {
    pub(super) files: u64,
    pub(super) unchanged: u64,
    pub(super) failed: u64,
    pub(super) entries_added: u64,
    pub(super) created: u64,
    pub(super) held_until: Option<String>,
}

/// A place where a tool keeps its conversations.
#[derive(Deserialize)]
pub(super) struct Place {
    pub(super) tool: String,
    pub(super) path: String,
    pub(super) exists: bool,
    pub(super) variables: Vec<String>,
}

pub(super) fn ask(daemon: &mut ChildDaemon, import: &ImportArgs) -> anyhow::Result<RawJson> {
    let is_drawn = progress::is_wanted();
    if is_drawn {
        progress::introduce(daemon, "treelined import")?;
    }
    let absolute = |path: &PathBuf| {
        let path = std::path::absolute(path).context("find the path")?;
        anyhow::Ok(path.display().to_string())
    };
    let paths = import.paths.iter().map(absolute);
    let params = json!({
        "from": import.from,
        "paths": paths.collect::<anyhow::Result<Vec<_>>>()?,
        "cwd": import.cwd.as_ref().map(absolute).transpose()?,
        "since": import.since,
        "dryRun": import.dry_run,
        "split": import.split,
        "final": import.r#final,
        "large": import.large,
        "redact": import.redaction(),
        "again": import.again,
    });
    call_with_progress(daemon, "import_sessions", &params.to_string(), is_drawn)
}

/// Explains how entries that are held back are imported later.
pub(super) const HELD: &str = "held entries may still grow; they are imported after this time, when their tool writes more, or with --final";

/// The number of held-back entries of a session, and the time when an import takes the last of them; `None` if there
/// are none.
pub(super) fn held(session: &ImportedSession) -> Option<String> {
    let until = session.held_until.as_deref().and_then(timestamp::parse)?;
    let left = until.saturating_sub(SystemSource.now_ms()).max(0);
    let left = match u64::try_from(left).unwrap_or(0).div_ceil(1000) {
        seconds @ 0..120 => count(seconds, "second", "seconds"),
        seconds => format!("{} minutes", seconds.div_ceil(60)),
    };
    let name = session.name.as_deref().unwrap_or(&session.session_id);
    let entries = count(session.held, "entry", "entries");
    let line = format!("{}: {entries} of {name}, for {left} at most", session.tool);
    Some(format!("held {}", terminal::line(&line)))
}
