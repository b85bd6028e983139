//! `treelined doctor --cluster` with NATS JetStream: examines the servers and the stream, and says which failures an
//! acknowledged line survives (fleet.md).

use super::doctor_servers::{end, exposed, fact};
use super::failure::ShellError;
use super::options::Options;
use super::screen::Screen;
use super::words::count;
use std::io::Write;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};
use treelined_core::error::{Kind, Result};
use treelined_fleet::engines;
use treelined_fleet::guard::{ForeignMessage, ForeignMessages};
use treelined_fleet::limits::{self, StreamCluster, StreamInfo, StreamPeer};
use treelined_fleet::probe::{ProbedServer, probe};
use treelined_fleet::settings::{NatsSettings, TeamSettings};
use treelined_fleet::stream::{NatsLog, ServerInfo};
use treelined_fleet::team::TeamRows;

/// The shortest acceptable `duplicate_window` of the stream, in nanoseconds. Within this window the servers recognize a
/// repeated publish.
const SHORTEST_WINDOW: i64 = 60_000_000_000;
/// How long the command waits until a majority of the servers has chosen another leader of the stream. The servers
/// begin after 4 to 9 s.
const ELECTION: Duration = Duration::from_secs(30);
/// How long the command watches copies that are not current.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(250);

/// Shows the servers and the stream, and which failures an acknowledged line survives.
pub(super) fn doctor(
    options: &Options,
    settings: NatsSettings,
    create: bool,
) -> anyhow::Result<ExitCode> {
    let exposed = secrets(options, &settings)?;
    let mut screen = Screen::new();
    let probed = probe(&settings);
    let settings = answering(settings, &probed)?;
    // The servers are shown first, since a stream without a leader answers late.
    writeln!(screen, "{}", fact(&screen, "servers", &answers(&probed)))?;
    screen.flush()?;
    if create {
        if NatsLog::create(settings.clone())? {
            writeln!(screen, "created the stream {:?}", settings.stream)?;
        }
        let log = engines::open(&TeamSettings::Nats(settings.clone()), None)?;
        for stream in TeamRows::of(&*log).create()? {
            writeln!(screen, "created the stream {stream:?}")?;
        }
    }
    let first = led(&settings, &probed)?;
    let (info, bucket, server) = settled(&settings, &probed, first)?;
    let (stuck, info) = (stuck(&info, &probed), info.now);
    let silent = silent(&info, &probed);
    let server = (&*server.version, server.max_payload);
    for (name, value) in facts(&info, bucket, &settings.stream, server, &silent) {
        writeln!(screen, "{}", fact(&screen, name, &value))?;
    }
    let mut problems = absent(&silent, &probed);
    problems.extend(self::problems(&info, &settings, server));
    problems.extend(lagging(&info, &silent, stuck.as_deref()));
    problems.extend(exposed);
    // A stream whose leader has died may not answer the following requests. The report continues without these answers.
    match NatsLog::erasable_buckets(&settings) {
        Ok(names) => problems.extend(names.into_iter().map(|name| {
            format!(
                "a member can remove what {name} has: `--create` as an administrator forbids it"
            )
        })),
        Err(error) => problems.push(format!("the other streams were not examined: {error}")),
    }
    match NatsLog::foreign_messages(&settings, info.state.last_seq) {
        Ok(foreign) => write_foreign(&mut screen, &foreign, info.state.messages)?,
        Err(error) => problems.push(format!(
            "the stream was not searched for foreign messages: {error}"
        )),
    }
    end(screen, &problems)
}

fn write_foreign(
    screen: &mut Screen,
    foreign: &ForeignMessages,
    messages: u64,
) -> anyhow::Result<()> {
    writeln!(
        screen,
        "{}",
        fact(screen, "foreign", &looked(foreign, messages))
    )?;
    for message in &foreign.named {
        let ForeignMessage {
            sequence,
            subject,
            why,
        } = message;
        let named = format!("message {sequence} of {subject}: {why}");
        writeln!(screen, "{}", fact(screen, "", &named))?;
    }
    Ok(())
}

