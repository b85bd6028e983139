//! Going on in another agent.

use crate::harness::Screen;
use crate::tree::tour;
use treelined_tui::message::{
    Daemon, Draft, Effect, Failure, HandoffPreview, HandoffRequest, Message, Navigation,
};
use treelined_tui::model::dialog::Dialog;
use treelined_tui::model::picker::{PickerItem, PickerKind};
use treelined_tui::operation::Agent;

/// Chooses the agent at the cursor. Returns the request for a preview of what the agent gets.
fn choose(screen: &mut Screen, tool: &str) -> HandoffRequest {
    screen.keys("H");
    assert_eq!(
        screen.asked.pop(),
        Some(Effect::ListItems(PickerKind::Continue))
    );
    let item = |agent: Agent| PickerItem {
        id: agent.tool.into(),
        text: agent.name.into(),
        note: match agent.program {
            Some("codex") => "installed".into(),
            Some(_) => "not installed".into(),
            None => String::new(),
        },
        ..PickerItem::default()
    };
    screen.daemon(Daemon::Listed {
        kind: PickerKind::Continue,
        result: Ok(Agent::ALL.map(item).into()),
    });
    if tool == "codex" {
        screen.check(&format!("continue-agents-{}", screen.model.size.0));
    }
    screen.typed(Agent::named(tool).unwrap().name).keys("enter");
    asked(screen)
}

#[track_caller]
fn asked(screen: &mut Screen) -> HandoffRequest {
    match screen.asked.pop() {
        Some(Effect::PreviewHandoff(request)) => request,
        other => panic!("{other:?}"),
    }
}

fn known() -> HandoffPreview {
    HandoffPreview {
        messages: 12,
        tokens: 3400,
        losses: vec!["2 thoughts left out".into(), "1 image described".into()],
        missing: vec!["codex".into()],
        text: None,
    }
}

fn previewed(request: HandoffRequest, result: Result<HandoffPreview, Failure>) -> Daemon {
    Daemon::Previewed { request, result }
}

fn command(words: &str) -> Vec<String> {
    words.split(' ').map(str::to_owned).collect()
}

/// `H` was once reserved and did nothing. A user who had gone back in a tree had no agent that could answer.
#[test]
fn another_agent_goes_on_once_what_is_lost_was_shown() {
    for size in [(80, 24), (40, 10), (200, 50)] {
        let mut screen = Screen::tree(size.0, size.1, tour());
        let request = choose(&mut screen, "codex");
        let leaf = screen.leaf.clone().unwrap();
        assert_eq!((&request.entry, request.agent.tool), (&leaf, "codex"));
        // Nothing runs before the losses are shown.
        screen.keys("enter");
        assert_eq!(screen.asked, []);
        screen.daemon(previewed(request, Ok(known())));
        screen.check(&format!("continue-{}", size.0));
        screen.keys("l enter");
        let agent = Agent::named("codex").unwrap();
        let argv = command(&format!(
            "treelined continue --in codex --learned -- tour {leaf}"
        ));
        assert_eq!(screen.asked.pop(), Some(Effect::Run { agent, argv }));
        let result = Ok(());
        screen.send(Message::Ran { agent, result });
        assert!(screen.text().contains("Back from Codex. :import codex"));
    }
}

#[test]
fn the_command_is_copied_and_a_text_is_copied_or_shown() {
    let mut screen = Screen::tree(80, 24, tour());
    let request = choose(&mut screen, "goose");
    let leaf = request.entry.clone();
    screen.daemon(previewed(request, Ok(known())));
    screen.keys("y");
    let copied = format!("treelined continue --in goose -- tour {leaf}");
    assert_eq!(screen.asked.pop(), Some(Effect::Copy(copied)));
    screen.keys("esc");
    assert!(screen.model.dialog.is_none());
    let request = choose(&mut screen, "text");
    screen.keys("y");
    assert_eq!(screen.asked, []);
    let shown = screen.text();
    assert!(shown.contains("The text has not come."), "{shown}");
    let text = HandoffPreview {
        text: Some("# History\n\u{1b}[2J".into()),
        ..known()
    };
    screen.daemon(previewed(request, Ok(text.clone())));
    screen.keys("y");
    assert_eq!(screen.asked.pop(), text.text.clone().map(Effect::Copy));
    // The summary is a part of the text.
    screen.keys("l");
    let request = asked(&mut screen);
    assert!(request.learned);
    screen.daemon(previewed(request, Ok(text)));
    screen.keys("enter");
    assert!(screen.text().contains("␛[2J"), "{}", screen.text());
}

/// On a small screen, the command once hid the losses, and a long list of losses hid everything else.
#[test]
fn all_losses_are_seen_on_the_smallest_screen_before_the_command_runs() {
    let mut screen = Screen::tree(40, 10, tour());
    let request = choose(&mut screen, "codex");
    let losses = (0..6).map(|at| format!("{at} thoughts left out"));
    let preview = HandoffPreview {
        losses: losses.collect(),
        ..known()
    };
    screen.daemon(previewed(request, Ok(preview)));
    let mut seen = String::new();
    for _ in 0..20 {
        let text = screen.text();
        assert!(
            text.contains("more") && text.contains("esc cancels"),
            "{text}"
        );
        seen.push_str(&text);
        screen.keys("down");
    }
    for at in 0..6 {
        assert!(seen.contains(&format!("lost: {at} thoughts")), "{seen}");
    }
    assert!(seen.contains("treelined continue"), "{seen}");
    assert!(seen.contains("[ ] l"), "{seen}");
    assert!(matches!(screen.model.dialog, Some(Dialog::Handoff(_))));
}

