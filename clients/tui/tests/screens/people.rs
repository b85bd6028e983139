//! Questions and messages of other clients to the user.

use crate::harness::{Screen, left};
use crate::tree::tour;
use treelined_tui::message::{Daemon, Effect, End, Event, Failure, Level};
use treelined_tui::model::input::Input;
use treelined_tui::model::question::{AnswerField, Question, UserAnswer};

fn question(title: &str, field: AnswerField) -> Question {
    Question {
        event_id: title.to_owned(),
        by: "guard".into(),
        title: title.into(),
        message: String::new(),
        placeholder: String::new(),
        field,
        appeared: None,
    }
}

fn ask(screen: &mut Screen, question: Question) {
    screen.daemon(Daemon::Event(Event::Asked(Box::new(question))));
}

/// Shows the tree to a user who has not pressed a key for long.
fn quiet() -> Screen {
    let mut screen = Screen::tree(80, 24, tour());
    screen.tick(60_000);
    screen
}

/// Lets the user read the question.
fn read(screen: &mut Screen) {
    screen.tick(70_000);
}

fn answers(screen: &Screen) -> Vec<UserAnswer> {
    let answers = screen.asked.iter().filter_map(|effect| match effect {
        Effect::AnswerUser { answer, .. } => Some(answer.clone()),
        _ => None,
    });
    answers.collect()
}

#[test]
fn a_yes_or_no_is_answered_by_letter_or_by_choice() {
    for (keys, answer) in [
        ("y", UserAnswer::Choice(true)),
        ("n", UserAnswer::Choice(false)),
        ("down enter", UserAnswer::Choice(false)),
        ("esc", UserAnswer::Dismissed),
    ] {
        let mut screen = quiet();
        let mut leave = question("Leave the branch?", AnswerField::yes_or_no(None));
        leave.message = "Its tests fail:\nbuild::works".into();
        ask(&mut screen, leave);
        if keys == "y" {
            screen.check("question-confirm");
        }
        read(&mut screen);
        screen.keys(keys);
        assert_eq!(answers(&screen), [answer], "{keys}");
        assert!(screen.model.dialog.is_none());
    }
}

/// The answer is the option in the form that the asker wrote, not in the form that is drawn.
#[test]
fn one_of_many_options_is_selected() {
    let mut screen = quiet();
    let mut options: Vec<String> = (1..=20).map(|at| format!("Branch {at}")).collect();
    options[9] = "Branch \u{1b}10".into();
    let field = AnswerField::options(options, Some("Branch 9"));
    ask(&mut screen, question("Where to go?", field));
    screen.check("question-select");
    read(&mut screen);
    screen.keys("j enter");
    assert_eq!(
        answers(&screen),
        [UserAnswer::Text("Branch \u{1b}10".into())]
    );
}

#[test]
fn a_line_and_a_longer_text_are_edited() {
    let mut screen = quiet();
    let mut name = question("Name?", AnswerField::Line(Input::line("")));
    name.placeholder = "a word".into();
    ask(&mut screen, name);
    screen.check("question-input");
    read(&mut screen);
    screen.typed("qy Q").keys("enter");
    assert_eq!(answers(&screen), [UserAnswer::Text("qy Q".into())]);

    let mut screen = quiet();
    let field = AnswerField::Text(Input::lines("first\nsecond"));
    ask(&mut screen, question("The message", field));
    read(&mut screen);
    screen.keys("up end").typed(" line").keys("alt+enter");
    screen.check("question-editor");
    screen.keys("enter");
    let text = "first line\n\nsecond";
    assert_eq!(answers(&screen), [UserAnswer::Text(text.into())]);
}

/// Keys that the user types for something else must never answer.
#[test]
fn a_question_that_arrives_while_the_user_types_waits() {
    let mut screen = quiet();
    screen.keys("I").typed("Try it");
    ask(
        &mut screen,
        question("Leave?", AnswerField::yes_or_no(None)),
    );
    ask(
        &mut screen,
        question("Really?", AnswerField::yes_or_no(None)),
    );
    screen.tick(90_000);
    screen.typed(" again, y");
    assert!(screen.model.dialog.is_none());
    screen.check("question-waits");
    screen.keys("ctrl+q y");
    assert_eq!(answers(&screen), [UserAnswer::Choice(true)]);
    let editor = screen.model.editor.as_ref().unwrap();
    assert_eq!(editor.input.text(), "Try it again, y");
    assert!(screen.text().contains("guard asks: Really? (ctrl+q"));
    screen.keys("ctrl+q esc");
    assert_eq!(answers(&screen).len(), 2);

    // After a key in the tree, the question waits too.
    screen.keys("esc j");
    ask(
        &mut screen,
        question("Leave?", AnswerField::yes_or_no(None)),
    );
    assert!(screen.model.dialog.is_none());
}

/// A key pressed as the question appears was meant for the tree.
#[test]
fn a_question_gives_the_focus_back_to_a_key_that_comes_too_soon() {
    let mut screen = quiet();
    screen.keys("home");
    screen.tick(80_000);
    ask(
        &mut screen,
        question("Leave?", AnswerField::yes_or_no(None)),
    );
    screen.tick(80_300);
    screen.keys("down y");
    assert_eq!(screen.model.tree.cursor, 1);
    assert!(answers(&screen).is_empty());
    assert!(screen.text().contains("guard asks: Leave?") || screen.model.notice.is_some());
    screen.keys("ctrl+q n");
    assert_eq!(answers(&screen), [UserAnswer::Choice(false)]);
}

