//! Input bytes → frames (protocol.md §1): which framing the connection speaks, where one message
//! ends, and what happens to one that is too large. Pure over [`Read`]; owns the input buffer.
//!
//! Not here: whether a message is valid JSON, and what is answered. The one look inside is
//! [`id_in_head`], since a request that is never held cannot be parsed by anybody else.

use std::io::{self, ErrorKind, Read};
use std::ops::Range;

use memchr::{memchr, memchr2};

/// Bytes asked for per read while nothing larger is under way: what a Linux pipe holds.
const CHUNK: usize = 64 * 1024;
/// A buffer larger than this, in bytes, is given back once the frame that needed it is gone.
const KEEP: usize = 1024 * 1024;
/// Bytes of an over-long frame that are kept for finding its id (protocol.md §1).
const HEAD: usize = 4 * 1024;
/// Longest header block in bytes. What is longer is not taken for one.
const MAX_BLOCK: usize = 16 * 1024;
/// Longest header name in bytes; bounds what is looked at again when a line comes in pieces.
const MAX_NAME: usize = 64;
/// Largest integer that may be an id (protocol.md §1): 2^53 − 1.
const MAX_INTEGER_ID: u64 = (1 << 53) - 1;

/// How messages are delimited, in both directions (protocol.md §1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// One message per line, ended by `\n`.
    Lines,
    /// `Content-Length: N\r\n\r\n` before each message, as in LSP.
    ContentLength,
}

/// What [`FrameReader::next`] found.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// The bytes of one message, without line end or header. Not yet checked in any way; may be
    /// empty with [`Framing::ContentLength`].
    Message(&'a [u8]),
    /// A frame over the limit. It was skipped to its end without being held in memory.
    TooLarge {
        /// Its first bytes, at most 4 KiB: see [`id_in_head`].
        head: &'a [u8],
    },
    /// A header block without a valid `Content-Length`. Where the next frame begins is unknown:
    /// −32700 and exit 1; every later call gives [`Frame::Eof`].
    BadBlock,
    /// The input has ended. What stood there without its end came before this as a message: a
    /// last line without `\n`, or as much of a body as arrived.
    Eof,
}

/// Cuts an input into frames, detecting the framing from its first bytes.
///
/// Linear in the input whatever the sizes in which it arrives. Holds one frame at a time, in one
/// buffer that is reused.
pub struct FrameReader<R> {
    buffer: Buffer<R>,
    max_frame_bytes: usize,
    framing: Option<Framing>,
    /// Called once, before the first frame is handed out.
    on_settled: Option<Box<dyn FnOnce(Framing) + Send>>,
    state: State,
    head: Vec<u8>,
}

/// Where in the input the reader stands. Positions are relative to the first unconsumed byte.
#[derive(Debug, Clone, Copy)]
enum State {
    /// Before the first byte: a BOM may follow.
    Start,
    /// No framing is settled; the block says how far the first lines look like headers.
    Detect(Block),
    /// In a line of which `scanned` bytes hold no `\n`.
    Line { scanned: usize },
    /// In a line over the limit.
    SkipLine,
    /// In a header block.
    Header(Block),
    /// In a body of `length` bytes.
    Body { length: usize },
    /// In a body over the limit, of which `left` bytes are still to come.
    SkipBody { left: u64 },
    /// After a bad block.
    Lost,
}

/// What came of looking at the buffered bytes in one state.
enum Step {
    NeedInput,
    /// The state has changed.
    Again,
    Found(Found),
}

/// A [`Frame`] whose bytes are named by their place in the buffer, not yet borrowed.
enum Found {
    Message(Range<usize>),
    TooLarge,
    BadBlock,
    Eof,
}

impl<R: Read> FrameReader<R> {
    /// A reader at the beginning of a connection. Frames of more than `max_frame_bytes` bytes
    /// (line end and header not counted) are skipped.
    pub fn new(input: R, max_frame_bytes: usize) -> Self {
        Self {
            buffer: Buffer::new(input, max_frame_bytes),
            max_frame_bytes,
            framing: None,
            on_settled: None,
            state: State::Start,
            head: Vec::new(),
        }
    }

    /// Calls `then` with the framing as soon as it is settled, before the first frame.
    #[must_use]
    pub fn on_settled(mut self, then: impl FnOnce(Framing) + Send + 'static) -> Self {
        self.on_settled = Some(Box::new(then));
        self
    }

    /// The framing of the connection; `None` until the first bytes have settled it. Whenever
    /// [`next`](Self::next) has given anything but [`Frame::Eof`], it is known.
    pub fn framing(&self) -> Option<Framing> {
        self.framing
    }

