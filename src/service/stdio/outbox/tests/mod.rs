mod memory;

use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::class::Class;
use super::queue::*;
use super::writer::{CHUNK, SMALL};
use crate::stdio::frame::Framing;
use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, mpsc};

const LIMIT: usize = 1000;

/// Closes the outbox, and returns all queued messages as the writer writes them.
fn drain(outbox: &Outbox) -> Vec<String> {
    outbox.close();
    let mut output = Vec::new();
    outbox.run(&mut output).unwrap();
    assert_eq!(outbox.queued_bytes(), 0);
    String::from_utf8(output)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

fn keep(outbox: &Outbox, message: &str) {
    outbox.push(message.into(), Class::Keep);
}

fn event(outbox: &Outbox, session: &str, seq: u64) {
    outbox.push(
        format!("{session}{seq}").into(),
        Class::Droppable {
            session: session.into(),
            seq,
        },
    );
}

fn lost(session: &str, from: u64, to: u64) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"events_lost","params":{{"sessionId":"{session}","fromSeq":{from},"toSeq":{to}}}}}"#
    )
}

fn delta(index: u64, text: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"summary_delta","params":{{"sessionId":"s","navigationId":"n","index":{index},"delta":"{text}"}}}}"#
    )
}

/// Queues a message that exceeds the limit, and returns it.
fn overfill(outbox: &Outbox) -> String {
    let filler = "f".repeat(LIMIT + 1);
    keep(outbox, &filler);
    assert!(outbox.is_over_limit());
    filler
}

/// Waits until another thread has made the condition true.
#[track_caller]
fn eventually(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(10), "in vain");
        thread::yield_now();
    }
}

#[test]
fn messages_leave_in_order() {
    let outbox = Outbox::new(LIMIT);
    keep(&outbox, "1");
    event(&outbox, "a", 0);
    outbox.push_delta("s", "n", 0, "x");
    outbox.push("p".into(), Class::Progress);
    assert!(outbox.queued_bytes() > 4);
    assert_eq!(drain(&outbox), ["1", "a0", &delta(0, "x"), "p"]);
}

#[test]
fn content_length_counts_bytes() {
    let outbox = Outbox::new(LIMIT);
    outbox.set_framing(Framing::ContentLength);
    keep(&outbox, "\"ü\"");
    keep(&outbox, "{}");
    assert_eq!(
        drain(&outbox).join("\n"),
        "Content-Length: 4\n\n\"ü\"Content-Length: 2\n\n{}"
    );
}

#[test]
fn messages_of_every_size_are_framed_whole() {
    for framing in [Framing::Lines, Framing::ContentLength] {
        let outbox = Outbox::new(0);
        outbox.set_framing(framing);
        let mut expect = Vec::new();
        for size in [
            1,
            SMALL - 1,
            SMALL,
            SMALL + 1,
            CHUNK,
            2,
            CHUNK * 3 + 1,
            0,
            SMALL,
            SMALL,
            SMALL,
            SMALL,
            3,
        ] {
            let message = vec![b'a' + u8::try_from(size % 26).unwrap(); size];
            if framing == Framing::ContentLength {
                expect.extend_from_slice(format!("Content-Length: {size}\r\n\r\n").as_bytes());
            }
            expect.extend_from_slice(&message);
            if framing == Framing::Lines {
                expect.push(b'\n');
            }
            outbox.push(message, Class::Keep);
        }
        for sizes in [
            &[0, 1, 0][..],
            &[3, SMALL + 1, 1],
            &[SMALL, CHUNK * 2 + 1, SMALL - 1, SMALL],
            &[CHUNK, CHUNK],
        ] {
            let pieces = sizes
                .iter()
                .map(|size| vec![b'A' + u8::try_from(size % 26).unwrap(); *size]);
            let pieces: Vec<Vec<u8>> = pieces.collect();
            let message = pieces.concat();
            if framing == Framing::ContentLength {
                let size = message.len();
                expect.extend_from_slice(format!("Content-Length: {size}\r\n\r\n").as_bytes());
            }
            expect.extend_from_slice(&message);
            if framing == Framing::Lines {
                expect.push(b'\n');
            }
            assert!(outbox.push_answer(OutboxItem::Pieces(pieces), None, true));
        }
        outbox.close();
        let mut output = Vec::new();
        outbox.run(&mut output).unwrap();
        assert!(output == expect, "{framing:?}");
        assert_eq!(outbox.queued_bytes(), 0);
    }
}

