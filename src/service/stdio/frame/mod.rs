//! Splits input bytes into frames (protocol.md §1): detects the framing, finds the end of each message, and skips
//! messages that are too large. Its only input or output is [`Read`].
//!
//! [`buffer`] has the bytes that were read, [`block`] parses a header block, and [`head`] finds the id of a message
//! that is too large. The caller checks the JSON and answers.

mod block;
mod buffer;
mod head;

pub use head::id_in_head;

use crate::memory::Reservation;
use block::{BlockProgress, HeaderBlock, blank_lines};
use buffer::Buffer;
use head::keep_head;
use memchr::memchr;
use std::io::{self, Read};
use std::ops::Range;

/// How messages are delimited, in both directions (protocol.md §1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// One message per line, ended by `\n`.
    Lines,
    /// `Content-Length: N\r\n\r\n` before each message, as in LSP.
    ContentLength,
}

/// A result of [`FrameReader::next`].
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// The bytes of one message, without line end or header. They may be anything, and with [`Framing::ContentLength`]
    /// they may be empty.
    Message(&'a [u8]),
    /// A frame over the limit. The reader has skipped it to its end, and never held it in memory.
    TooLarge {
        /// The first bytes of the frame, at most 4 KiB: see [`id_in_head`].
        head: &'a [u8],
    },
    /// A frame for which there is no memory. It is returned as soon as this is known, and later calls skip its rest.
    NoMemory {
        /// The first bytes of the frame, at most 4 KiB.
        head: &'a [u8],
    },
    /// A header block without a valid `Content-Length`. The start of the next frame is then unknown, so the daemon
    /// answers −32700 and exits with 1. Every later call gives [`Frame::Eof`].
    BadBlock,
    /// The end of the input. If the input ends with an unfinished frame, this frame is first returned as a message: a
    /// last line without `\n`, or the part of a body that arrived.
    Eof,
}

/// Splits an input into frames. Detects the framing from the first bytes.
///
/// The time is linear in the input, for reads of any size. One frame is held at a time, in a buffer that is reused.
pub struct FrameReader<R> {
    buffer: Buffer<R>,
    max_frame_bytes: usize,
    framing: Option<Framing>,
    /// Called once with the framing, before the first frame is returned.
    on_settled: Option<Box<dyn FnOnce(Framing) + Send>>,
    state: ReaderState,
    head: Vec<u8>,
    /// Whether the frame that is skipped was returned as [`Frame::NoMemory`].
    is_refused: bool,
}

/// The reader's position in the input. Offsets count from the first byte that is not consumed.
#[derive(Debug, Clone, Copy)]
enum ReaderState {
    /// Before the first byte: a BOM may follow.
    Start,
    /// The framing is not known. The block says how much the first lines look like headers.
    Detect(HeaderBlock),
    /// In a line. Its first `scanned` bytes have no `\n`.
    Line { scanned: usize },
    /// In a line over the limit.
    SkipLine,
    /// In a header block.
    Header(HeaderBlock),
    /// In a body of `length` bytes.
    Body { length: usize },
    /// In a body over the limit, of which `left` bytes have not arrived.
    SkipBody { left: u64 },
    /// After a bad block. The next frame cannot be found.
    Lost,
}

/// The result of processing the buffered bytes in one state.
enum ReadStep {
    NeedInput,
    /// The state has changed.
    Again,
    FrameSpan(FrameSpan),
}

/// A [`Frame`] with the range of its bytes in the buffer. It does not borrow the bytes yet.
enum FrameSpan {
    Message(Range<usize>),
    TooLarge,
    NoMemory,
    BadBlock,
    Eof,
}

impl<R: Read> FrameReader<R> {
    /// A reader at the beginning of a connection. It skips frames of more than `max_frame_bytes` bytes. The line end
    /// and the header do not count.
    pub fn new(input: R, max_frame_bytes: usize) -> Self {
        Self {
            buffer: Buffer::new(input, max_frame_bytes),
            max_frame_bytes,
            framing: None,
            on_settled: None,
            state: ReaderState::Start,
            head: Vec::new(),
            is_refused: false,
        }
    }