/// The facts about the stream and its servers, one on each line.
fn facts(
    info: &StreamInfo,
    bucket: Option<String>,
    stream: &str,
    (version, max_payload): (&str, usize),
    silent: &[&str],
) -> Vec<(&'static str, String)> {
    let cluster = info.cluster.as_ref();
    let of = cluster
        .and_then(|cluster| cluster.name.as_deref())
        .unwrap_or("no cluster");
    let sessions = count(info.state.num_subjects, "session", "sessions");
    let messages = count(info.state.messages, "message", "messages");
    let bytes = count(info.state.bytes, "byte", "bytes");
    let larger = match bucket {
        Some(bucket) => format!("larger lines are objects of the bucket {bucket}"),
        None => "larger lines are refused: `--create` makes a bucket for them".to_owned(),
    };
    let most = count(max_payload as u64, "byte", "bytes");
    let sync = "not visible to clients: every server needs `sync_interval: always`";
    vec![
        ("server", format!("NATS {version}, {of}")),
        ("stream", format!("{stream}, created {}", info.created)),
        ("holds", format!("{sessions}, {messages}, {bytes}")),
        ("copies", copies(info, silent)),
        ("message", format!("{most} at most")),
        ("lines", larger),
        ("sync", sync.to_owned()),
        ("ack", worth(info)),
        ("service", service(info, silent)),
    ]
}

/// The settings with only the servers that answer. Fails if none answers.
fn answering(settings: NatsSettings, probed: &[ProbedServer]) -> anyhow::Result<NatsSettings> {
    if probed.iter().any(|server| server.answers) {
        let answers: Vec<bool> = probed.iter().map(|server| server.answers).collect();
        return Ok(settings.only(&answers));
    }
    let why = format!("no server answers: {}", answers(probed));
    let remedy = "start the servers, or correct `servers` of [team]; `nats-server --config FILE` says why one does not start";
    Err(ShellError::failed(
        format!("{why} (logUnavailable)"),
        remedy,
    ))
}

/// Says of each server whether it answers, such as `n1 answers, nats://10.0.0.2:4222 does not answer`.
fn answers(probed: &[ProbedServer]) -> String {
    let of = |server: &ProbedServer| match (server.answers, &server.name) {
        (true, Some(name)) => format!("{name} answers"),
        (true, None) => format!("{} answers", server.address),
        (false, _) => format!("{} does not answer", server.address),
    };
    probed.iter().map(of).collect::<Vec<_>>().join(", ")
}

/// The names of the servers of the stream that do not answer: the leader has given them up, or their address does not
/// answer. The second case is known only if the settings have the addresses of all servers.
fn silent<'i>(info: &'i StreamInfo, probed: &[ProbedServer]) -> Vec<&'i str> {
    let Some(cluster) = &info.cluster else {
        return Vec::new();
    };
    let is_met = |name: &str| probed.iter().any(|it| it.name.as_deref() == Some(name));
    let absent = probed.iter().filter(|server| !server.answers).count();
    let unmet = cluster
        .replicas
        .iter()
        .filter(|peer| !is_met(&peer.name))
        .count();
    let is_silent =
        |peer: &&StreamPeer| peer.offline || (absent > 0 && unmet <= absent && !is_met(&peer.name));
    let peers = cluster.replicas.iter().filter(is_silent);
    peers.map(|peer| peer.name.as_str()).collect()
}