    /// The next frame, reading only when none is complete in the buffer. Blank lines between
    /// frames are passed over.
    ///
    /// # Errors
    ///
    /// Whatever the input's `read` fails with, except `Interrupted`, which is retried. Nothing is
    /// lost by an error: the next call goes on at the same place.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator cannot lend its own buffer, and next is what this is"
    )]
    pub fn next(&mut self) -> io::Result<Frame<'_>> {
        let found = loop {
            if let Some(found) = self.step() {
                break found;
            }
            if !self.buffer.fill()? {
                break self.at_end();
            }
        };
        Ok(match found {
            Found::Message(range) => Frame::Message(self.buffer.slice(range)),
            Found::TooLarge => Frame::TooLarge { head: &self.head },
            Found::BadBlock => Frame::BadBlock,
            Found::Eof => Frame::Eof,
        })
    }

    /// Whether [`next`](Self::next) would give a frame, other than the first of the connection,
    /// without reading: while it does, output may be held back to be written together.
    pub fn has_buffered(&self) -> bool {
        let live = self.buffer.live();
        match self.state {
            State::Line { .. } => {
                let mut rest = live;
                while let Some(at) = memchr(b'\n', rest) {
                    if !is_blank(rest.get(..at).unwrap_or_default()) {
                        return true;
                    }
                    rest = rest.get(at + 1..).unwrap_or_default();
                }
                self.buffer.ended && !is_blank(rest)
            }
            State::Header(_) => {
                let block = live.get(blank_lines(live)..).unwrap_or_default();
                match Block::default().advance(block) {
                    Progress::End { size, length } => {
                        let body = block.len().saturating_sub(size);
                        self.buffer.ended || u64::try_from(body).unwrap_or(u64::MAX) >= length
                    }
                    Progress::NoHeader | Progress::Bad => true,
                    Progress::More => self.buffer.ended && !is_blank(block),
                }
            }
            _ => false,
        }
    }

    /// Goes on with what is buffered: a frame, or `None` if more input is needed.
    fn step(&mut self) -> Option<Found> {
        loop {
            let step = match self.state {
                State::Start => self.pass_bom(),
                State::Detect(block) => self.detect(block),
                State::Line { scanned } => self.line(scanned),
                State::SkipLine => self.skip_line(),
                State::Header(block) => self.header(block),
                State::Body { length } => self.body(length),
                State::SkipBody { left } => self.skip_body(left),
                State::Lost => Step::Found(Found::Eof),
            };
            match step {
                Step::NeedInput => return None,
                Step::Again => {}
                Step::Found(found) => return Some(found),
            }
        }
    }

    /// Passes over a BOM at offset 0.
    fn pass_bom(&mut self) -> Step {
        const BOM: &[u8] = b"\xEF\xBB\xBF";
        let live = self.buffer.live();
        if live.starts_with(BOM) {
            self.buffer.consume(BOM.len());
        } else if BOM.starts_with(live) {
            return Step::NeedInput;
        }
        self.state = State::Detect(Block::default());
        Step::Again
    }

    /// Settles the framing as soon as the bytes allow it.
    fn detect(&mut self, mut block: Block) -> Step {
        match self.advance(&mut block) {
            // A length was seen, or a block ended without one: no line protocol looks like that.
            Progress::End { .. } | Progress::Bad => self.settle(Framing::ContentLength),
            Progress::NoHeader if block.length.is_some() => self.settle(Framing::ContentLength),
            Progress::NoHeader => self.settle(Framing::Lines),
            Progress::More => {
                self.state = State::Detect(block);
                return Step::NeedInput;
            }
        }
        Step::Again
    }

    fn settle(&mut self, framing: Framing) {
        self.framing = Some(framing);
        if let Some(then) = self.on_settled.take() {
            then(framing);
        }
        self.state = match framing {
            Framing::Lines => State::Line { scanned: 0 },
            Framing::ContentLength => State::Header(Block::default()),
        };
    }

    /// Goes on with a header block. Blank lines before it are passed over: clients that end a
    /// body with a line break they did not count are understood.
    fn advance(&mut self, block: &mut Block) -> Progress {
        if block.line == 0 {
            let blank = blank_lines(self.buffer.live());
            if blank > 0 {
                self.buffer.consume(blank);
                *block = Block::default();
            }
        }
        block.advance(self.buffer.live())
    }

    fn line(&mut self, scanned: usize) -> Step {
        let live = self.buffer.live();
        if let Some(at) = memchr(b'\n', live.get(scanned..).unwrap_or_default()) {
            let whole = self.buffer.consume(scanned + at);
            self.buffer.consume(1);
            self.state = State::Line { scanned: 0 };
            return self.content(whole).map_or(Step::Again, Step::Found);
        }
        let pending = live.len();
        // One more than the limit may still be a `\r` that does not count.
        if pending > self.max_frame_bytes.saturating_add(1) {
            self.head.clear();
            self.state = State::SkipLine;
            return Step::Again;
        }
        self.state = State::Line { scanned: pending };
        Step::NeedInput
    }

    /// What a whole line amounts to: nothing if it is blank.
    fn content(&mut self, line: Range<usize>) -> Option<Found> {
        let bytes = self.buffer.slice(line.clone());
        let content = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        if content.len() > self.max_frame_bytes {
            self.head.clear();
            keep_head(&mut self.head, content);
            return Some(Found::TooLarge);
        }
        if is_blank(content) {
            return None;
        }
        Some(Found::Message(line.start..line.start + content.len()))
    }

    fn skip_line(&mut self) -> Step {
        let live = self.buffer.live();
        let end = memchr(b'\n', live);
        keep_head(
            &mut self.head,
            live.get(..end.unwrap_or(live.len())).unwrap_or_default(),
        );
        self.buffer.consume(end.map_or(live.len(), |at| at + 1));
        if end.is_none() {
            return Step::NeedInput;
        }
        self.state = State::Line { scanned: 0 };
        Step::Found(Found::TooLarge)
    }

    fn header(&mut self, mut block: Block) -> Step {
        match self.advance(&mut block) {
            Progress::More => {
                self.state = State::Header(block);
                Step::NeedInput
            }
            Progress::End { size, length } => {
                self.buffer.consume(size);
                self.state = match usize::try_from(length) {
                    Ok(length) if length <= self.max_frame_bytes => State::Body { length },
                    _ => {
                        self.head.clear();
                        State::SkipBody { left: length }
                    }
                };
                Step::Again
            }
            Progress::NoHeader | Progress::Bad => {
                self.state = State::Lost;
                Step::Found(Found::BadBlock)
            }
        }
    }

    fn body(&mut self, length: usize) -> Step {
        if self.buffer.live().len() < length {
            return Step::NeedInput;
        }
        self.state = State::Header(Block::default());
        Step::Found(Found::Message(self.buffer.consume(length)))
    }

    fn skip_body(&mut self, left: u64) -> Step {
        let live = self.buffer.live();
        let here = live.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        keep_head(&mut self.head, live.get(..here).unwrap_or_default());
        self.buffer.consume(here);
        let left = left.saturating_sub(u64::try_from(here).unwrap_or(u64::MAX));
        if left > 0 {
            self.state = State::SkipBody { left };
            return Step::NeedInput;
        }
        self.state = State::Header(Block::default());
        Step::Found(Found::TooLarge)
    }

    /// What the bytes before the end of the input amount to.
    fn at_end(&mut self) -> Found {
        if let State::Start | State::Detect(_) = self.state {
            if is_blank(self.buffer.live()) {
                return Found::Eof;
            }
            self.settle(match self.state {
                State::Detect(block) if block.length.is_some() => Framing::ContentLength,
                _ => Framing::Lines,
            });
            if let Some(found) = self.step() {
                return found;
            }
        }
        match self.state {
            State::Start | State::Detect(_) | State::Lost => Found::Eof,
            State::Line { .. } => {
                self.state = State::Line { scanned: 0 };
                let rest = self.buffer.consume_all();
                self.content(rest).unwrap_or(Found::Eof)
            }
            State::SkipLine => {
                self.state = State::Line { scanned: 0 };
                Found::TooLarge
            }
            State::Header(_) if is_blank(self.buffer.live()) => Found::Eof,
            State::Header(_) => {
                self.state = State::Lost;
                Found::BadBlock
            }
            // A cut object never parses, so this is answered −32700 and nothing runs by half.
            State::Body { .. } => {
                self.state = State::Header(Block::default());
                Found::Message(self.buffer.consume_all())
            }
            State::SkipBody { .. } => {
                self.state = State::Header(Block::default());
                Found::TooLarge
            }
        }
    }
}

