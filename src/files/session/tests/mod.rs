//! Tests which work runs on the calling thread, and which on a blocking thread.

mod cold;
mod copies;
mod originals;
mod shed;

use super::commit::CommitOutcome;
use super::*;
use crate::cancel::Cancel;
use crate::clock::SystemSource;
use crate::lock::lock;
use crate::log::header::Header;
use crate::log::upstream::{FileLine, LineInStream, PublishOutcome, Publishing, Upstream};
use crate::os::file::{File, Location};
use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};
use treelined_core::durability::Durability;
use treelined_core::flow::append::{NewEntry, NewParent};
use treelined_core::flow::{self, PlannedLines};
use treelined_core::tree::Tree;

const HEADER: &str =
    r#"{"type":"session","version":3,"id":"s","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/"}"#;

/// Lines of about `bytes` bytes.
fn entries(name: &str, bytes: u64) -> String {
    let mut text = String::new();
    for number in 0.. {
        if text.len() as u64 >= bytes {
            break;
        }
        text += &format!(
            r#"{{"type":"custom","id":"{name}{number}","parentId":null,"timestamp":"2025-01-01T00:00:00.000Z","customType":"c"}}"#
        );
        text.push('\n');
    }
    text
}

fn append(path: &Path, text: &str) {
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

fn session(path: &Path) -> Arc<Session> {
    std::fs::write(path, format!("{HEADER}\n{}", entries("a", 1))).unwrap();
    let opened = Log::open(Location::of_path(path).unwrap()).unwrap();
    Session::new(opened, false, Durability::Os)
}

/// The result if the work ends at its first poll; `None` if it continues on another thread. [`run`] has only one
/// blocking thread. This thread is kept busy until the poll, since it could otherwise end the work earlier.
fn polled<T>(work: &mut Pin<Box<impl Future<Output = T>>>) -> Option<T> {
    let (_release, held) = std::sync::mpsc::channel::<()>();
    tokio::task::spawn_blocking(move || held.recv());
    match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}

fn run(test: impl Future<Output = ()>) {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.max_blocking_threads(1);
    builder.build().unwrap().block_on(test);
}

/// Up to a megabyte of entries of others was once read on the reader thread. This took many milliseconds if the entries
/// were leaf records, duplicates or damaged.
#[test]
fn large_appends_of_others_are_read_on_another_thread() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let session = session(&path);
    run(async {
        let guard = session.guard(Instant::now(), ()).unwrap();
        append(&path, &entries("little", INLINE_BYTES / 2));
        let mut little = Box::pin(guard.refreshed());
        let (guard, changes) = polled(&mut little).expect("read at once").unwrap();
        assert!(changes.others.len() > 100);
        append(&path, &entries("much", 2 * INLINE_BYTES));
        let mut much = Box::pin(guard.refreshed());
        assert!(polled(&mut much).is_none(), "read on the reader thread");
        let (_, changes) = much.await.unwrap();
        assert!(changes.others.len() > 500);
    });
}

/// A writer without the lock can append between the refresh and the write of this process. Its lines are read on a
/// blocking thread, however many they are.
#[test]
fn a_large_append_between_refresh_and_write_is_read_on_another_thread() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let session = session(&path);
    let ours = |id: &str| {
        let line = entries(id, 1);
        PlannedLines {
            lines: vec![line.trim_end().as_bytes().to_vec()],
            entry_ids: vec![EntryId::new(format!("{id}0"))],
            ..PlannedLines::default()
        }
    };
    run(async {
        for (name, bytes, is_at_once) in [
            ("little", INLINE_BYTES / 2, true),
            ("much", 2 * INLINE_BYTES, false),
        ] {
            let guard = session.guard(Instant::now(), ()).unwrap();
            let (path, mut planned) = (path.clone(), ours(&format!("our{name}")));
            let plan = move |_: &SessionState| {
                append(&path, &entries(name, bytes));
                Ok(std::mem::take(&mut planned))
            };
            let cancel = Cancel::new();
            let mut commit = Box::pin(guard.commit(&cancel, plan));
            let at_once = polled(&mut commit);
            assert_eq!(at_once.is_some(), is_at_once, "{name}");
            let (guard, changes, committed) = match at_once {
                Some(done) => done,
                None => commit.await,
            };
            assert!(committed.unwrap().wrote);
            assert_eq!((changes.own.len(), changes.others.len() > 100), (1, true));
            let leaf = format!("our{name}0");
            assert_eq!(guard.unwrap().leaf_id(), Some(leaf.as_str()));
        }
    });
}

