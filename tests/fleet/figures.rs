//! Measures the engine under sessions on NATS JetStream, without treelined: three nodes on loopback that sync each write.
//!
//! `cargo run --release --features nats --example fleet-figures` prints the figures of schema/fleet.md: a plain
//! publish, a publish that compares and sets, a refused publish, the time until a follower has the message, 64 subjects
//! at the same time, reading from the beginning, and the recovery after the leader is killed. `tests/fleet/cluster`
//! makes the cluster, in a temporary folder.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::indexing_slicing)]

use async_nats::jetstream::{self, consumer::DeliverPolicy, consumer::pull::OrderedConfig, stream};
use async_nats::{Client, ConnectOptions, HeaderMap};
use futures_util::StreamExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const STREAM: &str = "treelined";
const APPENDS: usize = 500;
const AT_ONCE: usize = 64;
const KILLS: usize = 4;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A running cluster, ended when dropped.
struct Cluster {
    folder: PathBuf,
    servers: Vec<String>,
}

impl Cluster {
    fn start() -> Result<Self, Failure> {
        let folder = std::env::temp_dir().join(format!("fleet-figures-{}", std::process::id()));
        let servers = script(&["start", &folder.to_string_lossy()])?;
        let servers = servers.trim().split(',').map(str::to_owned).collect();
        Ok(Self { folder, servers })
    }

    fn node(&self, action: &str, name: &str) -> Result<(), Failure> {
        let number = name.trim_start_matches("node");
        script(&[action, &self.folder.to_string_lossy(), number]).map(|_| ())
    }

    async fn connect(&self) -> Result<Client, Failure> {
        let delay = |_| Duration::from_millis(20);
        let options = ConnectOptions::new().reconnect_delay_callback(delay);
        Ok(options.connect(&self.servers).await?)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _stopped = script(&["stop", &self.folder.to_string_lossy()]);
        let _removed = std::fs::remove_dir_all(&self.folder);
    }
}

fn script(arguments: &[&str]) -> Result<String, Failure> {
    let cluster = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fleet/cluster");
    let run = Command::new(cluster).args(arguments).output()?;
    match run.status.success() {
        true => Ok(String::from_utf8(run.stdout)?),
        false => Err(String::from_utf8_lossy(&run.stderr).into()),
    }
}

/// The measured times of one operation.
#[derive(Default)]
struct Times(Vec<Duration>);

impl Times {
    fn print(mut self, name: &str) {
        self.0.sort_unstable();
        let at = |percent: usize| self.0[(self.0.len() - 1) * percent / 100].as_secs_f64() * 1e3;
        let (p50, p99, count) = (at(50), at(99), self.0.len());
        println!("{name:<42} p50 {p50:>9.2} ms   p99 {p99:>9.2} ms   n {count}");
    }
}

fn expecting(sequence: u64, id: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("Nats-Expected-Last-Subject-Sequence", sequence.to_string());
    headers.insert("Nats-Msg-Id", id);
    headers
}

fn line(number: usize) -> String {
    format!(
        "{{\"type\":\"message\",\"id\":\"{number:016x}\",\"text\":\"{}\"}}\n",
        "x".repeat(450)
    )
}

async fn bare(context: &jetstream::Context, subject: &str) -> Result<Times, Failure> {
    let mut times = Times::default();
    for number in 0..APPENDS {
        let start = Instant::now();
        context
            .publish(subject.to_owned(), line(number).into())
            .await?
            .await?;
        times.0.push(start.elapsed());
    }
    Ok(times)
}

async fn compare_and_set(
    context: &jetstream::Context,
    subject: &str,
) -> Result<(Times, u64), Failure> {
    let (mut times, mut last) = (Times::default(), 0);
    for number in 0..APPENDS {
        let start = Instant::now();
        let headers = expecting(last, &format!("{subject}/{number}"));
        let publish =
            context.publish_with_headers(subject.to_owned(), headers, line(number).into());
        last = publish.await?.await?.sequence;
        times.0.push(start.elapsed());
    }
    Ok((times, last))
}

async fn refused(context: &jetstream::Context, subject: &str, last: u64) -> Result<Times, Failure> {
    let mut times = Times::default();
    for number in 0..APPENDS {
        let start = Instant::now();
        let headers = expecting(last - 1, &format!("refused/{number}"));
        let publish =
            context.publish_with_headers(subject.to_owned(), headers, line(number).into());
        let error = publish
            .await?
            .await
            .err()
            .ok_or("a wrong expectation was accepted")?;
        assert_eq!(
            error.kind(),
            jetstream::context::PublishErrorKind::WrongLastSequence
        );
        times.0.push(start.elapsed());
    }
    Ok(times)
}

