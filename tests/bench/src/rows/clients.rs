//! Many clients of one shared daemon: how fast the appends of one client reach a hundred others, and how much memory
//! idle clients take.

use crate::Bench;
use crate::daemon::StartOptions;
use crate::shared::{SharedDaemon, SocketClient, Waiting};
use crate::table::{Row, Table, Target, Unit, quantile};
use crate::world::World;
use anyhow::{Context, Result, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

const LISTENERS: usize = 100;
const APPENDS: usize = 5_000;
/// The time between two appends.
const PAUSE: Duration = Duration::from_millis(1);
const IDLE: usize = 500;
/// The longest time without a notification.
const PATIENCE: Timespec = Timespec {
    tv_sec: 10,
    tv_nsec: 0,
};

/// The beginning of the ids in a notification about appended entries. The ids are `n` and six digits.
const ANNOUNCED: &[u8] = b"\"entryIds\":[\"n";
const DIGITS: usize = 6;

pub fn clients(bench: &Bench, table: &mut Table) -> Result<()> {
    let (mut delays, mut processor) = (Vec::new(), Vec::new());
    let mut memory = Vec::new();
    for _ in 0..bench.rounds {
        let heard = hear(bench)?;
        delays.extend(quantile(&heard.delays, 0.99));
        processor.push(heard.processor);
        memory.push(idle_memory(bench)?);
    }
    let what = format!("{LISTENERS} clients hear 1,000 appends/s");
    let processor_row = format!("{what}: processor time in a second");
    table.push(Row::new(processor_row, Unit::Seconds, processor));
    table.push(Row::new(
        format!("{what}: delay, p99"),
        Unit::Seconds,
        delays,
    ));
    table.push(
        Row::new(
            format!("{IDLE} idle connections: resident memory of each"),
            Unit::Bytes,
            memory,
        )
        .target(Target::AtMost(100e3)),
    );
    Ok(())
}

/// The result of listening.
struct Heard {
    /// The times from each request until each listener has read the notification, in seconds.
    delays: Vec<f64>,
    /// The processor time of the daemon per second, in seconds.
    processor: f64,
}

fn hear(bench: &Bench) -> Result<Heard> {
    let world = World::new(bench)?;
    let shared = SharedDaemon::start(bench, &world, StartOptions::default())?;
    let mut writer = shared.connect(Waiting::Blocked)?;
    writer.timed("create_session", "{\"sessionId\":\"heard\",\"cwd\":\"/\"}")?;
    append(&mut writer.stream, APPENDS, "first")?;
    let mut streams = vec![writer.stream.try_clone()?];
    for _ in 0..LISTENERS {
        let mut listener = shared.connect(Waiting::Blocked)?;
        // When the response is read, everything that the daemon has sent so far is read too.
        listener.timed("open_session", "{\"sessionId\":\"heard\"}")?;
        streams.push(listener.stream.try_clone()?);
    }
    let (sent, times) = mpsc::channel();
    let before = shared.processor_seconds();
    let began = Instant::now();
    let stream = writer.stream.try_clone()?;
    let sender = thread::spawn(move || send(stream, &sent));
    let arrivals = listen(&streams)?;
    let took = began.elapsed().as_secs_f64();
    let processor = (shared.processor_seconds() - before) / took;
    let sending = sender.join();
    sending.map_err(|_| anyhow::anyhow!("the sender panicked"))??;
    let times: Vec<Instant> = times.iter().collect();
    let delay = |(number, at): (usize, Instant)| {
        let sent = times.get(number).context("an id that was not sent")?;
        Ok(at.duration_since(*sent).as_secs_f64())
    };
    let delays: Result<Vec<f64>> = arrivals.into_iter().map(delay).collect();
    Ok(Heard {
        delays: delays?,
        processor,
    })
}

fn append(stream: &mut UnixStream, number: usize, id: &str) -> Result<()> {
    let params = format!(
        "{{\"entryId\":\"{id}\",\"message\":{{\"role\":\"user\",\"content\":\"Heard.\"}}}}"
    );
    Ok(stream.write_all(
        crate::daemon::request(1_000 + number as u64, "append_message", &params).as_bytes(),
    )?)
}

/// Sends an append each millisecond.
fn send(mut stream: UnixStream, times: &Sender<Instant>) -> Result<()> {
    let mut next = Instant::now();
    for number in 0..APPENDS {
        next += PAUSE;
        thread::sleep(next.saturating_duration_since(Instant::now()));
        times.send(Instant::now())?;
        append(&mut stream, number, &format!("n{number:0DIGITS$}"))?;
    }
    Ok(())
}

/// Reads until each client, also the sender, has a notification of all appends. Returns the numbers of the appends with
/// the times.
fn listen(streams: &[UnixStream]) -> Result<Vec<(usize, Instant)>> {
    let expected = streams.len() * APPENDS;
    let mut arrivals = Vec::with_capacity(expected);
    let mut unread = vec![Vec::new(); streams.len()];
    let mut block = vec![0; 64 << 10];
    while arrivals.len() < expected {
        let mut ready: Vec<PollFd<'_>> = streams
            .iter()
            .map(|stream| PollFd::new(stream, PollFlags::IN))
            .collect();
        let is_ready = poll(&mut ready, Some(&PATIENCE))?;
        ensure!(is_ready > 0, "{} of {expected} arrived", arrivals.len());
        let ready = ready.iter().map(|fd| !fd.revents().is_empty());
        for ((mut stream, unread), is_ready) in streams.iter().zip(&mut unread).zip(ready) {
            if !is_ready {
                continue;
            }
            let count = stream.read(&mut block)?;
            ensure!(count > 0, "the daemon ended");
            unread.extend_from_slice(&block[..count]);
            let now = Instant::now();
            let whole = memchr::memrchr(b'\n', unread).map_or(0, |at| at + 1);
            let lines = &unread[..whole];
            for at in memchr::memmem::find_iter(lines, ANNOUNCED) {
                let digits = &lines[at + ANNOUNCED.len()..][..DIGITS];
                arrivals.push((std::str::from_utf8(digits)?.parse()?, now));
            }
            unread.drain(..whole);
        }
    }
    Ok(arrivals)
}

/// The bytes that each idle connection adds to the daemon.
fn idle_memory(bench: &Bench) -> Result<f64> {
    let world = World::new(bench)?;
    let shared = SharedDaemon::start(bench, &world, StartOptions::default())?;
    let greeted = || {
        let mut client = shared.connect(Waiting::Blocked)?;
        client.timed("initialize", "{\"protocolVersion\":1}")?;
        Ok(client)
    };
    // The first connection makes what all connections share.
    let _first = greeted()?;
    let before = shared.memory();
    let clients: Result<Vec<SocketClient>> = (0..IDLE).map(|_| greeted()).collect();
    let clients = clients?;
    let added = shared.memory() - before;
    Ok(added / clients.len() as f64)
}
