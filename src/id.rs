//! Identifiers, and the seam to clock and randomness they are made from (storage.md §1).
//!
//! Strings become ids at the edges and stay ids inside; what an id may look like is decided here.

use crate::lock::lock;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use uuid::{ContextV7, Uuid};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }
            pub fn as_str(&self) -> &str {
                &self.0
            }
            /// The shared text, for places that keep it for long.
            pub fn shared(&self) -> Arc<str> {
                Arc::clone(&self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// Names an entry within its session.
    EntryId
);
id!(
    /// Names a session; part of its file's name.
    SessionId
);
id!(
    /// Names one question put to clients (protocol.md §5).
    EventId
);
id!(
    /// Names one navigation or compaction, for aborting it and for its deltas.
    NavigationId
);

/// The leaf that a client expects when it changes a session (protocol.md §3).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ExpectedLeaf {
    /// The client does not check.
    #[default]
    Any,
    /// The position before the first entry.
    Empty,
    At(EntryId),
}

/// Null on the wire is the empty position; a member that is left out is [`ExpectedLeaf::Any`].
impl From<Option<String>> for ExpectedLeaf {
    fn from(id: Option<String>) -> Self {
        id.map_or(Self::Empty, |id| Self::At(EntryId::new(id)))
    }
}

/// Longest id a client may choose, in bytes.
pub const MAX_ID_BYTES: usize = 128;

/// An id a client may choose, as a regular expression.
pub const PATTERN: &str = "^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$";

/// Whether `text` is an id a client may choose: `^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`, at
/// most 128 bytes (storage.md §1).
pub fn is_valid(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
        return false;
    };
    bytes.len() <= MAX_ID_BYTES
        && first.is_ascii_alphanumeric()
        && last.is_ascii_alphanumeric()
        && bytes
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

/// The seam to clock and randomness.
pub trait Source: Send + Sync {
    /// Unix time in milliseconds.
    fn now_ms(&self) -> i64;
    /// A random UUID (version 4).
    fn random(&self) -> Uuid;
}

/// The machine's own clock and randomness.
pub struct System;

impl Source for System {
    fn now_ms(&self) -> i64 {
        let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => millis(since),
            Err(before) => -millis(before.duration()),
        }
    }
    fn random(&self) -> Uuid {
        Uuid::new_v4()
    }
}

/// A new session id: UUIDv7, so that ids sort by creation.
pub fn new_session_id() -> SessionId {
    session_id_at(System.now_ms())
}

/// Ids of the same millisecond count up. A clock before 1970, for which there is no such id, counts as
/// 1970: the machine has no battery, and a session is made all the same.
fn session_id_at(now_ms: i64) -> SessionId {
    static COUNTER: Mutex<ContextV7> = Mutex::new(ContextV7::new());
    let millis = u64::try_from(now_ms).unwrap_or_default();
    let nanos = (millis % 1000) as u32 * 1_000_000;
    let counter = lock(&COUNTER);
    let at = uuid::Timestamp::from_unix(&*counter, millis / 1000, nanos);
    SessionId::new(Uuid::new_v7(at).to_string())
}

/// A candidate for an entry id: the first 8 hex digits of a UUIDv4. The caller checks that it is
/// free, under the append lock.
pub fn entry_id_candidate(source: &dyn Source) -> EntryId {
    let mut buffer = Uuid::encode_buffer();
    let text: &str = source.random().simple().encode_lower(&mut buffer);
    EntryId::new(text.get(..8).unwrap_or(text))
}

/// A random id for events and navigations.
pub fn random_token(source: &dyn Source) -> String {
    source.random().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock before 1970, as machines without a battery have after a power cut, made `create_session`
    /// panic: version 7 ids have no such times.
    #[test]
    fn session_ids_are_made_whatever_the_clock_says() {
        for now_ms in [i64::MIN, -1, 0, 1, 1_700_000_000_123, i64::MAX] {
            let [first, second] = [session_id_at(now_ms), session_id_at(now_ms)];
            assert!(is_valid(first.as_str()), "{first}");
            assert_ne!(first, second);
        }
        let [first, second] = [
            session_id_at(1_700_000_000_123),
            session_id_at(1_700_000_000_123),
        ];
        assert!(first < second, "{first} {second}");
        assert!(second < session_id_at(1_700_000_000_124));
    }

    #[test]
    fn the_pattern_of_ids() {
        for good in ["a", "a1b2c3d4", "A.b_c-9", &"x".repeat(128)] {
            assert!(is_valid(good), "{good}");
        }
        for bad in [
            "",
            ".",
            "-a",
            "a-",
            "a/b",
            "..",
            "a b",
            "ä",
            "a\0",
            &"x".repeat(129),
        ] {
            assert!(!is_valid(bad), "{bad}");
        }
    }
}
