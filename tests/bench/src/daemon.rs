//! The measured daemon: the real program over real pipes.

use crate::Bench;
use crate::world::World;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// The size of the reader's buffer in bytes.
const BUFFER: usize = 1 << 20;

pub struct Daemon {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next_id: u64,
    line: Vec<u8>,
}

/// The options of a daemon.
#[derive(Debug, Clone, Copy)]
pub struct StartOptions {
    pub durability: &'static str,
    /// Whether the daemon runs on the same core as this process. This process must be pinned to that core itself.
    pub pinned: bool,
    /// Searches have an index if all sessions together have at least this number of bytes. `None` is the default.
    pub index_from: Option<u64>,
}

impl Default for StartOptions {
    fn default() -> Self {
        Self {
            durability: "os",
            pinned: false,
            index_from: None,
        }
    }
}

impl Daemon {
    pub fn start(bench: &Bench, world: &World) -> Result<Self> {
        Self::start_as(bench, world, StartOptions::default())
    }

    pub fn start_as(bench: &Bench, world: &World, how: StartOptions) -> Result<Self> {
        Self::spawned(command(bench, world, how))
    }

    /// Starts a command that answers as a daemon does.
    pub fn spawned(mut command: Command) -> Result<Self> {
        let mut child = command.spawn().context("start the daemon")?;
        let input = child.stdin.take();
        let output = child.stdout.take().context("its output")?;
        Ok(Self {
            child,
            input,
            output: BufReader::with_capacity(BUFFER, output),
            next_id: 0,
            line: Vec::new(),
        })
    }

    /// The time of a call from the first byte of the request to the last byte of the response.
    pub fn timed(&mut self, method: &str, params: &str) -> Result<f64> {
        let began = Instant::now();
        let id = self.send(method, params)?;
        self.wait_for(id)?;
        let took = began.elapsed().as_secs_f64();
        self.check()?;
        Ok(took)
    }

    /// A call that returns its result.
    pub fn call(&mut self, method: &str, params: &str) -> Result<Value> {
        self.timed(method, params)?;
        let mut response: Value = serde_json::from_slice(&self.line)?;
        Ok(response["result"].take())
    }

    /// Waits until the daemon answers.
    pub fn settle(&mut self) -> Result<()> {
        self.timed("initialize", "{\"protocolVersion\":1}")
            .map(|_| ())
    }

    /// The time of `open_session`.
    pub fn open(&mut self, path: &Path) -> Result<f64> {
        self.timed(
            "open_session",
            &serde_json::json!({ "path": path }).to_string(),
        )
    }

    /// The last response, byte for byte.
    pub fn response(&self) -> &[u8] {
        &self.line
    }

    pub fn send(&mut self, method: &str, params: &str) -> Result<u64> {
        self.next_id += 1;
        let request = request(self.next_id, method, params);
        self.write(request.as_bytes())?;
        Ok(self.next_id)
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let input = self.input.as_mut().context("its input is closed")?;
        Ok(input.write_all(bytes)?)
    }

    /// Returns the first of `count` ids, for requests that the caller writes.
    pub fn reserve_ids(&mut self, count: u64) -> u64 {
        let first = self.next_id + 1;
        self.next_id += count;
        first
    }

    /// Takes stdin for the caller's own writer; [`Daemon::give_input`] gives it back.
    pub fn take_input(&mut self) -> Result<ChildStdin> {
        self.input.take().context("its input is closed")
    }

    pub fn give_input(&mut self, input: ChildStdin) {
        self.input = Some(input);
    }

