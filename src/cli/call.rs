//! `treelined call`: makes one call, and prints its result to stdout or its error object to stderr.

use super::daemon::{ChildDaemon, RawJson};
use super::failure::ErrorResponse;
use super::failure::{FAILED, NOT_FOUND, ShellError, USAGE};
use super::options::Options;
use super::pretty::pretty;
use super::session_choice::SessionQuery;
use super::veto::Verdict;
use anyhow::Context;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde_json::json;
use std::io::{self, IsTerminal, Read, Write};
use std::process::ExitCode;
use treelined_core::terminal;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  treelined call list_sessions --pretty
  treelined call get_context --latest
  treelined call append_message --open \"A tour\" '{\"message\":{\"role\":\"user\",\"content\":\"On.\"}}'

An error is printed to stderr: as a JSON object, at a terminal as text. The exit code is then 1.
If a client or a hook cancels the operation, stderr says which one and why, and the exit code is 0.")]
pub(crate) struct CallArgs {
    /// The method, for instance list_sessions; `treelined call rpc.discover` lists all methods
    #[arg(add = ArgValueCompleter::new(super::candidates::methods))]
    method: String,
    /// The params of the method as a JSON object; `-` reads them from stdin
    #[arg(value_name = "JSON", default_value = "{}", value_parser = json)]
    params: String,
    /// Open this session first, and call the method on it: a file, an id, a name, or the beginning of an id
    #[arg(long, value_name = "SESSION", add = ArgValueCompleter::new(super::candidates::sessions))]
    open: Option<String>,
    /// Open the session of this directory with the last activity first
    #[arg(long, conflicts_with = "open")]
    latest: bool,
    /// Print the result on several lines
    #[arg(long)]
    pretty: bool,
}

/// Checks the JSON before a daemon is started, since text that is not JSON would break the line of the
/// request.
fn json(text: &str) -> Result<String, String> {
    if text == "-" || treelined_core::json::value_span(text.as_bytes()).is_ok() {
        return Ok(text.to_owned());
    }
    // The message of serde ends with the line and the column of the fault.
    match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Err(error) => Err(format!("not JSON: {error}")),
        Ok(_) => Err("not JSON".to_owned()),
    }
}

pub(super) fn run(options: &Options, call: &CallArgs) -> anyhow::Result<ExitCode> {
    let params = match call.params.as_str() {
        "-" => params_from_stdin()?,
        given => given.to_owned(),
    };
    let mut daemon = ChildDaemon::start(options)?;
    let answered = ask(&mut daemon, call, &params);
    daemon.end()?;
    match answered {
        Ok(result) => {
            let mut shown = result.get().to_owned();
            if call.pretty {
                shown = pretty(&shown);
            }
            let mut out = std::io::stdout().lock();
            writeln!(out, "{}", terminal::json(&shown))?;
            if let Some(why) = Verdict::of(result.get()).and_then(|verdict| verdict.why()) {
                writeln!(io::stderr(), "{}", terminal::line(&why))?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            let ErrorResponse(object) = error.downcast()?;
            if io::stderr().is_terminal() {
                let mut shown = ShellError::of(&ErrorResponse(object).into());
                shown.code = FAILED;
                if needs_session(&shown.message) {
                    "no session is open".clone_into(&mut shown.message);
                    shown.remedy = format!("treelined call {} --open SESSION", call.method);
                }
                return Ok(shown.report());
            }
            let mut stderr = io::stderr().lock();
            writeln!(stderr, "{}", terminal::json(object.get()))?;
            Ok(ExitCode::FAILURE)
        }
    }
}

fn params_from_stdin() -> anyhow::Result<String> {
    let mut text = String::new();
    let read = std::io::stdin().lock().read_to_string(&mut text);
    read.context("read the params from stdin")?;
    json(&text).map_err(|why| {
        let message = format!("the params on stdin: {why}");
        ShellError::new(USAGE, message, "correct the JSON").into()
    })
}

/// Whether the message of the error says that the method needs a session and the call names none.
fn needs_session(message: &str) -> bool {
    message.contains("sessionId: is required")
}

fn ask(daemon: &mut ChildDaemon, call: &CallArgs, params: &str) -> anyhow::Result<RawJson> {
    if let Some(query) = SessionQuery::of(call.open.as_ref(), call.latest) {
        let opening = match query.find(daemon) {
            Ok(path) => json!({ "path": path.display().to_string(), "mode": "write" }),
            Err(error) => match (query, not_found(&error)) {
                // The error object of the daemon has this member too.
                (SessionQuery::Named(text), true) => json!({ "sessionId": text }),
                _ => return Err(error),
            },
        };
        daemon.call("open_session", &opening.to_string())?;
    }
    daemon.call(&call.method, params)
}

fn not_found(error: &anyhow::Error) -> bool {
    let shown = error.downcast_ref::<ShellError>();
    shown.is_some_and(|shown| shown.code == NOT_FOUND)
}
