//! Tests of a session some of whose branches are in the cold file.

use super::super::shed::{ColdMove, MovedBranches};
use super::shed::shed;
use super::{HEADER, append, entries, run, session};
use crate::cancel::Cancel;
use crate::clock::SystemSource;
use crate::log::cold::SUFFIX;
use crate::log::header::Header;
use crate::log::readable::ReadableLines;
use crate::log::shed::StayReason;
use crate::log::unshed::{WholeLog, restore};
use crate::log::whole::SessionLines;
use crate::log::{Log, OpenedLog};
use crate::os::file::Location;
use crate::session::{Session, SessionGuard, SessionState};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use treelined_core::durability::Durability;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::flow;
use treelined_core::tree::Tree;

/// Three roots: the branches b0 and d0 with an entry below each, and z0, which is the leaf.
async fn with_two_shed(path: &Path) -> Arc<Session> {
    let open = session(path);
    for (id, parent) in [
        ("b0", None),
        ("b1", Some("b0")),
        ("d0", None),
        ("d1", Some("d0")),
        ("z0", None),
    ] {
        let entry = json!({"type": "custom", "id": id, "parentId": parent, "timestamp": "2025-01-01T00:00:00.000Z",
            "customType": "c"});
        append(path, &format!("{entry}\n"));
    }
    open.guard(Instant::now(), ())
        .unwrap()
        .refreshed()
        .await
        .unwrap();
    shed(&open, "b0").await;
    shed(&open, "d0").await;
    open
}

fn read(path: &Path) -> OpenedLog {
    Log::open(Location::of_path(path).unwrap()).unwrap()
}

fn guard(session: &Arc<Session>) -> SessionGuard {
    session.guard(Instant::now(), ()).unwrap()
}

/// The ids of the conversation that are in a tree.
fn ids(tree: &Tree) -> Vec<&'static str> {
    let all = ["a0", "b0", "b1", "d0", "d1", "z0"];
    all.into_iter()
        .filter(|id| tree.find(id).is_some())
        .collect()
}

const ALL: [&str; 6] = ["a0", "b0", "b1", "d0", "d1", "z0"];

#[test]
fn branches_come_back_one_by_one_unless_a_check_refuses() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let cold = folder.path().join(format!("s.jsonl{SUFFIX}"));
    run(async {
        let open = with_two_shed(&path).await;
        assert_eq!(ids(&guard(&open).tree), ["a0", "z0"]);
        let unshed = async |ids: &[&str], check| {
            let named = ids.iter().map(|id| (*id).to_owned()).collect();
            let moved =
                guard(&open).move_cold(ColdMove::Unshed(check), named, Arc::new(SystemSource));
            let (_, _, moved) = moved.await.unwrap();
            moved.map(|(moved, outcome)| (moved.moved.len(), outcome.wrote))
        };
        let unknown = unshed(&["x"], None).await.unwrap_err();
        assert_eq!(unknown.kind, Kind::EntryNotFound);
        let refuse = |with: &SessionState| -> Result<()> {
            assert_eq!(ids(&with.tree), ALL);
            Err(Error::new(Kind::Cancelled, "no"))
        };
        let refused = unshed(&[], Some(Box::new(refuse) as _)).await.unwrap_err();
        assert_eq!(refused.kind, Kind::Cancelled);
        assert_eq!(ids(&guard(&open).tree), ["a0", "z0"], "nothing has moved");
        // The id of an entry inside a branch also selects the branch.
        assert_eq!(unshed(&["b1"], None).await.unwrap(), (1, true));
        assert_eq!(ids(&guard(&open).tree), ["a0", "b0", "b1", "z0"]);
        assert_eq!(guard(&open).shed_branches().unwrap().len(), 1);
        assert!(cold.exists());
        assert_eq!(
            unshed(&[], Some(Box::new(|_: &SessionState| Ok(())) as _))
                .await
                .unwrap(),
            (1, true)
        );
        assert_eq!(ids(&guard(&open).tree), ALL);
        assert!(!cold.exists());
        assert_eq!(unshed(&[], None).await.unwrap(), (0, false));
    });
    assert_eq!(ids(&read(&path).tree), ALL);
}

/// Moves branches; all that can move if none is named.
async fn moved(open: &Arc<Session>, direction: ColdMove, ids: &[&str]) -> Result<MovedBranches> {
    let named = ids.iter().map(|id| (*id).to_owned()).collect();
    let moved = guard(open).move_cold(direction, named, Arc::new(SystemSource));
    let (_, _, moved) = moved.await?;
    moved.map(|(moved, _)| moved)
}

