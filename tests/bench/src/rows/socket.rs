//! The round trip of a call over the socket of a shared daemon, over its WebSocket and through `treelined connect`,
//! beside stdio.

use super::call::CALLS;
use crate::Bench;
use crate::daemon::{self, Daemon, StartOptions};
use crate::table::{Row, Table, Target, Unit, median};
use crate::world::World;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
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
    let [mut stdio, mut socket, mut page, mut connect] = [const { Vec::new() }; 4];
    daemon::pinned(|| {
        for _ in 0..bench.rounds {
            let world = World::new(bench)?;
            let mut own = Daemon::start_as(bench, &world, HOW)?;
            stdio.extend(median(&calls(&mut own)?));
            drop(own);
            let shared = SharedDaemon::start(bench, &world)?;
            socket.extend(median(&shared.calls()?));
            page.extend(median(&shared.calls_of_page()?));
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
            socket.clone(),
        )
        .limit("over stdio", stdio.clone())
        .target(Target::OfLimit(1.3, 0.0)),
    );
    table.push(
        Row::new(
            "trivial call over the WebSocket, one core",
            Unit::Seconds,
            page,
        )
        .limit("over the socket", socket),
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
            .args(["serve", "--listen", "unix", "--listen", "ws:127.0.0.1:0"])
            .arg("--socket")
            .arg(&socket);
        let child = command
            .stdin(Stdio::null())
            .spawn()
            .context("start the daemon")?;
        let shared = Self { child, socket };
        let began = Instant::now();
        // The runtime file has the WebSocket last.
        let is_ready = || {
            let info = std::fs::read_to_string(shared.socket.with_extension("json"));
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

    /// The times of the calls of a client that has connected by itself.
    fn calls(&self) -> Result<Vec<f64>> {
        let mut stream = UnixStream::connect(&self.socket)?;
        let mut output = BufReader::new(stream.try_clone()?);
        timed_calls(
            |line| Ok(stream.write_all(line)?),
            |line| {
                output.read_until(b'\n', line)?;
                Ok(())
            },
        )
    }

    /// The same over the WebSocket.
    fn calls_of_page(&self) -> Result<Vec<f64>> {
        let info = std::fs::read(self.socket.with_extension("json"))?;
        let info: Value = serde_json::from_slice(&info)?;
        let member = |name: &str| info[name].as_str().context("a WebSocket");
        let host = member("webSocket")?.trim_start_matches("ws://");
        let host = host.trim_end_matches("/ws");
        let mut stream = TcpStream::connect(host)?;
        stream.set_nodelay(true)?;
        let mut output = BufReader::new(stream.try_clone()?);
        write!(
            stream,
            "GET /ws HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )?;
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            if output.read_line(&mut line)? == 0 {
                bail!("the WebSocket is refused");
            }
        }
        let token = format!("{{\"token\":\"{}\"}}", member("token")?);
        stream.write_all(&text_frame(token.as_bytes())?)?;
        timed_calls(
            |line| Ok(stream.write_all(&text_frame(line)?)?),
            |message| read_frame(&mut output, message),
        )
    }
}

/// A short text frame with an empty mask.
fn text_frame(text: &[u8]) -> Result<Vec<u8>> {
    let length = u8::try_from(text.len())?;
    if length > 125 {
        bail!("a longer message");
    }
    let mut frame = vec![0x81, 0x80 | length, 0, 0, 0, 0];
    frame.extend(text);
    Ok(frame)
}

/// Reads a frame of less than 64 KiB.
fn read_frame(output: &mut impl Read, message: &mut Vec<u8>) -> Result<()> {
    let mut head = [0; 2];
    output.read_exact(&mut head)?;
    let length = match head[1] {
        126 => {
            let mut length = [0; 2];
            output.read_exact(&mut length)?;
            u16::from_be_bytes(length)
        }
        short => u16::from(short),
    };
    message.resize(usize::from(length), 0);
    Ok(output.read_exact(message)?)
}

/// The times of calls from the request to its response. `receive` puts the next message into an empty buffer.
fn timed_calls(
    mut send: impl FnMut(&[u8]) -> Result<()>,
    mut receive: impl FnMut(&mut Vec<u8>) -> Result<()>,
) -> Result<Vec<f64>> {
    let mut message = Vec::new();
    let mut timed = |id: usize, method: &str, params: &str| -> Result<f64> {
        let began = Instant::now();
        send(daemon::request(id as u64, method, params).as_bytes())?;
        let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\"");
        loop {
            message.clear();
            receive(&mut message)?;
            if message.starts_with(head.as_bytes()) {
                return Ok(began.elapsed().as_secs_f64());
            }
            if message.is_empty() || memchr::memmem::find(&message, b"\"error\":").is_some() {
                bail!("{}", String::from_utf8_lossy(&message));
            }
        }
    };
    timed(0, "create_session", SESSION)?;
    (1..=CALLS).map(|id| timed(id, "get_leaf", "{}")).collect()
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