    /// Calls `then` with the framing when it is known, before the first frame.
    #[must_use]
    pub fn on_settled(mut self, then: impl FnOnce(Framing) + Send + 'static) -> Self {
        self.on_settled = Some(Box::new(then));
        self
    }

    /// Reserves the memory of frames beyond 64 KiB from `memory`.
    #[must_use]
    pub fn within(mut self, memory: Reservation) -> Self {
        self.buffer.within(memory);
        self
    }

    /// The framing of the connection; `None` until the first bytes decide it. After [`next`](Self::next) has returned
    /// anything but [`Frame::Eof`], the framing is known.
    pub fn framing(&self) -> Option<Framing> {
        self.framing
    }

    /// The next frame. Reads from the input only if the buffer has no complete frame. Skips blank lines between frames.
    ///
    /// # Errors
    ///
    /// The errors of the input's `read`, except `Interrupted`, which is retried. After an error nothing is lost: the
    /// next call continues where this one stopped.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator cannot lend its own buffer, and next is what this is"
    )]
    pub fn next(&mut self) -> io::Result<Frame<'_>> {
        self.next_and_more().map(|(frame, _)| frame)
    }

    /// Like [`next`](Self::next), but also returns the result of [`has_buffered`](Self::has_buffered): whether another
    /// frame is buffered.
    ///
    /// # Errors
    ///
    /// The errors of [`next`](Self::next).
    pub fn next_and_more(&mut self) -> io::Result<(Frame<'_>, bool)> {
        let found = loop {
            let found = match self.step() {
                Some(found) => found,
                None if !self.buffer.reserve() => {
                    self.refuse();
                    break FrameSpan::NoMemory;
                }
                None if self.buffer.fill()? => continue,
                None => self.at_end(),
            };
            let is_end_of_refused =
                matches!(found, FrameSpan::TooLarge) && std::mem::take(&mut self.is_refused);
            if !is_end_of_refused {
                break found;
            }
        };
        let more = self.has_buffered();
        let frame = match found {
            FrameSpan::Message(range) => Frame::Message(self.buffer.slice(range)),
            FrameSpan::TooLarge => Frame::TooLarge { head: &self.head },
            FrameSpan::NoMemory => Frame::NoMemory { head: &self.head },
            FrameSpan::BadBlock => Frame::BadBlock,
            FrameSpan::Eof => Frame::Eof,
        };
        Ok((frame, more))
    }

    /// Whether [`next`](Self::next) would return a frame without a read. Always false before the first frame of the
    /// connection. While this is true, the daemon can keep output back and write it together.
    pub fn has_buffered(&self) -> bool {
        let live = self.buffer.live();
        match self.state {
            ReaderState::Line { .. } => {
                let mut rest = live;
                while let Some(at) = memchr(b'\n', rest) {
                    if !is_blank(rest.get(..at).unwrap_or_default()) {
                        return true;
                    }
                    rest = rest.get(at + 1..).unwrap_or_default();
                }
                self.buffer.ended && !is_blank(rest)
            }
            ReaderState::Header(_) => {
                let block = live.get(blank_lines(live)..).unwrap_or_default();
                match HeaderBlock::default().advance(block) {
                    BlockProgress::End { size, length } => {
                        let body = block.len().saturating_sub(size);
                        self.buffer.ended || u64::try_from(body).unwrap_or(u64::MAX) >= length
                    }
                    BlockProgress::NoHeader | BlockProgress::Bad => true,
                    BlockProgress::More => self.buffer.ended && !is_blank(block),
                }
            }
            _ => false,
        }
    }

    /// Processes the buffered bytes. Returns a frame, or `None` if more input is needed.
    fn step(&mut self) -> Option<FrameSpan> {
        loop {
            let step = match self.state {
                ReaderState::Start => self.pass_bom(),
                ReaderState::Detect(block) => self.detect(block),
                ReaderState::Line { scanned } => self.line(scanned),
                ReaderState::SkipLine => self.skip_line(),
                ReaderState::Header(block) => self.header(block),
                ReaderState::Body { length } => self.body(length),
                ReaderState::SkipBody { left } => self.skip_body(left),
                ReaderState::Lost => ReadStep::FrameSpan(FrameSpan::Eof),
            };
            match step {
                ReadStep::NeedInput => return None,
                ReadStep::Again => {}
                ReadStep::FrameSpan(found) => return Some(found),
            }
        }
    }

    /// Begins to skip the frame that is being read. Only a line or a body can be in the buffer here, since only these
    /// make the buffer grow.
    fn refuse(&mut self) {
        self.head.clear();
        keep_head(&mut self.head, self.buffer.live());
        self.is_refused = true;
        self.state = match self.state {
            ReaderState::Body { length } => ReaderState::SkipBody {
                left: u64::try_from(length).unwrap_or(u64::MAX),
            },
            _ => ReaderState::SkipLine,
        };
    }

    /// Skips a BOM at the beginning of the input.
    fn pass_bom(&mut self) -> ReadStep {
        const BOM: &[u8] = b"\xEF\xBB\xBF";
        let live = self.buffer.live();
        if live.starts_with(BOM) {
            self.buffer.consume(BOM.len());
        } else if BOM.starts_with(live) {
            return ReadStep::NeedInput;
        }
        self.state = ReaderState::Detect(HeaderBlock::default());
        ReadStep::Again
    }

    /// Decides on the framing as soon as the bytes allow it.
    fn detect(&mut self, mut block: HeaderBlock) -> ReadStep {
        match self.advance(&mut block) {
            // A length was found, or a block ended without a length. Lines of JSON look like neither.
            BlockProgress::End { .. } | BlockProgress::Bad => self.settle(Framing::ContentLength),
            BlockProgress::NoHeader if block.length.is_some() => {
                self.settle(Framing::ContentLength)
            }
            BlockProgress::NoHeader => self.settle(Framing::Lines),
            BlockProgress::More => {
                self.state = ReaderState::Detect(block);
                return ReadStep::NeedInput;
            }
        }
        ReadStep::Again
    }

    fn settle(&mut self, framing: Framing) {
        self.framing = Some(framing);
        if let Some(then) = self.on_settled.take() {
            then(framing);
        }
        self.state = match framing {
            Framing::Lines => ReaderState::Line { scanned: 0 },
            Framing::ContentLength => ReaderState::Header(HeaderBlock::default()),
        };
    }

    /// Continues with a header block. Skips blank lines before it, since some clients end a body with a line break that
    /// they do not count.
    fn advance(&mut self, block: &mut HeaderBlock) -> BlockProgress {
        if block.line == 0 {
            let blank = blank_lines(self.buffer.live());
            if blank > 0 {
                self.buffer.consume(blank);
                *block = HeaderBlock::default();
            }
        }
        block.advance(self.buffer.live())
    }

    fn line(&mut self, scanned: usize) -> ReadStep {
        let live = self.buffer.live();
        if let Some(at) = memchr(b'\n', live.get(scanned..).unwrap_or_default()) {
            let whole = self.buffer.consume(scanned + at);
            self.buffer.consume(1);
            self.state = ReaderState::Line { scanned: 0 };
            return self
                .content(whole)
                .map_or(ReadStep::Again, ReadStep::FrameSpan);
        }
        let pending = live.len();
        // The one byte over the limit may be a `\r`, which does not count.
        if pending > self.max_frame_bytes.saturating_add(1) {
            self.head.clear();
            self.state = ReaderState::SkipLine;
            return ReadStep::Again;
        }
        self.state = ReaderState::Line { scanned: pending };
        ReadStep::NeedInput
    }

    /// The frame of a whole line; `None` if the line is blank.
    fn content(&mut self, line: Range<usize>) -> Option<FrameSpan> {
        let bytes = self.buffer.slice(line.clone());
        let content = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        if content.len() > self.max_frame_bytes {
            self.head.clear();
            keep_head(&mut self.head, content);
            return Some(FrameSpan::TooLarge);
        }
        if is_blank(content) {
            return None;
        }
        Some(FrameSpan::Message(line.start..line.start + content.len()))
    }

    fn skip_line(&mut self) -> ReadStep {
        let live = self.buffer.live();
        let end = memchr(b'\n', live);
        keep_head(
            &mut self.head,
            live.get(..end.unwrap_or(live.len())).unwrap_or_default(),
        );
        self.buffer.consume(end.map_or(live.len(), |at| at + 1));
        if end.is_none() {
            return ReadStep::NeedInput;
        }
        self.state = ReaderState::Line { scanned: 0 };
        ReadStep::FrameSpan(FrameSpan::TooLarge)
    }

    fn header(&mut self, mut block: HeaderBlock) -> ReadStep {
        match self.advance(&mut block) {
            BlockProgress::More => {
                self.state = ReaderState::Header(block);
                ReadStep::NeedInput
            }
            BlockProgress::End { size, length } => {
                self.buffer.consume(size);
                self.state = match usize::try_from(length) {
                    Ok(length) if length <= self.max_frame_bytes => ReaderState::Body { length },
                    _ => {
                        self.head.clear();
                        ReaderState::SkipBody { left: length }
                    }
                };
                ReadStep::Again
            }
            BlockProgress::NoHeader | BlockProgress::Bad => {
                self.state = ReaderState::Lost;
                ReadStep::FrameSpan(FrameSpan::BadBlock)
            }
        }
    }

    fn body(&mut self, length: usize) -> ReadStep {
        if self.buffer.live().len() < length {
            return ReadStep::NeedInput;
        }
        self.state = ReaderState::Header(HeaderBlock::default());
        ReadStep::FrameSpan(FrameSpan::Message(self.buffer.consume(length)))
    }

    fn skip_body(&mut self, left: u64) -> ReadStep {
        let live = self.buffer.live();
        let here = live.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        keep_head(&mut self.head, live.get(..here).unwrap_or_default());
        self.buffer.consume(here);
        let left = left.saturating_sub(u64::try_from(here).unwrap_or(u64::MAX));
        if left > 0 {
            self.state = ReaderState::SkipBody { left };
            return ReadStep::NeedInput;
        }
        self.state = ReaderState::Header(HeaderBlock::default());
        ReadStep::FrameSpan(FrameSpan::TooLarge)
    }

    /// The last frame, made of the bytes before the end of the input.
    fn at_end(&mut self) -> FrameSpan {
        if let ReaderState::Start | ReaderState::Detect(_) = self.state {
            if is_blank(self.buffer.live()) {
                return FrameSpan::Eof;
            }
            self.settle(match self.state {
                ReaderState::Detect(block) if block.length.is_some() => Framing::ContentLength,
                _ => Framing::Lines,
            });
            if let Some(found) = self.step() {
                return found;
            }
        }
        match self.state {
            ReaderState::Start | ReaderState::Detect(_) | ReaderState::Lost => FrameSpan::Eof,
            ReaderState::Line { .. } => {
                self.state = ReaderState::Line { scanned: 0 };
                let rest = self.buffer.consume_all();
                self.content(rest).unwrap_or(FrameSpan::Eof)
            }
            ReaderState::SkipLine => {
                self.state = ReaderState::Line { scanned: 0 };
                FrameSpan::TooLarge
            }
            ReaderState::Header(_) if is_blank(self.buffer.live()) => FrameSpan::Eof,
            ReaderState::Header(_) => {
                self.state = ReaderState::Lost;
                FrameSpan::BadBlock
            }
            // A cut JSON object never parses, so the answer is −32700 and no part of the request runs.
            ReaderState::Body { .. } => {
                self.state = ReaderState::Header(HeaderBlock::default());
                FrameSpan::Message(self.buffer.consume_all())
            }
            ReaderState::SkipBody { .. } => {
                self.state = ReaderState::Header(HeaderBlock::default());
                FrameSpan::TooLarge
            }
        }
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

#[cfg(test)]
mod tests;