/// A guard asks because of the navigation that the user has just begun.
#[test]
fn a_question_during_a_navigation_opens_at_once() {
    let mut screen = quiet();
    screen.keys("home enter");
    let Some(Effect::Prepare { target, .. }) = screen.asked.pop() else {
        panic!()
    };
    screen.daemon(Daemon::Prepared {
        target,
        result: Ok(Some(left(3))),
    });
    screen.keys("1");
    ask(
        &mut screen,
        question("Leave?", AnswerField::yes_or_no(None)),
    );
    assert!(screen.text().contains("guard asks"));
    screen.keys("y");
    assert!(answers(&screen).is_empty(), "nobody has read it yet");
    screen.tick(62_000);
    screen.keys("y");
    assert_eq!(answers(&screen), [UserAnswer::Choice(true)]);
}

#[test]
fn a_question_answered_elsewhere_closes() {
    let mut screen = quiet();
    ask(
        &mut screen,
        question("Leave?", AnswerField::yes_or_no(None)),
    );
    ask(
        &mut screen,
        question("Really?", AnswerField::yes_or_no(None)),
    );
    for (id, how) in [("Really?", "by a"), ("Leave?", "by b")] {
        screen.daemon(Daemon::Event(Event::Resolved {
            event_id: id.into(),
            how: how.into(),
        }));
        assert!(screen.text().contains(how), "{}", screen.text());
    }
    assert!(screen.model.dialog.is_none() && screen.model.waiting.is_empty());
    // A question that was not for this client.
    screen.keys("up");
    screen.daemon(Daemon::Event(Event::Resolved {
        event_id: "another".into(),
        how: "by c".into(),
    }));
    assert!(!screen.text().contains("by c"));
}

#[test]
fn questions_end_with_the_daemon_and_drafts_do_not() {
    let mut screen = quiet();
    screen.keys("I").typed("kept");
    ask(
        &mut screen,
        question("Leave?", AnswerField::yes_or_no(None)),
    );
    screen.keys("ctrl+q");
    ask(
        &mut screen,
        question("Really?", AnswerField::yes_or_no(None)),
    );
    screen.daemon(Daemon::Lost(End::default()));
    assert!(screen.text().contains("The daemon has ended"));
    screen.keys("R");
    screen.connect();
    assert!(screen.model.dialog.is_none() && screen.model.waiting.is_empty());
    assert_eq!(screen.model.editor.as_ref().unwrap().input.text(), "kept");
}

#[test]
fn an_answer_that_comes_too_late_is_reported() {
    let mut screen = quiet();
    screen.daemon(Daemon::Answered(Err(Failure {
        kind: "eventNotPending".into(),
        message: "over".into(),
    })));
    assert!(screen.text().contains("The question was over already."));
}

/// Once a message that came while the user typed disappeared at the next key.
#[test]
fn a_message_has_the_style_of_its_level_and_stays_for_a_while() {
    for (level, name) in [
        (Level::Info, "notified-info"),
        (Level::Warning, "notified-warning"),
        (Level::Error, "notified-error"),
    ] {
        let mut screen = Screen::tree(60, 10, tour());
        screen.tick(60_000);
        screen.daemon(Daemon::Event(Event::Notified {
            level,
            text: "watcher: The build is green.".into(),
        }));
        let styled = screen.styled();
        let last = styled.lines().last().unwrap().to_owned();
        screen.keys("up");
        assert!(screen.text().contains("watcher: The build"));
        screen.tick(64_000);
        screen.keys("up");
        assert!(!screen.text().contains("watcher"));
        let style = match level {
            Level::Info => "watcher",
            Level::Warning => "{221}watcher",
            Level::Error => "{217}watcher",
        };
        assert!(last.starts_with(style), "{name}: {last}");
    }
}

/// A guard explained why it allowed the move. The message "Moved." once replaced the explanation at once.
#[test]
fn a_new_message_of_another_client_is_not_replaced_by_one_of_the_program() {
    let mut screen = quiet();
    screen.daemon(Daemon::Event(Event::Notified {
        level: Level::Warning,
        text: "guard: Mind the tests.".into(),
    }));
    let undone = || Daemon::Moved {
        undo: true,
        result: Ok(()),
    };
    screen.daemon(undone());
    assert!(screen.text().contains("guard: Mind the tests."));
    screen.tick(64_000);
    screen.daemon(undone());
    assert!(screen.text().contains("Undone."));
}

#[test]
fn the_selected_choice_is_visible_on_a_low_screen() {
    let mut screen = Screen::tree(40, 10, tour());
    screen.tick(60_000);
    let options = (1..=20).map(|at| format!("Branch {at}.")).collect();
    let mut where_to = question("Where to go?", AnswerField::options(options, None));
    where_to.message = "One line.\nAnother line.\nA third.".into();
    ask(&mut screen, where_to);
    read(&mut screen);
    for at in 1..=20 {
        let text = screen.text();
        let is_selected =
            |line: &str| line.contains('›') && line.contains(&format!("Branch {at}."));
        assert!(text.lines().any(is_selected), "{text}");
        assert!(
            text.contains("Where to go?") || text.contains('…'),
            "{text}"
        );
        assert!(text.contains("enter answers"), "{text}");
        screen.keys("down");
    }
    screen.check("question-tiny");
}