/// A header block as far as it has been seen. `Copy`, so that a look ahead costs nothing.
#[derive(Debug, Clone, Copy, Default)]
struct Block {
    /// Where the current line begins, counted from the start of the block.
    line: usize,
    /// Bytes of the current line that hold no `\n`.
    scanned: usize,
    length: Option<u64>,
}

enum Progress {
    /// So far it may be a header block.
    More,
    /// A line is not `Name: value`, or the block is too long to be one.
    NoHeader,
    /// A `Content-Length` that is no number or contradicts another, or none at all.
    Bad,
    /// The block takes `size` bytes with its blank line, and `length` bytes of body follow.
    End { size: usize, length: u64 },
}

impl Block {
    /// Goes on with `bytes`, which begin where they began the last time.
    fn advance(&mut self, bytes: &[u8]) -> Progress {
        loop {
            let rest = bytes.get(self.line..).unwrap_or_default();
            let unseen = rest.get(self.scanned..).unwrap_or_default();
            let Some(at) = memchr(b'\n', unseen) else {
                self.scanned = rest.len();
                // Settled before the line ends, so that nobody waits for the end of a line that
                // cannot be a header.
                if bytes.len() > MAX_BLOCK || !may_become_header(rest) {
                    return Progress::NoHeader;
                }
                return Progress::More;
            };
            let end = self.scanned + at;
            let line = rest.get(..end).unwrap_or_default();
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            self.line += end + 1;
            self.scanned = 0;
            if self.line > MAX_BLOCK {
                return Progress::NoHeader;
            }
            if line.is_empty() {
                return match self.length {
                    Some(length) => Progress::End {
                        size: self.line,
                        length,
                    },
                    None => Progress::Bad,
                };
            }
            let Some((name, value)) = split_header(line) else {
                return Progress::NoHeader;
            };
            if name.eq_ignore_ascii_case(b"content-length") {
                match parse_length(value) {
                    Some(length) if self.length.is_none_or(|other| other == length) => {
                        self.length = Some(length);
                    }
                    _ => return Progress::Bad,
                }
            }
        }
    }
}

/// Whether a line that begins so may turn out to be a header or the blank line after the last.
fn may_become_header(line: &[u8]) -> bool {
    let name = line.iter().take_while(|byte| is_name_byte(**byte)).count();
    match line.get(name) {
        None => name <= MAX_NAME,
        Some(b':') => (1..=MAX_NAME).contains(&name),
        Some(_) => line == b"\r",
    }
}

fn split_header(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, value) = line.split_at_checked(memchr(b':', line)?)?;
    let named = (1..=MAX_NAME).contains(&name.len()) && name.iter().all(|b| is_name_byte(*b));
    named.then_some((name, value.strip_prefix(b":")?))
}

