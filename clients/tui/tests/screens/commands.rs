//! The `:` line and commands of other clients.

use crate::harness::Screen;
use crate::tree::tour;
use treelined_tui::message::WorkProgress;
use treelined_tui::message::{Command, CommandOutput, Daemon, Effect, Event, Failure};
use treelined_tui::model::picker::{PickerItem, PickerKind};
use treelined_tui::operation::{ExportFormat, ImportSource, Operation};

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
            ..CommandOutput::default()
        }),
    }
}

#[test]
fn names_are_completed() {
    let mut screen = line("t");
    screen.check("command-line");
    screen.keys("down down down tab").typed("Ship it");
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
    // A command with an argument is completed before it runs.
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

/// Returns the operation that was started last, and its number.
fn operation(screen: &mut Screen) -> (u64, Operation) {
    match screen.asked.pop() {
        Some(Effect::Operate { id, operation }) => (id, operation),
        other => panic!("{other:?}"),
    }
}

#[test]
fn forks_are_made_at_a_user_message_from_a_list() {
    let mut screen = line("fork");
    screen.keys("enter");
    assert_eq!(
        screen.asked.pop(),
        Some(Effect::ListItems(PickerKind::Fork))
    );
    assert!(screen.text().contains("Reading…"));
    let item = |id: &str, text: &str| PickerItem {
        id: id.into(),
        text: text.into(),
        is_active: id != "q2",
        ..PickerItem::default()
    };
    screen.daemon(Daemon::Listed {
        kind: PickerKind::Fork,
        result: Ok(vec![
            item("q3", "Add the import."),
            item("q2", "Clear the cache."),
            item("q1", "Why does the build fail?"),
        ]),
    });
    screen.check("fork");
    // Letters filter the list.
    screen.typed("clear").keys("enter");
    let (id, started) = operation(&mut screen);
    assert_eq!(started, Operation::Fork { entry: "q2".into() });
    screen.daemon(ended(
        id,
        Some("This is the fork."),
        Some("Clear the cache."),
    ));
    assert!(screen.model.editor.is_some(), "the message is in the draft");
    let mut screen = line("fork here");
    screen.keys("enter");
    let (_, started) = operation(&mut screen);
    assert_eq!(started, Operation::Fork { entry: "q3".into() });
}

#[test]
fn compactions_and_merges_have_a_focus_of_several_lines() {
    let mut screen = line("com");
    screen
        .keys("enter")
        .typed("the build")
        .keys("alt+enter")
        .typed("and why")
        .keys("up home");
    screen.typed("only ").check("focus");
    screen.keys("enter");
    let focus = "only the build\nand why".to_owned();
    assert_eq!(operation(&mut screen).1, Operation::Compact { focus });
    screen.keys("esc");
    assert_eq!(screen.asked.pop(), Some(Effect::StopCommand));
    let mut screen = line("compact the build");
    screen.keys("enter");
    let focus = "the build".to_owned();
    assert_eq!(operation(&mut screen).1, Operation::Compact { focus });
    let mut screen = line("merge");
    screen.keys("enter");
    assert!(
        screen.text().contains("another branch"),
        "{}",
        screen.text()
    );
    screen.keys("home down down down w enter");
    let merge = Operation::Merge {
        tip: "q2".into(),
        focus: String::new(),
    };
    assert_eq!(operation(&mut screen).1, merge);
}

#[test]
fn marked_entries_are_copied_in_the_order_of_the_tree() {
    let mut screen = Screen::tree(80, 24, tour());
    screen.keys("end up up up M home M down down M P y");
    let entries = ["q1", "a1", "p1"].map(str::to_owned).to_vec();
    let (id, started) = operation(&mut screen);
    assert_eq!(started, Operation::CherryPick { entries });
    screen.daemon(ended(id, Some("Copied 3 messages."), None));
    assert!(screen.model.tree.marks.is_empty());
    assert!(screen.text().contains("Copied 3 messages."));
    screen.keys("home P y");
    let entries = vec!["q1".to_owned()];
    assert_eq!(operation(&mut screen).1, Operation::CherryPick { entries });
}

/// One key once wrote into the session, although the keys beside it only show something.
#[test]
fn copying_asks_first() {
    let mut screen = Screen::tree(80, 24, tour());
    screen.keys("home p");
    screen.check("copy");
    screen.keys("x enter");
    assert!(screen.model.dialog.is_none() && screen.asked.is_empty());
    screen.keys("M down M p");
    assert!(screen.text().contains("and 1 more"), "{}", screen.text());
    screen.keys("esc");
    assert!(screen.asked.is_empty());
}

#[test]
fn exports_and_imports_are_typed_or_chosen() {
    let mut screen = line("export md /tmp/a tour.md");
    screen.keys("enter");
    let export = |format, path: &str| Operation::Export {
        format,
        path: path.into(),
        keep: Vec::new(),
        replace: Vec::new(),
    };
    let typed = export(ExportFormat::Markdown, "/tmp/a tour.md");
    reviewed(&mut screen, ExportFormat::Markdown, Vec::new());
    assert_eq!(
        operation(&mut screen).1,
        typed,
        "there is nothing to review"
    );
    let mut screen = Screen::tree(80, 24, tour());
    screen.keys("x");
    screen.check("export");
    screen.keys("down down enter");
    let chosen = export(ExportFormat::Jsonl, "/home/ada/project/A-tour.jsonl");
    assert_eq!(operation(&mut screen).1, chosen);
    let mut screen = line("import codex");
    screen.keys("enter");
    let source = ImportSource::Tool("codex".into());
    assert_eq!(operation(&mut screen).1, Operation::Import(source));
    let mut screen = Screen::list(80, 24, Vec::new());
    screen.keys("i");
    screen.check("import");
    screen.keys("enter");
    let (id, started) = operation(&mut screen);
    assert_eq!(started, Operation::Import(ImportSource::Here));
    screen.sessions = vec![crate::harness::session("a", "Imported", None, 30)];
    screen.daemon(ended(id, Some("Imported 1 session."), None));
    assert!(screen.text().contains("Imported"), "{}", screen.text());
}

/// The daemon answers the request for the secrets in an export.
fn reviewed(screen: &mut Screen, format: ExportFormat, secrets: Vec<PickerItem>) {
    let kind = PickerKind::Review { format };
    assert_eq!(screen.asked.pop(), Some(Effect::ListItems(kind)));
    let result = Ok(secrets);
    screen.daemon(Daemon::Listed { kind, result });
}

/// An export once wrote the file before a person could see what it replaces.
#[test]
fn an_export_is_reviewed_before_it_is_written() {
    let secret = |id: &str, text: &str, replaced| PickerItem {
        id: id.into(),
        text: text.into(),
        is_active: replaced,
        replaced: Some(replaced),
        ..PickerItem::default()
    };
    let mut screen = Screen::tree(80, 24, tour());
    screen.keys("x enter");
    let secrets = vec![
        secret("s1", "github-token gh…7R (40 characters)", true),
        secret("s2", "api-key sk…Zz (48 characters)", true),
        secret("u1", "unknown 3f…9c (32 characters)", false),
    ];
    reviewed(&mut screen, ExportFormat::Html, secrets);
    let text = screen.text();
    for line in [
        "›  Write /home/ada/project/A-tour.html",
        "• github-token gh…7R",
        "  unknown 3f…9c",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    screen.keys("down enter down down enter");
    let text = screen.text();
    assert!(
        text.contains("• unknown") && text.contains("• api-key"),
        "{text}"
    );
    assert!(!text.contains("• github-token"), "{text}");
    screen.keys("home enter");
    let expected = Operation::Export {
        format: ExportFormat::Html,
        path: "/home/ada/project/A-tour.html".into(),
        keep: vec!["s1".into()],
        replace: vec!["u1".into()],
    };
    assert_eq!(operation(&mut screen).1, expected);
}

#[test]
fn branches_trash_and_earlier_messages_are_chosen_from_lists() {
    let item = |id: &str, text: &str, note: &str| PickerItem {
        id: id.into(),
        text: text.into(),
        note: note.into(),
        is_active: id == "q3",
        path: format!("/trash/{id}.jsonl"),
        entry: None,
        replaced: None,
    };
    let mut screen = Screen::tree(80, 24, tour());
    screen.keys("home b");
    screen.daemon(Daemon::Listed {
        kind: PickerKind::Branches { archived: false },
        result: Ok(vec![
            item(
                "q3",
                "[start] Add the import.",
                "4 messages · 2026-11-21 19:07",
            ),
            item("b1", "git status", "6 messages · 2026-11-21 19:05"),
        ]),
    });
    screen.check("branches");
    screen.keys("down enter");
    assert_eq!(screen.model.tree.selected().unwrap().id, "b1");
    screen.asked.clear();
    screen.typed(":pop").keys("enter");
    let listed = Some(Effect::ListItems(PickerKind::Pop));
    assert_eq!(screen.asked.pop(), listed);
    screen.daemon(Daemon::Listed {
        kind: PickerKind::Pop,
        result: Ok(vec![item("q3", "Add the import.", "")]),
    });
    screen.keys("enter");
    assert!(matches!(
        screen.asked.pop(),
        Some(Effect::Prepare { target, rewind: true }) if target == "q3"
    ));
    let mut screen = Screen::list(80, 24, Vec::new());
    screen.keys("T");
    screen.daemon(Daemon::Listed {
        kind: PickerKind::Trash,
        result: Ok(vec![item("old", "An old tour", "2026-11-20 08:00")]),
    });
    screen.check("trash");
    screen.keys("enter");
    let restore = Operation::Restore {
        session_id: "old".into(),
        trashed: "/trash/old.jsonl".into(),
    };
    assert_eq!(operation(&mut screen).1, restore);
}

#[test]
fn a_session_is_created_with_or_without_a_name() {
    let mut screen = Screen::list(80, 24, Vec::new());
    screen.keys("n").typed("Plans");
    screen.check("new-session");
    screen.keys("enter");
    let created = Operation::Create {
        name: "Plans".into(),
    };
    assert_eq!(operation(&mut screen).1, created);
    let mut screen = line("new");
    screen.keys("enter enter");
    let created = Operation::Create {
        name: String::new(),
    };
    assert_eq!(operation(&mut screen).1, created);
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

/// Starts a command of this program and shows that it runs.
fn running(typed: &str) -> Screen {
    let mut screen = line(typed);
    screen.keys("enter");
    screen.tick(600);
    assert!(screen.model.running.is_some(), "{}", screen.text());
    screen
}

fn worked(done: u64, total: Option<u64>) -> Daemon {
    Daemon::Event(Event::Worked(WorkProgress { done, total }))
}

#[test]
fn an_import_shows_how_much_is_read() {
    let mut screen = running("import codex");
    screen.daemon(worked(30_000_000, Some(120_000_000)));
    screen.check("import-runs");
    screen.daemon(worked(50_000_000, None));
    assert!(screen.text().contains("50 MB read"), "{}", screen.text());
}

#[test]
fn a_compaction_and_a_merge_show_how_much_of_the_summary_is_written() {
    let mut screen = running("compact the build");
    screen.daemon(worked(420, None));
    screen.check("compact-runs");
    let mut screen = Screen::tree(80, 24, tour());
    screen
        .keys("home down down down :")
        .typed("merge the build")
        .keys("enter");
    screen.tick(600);
    for text in ["The cache ", "was stale."] {
        screen.daemon(Daemon::Event(Event::Delta {
            navigation_id: "of the daemon".into(),
            text: text.into(),
        }));
    }
    let text = screen.text();
    assert!(
        text.contains("Summarizing: 20 characters written."),
        "{text}"
    );
}
