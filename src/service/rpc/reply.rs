//! The result of a handler in the form that its response needs.

use crate::daemon::convert::line::line;
use serde::Serialize;
use std::marker::PhantomData;
use treelined_core::error::Result;

/// The most bytes of a response that are not elements of its page.
const ENVELOPE_BYTES: usize = 1024;

/// The limit of the elements of a page, in bytes, for a client that reads frames of `frame_bytes`.
pub(super) fn page_bytes(frame_bytes: usize) -> usize {
    frame_bytes - ENVELOPE_BYTES.min(frame_bytes / 2)
}

/// A result as JSON on one line.
pub(super) enum Reply {
    Bytes(Vec<u8>),
    /// The same JSON in pieces.
    Pieces(Vec<Vec<u8>>),
}

impl Reply {
    /// The length in bytes.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Pieces(pieces) => pieces.iter().map(Vec::len).sum(),
        }
    }

    /// The JSON in one piece.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Pieces(pieces) => pieces.concat(),
        }
    }

    pub(super) fn of(result: &impl Serialize) -> Result<Self> {
        line(result).map(Self::Bytes)
    }
}

/// The JSON, on one line, of a result of type `R`. The handler has written the JSON.
pub(super) struct Prepared<R> {
    reply: Reply,
    of: PhantomData<fn() -> R>,
}

impl<R> Prepared<R> {
    pub(super) fn bytes(json: Vec<u8>) -> Self {
        Self::from_reply(Reply::Bytes(json))
    }

    pub(super) fn pieces(json: Vec<Vec<u8>>) -> Self {
        Self::from_reply(Reply::Pieces(json))
    }

    fn from_reply(reply: Reply) -> Self {
        Self {
            reply,
            of: PhantomData,
        }
    }

    pub(super) fn into_reply(self) -> Reply {
        self.reply
    }
}
