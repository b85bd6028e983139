//! The keys that dialogs show.

use crate::harness::{Screen, left};
use crate::tree::tour;
use treelined_tui::message::{CommandOutput, Daemon, Effect, End, Failure, Server};
use treelined_tui::model::picker::PickerItem;

/// The smallest supported screen.
const TINY: (u16, u16) = (40, 10);

fn tiny() -> Screen {
    Screen::tree(TINY.0, TINY.1, tour())
}

#[track_caller]
fn shows(screen: &Screen, keys: &[&str]) {
    let text = screen.text();
    for key in keys {
        assert!(text.contains(key), "{key}: {text}");
    }
}

/// Once the last keys were cut off.
#[test]
fn every_dialog_shows_all_of_its_keys_on_the_smallest_screen() {
    for (opening, keys) in [
        ("L", &["enter sets it; empty removes it", "esc cancels"][..]),
        ("K", &["enter compacts", "new line", "esc cancels"]),
        ("x", &["enter exports", "letters filter", "esc closes"]),
        ("?", &["↑↓ more", "esc closes"]),
    ] {
        let mut screen = tiny();
        screen.keys(opening);
        shows(&screen, keys);
    }
    let mut screen = Screen::list(TINY.0, TINY.1, vec![]);
    screen.keys("n");
    shows(
        &screen,
        &["enter creates it; a name is optional", "esc cancels"],
    );
    screen.keys("esc T");
    let Some(Effect::ListItems(kind)) = screen.asked.pop() else {
        panic!("the trash is not listed")
    };
    let item = PickerItem {
        text: "A tour".into(),
        ..PickerItem::default()
    };
    screen.daemon(Daemon::Listed {
        kind,
        result: Ok(vec![item; 20]),
    });
    shows(&screen, &["enter restores", "letters filter", "esc closes"]);
}

#[test]
fn the_choices_of_a_navigation_fit_with_their_keys_on_the_smallest_screen() {
    let mut screen = tiny();
    screen.keys("home enter");
    let Some(Effect::Prepare { target, .. }) = screen.asked.pop() else {
        panic!("nothing is prepared")
    };
    screen.daemon(Daemon::Prepared {
        target,
        result: Ok(Some(left(3))),
    });
    let keys = ["enter goes there", "1 2 3 go now", "esc cancels"];
    shows(&screen, &keys);
    shows(&screen, &["1 No summary", "3 Summarize with a focus"]);
    screen
        .keys("3")
        .typed(&"why it failed, in all detail ".repeat(8));
    shows(
        &screen,
        &["3 Summarize", "enter summarizes", "new line", "esc back"],
    );
}

#[test]
fn failures_and_outputs_show_their_keys_on_the_smallest_screen() {
    let mut screen = tiny();
    screen.keys(": s t a t s enter");
    let Some(Effect::Operate { id, .. }) = screen.asked.pop() else {
        panic!("nothing runs")
    };
    screen.daemon(Daemon::CommandEnded {
        id,
        result: Ok(CommandOutput {
            output: Some("a line\n".repeat(30)),
            ..CommandOutput::default()
        }),
    });
    shows(&screen, &["↑↓ more", "y copies", "esc closes"]);
    let mut screen = tiny();
    screen.daemon(Daemon::Opened(Err(Failure {
        kind: "versionUnsupported".into(),
        message: "the file is of a version that this program does not know ".repeat(6),
    })));
    shows(&screen, &["↑↓ more", "esc closes"]);
    // Once the advice was cut off.
    screen.keys(&"down ".repeat(12));
    shows(&screen, &["treelined migrate", "esc closes"]);
    screen.daemon(Daemon::Connected(Server {
        version: "0.1.0".into(),
        summarizer: None,
    }));
    screen.daemon(Daemon::Lost(End {
        reason: "the daemon has ended (exit status: 1)".into(),
        last_words: vec!["a line of its log that is long enough to be wrapped".into(); 4],
    }));
    shows(&screen, &["starts it again", "quits"]);
}
