//! A daemon of our own, spoken to as any client does: `treelined serve` over pipes.
//!
//! Owns the child process and the pairing of requests with responses. What is asked, and what is done
//! with notifications, is the commands'.

use super::Options;
use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A running daemon.
pub struct Daemon {
    child: Child,
    /// `None` once there is nothing more to ask.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    last_id: u64,
}

/// JSON as it came.
pub type Raw = Box<RawValue>;

/// One message of the daemon's.
pub enum Heard {
    Response { id: u64, outcome: Result<Raw, Raw> },
    Notification { method: String, params: Raw },
}

/// A request was answered with this error object.
#[derive(Debug)]
pub struct Refused(pub Raw);

impl std::error::Error for Refused {}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        #[derive(Deserialize)]
        struct ErrorObject {
            message: String,
            data: Option<Data>,
        }
        #[derive(Deserialize)]
        struct Data {
            kind: String,
        }
        match serde_json::from_str(self.0.get()) {
            Ok(ErrorObject {
                message,
                data: Some(data),
            }) => write!(f, "{message} ({})", data.kind),
            Ok(ErrorObject { message, .. }) => f.write_str(&message),
            Err(_) => f.write_str(self.0.get()),
        }
    }
}

impl Daemon {
    /// Starts this very program with the same options.
    pub fn start(options: &Options) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("find this program")?;
        let mut child = Command::new(&program)
            .args(options.as_arguments())
            .arg("serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
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

    /// Sends a request; `params` is JSON. Returns its id.
    pub fn send(&mut self, method: &str, params: &str) -> anyhow::Result<u64> {
        self.last_id += 1;
        let mut message = b"{\"jsonrpc\":\"2.0\",\"id\":".to_vec();
        message.extend_from_slice(self.last_id.to_string().as_bytes());
        message.extend_from_slice(b",\"method\":");
        crate::json::push_string(&mut message, method);
        message.extend_from_slice(b",\"params\":");
        crate::json::push_raw(&mut message, params.as_bytes());
        message.extend_from_slice(b"}\n");
        let Some(input) = &mut self.input else {
            bail!("the daemon has been told that there is nothing more");
        };
        input.write_all(&message).map_err(gone)?;
        Ok(self.last_id)
    }

    /// Waits for the next message.
    pub fn hear(&mut self) -> anyhow::Result<Heard> {
        #[derive(Deserialize)]
        struct Message {
            id: Option<u64>,
            method: Option<String>,
            params: Option<Raw>,
            result: Option<Raw>,
            error: Option<Raw>,
        }
        let mut line = Vec::new();
        self.output.read_until(b'\n', &mut line).map_err(gone)?;
        if line.is_empty() {
            bail!("the daemon has ended without an answer");
        }
        let message: Message = serde_json::from_slice(&line)
            .context("the daemon has said something else than JSON")?;
        Ok(match message {
            Message {
                method: Some(method),
                params,
                ..
            } => Heard::Notification {
                method,
                params: params.unwrap_or_else(|| RawValue::NULL.to_owned()),
            },
            Message {
                id: Some(id),
                result: Some(result),
                ..
            } => Heard::Response {
                id,
                outcome: Ok(result),
            },
            // An error without an id is about the message just sent, which was none.
            Message {
                id,
                error: Some(error),
                ..
            } => Heard::Response {
                id: id.unwrap_or(self.last_id),
                outcome: Err(error),
            },
            _ => bail!("the daemon has said something else than JSON-RPC"),
        })
    }

    /// Sends a request and waits for its result; notifications are passed over.
    pub fn call(&mut self, method: &str, params: &str) -> anyhow::Result<Raw> {
        let wanted = self.send(method, params)?;
        loop {
            if let Heard::Response { id, outcome } = self.hear()?
                && id == wanted
            {
                return outcome.map_err(|error| Refused(error).into());
            }
        }
    }

    /// Lets the daemon finish: it writes and syncs whatever it has accepted.
    pub fn end(mut self) -> anyhow::Result<()> {
        self.input = None;
        io::copy(&mut (&mut self.output as &mut dyn Read), &mut io::sink()).map_err(gone)?;
        let status = self.child.wait().context("wait for the daemon")?;
        if !status.success() {
            bail!("the daemon ended with {status}");
        }
        Ok(())
    }
}

/// Told by its text alone: a broken pipe here is not one of our own output's (see
/// [`super::run`]).
fn gone(error: io::Error) -> anyhow::Error {
    anyhow::anyhow!("the daemon cannot be reached: {error}")
}