/// Each request once read an incomplete long line again from its beginning.
#[test]
fn a_line_in_flight_is_not_read_again_before_it_has_grown() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let session = session(&path);
    let line = entries("late", 1).replace(r#""c""#, &format!("{:?}", "x".repeat(9000)));
    run(async {
        let mut guard = session.guard(Instant::now(), ()).unwrap();
        for piece in line.as_bytes().chunks(1000) {
            assert!(guard.find("late0").is_err());
            append(&path, std::str::from_utf8(piece).unwrap());
            assert!(matches!(guard.log.standing().unwrap(), Standing::Grown(_)));
            (guard, _) = guard.refreshed().await.unwrap();
            assert_eq!(guard.log.standing().unwrap(), Standing::Unchanged);
        }
        assert!(guard.find("late0").is_ok());
        // If another program replaces a fragment with whole lines, longer or shorter, the lines are read.
        for (name, fragment) in [("longer", "{"), ("shorter", &"{".repeat(5000))] {
            let size = std::fs::metadata(&path).unwrap().len();
            append(&path, fragment);
            (guard, _) = guard.refreshed().await.unwrap();
            assert_eq!(guard.log.standing().unwrap(), Standing::Unchanged);
            OpenOptions::new()
                .write(true)
                .open(&path)
                .unwrap()
                .set_len(size)
                .unwrap();
            append(&path, &entries(name, 1));
            (guard, _) = guard.refreshed().await.unwrap();
            assert!(guard.find(&format!("{name}0")).is_ok(), "{name}");
        }
        // After a fragment, an append of this process begins on a new line.
        append(&path, "{\"type\":");
        (guard, _) = guard.refreshed().await.unwrap();
        let mut planned = PlannedLines {
            lines: vec![entries("ours", 1).trim_end().as_bytes().to_vec()],
            entry_ids: vec![EntryId::new("ours0")],
            ..PlannedLines::default()
        };
        let cancel = Cancel::new();
        let (guard, _, committed) = guard
            .commit(&cancel, move |_: &SessionState| {
                Ok(std::mem::take(&mut planned))
            })
            .await;
        assert!(committed.unwrap().wrote);
        let guard = guard.unwrap();
        assert_eq!(guard.leaf_id(), Some("ours0"));
        assert_eq!(guard.log.standing().unwrap(), Standing::Unchanged);
    });
}

/// A stream that gives the answers of its script, and records what it gets.
#[derive(Clone, Default)]
struct ScriptedLog(Arc<Mutex<Script>>);

#[derive(Default)]
struct Script {
    /// The answers to the next publishes. When there are none left, each publish succeeds.
    answers: VecDeque<Result<PublishOutcome>>,
    published: Vec<String>,
    /// A path and a text; the next settle writes the text to the file at the path.
    news: Option<(std::path::PathBuf, String)>,
    is_settled: bool,
    is_away: bool,
    queues: bool,
    /// Whether a publish needs no thread that waits.
    is_ready: bool,
    /// Whether the last publish had to end at a given time.
    is_hurried: bool,
}

/// A stream with a connection at the beginning of an append, and a stream without a connection.
fn logs() -> [ScriptedLog; 2] {
    let ready = ScriptedLog::default();
    lock(&ready.0).is_ready = true;
    [ScriptedLog::default(), ready]
}

