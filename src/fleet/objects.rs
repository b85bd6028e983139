//! Lines that are larger than a message. They are objects of the bucket `<stream>-lines`, and their hash is their name.
//! The message of the session refers to the object. An object without a message does no harm: another append of the
//! same lines uses it.

use super::connection::{ANSWER, Connection, unavailable};
use super::messages::StreamMessage;
use super::nats_log::{HASH, NO_STREAM, NatsLog, OBJECT, PAUSE, STALE, refused};
use super::replica::hash;
use crate::settings::NatsSettings;
use async_nats::jetstream::object_store::{GetErrorKind, InfoErrorKind, ObjectInfo, ObjectStore};
use async_nats::{HeaderMap, jetstream};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use serde::de::IgnoredAny;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;
use treelined_core::error::{Error, Kind, Result};

/// The most bytes of an append. A session file can have longer lines, but no program should write them.
pub(super) const MOST_BYTES: usize = 64 << 20;
/// The bytes of one part of an object. A part has fewer bytes if the servers do not accept such large messages.
const CHUNK: usize = 512 << 10;
/// The most parts of an object that wait for an acknowledgement at the same time.
const AT_ONCE: usize = 8;
/// How long the transfer of one object may take.
const OBJECT_TIME: Duration = Duration::from_secs(20);

/// The lines of a message, or a reference to an object with the lines.
pub(super) struct Payload {
    pub(super) bytes: Vec<u8>,
    /// The headers of the reference.
    pub(super) headers: HeaderMap,
}

impl Payload {
    pub(super) fn of_lines(lines: &[u8]) -> Self {
        Self {
            bytes: lines.to_vec(),
            headers: HeaderMap::new(),
        }
    }

    fn of_object(name: &str, bytes: usize) -> Self {
        let reference = json!({ "type": "treelined.object", "object": name, "bytes": bytes });
        let mut headers = HeaderMap::new();
        headers.insert(OBJECT, name);
        headers.insert(HASH, name);
        Self {
            bytes: format!("{reference}\n").into_bytes(),
            headers,
        }
    }
}

/// The name of the bucket that belongs to a stream.
pub(super) fn bucket_name(settings: &NatsSettings) -> String {
    format!("{}-lines", settings.stream)
}

/// Makes the bucket of a stream if it does not exist.
pub(super) async fn create_bucket(connection: &Connection, settings: &NatsSettings) -> Result<()> {
    if has_bucket(connection, settings).await? {
        return Ok(());
    }
    let bucket = bucket_name(settings);
    let config = json!({
        "name": stream_name(settings),
        "description": "lines of sessions that are larger than a message",
        "subjects": [format!("$O.{bucket}.C.>"), format!("$O.{bucket}.M.>")],
        "retention": "limits",
        "storage": "file",
        "discard": "new",
        "max_age": 0,
        "num_replicas": settings.replicas,
        "allow_direct": true,
        // The hash of an object is its name, so an object is never replaced and nothing has to be removed.
        "deny_delete": true,
        "deny_purge": true,
        "allow_rollup_hdrs": false,
    });
    let call = format!("STREAM.CREATE.{}", stream_name(settings));
    let made = connection.call::<IgnoredAny>(&call, &config, ANSWER);
    made.await?.map(|_| ()).map_err(|error| {
        let why = format!(
            "the bucket {bucket:?} cannot be made: {}",
            error.description
        );
        Error::new(Kind::LogMisconfigured, why)
    })
}

/// The name of the stream in which the bucket is stored.
pub(super) fn stream_name(settings: &NatsSettings) -> String {
    format!("OBJ_{}", bucket_name(settings))
}

/// Whether the bucket of a stream exists and this user may use it.
pub(super) async fn has_bucket(connection: &Connection, settings: &NatsSettings) -> Result<bool> {
    let name = format!("STREAM.INFO.{}", stream_name(settings));
    let nothing = serde_json::Value::Null;
    match connection.call::<IgnoredAny>(&name, &nothing, ANSWER).await {
        Ok(Ok(_)) => Ok(true),
        Ok(Err(error)) if error.err_code == NO_STREAM => Ok(false),
        Ok(Err(error)) => Err(refused(settings, &error)),
        Err(error) if error.kind == Kind::LogDenied => Ok(false),
        Err(error) => Err(error),
    }
}

impl NatsLog {
    /// The bucket; `None` if it does not exist, or if this user may not use it.
    async fn bucket(&self) -> Result<Option<ObjectStore>> {
        if !has_bucket(&self.connection, &self.settings).await? {
            return Ok(None);
        }
        let context = jetstream::new(self.connection.client.clone());
        let bucket = context.get_object_store(bucket_name(&self.settings)).await;
        bucket
            .map(Some)
            .map_err(|error| unavailable(format!("the bucket does not answer: {error}")))
    }

    /// The payload of a message for these lines. If the lines are larger than a message, they are stored as an object.
    pub(super) async fn payload(&self, session: &str, lines: &[u8]) -> Result<Payload> {
        let most = self.max_message();
        if lines.len() <= most {
            return Ok(Payload::of_lines(lines));
        }
        let too_large = |why: &str| {
            let bytes = lines.len();
            let why = format!(
                "{bytes} bytes for session {session:?} are more than a message may have ({most}): {why}"
            );
            Error::new(Kind::PayloadTooLarge, why)
        };
        if lines.len() > MOST_BYTES {
            let why = format!("no append has more than {MOST_BYTES} bytes");
            return Err(too_large(&why));
        }
        let name = hash(lines);
        let kept = in_time(async {
            let Some(bucket) = self.bucket().await? else {
                return Ok(false);
            };
            if !has(&bucket, &name, lines.len()).await? {
                let put = self.put(&name, lines).await;
                put.map_err(|why| unavailable(format!("an object is not kept: {why}")))?;
            }
            Ok(true)
        });
        match kept.await? {
            true => Ok(Payload::of_object(&name, lines.len())),
            false => Err(too_large(&format!(
                "there is no bucket {:?} to keep them; `treelined doctor --cluster --create` makes it",
                bucket_name(&self.settings)
            ))),
        }
    }

