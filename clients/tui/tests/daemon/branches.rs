//! Names and archive of branches, with the real daemon.

use crate::operations::{forked, list, operate};
use crate::{Answer, Effect, Fixture, Folds, PagePosition, TreeQuery};
use treelined_tui::message::{Event, Filter, TreePage};
use treelined_tui::model::picker::PickerKind;
use treelined_tui::operation::Operation;

async fn tree(fixture: &mut Fixture, archived: bool, place: PagePosition) -> TreePage {
    fixture.daemon.run(Effect::GetTree(TreeQuery {
        generation: 1,
        filter: Filter::Default,
        query: String::new(),
        folds: Folds {
            open_all: true,
            ..Folds::default()
        },
        archived,
        guide_columns: 13,
        place,
        limit: 200,
        reload: true,
        others: None,
    }));
    let page = |message| match message {
        Answer::Tree { result, .. } => Some(result),
        _ => None,
    };
    *fixture.wait(page).await.unwrap()
}

fn ids(page: &TreePage) -> Vec<&str> {
    page.rows.iter().map(|row| &*row.id).collect()
}

/// The terminal had no keys for it, and did not hear of what others archive.
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
    assert_eq!(said, "The branch has no name of its own. It was “a shell”.");
}
