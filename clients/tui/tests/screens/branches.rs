//! Names and archive of branches: the keys, the dialogs and the messages.

use crate::harness::{Screen, row};
use treelined_tui::message::{BornSession, Row};
use treelined_tui::message::{CommandOutput, Daemon, Effect, Failure, PagePosition, Target};
use treelined_tui::model::picker::{PickerItem, PickerKind};
use treelined_tui::operation::Operation;

/// A conversation with two branches that were left: a row for the branch with one entry, and the archived branch.
fn rows() -> Vec<Row> {
    let on_path = |id: &str, text: &str| Row {
        on_active_path: true,
        ..row(id, "", text)
    };
    vec![
        on_path("q1", "Why does the build fail?"),
        Row {
            branches: 2,
            ..row(
                "q2",
                "├─ ",
                "2 branches · 12 entries · Clear the cache. · Ask Eva.",
            )
        },
        row("q3", "├─ ", "Try another shell."),
        Row {
            is_archived: true,
            branches: 1,
            ..row("q4", "└─ ", "3 entries · the cache")
        },
        Row {
            is_leaf: true,
            ..on_path("q5", "Add the import.")
        },
    ]
}

fn screen() -> Screen {
    let mut screen = Screen::tree(80, 12, rows());
    screen.archived_branches = 3;
    screen.daemon(Daemon::Event(treelined_tui::message::Event::Moved));
    screen
}

/// Returns the operation that was started last.
fn started(screen: &mut Screen) -> (u64, Operation) {
    match screen.asked.pop() {
        Some(Effect::Operate { id, operation }) => (id, operation),
        other => panic!("{other:?}"),
    }
}

fn end(screen: &mut Screen, id: u64, said: &str, has_inverse: bool) {
    screen.daemon(Daemon::CommandEnded {
        id,
        result: Ok(CommandOutput {
            output: Some(said.into()),
            has_inverse,
            ..CommandOutput::default()
        }),
    });
}

#[test]
fn archived_branches_are_counted_and_shown_by_one_key() {
    let mut screen = screen();
    screen.check("branches-archived");
    assert!(screen.text().contains("3 archived branches (. shows)"));
    screen.keys(".");
    assert!(screen.model.tree.archived);
    assert!(screen.text().contains("3 archived branches (. hides)"));
    screen.keys(".");
    assert!(!screen.model.tree.archived);
    let mut without = Screen::tree(80, 12, rows());
    without.keys(".");
    assert!(!without.model.tree.archived);
    let text = without.text();
    assert!(
        text.contains("No branch is archived. D archives one."),
        "{text}"
    );
}

/// A conversation with shed branches once looked as if it had no others.
#[test]
fn shed_branches_are_counted_with_the_way_back() {
    for (count, said) in [
        (0, None),
        (1, Some("1 shed branch (treelined unshed)")),
        (2, Some("2 shed branches (treelined unshed)")),
    ] {
        let mut screen = Screen::tree(100, 12, rows());
        screen.shed_branches = count;
        screen.daemon(Daemon::Event(treelined_tui::message::Event::Moved));
        let text = screen.text();
        assert_eq!(text.contains(" shed "), said.is_some(), "{text}");
        assert!(said.is_none_or(|said| text.contains(said)), "{text}");
    }
}

#[test]
fn a_branch_is_put_away_and_brought_back_by_the_same_key() {
    let mut screen = screen();
    screen.keys("home down down D");
    let (id, operation) = started(&mut screen);
    assert_eq!(operation, Operation::Archive { entry: "q3".into() });
    end(&mut screen, id, "Archived.", true);
    let text = screen.text();
    assert!(
        text.contains("Archived. . shows it, D brings it back."),
        "{text}"
    );
    screen.keys("down d");
    let (id, operation) = started(&mut screen);
    assert_eq!(operation, Operation::Unarchive { entry: "q4".into() });
    end(&mut screen, id, "The branch is back.", true);
    assert!(screen.text().contains("D archives it again."));
    // Nothing was written, so there is nothing to undo.
    screen.keys(": a r c h i v e enter");
    let (id, _) = started(&mut screen);
    end(&mut screen, id, "The branch is archived already.", false);
    assert!(!screen.text().contains("brings it back"));
}

/// Without the question, one key would move the leaf out of the branch.
#[test]
fn the_branch_of_the_leaf_is_put_away_only_after_a_question() {
    let mut screen = screen();
    screen.keys("end D");
    assert_eq!(screen.asked.pop(), None);
    screen.check("branches-archive-asked");
    screen.keys("n");
    assert_eq!(screen.asked.pop(), None);
    screen.keys("D y");
    let (_, operation) = started(&mut screen);
    assert_eq!(operation, Operation::Archive { entry: "q5".into() });
}

