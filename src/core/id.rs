//! Identifiers, and the source of time and randomness from which they are made (session-file.md §1).
//!
//! Strings from outside become ids on arrival; this module decides which ids are valid.

use std::fmt;
use std::sync::Arc;
use uuid::Uuid;

macro_rules! id {
    ($(#[$doc:meta])* $vis:vis $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        $vis struct $name(Arc<str>);

        impl $name {
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }
            pub fn as_str(&self) -> &str {
                &self.0
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
    pub EntryId
);
id!(
    /// Names a session; part of its file's name.
    pub SessionId
);
id!(
    /// Names one question to clients (protocol.md §5).
    pub EventId
);

/// Numbers the connections of a daemon from 1, in the order in which clients connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

impl EntryId {
    /// The shared text, for owners that keep it long.
    pub(crate) fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

impl SessionId {
    /// The shared text, for owners that keep it long.
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

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
/// most 128 bytes (session-file.md §1).
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

/// A source of time and randomness, replaceable in tests.
pub trait Source: Send + Sync {
    /// Unix time in milliseconds.
    fn now_ms(&self) -> i64;
    /// A random UUID (version 4).
    fn random(&self) -> Uuid;
    /// The number of digits of new entry ids. Ids of one file are checked under its lock, so few digits suffice. Ids
    /// from several machines are not checked against each other, so these ids need more digits.
    fn id_digits(&self) -> usize {
        8
    }
}

/// A candidate for an entry id: the first 8 hex digits of a UUIDv4, 16 in a team. The caller checks under the append
/// lock that the id is not used yet.
pub fn entry_id_candidate(source: &dyn Source) -> EntryId {
    let mut buffer = Uuid::encode_buffer();
    let text: &str = source.random().simple().encode_lower(&mut buffer);
    EntryId::new(text.get(..source.id_digits()).unwrap_or(text))
}

/// A candidate for an entry id with 16 hex digits. It differs from every id of 8 digits.
pub fn long_entry_id_candidate(source: &dyn Source) -> EntryId {
    let mut buffer = Uuid::encode_buffer();
    let text: &str = source.random().simple().encode_lower(&mut buffer);
    EntryId::new(text.get(..16).unwrap_or(text))
}

/// A random id for events and navigations.
pub fn random_token(source: &dyn Source) -> String {
    source.random().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

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
