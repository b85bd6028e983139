//! Measures the limit of the machine: the same bytes and system calls, without other work.

use crate::shared::{Waiting, wait_for_input};
use anyhow::{Context, Result};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Bytes per read.
const CHUNK: usize = 1 << 20;

fn timed<T>(body: impl FnOnce() -> Result<T>) -> Result<(f64, T)> {
    let began = Instant::now();
    let result = body()?;
    Ok((began.elapsed().as_secs_f64(), result))
}

/// Reads a file once through one buffer and finds its line breaks.
pub fn line_pass(path: &Path) -> Result<f64> {
    let (took, lines) = timed(|| {
        let mut lines = 0;
        read(path, |bytes| {
            lines += memchr::memchr_iter(b'\n', bytes).count()
        })?;
        Ok(lines)
    })?;
    anyhow::ensure!(lines > 0, "{} has no lines", path.display());
    Ok(took)
}

/// Reads files once and checks that they are UTF-8.
pub fn utf8_pass<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Result<f64> {
    let (took, ()) = timed(|| {
        for path in paths {
            let mut cut = Vec::new();
            read(path, |bytes| {
                // The end of the buffer may cut a character.
                cut.extend_from_slice(bytes);
                let valid = match std::str::from_utf8(&cut) {
                    Ok(text) => text.len(),
                    Err(error) => error.valid_up_to(),
                };
                cut.drain(..valid);
            })?;
            anyhow::ensure!(cut.is_empty(), "{} is not UTF-8", path.display());
        }
        Ok(())
    })?;
    Ok(took)
}

fn read(path: &Path, mut each: impl FnMut(&[u8])) -> Result<()> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; CHUNK];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(()),
            n => each(&buffer[..n]),
        }
    }
}

/// Copies these parts of a file to a new file, with adjacent parts in one call. It does not sync, since with `os`
/// nothing is synced before an answer.
pub fn copy_parts(from: &Path, parts: &[(u64, u64)], to: &Path) -> Result<f64> {
    let (took, ()) = timed(|| {
        let from = File::open(from)?;
        let mut to = File::create(to)?;
        let mut buffer = vec![0; CHUNK];
        for (offset, len) in parts {
            let (mut at, end) = (*offset, offset + len);
            while at < end {
                let n = (end - at).min(CHUNK as u64) as usize;
                from.read_exact_at(&mut buffer[..n], at)?;
                to.write_all(&buffer[..n])?;
                at += n as u64;
            }
        }
        Ok(())
    })?;
    Ok(took)
}

/// Appends `line` `count` times to its own file, and returns the time of each call.
pub fn writes(path: &Path, line: &[u8], count: usize) -> Result<Vec<f64>> {
    appends(path, line, count, false)
}

/// Like [`writes`], with an fdatasync after each append.
pub fn synced_writes(path: &Path, line: &[u8], count: usize) -> Result<Vec<f64>> {
    appends(path, line, count, true)
}

fn appends(path: &Path, line: &[u8], count: usize, sync: bool) -> Result<Vec<f64>> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(line)?;
    file.sync_all()?;
    let mut once = || {
        let (took, ()) = timed(|| {
            file.write_all(line)?;
            if sync {
                file.sync_data()?;
            }
            Ok(())
        })?;
        Ok(took)
    };
    (0..count).map(|_| once()).collect()
}

/// Lines per second with one fdatasync for every `group` writes.
pub fn synced_together(path: &Path, line: &[u8], group: usize, times: usize) -> Result<f64> {
    let mut file = OpenOptions::new().append(true).open(path)?;
    let (took, ()) = timed(|| {
        for _ in 0..times {
            (0..group).try_for_each(|_| file.write_all(line))?;
            file.sync_data()?;
        }
        Ok(())
    })?;
    Ok((group * times) as f64 / took)
}

/// Reads the names and the status of all files of a folder.
pub fn stat_all(folder: &Path) -> Result<f64> {
    let (took, count) = timed(|| {
        let mut count = 0;
        for entry in fs::read_dir(folder)? {
            count += u64::from(entry?.metadata()?.is_file());
        }
        Ok(count)
    })?;
    anyhow::ensure!(count > 0, "{} is empty", folder.display());
    Ok(took)
}

