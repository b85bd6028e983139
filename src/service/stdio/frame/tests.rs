use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::block::{MAX_BLOCK, MAX_NAME};
use super::buffer::CHUNK;
use super::head::HEAD;
use super::*;
use std::io::ErrorKind;
use treelined_core::test_support::random::Random;

/// Gives one piece per read, each after an `Interrupted`, and counts the reads.
struct Pieces {
    queue: VecDeque<Vec<u8>>,
    interrupt: bool,
    /// Whether a read after the last piece would block, instead of returning 0.
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

/// A copy of a frame, as text.
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

/// A frame over the limit. A `\r` at the end of the frame's head is ignored.
fn too_large(head: impl AsRef<[u8]>) -> Owned {
    Owned::TooLarge(text(head.as_ref()).replace("\\r", ""))
}

/// Reads all frames, and checks that `has_buffered` predicts whether a read is needed.
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
            Frame::TooLarge { head } | Frame::NoMemory { head } => too_large(head),
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

/// Checks the input in one piece, in two pieces with each possible split, and byte by byte.
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
fn a_line_that_is_not_a_header_is_a_message() {
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

/// A client that sent one line and waited for the answer once hung forever, since the reader waited for a whole header
/// block first.
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
    let mut reader = FrameReader::new(Flaky(Pieces::new(input.as_bytes().chunks(1)), false), LIMIT);
    let mut frames = Vec::new();
    loop {
        match reader.next() {
            Ok(Frame::Message(content)) => frames.push(message(content)),
            Ok(Frame::TooLarge { head } | Frame::NoMemory { head }) => frames.push(too_large(head)),
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

/// Frames do not depend on the pieces in which the input arrives. The lines are equal to the lines of a plain split.
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

/// Gives `{`, then filler, then a line end and a short message. Each read gives at most `piece` bytes.
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

/// A line of 8 MB once took quadratic time, since each read scanned the whole line again. With that mistake, this test
/// would scan 2 TB and never end.
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

/// The unfinished frames of 40 connections once stayed in memory as a whole.
#[test]
fn a_frame_without_memory_is_skipped_and_the_connection_goes_on() {
    let big = format!("{{\"id\":7,\"x\":\"{}\"}}", "x".repeat(300_000));
    let blocks = |body: &str| format!("Content-Length: {}\r\n\r\n{body}", body.len());
    for in_blocks in [false, true] {
        let frames = [&big[..], "{}", &big].map(|frame| match in_blocks {
            true => blocks(frame),
            false => format!("{frame}\n"),
        });
        let memory = crate::memory::WorkingMemory::new(1 << 20);
        let other = memory.reserve(900_000).unwrap();
        let pieces = frames
            .iter()
            .flat_map(|frame| frame.as_bytes().chunks(10_000));
        let mut reader =
            FrameReader::new(Pieces::new(pieces), 1 << 20).within(memory.reservation());
        match reader.next().unwrap() {
            Frame::NoMemory { head } => assert_eq!(id_in_head(head), Some(&b"7"[..])),
            other => panic!("{other:?}"),
        }
        assert_eq!(reader.next().unwrap(), Frame::Message(b"{}"));
        drop(other);
        assert_eq!(reader.next().unwrap(), Frame::Message(big.as_bytes()));
        assert_eq!(reader.next().unwrap(), Frame::Eof);
        assert!(
            memory.reserve(1 << 20).is_ok(),
            "the memory of the frame is free"
        );
    }
}
