//! A daemon is killed at any moment of an append. Every acknowledged entry is in the file, every later line can be
//! read, and an incomplete last line is isolated and reported. session-file.md §3.
//!
//! The test makes 60 kills, or 2,000 in the long run. The random choices follow TREELINED_TEST_SEED, which a failing
//! run prints.

use std::collections::BTreeSet;
use std::fs;
use std::thread;
use std::time::Duration;

use crate::harness::*;

/// If the file is larger than this, in bytes, the test begins a new one, so that opening it stays fast.
const LARGE: usize = 8 << 20;

/// A size from 300 bytes to 4 MB. All orders of magnitude are equally likely.
fn size(random: &mut Random) -> usize {
    let scale = random.below(1 << 16) as f64 / f64::from(1 << 16);
    (300.0 * (4e6_f64 / 300.0).powf(scale)) as usize
}

/// The ids on complete lines of the file, and the number of lines that are not JSON.
fn whole_lines(bytes: &[u8]) -> (BTreeSet<String>, usize) {
    let mut ids = BTreeSet::new();
    let mut torn = 0;
    for line in bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
    {
        match serde_json::from_slice::<Json>(line) {
            Ok(entry) => {
                let id = entry["id"].as_str().expect("an id").to_owned();
                assert!(ids.insert(id), "twice: {}", entry["id"]);
            }
            Err(_) => torn += 1,
        }
    }
    (ids, torn)
}

#[test]
fn a_kill_while_appending_loses_no_acknowledged_entry() {
    let kills = if is_long_run() { 2_000 } else { 60 };
    let mut random = seeded_random(20_260_101);
    let home = Home::in_memory();
    let path = home.files().join("s.jsonl");
    let begin = || fs::write(&path, Log::new("s1").user("u1", "", "x").text()).unwrap();
    begin();
    let mut acknowledged: BTreeSet<String> = BTreeSet::from(["s1".to_owned(), "u1".to_owned()]);
    let mut torn_lines = 0;
    let mut before = fs::read(&path).unwrap();
    let (mut whole, mut torn) = whole_lines(&before);
    for kill in 0..kills {
        let mut d = Daemon::quiet_in(&home);
        d.ignore("diagnostics");
        let opened = d.open(&path);
        // The header is not an entry.
        assert_eq!(
            opened["session"]["entryCount"],
            whole.len() - 1,
            "kill {kill}"
        );
        for found in opened["diagnostics"].as_array().unwrap() {
            let kind = found["kind"].as_str().unwrap();
            assert!(
                ["tornTail", "invalidJson", "missingTrailingNewline"].contains(&kind),
                "{found}"
            );
        }
        let reported = opened["diagnostics"].as_array().unwrap().len();
        assert!(
            reported >= torn,
            "kill {kill}: {torn} torn lines, {reported} reported"
        );
        torn_lines += usize::from(torn > 0);

        let mut asked = Vec::new();
        for n in 0..1 + random.below(12) {
            let id = format!("k{kill}-{n}");
            let message = user(&"x".repeat(size(&mut random)));
            let request = d.send("append_message", json!({"message": message, "entryId": id}));
            asked.push((id, request));
        }
        thread::sleep(Duration::from_micros(random.below(60_000) as u64));
        let answered = d.kill_and_hear();
        for (id, request) in asked {
            if answered.contains(&request.to_string()) {
                acknowledged.insert(id);
            }
        }
        let after = fs::read(&path).unwrap();
        assert!(
            after.starts_with(&before),
            "kill {kill}: old bytes are a prefix of the new ones"
        );
        (whole, torn) = whole_lines(&after);
        let lost: Vec<_> = acknowledged.difference(&whole).collect();
        assert!(
            lost.is_empty(),
            "kill {kill}: acknowledged and gone: {lost:?}"
        );
        before = after;
        if before.len() > LARGE {
            begin();
            before = fs::read(&path).unwrap();
            (whole, torn) = whole_lines(&before);
            acknowledged = BTreeSet::from(["s1".to_owned(), "u1".to_owned()]);
        }
    }
    println!("crash: {kills} kills, {torn_lines} openings with a torn line");
}

/// Cuts the last line after each byte, as a kill could.
#[test]
fn a_tail_torn_at_any_byte_is_isolated() {
    let whole = Log::new("s1").user("u1", "", "é").text();
    let line = entry_line(2, "message", "u2", "u1", json!({"message": user("ü")}));
    let home = Home::new();
    let mut d = Daemon::quiet_in(&home);
    d.ignore("diagnostics");
    for cut in 1..=line.len() {
        let mut bytes = whole.clone().into_bytes();
        bytes.extend_from_slice(&line.as_bytes()[..cut]);
        let path = home.file("s.jsonl", &bytes);
        d.open(&path);
        d.user("u3", "after");
        let expected: &[&str] = if cut == line.len() {
            &["u1", "u2", "u3"]
        } else {
            &["u1", "u3"]
        };
        assert_eq!(d.ids(), expected, "cut at {cut}");
        assert!(fs::read(&path).unwrap().starts_with(&bytes));
        d.ok("close_session", json!({}));
        let reopened = d.open(&path);
        assert_eq!(d.ids(), expected, "cut at {cut}, reopened");
        let torn = cut < line.len();
        assert_eq!(
            reopened["diagnostics"].as_array().unwrap().len(),
            usize::from(torn),
            "{reopened}"
        );
        d.ok("close_session", json!({}));
    }
}

impl Daemon {
    /// Kills the daemon and returns the ids (JSON text) of the requests that succeeded.
    pub(crate) fn kill_and_hear(mut self) -> BTreeSet<String> {
        self.signal(rustix::process::Signal::KILL);
        let answered = self.successes_to_the_end();
        self.kill();
        answered
    }
}

/// An append that failed half-way once left bytes without a line end. The next entry was appended to these bytes, and
/// was lost with them.
#[test]
fn an_append_after_half_a_line_begins_a_new_line() {
    let text = format!(
        "{}{}",
        Log::new("s1").user("u1", "", "x").text(),
        r#"{"type":"message","id":"half","parentId":"u1","#
    );
    let (mut d, path) = Daemon::opened(text.as_bytes());
    d.assistant("a1", "y");
    let home = d.stop();
    let mut d = Daemon::quiet_in(&home);
    d.open(&path);
    assert_eq!(d.path_ids(None), ["u1", "a1"]);
}