    /// Writes an object in the format of all clients of NATS. Several of its parts wait for an acknowledgement at the
    /// same time.
    async fn put(&self, name: &str, lines: &[u8]) -> Result<(), String> {
        let bucket = bucket_name(&self.settings);
        let context = jetstream::new(self.connection.client.clone());
        let inbox = self.connection.client.new_inbox();
        let place = inbox.rsplit('.').next().unwrap_or(&inbox);
        let size = CHUNK.min(self.max_message()).max(1);
        let (mut sent, mut last) = (VecDeque::new(), 0);
        let mut parts = lines.chunks(size);
        loop {
            let next = match sent.len() {
                AT_ONCE => None,
                _ => parts.next(),
            };
            if let Some(part) = next {
                let subject = format!("$O.{bucket}.C.{place}");
                let publish = context.publish(subject, part.to_vec().into());
                sent.push_back(publish.await.map_err(in_words)?);
            } else if let Some(first) = sent.pop_front() {
                let sequence = first.await.map_err(in_words)?.sequence;
                if sequence <= last {
                    return Err("its parts are not in order".to_owned());
                }
                last = sequence;
            } else {
                break;
            }
        }
        let info = json!({
            "name": name, "bucket": bucket, "nuid": place, "size": lines.len(), "chunks": lines.len().div_ceil(size),
            "digest": format!("SHA-256={}", URL_SAFE.encode(Sha256::digest(lines))),
            "options": { "max_chunk_size": size }, "deleted": false,
        });
        let subject = format!("$O.{bucket}.M.{}", URL_SAFE.encode(name));
        let info = info.to_string().into_bytes().into();
        // The message has no rollup header, and the bucket refuses that header: with it, a member could remove all
        // objects.
        let sent = context.publish(subject, info).await;
        sent.map_err(in_words)?.await.map_err(in_words)?;
        Ok(())
    }

    /// The lines of a message, or of the object to which the message refers.
    pub(super) async fn lines(&self, session: &str, message: StreamMessage) -> Result<Vec<u8>> {
        let text = |name: &str| Some(message.headers.get(name)?.as_str().to_owned());
        let (name, expected) = match (text(OBJECT), text(HASH)) {
            (Some(name), Some(hash)) => (name, hash),
            (None, None) => return Ok(message.payload),
            // Such a message is foreign, so no reader asks for its lines.
            _ => return Err(message.foreign(session, "its reference to an object is not whole")),
        };
        let began = Instant::now();
        loop {
            let read = in_time(self.object(session, &message, &name)).await;
            let read = read.and_then(|bytes| match hash(&bytes) == expected {
                true => Ok(bytes),
                false => Err(message.foreign(session, "its object has other bytes")),
            });
            match read {
                // The server that answers may lag behind the server that has acknowledged the object.
                Err(error) if may_pass(&error) && began.elapsed() < STALE => {
                    tokio::time::sleep(PAUSE).await;
                }
                read => return read,
            }
        }
    }

    /// The bytes of the object to which a message refers.
    async fn object(&self, session: &str, message: &StreamMessage, name: &str) -> Result<Vec<u8>> {
        let missing = || {
            let why = format!(
                "message {} of session {session:?} refers to the object {name:?}, which the bucket {:?} does not have, or not yet",
                message.sequence,
                bucket_name(&self.settings)
            );
            unavailable(why)
        };
        let bucket = self.bucket().await?.ok_or_else(missing)?;
        let mut object = match bucket.get(name).await {
            Ok(object) if object.info().size <= MOST_BYTES => object,
            Ok(_) => return Err(message.foreign(session, "its object is too large")),
            Err(error) if error.kind() == GetErrorKind::NotFound => return Err(missing()),
            Err(error) => return Err(unavailable(format!("an object cannot be read: {error}"))),
        };
        let mut bytes = Vec::with_capacity(object.info().size);
        match object.read_to_end(&mut bytes).await {
            Ok(_) => Ok(bytes),
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                Err(message.foreign(session, "its object is damaged"))
            }
            Err(error) => Err(unavailable(format!("an object cannot be read: {error}"))),
        }
    }
}

/// Whether a server that lags can be the cause of this failure to read an object.
fn may_pass(error: &Error) -> bool {
    matches!(error.kind, Kind::LogUnavailable | Kind::LogForeign)
}

/// Whether a bucket has an object of this name and size.
async fn has(bucket: &ObjectStore, name: &str, size: usize) -> Result<bool> {
    let is_whole = |info: &ObjectInfo| !info.deleted && info.size == size;
    match bucket.info(name).await {
        Ok(info) => Ok(is_whole(&info)),
        Err(error) if error.kind() == InfoErrorKind::NotFound => Ok(false),
        Err(error) => Err(unavailable(format!("the bucket does not answer: {error}"))),
    }
}

fn in_words(error: impl std::error::Error) -> String {
    error.to_string()
}

async fn in_time<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let done = tokio::time::timeout(OBJECT_TIME, work).await;
    done.unwrap_or_else(|_| {
        let time = OBJECT_TIME.as_secs();
        Err(unavailable(format!("an object took more than {time} s")))
    })
}