impl Upstream for ScriptedLog {
    fn is_settled(&self, _: &File) -> bool {
        lock(&self.0).is_settled
    }
    fn waits(&self) -> bool {
        !lock(&self.0).is_settled
    }
    fn settle(&self, _: &File, _: Option<Instant>) -> Result<()> {
        let mut script = lock(&self.0);
        if script.is_away {
            return Err(Error::new(Kind::LogUnavailable, "away"));
        }
        if let Some((path, news)) = script.news.take() {
            append(&path, &news);
        }
        script.is_settled = true;
        Ok(())
    }
    fn publish(&self, lines: &[u8], until: Option<Instant>) -> Result<PublishOutcome> {
        let mut script = lock(&self.0);
        script.is_hurried = until.is_some();
        let answer = script.answers.pop_front();
        let answer = answer.unwrap_or(Ok(PublishOutcome::Published))?;
        match answer {
            PublishOutcome::Published => {
                let text = String::from_utf8(lines.to_vec()).unwrap();
                script.published.push(text);
            }
            PublishOutcome::Conflict => script.is_settled = false,
        }
        Ok(answer)
    }
    fn begin_publish(self: Arc<Self>, lines: &[u8], until: Option<Instant>) -> Option<Publishing> {
        let lines = lines.to_vec();
        let is_ready = lock(&self.0).is_ready;
        is_ready.then(|| -> Publishing {
            Box::pin(async move {
                tokio::task::yield_now().await;
                self.publish(&lines, until)
            })
        })
    }
    fn written(&self, _: &File) {}
    fn look_up(&self, _: &FileLine) -> Result<LineInStream> {
        Err(Error::new(Kind::LogUnavailable, "away"))
    }
    fn queues(&self) -> bool {
        lock(&self.0).queues
    }
}

fn replica(path: &Path, log: &ScriptedLog) -> Arc<Session> {
    drop(session(path));
    let opened = Log::open(Location::of_path(path).unwrap()).unwrap();
    Session::replicated(opened, false, Arc::new(log.clone()), None)
}

/// Appends one entry, if the leaf is the expected one.
async fn append_one(
    session: &Arc<Session>,
    id: &str,
    expected: ExpectedLeaf,
) -> Result<CommitOutcome> {
    let guard = session.guard(Instant::now(), ()).unwrap();
    let id = EntryId::new(id);
    let plan = move |state: &SessionState| {
        state.check_expected_leaf(&expected)?;
        let line = format!(
            r#"{{"type":"model_change","id":"{}","parentId":"a0","timestamp":"2025-01-01T00:00:00.000Z","provider":"p","modelId":"m"}}"#,
            id.as_str()
        );
        Ok(PlannedLines {
            lines: vec![line.into_bytes()],
            entry_ids: vec![id.clone()],
            ..PlannedLines::default()
        })
    };
    guard.commit(&Cancel::new(), plan).await.2
}

const NEWS: &str = r#"{"type":"model_change","id":"news","parentId":"a0","timestamp":"2025-01-01T00:00:00.000Z","provider":"p","modelId":"m"}"#;

#[test]
fn a_conflict_with_the_log_plans_again_with_the_entries_of_others() {
    for log in logs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let session = replica(&path, &log);
        run(async {
            lock(&log.0).answers.push_back(Ok(PublishOutcome::Conflict));
            lock(&log.0).is_settled = true;
            lock(&log.0).news = Some((path.clone(), format!("{NEWS}\n")));
            let done = append_one(&session, "mine", ExpectedLeaf::Any).await;
            assert!(!done.unwrap().is_queued);
            let text = std::fs::read_to_string(&path).unwrap();
            let (news, mine) = (text.find("\"news\""), text.find("\"mine\""));
            assert!(news.is_some() && news < mine, "{text}");
            // An append that expects the earlier leaf fails.
            lock(&log.0).answers.push_back(Ok(PublishOutcome::Conflict));
            let more = NEWS.replace("news", "more").replace("a0", "mine");
            lock(&log.0).news = Some((path.clone(), format!("{more}\n")));
            let expected = ExpectedLeaf::At(EntryId::new("mine"));
            let failed = append_one(&session, "late", expected).await.unwrap_err();
            assert_eq!(failed.kind, Kind::LeafMoved);
            assert!(!std::fs::read_to_string(&path).unwrap().contains("late"));
        });
    }
}

/// Another machine has taken the id. Planning again would not help.
#[test]
fn a_new_session_whose_id_the_log_has_exists_already() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.jsonl");
    let header = crate::log::header::Header::new("new", 0, "/c", None);
    let opened = OpenedLog {
        log: Log::create(Location::of_path(&path).unwrap(), header),
        tree: treelined_core::tree::Tree::new(),
        diagnostics: Vec::new(),
    };
    let log = ScriptedLog::default();
    let session = Session::replicated(opened, false, Arc::new(log.clone()), None);
    run(async {
        lock(&log.0).answers.push_back(Ok(PublishOutcome::Conflict));
        let failed = append_one(&session, "mine", ExpectedLeaf::Any).await;
        assert_eq!(failed.unwrap_err().kind, Kind::SessionExists);
        assert!(!path.exists());
    });
}

