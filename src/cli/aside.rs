//! `treelined btw` and `treelined keep`: a question beside the conversation, in a background branch.

use super::daemon::{ChildDaemon, RawJson};
use super::drawing::DrawnRow;
use super::entry_choice;
use super::failure::{self, FAILED, NOT_FOUND, ShellError};
use super::opened::{SessionUse, open};
use super::options::Options;
use super::position;
use super::screen::Screen;
use super::session_choice::SessionQuery;
use super::session_words::WordsWanted;
use super::tree_rows::entry_row;
use anyhow::Context;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::process::{Command, ExitCode, Stdio};
use treelined_core::error::Kind;
use treelined_core::terminal;

/// The group of the branches that `treelined btw` makes.
const GROUP: &str = "btw";

#[derive(Debug, Args)]
#[command(
    override_usage = "treelined btw [OPTIONS] [SESSION] <QUESTION>",
    after_help = "\
Examples:
  treelined btw \"what is a torn line?\" --run \"claude -p\"   asks an agent, and prints what it says
  treelined btw \"is this documented?\"                      leaves the question for a client that has the session open
  treelined keep q7                                        copies the question q7 and its answer into the conversation

COMMAND gets the conversation and the question on its standard input, and prints the answer.
The branch is archived as soon as it has the answer."
)]
pub(crate) struct BtwArgs {
    /// A session by its file, id, name or beginning of the id [default: the latest of this directory]
    #[arg(value_name = "SESSION",
          add = ArgValueCompleter::new(super::entry_candidates::sessions_and_entries))]
    first: Option<String>,
    /// The question
    #[arg(value_name = "QUESTION")]
    second: Option<String>,
    /// The session of this directory with the last activity, which is the default
    #[arg(long)]
    latest: bool,
    /// A command of the shell that answers
    #[arg(long, value_name = "COMMAND")]
    run: Option<String>,
    /// Print the ids and the answer as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(
    override_usage = "treelined keep [OPTIONS] [SESSION] <ENTRY>",
    after_help = "\
Examples:
  treelined keep q7                copies the question q7 and its answer into the conversation
  treelined branches --archived    shows the questions that were answered

It appends copies of the messages of the branch at the leaf. Run again, it copies no message twice. The branch stays."
)]
pub(crate) struct KeepArgs {
    /// A session by its file, id, name or beginning of the id [default: the latest of this directory]
    #[arg(value_name = "SESSION",
          add = ArgValueCompleter::new(super::entry_candidates::sessions_and_entries))]
    first: Option<String>,
    /// An entry of the branch by its id, label or beginning of the id
    #[arg(value_name = "ENTRY", add = ArgValueCompleter::new(super::entry_candidates::entries))]
    second: Option<String>,
    /// The session of this directory with the last activity, which is the default
    #[arg(long)]
    latest: bool,
    /// Print the result of keep_branch as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Appended {
    entry_id: String,
}

/// A question and, if a command has answered it, its answer.
struct Asked {
    entry_id: String,
    row: DrawnRow,
    answer: Option<(String, String)>,
}

pub(super) fn ask(options: &Options, btw: &BtwArgs) -> anyhow::Result<ExitCode> {
    let wanted = WordsWanted {
        command: "btw",
        names: &["the question"],
    };
    let given = [&btw.first, &btw.second];
    let (session, words) = wanted.split(given.into_iter().flatten(), btw.latest)?;
    let question = words.first().copied().unwrap_or_default().trim();
    if question.is_empty() {
        return Err(wanted.wrong("the question is blank").into());
    }
    let mut daemon = ChildDaemon::shared_or_own(options)?;
    let asked = asked(&mut daemon, &session, question, btw.run.as_deref());
    daemon.end()?;
    let asked = asked?;
    let mut screen = Screen::new();
    let id = terminal::line(&asked.entry_id).into_owned();
    if btw.json {
        let answer = asked
            .answer
            .as_ref()
            .map(|(id, text)| (json!(id), json!(text)));
        let (answer_id, answer) = answer.unwrap_or_default();
        let result = json!({"entryId": asked.entry_id, "answerId": answer_id, "answer": answer});
        writeln!(screen, "{}", terminal::json(&result.to_string()))?;
    } else if let Some((_, text)) = &asked.answer {
        for line in text.lines() {
            writeln!(screen, "{}", terminal::line(line))?;
        }
        writeln!(
            screen,
            "treelined keep {id} brings it into the conversation"
        )?;
    } else {
        position::line(&mut screen, "asked", &asked.row)?;
        writeln!(
            screen,
            "treelined keep {id} brings it into the conversation once it is answered"
        )?;
    }
    screen.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn asked(
    daemon: &mut ChildDaemon,
    session: &SessionQuery,
    question: &str,
    command: Option<&str>,
) -> anyhow::Result<Asked> {
    open(daemon, session, SessionUse::Write)?;
    let leaf: Value = ask_for(daemon, "get_leaf", &json!({}))?;
    let context: Value = ask_for(daemon, "get_context", &json!({"format": "llm"}))?;
    let leaf_id = leaf.get("leafId").cloned().unwrap_or_default();
    let message = json!({"role": "user", "content": question});
    let params = json!({"message": message, "parentId": leaf_id, "keepLeaf": true, "group": GROUP});
    let question_id = ask_for::<Appended>(daemon, "append_message", &params)?.entry_id;
    let mut answer = None;
    if let Some(command) = command {
        let text = answered(command, &format!("{}{question}\n", spoken(&context)))?;
        let content = json!([{"type": "text", "text": text}]);
        let message = json!({"role": "assistant", "content": content});
        let params = json!({"message": message, "parentId": question_id, "keepLeaf": true});
        let answer_id = ask_for::<Appended>(daemon, "append_message", &params)?.entry_id;
        daemon.call(
            "archive_branch",
            &json!({"entryId": question_id}).to_string(),
        )?;
        answer = Some((answer_id, text));
    }
    Ok(Asked {
        row: entry_row(daemon, &question_id)?,
        entry_id: question_id,
        answer,
    })
}

/// The text of each message of a context, with its role, in its own paragraph.
fn spoken(context: &Value) -> String {
    let mut out = String::new();
    let messages = context.get("messages").and_then(Value::as_array);
    for message in messages.into_iter().flatten() {
        let role = message
            .get("role")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let text = match message.get("content") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(blocks)) => {
                let texts = blocks
                    .iter()
                    .filter_map(|block| block.get("text")?.as_str());
                texts.collect::<Vec<_>>().join("\n")
            }
            _ => String::new(),
        };
        if !text.trim().is_empty() {
            out += &format!("{role}: {text}\n\n");
        }
    }
    out
}