/// The problems of servers that do not answer. Servers that the stream knows are shown by their names.
fn absent(silent: &[&str], probed: &[ProbedServer]) -> Vec<String> {
    let addresses: Vec<&str> = probed
        .iter()
        .filter(|server| !server.answers)
        .map(|server| server.address.as_str())
        .collect();
    let remedy = "start it again, or look into its log";
    match (silent, addresses.as_slice()) {
        ([name], [address]) => vec![format!("{name} ({address}) does not answer: {remedy}")],
        ([], addresses) => {
            let of = |address: &&str| format!("{address} does not answer: {remedy}");
            addresses.iter().map(of).collect()
        }
        (names, addresses) => {
            let place = match addresses {
                [] => String::new(),
                some => format!(" ({})", some.join(", ")),
            };
            let of = |name: &&str| format!("{name} does not answer{place}: {remedy}");
            names.iter().map(of).collect()
        }
    }
}

/// How many servers may fail before appends fail.
fn service(info: &StreamInfo, silent: &[&str]) -> String {
    // If the stream has no leader, the list of other servers includes all of them.
    let all = usize::try_from(info.config.num_replicas)
        .unwrap_or(1)
        .max(1);
    let answering = all - silent.len().min(all);
    let needed = all / 2 + 1;
    match answering.checked_sub(needed) {
        None => format!("appends fail: {answering} of {all} servers answer, and {needed} must"),
        Some(0) if all == 1 => "appends fail while the server is away".to_owned(),
        Some(0) => {
            format!("{answering} of {all} servers answer: appends fail if one more does not")
        }
        Some(more) => {
            let more = count(more as u64, "server", "servers");
            format!("{answering} of {all} servers answer: appends go on without {more}")
        }
    }
}

/// The problems of files with secrets that other users of this machine can read: the configuration file, if it has
/// passwords, and the files that it names.
fn secrets(options: &Options, settings: &NatsSettings) -> anyhow::Result<Vec<String>> {
    let given = options.settings()?;
    let passwords = given.file().filter(|_| settings.addresses().1.is_some());
    let key = settings.certificate.as_ref().map(|(_, key)| key.as_path());
    Ok(exposed(&[
        ("the passwords in", passwords),
        ("the credentials in", settings.credentials.as_deref()),
        ("the key in", key),
    ]))
}

/// The number of foreign messages, such as `2 messages of other programs, which are skipped`.
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

