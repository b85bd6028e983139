//! Tests of shed branches in sessions whose files are replaced.

use super::super::shed::ColdMove;
use super::{append, entries, run, session};
use crate::cancel::Cancel;
use crate::clock::SystemSource;
use crate::log::Log;
use crate::log::repair::repair;
use crate::log::unshed::restore;
use crate::os::file::Location;
use crate::session::{Session, SessionState};
use std::sync::Arc;
use std::time::Instant;
use treelined_core::durability::Durability;
use treelined_core::flow::{self, PlannedLines};

/// Archives the branch that begins with an entry, and moves it into the cold file.
pub(super) async fn shed(session: &Session, head: &str) {
    let head = head.to_owned();
    let plan = move |state: &SessionState| {
        let head = state.find(&head)?;
        flow::branch::plan_archive(&state.tree, &SystemSource, head, &[])
    };
    let guard = session.guard(Instant::now(), ()).unwrap();
    let (guard, _, archived) = guard.commit(&Cancel::new(), plan).await;
    archived.unwrap();
    let source = Arc::new(SystemSource);
    let moved = guard.unwrap().move_cold(ColdMove::Shed, Vec::new(), source);
    assert_eq!(moved.await.unwrap().2.unwrap().0.moved.len(), 1);
}

/// Once, another process replaced a file and then shed a branch of its last lines before a daemon had read these lines.
/// The daemon treated them as late lines and copied them again. So the branch could never come back.
#[test]
fn lines_that_were_shed_meanwhile_are_not_late_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let at = Location::of_path(&path).unwrap();
    let slow = session(&path);
    append(&path, &(entries("b", 1) + &entries("c", 1)));
    let copy = folder.path().join("copy");
    std::fs::copy(&path, &copy).unwrap();
    std::fs::rename(&copy, &path).unwrap();
    let quick = Session::new(Log::open(at.clone()).unwrap(), false, Durability::Os);
    run(async {
        shed(&quick, "b0").await;
        let guard = slow.guard(Instant::now(), ()).unwrap();
        let nothing = |_: &SessionState| Ok(PlannedLines::default());
        guard.commit(&Cancel::new(), nothing).await.2.unwrap();
    });
    assert!(
        !std::fs::read_to_string(&path)
            .unwrap()
            .contains("\"id\":\"b0\"")
    );
    drop((slow, quick));
    restore(&at).unwrap();
    assert!(Log::open(at).unwrap().tree.find("b0").is_some());
}

/// A repair removes damaged lines from the session file. The offsets in the cold file were once wrong after a repair: a
/// branch came back after later entries, and the file then opened at an entry of this branch.
#[test]
fn a_branch_comes_back_to_its_place_after_a_repair() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let at = Location::of_path(&path).unwrap();
    let open = session(&path);
    append(
        &path,
        &("{\"type\":\"mess\n".to_owned() + &entries("b", 1) + &entries("c", 1)),
    );
    run(shed(&open, "b0"));
    drop(open);
    repair(&at, false).unwrap();
    restore(&at).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let place = |id: &str| text.find(&format!("\"id\":\"{id}\"")).unwrap();
    assert!(
        place("a0") < place("b0") && place("b0") < place("c0"),
        "{text}"
    );
}
