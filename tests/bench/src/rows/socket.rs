//! The round trip of a call over the socket of a shared daemon and through `treelined connect`, beside stdio.

use super::call::CALLS;
use crate::Bench;
use crate::daemon::{self, Daemon, StartOptions};
use crate::table::{Row, Table, Target, Unit, median};
use crate::world::World;
use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const HOW: StartOptions = StartOptions {
    durability: "os",
    pinned: true,
    index_from: None,
};

/// The session of the calls. A shared daemon has no working directory for it.
const SESSION: &str = "{\"ephemeral\":true,\"cwd\":\"/\"}";

pub fn round_trip(bench: &Bench, table: &mut Table) -> Result<()> {
    let (mut stdio, mut socket, mut connect) = (Vec::new(), Vec::new(), Vec::new());
    daemon::pinned(|| {
        for _ in 0..bench.rounds {
            let world = World::new(bench)?;
            let mut own = Daemon::start_as(bench, &world, HOW)?;
            stdio.extend(median(&calls(&mut own)?));
            drop(own);
            let shared = SharedDaemon::start(bench, &world)?;
            socket.extend(median(&shared.calls()?));
            let mut command = daemon::command(bench, &world, HOW);
            command.args(["connect", "--socket"]).arg(&shared.socket);
            connect.extend(median(&calls(&mut Daemon::spawned(command)?)?));
        }
        Ok(())
    })?;
    table.push(
        Row::new(
            "trivial call over the socket, one core",
            Unit::Seconds,
            socket,
        )
        .limit("over stdio", stdio.clone())
        .target(Target::OfLimit(1.3, 0.0)),
    );
    table.push(
        Row::new(
            "trivial call through connect, one core",
            Unit::Seconds,
            connect,
        )
        .limit("over stdio", stdio),
    );
    Ok(())
}

fn calls(daemon: &mut Daemon) -> Result<Vec<f64>> {
    daemon.call("create_session", SESSION)?;
    (0..CALLS).map(|_| daemon.timed("get_leaf", "{}")).collect()
}

/// A daemon that serves a socket. Killed on drop.
struct SharedDaemon {
    child: Child,
    socket: PathBuf,
}

impl SharedDaemon {
    fn start(bench: &Bench, world: &World) -> Result<Self> {
        // The folder of the world may be too deep for a socket.
        let socket = PathBuf::from(format!("/tmp/treelined-bench-{}.sock", std::process::id()));
        let _stale = std::fs::remove_file(&socket);
        let mut command = daemon::command(bench, world, HOW);
        command
            .args(["serve", "--listen", "unix", "--socket"])
            .arg(&socket);
        let child = command
            .stdin(Stdio::null())
            .spawn()
            .context("start the daemon")?;
        let shared = Self { child, socket };
        let began = Instant::now();
        while UnixStream::connect(&shared.socket).is_err() {
            if began.elapsed() > Duration::from_secs(10) {
                bail!("the daemon does not listen");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(shared)
    }

    /// The times of the calls of a client that has connected by itself.
    fn calls(&self) -> Result<Vec<f64>> {
        let mut stream = UnixStream::connect(&self.socket)?;
        let mut output = BufReader::new(stream.try_clone()?);
        let mut line = Vec::new();
        let mut timed = |id: usize, method: &str, params: &str| -> Result<f64> {
            let began = Instant::now();
            stream.write_all(daemon::request(id as u64, method, params).as_bytes())?;
            let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\"");
            loop {
                line.clear();
                if output.read_until(b'\n', &mut line)? == 0 {
                    bail!("the daemon ended");
                }
                if line.starts_with(head.as_bytes()) {
                    return Ok(began.elapsed().as_secs_f64());
                }
                if memchr::memmem::find(&line, b"\"error\":").is_some() {
                    bail!("{}", String::from_utf8_lossy(&line));
                }
            }
        };
        timed(0, "create_session", SESSION)?;
        (1..=CALLS).map(|id| timed(id, "get_leaf", "{}")).collect()
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
