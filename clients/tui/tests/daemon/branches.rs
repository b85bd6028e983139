//! Names and archive of branches, with the real daemon.

use crate::operations::{forked, list, operate};
use crate::{Answer, Effect, Entry, Fixture, Folds, PagePosition, Target, TreeQuery};
use treelined_tui::message::{Event, Filter, TreePage};
use treelined_tui::model::picker::PickerKind;
use treelined_tui::operation::Operation;

fn query() -> TreeQuery {
    TreeQuery {
        generation: 1,
        filter: Filter::Default,
        query: String::new(),
        folds: Folds {
            open_all: true,
            ..Folds::default()
        },
        archived: false,
        sessions: false,
        // On a screen of 80 columns (screens: tree::guides_take_a_sixth_of_the_screen).
        guide_columns: 13,
        place: PagePosition::Leaf,
        limit: 200,
        reload: true,
        others: None,
    }
}

async fn tree(fixture: &mut Fixture, archived: bool, place: PagePosition) -> TreePage {
    let query = TreeQuery {
        archived,
        place,
        ..query()
    };
    answer(fixture, query).await
}

async fn answer(fixture: &mut Fixture, query: TreeQuery) -> TreePage {
    fixture.daemon.run(Effect::GetTree(query));
    let page = |message| match message {
        Answer::Tree { result, .. } => Some(result),
        _ => None,
    };
    *fixture.wait(page).await.unwrap()
}

fn ids(page: &TreePage) -> Vec<&str> {
    page.rows.iter().map(|row| &*row.id).collect()
}

/// Once the terminal had no key that archives a branch, and did not show it if another client archived one.
#[tokio::test(flavor = "multi_thread")]
async fn a_branch_is_archived_and_brought_back() {
    let mut fixture = forked().await;
    let entry = || "e2".to_owned();
    let archive = Operation::Archive { entry: entry() };
    fixture.daemon.run(Effect::Operate {
        id: 1,
        operation: archive,
    });
    let moved = |message| matches!(message, Answer::Event(Event::Moved)).then_some(());
    fixture.wait(moved).await;
    // The cursor may be in the branch that is gone.
    let page = tree(&mut fixture, false, PagePosition::Around(entry())).await;
    assert_eq!(ids(&page), ["e0", "e1", "e3"]);
    assert_eq!((page.archived_branches, page.at), (1, Some(0)));
    let page = tree(&mut fixture, true, PagePosition::Leaf).await;
    let away = page.rows.iter().find(|row| row.id == "e2").unwrap();
    assert!(away.is_archived && page.archived_branches == 1);
    for (archived, count) in [(false, 1), (true, 2)] {
        let listed = list(&mut fixture, PickerKind::Branches { archived }).await;
        assert_eq!(listed.len(), count);
        let marked = listed.iter().any(|it| it.note.starts_with("archived"));
        assert_eq!(marked, archived);
    }
    let said = operate(&mut fixture, Operation::Archive { entry: entry() }).await;
    assert_eq!(said.unwrap(), "The branch is archived already.");
    let said = operate(&mut fixture, Operation::Unarchive { entry: entry() }).await;
    assert_eq!(said.unwrap(), "The branch is back.");
    let page = tree(&mut fixture, false, PagePosition::Leaf).await;
    assert_eq!((page.rows.len(), page.archived_branches), (4, 0));
    // The leaf is in the branch.
    let said = operate(&mut fixture, Operation::Archive { entry: "e3".into() }).await;
    assert_eq!(said.unwrap(), "Archived. The leaf has moved out of it.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_is_named_and_its_former_name_is_said() {
    let mut fixture = forked().await;
    let name = |name: &str| Operation::NameBranch {
        entry: "e2".into(),
        name: name.into(),
    };
    let said = operate(&mut fixture, name("the cache")).await.unwrap();
    assert_eq!(said, "The branch is “the cache”.");
    let said = operate(&mut fixture, name("the cache")).await.unwrap();
    assert_eq!(said, "The branch has this name already.");
    let branches = list(&mut fixture, PickerKind::Branches { archived: false }).await;
    assert!(
        branches
            .iter()
            .any(|it| it.id == "e2" && it.text == "the cache")
    );
    let said = operate(&mut fixture, name("a shell")).await.unwrap();
    assert_eq!(said, "The branch is “a shell”. It was “the cache”.");
    let said = operate(&mut fixture, name("")).await.unwrap();
    assert_eq!(said, "The branch has no name. It was “a shell”.");
}

/// 5,000 entries: 27 times a branch is left, and the next branch begins beside it.
fn large_tree() -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut fork = None;
    for round in 0..28 {
        let parts = if round < 27 { 2 } else { 1 };
        let mut above = fork;
        for _ in 0..parts {
            above = fork;
            let length = if round < 27 { 90 } else { 5000 - entries.len() };
            for _ in 0..length {
                entries.push(Entry {
                    parent: above,
                    is_user: true,
                });
                above = Some(entries.len() - 1);
            }
        }
        fork = above;
    }
    entries
}

/// Guides took 40 of 110 columns.
#[tokio::test(flavor = "multi_thread")]
async fn a_tree_of_5000_entries_has_at_most_12_columns_of_guides() {
    let mut fixture = Fixture::open(&large_tree()).await;
    let widest = |page: &TreePage| {
        let width = |row: &treelined_tui::message::Row| row.prefix.chars().count();
        page.rows.iter().map(width).max().unwrap()
    };
    let folded = TreeQuery {
        folds: Folds::default(),
        limit: 5000,
        ..query()
    };
    let page = answer(&mut fixture, folded).await;
    let branches: u64 = page.rows.iter().map(|row| row.branches).sum();
    assert_eq!((widest(&page), branches), (3, 27), "at opening");
    let open = TreeQuery {
        limit: 5000,
        ..query()
    };
    let page = answer(&mut fixture, open).await;
    assert_eq!((page.total, widest(&page)), (5000, 12), "with all open");
}

/// Once the tree did not show which entries were forked, and which branch an open branch is.
#[tokio::test(flavor = "multi_thread")]
async fn rows_say_the_name_of_their_branch_and_the_sessions_that_come_from_them() {
    let mut fixture = forked().await;
    let name = Operation::NameBranch {
        entry: "e2".into(),
        name: "the other way".into(),
    };
    operate(&mut fixture, name).await.unwrap();
    let fork = Operation::Fork { entry: "e2".into() };
    operate(&mut fixture, fork).await.unwrap();
    let file = fixture.folder.path().join("s.jsonl");
    let target = Target::Path(file.to_string_lossy().into_owned());
    fixture.daemon.run(Effect::OpenSession(target));
    let opened = |answer| match answer {
        Answer::Opened(Ok(session)) if session.id == "s" => Some(()),
        _ => None,
    };
    fixture.wait(opened).await;
    let without = answer(&mut fixture, query()).await;
    assert!(without.rows.iter().all(|row| row.sessions.is_empty()));
    let asked = TreeQuery {
        sessions: true,
        ..query()
    };
    let page = answer(&mut fixture, asked).await;
    let born: Vec<String> = page.rows.iter().map(|row| row.born()).collect();
    assert!(born.contains(&"1 fork".to_owned()), "{born:?}");
    let named = page.rows.iter().find(|row| row.id == "e2").unwrap();
    assert_eq!(named.branch_name.as_deref(), Some("the other way"));
}
