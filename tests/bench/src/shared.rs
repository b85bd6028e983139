//! The shared daemon of a socket, and clients that connect to it by themselves.

use crate::Bench;
use crate::daemon::{self, StartOptions};
use crate::world::World;
use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A daemon that serves a socket. Killed on drop.
pub struct SharedDaemon {
    child: Child,
    pub socket: PathBuf,
}

impl SharedDaemon {
    pub fn start(bench: &Bench, world: &World, how: StartOptions) -> Result<Self> {
        // The folder of the world may be too deep for a socket.
        let socket = PathBuf::from(format!("/tmp/treelined-bench-{}.sock", std::process::id()));
        let _stale = std::fs::remove_file(&socket);
        let mut command = daemon::command(bench, world, how);
        command
            .args(["serve", "--listen", "unix", "--listen", "ws:127.0.0.1:0"])
            .arg("--socket")
            .arg(&socket);
        let child = command
            .stdin(Stdio::null())
            .spawn()
            .context("start the daemon")?;
        let shared = Self { child, socket };
        let began = Instant::now();
        // The daemon writes the token of the WebSocket into the runtime file last.
        let is_ready = || {
            let info = std::fs::read_to_string(shared.runtime_file());
            info.is_ok_and(|info| info.contains("\"token\""))
        };
        while !is_ready() {
            if began.elapsed() > Duration::from_secs(10) {
                bail!("the daemon does not listen");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(shared)
    }

    pub fn runtime_file(&self) -> PathBuf {
        self.socket.with_extension("json")
    }

    pub fn connect(&self, waiting: Waiting) -> Result<SocketClient> {
        let stream = UnixStream::connect(&self.socket)?;
        let output = BufReader::new(stream.try_clone()?);
        Ok(SocketClient {
            stream,
            output,
            waiting,
            next_id: 0,
            line: Vec::new(),
        })
    }

    /// The resident memory in bytes.
    pub fn memory(&self) -> f64 {
        daemon::memory(self.child.id())
    }

    /// User and system time so far, in seconds.
    pub fn processor_seconds(&self) -> f64 {
        daemon::processor_seconds(self.child.id())
    }
}

impl Drop for SharedDaemon {
    fn drop(&mut self) {
        let _dead = self.child.kill();
        let _waited = self.child.wait();
        remove_files(&self.socket);
    }
}

fn remove_files(socket: &Path) {
    for ending in ["sock", "json", "lock"] {
        let _absent = std::fs::remove_file(socket.with_extension(ending));
    }
}

/// How a client waits for bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// In `poll`, as clients with an event loop do.
    Polling,
    /// In `recv`. Linux also wakes the client when the daemon has read the request, since the client could then send
    /// more bytes.
    Blocked,
}

/// A client of a socket.
pub struct SocketClient {
    pub stream: UnixStream,
    output: BufReader<UnixStream>,
    waiting: Waiting,
    next_id: u64,
    line: Vec<u8>,
}

impl SocketClient {
    /// The time of a call in seconds, from the first byte of the request to the last byte of the response.
    pub fn timed(&mut self, method: &str, params: &str) -> Result<f64> {
        let began = Instant::now();
        self.next_id += 1;
        let request = daemon::request(self.next_id, method, params);
        self.stream.write_all(request.as_bytes())?;
        let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\"", self.next_id);
        loop {
            self.line.clear();
            if self.output.buffer().is_empty() && self.waiting == Waiting::Polling {
                wait_for_input(&self.stream)?;
            }
            if self.output.read_until(b'\n', &mut self.line)? == 0 {
                bail!("the daemon ended");
            }
            if self.line.starts_with(head.as_bytes()) {
                return Ok(began.elapsed().as_secs_f64());
            }
            if memchr::memmem::find(&self.line, b"\"error\":").is_some() {
                bail!("{}", String::from_utf8_lossy(&self.line));
            }
        }
    }
}

/// Waits until the stream has bytes to read.
pub fn wait_for_input(stream: &UnixStream) -> Result<()> {
    poll(&mut [PollFd::new(stream, PollFlags::IN)], None)?;
    Ok(())
}
