//! Signals reach the agent, and end the recorder only if they end the agent.

use crate::{AGENT, Editor, Folders, daemon};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

/// The signals that end a process by default and that the recorder passes to the agent.
const SIGNALS: [(&str, Signal); 12] = [
    ("SIGHUP", Signal::HUP),
    ("SIGINT", Signal::INT),
    ("SIGQUIT", Signal::QUIT),
    ("SIGUSR1", Signal::USR1),
    ("SIGUSR2", Signal::USR2),
    ("SIGALRM", Signal::ALARM),
    ("SIGTERM", Signal::TERM),
    ("SIGVTALRM", Signal::VTALARM),
    ("SIGPROF", Signal::PROF),
    ("SIGIO", Signal::IO),
    ("SIGXCPU", Signal::XCPU),
    ("SIGXFSZ", Signal::XFSZ),
];

/// Editors and people send SIGUSR1 to ask a program for a report. This signal once ended the recorder.
#[test]
fn an_agent_that_catches_a_signal_goes_on_and_so_does_the_recorder() {
    let folders = Folders::new();
    let names = SIGNALS.map(|(name, _)| name).join(" ");
    let mut command = folders.command(&daemon());
    command.args(["--", "python3", AGENT]).env("CATCHES", names);
    let mut editor = Editor::start(command);
    editor.ask("initialize", json!({}));
    let pid = Pid::from_child(&editor.child);
    for (name, signal) in SIGNALS {
        kill_process(pid, signal).unwrap();
        let told = editor.next_message();
        assert_eq!(told["params"]["name"], name, "{told}");
    }
    editor.ask("session/new", json!({"cwd": folders.path("work")}));
    editor.prompt("s1", "one");
    assert_eq!(editor.end(), 0);
    assert_eq!(folders.recorded()[2].1, "You said: one");
}

#[test]
fn the_exit_code_names_the_signal_that_ended_the_agent() {
    for (signal, code) in [(Signal::TERM, 128 + 15), (Signal::USR1, 128 + 10)] {
        let folders = Folders::new();
        let mut editor = folders.recorder(&json!([]));
        editor.ask("initialize", json!({}));
        kill_process(Pid::from_child(&editor.child), signal).unwrap();
        assert_eq!(editor.child.wait().unwrap().code(), Some(code));
    }
}
