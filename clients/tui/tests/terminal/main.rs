//! The whole program with the real daemon in a real terminal (tmux).
//!
//! Without tmux each test prints SKIPPED; `TREELINED_TMUX=required` makes that a failure.
#![cfg(test)]
#![cfg(target_os = "linux")]

mod export;
#[path = "../program/mod.rs"]
mod program;
mod screens;
mod tmux;

use program::daemon;
use std::fmt::Write;
use std::io::Write as _;
use std::process::Command;
use tmux::{Tmux, is_missing};

/// A session with two attempts at a failing build, a label, and a tool call.
pub const TOUR: &str = r#"{"type":"session","version":3,"id":"tour","timestamp":"2026-11-21T19:00:00.000Z","cwd":"CWD"}
{"type":"message","id":"q1","parentId":null,"timestamp":"2026-11-21T19:00:01.000Z","message":{"role":"user","content":"Why does the build fail?"}}
{"type":"message","id":"a1","parentId":"q1","timestamp":"2026-11-21T19:00:02.000Z","message":{"role":"assistant","content":[{"type":"text","text":"A stale cache, or a missing import."}]}}
{"type":"message","id":"q2","parentId":"a1","timestamp":"2026-11-21T19:00:03.000Z","message":{"role":"user","content":"Clear the cache."}}
{"type":"message","id":"a2","parentId":"q2","timestamp":"2026-11-21T19:00:04.000Z","message":{"role":"assistant","content":[{"type":"text","text":"I clear it."},{"type":"toolCall","id":"t","name":"edit","arguments":{"path":"Cargo.toml"}}]}}
{"type":"message","id":"t2","parentId":"a2","timestamp":"2026-11-21T19:00:05.000Z","message":{"role":"toolResult","toolCallId":"t","toolName":"edit","content":[{"type":"text","text":"edited"}],"isError":false}}
{"type":"message","id":"b2","parentId":"t2","timestamp":"2026-11-21T19:00:06.000Z","message":{"role":"assistant","content":[{"type":"text","text":"It still fails."}]}}
{"type":"message","id":"q3","parentId":"a1","timestamp":"2026-11-21T19:00:07.000Z","message":{"role":"user","content":"Add the import."}}
{"type":"message","id":"a3","parentId":"q3","timestamp":"2026-11-21T19:00:08.000Z","message":{"role":"assistant","content":[{"type":"text","text":"Added. It builds."}]}}
{"type":"label","id":"l1","parentId":"a3","timestamp":"2026-11-21T19:00:09.000Z","targetId":"a1","label":"both ways"}
"#;

fn tour(columns: u16, rows: u16) -> Tmux {
    let tmux = Tmux::new(columns, rows);
    tmux.session("tour", TOUR);
    tmux
}