#[test]
fn an_append_without_end_of_conflicts_fails_and_writes_nothing() {
    for log in logs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let session = replica(&path, &log);
        run(async {
            let conflicts = std::iter::repeat_with(|| Ok(PublishOutcome::Conflict));
            lock(&log.0).answers.extend(conflicts.take(100));
            let failed = append_one(&session, "mine", ExpectedLeaf::Any).await;
            assert_eq!(failed.unwrap_err().kind, Kind::LogConflict);
            assert!(!std::fs::read_to_string(&path).unwrap().contains("mine"));
        });
    }
}

#[test]
fn an_append_whose_outcome_is_unknown_names_its_entries_and_is_not_in_the_file() {
    for log in logs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let session = replica(&path, &log);
        run(async {
            let unknown = Error::new(Kind::DurabilityUnknown, "no answer");
            lock(&log.0).answers.push_back(Err(unknown));
            let failed = append_one(&session, "mine", ExpectedLeaf::Any).await;
            let failed = failed.unwrap_err();
            assert_eq!(failed.kind, Kind::DurabilityUnknown);
            assert_eq!(failed.details, Some(json!({ "entryIds": ["mine"] })));
            assert!(!std::fs::read_to_string(&path).unwrap().contains("mine"));
        });
    }
}

#[test]
fn appends_while_the_log_is_away_wait_in_the_file_only_if_that_is_wanted() {
    for log in logs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let session = replica(&path, &log);
        run(async {
            lock(&log.0).is_away = true;
            let failed = append_one(&session, "refused", ExpectedLeaf::Any).await;
            assert_eq!(failed.unwrap_err().kind, Kind::LogUnavailable);
            lock(&log.0).queues = true;
            let done = append_one(&session, "queued", ExpectedLeaf::Any).await;
            assert!(done.unwrap().is_queued);
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(text.contains("queued") && !text.contains("refused"));
            assert!(lock(&log.0).published.is_empty());
            lock(&log.0).is_away = false;
            let done = append_one(&session, "later", ExpectedLeaf::Any).await;
            assert!(!done.unwrap().is_queued);
            assert_eq!(lock(&log.0).published.len(), 1);
            // An append that can wait in the file does not wait for the servers. Any other append does.
            assert!(lock(&log.0).is_hurried);
            lock(&log.0).queues = false;
            append_one(&session, "patient", ExpectedLeaf::Any)
                .await
                .unwrap();
            assert!(!lock(&log.0).is_hurried);
        });
    }
}

/// The first append makes both the stream and the file. If its answer was lost, every later append was once refused, as
/// if another session had the id.
#[test]
fn a_first_append_whose_outcome_is_unknown_is_published_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let log = ScriptedLog::default();
    let opened = OpenedLog {
        log: Log::create(
            Location::of_path(&path).unwrap(),
            Header::new("s", 0, "/", None),
        ),
        tree: Tree::new(),
        diagnostics: Vec::new(),
    };
    let session = Session::replicated(opened, false, Arc::new(log.clone()), None);
    run(async {
        for _ in 0..2 {
            let unknown = Error::new(Kind::DurabilityUnknown, "no answer");
            lock(&log.0).answers.push_back(Err(unknown));
            let failed = append_one(&session, "first", ExpectedLeaf::Any).await;
            assert_eq!(failed.unwrap_err().kind, Kind::DurabilityUnknown);
            assert!(!path.exists());
        }
        append_one(&session, "second", ExpectedLeaf::Any)
            .await
            .unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let (first, second) = (text.find("\"first\""), text.find("\"second\""));
        assert!(first.is_some() && first < second, "{text}");
        assert_eq!(text.matches("\"first\"").count(), 1, "{text}");
        assert_eq!(lock(&log.0).published.concat(), text);
    });
}