#[test]
fn a_row_of_several_branches_is_opened_first() {
    for key in ["D", "f2"] {
        let mut screen = screen();
        screen.keys("home down").keys(key);
        assert_eq!(screen.model.tree.folds.each, ["q2"], "{key}");
        assert!(screen.text().contains("choose one of them"), "{key}");
        assert_eq!(screen.asked.pop(), None, "{key}");
    }
}

#[test]
fn a_branch_is_named_by_a_key_or_a_command() {
    let mut screen = screen();
    screen.keys("home down down f2").typed("the shell");
    screen.check("branches-name");
    screen.keys("enter");
    let named = |name: &str| Operation::NameBranch {
        entry: "q3".into(),
        name: name.into(),
    };
    let (id, operation) = started(&mut screen);
    assert_eq!(operation, named("the shell"));
    end(&mut screen, id, "The branch is “the shell”.", true);
    let text = screen.text();
    assert!(
        text.contains("The branch is “the shell”. f2 names it again."),
        "{text}"
    );
    screen.keys(":").typed("name-branch a shell").keys("enter");
    assert_eq!(started(&mut screen).1, named("a shell"));
}

/// The tree is drawn again around the entry of the cursor.
#[test]
fn the_cursor_stays_when_a_branch_is_gone() {
    let mut screen = screen();
    screen.keys("home down down D");
    let (id, _) = started(&mut screen);
    screen.silent = true;
    end(&mut screen, id, "Archived.", true);
    let query = screen.asked.iter().rev().find_map(|effect| match effect {
        Effect::GetTree(query) => Some(query.clone()),
        _ => None,
    });
    let query = query.unwrap();
    assert_eq!(query.place, PagePosition::Around("q3".into()));
    screen.silent = false;
    screen.rows.remove(2);
    let answer = screen.tree_answer(&query);
    screen.daemon(answer);
    assert!(screen.model.tree.selected().is_some());
    let failure = Failure {
        kind: "leafMoved".into(),
        message: "another program works in the branch".into(),
    };
    screen.keys("end up D");
    let (id, _) = started(&mut screen);
    screen.daemon(Daemon::CommandEnded {
        id,
        result: Err(failure),
    });
    assert!(screen.text().contains("unarchive has failed"));
}

/// Once an open branch did not show its name, and a row did not show that other sessions come from it. Labels once came
/// before names, and only a colour showed a failure.
#[test]
fn a_row_says_the_name_of_its_branch_and_the_sessions_that_come_from_it() {
    let born = |id: &str, kind: &str| BornSession {
        id: id.into(),
        kind: kind.into(),
    };
    let mut rows = rows();
    rows[0].is_error = true;
    rows[2].branch_name = Some("the shell".into());
    rows[2].label = Some("fast".into());
    rows[4].sessions = vec![
        born("s2", "subagent"),
        born("s3", "fork"),
        born("s4", "subagent"),
    ];
    let mut screen = Screen::tree(80, 12, rows);
    let text = screen.text();
    assert!(
        text.contains("user       the shell · [fast] Try another shell."),
        "{text}"
    );
    assert!(
        text.contains("user       ✗ Why does the build fail?"),
        "{text}"
    );
    let said = "user       ↗ 2 subagents, 1 fork · Add the import.";
    assert!(text.contains(said), "{text}");
    // The first page was requested without the sessions of its entries, since the daemon must read its list for them.
    screen.silent = true;
    screen.keys("ctrl+o");
    let asked = screen.asked.pop();
    assert!(matches!(asked, Some(Effect::GetTree(query)) if query.sessions));
}

/// The list of the family begins at the first session, wherever the cursor was.
#[test]
fn the_family_opens_at_the_session_that_comes_from_the_row() {
    let mut rows = rows();
    rows[4].sessions = vec![BornSession {
        id: "s3".into(),
        kind: "subagent".into(),
    }];
    let mut screen = Screen::tree(80, 12, rows);
    screen.keys("Y");
    let item = |id: &str| PickerItem {
        id: id.into(),
        text: id.into(),
        path: format!("/s/{id}.jsonl"),
        ..PickerItem::default()
    };
    screen.daemon(Daemon::Listed {
        kind: PickerKind::Family,
        result: Ok(vec![item("s1"), item("s2"), item("s3")]),
    });
    screen.silent = true;
    screen.keys("enter");
    let opened = Effect::OpenSession(Target::Path("/s/s3.jsonl".into()));
    assert_eq!(screen.asked.pop(), Some(opened));
}
