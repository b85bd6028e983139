//! The requests that the program sends to the real daemon, and the results.
#![cfg(test)]

mod branches;
mod choice;
mod operations;
#[path = "../program/mod.rs"]
mod program;
mod search;
mod shared;
mod sorting;

use program::daemon;
use std::collections::HashMap;
use std::fmt::Write;
use std::os::unix::fs::DirBuilderExt;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use treelined_client::Client;
use treelined_tui::daemon::Daemon;
use treelined_tui::message::Comparison;
use treelined_tui::message::{
    Daemon as Answer, Effect, Filter, Folds, Message, PagePosition, Target, TreeQuery,
};

/// Maximum wait for a condition; generous, for machines under load.
const PATIENCE: Duration = Duration::from_secs(60);

/// An entry of a file: the number of its parent and its text. An assistant also reads the file `f<number>`.
struct Entry {
    parent: Option<usize>,
    is_user: bool,
}

/// An open session, and a log of the requests sent to the daemon.
struct Fixture {
    folder: tempfile::TempDir,
    daemon: Daemon,
    messages: UnboundedReceiver<Message>,
}

impl Fixture {
    async fn open(entries: &[Entry]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sessions = folder.path().join("sessions");
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&sessions)
            .unwrap();
        let mut text = r#"{"type":"session","version":3,"id":"s","timestamp":"2026-11-21T19:00:00.000Z","cwd":"/p"}"#.to_owned();
        for (at, entry) in entries.iter().enumerate() {
            let parent = match entry.parent {
                Some(parent) => format!("\"e{parent}\""),
                None => "null".into(),
            };
            let message = if entry.is_user {
                format!(r#"{{"role":"user","content":"says {at}"}}"#)
            } else {
                format!(
                    r#"{{"role":"assistant","content":[{{"type":"toolCall","id":"t","name":"read","arguments":{{"path":"f{at}"}}}}]}}"#
                )
            };
            write!(text, "\n{{\"type\":\"message\",\"id\":\"e{at}\",\"parentId\":{parent},\"timestamp\":\"2026-11-21T19:00:00.000Z\",\"message\":{message}}}").unwrap();
        }
        let file = folder.path().join("s.jsonl");
        std::fs::write(&file, text + "\n").unwrap();
        let script = format!("tee {}/asked | exec \"$0\" \"$@\"", folder.path().display());
        let builder = Client::builder().program("sh").arg("-c").arg(script);
        let builder = builder.arg(daemon()).env("TREELINED_SESSION_DIR", sessions);
        let (sender, messages) = unbounded_channel();
        let daemon = Daemon::new(builder, "/p".into(), sender);
        let mut fixture = Self {
            folder,
            daemon,
            messages,
        };
        fixture.daemon.run(Effect::Connect);
        fixture
            .wait(|messages| matches!(messages, Answer::Connected(_)).then_some(()))
            .await;
        let target = Target::Path(file.to_string_lossy().into_owned());
        fixture.daemon.run(Effect::OpenSession(target));
        fixture
            .wait(|messages| matches!(messages, Answer::Opened(Ok(_))).then_some(()))
            .await;
        fixture
    }

    async fn wait<T>(&mut self, wanted: impl Fn(Answer) -> Option<T>) -> T {
        let found = async {
            loop {
                let Message::Daemon(messages) = self.messages.recv().await.unwrap() else {
                    continue;
                };
                if let Answer::Lost(_) | Answer::Opened(Err(_)) = messages {
                    panic!("{messages:?}");
                }
                if let Some(found) = wanted(messages) {
                    return found;
                }
            }
        };
        tokio::time::timeout(PATIENCE, found)
            .await
            .expect("an answer")
    }

    async fn compare(&mut self, left: usize, right: usize) -> Comparison {
        self.daemon.run(Effect::Compare {
            id: 1,
            left: format!("e{left}"),
            right: format!("e{right}"),
        });
        let compared = |messages| match messages {
            Answer::Compared { result, .. } => Some(result),
            _ => None,
        };
        *self.wait(compared).await.unwrap()
    }

    /// Returns the number of requests so far.
    fn asked(&self) -> usize {
        let text = std::fs::read_to_string(self.folder.path().join("asked")).unwrap();
        text.lines().count()
    }
}

fn chain(from: Option<usize>, begin: usize, count: usize) -> impl Iterator<Item = Entry> {
    (0..count).map(move |at| Entry {
        parent: at.checked_sub(1).map(|before| begin + before).or(from),
        is_user: at % 2 == 0,
    })
}