/// Runs the command with this input on stdin, and returns its output.
fn answered(command: &str, input: &str) -> anyhow::Result<String> {
    let failed = |what: String| ShellError::new(FAILED, what, "treelined btw --help");
    let mut child = Command::new("sh");
    child.args(["-c", command]);
    child.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = child.spawn().context("start the shell")?;
    let mut stdin = child.stdin.take().context("the input of the command")?;
    let text = input.to_owned();
    // The input is written by a thread, since the command may print before it has read everything, or
    // may not read at all.
    let writing = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = child.wait_with_output().context("wait for the command")?;
    match writing.join() {
        Ok(Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => {
            return Err(error).context("write to the command");
        }
        _ => {}
    }
    if !output.status.success() {
        return Err(failed(format!("the command failed: {}", output.status)).into());
    }
    let answer = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match answer.is_empty() {
        true => Err(failed("the command printed no answer".to_owned()).into()),
        false => Ok(answer),
    }
}

pub(super) fn keep(options: &Options, keep: &KeepArgs) -> anyhow::Result<ExitCode> {
    let wanted = WordsWanted {
        command: "keep",
        names: &["an entry of the branch"],
    };
    let given = [&keep.first, &keep.second];
    let (session, words) = wanted.split(given.into_iter().flatten(), keep.latest)?;
    let entry = words.first().copied().unwrap_or_default();
    let mut daemon = ChildDaemon::shared_or_own(options)?;
    let kept = kept(&mut daemon, &session, entry);
    daemon.end()?;
    let (answered, row, what) = kept?;
    let mut screen = Screen::new();
    match keep.json {
        true => writeln!(screen, "{}", terminal::json(answered.get()))?,
        false => position::line(&mut screen, what, &row)?,
    }
    screen.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn kept(
    daemon: &mut ChildDaemon,
    session: &SessionQuery,
    entry: &str,
) -> anyhow::Result<(RawJson, DrawnRow, &'static str)> {
    let session = open(daemon, session, SessionUse::Write)?;
    let entry = entry_choice::find(daemon, &session, entry)?;
    let answered = match daemon.call("keep_branch", &json!({"entryId": entry}).to_string()) {
        Err(error) if failure::kind(&error) == Some(Kind::InvalidParams) => {
            let message =
                format!("the entry {entry:?} is in no branch that grew in the background");
            let remedy = "treelined branches SESSION --archived";
            return Err(ShellError::new(NOT_FOUND, message, remedy).into());
        }
        answered => answered?,
    };
    let kept: Kept =
        serde_json::from_str(answered.get()).context("read the answer to keep_branch")?;
    let row = entry_row(daemon, &kept.leaf_id)?;
    let what = match kept.durability.as_str() {
        "none" => "kept before; now at",
        _ => "now at",
    };
    Ok((answered, row, what))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    leaf_id: String,
    durability: String,
}

fn ask_for<T: serde::de::DeserializeOwned>(
    daemon: &mut ChildDaemon,
    method: &str,
    params: &Value,
) -> anyhow::Result<T> {
    let answered = daemon.call(method, &params.to_string())?;
    serde_json::from_str(answered.get()).with_context(|| format!("read the answer to {method}"))
}
