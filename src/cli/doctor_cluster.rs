//! `treelined doctor --cluster`: the servers and the stream, and what an acknowledgement is worth there (fleet.md).

use super::fleet::servers;
use super::options::Options;
use super::screen::{Screen, Style};
use super::words::count;
use crate::config::NatsSettings;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use treelined_core::error::Result;
use treelined_core::terminal;
use treelined_files::os::file::owner_and_mode;
use treelined_fleet::guard::{ForeignMessage, ForeignMessages};
use treelined_fleet::limits::{self, StreamCluster, StreamInfo};
use treelined_fleet::stream::NatsLog;
use treelined_fleet::team::TeamRows;

/// A publish is repeated for so long, in nanoseconds.
const SHORTEST_WINDOW: i64 = 60_000_000_000;

/// Shows the servers and the stream, and what an acknowledgement is worth there.
pub(super) fn doctor(options: &Options, create: bool) -> anyhow::Result<ExitCode> {
    let settings = servers(&options.config()?)?;
    let exposed = exposed(options.settings()?.file(), &settings);
    let mut screen = Screen::new();
    if create {
        if NatsLog::create(settings.clone())? {
            writeln!(screen, "created the stream {:?}", settings.stream)?;
        }
        for bucket in TeamRows::of(&NatsLog::open(settings.clone())?).create()? {
            writeln!(screen, "created the bucket {bucket:?}")?;
        }
    }
    let (info, bucket, server) = NatsLog::describe(&settings)?;
    let mut fact = |name: &str, value: &str| {
        let name = screen.style(Style::Dim, &format!("{name:<9}"));
        writeln!(screen, "  {name}{}", terminal::line(value))
    };
    let cluster = info.cluster.as_ref();
    let of = cluster
        .and_then(|cluster| cluster.name.as_deref())
        .unwrap_or("no cluster");
    fact("server", &format!("NATS {}, {of}", server.version))?;
    fact(
        "stream",
        &format!("{}, created {}", settings.stream, info.created),
    )?;
    let sessions = count(info.state.num_subjects, "session", "sessions");
    let messages = count(info.state.messages, "message", "messages");
    let bytes = count(info.state.bytes, "byte", "bytes");
    fact("holds", &format!("{sessions}, {messages}, {bytes}"))?;
    fact("copies", &copies(&info))?;
    fact(
        "message",
        &format!(
            "{} at most",
            count(server.max_payload as u64, "byte", "bytes")
        ),
    )?;
    let larger = match bucket {
        Some(bucket) => format!("larger lines are objects of the bucket {bucket}"),
        None => "larger lines are refused: `--create` makes a bucket for them".to_owned(),
    };
    fact("lines", &larger)?;
    fact(
        "sync",
        "not visible to clients: every server needs `sync_interval: always`",
    )?;
    fact("ack", &worth(&info))?;
    let mut problems = problems(&info, &settings, (&server.version, server.max_payload));
    problems.extend(exposed);
    let erasable = NatsLog::erasable_buckets(&settings)?;
    problems.extend(erasable.into_iter().map(|name| {
        format!("a member can remove what {name} has: `--create` as an administrator forbids it")
    }));
    let foreign = NatsLog::foreign_messages(&settings, info.state.last_seq)?;
    fact("foreign", &looked(&foreign, info.state.messages))?;
    for message in &foreign.named {
        let ForeignMessage {
            sequence,
            subject,
            why,
        } = message;
        fact("", &format!("message {sequence} of {subject}: {why}"))?;
    }
    for problem in &problems {
        let name = screen.style(Style::Red, "problem");
        writeln!(screen, "  {name}: {}", terminal::line(problem))?;
    }
    screen.flush()?;
    Ok(match problems.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// The problem that other users of this machine can read the passwords of the configuration file.
fn exposed(file: Option<&Path>, settings: &NatsSettings) -> Option<String> {
    let (file, _) = file.zip(settings.addresses().1)?;
    let (_, mode) = owner_and_mode(&file.metadata().ok()?).ok()?;
    let name = file.display();
    (mode & 0o077 != 0).then(|| {
        format!("other users can read the passwords in {name}: `chmod 600 {name}` keeps them out")
    })
}

/// `2 messages of other programs, which are skipped`.
fn looked(foreign: &ForeignMessages, messages: u64) -> String {
    let found = match foreign.count {
        0 => "no message of another program".to_owned(),
        found => {
            let found = count(found, "message", "messages");
            format!("{found} of other programs, which are skipped")
        }
    };
    match foreign.looked_at < messages {
        true => format!("{found}, among the newest {}", foreign.looked_at),
        false => found,
    }
}

/// `3: n1 leads, n2 current, n3 offline`.
fn copies(info: &StreamInfo) -> String {
    let Some(cluster) = &info.cluster else {
        return info.config.num_replicas.to_string();
    };
    let leader = cluster.leader.as_deref().filter(|name| !name.is_empty());
    let leader = leader.map(|leader| format!("{leader} leads"));
    let peers = cluster.replicas.iter().map(|peer| {
        let state = match (peer.offline, peer.current) {
            (true, _) => "is offline".to_owned(),
            (_, true) => "is current".to_owned(),
            _ if peer.lag == 0 => "is not current".to_owned(),
            _ => format!("is {} behind", count(peer.lag, "operation", "operations")),
        };
        format!("{} {state}", peer.name)
    });
    let all: Vec<String> = leader.into_iter().chain(peers).collect();
    format!("{}: {}", info.config.num_replicas, all.join(", "))
}

/// The failures that an acknowledged line survives.
fn worth(info: &StreamInfo) -> String {
    let copies = info.config.num_replicas;
    match copies {
        0..=2 => "a line is on one server: it is lost with that server's disk".to_owned(),
        _ => format!(
            "a line is on {} of {copies} servers: it survives the loss of {}",
            copies / 2 + 1,
            count((copies - 1) / 2, "server", "servers")
        ),
    }
}

fn problems(info: &StreamInfo, settings: &NatsSettings, server: (&str, usize)) -> Vec<String> {
    let mut problems: Vec<String> = info.config.faults();
    let (version, max_payload) = server;
    let checks = [
        limits::check_version(version),
        limits::check_payload(max_payload),
    ];
    let failed = checks.into_iter().filter_map(Result::err);
    problems.extend(failed.map(|error| error.message.into_owned()));
    let copies = info.config.num_replicas;
    if copies < settings.replicas {
        problems.push(format!(
            "the stream has {copies} copies of each message, not {}",
            settings.replicas
        ));
    }
    if info.config.duplicate_window < SHORTEST_WINDOW {
        problems.push("the stream's duplicate_window is shorter than a minute".to_owned());
    }
    if !info.config.deny_delete || !info.config.deny_purge {
        problems.push("messages can be deleted: set deny_delete and deny_purge".to_owned());
    }
    if info.state.num_deleted > 0 {
        problems.push(format!(
            "{} deleted",
            count(info.state.num_deleted, "message was", "messages were")
        ));
    }
    problems.extend(info.fullness());
    let has_leader =
        |cluster: &StreamCluster| cluster.leader.as_ref().is_some_and(|name| !name.is_empty());
    if info
        .cluster
        .as_ref()
        .is_some_and(|cluster| !has_leader(cluster))
    {
        problems.push(
            "the stream has no leader: appends fail until most of its servers answer".to_owned(),
        );
    }
    let peers = info.cluster.iter().flat_map(|cluster| &cluster.replicas);
    for peer in peers.filter(|peer| peer.offline || !peer.current) {
        problems.push(format!("the copy of {} is not current", peer.name));
    }
    problems
}