/// Entries of forks have the ids of their originals. So a late preview of one session was once shown for the other
/// session.
#[test]
fn a_preview_of_another_session_is_not_shown() {
    let mut screen = Screen::tree(80, 24, tour());
    let late = choose(&mut screen, "codex");
    screen.keys("esc");
    if let Some(session) = &mut screen.model.session {
        session.id = "fork".into();
    }
    let request = choose(&mut screen, "codex");
    assert_eq!(late.entry, request.entry);
    screen.daemon(previewed(late, Ok(known())));
    assert!(screen.text().contains("Looking at what is handed over"));
    screen.daemon(previewed(request, Ok(known())));
    assert!(screen.text().contains("2 thoughts left out"));
}

/// A terminal treats pasted text as keys.
#[test]
fn a_command_with_control_characters_is_neither_copied_nor_run() {
    let mut screen = Screen::tree(80, 24, tour());
    if let Some(session) = &mut screen.model.session {
        session.path = Some("/s/a\u{1b}[201~\rid.jsonl".into());
    }
    let request = choose(&mut screen, "codex");
    screen.daemon(previewed(request, Ok(known())));
    for key in ["y", "enter"] {
        screen.keys(key);
        assert_eq!(screen.asked, []);
        let shown = screen.text();
        assert!(shown.contains("The command is not used"), "{shown}");
    }
}

/// A program that looks in another session directory cannot find a session by its id.
#[test]
fn the_command_names_the_file_of_the_session() {
    let mut screen = Screen::tree(80, 24, tour());
    if let Some(session) = &mut screen.model.session {
        session.path = Some("/s/2026_tour.jsonl".into());
    }
    let request = choose(&mut screen, "codex");
    let leaf = request.entry.clone();
    screen.daemon(previewed(request, Ok(known())));
    screen.keys("y");
    let copied = format!("treelined continue --in codex -- /s/2026_tour.jsonl {leaf}");
    assert_eq!(screen.asked.pop(), Some(Effect::Copy(copied)));
}

/// The advice once named steps that the user could not do here.
#[test]
fn a_conversation_that_is_too_large_is_summarized_or_taken_whole() {
    let too_large = || {
        Err(Failure {
            kind: "contextTooLarge".into(),
            message: "400,000 tokens are more than 150,000".into(),
        })
    };
    let mut screen = Screen::tree(80, 24, tour());
    let request = choose(&mut screen, "codex");
    let leaf = request.entry.clone();
    screen.daemon(previewed(request, too_large()));
    screen.check("continue-too-large");
    screen.keys("enter");
    assert_eq!(screen.asked, []);
    screen.keys("c enter");
    let Some(Effect::Run { argv, .. }) = screen.asked.pop() else {
        panic!("nothing runs")
    };
    let expected = format!("treelined continue --in codex --compact -- tour {leaf}");
    assert_eq!(argv, command(&expected));
    let request = choose(&mut screen, "codex");
    screen.daemon(previewed(request, too_large()));
    screen.keys("0");
    let request = asked(&mut screen);
    assert!(request.unlimited);
    screen.daemon(previewed(request, Ok(known())));
    screen.keys("enter");
    let Some(Effect::Run { argv, .. }) = screen.asked.pop() else {
        panic!("nothing runs")
    };
    let expected = format!("treelined continue --in codex --limit 0 -- tour {leaf}");
    assert_eq!(argv, command(&expected));
}

#[test]
fn another_error_has_its_remedy() {
    let mut screen = Screen::tree(80, 24, tour());
    let request = choose(&mut screen, "codex");
    let read_only = Failure {
        kind: "readOnly".into(),
        message: "the session is read only".into(),
    };
    screen.daemon(previewed(request, Err(read_only)));
    let text = screen.text();
    assert!(text.contains("open for reading only"), "{text}");
    let failed = Err("has ended with exit status: 3".to_owned());
    let agent = Agent::named("codex").unwrap();
    screen.keys("esc").send(Message::Ran {
        agent,
        result: failed,
    });
    assert!(
        screen
            .text()
            .contains("The command for Codex has ended with exit status: 3.")
    );
}

/// After a move to a user message, once nothing said who answers it.
#[test]
fn a_move_says_what_can_be_done_next() {
    for (draft, said) in [
        (
            Some(Draft::default()),
            "Send the text, then H goes on in another agent.",
        ),
        (None, "I writes a message here, H goes on in another agent."),
    ] {
        let mut screen = Screen::tree(80, 24, tour());
        screen.keys("home enter");
        screen.asked.clear();
        screen.keys("enter");
        let Some(Effect::Navigate(navigate)) = screen.asked.pop() else {
            panic!("no move")
        };
        screen.daemon(Daemon::Navigated {
            navigation_id: navigate.navigation_id,
            result: Ok(Navigation {
                draft,
                ..Navigation::default()
            }),
        });
        assert!(screen.text().contains(said), "{}", screen.text());
    }
}
