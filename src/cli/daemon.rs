//! The daemon of a command: a child `treelined serve` over pipes, or the shared daemon through `treelined connect`.
//!
//! This module has the child process, and matches responses to requests. The commands choose the requests and handle
//! notifications.

use super::failure::ErrorResponse;
use super::options::Options;
use super::shared::{self, SharedDaemon, SocketOption};
use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A running daemon.
pub(super) struct ChildDaemon {
    child: Child,
    /// The stdin of the child; `None` after the last request.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    last_id: u64,
}

/// JSON as it was received.
pub(super) type RawJson = Box<RawValue>;

/// A message from the daemon.
pub(super) enum Incoming {
    Response {
        id: u64,
        outcome: Result<RawJson, RawJson>,
    },
    Notification {
        method: String,
        params: RawJson,
    },
}

impl ChildDaemon {
    /// Starts this program as a daemon with the same options. The daemon dies with this process.
    pub(super) fn start(options: &Options) -> anyhow::Result<Self> {
        Self::start_with(options, &own_daemon(), Stdio::inherit())
    }

    /// Like [`Self::start`], but the daemon writes no log.
    pub(super) fn start_silent(options: &Options) -> anyhow::Result<Self> {
        Self::start_with(options, &own_daemon(), Stdio::null())
    }

    /// Uses the shared daemon of the session directory if one runs, so that its other clients are asked and see the
    /// changes. Otherwise like [`Self::start`].
    pub(super) fn shared_or_own(options: &Options) -> anyhow::Result<Self> {
        let shared = SharedDaemon::of(options, &SocketOption::default(), None)?;
        let Some(running) = shared.running()? else {
            return Self::start(options);
        };
        shared::check_version(&running.info)?;
        shared.check_options(options, &running.info)?;
        Self::start_with(options, &["connect".into()], Stdio::inherit())
    }

    fn start_with(options: &Options, command: &[OsString], log: Stdio) -> anyhow::Result<Self> {
        // If the settings are wrong, this process reports the error before a child does.
        options.config()?;
        let program = std::env::current_exe().context("find this program")?;
        let mut child = Command::new(&program)
            .args(options.as_arguments())
            .args(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .env_remove("TREELINED_COMPLETE")
            .envs(options.as_variable())
            .spawn()
            .with_context(|| format!("start {}", program.display()))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("the daemon has no pipes");
        };
        Ok(Self {
            child,
            input: Some(input),
            output: BufReader::new(output),
            last_id: 0,
        })
    }

    /// Sends a request whose `params` are JSON. Returns its id.
    pub(super) fn send(&mut self, method: &str, params: &str) -> anyhow::Result<u64> {
        self.last_id += 1;
        let mut message = b"{\"jsonrpc\":\"2.0\",\"id\":".to_vec();
        message.extend_from_slice(self.last_id.to_string().as_bytes());
        message.extend_from_slice(b",\"method\":");
        treelined_core::json::push_string(&mut message, method);
        message.extend_from_slice(b",\"params\":");
        treelined_core::json::push_raw(&mut message, params.as_bytes());
        message.extend_from_slice(b"}\n");
        let Some(input) = &mut self.input else {
            bail!("the daemon's stdin is closed already");
        };
        input.write_all(&message).map_err(gone)?;
        Ok(self.last_id)
    }

    /// Waits for the next message.
    pub(super) fn receive(&mut self) -> anyhow::Result<Incoming> {
        #[derive(Deserialize)]
        struct IncomingMessage {
            id: Option<u64>,
            method: Option<String>,
            params: Option<RawJson>,
            result: Option<RawJson>,
            error: Option<RawJson>,
        }
        let mut line = Vec::new();
        self.output.read_until(b'\n', &mut line).map_err(gone)?;
        if line.is_empty() {
            bail!("the daemon has ended without a response");
        }
        let message: IncomingMessage = serde_json::from_slice(&line)
            .context("the daemon has sent something that is not JSON")?;
        Ok(match message {
            IncomingMessage {
                method: Some(method),
                params,
                ..
            } => Incoming::Notification {
                method,
                params: params.unwrap_or_else(|| RawValue::NULL.to_owned()),
            },
            IncomingMessage {
                id: Some(id),
                result: Some(result),
                ..
            } => Incoming::Response {
                id,
                outcome: Ok(result),
            },
            // An error without an id is about the message that was just sent, which the daemon could not read.
            IncomingMessage {
                id,
                error: Some(error),
                ..
            } => Incoming::Response {
                id: id.unwrap_or(self.last_id),
                outcome: Err(error),
            },
            _ => bail!("the daemon has sent something that is not JSON-RPC"),
        })
    }

    /// Sends a request and waits for its result; ignores notifications.
    pub(super) fn call(&mut self, method: &str, params: &str) -> anyhow::Result<RawJson> {
        let wanted = self.send(method, params)?;
        loop {
            if let Incoming::Response { id, outcome } = self.receive()?
                && id == wanted
            {
                return outcome.map_err(|error| ErrorResponse(error).into());
            }
        }
    }

    /// Closes the stdin of the daemon and waits for its end. The daemon writes and syncs everything that it has
    /// accepted.
    pub(super) fn end(mut self) -> anyhow::Result<()> {
        self.input = None;
        io::copy(&mut (&mut self.output as &mut dyn Read), &mut io::sink()).map_err(gone)?;
        let status = self.child.wait().context("wait for the daemon")?;
        if !status.success() {
            bail!("the daemon ended with {status}");
        }
        Ok(())
    }
}

fn own_daemon() -> [OsString; 4] {
    let own = std::process::id().to_string();
    [
        "serve".into(),
        "--no-extensions".into(),
        "--parent".into(),
        own.into(),
    ]
}

/// An error that has only the text of `error`. With `error` as its cause, a broken pipe to the daemon would be treated
/// as a broken stdout.
fn gone(error: io::Error) -> anyhow::Error {
    anyhow::anyhow!("cannot reach the daemon: {error}")
}
