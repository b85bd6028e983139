//! Two faults that an administrator finds and repairs for the members of a team: buckets that a member could empty, and
//! messages of other programs.

use super::connection::{ANSWER, Connection};
use super::limits::StreamInfo;
use super::messages::{StreamMessage, received};
use super::nats_log::{NO_STREAM, NatsLog, connect, refused};
use super::objects;
use super::settings::NatsSettings;
use super::subject;
use async_nats::jetstream;
use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::{Ordered, OrderedConfig};
use futures_util::StreamExt;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use treelined_core::error::{Kind, Result};

/// The most messages that are checked, beginning with the newest. Only their headers are read.
const MOST_LOOKED_AT: u64 = 200_000;
/// The most foreign messages that are named.
const MOST_NAMED: usize = 100;
/// The settings of a stream from which no member can remove messages.
const GUARDED: [(&str, bool); 3] = [
    ("deny_delete", true),
    ("deny_purge", true),
    ("allow_rollup_hdrs", false),
];
/// How long the whole check may take, and how long it may wait for each message.
const LOOK: Duration = Duration::from_secs(10);
const NEXT: Duration = Duration::from_secs(2);

/// The messages of other programs in a stream. All readers skip them.
#[derive(Debug, Default)]
pub struct ForeignMessages {
    pub count: u64,
    /// The first of these messages, 100 at most.
    pub named: Vec<ForeignMessage>,
    /// The number of checked messages. They are the newest of the stream.
    pub looked_at: u64,
}

/// A message of another program.
#[derive(Debug)]
pub struct ForeignMessage {
    pub sequence: u64,
    pub subject: String,
    pub why: &'static str,
}

impl NatsLog {
    /// The names of the buckets from which a member can remove messages. Buckets that do not exist, or that this user
    /// may not see, are left out.
    pub fn erasable_buckets(settings: &NatsSettings) -> Result<Vec<String>> {
        let (runtime, connection) = connect(settings)?;
        runtime.block_on(async {
            let mut erasable = Vec::new();
            for stream in bucket_streams(settings) {
                let info = info(&connection, settings, &stream).await?;
                let is_erasable = info.is_some_and(|(info, _)| info.config.is_erasable());
                erasable.extend(is_erasable.then_some(stream));
            }
            Ok(erasable)
        })
    }

    /// Finds messages of other programs among the newest 200,000, in 10 s at most. Only headers are read, so a message
    /// with right headers and incomplete lines is not found.
    pub fn foreign_messages(settings: &NatsSettings, last: u64) -> Result<ForeignMessages> {
        let (runtime, connection) = connect(settings)?;
        runtime.block_on(async {
            let mut found = ForeignMessages::default();
            let first = last.saturating_sub(MOST_LOOKED_AT) + 1;
            let opening = tokio::time::timeout(NEXT, headers(&connection, settings, first)).await;
            let Some((mut messages, mut left)) = opening.ok().flatten() else {
                return Ok(found);
            };
            let began = Instant::now();
            while left > 0 && began.elapsed() < LOOK {
                let next = tokio::time::timeout(NEXT, messages.next()).await;
                let Ok(Some(Ok(message))) = next else { break };
                left = message.info().map_or(0, |info| info.pending);
                found.looked_at += 1;
                let subject = message.subject.to_string();
                let message: StreamMessage = received(message)?;
                let Some(why) = message.foreign_headers() else {
                    continue;
                };
                found.count += 1;
                if found.named.len() < MOST_NAMED {
                    found.named.push(ForeignMessage {
                        sequence: message.sequence,
                        subject,
                        why,
                    });
                }
            }
            Ok(found)
        })
    }
}

/// Changes the settings of the existing buckets, so that no member can empty them.
pub(super) async fn guard_buckets(connection: &Connection, settings: &NatsSettings) -> Result<()> {
    for stream in bucket_streams(settings) {
        let Some((info, mut config)) = info(connection, settings, &stream).await? else {
            continue;
        };
        if !info.config.is_erasable() {
            continue;
        }
        if let Some(config) = config.as_object_mut() {
            for (name, is_set) in GUARDED {
                config.insert(name.to_owned(), Value::Bool(is_set));
            }
        }
        let call = format!("STREAM.UPDATE.{stream}");
        let updated = connection.call::<StreamInfo>(&call, &config, ANSWER);
        updated.await?.map_err(|error| refused(settings, &error))?;
    }
    Ok(())
}

fn bucket_streams(settings: &NatsSettings) -> [String; 3] {
    let stream = &settings.stream;
    [
        objects::stream_name(settings),
        settings.rows_stream(),
        format!("KV_{stream}-presence"),
    ]
}

/// A stream, and its settings as the servers write them. `None` if the stream does not exist, or if this user may not
/// see it.
async fn info(
    connection: &Connection,
    settings: &NatsSettings,
    stream: &str,
) -> Result<Option<(StreamInfo, Value)>> {
    let call = format!("STREAM.INFO.{stream}");
    let answer = match connection.call::<Value>(&call, &Value::Null, ANSWER).await {
        Err(error) if error.kind == Kind::LogDenied => return Ok(None),
        answer => answer?,
    };
    match answer {
        Ok(answer) => {
            let config = answer.get("config").cloned().unwrap_or(json!({}));
            Ok(serde_json::from_value(answer)
                .ok()
                .map(|info| (info, config)))
        }
        Err(error) if error.err_code == NO_STREAM => Ok(None),
        Err(error) => Err(refused(settings, &error)),
    }
}

/// The headers of the messages from `first` on, and the number of these messages.
async fn headers(
    connection: &Connection,
    settings: &NatsSettings,
    first: u64,
) -> Option<(Ordered, u64)> {
    let context = jetstream::new(connection.client.clone());
    let stream = context.get_stream_no_info(&settings.stream).await.ok()?;
    let config = OrderedConfig {
        filter_subject: subject::ALL.to_owned(),
        headers_only: true,
        deliver_policy: DeliverPolicy::ByStartSequence {
            start_sequence: first,
        },
        ..OrderedConfig::default()
    };
    let consumer = stream.create_consumer(config).await.ok()?;
    let count = consumer.cached_info().num_pending;
    Some((consumer.messages().await.ok()?, count))
}