/// A program without the lock once wrote between the check of the file and a background write. The record of this write
/// named the line before the line of the program. So the program opened the file at that earlier line the next time,
/// and its newest line looked abandoned.
#[test]
fn a_writer_without_a_lock_is_not_moved_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let session = session(&path);
    run(async {
        let guard = session.guard(Instant::now(), ()).unwrap();
        let leaf = guard.leaf_id().map(str::to_owned);
        let at = path.clone();
        let plan = move |state: &SessionState| {
            append(&at, &entries("other", 1));
            let entry = NewEntry::message(br#"{"role":"user","content":"x"}"#)?;
            let parent = NewParent::Named(leaf.clone());
            let entry = entry.with_parent(parent).in_background(0, None)?;
            let stored = |node| state.entry(node);
            flow::append::plan(&state.tree, &SystemSource, &[entry], &stored)
        };
        let (guard, changes, committed) = guard.commit(&Cancel::new(), plan).await;
        let guard = guard.unwrap();
        assert!(committed.unwrap().wrote);
        assert_eq!((changes.own.len(), changes.others.len()), (1, 1));
        assert_eq!(guard.leaf_id(), Some("a0"), "the leaf stays");
        let newest = guard.tree.find("other0");
        assert_eq!(guard.tree.file_leaf(), newest);
        assert_eq!(
            guard.tree.last_line(),
            newest,
            "as the other program has it"
        );
    });
    let opened = Log::open(Location::of_path(&path).unwrap()).unwrap();
    assert_eq!(opened.tree.file_leaf(), opened.tree.find("other0"));
}

/// If a replica is made again, it may have entries of others before the known entries. New entries were once recognized
/// by their positions. So the last known entries were reported again, and the entries of others were never reported.
#[test]
fn a_file_with_another_order_has_as_news_what_was_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let session = session(&path);
    run(async {
        append(&path, &entries("b", 500));
        let mut guard = session.guard(Instant::now(), ()).unwrap();
        let mut changes = Changes::default();
        let standing = guard.log.standing().unwrap();
        guard.catch_up_into(standing, &mut changes).unwrap();
        let known = changes.others.len();
        assert!(known > 2);

        // An entry that is found just before the file is replaced has another position in the new file.
        append(&path, &entries("c", 1));
        let mut changes = Changes::default();
        let standing = guard.log.standing().unwrap();
        assert!(matches!(standing, Standing::Grown(_)));
        guard.catch_up_into(standing, &mut changes).unwrap();
        let own = entries("b", 500) + &entries("c", 1);
        let text = format!("{HEADER}\n{}{}{own}", entries("a", 1), entries("x", 400));
        let new = folder.path().join("new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(&new, &path).unwrap();
        guard
            .catch_up_into(Standing::Replaced, &mut changes)
            .unwrap();
        let mut ids: Vec<&str> = changes
            .others
            .iter()
            .map(|one| guard.tree.id(*one))
            .collect();
        ids.sort_unstable();
        assert_eq!(ids, ["c0", "x0", "x1", "x2", "x3"]);
        assert!(changes.others_moved);
        let reordered = changes.reordered.expect("the order has changed");
        assert_eq!(reordered.since.as_deref(), Some("a0"));

        // The same entries in another file are not new.
        std::fs::copy(&path, &new).unwrap();
        std::fs::rename(&new, &path).unwrap();
        let mut changes = Changes::default();
        guard
            .catch_up_into(Standing::Replaced, &mut changes)
            .unwrap();
        assert!(changes.others.is_empty() && !changes.others_moved);
        assert_eq!(changes.reordered, None);
    });
}

/// While a daemon ends, it looks for the programs that have the old file open. A program may write its last line and
/// close the file meanwhile. Once, no process was started for this line, and the line was lost.
#[test]
fn a_line_that_arrives_during_the_search_for_writers_is_handed_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    std::fs::write(&path, HEADER.replace(":3", ":2") + "\n" + &entries("a", 1)).unwrap();
    let late = OpenOptions::new().append(true).open(&path).unwrap();
    let opened = Log::open(Location::of_path(&path).unwrap()).unwrap();
    let session = Session::new(opened, false, Durability::Os);
    run(async {
        let guard = session.guard(Instant::now(), ()).unwrap();
        let (guard, _, committed) = guard
            .commit(&Cancel::new(), |_| Ok(PlannedLines::default()))
            .await;
        committed.unwrap();
        let guard = guard.unwrap();
        assert_eq!(guard.handovers_beside(|_| Some(Vec::new())).count(), 0);
        let writes = |_| {
            (&late).write_all(entries("last", 1).as_bytes()).unwrap();
            Some(Vec::new())
        };
        assert_eq!(guard.handovers_beside(writes).count(), 1);
    });
}
