//! Tags, marks, families and candidates: the keys and the dialogs.

use crate::harness::{Screen, row, session};
use treelined_tui::message::{Daemon, Effect, Event, SessionRow, Target};
use treelined_tui::model::picker::{PickerItem, PickerKind};
use treelined_tui::operation::Operation;

fn started(screen: &mut Screen) -> Operation {
    match screen.asked.pop() {
        Some(Effect::Operate { operation, .. }) => operation,
        other => panic!("{other:?}"),
    }
}

fn listed(screen: &mut Screen, kind: PickerKind, items: Vec<PickerItem>) {
    assert_eq!(screen.asked.pop(), Some(Effect::ListItems(kind)));
    let result = Ok(items);
    screen.daemon(Daemon::Listed { kind, result });
}

#[test]
fn a_tree_has_keys_for_the_tags_and_the_pin_of_its_session() {
    let mut screen = Screen::tree(80, 12, vec![row("q1", "", "Why?")]);
    let session_id = screen.model.session.as_ref().unwrap().id.clone();
    screen.keys("#").typed("build -ui");
    assert!(screen.text().contains("-word removes"), "{}", screen.text());
    screen.keys("enter");
    let tags = "build -ui".to_owned();
    assert_eq!(
        started(&mut screen),
        Operation::Tag {
            session_id: session_id.clone(),
            tags
        }
    );
    screen.daemon(Daemon::Event(Event::Moved));
    screen.keys("esc !");
    assert_eq!(started(&mut screen), Operation::Pin { session_id });
}

#[test]
fn the_session_from_which_one_comes_is_opened_at_its_entry() {
    let mut screen = Screen::tree(80, 12, vec![row("q1", "", "Why?")]);
    screen.keys("Y");
    let item = |id: &str, text: &str, entry: Option<&str>| PickerItem {
        id: id.into(),
        text: text.into(),
        path: format!("/s/{id}.jsonl"),
        entry: entry.map(Into::into),
        is_active: id == "own",
        ..PickerItem::default()
    };
    let family = vec![
        item("root", "A tour", Some("a1")),
        item("own", "  fork · the fork", None),
    ];
    listed(&mut screen, PickerKind::Family, family);
    assert!(
        screen.text().contains("  fork · the fork"),
        "{}",
        screen.text()
    );
    screen.silent = true;
    screen.keys("enter");
    let opened = Effect::OpenSession(Target::Path("/s/root.jsonl".into()));
    assert_eq!(screen.asked.pop(), Some(opened));
}

#[test]
fn an_answer_is_chosen_with_a_reason() {
    let mut screen = Screen::tree(80, 12, vec![row("q1", "", "Why?")]);
    screen.keys("J");
    let answer = |id: &str| PickerItem {
        id: id.into(),
        text: format!("answer {id}"),
        ..PickerItem::default()
    };
    listed(
        &mut screen,
        PickerKind::Candidates,
        vec![answer("b1"), answer("b2")],
    );
    screen.keys("down enter").typed("it passes").keys("enter");
    let (tip, reason) = ("b2".to_owned(), "it passes".to_owned());
    assert_eq!(started(&mut screen), Operation::Choose { tip, reason });
}

/// Side questions had no keys.
#[test]
fn a_question_is_asked_beside_the_conversation_and_kept() {
    let mut screen = Screen::tree(80, 12, vec![row("q1", "", "Why?")]);
    screen.keys(", enter");
    assert!(
        screen.text().contains("By the way"),
        "a blank one is not asked: {}",
        screen.text()
    );
    screen.typed("is it documented?").keys("enter");
    let question = "is it documented?".to_owned();
    assert_eq!(started(&mut screen), Operation::Aside { question });
    let mut screen = Screen::tree(80, 12, vec![row("q1", "", "Why?")]);
    screen.keys(";");
    let entry = "q1".to_owned();
    assert_eq!(started(&mut screen), Operation::Keep { entry });
}

#[test]
fn the_list_shows_marks_and_has_keys_for_them() {
    let marked = SessionRow {
        marks: vec!["#build".into(), "pinned".into(), "on main".into()],
        ..session("s1", "A tour", None, 60)
    };
    let mut screen = Screen::list(80, 12, vec![marked]);
    let text = screen.text();
    assert!(text.contains("A tour  #build  pinned  on main"), "{text}");
    screen.keys("z");
    let session_id = "s1".to_owned();
    assert_eq!(
        started(&mut screen),
        Operation::ArchiveSession { session_id }
    );
    screen.keys("esc .");
    let archived = screen
        .asked
        .iter()
        .any(|it| matches!(it, Effect::ListSessions(query) if query.archived));
    assert!(archived || screen.model.sessions.archived);
}