/// Once each entry had its own request, and 100,000 entries took over 40 s.
#[tokio::test]
async fn long_branches_are_compared_with_few_requests() {
    let mut entries: Vec<Entry> = chain(None, 0, 20_000).collect();
    entries.extend(chain(Some(9), 20_000, 30));
    let mut fixture = Fixture::open(&entries).await;
    let before = fixture.asked();
    let compared = fixture.compare(19_999, 20_029).await;
    assert!(
        fixture.asked() - before < 60,
        "{} requests",
        fixture.asked() - before
    );
    assert!(compared.ancestor.unwrap().ends_with("f9)"));
    assert_eq!(
        (compared.left.messages(), compared.right.messages()),
        (9995, 15)
    );
    // The memory needed does not grow with the session.
    let gap = compared.left.gap.unwrap();
    assert_eq!((gap.after, gap.messages), (500, 8995));
    let texts: Vec<&str> = compared
        .left
        .messages
        .iter()
        .map(|messages| messages.text.as_str())
        .collect();
    assert_eq!(
        (texts.len(), texts[0], texts[499]),
        (1000, "says 10", "says 1008")
    );
    assert_eq!((texts[500], texts[999]), ("says 19000", "says 19998"));
    assert_eq!(compared.left.read.len(), 9995);
    assert_eq!(compared.right.gap, None);
}

#[tokio::test]
async fn a_comparison_reports_progress_and_can_be_stopped() {
    let entries: Vec<Entry> = chain(None, 0, 20_000).collect();
    let mut fixture = Fixture::open(&entries).await;
    fixture.daemon.run(Effect::Compare {
        id: 7,
        left: "e0".into(),
        right: "e19999".into(),
    });
    let told = |messages| match messages {
        Answer::Comparing { id, read, most } => Some((id, read, most)),
        _ => None,
    };
    let (id, read, most) = fixture.wait(told).await;
    assert_eq!((id, most), (7, 20_001));
    assert!(read > 0 && read < 20_000, "{read}");
    fixture.daemon.run(Effect::StopComparing);
    // The next comparison gets an answer, but the stopped comparison never does.
    let compared = fixture.compare(0, 1).await;
    assert_eq!(compared.ancestor.as_deref(), Some("says 0"));
    assert_eq!(compared.right.read, ["f1"]);
}

/// In these trees, entries of different branches alternate in the file. The expected result comes from a walk along the
/// parents.
#[tokio::test]
async fn comparisons_of_random_trees_match_a_walk_along_the_parents() {
    let mut seed = 1_u64;
    let mut random = move |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % below
    };
    let entries: Vec<Entry> = (0..1500)
        .map(|at| Entry {
            // A few roots and many branches, some of them long.
            parent: match random(100) {
                0 => None,
                1..=10 => Some(at),
                _ => Some(random(4)),
            }
            .map(|back| at.saturating_sub(1 + back % at.max(1)))
            .filter(|_| at > 0),
            is_user: random(2) == 0,
        })
        .collect();
    let path = |tip: usize| -> Vec<usize> {
        let mut path: Vec<usize> =
            std::iter::successors(Some(tip), |at| entries[*at].parent).collect();
        path.reverse();
        path
    };
    let mut fixture = Fixture::open(&entries).await;
    for _ in 0..40 {
        let (left, right) = (random(entries.len()), random(entries.len()));
        let (one, other) = (path(left), path(right));
        let common = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
        let compared = fixture.compare(left, right).await;
        for (path, side) in [(one, compared.left), (other, compared.right)] {
            let since = &path[common..];
            let users = since.iter().filter(|at| entries[**at].is_user);
            let messages: Vec<String> = users.map(|at| format!("says {at}")).collect();
            let found: Vec<&str> = side
                .messages
                .iter()
                .map(|messages| &*messages.text)
                .collect();
            assert_eq!(found, messages, "{left} and {right}");
            let reads = since.iter().filter(|at| !entries[**at].is_user).count();
            assert_eq!(side.read.len(), reads, "{left} and {right}");
        }
        assert_eq!(compared.ancestor.is_some(), common > 0);
    }
}

/// If the filter hides the leaf of other programs, the tree once did not show this leaf at all.
#[tokio::test]
async fn the_leaf_of_others_is_shown_at_the_nearest_visible_row() {
    let mut entries: Vec<Entry> = chain(None, 0, 4).collect();
    // e4 is an answer that contains only tool calls.
    entries.push(Entry {
        parent: Some(2),
        is_user: false,
    });
    entries.extend(chain(Some(3), 5, 1));
    let mut fixture = Fixture::open(&entries).await;
    let mut found = HashMap::new();
    for filter in [Filter::Default, Filter::All] {
        fixture.daemon.run(Effect::GetTree(TreeQuery {
            generation: 1,
            filter,
            query: String::new(),
            folds: Folds::default(),
            archived: false,
            sessions: false,
            guide_columns: 13,
            place: PagePosition::Leaf,
            limit: 200,
            reload: true,
            others: Some("e4".into()),
        }));
        let page = |messages| match messages {
            Answer::Tree { result, .. } => Some(result),
            _ => None,
        };
        found.insert(filter.name(), fixture.wait(page).await.unwrap().others);
    }
    assert_eq!(found["default"].as_deref(), Some("e2"));
    assert_eq!(found["all"].as_deref(), Some("e4"));
}