/// The copies of the stream, such as `3: n1 leads, n2 is current, n3 does not answer`.
fn copies(info: &StreamInfo, silent: &[&str]) -> String {
    let Some(cluster) = &info.cluster else {
        return info.config.num_replicas.to_string();
    };
    let leader = cluster.leader.as_deref().filter(|name| !name.is_empty());
    let leader = leader.map(|leader| format!("{leader} leads"));
    let peers = cluster.replicas.iter().map(|peer| {
        let is_silent = silent.contains(&peer.name.as_str());
        let state = match (is_silent, peer.current) {
            (true, _) => "does not answer".to_owned(),
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
    problems
}

/// The state of a stream when it was looked at first, and now.
struct Observed {
    first: StreamInfo,
    now: StreamInfo,
}

/// Describes the stream. If its leader has died, waits until most servers have chosen another one, for [`ELECTION`] at
/// most.
fn led(
    settings: &NatsSettings,
    probed: &[ProbedServer],
) -> Result<(StreamInfo, Option<String>, ServerInfo)> {
    let answering = probed.iter().filter(|server| server.answers).count();
    let began = Instant::now();
    loop {
        match NatsLog::describe(settings) {
            Err(error)
                if error.kind == Kind::LogUnavailable
                    && answering * 2 > probed.len()
                    && began.elapsed() < ELECTION =>
            {
                thread::sleep(PAUSE);
            }
            described => return described,
        }
    }
}

/// Looks at the stream again until all copies that answer are current, for [`PATIENCE`] at most.
fn settled(
    settings: &NatsSettings,
    probed: &[ProbedServer],
    (first, mut bucket, mut server): (StreamInfo, Option<String>, ServerInfo),
) -> Result<(Observed, Option<String>, ServerInfo)> {
    let began = Instant::now();
    let mut now = first.clone();
    while behind(&now, &silent(&now, probed)).next().is_some() && began.elapsed() < PATIENCE {
        thread::sleep(PAUSE);
        (now, bucket, server) = led(settings, probed)?;
    }
    Ok((Observed { first, now }, bucket, server))
}

/// The copies that answer and are not current.
fn behind<'i>(info: &'i StreamInfo, silent: &'i [&str]) -> impl Iterator<Item = &'i StreamPeer> {
    let peers = info.cluster.iter().flat_map(|cluster| &cluster.replicas);
    peers.filter(|peer| !peer.current && !silent.contains(&&*peer.name))
}

/// The copy that has not come closer to the other copies, if all others are current.
fn stuck(Observed { first, now }: &Observed, probed: &[ProbedServer]) -> Option<String> {
    // The number of operations of a stream is about the number of its messages.
    let reached = |info: &StreamInfo, name: &str| {
        let mut peers = info.cluster.iter().flat_map(|cluster| &cluster.replicas);
        let peer = peers.find(|peer| peer.name == name)?;
        Some(i128::from(info.state.last_seq) - i128::from(peer.lag))
    };
    let silent = silent(now, probed);
    let mut behind = behind(now, &silent);
    let (peer, others) = (behind.next()?, behind.next());
    let is_closer = reached(now, &peer.name) > reached(first, &peer.name);
    let is_alone = others.is_none() && silent.is_empty();
    (is_alone && peer.lag > 0 && !is_closer).then(|| peer.name.clone())
}

/// The problems of copies that are not current. If most servers have lost their disks, they have forgotten messages
/// that the last server still has. Then the last server refuses the copies of the others until they have as many
/// operations as its own copy (fleet.md "After a loss").
fn lagging(info: &StreamInfo, silent: &[&str], stuck: Option<&str>) -> Vec<String> {
    let problem = |peer: &StreamPeer| match &peer.name {
        name if stuck == Some(name) => format!(
            "the copy of {name} is not current, and came no closer in {} s: if that stays so and each machine has run \
             `push --all`, stop {name}, move its store_dir away, and start it again",
            PATIENCE.as_secs()
        ),
        name => format!("the copy of {name} is not current: it catches up by itself"),
    };
    behind(info, silent).map(problem).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn info(last: u64, peers: &[(&str, u64)]) -> StreamInfo {
        let replicas: Vec<_> = peers
            .iter()
            .map(|(name, lag)| json!({ "name": name, "current": *lag == 0, "lag": lag }))
            .collect();
        serde_json::from_value(json!({
            "config": {}, "created": "", "state": { "last_seq": last },
            "cluster": { "leader": "n3", "replicas": replicas },
        }))
        .unwrap()
    }

    /// After a loss of two disks of three, the copy of the third server never becomes current. The report once said
    /// that it catches up.
    #[test]
    fn a_copy_that_comes_no_closer_has_a_remedy() {
        let found = |first: (u64, u64), now: (u64, u64)| {
            let of = |(last, lag)| info(last, &[("n1", lag), ("n2", 0)]);
            let observed = Observed {
                first: of(first),
                now: of(now),
            };
            let stuck = stuck(&observed, &[]);
            lagging(&observed.now, &[], stuck.as_deref())
        };
        assert!(found((5, 3), (5, 0)).is_empty());
        for (first, now, is_stuck) in [
            ((5, 3), (5, 3), true),
            ((5, 3), (9, 7), true),
            ((5, 3), (5, 2), false),
            ((5, 3), (9, 4), false),
        ] {
            let problems = found(first, now);
            assert_eq!(problems.len(), 1);
            assert_eq!(problems[0].contains("store_dir"), is_stuck, "{problems:?}");
        }
        // Another copy that is not current may be needed.
        let both = || info(5, &[("n1", 3), ("n2", 1)]);
        let observed = Observed {
            first: both(),
            now: both(),
        };
        assert_eq!(stuck(&observed, &[]), None);
    }
}
