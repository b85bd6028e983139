//! The `:` line and commands of other clients.

use crate::harness::Screen;
use crate::tree::tour;
use treelined_tui::message::{Command, CommandOutput, Daemon, Effect, Failure};

fn command(name: &str, argument: &str) -> Command {
    Command {
        name: name.into(),
        argument: argument.into(),
        about: format!("does {name}"),
        by: Some("todo-list".into()),
    }
}

/// Opens the `:` line with the commands of another client.
fn line(typed: &str) -> Screen {
    let mut screen = Screen::tree(80, 24, tour());
    screen.keys(":");
    assert_eq!(screen.asked.pop(), Some(Effect::ListCommands));
    screen.daemon(Daemon::Commands(Ok(vec![
        command("done", ""),
        command("todo", "TEXT"),
    ])));
    screen.typed(typed);
    screen
}

fn run(typed: &str) -> (Screen, u64) {
    let mut screen = line(typed);
    screen.keys("enter");
    match screen.asked.pop() {
        Some(Effect::RunCommand { id, .. }) => (screen, id),
        other => panic!("{other:?}"),
    }
}

fn ended(id: u64, output: Option<&str>, prompt: Option<&str>) -> Daemon {
    Daemon::CommandEnded {
        id,
        result: Ok(CommandOutput {
            output: output.map(Into::into),
            prompt: prompt.map(Into::into),
        }),
    }
}

#[test]
fn names_are_completed() {
    let mut screen = line("t");
    screen.check("command-line");
    screen.keys("down down tab").typed("Ship it");
    assert!(screen.text().contains(":todo Ship it"), "{}", screen.text());
    screen.keys("enter");
    let Some(Effect::RunCommand { name, argument, .. }) = screen.asked.pop() else {
        panic!()
    };
    assert_eq!((&*name, &*argument), ("todo", "Ship it"));
    assert!(screen.model.command_line.is_none());
}

#[test]
fn a_unique_beginning_is_enough_and_an_unknown_name_stays_in_the_line() {
    let mut screen = line("/do");
    screen.keys("enter");
    assert!(matches!(screen.asked.pop(), Some(Effect::RunCommand { name, .. }) if name == "done"));
    // One with an argument is completed first.
    let mut screen = line("to");
    screen.keys("enter");
    assert!(screen.asked.is_empty() && screen.text().contains(":todo"));
    let mut screen = line("xyz");
    screen.keys("enter");
    assert!(screen.text().contains("There is no command “xyz”."));
    screen.keys("esc");
    assert!(screen.model.command_line.is_none());
}

#[test]
fn own_commands_do_what_their_keys_do() {
    let mut screen = line("label both ways");
    screen.keys("enter");
    let label = Effect::Label {
        id: "q3".into(),
        label: "both ways".into(),
    };
    assert_eq!(screen.asked.pop(), Some(label));
    let mut screen = Screen::tree(80, 24, tour());
    screen.keys("home : b r a n c h enter");
    assert!(matches!(
        screen.asked.pop(),
        Some(Effect::Prepare { rewind: false, .. })
    ));
    screen.keys("esc : p o p enter");
    assert!(matches!(
        screen.asked.pop(),
        Some(Effect::Prepare { rewind: true, .. })
    ));
    screen.keys("esc : t r e e enter");
    assert_eq!(screen.model.tree.selected().unwrap().id, "q3");
}

#[test]
fn forks_and_compactions_run_as_commands() {
    let mut screen = line("fork");
    screen.keys("enter");
    let Some(Effect::Fork { id, entry }) = screen.asked.pop() else {
        panic!()
    };
    assert_eq!(entry, "q3");
    screen.daemon(ended(
        id,
        Some("This is the fork."),
        Some("Add the import."),
    ));
    assert!(screen.model.editor.is_some(), "the message is in the draft");
    let mut screen = line("com");
    screen.keys("enter");
    assert!(matches!(screen.asked.pop(), Some(Effect::Compact { focus, .. }) if focus.is_empty()));
    let mut screen = line("compact the build");
    screen.keys("enter");
    assert!(
        matches!(screen.asked.pop(), Some(Effect::Compact { focus, .. }) if focus == "the build")
    );
    screen.keys("esc");
    assert_eq!(screen.asked.pop(), Some(Effect::StopCommand));
}

#[test]
fn a_running_command_is_shown_and_can_be_cancelled() {
    let (mut screen, id) = run("done");
    screen.tick(2_000);
    screen.check("command-runs");
    screen.keys("j esc");
    assert_eq!(screen.asked.pop(), Some(Effect::StopCommand));
    screen.daemon(ended(id, Some("late"), None));
    assert!(!screen.text().contains("late"));
    assert!(screen.model.running.is_none());
}

#[test]
fn output_is_a_notice_or_a_text_to_scroll_through() {
    let (mut screen, id) = run("done");
    screen.daemon(ended(id, Some("Added: Ship it"), None));
    assert!(screen.text().contains("Added: Ship it"));
    let (mut screen, id) = run("done");
    let lines: Vec<String> = (1..=40).map(|at| format!("{at}. item")).collect();
    screen.daemon(ended(id, Some(&lines.join("\n")), None));
    screen.check("command-output");
    screen.keys("G");
    assert!(screen.text().contains("40. item"));
    screen.keys("y");
    assert_eq!(screen.asked.pop(), Some(Effect::Copy(lines.join("\n"))));
    screen.keys("esc");
    assert!(screen.model.dialog.is_none());
}

/// The prompt of a command does not replace what the user has drafted.
#[test]
fn a_prompt_is_put_into_the_draft() {
    let mut screen = line("");
    screen.keys("esc I").typed("Mine.").keys("esc : d o n e");
    screen.daemon(Daemon::Commands(Ok(vec![command("done", "")])));
    screen.keys("enter");
    let Some(Effect::RunCommand { id, .. }) = screen.asked.pop() else {
        panic!()
    };
    screen.daemon(ended(id, None, Some("Theirs.\nMore.")));
    let editor = screen.model.editor.as_ref().unwrap();
    assert_eq!(editor.input.text(), "Mine.\n\nTheirs.\nMore.");
    assert_eq!(editor.expected_leaf.as_deref(), Some("q3"));
}

#[test]
fn a_failure_of_a_command_has_its_message() {
    let (mut screen, id) = run("done");
    screen.daemon(Daemon::CommandEnded {
        id,
        result: Err(Failure {
            kind: "commandFailed".into(),
            message: "the command done failed: no list".into(),
        }),
    });
    let text = screen.text();
    assert!(
        text.contains("done has failed") && text.contains("no list"),
        "{text}"
    );
}
