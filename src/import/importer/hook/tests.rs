//! The inputs of hooks, and the files that a hook may name.

use super::event::{HookEvent, MAX_INPUT};
use super::place::{begins_with, files};
use super::requests::{MAX_WAITING, Request, Requests};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tempfile::TempDir;
use treelined_core::agent::Tool;
use treelined_core::error::Kind;
use treelined_core::tags::GitPlace;

fn read(text: &str) -> Option<(Option<String>, Option<String>, bool)> {
    let event = HookEvent::read(text.as_bytes()).ok()?;
    Some((event.transcript, event.session, event.has_ended))
}

#[test]
fn the_events_of_each_tool_are_read() {
    let some = |text: &str| Some(text.to_owned());
    for (text, transcript, session, has_ended) in [
        (
            r#"{"session_id":"s","transcript_path":"/t.jsonl","cwd":"/w","hook_event_name":"Stop","stop_hook_active":false}"#,
            some("/t.jsonl"),
            some("s"),
            true,
        ),
        (
            r#"{"session_id":"s","transcript_path":"/t.jsonl","hook_event_name":"PostToolUse"}"#,
            some("/t.jsonl"),
            some("s"),
            false,
        ),
        (
            r#"{"type":"agent-turn-complete","thread-id":"t","turn-id":"1","cwd":"/w","input-messages":["a"]}"#,
            None,
            some("t"),
            true,
        ),
        (
            r#"{"type":"session.idle","properties":{"sessionID":"ses_1"}}"#,
            None,
            some("ses_1"),
            true,
        ),
        (
            r#"{"session_id":"s","transcript_path":null}"#,
            None,
            some("s"),
            false,
        ),
        // Once a `null` in one member hid the names in the other members.
        (
            r#"{"session_id":null,"thread-id":"t","hook_event_name":null,"type":"agent-turn-complete"}"#,
            None,
            some("t"),
            true,
        ),
    ] {
        assert_eq!(read(text), Some((transcript, session, has_ended)), "{text}");
    }
}

/// Once the hook did not end if a file became a pipe after its folder was listed.
#[test]
fn a_pipe_in_place_of_a_rollout_is_not_waited_for() {
    let machine = Machine::new();
    let fifo = machine.home.join("rollout-x.jsonl");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, mode).unwrap();
    assert!(!begins_with(&fifo, "id"));
    let file = machine.file("rollout-y.jsonl", "{\"id\":1}");
    assert!(begins_with(&file, "id"));
}

#[test]
fn what_is_not_an_event_is_refused() {
    let deep = "[".repeat(100_000);
    for text in [
        "",
        "no",
        "[]",
        "{}",
        "\0",
        r#"{"transcript_path":7}"#,
        r#"{"session_id":{"a":1}}"#,
        r#"{"session_id":"s","hook_event_name":[]}"#,
        r#"{"session_id":"s""#,
        &deep,
    ] {
        assert_eq!(read(text), None, "{text:.20}");
    }
    assert!(HookEvent::read(&vec![b' '; MAX_INPUT + 1]).is_err());
    assert!(HookEvent::read(b"{\"session_id\":\"\xff\"}").is_err());
}

struct Machine {
    _root: TempDir,
    home: PathBuf,
}

impl Machine {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(root.path()).unwrap();
        Self { _root: root, home }
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.home.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn files(
        &self,
        tool: Tool,
        transcript: Option<&Path>,
        session: Option<&str>,
    ) -> Option<Vec<PathBuf>> {
        let event = HookEvent {
            transcript: transcript.map(|path| path.to_str().unwrap().to_owned()),
            session: session.map(str::to_owned),
            folder: None,
            has_ended: true,
        };
        let home = self.home.clone();
        let environment = move |name: &str| (name == "HOME").then(|| OsString::from(&home));
        files(tool, &event, &environment).ok()
    }
}

/// Once a hook could name any file of the user, and the import copied it into the session directory.
#[test]
fn a_hook_names_only_files_of_its_tool() {
    let machine = Machine::new();
    let session = machine.file(".claude/projects/p/s.jsonl", "{}\n");
    let elsewhere = machine.file("secret.jsonl", "{}\n");
    let beside = machine.file(".claude/history.jsonl", "{}\n");
    let other = machine.file(".claude/projects/p/notes.txt", "x");
    let claude = |path: &Path| machine.files(Tool::ClaudeCode, Some(path), None);
    assert_eq!(claude(&session), Some(vec![session.clone()]));
    assert_eq!(
        claude(Path::new("~/.claude/projects/p/s.jsonl")),
        Some(vec![session.clone()])
    );
    for refused in [
        &elsewhere,
        &beside,
        &other,
        &machine.home.join(".claude/projects/p"),
    ] {
        assert_eq!(claude(refused), None, "{refused:?}");
    }
    for refused in [
        "",
        "s.jsonl",
        ".claude/projects/p/s.jsonl",
        "/dev/zero",
        "/",
    ] {
        assert_eq!(claude(Path::new(refused)), None, "{refused}");
    }
    assert_eq!(
        claude(&machine.home.join(".claude/projects/../../secret.jsonl")),
        None
    );
    assert_eq!(
        claude(&machine.home.join(".claude/projects/p/none.jsonl")),
        None
    );
    assert_eq!(
        machine.files(Tool::Codex, Some(&session), None),
        None,
        "of another tool"
    );
    assert_eq!(
        machine.files(Tool::ClaudeCode, None, Some("s")),
        None,
        "an id alone"
    );

    // The links lead to a file in the folder, to a file elsewhere, and to a folder.
    let link = |name: &str, to: &Path| {
        let at = machine.home.join(".claude/projects/p").join(name);
        symlink(to, &at).unwrap();
        at
    };
    assert_eq!(claude(&link("a.jsonl", &session)), None);
    assert_eq!(claude(&link("b.jsonl", &elsewhere)), None);
    machine.file("outside/x.jsonl", "{}\n");
    let folder = link("folder", &machine.home.join("outside"));
    assert_eq!(claude(&folder.join("x.jsonl")), None);
    let fifo = machine.home.join(".claude/projects/p/fifo.jsonl");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, mode).unwrap();
    assert_eq!(claude(&fifo), None);
}

