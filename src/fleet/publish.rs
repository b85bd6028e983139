//! Appends to a stream: a publish that compares and sets. It is repeated until its outcome is known or its time is
//! over.

use super::backend::{AppendOutcome, Position};
use super::closing;
use super::connection::{ApiError, NoAnswer, answer_of, unavailable};
use super::nats_log::{
    CLOSED, EXPECTED, LINES, NatsLog, OTHER_STREAM, PAUSE, SEALED, STALE, STORE_FAILED, TOO_LARGE,
};
use super::objects::Payload;
use super::replica::hex;
use super::stream::ATTEMPT;
use super::subject;
use super::transfer::count_lines;
use async_nats::HeaderMap;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::time::{Duration, Instant};
use treelined_core::error::{Error, Kind, Result};

const EXPECTED_STREAM: &str = "Nats-Expected-Stream";
const MESSAGE_ID: &str = "Nats-Msg-Id";
/// The number of digits of the hash in the id of a message.
const ID_DIGITS: usize = 32;
/// The pause after a refusal, if the servers are about to store another message.
const IN_FLIGHT_PAUSE: Duration = Duration::from_millis(10);
/// Each attempt waits at least this long for its answer, even if the time of the append is nearly over.
const LAST_ANSWER: Duration = Duration::from_millis(500);

/// The codes of JetStream's errors.
pub(super) const WRONG_SEQUENCE: u64 = 10071;
/// A message with this id is about to be stored.
const ID_IN_FLIGHT: u64 = 10158;
/// Another message of the subject is about to be stored.
const SUBJECT_IN_FLIGHT: u64 = 10164;

/// The acknowledgement of a publish.
#[derive(Deserialize)]
struct PublishAck {
    seq: u64,
    #[serde(default)]
    duplicate: bool,
}

/// The state of an append that is being tried.
struct Attempts {
    until: Instant,
    /// Whether an attempt was sent and not answered. The servers may have stored its lines.
    is_open: bool,
    /// The text of the last refusal after which another attempt can succeed.
    refusal: Option<String>,
}

impl Attempts {
    fn remaining(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    fn are_over(&self) -> bool {
        self.remaining().is_zero()
    }

    /// The error of an append that ends without an outcome.
    fn error(&self, why: Error) -> Error {
        match self.is_open {
            true => unknown(&why.message),
            false => why,
        }
    }
}

/// The answer to one attempt.
enum Answer {
    Stored(u64),
    /// The session does not end at the expected message. If `is_later`, the session ends after that message: either an
    /// earlier attempt of this append is stored, or another append.
    Elsewhere {
        is_later: bool,
    },
    /// The server believes that it is about to store this message already.
    IdInFlight,
    /// Another attempt follows after this pause.
    Later(Duration),
}

impl NatsLog {
    /// Appends lines. Fails with `durabilityUnknown` if the lines may be in the stream, or may appear there later.
    pub(super) async fn publish(
        &self,
        session: &str,
        expected: Position,
        lines: &[u8],
    ) -> Result<AppendOutcome> {
        let room = self.in_flight.room(lines.len(), self.append_time).await?;
        let published = self.publish_tried(session, expected, lines).await;
        room.end();
        published
    }

    async fn publish_tried(
        &self,
        session: &str,
        expected: Position,
        lines: &[u8],
    ) -> Result<AppendOutcome> {
        let subject = subject::subject(session);
        let payload = self.payload(session, lines).await?;
        let without_id = self.headers(session, expected, (lines, &payload));
        let mut headers = without_id.clone();
        headers.insert(MESSAGE_ID, message_id(session, expected, &payload.bytes));
        let bytes = &*payload.bytes;
        let mut attempts = Attempts {
            until: Instant::now() + self.append_time,
            is_open: false,
            refusal: None,
        };
        loop {
            let answer = self
                .attempt(&subject, &headers, (expected, bytes), &mut attempts)
                .await;
            match answer.map_err(|error| attempts.error(error))? {
                Answer::Stored(sequence) => {
                    self.note_acknowledgement();
                    return Ok(AppendOutcome::Appended(Position(sequence)));
                }
                // NATS 2.11 keeps the id of a refused message forever, so the next attempt has no id. The expected
                // sequence alone prevents a second message.
                Answer::IdInFlight if !attempts.are_over() => {
                    headers = without_id.clone();
                    tokio::time::sleep(IN_FLIGHT_PAUSE).await;
                }
                Answer::Elsewhere { is_later } => {
                    let place = (&*subject, expected, bytes);
                    return self.settled(place, is_later, &attempts).await;
                }
                Answer::Later(pause) if !attempts.are_over() => {
                    tokio::time::sleep(pause.min(attempts.remaining())).await;
                }
                Answer::Later(_) | Answer::IdInFlight => {
                    let why = attempts.refusal.take().unwrap_or_default();
                    return Err(attempts.error(self.silence(&why).await));
                }
            }
        }
    }