#[test]
fn a_branch_whose_id_was_taken_meanwhile_stays_in_the_cold_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    run(async {
        let open = with_two_shed(&path).await;
        append(&path, &entries("b", 1).replace("b0", "b1"));
        let before = std::fs::read(&path).unwrap();
        let taken = moved(&open, ColdMove::Unshed(None), &["b0"]).await;
        assert_eq!(taken.unwrap_err().kind, Kind::DuplicateEntryId);
        assert_eq!(std::fs::read(&path).unwrap(), before);
        let other = moved(&open, ColdMove::Unshed(None), &["d0"]).await;
        assert_eq!(other.unwrap().moved.len(), 1);
        assert_eq!(ids(&guard(&open).tree), ["a0", "b1", "d0", "d1", "z0"]);
    });
}

#[test]
fn a_branch_with_a_second_line_of_an_entry_stays_in_the_session_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    run(async {
        let open = session(&path);
        let below = |id: &str, text: &str| {
            let root = entries(id, 1);
            root.replace(r#""parentId":null"#, r#""parentId":"b0""#)
                .replace("\"c\"", text)
        };
        let branch = entries("b", 1) + &below("c", "\"c\"") + &below("c", "\"other\"");
        append(&path, &(branch + &entries("z", 1)));
        let archive = |state: &SessionState| {
            let head = state.find("b0")?;
            flow::branch::plan_archive(&state.tree, &SystemSource, head, &[])
        };
        let (_, _, archived) = guard(&open).commit(&Cancel::new(), archive).await;
        archived.unwrap();
        let before = std::fs::read(&path).unwrap();
        let MovedBranches { moved, staying } = moved(&open, ColdMove::Shed, &[]).await.unwrap();
        assert!(moved.is_empty());
        assert_eq!(staying[0].reason, StayReason::Damaged);
        assert_eq!(std::fs::read(&path).unwrap(), before);
    });
}

/// The branches of a session are moved back while another process reads them.
#[test]
fn a_reader_of_shed_branches_opens_a_replaced_session_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let cold = folder.path().join(format!("s.jsonl{SUFFIX}"));
    run(async {
        drop(with_two_shed(&path).await);
    });
    let kept = std::fs::read(&cold).unwrap();
    std::fs::remove_file(&cold).unwrap();
    let missing = WholeLog::of_unlocked(|| Ok(read(&path)));
    assert!(missing.is_err(), "the session was not replaced");
    std::fs::write(&cold, kept).unwrap();
    let openings = std::cell::Cell::new(0);
    let whole = WholeLog::of_unlocked(|| {
        let opened = read(&path);
        openings.set(openings.get() + 1);
        restore(&Location::of_path(&path).unwrap())?;
        Ok(opened)
    });
    assert_eq!(ids(&whole.unwrap().tree), ALL);
    assert_eq!(openings.get(), 2);
}

#[test]
fn a_shed_entry_is_not_found_and_the_error_names_its_branch() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    run(async {
        let open = with_two_shed(&path).await;
        let guard = guard(&open);
        for (id, branch) in [("d1", Some("d0")), ("b0", Some("b0")), ("x", None)] {
            let error = guard.explained(Error::entry_not_found(id));
            assert_eq!(error.kind, Kind::EntryNotFound);
            let named = error.details.unwrap().get("shedBranchId").cloned();
            assert_eq!(named, branch.map(|id| json!(id)), "{id}");
        }
        let other = guard.explained(Error::cancelled());
        assert_eq!(other.kind, Kind::Cancelled);
        let named = vec!["a0".to_owned()];
        let moved = guard
            .move_cold(ColdMove::Shed, named, Arc::new(SystemSource))
            .await;
        let error = moved.unwrap().2.unwrap_err();
        assert_eq!(
            error.kind,
            Kind::InvalidParams,
            "it is in no archived branch"
        );
    });
    let memory = Log::ephemeral(Header::new("m", 0, "/", None));
    let opened = OpenedLog {
        log: memory,
        tree: Tree::new(),
        diagnostics: Vec::new(),
    };
    run(async {
        let memory = Session::new(opened, false, Durability::Os);
        for direction in [ColdMove::Shed, ColdMove::Unshed(None)] {
            let moved = guard(&memory).move_cold(direction, Vec::new(), Arc::new(SystemSource));
            assert!(moved.await.unwrap().2.is_err(), "it has no cold file");
        }
    });
}