#[test]
fn a_thread_of_codex_is_found_by_the_time_in_its_id() {
    let machine = Machine::new();
    // This is 2026-03-01T23:30:00Z. In a time zone two hours ahead of UTC, it is the next day.
    let id = "019cabc5-9740-7000-8000-000000000001";
    let at = uuid::Uuid::try_parse(id)
        .unwrap()
        .get_timestamp()
        .unwrap()
        .to_unix()
        .0;
    let day = |at: u64| super::place::day(i64::try_from(at * 1000).unwrap());
    let named = |day: PathBuf| format!(".codex/sessions/{}/rollout-2026-{id}.jsonl", day.display());
    let none = machine.files(Tool::Codex, None, Some(id));
    assert_eq!(none, None);
    let rollout = machine.file(&named(day(at + 86_400)), "{}\n");
    machine.file(
        &format!(
            ".codex/sessions/{}/rollout-x-other.jsonl",
            day(at).display()
        ),
        "{}\n",
    );
    let child = format!(r#"{{"type":"session_meta","payload":{{"parent_thread_id":"{id}"}}}}"#);
    let child = machine.file(
        &format!(
            ".codex/sessions/{}/rollout-x-child.jsonl",
            day(at).display()
        ),
        &child,
    );
    let found = machine.files(Tool::Codex, None, Some(id));
    assert_eq!(found, Some(vec![rollout, child]));
    for wrong in ["", "../../x", "00000000-0000-4000-8000-000000000000"] {
        assert_eq!(
            machine.files(Tool::Codex, None, Some(wrong)),
            None,
            "{wrong}"
        );
    }
}

#[test]
fn a_database_is_imported_whatever_its_session_is_called() {
    let machine = Machine::new();
    assert_eq!(machine.files(Tool::Opencode, None, Some("ses_1")), None);
    let database = machine.file(".local/share/opencode/opencode.db", "");
    let found = machine.files(Tool::Opencode, None, Some("ses_1"));
    assert_eq!(found, Some(vec![database]));
}

#[test]
fn requests_are_kept_in_order_and_damaged_ones_are_named() {
    let machine = Machine::new();
    assert!(Requests::existing(&machine.home).is_none());
    let requests = Requests::of(&machine.home).unwrap();
    let place = GitPlace {
        branch: Some("main".to_owned()),
        commit: Some("0123456789abcdef0123456789abcdef01234567".to_owned()),
        worktree: Some("/w".to_owned()),
    };
    let wanted = |name: &str| Request {
        tool: Tool::Codex,
        paths: vec![machine.home.join(name)],
        git: (name == "a").then(|| ("n".to_owned(), place.clone())),
        has_ended: name == "a",
    };
    for name in ["a", "b"] {
        requests.add(&wanted(name)).unwrap();
    }
    machine.file(".imports/requests/zzz.json", "{\"tool\":\"codex\"");
    let waiting = requests.waiting().unwrap();
    let read: Vec<_> = waiting.iter().map(|(_, request)| request.clone()).collect();
    assert_eq!(read, [Some(wanted("a")), Some(wanted("b")), None]);
    let held = requests.lock(Instant::now()).unwrap();
    assert!(held.is_some());
    assert!(requests.lock(Instant::now()).unwrap().is_none());
    for (name, _) in waiting {
        requests.remove(&name).unwrap();
    }
    assert!(requests.waiting().unwrap().is_empty());
}

/// Once the file with the lock and the files of killed processes counted as requests. When there were enough such
/// files, each hook was refused, and no import removed the files.
#[test]
fn only_requests_fill_the_folder() {
    let machine = Machine::new();
    let requests = Requests::of(&machine.home).unwrap();
    let request = Request {
        tool: Tool::Codex,
        paths: vec![machine.home.join("a")],
        git: None,
        has_ended: true,
    };
    drop(requests.lock(Instant::now()).unwrap());
    for number in 0..MAX_WAITING {
        machine.file(
            &format!(".imports/requests/.x.{number:016x}.treelined.tmp"),
            "",
        );
    }
    for number in 1..MAX_WAITING {
        machine.file(&format!(".imports/requests/{number}.json"), "{}");
    }
    requests.add(&request).unwrap();
    let full = requests.add(&request).unwrap_err();
    assert_eq!(full.kind, Kind::ImportBusy);
    let names = fs::read_dir(machine.home.join(".imports/requests")).unwrap();
    assert_eq!(names.count(), MAX_WAITING + 1, "with the lock");
}