/// The times from a publish until a follower with its own connection has the message.
async fn notified(cluster: &Cluster, context: &jetstream::Context) -> Result<Times, Failure> {
    let subject = "treelined.s.notified";
    let followed = jetstream::new(cluster.connect().await?);
    let config = OrderedConfig {
        filter_subject: subject.to_owned(),
        deliver_policy: DeliverPolicy::All,
        ..OrderedConfig::default()
    };
    let consumer = followed
        .get_stream(STREAM)
        .await?
        .create_consumer(config)
        .await?;
    let mut messages = consumer.messages().await?;
    let (mut times, mut last) = (Times::default(), 0);
    for number in 0..APPENDS {
        let start = Instant::now();
        let headers = expecting(last, &format!("{subject}/{number}"));
        let ack = context
            .publish_with_headers(subject, headers, line(number).into())
            .await?;
        let arrived = async {
            let message = messages.next().await.ok_or("the consumer ended")??;
            let sequence = message.info()?.stream_sequence;
            Ok::<_, Failure>((start.elapsed(), sequence))
        };
        let (acknowledged, arrived) = tokio::join!(ack.into_future(), arrived);
        last = acknowledged?.sequence;
        let (elapsed, sequence) = arrived?;
        assert_eq!(sequence, last);
        times.0.push(elapsed);
    }
    Ok(times)
}

/// Appends per second with 64 subjects at the same time. Each append waits for its acknowledgement.
async fn at_once(context: &jetstream::Context, expects: bool) -> Result<f64, Failure> {
    let start = Instant::now();
    let tasks = (0..AT_ONCE).map(|task| {
        let context = context.clone();
        tokio::spawn(async move {
            let subject = format!("treelined.s.many-{expects}-{task}");
            let mut last = 0;
            for number in 0..APPENDS / 5 {
                let headers = match expects {
                    true => expecting(last, &format!("{subject}/{number}")),
                    false => HeaderMap::new(),
                };
                let publish =
                    context.publish_with_headers(subject.clone(), headers, line(number).into());
                last = publish.await?.await?.sequence;
            }
            Ok::<_, Failure>(())
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await??;
    }
    Ok((AT_ONCE * APPENDS / 5) as f64 / start.elapsed().as_secs_f64())
}

/// Messages per second that an ordered consumer reads from the beginning.
async fn read_on(context: &jetstream::Context) -> Result<f64, Failure> {
    let config = OrderedConfig {
        filter_subject: "treelined.s.many-true-0".to_owned(),
        ..OrderedConfig::default()
    };
    let all = OrderedConfig {
        filter_subject: "treelined.s.>".to_owned(),
        ..config
    };
    let mut stream = context.get_stream(STREAM).await?;
    let count = stream.info().await?.state.messages;
    let messages = stream.create_consumer(all).await?.messages().await?;
    let start = Instant::now();
    let read = messages.take(usize::try_from(count)?).count().await;
    Ok(read as f64 / start.elapsed().as_secs_f64())
}

/// The times from the kill of the leader to the next acknowledged append. A publish that timed out is repeated with the
/// same id, which the server recognizes.
async fn recovery(cluster: &Cluster, context: &jetstream::Context) -> Result<Times, Failure> {
    let subject = "treelined.s.recovery";
    let (mut times, mut last) = (Times::default(), 0);
    for kill in 0..KILLS {
        let info = context.get_stream(STREAM).await?.get_info().await?;
        let leader = info
            .cluster
            .and_then(|cluster| cluster.leader)
            .ok_or("no leader")?;
        cluster.node("kill", &leader)?;
        let start = Instant::now();
        loop {
            let headers = expecting(last, &format!("{subject}/{kill}"));
            let publish = async {
                let publish = context.publish_with_headers(subject, headers, line(kill).into());
                Ok::<_, Failure>(publish.await?.await?)
            };
            match tokio::time::timeout(Duration::from_millis(500), publish).await {
                Ok(Ok(ack)) => {
                    last = ack.sequence;
                    break;
                }
                _ if start.elapsed() > Duration::from_secs(60) => return Err("no recovery".into()),
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
        times.0.push(start.elapsed());
        cluster.node("restart", &leader)?;
        tokio::time::sleep(Duration::from_secs(8)).await;
    }
    Ok(times)
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let cluster = Cluster::start()?;
    let context = jetstream::new(cluster.connect().await?);
    let config = stream::Config {
        name: STREAM.to_owned(),
        subjects: vec!["treelined.s.*".to_owned()],
        num_replicas: 3,
        duplicate_window: Duration::from_secs(120),
        ..stream::Config::default()
    };
    context.create_stream(config).await?;
    bare(&context, "treelined.s.warm").await?;
    bare(&context, "treelined.s.bare").await?.print("publish");
    let (times, last) = compare_and_set(&context, "treelined.s.cas").await?;
    times.print("publish, expected sequence and id");
    refused(&context, "treelined.s.cas", last)
        .await?
        .print("refused: wrong sequence");
    notified(&cluster, &context)
        .await?
        .print("from publish to a follower");
    println!(
        "64 subjects at once: {:.0} appends/s bare, {:.0} with expected sequences",
        at_once(&context, false).await?,
        at_once(&context, true).await?
    );
    println!("read on: {:.0} messages/s", read_on(&context).await?);
    recovery(&cluster, &context)
        .await?
        .print("from kill -9 of the leader to the next append");
    Ok(())
}