    /// Reads until the response with this id. Skips notifications and other responses.
    pub fn wait_for(&mut self, id: u64) -> Result<()> {
        let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},");
        while !self.next_line()?.starts_with(head.as_bytes()) {}
        Ok(())
    }

    /// Reads until `count` responses have come.
    pub fn wait_for_responses(&mut self, mut count: u64) -> Result<()> {
        while count > 0 {
            if self
                .next_line()?
                .starts_with(b"{\"jsonrpc\":\"2.0\",\"id\":")
            {
                count -= 1;
                self.check()?;
            }
        }
        Ok(())
    }

    fn next_line(&mut self) -> Result<&[u8]> {
        self.line.clear();
        if self.output.read_until(b'\n', &mut self.line)? == 0 {
            bail!("the daemon ended");
        }
        Ok(&self.line)
    }

    fn check(&self) -> Result<()> {
        let head = self.line.get(..64.min(self.line.len())).unwrap_or_default();
        if memchr::memmem::find(head, b"\"error\":").is_some() {
            let shown = self
                .line
                .get(..400.min(self.line.len()))
                .unwrap_or_default();
            bail!("{}", String::from_utf8_lossy(shown));
        }
        Ok(())
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The highest resident memory in bytes.
    pub fn peak_memory(&self) -> f64 {
        peak_memory(self.pid())
    }

    /// User and system time so far, in seconds.
    pub fn processor_seconds(&self) -> f64 {
        processor_seconds(self.pid())
    }

    /// Ends the daemon by closing stdin, so that its work in the background is finished.
    pub fn stop(mut self) -> Result<()> {
        self.input = None;
        let ended = self.child.wait()?;
        if !ended.success() {
            bail!("the daemon ended with {ended}");
        }
        Ok(())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.input = None;
        let began = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if began.elapsed() > Duration::from_secs(10) {
                let _dead = self.child.kill();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

pub fn request(id: u64, method: &str, params: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n")
}

pub fn command(bench: &Bench, world: &World, how: StartOptions) -> Command {
    let mut command = if how.pinned {
        let mut command = Command::new("taskset");
        command
            .args(["--cpu-list", PINNED_CORE])
            .arg(&bench.treelined);
        command
    } else {
        Command::new(&bench.treelined)
    };
    command
        .args(["--durability", how.durability])
        .env("HOME", world.home())
        .env("TREELINED_SESSION_DIR", world.sessions())
        .env_remove("XDG_DATA_HOME")
        .env_remove("XDG_CACHE_HOME")
        .env_remove("XDG_STATE_HOME")
        .env_remove("XDG_CONFIG_HOME")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    if let Some(bytes) = how.index_from {
        command.env("TREELINED_SEARCH_INDEX_FROM", bytes.to_string());
    }
    command
}

/// The core on which both sides run in rows that must not include wake-ups across cores.
pub const PINNED_CORE: &str = "1";

/// Runs `body` with this whole process on the pinned core.
pub fn pinned<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    let all = format!("0-{}", std::thread::available_parallelism()?.get() - 1);
    confine(PINNED_CORE)?;
    let result = body();
    confine(&all)?;
    result
}

fn confine(cores: &str) -> Result<()> {
    let ended = Command::new("taskset")
        .args(["--all-tasks", "--pid", "--cpu-list", cores])
        .arg(std::process::id().to_string())
        .stdout(Stdio::null())
        .status()
        .context("taskset (util-linux)")?;
    if !ended.success() {
        bail!("taskset {cores}: {ended}");
    }
    Ok(())
}

/// The highest resident memory of a running process in bytes.
pub fn peak_memory(pid: u32) -> f64 {
    status(pid, "VmHWM:") * 1024.0
}

/// User and system time of a running process in seconds, in steps of 10 ms.
pub fn processor_seconds(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name of the program, in parentheses, may have spaces.
    let after = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after.split_whitespace().skip(11).take(2);
    let ticks: f64 = ticks.map(|ticks| ticks.parse().unwrap_or(f64::NAN)).sum();
    ticks / 100.0
}

/// The resident memory in bytes.
pub fn memory(pid: u32) -> f64 {
    status(pid, "VmRSS:") * 1024.0
}

fn status(pid: u32, field: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let number = line.and_then(|line| line.split_whitespace().next());
    number
        .and_then(|number| number.parse().ok())
        .unwrap_or(f64::NAN)
}