#[test]
fn a_session_is_read_and_copied_with_its_shed_branches() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    run(async {
        drop(with_two_shed(&path).await);
    });
    let opened = read(&path);
    let whole = WholeLog::of(&opened).unwrap().unwrap();
    assert_eq!(ids(&whole.opened.tree), ALL);
    assert_eq!(whole.branch_of("d1"), Some("d0"));
    assert_eq!(whole.branch_of("z0"), None);
    let unlocked = WholeLog::of_unlocked(|| Ok(read(&path))).unwrap();
    assert_eq!(ids(&unlocked.tree), ALL);

    let readable = ReadableLines::prepare(&opened.log, &opened.tree).unwrap();
    let mut text = String::new();
    let mut take = |line: &[u8]| {
        text += &format!("{}\n", str::from_utf8(line).unwrap());
        Ok(())
    };
    readable.each(&Cancel::new(), &mut take).unwrap();
    assert!(text.len() as u64 <= readable.size());
    let cancelled = Cancel::new();
    cancelled.cancel();
    let refused = readable.each(&cancelled, &mut |_| Ok(())).unwrap_err();
    assert_eq!(refused.kind, Kind::Cancelled);
    std::fs::write(folder.path().join("r.jsonl"), &text).unwrap();
    assert_eq!(ids(&read(&folder.path().join("r.jsonl")).tree), ALL);

    let lines = SessionLines::prepare(&opened.log, &opened.tree, Vec::new()).unwrap();
    assert!(!lines.is_empty());
    let to = Location::of_path(&folder.path().join("copy.jsonl")).unwrap();
    let copy = lines.to_file(to.clone(), HEADER.as_bytes()).unwrap();
    assert_eq!(ids(&copy.tree), ["a0", "z0"]);
    drop(copy);
    restore(&to).unwrap();
    assert_eq!(ids(&Log::open(to.clone()).unwrap().tree), ALL);
    restore(&to).expect("nothing is shed any more");
    assert!(WholeLog::of(&Log::open(to).unwrap()).unwrap().is_none());
}

#[test]
fn lines_of_each_version_are_copied_under_another_header() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let header = |version: u64| json!({"type": "session", "version": version, "id": "s", "timestamp": "2025-01-01T00:00:00.000Z", "cwd": "/"});
    let said = json!({"type": "message", "id": "a0", "parentId": null, "timestamp": "2025-01-01T00:00:00.000Z",
        "message": {"role": "user", "content": "x"}});
    for (version, ending) in [(1, "\n"), (2, "\n"), (3, "\r\n"), (3, "\n \n")] {
        std::fs::write(&path, format!("{}{ending}{said}\n", header(version))).unwrap();
        let opened = read(&path);
        let lines = SessionLines::prepare(&opened.log, &opened.tree, Vec::new()).unwrap();
        let to = Location::of_path(&folder.path().join("copy.jsonl")).unwrap();
        let copy = lines.to_file(to, HEADER.as_bytes()).unwrap();
        assert_eq!(
            (copy.tree.node_count(), copy.log.version()),
            (1, 3),
            "{version} {ending:?}"
        );
        assert!(copy.diagnostics.is_empty());
    }
    std::fs::write(&path, format!("{}\n{said}\n", header(4))).unwrap();
    let newer = read(&path);
    let refused = SessionLines::prepare(&newer.log, &newer.tree, Vec::new());
    assert_eq!(
        refused.err().map(|error| error.kind),
        Some(Kind::VersionUnsupported)
    );

    let (mut memory, mut tree) = (Log::ephemeral(Header::new("m", 0, "/", None)), Tree::new());
    let empty = SessionLines::prepare(&memory, &tree, Vec::new()).unwrap();
    assert!(empty.is_empty());
    memory
        .fill(&mut tree, vec![said.to_string().into_bytes()])
        .unwrap();
    let added = said.to_string().replace("a0", "z0").into_bytes();
    let lines = SessionLines::prepare(&memory, &tree, vec![added]).unwrap();
    assert!(!lines.is_empty());
    let copy = lines.into_memory(Header::new("n", 0, "/", None)).unwrap();
    assert_eq!(ids(&copy.tree), ["a0", "z0"]);
    assert_eq!(copy.tree.leaf(), copy.tree.find("z0"));
}