/// Like [`stat_all`], also for the folders in the folder.
pub fn stat_tree(folder: &Path) -> Result<f64> {
    let (took, count) = timed(|| {
        let mut count = 0;
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder)? {
                let entry = entry?;
                match entry.metadata()?.is_dir() {
                    true => folders.push(entry.path()),
                    false => count += 1,
                }
            }
        }
        Ok(count)
    })?;
    anyhow::ensure!(count > 0, "{} is empty", folder.display());
    Ok(took)
}

/// Starts a program that does nothing and waits for its end.
pub fn spawn_true() -> Result<f64> {
    let (took, ended) = timed(|| {
        let mut command = Command::new("/bin/true");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Ok(command.spawn()?.wait()?)
    })?;
    anyhow::ensure!(ended.success(), "/bin/true: {ended}");
    Ok(took)
}

/// The mode `line-server` of this program: it answers each line with a line.
pub fn serve_lines() -> Result<()> {
    const ANSWER: &[u8] =
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"leafId\":null,\"seq\":1}}\n";
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let mut buffer = [0; 4096];
    loop {
        let n = input.read(&mut buffer)?;
        if n == 0 {
            return Ok(());
        }
        for _ in memchr::memchr_iter(b'\n', &buffer[..n]) {
            output.write_all(ANSWER)?;
        }
        output.flush()?;
    }
}

/// The times of round trips with a plain line server. This process and its child run on the pinned core.
pub fn round_trips(count: usize) -> Result<Vec<f64>> {
    let mut server = Command::new(std::env::current_exe()?)
        .arg("line-server")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut input = server.stdin.take().context("its input")?;
    let mut output = server.stdout.take().context("its output")?;
    let request = crate::daemon::request(1, "get_leaf", "{}");
    let mut buffer = [0; 4096];
    let mut once = || {
        let (took, n) = timed(|| {
            input.write_all(request.as_bytes())?;
            Ok(output.read(&mut buffer)?)
        })?;
        anyhow::ensure!(buffer[..n].ends_with(b"\n"), "half an answer");
        Ok(took)
    };
    let times = (0..count).map(|_| once()).collect();
    drop(input);
    server.wait()?;
    times
}

/// Like [`round_trips`], over a socket instead of two pipes.
pub fn socket_round_trips(count: usize, waiting: Waiting) -> Result<Vec<f64>> {
    let (mut client, server) = UnixStream::pair()?;
    let mut child = Command::new(std::env::current_exe()?)
        .arg("line-server")
        .stdin(OwnedFd::from(server.try_clone()?))
        .stdout(OwnedFd::from(server))
        .spawn()?;
    let request = crate::daemon::request(1, "get_leaf", "{}");
    let mut buffer = [0; 4096];
    let mut once = || {
        let (took, n) = timed(|| {
            client.write_all(request.as_bytes())?;
            if waiting == Waiting::Polling {
                wait_for_input(&client)?;
            }
            Ok(client.read(&mut buffer)?)
        })?;
        anyhow::ensure!(buffer[..n].ends_with(b"\n"), "half an answer");
        Ok(took)
    };
    let times = (0..count).map(|_| once()).collect();
    drop(client);
    child.wait()?;
    times
}

/// Reads this many bytes from another process, in one line, as a client reads them.
pub fn through_a_pipe(bytes: usize) -> Result<f64> {
    let mut source = Command::new(std::env::current_exe()?)
        .args(["source", &bytes.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut input = source.stdin.take().context("its input")?;
    let output = source.stdout.take().context("its output")?;
    let mut output = std::io::BufReader::with_capacity(CHUNK, output);
    let mut line = Vec::new();
    // The child is ready when it has written a line.
    output.read_until(b'\n', &mut line)?;
    let (took, read) = timed(|| {
        input.write_all(b"\n")?;
        line.clear();
        Ok(output.read_until(b'\n', &mut line)?)
    })?;
    source.wait()?;
    anyhow::ensure!(read == bytes, "{read} of {bytes} bytes");
    Ok(took)
}

/// The mode `source` of this program: it writes a line of the requested number of bytes.
pub fn serve_bytes(bytes: usize) -> Result<()> {
    let mut line = vec![b'x'; bytes];
    if let Some(last) = line.last_mut() {
        *last = b'\n';
    }
    let (mut input, mut output) = (
        io::stdin().lock(),
        File::from(io::stdout().as_fd().try_clone_to_owned()?),
    );
    output.write_all(b"\n")?;
    input.read_exact(&mut [0])?;
    output.write_all(&line)?;
    Ok(())
}