    async fn attempt(
        &self,
        subject: &str,
        headers: &HeaderMap,
        (expected, payload): (Position, &[u8]),
        attempts: &mut Attempts,
    ) -> Result<Answer> {
        // Without a connection, the client would keep the message and send it later.
        if !self.connection.is_connected() {
            return Ok(Answer::Later(PAUSE));
        }
        let time = ATTEMPT.min(attempts.remaining()).max(LAST_ANSWER);
        let (subject, headers) = (subject.to_owned(), headers.clone());
        let sent = self
            .connection
            .request(subject, headers, payload.to_vec(), time);
        match sent.await {
            Ok(answer) => match answer_of::<PublishAck>(&answer.payload)? {
                Ok(ack) if !ack.duplicate => Ok(Answer::Stored(ack.seq)),
                // The server has stored an earlier attempt, and its answer was lost.
                Ok(_) => Ok(Answer::Elsewhere { is_later: true }),
                Err(error) => {
                    attempts.refusal =
                        Some(format!(": {} ({})", error.description, error.err_code));
                    self.refusal(&error, expected)
                }
            },
            Err(NoAnswer::Failed(error)) => Err(error),
            Err(NoAnswer::NoResponders) => Ok(Answer::Later(PAUSE)),
            Err(NoAnswer::TimedOut | NoAnswer::Lost(_)) => {
                attempts.is_open = true;
                Ok(Answer::Later(PAUSE))
            }
        }
    }

    fn refusal(&self, error: &ApiError, expected: Position) -> Result<Answer> {
        match error.err_code {
            WRONG_SEQUENCE => {
                // The text of this error is "wrong last sequence: 12".
                let words = error.description.rsplit(' ').next();
                let last = words.and_then(|last| last.parse::<u64>().ok());
                let is_later = last.is_some_and(|last| last > expected.0);
                Ok(Answer::Elsewhere { is_later })
            }
            ID_IN_FLIGHT => Ok(Answer::IdInFlight),
            SUBJECT_IN_FLIGHT => Ok(Answer::Later(IN_FLIGHT_PAUSE)),
            OTHER_STREAM | TOO_LARGE | STORE_FAILED | SEALED => Err(self.refused(error)),
            _ => Ok(Answer::Later(PAUSE)),
        }
    }

    /// The error for an append that got no acknowledgement. If the stream was removed, no server answers for its
    /// subjects.
    async fn silence(&self, refusal: &str) -> Error {
        let time = self.append_time.as_secs();
        if !self.connection.is_connected() {
            return unavailable(format!("no server was connected for {time} s"));
        }
        match self.info(LAST_ANSWER).await {
            Err(error) if error.kind != Kind::LogUnavailable => error,
            _ => unavailable(format!(
                "{} acknowledged nothing in {time} s{refusal}",
                self.name()
            )),
        }
    }

    /// The outcome of an append whose session does not end at the expected message. If the message after the expected
    /// message has the lines of this append, the append is stored. Otherwise there is a conflict.
    ///
    /// A server that was stopped answers with its old state for a moment after it is resumed, so this function asks
    /// again for a missing message.
    async fn settled(
        &self,
        (subject, expected, payload): (&str, Position, &[u8]),
        is_later: bool,
        attempts: &Attempts,
    ) -> Result<AppendOutcome> {
        let query = json!({ "seq": expected.0 + 1, "next_by_subj": subject });
        let began = Instant::now();
        loop {
            let time = attempts.remaining().max(LAST_ANSWER);
            let is_over = attempts.are_over() && began.elapsed() > STALE;
            match self.message(&query, time).await {
                Ok(Some(stored)) if stored.payload == payload => {
                    return Ok(AppendOutcome::Appended(Position(stored.sequence)));
                }
                Ok(Some(_)) => return Ok(AppendOutcome::Conflict),
                Ok(None) if !is_later && began.elapsed() > STALE => {
                    return Ok(AppendOutcome::Conflict);
                }
                Ok(None) if is_over => return Err(unknown("the servers do not show them")),
                Err(error) if is_over => return Err(unknown(&error.message)),
                Ok(None) | Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    fn headers(
        &self,
        session: &str,
        expected: Position,
        (lines, payload): (&[u8], &Payload),
    ) -> HeaderMap {
        let mut headers = payload.headers.clone();
        headers.insert(EXPECTED, expected.0.to_string());
        headers.insert(EXPECTED_STREAM, &*self.settings.stream);
        headers.insert(LINES, count_lines(lines).to_string());
        if closing::is_closed(session, lines) {
            headers.insert(CLOSED, "1");
        }
        headers
    }
}

/// The id of a message. It depends on the position, so that equal lines at two positions of a session are two messages.
fn message_id(session: &str, expected: Position, payload: &[u8]) -> String {
    let place = expected.0.to_string();
    let hashed = Sha256::new_with_prefix(&place).chain_update(b"\0");
    let digest = hex(hashed.chain_update(payload));
    let id = digest.get(..ID_DIGITS).unwrap_or(&digest);
    format!("{session}/{id}")
}

/// The error for lines that may be in the stream, or may appear there later. If the append is repeated, the second
/// append finds these lines.
fn unknown(why: &str) -> Error {
    let why = format!("the lines may be in the team's stream: {why}");
    Error::new(Kind::DurabilityUnknown, why)
}
