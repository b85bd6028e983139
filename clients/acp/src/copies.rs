//! Copies of the bytes that pass, on their way to the recorder. Nobody waits for it: what does not fit is left out, and
//! that is noted.

use crate::conversation::Side;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The most bytes that wait.
const BUDGET: usize = 64 << 20;
/// The longest message that is recorded.
const MAX_LINE: usize = 48 << 20;

enum Piece {
    Bytes(Side, Vec<u8>),
    /// Bytes of this side were left out here.
    Gap(Side),
    /// The agent has ended. The thread of the editor's bytes may still wait for the editor.
    End,
}

/// The end of the threads that pass bytes on, one for each side.
pub struct CopySender {
    side: Side,
    pieces: UnboundedSender<Piece>,
    waiting: Arc<AtomicUsize>,
    has_gap: bool,
}

/// The recorder's end.
pub struct CopyReceiver {
    pieces: UnboundedReceiver<Piece>,
    waiting: Arc<AtomicUsize>,
    editor: Line,
    agent: Line,
}

/// The line that a side has begun.
#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
    /// Whether its beginning is lost.
    is_torn: bool,
}

/// A recorded line, or a place where some are missing.
pub enum Heard {
    Line(Side, Vec<u8>),
    Gap,
}

/// The sender for the editor, the one for the agent, and the receiver of both.
pub fn channel() -> (CopySender, CopySender, CopyReceiver) {
    let (pieces, received) = unbounded_channel();
    let waiting = Arc::new(AtomicUsize::new(0));
    let sender = |side| CopySender {
        side,
        pieces: pieces.clone(),
        waiting: waiting.clone(),
        has_gap: false,
    };
    let receiver = CopyReceiver {
        pieces: received,
        waiting: waiting.clone(),
        editor: Line::default(),
        agent: Line::default(),
    };
    (sender(Side::Editor), sender(Side::Agent), receiver)
}

impl CopySender {
    /// Hands over a copy. Never waits.
    pub fn copy(&mut self, bytes: &[u8]) {
        let waiting = self.waiting.fetch_add(bytes.len(), Ordering::Relaxed);
        if waiting + bytes.len() > BUDGET {
            self.waiting.fetch_sub(bytes.len(), Ordering::Relaxed);
            self.has_gap = true;
            return;
        }
        // The receiver may have ended; the conversation goes on.
        if std::mem::take(&mut self.has_gap) {
            let _ended = self.pieces.send(Piece::Gap(self.side));
        }
        let _ended = self.pieces.send(Piece::Bytes(self.side, bytes.to_vec()));
    }
}

impl Drop for CopySender {
    fn drop(&mut self) {
        if self.side == Side::Agent {
            let _ended = self.pieces.send(Piece::End);
        }
    }
}

impl CopyReceiver {
    /// Waits for more lines; `None` once the agent has ended.
    pub async fn heard(&mut self) -> Option<Vec<Heard>> {
        let mut heard = Vec::new();
        match self.pieces.recv().await? {
            Piece::End => return None,
            Piece::Gap(side) => {
                let line = self.line(side);
                line.bytes = Vec::new();
                line.is_torn = true;
                heard.push(Heard::Gap);
            }
            Piece::Bytes(side, bytes) => {
                self.waiting.fetch_sub(bytes.len(), Ordering::Relaxed);
                self.line(side).push(side, &bytes, &mut heard);
            }
        }
        Some(heard)
    }

    fn line(&mut self, side: Side) -> &mut Line {
        match side {
            Side::Editor => &mut self.editor,
            Side::Agent => &mut self.agent,
        }
    }
}

impl Line {
    fn push(&mut self, side: Side, bytes: &[u8], heard: &mut Vec<Heard>) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if !self.is_torn {
                self.bytes.extend_from_slice(piece);
            }
            if self.bytes.len() > MAX_LINE {
                self.bytes = Vec::new();
                self.is_torn = true;
                heard.push(Heard::Gap);
            }
            if piece.ends_with(b"\n") && !std::mem::take(&mut self.is_torn) {
                heard.push(Heard::Line(side, std::mem::take(&mut self.bytes)));
            }
        }
    }
}