#[test]
fn keys_lead_from_the_list_into_the_tree_and_back() {
    if is_missing() {
        return;
    }
    let tmux = tour(80, 24);
    let other = TOUR
        .replace(r#""id":"tour""#, r#""id":"fork""#)
        .replace("Why does the build", "Why do the tests");
    let parent = r#""cwd":"CWD","parentSession":"tour""#;
    tmux.session("fork", &other.replacen(r#""cwd":"CWD""#, parent, 1));
    tmux.start("");
    tmux.wait_for("└─ Why do the tests fail?");
    tmux.keys("R");
    tmux.typed("The build");
    tmux.keys("Enter");
    tmux.wait_for("› The build");
    tmux.keys("Enter");
    tmux.check("tree", "Added. It builds. ← active");
    tmux.keys("S");
    tmux.wait_for("← open");
    tmux.keys("j D");
    tmux.wait_for("To the trash?");
    tmux.keys("y");
    tmux.wait("one session less", |screen| !screen.contains("tests fail"));
    tmux.typed("/xyz");
    tmux.wait_for("matches “xyz”");
    tmux.escape();
    tmux.wait_for("The build");
    tmux.keys("Q");
    tmux.is_restored();
}

/// The agent has the terminal while it runs: no key goes to the tree, and the screen comes back afterwards.
#[test]
fn an_agent_gets_the_terminal_and_gives_it_back() {
    if is_missing() {
        return;
    }
    let tmux = tour(80, 24);
    let bin = tmux.folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let script = "#!/bin/sh\n[ \"$1\" = --version ] && echo 0 && exit\necho \"AGENT $*\"\nread said\n\
                  printf %s \"$said\" > heard\n[ \"$said\" = quit ]\n";
    std::fs::write(bin.join("codex"), script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(bin.join("codex"), mode).unwrap();
    let home = tmux.folder.path().display();
    tmux.typed(&format!("export HOME={home} PATH={home}/bin:$PATH"));
    tmux.keys("Enter");
    tmux.start("--latest");
    tmux.wait_for("← active");
    for (said, then) in [
        ("quit", "Back from Codex. :import codex brings"),
        ("jjj", "Enter goes back to the tree."),
    ] {
        tmux.keys("H");
        tmux.wait_for("installed");
        tmux.typed("codex");
        tmux.keys("Enter");
        tmux.wait_for("Nothing is lost.");
        tmux.keys("Enter");
        tmux.wait_for("AGENT resume");
        tmux.typed(said);
        tmux.keys("Enter");
        tmux.wait_for(then);
        assert_eq!(
            std::fs::read_to_string(tmux.folder.path().join("heard")).unwrap(),
            said
        );
    }
    tmux.keys("Enter");
    tmux.wait_for("The command for Codex has ended with exit status: 1.");
    tmux.wait_for("Added. It builds. ← active");
    tmux.keys("Q");
    tmux.is_restored();
}

/// While a program has the terminal, Ctrl+C reaches all programs of the terminal. It once ended the daemon of the tree.
#[test]
fn an_interrupt_is_for_the_program_that_has_the_terminal() {
    if is_missing() {
        return;
    }
    let tmux = tour(80, 24);
    let bin = tmux.folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let script = "#!/bin/sh\n[ \"$1\" = import ] && echo PREPARES >&2 && exec sleep 600\n";
    std::fs::write(bin.join("opencode"), script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(bin.join("opencode"), mode).unwrap();
    let home = tmux.folder.path().display();
    tmux.typed(&format!("export HOME={home} PATH={home}/bin:$PATH"));
    tmux.keys("Enter");
    tmux.start("--latest");
    tmux.wait_for("← active");
    tmux.keys("H");
    tmux.wait_for("installed");
    tmux.typed("opencode");
    tmux.keys("Enter");
    tmux.wait_for("Nothing is lost.");
    tmux.keys("Enter");
    tmux.wait_for("PREPARES");
    tmux.keys("C-c");
    tmux.wait_for("Enter goes back to the tree.");
    tmux.keys("Enter");
    tmux.wait_for("The command for opencode has ended with exit status: 130.");
    tmux.typed(":stats");
    tmux.keys("Enter");
    // The line of the command has the word "tokens" too, so the test waits for another word.
    tmux.wait_for("y copies");
    tmux.escape();
    tmux.wait_for("← active");
    tmux.keys("Q");
    tmux.is_restored();
}

#[test]
fn a_navigation_with_a_summary_can_be_undone() {
    if is_missing() {
        return;
    }
    let tmux = tour(80, 24);
    tmux.start("--summarizer outline --latest");
    tmux.wait_for("← active");
    tmux.keys("Enter");
    tmux.wait_for("Already at this position");
    tmux.keys("*");
    tmux.wait_for("It still fails.");
    tmux.keys("Home Down Down Enter");
    tmux.check("choose", "entries are left behind");
    tmux.keys("2");
    tmux.wait_for("summary    Tried");
    tmux.wait_for("Summarized. Send the text, then H goes on in another agent.");
    // The text of the user message opens as a draft, which is changed and sent.
    tmux.check("draft", "New user message");
    tmux.typed(" And the target folder.");
    tmux.keys("Enter");
    tmux.wait_for("Sent.");
    tmux.wait("the new message", |screen| {
        screen.lines().any(|line| {
            line.contains("user       Clear the cache. And the target folder. ← active")
        })
    });
    tmux.keys("u");
    tmux.wait_for("Undone.");
    tmux.wait("the old place", |screen| {
        screen.contains("Added. It builds. ← active")
    });
    tmux.keys("C-r");
    tmux.wait_for("Redone.");
    tmux.wait("the new place", |screen| {
        screen.contains("target folder. ← active")
    });
    tmux.keys("Q");
    tmux.is_restored();
}

/// The summarizer writes a word and then hangs.
#[test]
fn a_long_summary_can_be_aborted() {
    if is_missing() {
        return;
    }
    let tmux = tour(80, 24);
    let config = tmux.folder.path().join("config.toml");
    let text = "[summarizer]\nuse = \"command\"\n[summarizer.command]\nargv = [\"/bin/sh\", \"-c\", \"sleep 600\"]\n";
    std::fs::write(&config, text).unwrap();
    let settings = tmux.folder.path().join("tui.toml");
    let argv = format!("daemon = [{:?}, \"--config\", {:?}]", daemon(), config);
    std::fs::write(&settings, argv).unwrap();
    tmux.keys("unset Space TREELINED_BIN Enter");
    tmux.start(&format!("--config {} tour", settings.display()));
    tmux.wait_for("← active");
    tmux.keys("Home Down Down Down Enter");
    tmux.wait_for("left behind");
    tmux.keys("3");
    tmux.typed("what was tried");
    tmux.keys("Enter");
    tmux.wait_for("Summarizing · 1 s");
    tmux.escape();
    tmux.wait_for("Aborted. Nothing has moved.");
    let screen = tmux.wait_for("Added. It builds. ← active");
    assert!(screen.lines().nth(4).unwrap().starts_with('›'), "{screen}");
    tmux.keys("Q");
    tmux.is_restored();
}

#[test]
fn without_a_summarizer_the_failure_gives_advice() {
    if is_missing() {
        return;
    }
    let tmux = tour(80, 24);
    tmux.start("--summarizer none tour");
    tmux.wait_for("← active");
    tmux.keys("Home Enter");
    tmux.wait_for("1 Go there");
    tmux.escape();
    tmux.wait("no dialog", |screen| !screen.contains('╭'));
    tmux.keys("*");
    tmux.wait_for("It still fails.");
    tmux.keys("Home Down Down Down Down Down w");
    tmux.wait_for("No summarizer is configured.");
    tmux.keys(": merge Space x Enter");
    tmux.check("failed", "summarizerUnavailable");
    tmux.escape();
    tmux.wait("no dialog", |screen| !screen.contains('╭'));
    tmux.keys("Q");
    tmux.is_restored();
}

#[test]
fn filters_search_labels_folds_preview_and_copy() {
    if is_missing() {
        return;
    }
    let tmux = tour(80, 24);
    tmux.run_in_server("set-option -g set-clipboard on");
    tmux.start("tour");
    tmux.wait_for("← active");
    tmux.keys("C-u");
    tmux.wait("user messages only", |screen| {
        screen.contains("user-only") && !screen.contains("assistant ")
    });
    tmux.keys("C-l");
    tmux.wait("labelled only", |screen| {
        screen.contains("1/1 · labeled-only")
    });
    tmux.keys("C-d");
    tmux.typed("/still");
    tmux.wait("what is found", |screen| {
        screen.contains("1/1 ") && screen.contains("/still")
    });
    tmux.escape();
    tmux.wait("all rows", |screen| {
        !screen.contains("/still") && screen.contains("Add the import.")
    });
    tmux.keys("Home L");
    tmux.wait_for("Label");
    tmux.typed("start");
    tmux.keys("Enter");
    tmux.wait_for("user       [start] Why");
    tmux.keys("T");
    tmux.wait_for("[both ways 2026-11-21 19:00]");
    tmux.keys("T y");
    tmux.wait_for("Copied: 24 bytes");
    assert_eq!(
        tmux.clipboard().as_deref(),
        Some("Why does the build fail?")
    );
    // Open the branch that was left, fold it, and open it again.
    tmux.keys("Home Down Down M-Right");
    tmux.wait_for("assistant  It still fails.");
    tmux.keys("C-Left");
    tmux.wait_for("⊞ 4 entries · Clear the cache.");
    tmux.keys("M-Right");
    tmux.wait_for("assistant  It still fails.");
    tmux.keys("Down Down Down M A M C");
    tmux.check("compare", "Common ancestor");
    tmux.escape();
    tmux.wait_for("2 marked");
    tmux.keys("?");
    tmux.wait_for("close the branch, or go to");
    tmux.escape();
    tmux.wait("no dialog", |screen| !screen.contains('╭'));
    tmux.keys("Q");
    tmux.is_restored();
}

/// The terminal reports press and release of the left button, and the wheel.
#[test]
fn the_mouse_works() {
    if is_missing() {
        return;
    }
    let tmux = tour(80, 24);
    tmux.start("tour");
    tmux.wait_for("← active");
    let click = |column: u8, row: u8| {
        tmux.typed(&format!(
            "\u{1b}[<0;{column};{row}M\u{1b}[<0;{column};{row}m"
        ));
    };
    click(20, 2);
    tmux.wait_for("›• user       Why does the build fail?");
    click(7, 4);
    tmux.wait_for("It still fails.");
    click(7, 4);
    tmux.wait_for("⊞ 4 entries · Clear the cache.");
    click(7, 4);
    tmux.wait_for("It still fails.");
    tmux.typed("\u{1b}[<65;20;4M");
    // Two clicks at once are a double click.
    tmux.typed(&"\u{1b}[<0;20;3M\u{1b}[<0;20;3m".repeat(2));
    tmux.wait_for("Go to");
    click(20, 9);
    tmux.wait_for("Moved.");
    tmux.keys("Q");
    tmux.is_restored();
}

/// Another program appends to the file.
#[test]
fn entries_by_another_program_appear() {
    if is_missing() {
        return;
    }
    let tmux = Tmux::new(80, 24);
    let path = tmux.session("tour", TOUR);
    tmux.start("tour");
    tmux.wait_for("← active");
    tmux.keys("Home Down");
    tmux.wait_for("›• assistant  [both ways]");
    let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
    let line = r#"{"type":"message","id":"x1","parentId":"a1","timestamp":"2026-11-21T19:01:00.000Z","message":{"role":"user","content":"I was here too."}}"#;
    writeln!(file, "{line}").unwrap();
    tmux.check("live", "user       I was here too. ← others");
    tmux.keys("Q");
    tmux.is_restored();
}

#[test]
fn the_death_of_the_daemon_shows_a_dialog_and_r_restarts_it() {
    if is_missing() {
        return;
    }
    let tmux = tour(80, 24);
    tmux.start("tour");
    tmux.wait_for("← active");
    tmux.keys("Home Down");
    // If the daemon dies earlier, the preview stays empty.
    tmux.wait("its preview", |screen| screen.contains("── assistant"));
    let before = tmux.daemons();
    assert_eq!(before.len(), 1);
    kill("-KILL", before[0]);
    tmux.check("lost", "R starts it again");
    tmux.keys("R");
    tmux.wait("the tree", |screen| {
        let header = screen.lines().next().unwrap_or_default();
        !screen.contains("has ended") && !header.contains("daemon")
    });
    tmux.wait("its preview", |screen| screen.contains("── assistant"));
    tmux.keys("L C-u");
    tmux.typed("alive");
    tmux.keys("Enter");
    tmux.wait_for("›• assistant  [alive]");
    assert_ne!(tmux.daemons(), before);
    tmux.keys("Q");
    tmux.is_restored();
    let began = std::time::Instant::now();
    while !tmux.daemons().is_empty() {
        assert!(began.elapsed().as_secs() < 60, "a daemon was left behind");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// When the daemon is there again, the draft, the position of the cursor and the filter are the same as before.
#[test]
fn the_death_of_the_daemon_leaves_the_draft_and_the_place() {
    if is_missing() {
        return;
    }
    let tmux = tour(80, 24);
    tmux.start("tour");
    tmux.wait_for("← active");
    tmux.keys("C-t Home Down");
    tmux.wait_for("›• assistant  [both ways]");
    tmux.keys("i");
    tmux.wait_for("New user message");
    tmux.typed("Half a thought");
    tmux.wait_for("Half a thought");
    kill("-KILL", tmux.daemons()[0]);
    tmux.wait_for("R starts it again");
    tmux.keys("R");
    tmux.wait("the draft", |screen| {
        !screen.contains("has ended") && screen.contains("Half a thought")
    });
    tmux.typed(", finished");
    tmux.wait_for("Half a thought, finished");
    // The session may not be open again; then the program says so, and sends nothing.
    tmux.wait("the sent message", |screen| {
        let is_sent = screen.contains("user       Half a thought, finished ← active");
        if !is_sent && screen.contains("New user message") {
            tmux.keys("C-s");
        }
        is_sent
    });
    tmux.keys("Up");
    tmux.wait_for("no-tools");
    tmux.keys("q");
    tmux.is_restored();
}

fn kill(signal: &str, pid: u32) {
    let status = Command::new("kill")
        .args([signal, &pid.to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
fn the_terminal_is_restored_on_signals() {
    if is_missing() {
        return;
    }
    for (signal, code) in [("-TERM", "143"), ("-HUP", "129"), ("-INT", "130")] {
        let tmux = tour(80, 24);
        tmux.start("tour; echo code $?");
        tmux.wait_for("← active");
        let program = std::path::Path::new(env!("CARGO_BIN_EXE_treelined-tui"));
        let pids = tmux.processes(program);
        assert_eq!(pids.len(), 1);
        kill(signal, pids[0]);
        tmux.wait_for(&format!("code {code}"));
        tmux.is_restored();
    }
}

/// The message must be written on the shell's screen, not on the alternate screen, which disappears.
#[test]
fn the_terminal_is_restored_on_a_panic() {
    if is_missing() {
        return;
    }
    let tmux = tour(80, 24);
    let tests = std::env::current_exe().unwrap();
    let helper = "panics_with_the_terminal_set_up";
    // A backtrace would scroll the message out of the screen.
    tmux.typed(&format!(
        "RUST_BACKTRACE=0 {} --exact {helper} --ignored --nocapture",
        tests.display()
    ));
    tmux.keys("Enter");
    tmux.wait_for("panicked at");
    tmux.wait_for("as it was told to");
    tmux.wait_for("test result: FAILED");
    tmux.is_restored();
}

#[test]
#[ignore = "a helper: started in a terminal by the_terminal_is_restored_on_a_panic"]
fn panics_with_the_terminal_set_up() {
    let mut terminal = treelined_tui::terminal::Terminal::take(true).unwrap();
    terminal.draw(|_| panic!("as it was told to")).unwrap();
}

#[test]
fn ctrl_z_suspends_and_fg_resumes() {
    if is_missing() {
        return;
    }
    let tmux = Tmux::new(80, 24);
    tmux.session("tour", TOUR);
    tmux.keys("exec Space bash Space --norc Enter");
    tmux.start("tour");
    tmux.wait_for("← active");
    tmux.keys("C-z");
    tmux.wait_for("Stopped");
    tmux.is_restored();
    tmux.typed("fg");
    tmux.keys("Enter");
    tmux.wait("the tree again", |screen| {
        screen.contains("← active") && screen.contains("? help")
    });
    tmux.keys("Q");
    tmux.is_restored();
}

#[test]
fn every_size_of_the_terminal_works() {
    if is_missing() {
        return;
    }
    let tmux = tour(40, 10);
    tmux.start("tour");
    tmux.check("tiny", "← active");
    tmux.resize(200, 50);
    tmux.wait("the preview beside", |screen| {
        screen
            .lines()
            .nth(1)
            .is_some_and(|line| line.contains("╮╭"))
    });
    tmux.resize(12, 4);
    tmux.wait("something", |screen| screen.contains("Why"));
    tmux.resize(80, 24);
    tmux.wait_for("← active");
    tmux.keys("Q");
    tmux.is_restored();
}

#[test]
fn no_color_disables_all_colours() {
    if is_missing() {
        return;
    }
    let tmux = tour(80, 24);
    tmux.typed("export NO_COLOR=1");
    tmux.keys("Enter");
    tmux.start("tour");
    tmux.wait_for("← active");
    let coloured = tmux.coloured();
    let codes: Vec<&str> = coloured.split('\u{1b}').skip(1).collect();
    let is_colour = |code: &&&str| {
        let numbers = code
            .trim_start_matches('[')
            .split('m')
            .next()
            .unwrap_or_default();
        numbers
            .split(';')
            .any(|number| matches!(number.parse(), Ok(30..=38 | 40..=48 | 90..=107)))
    };
    let found: Vec<&&str> = codes.iter().filter(is_colour).collect();
    assert!(found.is_empty(), "{found:?}");
    tmux.keys("Q");
    tmux.is_restored();
}

#[test]
fn escape_sequences_in_a_session_have_no_effect() {
    if is_missing() {
        return;
    }
    let tmux = Tmux::new(80, 24);
    let nasty = r"\u001b]0;owned\u0007\u001b]52;c;b3duZWQ=\u0007\u001b[2J\u009b31m\u202eabc";
    tmux.session(
        "tour",
        &TOUR
            .replace("Add the import.", nasty)
            .replace("both ways", nasty),
    );
    tmux.run_in_server("set-option -g set-clipboard on");
    tmux.start("tour");
    tmux.wait_for("← active");
    tmux.keys("Up");
    tmux.wait_for("]0;owned");
    assert_eq!(tmux.clipboard(), None);
    assert!(!tmux.says("#{pane_title}").contains("owned"));
    tmux.keys("Q");
    tmux.is_restored();
}

/// A page is shown at once; further pages load when they become visible.
#[test]
fn a_hundred_thousand_entries_scroll() {
    if is_missing() {
        return;
    }
    let tmux = Tmux::new(80, 24);
    let mut text = String::from(TOUR.lines().next().unwrap());
    let mut parent = "null".to_owned();
    for at in 0..100_000 {
        let role = if at % 2 == 0 { "user" } else { "assistant" };
        write!(text, "\n{{\"type\":\"message\",\"id\":\"e{at}\",\"parentId\":{parent},\"timestamp\":\"2026-11-21T19:00:00.000Z\",\"message\":{{\"role\":\"{role}\",\"content\":\"entry {at}\"}}}}").unwrap();
        parent = format!("\"e{at}\"");
    }
    text.push('\n');
    tmux.session("tour", &text);
    tmux.start("tour");
    tmux.wait_for("entry 99999 ← active");
    tmux.keys("Home");
    tmux.wait_for("›• user       entry 0");
    tmux.keys("NPage NPage NPage");
    tmux.wait("the fourth page", |screen| {
        screen.contains("›• ") && !screen.contains("entry 0\n")
    });
    tmux.keys("End");
    tmux.wait_for("100000/100000");
    tmux.wait_for("entry 99999 ← active");
    tmux.keys("Q");
    tmux.is_restored();
}

/// The program once wrote escape sequences into a pipe before it noticed that stdout was not a terminal.
#[test]
fn without_a_terminal_nothing_is_written_to_stdout() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_treelined-tui"))
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stdout, b"");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("must be a terminal"), "{said}");
    assert!(!said.contains('\x1b'), "{said}");
}

/// The program shares a daemon, which stays when the program ends.
#[test]
fn a_shared_daemon_is_started_and_stays() {
    if is_missing() {
        return;
    }
    let tmux = tour(80, 24);
    let program = daemon().display().to_string();
    for _ in 0..2 {
        tmux.start("--socket $PWD/shared tour");
        tmux.wait_for("← active");
        tmux.keys(":");
        tmux.typed("label seen");
        tmux.keys("Enter");
        tmux.wait_for("[seen]");
        tmux.keys("Q");
        tmux.is_restored();
        tmux.typed(&format!(
            "clear; {program} status --socket $PWD/shared --json"
        ));
        tmux.keys("Enter");
        tmux.wait_for("\"pid\"");
        tmux.typed("clear");
        tmux.keys("Enter");
    }
    tmux.typed(&format!(
        "clear; {program} stop --socket $PWD/shared; echo stopped=$?"
    ));
    tmux.keys("Enter");
    tmux.wait_for("stopped=0");
}
