//! `treelined call`: makes one call; prints its result to stdout, or its error object to stderr.

use super::daemon::{ChildDaemon, ErrorResponse, RawJson};
use super::pretty::pretty;
use super::{Options, SessionName};
use crate::terminal;
use anyhow::Context;
use clap::Args;
use std::io::{Read, Write};
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    /// The method, for instance list_sessions; README.md and `call rpc.discover` list all methods
    method: String,
    /// Its params as a JSON object; `-` reads them from stdin
    #[arg(value_name = "JSON", default_value = "{}", value_parser = json)]
    params: String,
    /// Open this session first, and call the method on it
    #[arg(long, value_name = "FILE|SESSION-ID")]
    open: Option<SessionName>,
    /// Print the result on several lines
    #[arg(long)]
    pretty: bool,
}

/// Checks the JSON before a daemon is started: other text would break the line of the request.
fn json(text: &str) -> Result<String, &'static str> {
    if text == "-" || crate::json::value_span(text.as_bytes()).is_ok() {
        return Ok(text.to_owned());
    }
    Err("not JSON")
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
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            let ErrorResponse(object) = error.downcast()?;
            let mut stderr = std::io::stderr().lock();
            writeln!(stderr, "{}", terminal::json(object.get()))?;
            Ok(ExitCode::FAILURE)
        }
    }
}

fn params_from_stdin() -> anyhow::Result<String> {
    let mut text = String::new();
    let read = std::io::stdin().lock().read_to_string(&mut text);
    read.context("read the params from stdin")?;
    json(&text).map_err(|why| anyhow::anyhow!("the params on stdin: {why}"))
}

fn ask(daemon: &mut ChildDaemon, call: &CallArgs, params: &str) -> anyhow::Result<RawJson> {
    if let Some(session) = &call.open {
        daemon.call("open_session", &session.to_open("write"))?;
    }
    daemon.call(&call.method, params)
}