#[test]
fn deltas_of_one_navigation_are_merged() {
    let outbox = Outbox::new(LIMIT);
    for (index, text) in [(3, "a\""), (4, "b\n"), (5, "\u{2028}\u{2029}é")] {
        outbox.push_delta("s", "n", index, text);
    }
    outbox.push_delta("s", "other", 0, "x");
    outbox.push_delta("s", "n", 6, "z");
    outbox.push_delta("t", "n", 0, "y");
    let lines = drain(&outbox);
    assert_eq!(lines[0], delta(3, "a\\\"b\\n\\u2028\\u2029éz"));
    assert!(lines[1].contains(r#""navigationId":"other","index":0,"delta":"x""#));
    assert!(lines[2].contains(r#""sessionId":"t","navigationId":"n","index":0,"delta":"y""#));
    assert_eq!(lines.len(), 3);
}

#[test]
fn deltas_are_kept_above_the_limit() {
    let outbox = Outbox::new(LIMIT);
    let filler = overfill(&outbox);
    outbox.push_delta("s", "n", 0, "x");
    outbox.push_delta("s", "n", 1, "y");
    assert_eq!(drain(&outbox), [filler, delta(0, "xy")]);
}

#[test]
fn a_single_message_of_any_size_goes_through() {
    let outbox = Outbox::new(0);
    event(&outbox, "a", 0);
    event(&outbox, "a", 1);
    assert_eq!(drain(&outbox), ["a0", &lost("a", 1, 1)]);
}

#[test]
fn consecutive_drops_are_one_range() {
    let outbox = Outbox::new(LIMIT);
    event(&outbox, "a", 4);
    let filler = overfill(&outbox);
    event(&outbox, "a", 5);
    event(&outbox, "a", 6);
    outbox.push("p".into(), Class::Progress);
    event(&outbox, "b", 0);
    keep(&outbox, "response");
    event(&outbox, "a", 7);
    assert_eq!(
        drain(&outbox),
        [
            "a4",
            &filler,
            &lost("a", 5, 7),
            &lost("b", 0, 0),
            "response"
        ]
    );
}

/// The range of lost numbers must not contain the number of a delivered notification.
#[test]
fn a_kept_notification_splits_the_range() {
    let outbox = Outbox::new(LIMIT);
    let filler = overfill(&outbox);
    event(&outbox, "a", 5);
    event(&outbox, "b", 8);
    keep(&outbox, "session_tree a6");
    event(&outbox, "a", 7);
    event(&outbox, "b", 9);
    event(&outbox, "a", 8);
    assert_eq!(
        drain(&outbox),
        [
            &filler,
            &lost("a", 5, 5),
            &lost("b", 8, 9),
            "session_tree a6",
            &lost("a", 7, 8)
        ]
    );
}

/// The numbers of a session are written in ascending order, without holes or repetitions, whatever the order of pushes.
#[test]
fn every_number_is_delivered_or_reported_lost() {
    let outbox = Outbox::new(LIMIT);
    let (mut reader, writer) = io::pipe().unwrap();
    let runner = thread::spawn({
        let outbox = Arc::clone(&outbox);
        let mut writer = writer;
        move || outbox.run(&mut writer)
    });
    let consumer = thread::spawn(move || {
        let mut text = String::new();
        let mut piece = [0; 500];
        loop {
            let count = reader.read(&mut piece).unwrap();
            if count == 0 {
                return text;
            }
            text.push_str(std::str::from_utf8(&piece[..count]).unwrap());
            thread::sleep(Duration::from_micros(20));
        }
    });
    let padding = " ".repeat(100);
    for seq in 0..20_000_u64 {
        for session in ["a", "b"] {
            let message = format!(r#"{{"s":"{session}","seq":{seq}}}{padding}"#).into_bytes();
            let class = if (seq / 3 + seq) % 5 == 0 {
                Class::Keep
            } else {
                Class::Droppable {
                    session: session.into(),
                    seq,
                }
            };
            outbox.push(message, class);
        }
    }
    outbox.close();
    runner.join().unwrap().unwrap();
    let text = consumer.join().unwrap();
    let mut next = HashMap::from([("a".to_owned(), 0), ("b".to_owned(), 0)]);
    let mut gaps = 0;
    for line in text.lines() {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        let (session, from, to) = if value["method"] == "events_lost" {
            gaps += 1;
            let params = &value["params"];
            (&params["sessionId"], &params["fromSeq"], &params["toSeq"])
        } else {
            (&value["s"], &value["seq"], &value["seq"])
        };
        let next = next.get_mut(session.as_str().unwrap()).unwrap();
        assert_eq!(from.as_u64(), Some(*next), "{line}");
        *next = to.as_u64().unwrap() + 1;
    }
    assert_eq!(next.into_values().collect::<Vec<_>>(), [20_000, 20_000]);
    assert!(gaps > 0, "nothing was dropped");
}

/// Lets one write of at most the permitted number of bytes pass for each permit.
struct Gate {
    permits: mpsc::Receiver<usize>,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Write for Gate {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.permits.recv() {
            Ok(0) => Err(ErrorKind::Interrupted.into()),
            Ok(1) => Err(ErrorKind::WouldBlock.into()),
            Ok(most) => {
                let count = most.min(bytes.len());
                self.written
                    .lock()
                    .unwrap()
                    .extend_from_slice(&bytes[..count]);
                Ok(count)
            }
            Err(_) => Err(ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Gated {
    outbox: Arc<Outbox>,
    permits: mpsc::Sender<usize>,
    written: Arc<Mutex<Vec<u8>>>,
    runner: thread::JoinHandle<io::Result<()>>,
}

impl Gated {
    fn new(limit: usize) -> Self {
        let outbox = Outbox::new(limit);
        let (permits, receiver) = mpsc::channel();
        let written = Arc::<Mutex<Vec<u8>>>::default();
        let mut gate = Gate {
            permits: receiver,
            written: Arc::clone(&written),
        };
        let runner = thread::spawn({
            let outbox = Arc::clone(&outbox);
            move || outbox.run(&mut gate)
        });
        eventually(|| outbox.lock().writer_sleeps);
        Self {
            outbox,
            permits,
            written,
            runner,
        }
    }

    fn permit(&self, bytes: usize) {
        self.permits.send(bytes).unwrap();
    }

    fn written(&self) -> String {
        String::from_utf8(self.written.lock().unwrap().clone()).unwrap()
    }

    /// Waits until the writer has taken the queue and blocks in its write.
    fn taken(&self) {
        eventually(|| self.outbox.lock().queue.is_empty());
    }

    fn wait_for_room(&self, go_on: &Arc<AtomicBool>) -> thread::JoinHandle<()> {
        let outbox = Arc::clone(&self.outbox);
        let go_on = Arc::clone(go_on);
        let waiter = thread::spawn(move || outbox.wait_for_room(&|| go_on.load(Ordering::SeqCst)));
        eventually(|| self.outbox.lock().waiting_for_room == 1);
        waiter
    }
}

#[test]
fn bytes_that_the_writer_holds_count_as_unread() {
    let gated = Gated::new(LIMIT);
    keep(&gated.outbox, "abc");
    gated.taken();
    assert_eq!(gated.outbox.queued_bytes(), 3);
    keep(&gated.outbox, "de");
    assert_eq!(gated.outbox.queued_bytes(), 5);
    gated.permit(100);
    eventually(|| gated.outbox.queued_bytes() == 2);
    gated.permit(100);
    eventually(|| gated.outbox.queued_bytes() == 0);
    assert_eq!(gated.written(), "abc\nde\n");
}

#[test]
fn short_writes_and_interruptions_are_continued() {
    let gated = Gated::new(LIMIT);
    keep(&gated.outbox, "abcdef");
    for most in [2, 0, 1, 3, 0, 1, 2] {
        gated.permit(most);
    }
    eventually(|| gated.outbox.queued_bytes() == 0);
    assert_eq!(gated.written(), "abcdef\n");
}

/// Messages that are queued while the writer blocks in one write need only one further write.
#[test]
fn messages_queued_together_are_written_together() {
    let gated = Gated::new(LIMIT);
    keep(&gated.outbox, "first");
    gated.taken();
    for message in ["a", "b", "c"] {
        keep(&gated.outbox, message);
    }
    gated.permit(100);
    gated.permit(100);
    eventually(|| gated.outbox.queued_bytes() == 0);
    assert_eq!(gated.written(), "first\na\nb\nc\n");
}

#[test]
fn a_corked_writer_sleeps_until_uncorked() {
    let gated = Gated::new(LIMIT);
    gated.outbox.cork();
    keep(&gated.outbox, "a");
    keep(&gated.outbox, "b");
    thread::sleep(Duration::from_millis(20));
    assert_eq!(gated.outbox.lock().queue.len(), 2);
    gated.permit(100);
    gated.outbox.uncork();
    eventually(|| gated.outbox.queued_bytes() == 0);
    assert_eq!(gated.written(), "a\nb\n");
}

#[test]
fn a_cork_holds_back_no_more_than_its_measure() {
    let gated = Gated::new(LIMIT);
    gated.outbox.cork();
    keep(&gated.outbox, &"x".repeat(CORKED));
    gated.taken();
}

#[test]
fn waiting_ends_when_the_client_has_read() {
    let gated = Gated::new(LIMIT);
    overfill(&gated.outbox);
    let waiter = gated.wait_for_room(&Arc::default());
    gated.permit(LIMIT + 2);
    waiter.join().unwrap();
    assert!(!gated.outbox.is_over_limit());
    gated.outbox.wait_for_room(&|| false);
}

#[test]
fn waiting_ends_within_a_large_message() {
    let gated = Gated::new(CHUNK);
    keep(&gated.outbox, &"x".repeat(2 * CHUNK));
    let waiter = gated.wait_for_room(&Arc::default());
    gated.permit(CHUNK);
    waiter.join().unwrap();
    assert_eq!(gated.outbox.queued_bytes(), CHUNK);
}

#[test]
fn waiting_ends_when_woken_with_a_reason_to_continue() {
    let gated = Gated::new(LIMIT);
    overfill(&gated.outbox);
    gated.outbox.wait_for_room(&|| true);
    let go_on = Arc::default();
    let waiter = gated.wait_for_room(&go_on);
    gated.outbox.wake();
    thread::sleep(Duration::from_millis(20));
    assert!(!waiter.is_finished());
    go_on.store(true, Ordering::SeqCst);
    gated.outbox.wake();
    waiter.join().unwrap();
}

#[test]
fn waiting_ends_when_closed() {
    let gated = Gated::new(LIMIT);
    overfill(&gated.outbox);
    let waiter = gated.wait_for_room(&Arc::default());
    gated.outbox.close();
    waiter.join().unwrap();
    gated.permit(LIMIT + 2);
    gated.runner.join().unwrap().unwrap();
}

#[test]
fn waiting_wakes_a_corked_writer() {
    let gated = Gated::new(0);
    gated.outbox.cork();
    keep(&gated.outbox, "a");
    gated.permit(100);
    gated.outbox.wait_for_room(&|| false);
    assert_eq!(gated.written(), "a\n");
}

/// The condition may take locks and push messages, as an answer to a question does.
#[test]
fn the_condition_is_asked_without_a_lock() {
    let outbox = Outbox::new(LIMIT);
    overfill(&outbox);
    outbox.wait_for_room(&|| {
        keep(&outbox, "x");
        outbox.wake();
        outbox.is_over_limit()
    });
    assert_eq!(drain(&outbox).len(), 2);
}

#[test]
fn closing_drains_and_takes_no_more() {
    let gated = Gated::new(LIMIT);
    keep(&gated.outbox, "a");
    keep(&gated.outbox, "b");
    gated.outbox.close();
    gated.outbox.close();
    keep(&gated.outbox, "late");
    gated.outbox.push_delta("s", "n", 0, "late");
    _ = gated.permits.send(100);
    _ = gated.permits.send(100);
    gated.runner.join().unwrap().unwrap();
    assert_eq!(*gated.written.lock().unwrap(), b"a\nb\n");
    assert!(!gated.outbox.is_broken());
}

#[test]
fn a_sleeping_writer_ends_when_closed() {
    let gated = Gated::new(LIMIT);
    gated.outbox.close();
    gated.runner.join().unwrap().unwrap();
}

#[test]
fn a_closed_output_breaks_the_outbox() {
    let (reader, mut writer) = io::pipe().unwrap();
    let outbox = Outbox::new(LIMIT);
    overfill(&outbox);
    drop(reader);
    let error = outbox.run(&mut writer).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    assert!(outbox.is_broken());
    overfill_in_vain(&outbox);
    outbox.wait_for_room(&|| false);
    outbox.close();
    assert!(outbox.is_broken());
}

fn overfill_in_vain(outbox: &Outbox) {
    keep(outbox, &"x".repeat(LIMIT + 1));
    assert_eq!(outbox.queued_bytes(), 0);
}

#[test]
fn waiting_ends_when_the_output_closes() {
    let gated = Gated::new(LIMIT);
    overfill(&gated.outbox);
    let waiter = gated.wait_for_room(&Arc::default());
    drop(gated.permits);
    waiter.join().unwrap();
    assert!(gated.outbox.is_broken());
    assert!(gated.runner.join().unwrap().is_err());
}

/// Four producers write through a real pipe. Every message arrives, and the messages of each producer are in order.
#[test]
fn a_million_small_messages_arrive_in_order() {
    const EACH: u64 = 250_000;
    let outbox = Outbox::new(64 * 1024 * 1024);
    let (reader, mut writer) = io::pipe().unwrap();
    let runner = thread::spawn({
        let outbox = Arc::clone(&outbox);
        move || outbox.run(&mut writer)
    });
    let producers: Vec<_> = (0..4_u64)
        .map(|producer| {
            let outbox = Arc::clone(&outbox);
            thread::spawn(move || {
                for number in 0..EACH {
                    keep(&outbox, &format!("{producer} {number}"));
                    outbox.wait_for_room(&|| false);
                }
            })
        })
        .collect();
    let consumer = thread::spawn(move || {
        let mut next = [0_u64; 4];
        for line in BufReader::new(reader).lines() {
            let line = line.unwrap();
            let (producer, number) = line.split_once(' ').unwrap();
            let next = &mut next[producer.parse::<usize>().unwrap()];
            assert_eq!(number.parse(), Ok(*next));
            *next += 1;
        }
        next
    });
    for producer in producers {
        producer.join().unwrap();
    }
    outbox.close();
    runner.join().unwrap().unwrap();
    assert_eq!(consumer.join().unwrap(), [EACH; 4]);
}
