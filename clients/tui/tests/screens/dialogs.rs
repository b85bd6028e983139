//! Navigation: the choices, summaries, aborts, failures.

use crate::harness::{Screen, left};
use crate::tree::tour;
use treelined_tui::config::Summary;
use treelined_tui::message::{Daemon, Draft, Effect, Event, Failure, Navigation, Prepared, Server};
use treelined_tui::model::Connection;

fn choosing(keys: &str) -> Screen {
    let mut screen = Screen::tree(80, 24, tour());
    screen.keys(keys).keys("enter");
    let target = match screen.asked.pop() {
        Some(Effect::Prepare { target, .. }) => target,
        other => panic!("{other:?}"),
    };
    screen.daemon(Daemon::Prepared {
        target,
        result: Ok(Some(left(3))),
    });
    screen
}

fn navigation_id(screen: &Screen) -> String {
    match screen.asked.last() {
        Some(Effect::Navigate(navigate)) => navigate.navigation_id.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn enter_on_the_leaf_does_not_navigate() {
    let mut screen = Screen::tree(80, 24, tour());
    screen.keys("enter");
    assert!(screen.asked.is_empty());
    assert!(
        screen
            .text()
            .lines()
            .last()
            .unwrap()
            .contains("Already at this position")
    );
}

/// A label is an entry at the leaf, but has no row. So the row of its parent still shows the current position.
#[test]
fn enter_on_the_row_of_the_leaf_does_not_navigate_when_labels_follow() {
    let mut screen = Screen::tree(80, 24, tour());
    screen.keys("home enter");
    screen.daemon(Daemon::Prepared {
        target: "q1".into(),
        result: Ok(None),
    });
    assert!(screen.model.dialog.is_none());
    assert!(screen.text().contains("Already at this position"));
}

/// "Summarize" was once offered although there was no summarizer, and ended with an error.
#[test]
fn without_a_summarizer_no_summary_is_offered() {
    let mut screen = Screen::tree(80, 24, tour());
    let none = Server {
        version: "0.1.0".into(),
        summarizer: None,
    };
    screen.model.settings.summary = Summary::Always;
    screen.model.link = Connection::Up(none);
    // Compactions were offered as well.
    screen.keys("K");
    assert!(screen.model.dialog.is_none(), "{}", screen.text());
    assert!(screen.text().contains("No summarizer is configured."));
    screen.keys("home enter");
    assert!(!screen.text().contains("Summarize"), "{}", screen.text());
    let prepared = |can_summarize| Daemon::Prepared {
        target: "q1".into(),
        result: Ok(Some(Prepared {
            abandoned: 3,
            // So the target, a user message, is left too.
            is_on_path: true,
            can_summarize,
        })),
    };
    // Another client writes summaries.
    screen.daemon(prepared(true));
    assert!(screen.text().contains("2 Summarize"));
    screen.keys("esc enter");
    screen.daemon(prepared(false));
    screen.check("choose-only");
    screen.keys("2");
    assert!(screen.model.dialog.is_some());
    screen.keys("enter");
    assert!(matches!(screen.asked.last(), Some(Effect::Navigate(it)) if !it.summarize));
}

#[test]
fn a_navigation_offers_three_choices() {
    let mut screen = choosing("home");
    screen.check("choose");
    screen.keys("enter");
    let Some(Effect::Navigate(navigate)) = screen.asked.pop() else {
        panic!()
    };
    assert_eq!(
        (navigate.target.as_str(), navigate.summarize, navigate.focus),
        ("q1", false, None)
    );

    let mut screen = choosing("home");
    screen.keys("down enter");
    assert!(
        matches!(screen.asked.last(), Some(Effect::Navigate(it)) if it.summarize && it.focus.is_none())
    );

    let mut screen = choosing("home");
    screen.keys("3").typed("what was tried, jk");
    screen.check("choose-focus");
    screen.keys("esc enter").typed("x").keys("enter");
    assert!(
        matches!(screen.asked.last(), Some(Effect::Navigate(it)) if it.focus.as_deref() == Some("x"))
    );
}

/// A focus of several sentences was once shown on one line, and only the end of the line was visible.
#[test]
fn the_focus_of_a_summary_takes_several_lines() {
    let mut screen = choosing("home");
    screen
        .keys("3")
        .typed("what was tried")
        .keys("alt+enter")
        .typed("and why it failed");
    screen.check("choose-focus-lines");
    screen.keys("enter");
    let Some(Effect::Navigate(navigate)) = screen.asked.pop() else {
        panic!()
    };
    assert_eq!(
        navigate.focus.as_deref(),
        Some("what was tried\nand why it failed")
    );
}

#[test]
fn the_summary_setting_replaces_the_choices() {
    for (summary, summarizes) in [(Summary::Never, false), (Summary::Always, true)] {
        let mut screen = Screen::tree(80, 24, tour());
        screen.model.settings.summary = summary;
        screen.keys("home enter");
        assert!(screen.model.dialog.is_none());
        assert!(
            matches!(screen.asked.last(), Some(Effect::Navigate(it)) if it.summarize == summarizes)
        );
    }
}

/// Rows behind a dialog once touched the border of the dialog, and were as bright as its text.
#[test]
fn text_behind_a_dialog_is_dim_and_does_not_touch_it() {
    let screen = choosing("home");
    for line in screen.text().lines() {
        for border in ['╭', '└'] {
            if let Some((before, _)) = line.split_once(border) {
                assert!(before.is_empty() || before.ends_with(' '), "{line}");
            }
        }
    }
    screen.check_styled("choose-styled");
}

#[test]
fn choices_can_be_clicked() {
    let mut screen = choosing("home");
    let text = screen.text();
    let line = text
        .lines()
        .position(|line| line.contains("2 Summarize"))
        .unwrap();
    screen.click(20, u16::try_from(line).unwrap());
    assert!(matches!(screen.asked.last(), Some(Effect::Navigate(it)) if it.summarize));
}

#[test]
fn a_summary_streams_in_and_esc_aborts() {
    let mut screen = choosing("home down down");
    let before = screen.model.tree.cursor;
    screen.tick(1000);
    screen.keys("2");
    let id = navigation_id(&screen);
    screen.tick(2000);
    screen.check("summarizing-waits");
    for delta in [
        "## Goal\nMake it ",
        "build.\u{1b}[2J\n\n## Done\n- the cache",
    ] {
        screen.daemon(Daemon::Event(Event::Delta {
            navigation_id: id.clone(),
            text: delta.into(),
        }));
    }
    screen.daemon(Daemon::Event(Event::Delta {
        navigation_id: "another".into(),
        text: "no".into(),
    }));
    screen.tick(66_300);
    screen.check("summarizing");
    screen.keys("esc esc");
    let aborts = screen
        .asked
        .iter()
        .filter(|it| matches!(it, Effect::AbortNavigation { .. }))
        .count();
    assert_eq!(aborts, 1);
    let ended = Navigation {
        cancelled: true,
        reason: Some("aborted".into()),
        ..Navigation::default()
    };
    screen.daemon(Daemon::Navigated {
        navigation_id: id,
        result: Ok(ended),
    });
    assert_eq!(screen.model.tree.cursor, before);
    assert!(screen.text().contains("Aborted. Nothing has moved."));
}

/// The message "A hook has failed" once named neither the hook nor its output.
#[test]
fn a_hook_that_fails_is_named_with_what_it_said() {
    let mut screen = choosing("home");
    screen.keys("2");
    let navigation_id = navigation_id(&screen);
    let ended = Navigation {
        cancelled: true,
        reason: Some("hookFailed".into()),
        by: Some("guard".into()),
        message: Some("exit code 3".into()),
        ..Navigation::default()
    };
    screen.daemon(Daemon::Navigated {
        navigation_id,
        result: Ok(ended),
    });
    let text = screen.text();
    let expected = "guard failed, and nothing has moved: exit code 3";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn a_failure_shows_its_kind_and_advice() {
    let mut screen = choosing("home");
    screen.keys("2");
    let navigation_id = navigation_id(&screen);
    let failure = Failure {
        kind: "summarizerUnavailable".into(),
        message: "no summarizer is configured, and no client answers".into(),
    };
    screen.daemon(Daemon::Navigated {
        navigation_id,
        result: Err(failure),
    });
    screen.check("failed");
    // Enter after the `2` once closed the dialog before the user had read it.
    screen.keys("enter down");
    screen.check("failed");
    screen.keys("esc");
    assert!(screen.model.dialog.is_none());
}

/// The advice for a failing summarizer command was once about keys and models, but a command has neither.
#[test]
fn the_advice_fits_the_configured_summarizer() {
    for (summarizer, advice) in [
        ("command", "[summarizer.command]"),
        ("llm", "key, model"),
        ("outline", "or go without a summary."),
    ] {
        let mut screen = choosing("home");
        screen.daemon(Daemon::Connected(Server {
            version: "0.1.0".into(),
            summarizer: Some(summarizer.into()),
        }));
        screen.keys("home enter 2");
        let navigation_id = navigation_id(&screen);
        let failure = Failure {
            kind: "summarizerFailed".into(),
            message: "the summarizer's program failed: it exited with code 3".into(),
        };
        screen.daemon(Daemon::Navigated {
            navigation_id,
            result: Err(failure),
        });
        let text = screen.text();
        assert!(text.contains(advice), "{text}");
        assert_eq!(text.contains("key, model"), summarizer == "llm", "{text}");
        if summarizer == "command" {
            screen.check("failed-command");
        }
    }
}

#[test]
fn the_draft_opens_in_the_editor() {
    let mut screen = choosing("home");
    screen.keys("1");
    let navigation_id = navigation_id(&screen);
    let draft = Draft {
        text: "Why does the build fail?".into(),
        images: vec![serde_json::json!({"type": "image"})],
        expected_leaf: None,
    };
    let ended = Navigation {
        draft: Some(draft),
        new_leaf: None,
        ..Navigation::default()
    };
    screen.daemon(Daemon::Navigated {
        navigation_id,
        result: Ok(ended),
    });
    screen.check("draft");
}