/// The token characters of RFC 9110 §5.6.2, of which field names consist.
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn parse_length(value: &[u8]) -> Option<u64> {
    let digits = value.trim_ascii();
    // `u64::from_str` takes a leading plus sign.
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

/// Bytes that whole empty lines (`\n` or `\r\n`) take at the beginning.
fn blank_lines(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    while let Some(next) = rest
        .strip_prefix(b"\n")
        .or_else(|| rest.strip_prefix(b"\r\n"))
    {
        rest = next;
    }
    bytes.len() - rest.len()
}

fn keep_head(head: &mut Vec<u8>, bytes: &[u8]) {
    let room = HEAD.saturating_sub(head.len());
    head.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
}

/// The input and what has been read of it. All of `bytes` is initialized; `start..end` of it is
/// unconsumed input.
#[derive(Debug)]
struct Buffer<R> {
    input: R,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
    /// Size beyond which no frame makes the buffer grow, in bytes.
    max_size: usize,
}

impl<R: Read> Buffer<R> {
    fn new(input: R, max_frame_bytes: usize) -> Self {
        Self {
            input,
            bytes: vec![0; CHUNK],
            start: 0,
            end: 0,
            ended: false,
            max_size: max_frame_bytes.saturating_add(CHUNK),
        }
    }

    /// One read. `false`: the input has ended.
    fn fill(&mut self) -> io::Result<bool> {
        self.make_room();
        while !self.ended {
            let room = self.bytes.get_mut(self.end..).unwrap_or_default();
            match self.input.read(room) {
                Ok(0) => self.ended = true,
                Ok(count) => {
                    self.end = self.bytes.len().min(self.end + count);
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    fn make_room(&mut self) {
        let live = self.end - self.start;
        let shrink = self.bytes.len() > KEEP && live <= CHUNK / 2;
        if !shrink && live > 0 && self.bytes.len() - self.end >= CHUNK / 4 {
            return;
        }
        self.bytes.copy_within(self.start..self.end, 0);
        self.start = 0;
        self.end = live;
        if shrink {
            self.bytes.truncate(CHUNK);
            self.bytes.shrink_to_fit();
        } else if live > self.bytes.len() / 2 {
            // Doubling keeps the copying linear; the last step goes no further than any frame can.
            let size = self.bytes.len();
            let grown = size
                .saturating_mul(2)
                .min(self.max_size)
                .max(size + CHUNK / 4);
            self.bytes.reserve_exact(grown - size);
            self.bytes.resize(grown, 0);
        }
    }
}

impl<R> Buffer<R> {
    fn live(&self) -> &[u8] {
        self.slice(self.start..self.end)
    }

    fn slice(&self, range: Range<usize>) -> &[u8] {
        self.bytes.get(range).unwrap_or_default()
    }

    /// Gives up the next `count` bytes, which stay in place until the next read.
    fn consume(&mut self, count: usize) -> Range<usize> {
        let from = self.start;
        self.start = self.end.min(from + count);
        from..self.start
    }

    fn consume_all(&mut self) -> Range<usize> {
        self.consume(self.end - self.start)
    }
}

/// The id of a request of which only the beginning is known, as raw JSON (protocol.md §1): the
/// member `id` of the outermost object, if it stands complete in `head` and is a string or an
/// integer from 0 to 2^53 − 1. `None` for anything else; the answer then carries null.
#[must_use]
pub fn id_in_head(head: &[u8]) -> Option<&[u8]> {
    let mut walk = Walk { rest: head };
    walk.eat(b'{')?;
    loop {
        let key = walk.string()?;
        walk.eat(b':')?;
        if is_id_key(key) {
            return walk.id();
        }
        walk.pass_value()?;
        walk.eat(b',')?;
    }
}

/// Compared as text: a key may be spelt with escapes.
fn is_id_key(key: &[u8]) -> bool {
    key == b"\"id\""
        || memchr(b'\\', key).is_some()
            && serde_json::from_slice::<String>(key).is_ok_and(|key| key == "id")
}

/// A walk over JSON that may break off anywhere; every step gives `None` there.
struct Walk<'a> {
    rest: &'a [u8],
}

impl<'a> Walk<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    /// The first byte of the next token.
    fn peek(&mut self) -> Option<u8> {
        self.rest = self.rest.trim_ascii_start();
        self.rest.first().copied()
    }

    fn eat(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then_some(())?;
        self.take(1).map(drop)
    }

    /// A string with its quotes.
    fn string(&mut self) -> Option<&'a [u8]> {
        (self.peek()? == b'"').then_some(())?;
        let mut length = 1;
        loop {
            length += memchr2(b'"', b'\\', self.rest.get(length..)?)?;
            match self.rest.get(length)? {
                b'"' => return self.take(length + 1),
                _ => length += 2,
            }
        }
    }

    /// A number or literal. One that reaches the end may go on behind it, and is `None`.
    fn scalar(&mut self) -> Option<&'a [u8]> {
        let ends = |byte: &u8| byte.is_ascii_whitespace() || b",]}".contains(byte);
        let length = self.rest.iter().position(ends)?;
        self.take(length)
    }

    fn pass_value(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => drop(self.string()?),
                b'{' | b'[' => {
                    depth += 1;
                    self.take(1)?;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.take(1)?;
                }
                b',' | b':' if depth > 0 => drop(self.take(1)?),
                _ => {
                    // Nothing taken means a stray delimiter, on which the walk would not move.
                    (!self.scalar()?.is_empty()).then_some(())?;
                }
            }
            if depth == 0 {
                return Some(());
            }
        }
    }

    fn id(&mut self) -> Option<&'a [u8]> {
        if self.peek()? == b'"' {
            let raw = self.string()?;
            return serde_json::from_slice::<String>(raw).is_ok().then_some(raw);
        }
        let raw = self.scalar()?;
        let number: u64 = serde_json::from_slice(raw).ok()?;
        (number <= MAX_INTEGER_ID).then_some(raw)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::VecDeque;
    use std::rc::Rc;

    use super::*;

    /// Gives its pieces one per read, each after an `Interrupted`, and counts the reads.
    struct Pieces {
        queue: VecDeque<Vec<u8>>,
        interrupt: bool,
        /// At the end: would a further read block, instead of telling the end?
        stays_open: bool,
        reads: Rc<Cell<usize>>,
    }

    impl Pieces {
        fn new<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Self {
            Self {
                queue: pieces
                    .into_iter()
                    .filter(|p| !p.is_empty())
                    .map(<[u8]>::to_vec)
                    .collect(),
                interrupt: true,
                stays_open: false,
                reads: Rc::default(),
            }
        }

        fn open(input: &[u8]) -> Self {
            Self {
                stays_open: true,
                ..Self::new([input])
            }
        }
    }

    impl Read for Pieces {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            assert!(!room.is_empty(), "a read into nothing looks like the end");
            self.interrupt = !self.interrupt;
            if !self.interrupt {
                return Err(ErrorKind::Interrupted.into());
            }
            self.reads.set(self.reads.get() + 1);
            let Some(mut piece) = self.queue.pop_front() else {
                return if self.stays_open {
                    Err(ErrorKind::WouldBlock.into())
                } else {
                    Ok(0)
                };
            };
            let count = piece.len().min(room.len());
            room[..count].copy_from_slice(&piece[..count]);
            if count < piece.len() {
                self.queue.push_front(piece.split_off(count));
            }
            Ok(count)
        }
    }

    /// A frame that owns its bytes, which are spelt as text.
    #[derive(Debug, Clone, PartialEq)]
    enum Owned {
        Message(String),
        TooLarge(String),
        BadBlock,
    }

    fn text(bytes: &[u8]) -> String {
        bytes.escape_ascii().to_string()
    }

    fn message(content: impl AsRef<[u8]>) -> Owned {
        Owned::Message(text(content.as_ref()))
    }

    /// Whether a `\r` before the end of a line belongs to its head is nobody's concern.
    fn too_large(head: impl AsRef<[u8]>) -> Owned {
        Owned::TooLarge(text(head.as_ref()).replace("\\r", ""))
    }

    /// All frames, checking on the way that `has_buffered` foretells whether a read is needed.
    fn read_all(input: Pieces, limit: usize) -> (Option<Framing>, Vec<Owned>) {
        let reads = Rc::clone(&input.reads);
        let mut reader = FrameReader::new(input, limit);
        let mut frames = Vec::new();
        loop {
            let first = frames.is_empty();
            let (foretold, before) = (reader.has_buffered(), reads.get());
            let ended = reader.buffer.ended;
            let frame = match reader.next().unwrap() {
                Frame::Message(content) => message(content),
                Frame::TooLarge { head } => too_large(head),
                Frame::BadBlock => Owned::BadBlock,
                Frame::Eof => {
                    assert!(!foretold, "a frame was promised: {frames:?}");
                    assert_eq!(reader.next().unwrap(), Frame::Eof, "the end is final");
                    return (reader.framing(), frames);
                }
            };
            if !first && !ended {
                assert_eq!(
                    foretold,
                    reads.get() == before,
                    "before {frame:?} after {frames:?}"
                );
            }
            assert!(reader.framing().is_some());
            frames.push(frame);
        }
    }

    const LIMIT: usize = 40;

    /// In one piece, split in two at every place, and byte by byte.
    #[track_caller]
    fn check(input: &[u8], framing: Option<Framing>, expect: &[Owned]) {
        let expect = (framing, expect.to_vec());
        for at in 0..=input.len() {
            let (a, b) = input.split_at(at);
            assert_eq!(
                read_all(Pieces::new([a, b]), LIMIT),
                expect,
                "split at {at}"
            );
        }
        assert_eq!(
            read_all(Pieces::new(input.chunks(1)), LIMIT),
            expect,
            "byte by byte"
        );
    }

    #[track_caller]
    fn check_lines(input: impl AsRef<[u8]>, expect: &[Owned]) {
        check(input.as_ref(), Some(Framing::Lines), expect);
    }

    #[track_caller]
    fn check_blocks(input: impl AsRef<[u8]>, expect: &[Owned]) {
        check(input.as_ref(), Some(Framing::ContentLength), expect);
    }

    #[test]
    fn lines_are_messages() {
        check_lines("{\"a\":1}\n[2]\n", &[message("{\"a\":1}"), message("[2]")]);
    }

    #[test]
    fn a_last_line_without_its_end_is_a_message() {
        check_lines("{}\n{\"id\":1}", &[message("{}"), message("{\"id\":1}")]);
        check_lines("{}", &[message("{}")]);
        check_lines("{}\r", &[message("{}")]);
        check_lines("{}\n  ", &[message("{}")]);
    }

    #[test]
    fn blank_lines_are_passed_over() {
        check_lines(
            "\n\r\n{}\n\n \t\r\n\n[]\n\n",
            &[message("{}"), message("[]")],
        );
        check_lines("  \n{}\n", &[message("{}")]);
        check(b"", None, &[]);
        check(b"\n\r\n\n", None, &[]);
    }

    #[test]
    fn a_carriage_return_before_the_line_end_is_tolerated() {
        check_lines("{}\r\n[]\r\n", &[message("{}"), message("[]")]);
    }

    #[test]
    fn only_the_line_feed_separates() {
        let line = "{\"t\":\"\u{2028}\u{2029}\u{85}\x0b\x0c\r\"}";
        check_lines(format!("{line}\n{line}\n"), &[message(line), message(line)]);
    }

    #[test]
    fn a_bom_is_tolerated_at_the_start_only() {
        check_lines("\u{feff}{}\n", &[message("{}")]);
        check_lines("\u{feff}\n{}\n", &[message("{}")]);
        check_blocks("\u{feff}Content-Length: 2\r\n\r\n{}", &[message("{}")]);
        check_lines("{}\n\u{feff}{}\n", &[message("{}"), message("\u{feff}{}")]);
        check_lines(b"\xEF\xBB{}\n", &[message(b"\xEF\xBB{}")]);
        check_lines(b"\xEF\xBB", &[message(b"\xEF\xBB")]);
        check("\u{feff}".as_bytes(), None, &[]);
    }

    #[test]
    fn what_is_no_header_is_a_line() {
        check_lines("garbage\n{}\n", &[message("garbage"), message("{}")]);
        check_lines("42\nnull\n", &[message("42"), message("null")]);
        check_lines("null", &[message("null")]);
        check_lines("a b: c\n", &[message("a b: c")]);
        check_lines(": c\n\n", &[message(": c")]);
        check_lines(
            "\"Content-Length: 2\"\n",
            &[message("\"Content-Length: 2\"")],
        );
        check_lines(" Content-Length: 2\n", &[message(" Content-Length: 2")]);
        check_lines(
            "{Content-Length: 2\r\n\r\n",
            &[message("{Content-Length: 2")],
        );
    }

    #[test]
    fn header_like_lines_without_the_end_of_a_block_are_lines() {
        check_lines("foo: bar\n{}\n", &[message("foo: bar"), message("{}")]);
        check_lines("foo: bar\r\n", &[message("foo: bar")]);
        check_lines("foo: bar", &[message("foo: bar")]);
    }

    #[test]
    fn blocks_are_messages() {
        check_blocks(
            "Content-Length: 7\r\n\r\n{\"a\":1}Content-Length: 3\r\n\r\n[2]",
            &[message("{\"a\":1}"), message("[2]")],
        );
    }

    #[test]
    fn a_body_may_hold_anything() {
        let body = "{\n\n\"Content-Length: 1\r\n\r\n\"}";
        let input = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        check_blocks(input.repeat(2), &[message(body), message(body)]);
        check_blocks(
            "Content-Length: 0\r\n\r\nContent-Length: 2\r\n\r\n{}",
            &[message(""), message("{}")],
        );
    }

    #[test]
    fn header_names_are_case_insensitive_and_others_may_stand_around() {
        check_blocks("content-length:2\r\n\r\n{}", &[message("{}")]);
        check_blocks(
            "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nCONTENT-LENGTH:  2 \r\nX-Y: z\r\n\r\n{}",
            &[message("{}")],
        );
        check_blocks("Content-Length: 2\n\n{}", &[message("{}")]);
        check_blocks(
            "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
            &[message("{}")],
        );
    }

    #[test]
    fn blank_lines_before_a_block_are_passed_over() {
        check_blocks(
            "\r\n\nContent-Length: 2\r\n\r\n{}\r\n\nContent-Length: 2\r\n\r\n{}\n",
            &[message("{}"), message("{}")],
        );
    }

    #[test]
    fn a_block_without_a_valid_length_is_bad() {
        for block in [
            "Content-Type: x\r\n\r\n",
            "Content-Length: x\r\n\r\n",
            "Content-Length:\r\n\r\n",
            "Content-Length: -1\r\n\r\n",
            "Content-Length: +1\r\n\r\n",
            "Content-Length: 1.0\r\n\r\n",
            "Content-Length: 99999999999999999999\r\n\r\n",
            "Content-Length: 2\r\nContent-Length: 3\r\n\r\n",
            "Content-Length: 2\r\ngarbage\r\n\r\n",
            "Content-Length: 2\r\n{}",
            "Content-Length: 2\r\n",
        ] {
            check_blocks(block, &[Owned::BadBlock]);
            let second = format!("Content-Length: 2\r\n\r\n{{}}{block}");
            check_blocks(second, &[message("{}"), Owned::BadBlock]);
        }
        check_blocks(
            "Content-Length: 2\r\n\r\n{}garbage",
            &[message("{}"), Owned::BadBlock],
        );
    }

    #[test]
    fn a_body_that_breaks_off_is_delivered_as_far_as_it_came() {
        check_blocks("Content-Length: 9\r\n\r\n{\"a\"", &[message("{\"a\"")]);
        check_blocks("Content-Length: 9\r\n\r\n", &[message("")]);
    }

    #[test]
    fn frames_over_the_limit_are_skipped() {
        let fits = "x".repeat(LIMIT);
        let over = "y".repeat(LIMIT + 1);
        check_lines(
            format!("[\n{fits}\r\n{over}\n{fits}\n{over}\r\n{over}{over}{over}\r\n{over}"),
            &[
                message("["),
                message(&fits),
                too_large(&over),
                message(&fits),
                too_large(&over),
                too_large(over.repeat(3)),
                too_large(&over),
            ],
        );
    }

    #[test]
    fn bodies_over_the_limit_are_skipped() {
        let block = |body: &str| format!("Content-Length: {}\r\n\r\n{body}", body.len());
        let fits = "x".repeat(LIMIT);
        let over = "y\n".repeat(LIMIT);
        check_blocks(
            [block(&fits), block(&over), block(&fits), block(&over)].concat(),
            &[
                message(&fits),
                too_large(&over),
                message(&fits),
                too_large(&over),
            ],
        );
        check_blocks(
            "Content-Length: 9999999999999999999\r\n\r\n{",
            &[too_large("{")],
        );
    }

    #[test]
    fn the_head_of_a_skipped_frame_is_its_first_4_kib() {
        let line = [b"{".as_slice(), &b"x".repeat(3 * CHUNK)].concat();
        for piece in [1000, CHUNK, line.len()] {
            let (_, frames) = read_all(Pieces::new(line.chunks(piece)), LIMIT);
            assert_eq!(frames, [too_large(&line[..HEAD])]);
        }
    }

    /// `Detection must not wait for more than it needs`: a client that sends one line and waits
    /// for the answer hung forever when the reader wanted a whole header block first.
    #[test]
    fn the_framing_is_settled_by_the_first_bytes_that_can() {
        for first in ["{", "[", "\u{feff}{", "\n\n{", " ", "abc def", "abc\"", ":"] {
            let mut reader = FrameReader::new(Pieces::open(first.as_bytes()), LIMIT);
            assert_eq!(reader.next().unwrap_err().kind(), ErrorKind::WouldBlock);
            assert_eq!(reader.framing(), Some(Framing::Lines), "{first:?}");
        }
        for first in [
            "",
            "\u{feff}",
            "Content-Len",
            "Content-Length: 5\r\n",
            "x: y\r\n\r",
            "\r",
        ] {
            let mut reader = FrameReader::new(Pieces::open(first.as_bytes()), LIMIT);
            assert_eq!(reader.next().unwrap_err().kind(), ErrorKind::WouldBlock);
            assert_eq!(reader.framing(), None, "{first:?}");
        }
        for (first, expect) in [
            ("{}\n", "{}"),
            ("garbage\n", "garbage"),
            ("foo: bar\ngarbage\n", "foo: bar"),
            ("foo: bar\n{", "foo: bar"),
            ("Content-Length: 2\r\n\r\n{}", "{}"),
        ] {
            let mut reader = FrameReader::new(Pieces::open(first.as_bytes()), LIMIT);
            assert_eq!(reader.next().unwrap(), Frame::Message(expect.as_bytes()));
        }
    }

    #[test]
    fn a_header_block_without_end_is_not_collected() {
        let line = "x".repeat(MAX_NAME + 1);
        let mut reader = FrameReader::new(Pieces::open(line.as_bytes()), LIMIT);
        assert!(reader.next().is_err());
        assert_eq!(reader.framing(), Some(Framing::Lines));

        let long = format!("x: {}", "y".repeat(MAX_BLOCK));
        let mut reader = FrameReader::new(Pieces::open(long.as_bytes()), LIMIT);
        assert!(reader.next().is_err());
        assert_eq!(reader.framing(), Some(Framing::Lines));

        let many = format!("Content-Length: 2\r\n{}", "x: y\r\n".repeat(MAX_BLOCK));
        let mut reader = FrameReader::new(Pieces::open(many.as_bytes()), LIMIT);
        assert_eq!(reader.next().unwrap(), Frame::BadBlock);
    }

    #[test]
    fn an_error_of_the_input_loses_nothing() {
        struct Flaky(Pieces, bool);
        impl Read for Flaky {
            fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
                self.1 = !self.1;
                if self.1 {
                    Err(ErrorKind::WouldBlock.into())
                } else {
                    self.0.read(room)
                }
            }
        }
        let over = "y".repeat(3 * LIMIT);
        let input = format!("{{}}\n{over}\n[]\n");
        let mut reader =
            FrameReader::new(Flaky(Pieces::new(input.as_bytes().chunks(1)), false), LIMIT);
        let mut frames = Vec::new();
        loop {
            match reader.next() {
                Ok(Frame::Message(content)) => frames.push(message(content)),
                Ok(Frame::TooLarge { head }) => frames.push(too_large(head)),
                Ok(Frame::BadBlock) => frames.push(Owned::BadBlock),
                Ok(Frame::Eof) => break,
                Err(error) => assert!(matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::Interrupted
                )),
            }
        }
        assert_eq!(frames, [message("{}"), too_large(over), message("[]")]);
    }

    /// Whatever comes, the frames do not depend on the pieces in which it comes, and lines agree
    /// with what splitting says.
    #[test]
    fn pieces_do_not_matter() {
        const WORDS: [&[u8]; 16] = [
            b"Content-Length: 3\r\n",
            b"content-length:12\n",
            b"Content-Length: 2",
            b"Content-Type: x\r\n",
            b"\r\n",
            b"\n",
            b"\r",
            b"{}",
            b"[]\n",
            b"abc",
            b":",
            b" ",
            b"\xEF\xBB\xBF",
            b"\xE2\x80\xA8",
            b"{\"id\":1}\n",
            b"0123456789",
        ];
        let mut random = Random(1);
        for _ in 0..20_000 {
            let mut input = Vec::new();
            for _ in 0..random.below(12) {
                input.extend_from_slice(WORDS[random.below(WORDS.len())]);
            }
            let whole = read_all(Pieces::new([&*input]), 10);
            let single = read_all(Pieces::new(input.chunks(1)), 10);
            let mut pieces = Vec::new();
            let mut rest = &*input;
            while !rest.is_empty() {
                let (piece, next) = rest.split_at(rest.len().min(1 + random.below(9)));
                pieces.push(piece);
                rest = next;
            }
            let some = read_all(Pieces::new(pieces), 10);
            let shown = text(&input);
            assert_eq!(single, whole, "{shown}");
            assert_eq!(some, whole, "{shown}");
            if whole.0 == Some(Framing::Lines) {
                assert_eq!(whole.1, split_naively(&input), "{shown}");
            }
        }
    }

    fn split_naively(input: &[u8]) -> Vec<Owned> {
        let input = input.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(input);
        let lines = input.split(|byte| *byte == b'\n');
        let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let frames = lines.filter_map(|line| match line {
            line if line.len() > 10 => Some(too_large(line)),
            line if is_blank(line) => None,
            line => Some(message(line)),
        });
        frames.collect()
    }

    /// Constants of Knuth's MMIX generator.
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: usize) -> usize {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(self.0 >> 33).unwrap() % bound
        }
    }

    /// Gives `{`, then filler, then a line end and a short message, at most `piece` bytes a read.
    struct Huge {
        filler: usize,
        piece: usize,
        tail: &'static [u8],
    }

    impl Read for Huge {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            if self.filler == 0 {
                return self.tail.read(room);
            }
            let count = self.filler.min(self.piece).min(room.len());
            room[..count].fill(b'x');
            self.filler -= count;
            Ok(count)
        }
    }

    #[test]
    fn a_line_of_100_mb_is_skipped_in_constant_memory() {
        let input = Huge {
            filler: 100_000_000,
            piece: usize::MAX,
            tail: b"\n{}\n",
        };
        let mut reader = FrameReader::new(input, 1000);
        assert_eq!(
            reader.next().unwrap(),
            Frame::TooLarge {
                head: &[b'x'; HEAD]
            }
        );
        assert_eq!(reader.buffer.bytes.capacity(), CHUNK);
        assert_eq!(reader.next().unwrap(), Frame::Message(b"{}"));
    }

    /// An 8 MB line took quadratic time where each read looked at the whole line again. With that
    /// mistake this test would look at 2 TB and never end.
    #[test]
    fn a_long_line_in_small_pieces_takes_linear_time() {
        const SIZE: usize = 64 * 1024 * 1024;
        let input = Huge {
            filler: SIZE,
            piece: 1024,
            tail: b"\n{}\n",
        };
        let mut reader = FrameReader::new(input, SIZE);
        let Frame::Message(content) = reader.next().unwrap() else {
            panic!("no message")
        };
        assert_eq!(content.len(), SIZE);
        assert!(
            reader.buffer.bytes.capacity() <= SIZE + CHUNK,
            "grown beyond any frame"
        );
        assert_eq!(reader.next().unwrap(), Frame::Message(b"{}"));
        assert_eq!(reader.next().unwrap(), Frame::Eof);
        assert_eq!(reader.buffer.bytes.capacity(), CHUNK, "not given back");
    }

    #[test]
    fn a_huge_claimed_length_allocates_nothing() {
        let header = b"Content-Length: 67108864\r\n\r\n{";
        let mut reader = FrameReader::new(Pieces::open(header), usize::MAX);
        assert!(reader.next().is_err());
        assert_eq!(reader.buffer.bytes.capacity(), CHUNK);
    }

    #[track_caller]
    fn check_id(head: impl AsRef<[u8]>, expect: Option<&str>) {
        assert_eq!(
            id_in_head(head.as_ref()).map(text),
            expect.map(|id| text(id.as_bytes()))
        );
    }

    #[test]
    fn the_id_of_a_head_is_found() {
        check_id(
            r#"{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":"#,
            Some("7"),
        );
        check_id(r#"{"id":"a\"b","method"#, Some(r#""a\"b""#));
        check_id(" {\r\n \"id\"\t:\n0 , ", Some("0"));
        check_id(r#"{"id":9007199254740991,"#, Some("9007199254740991"));
        check_id(r#"{"\u0069d":1,"#, Some("1"));
        check_id(
            r#"{"params":{"id":1,"x":[{"id":2},"]}",true,-1.5e3,null,{}]},"id":3}"#,
            Some("3"),
        );
        check_id(r#"{"params":[],"method":"\\","id":"","x":"#, Some(r#""""#));
    }

    #[test]
    fn an_id_that_is_not_surely_the_requests_is_not_taken() {
        for head in [
            "",
            "{",
            "[",
            "{}",
            "null",
            "garbage",
            "[{\"id\":1,",
            "{\"id\"",
            "{\"id\":",
            r#"{"params":{"id":1,"#,
            r#"{"params":["id",1,"#,
            r#"{"x":"\"id\":1,"#,
            r#"{"x":"a","id1":1,"#,
            // Cut: the number or string may go on.
            r#"{"id":12"#,
            r#"{"id":"abc"#,
            r#"{"id":"abc\""#,
            // No valid ids.
            r#"{"id":null,"#,
            r#"{"id":-1,"#,
            r#"{"id":1.0,"#,
            r#"{"id":1e3,"#,
            r#"{"id":01,"#,
            r#"{"id":true,"#,
            r#"{"id":9007199254740992,"#,
            r#"{"id":{"id":1},"#,
            r#"{"id":[1],"#,
            "{\"id\":\"\u{1}\",",
            // Not JSON.
            r#"{"a" 1,"id":1,"#,
            r#"{"a":,"id":1,"#,
            r#"{"a":]"id":1,"#,
            r#"{a:1,"id":1,"#,
            r#"{"a":1 "id":1,"#,
        ] {
            check_id(head, None);
        }
        check_id(b"{\"id\":\"\xFF\",", None);
    }

    #[test]
    fn deep_nesting_in_a_head_does_no_harm() {
        check_id([b"{\"a\":".as_slice(), &b"[".repeat(HEAD)].concat(), None);
    }
}
