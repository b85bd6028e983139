//! `treelined export --review`: shows what would be replaced before the export is written, and
//! asks.

use super::daemon::{ChildDaemon, RawJson};
use super::failure::{ShellError, USAGE};
use super::progress::call_with_progress;
use super::words::count;
use anyhow::Context;
use serde::Deserialize;
use serde_json::Value;
use std::io::{self, BufRead, Write};
use treelined_core::terminal;

/// The decisions of a person, as params of `export_session`.
#[derive(Debug, Clone, Default)]
pub(super) struct ReviewChoices {
    /// The ids of secrets that stay.
    pub keep: Vec<String>,
    /// The ids of texts that are replaced in addition.
    pub replace: Vec<String>,
    /// Words that are replaced in addition.
    pub words: Vec<String>,
}

#[derive(Deserialize)]
struct ReviewAnswer {
    review: Vec<ReviewedSecret>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReviewedSecret {
    id: String,
    kind: String,
    replaced: bool,
    shown: String,
    length: u64,
    count: u64,
    entry_ids: Vec<String>,
}

const HELP: &str = "keep NUMBER or replace NUMBER changes one, word TEXT replaces a word, yes writes the export, no ends";

/// The most ids of entries that are shown for one secret.
const SHOWN_IDS: usize = 3;

/// The secrets of an export with these params, as listed by the daemon.
pub(super) fn list(
    daemon: &mut ChildDaemon,
    mut params: Value,
    has_bar: bool,
) -> anyhow::Result<RawJson> {
    if let Some(params) = params.as_object_mut() {
        params.insert("review".to_owned(), true.into());
    }
    call_with_progress(daemon, "export_session", &params.to_string(), has_bar)
}

/// Shows the list on stderr and asks on stdin. Fails unless the person answers yes.
pub(super) fn ask(answered: &RawJson, choices: &mut ReviewChoices) -> anyhow::Result<()> {
    let answer: ReviewAnswer =
        serde_json::from_str(answered.get()).context("read the answer to export_session")?;
    let mut secrets = answer.review;
    let mut stderr = io::stderr().lock();
    show(&mut stderr, &secrets)?;
    writeln!(stderr, "{HELP}")?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let (verb, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        let number = rest.trim().parse::<usize>().ok();
        let chosen = number.and_then(|number| secrets.get_mut(number.checked_sub(1)?));
        match (verb, chosen) {
            ("y" | "yes", _) => {
                take(&secrets, choices);
                return Ok(());
            }
            ("n" | "no", _) => break,
            ("w" | "word", _) if !rest.trim().is_empty() => {
                choices.words.push(rest.trim().to_owned());
                writeln!(stderr, "the word is replaced too")?;
            }
            ("k" | "keep" | "r" | "replace", Some(secret)) => {
                secret.replaced = verb.starts_with('r');
                let number = number.unwrap_or_default();
                writeln!(stderr, "{}", terminal::line(&line_of(number, secret)))?;
            }
            _ => writeln!(stderr, "{HELP}")?,
        }
    }
    Err(ShellError::failed(
        "nothing was written",
        "yes, to write the export",
    ))
}

/// Takes the decisions that differ from the decisions of the daemon.
fn take(secrets: &[ReviewedSecret], choices: &mut ReviewChoices) {
    let ids = |of_unknown: bool| {
        let differs = move |secret: &&ReviewedSecret| {
            (secret.kind == "unknown") == of_unknown && secret.replaced == of_unknown
        };
        secrets
            .iter()
            .filter(differs)
            .map(|secret| secret.id.clone())
    };
    let is_listed = |id: &String| secrets.iter().any(|secret| secret.id == *id);
    choices.keep.retain(|id| !is_listed(id));
    choices.replace.retain(|id| !is_listed(id));
    choices.keep.extend(ids(false));
    choices.replace.extend(ids(true));
}

fn show(out: &mut impl Write, secrets: &[ReviewedSecret]) -> io::Result<()> {
    let unknown = secrets.iter().position(|secret| secret.kind == "unknown");
    let (found, others) = secrets.split_at(unknown.unwrap_or(secrets.len()));
    writeln!(out, "{}:", count(found.len() as u64, "secret", "secrets"))?;
    for (at, secret) in found.iter().enumerate() {
        writeln!(out, "{}", terminal::line(&line_of(at + 1, secret)))?;
    }
    if !others.is_empty() {
        let number = count(others.len() as u64, "text", "texts");
        writeln!(out, "{number} that may be secret:")?;
    }
    for (at, secret) in others.iter().enumerate() {
        let number = found.len() + at + 1;
        writeln!(out, "{}", terminal::line(&line_of(number, secret)))?;
    }
    Ok(())
}

fn line_of(number: usize, secret: &ReviewedSecret) -> String {
    let state = match secret.replaced {
        true => "is replaced",
        false => "stays",
    };
    let mut ids = secret
        .entry_ids
        .iter()
        .take(SHOWN_IDS)
        .cloned()
        .collect::<Vec<_>>();
    if secret.entry_ids.len() > SHOWN_IDS {
        ids.push("…".to_owned());
    }
    let places = match ids.is_empty() {
        true => String::new(),
        false => format!(" in {}", ids.join(", ")),
    };
    let length = count(secret.length, "character", "characters");
    format!(
        "{number:>4}  {state:<11}  {}  {} ({length}), {} ×{places}",
        secret.kind, secret.shown, secret.count
    )
}

/// Fails if the format has nothing to review.
pub(super) fn check(is_session_file: bool) -> anyhow::Result<()> {
    if is_session_file {
        let message = "a session file keeps all secrets: there is nothing to review";
        return Err(ShellError::new(
            USAGE,
            message,
            "--format trace, for a session file without secrets",
        )
        .into());
    }
    Ok(())
}
