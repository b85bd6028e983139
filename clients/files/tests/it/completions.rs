//! The shell completes the entries that the commands of this program take.

use crate::scene::{Scene, daemon};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The words that the script of `treelined completions` offers in place of the last of `words`.
fn offered(scene: &Scene, words: &[&str]) -> Vec<String> {
    let programs = [Path::new(env!("CARGO_BIN_EXE_treelined-files")), &daemon()].map(|program| {
        let folder = program.parent().map(Path::to_owned);
        folder.unwrap_or_default()
    });
    let path = std::env::var_os("PATH").unwrap_or_default();
    let known: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let path = std::env::join_paths(programs.iter().chain(&known)).unwrap();
    let index = (words.len() - 1).to_string();
    let output = scene
        .command(&daemon())
        .envs([
            ("TREELINED_COMPLETE", "bash"),
            ("_CLAP_COMPLETE_INDEX", &index),
            ("_CLAP_COMPLETE_COMP_TYPE", "9"),
            ("_CLAP_COMPLETE_SPACE", "true"),
            ("_CLAP_IFS", "\n"),
        ])
        .env("PATH", path)
        .arg("--")
        .args(words)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let words = String::from_utf8(output.stdout).unwrap();
    words.lines().map(str::to_owned).collect()
}

/// A session of the folder with two messages, the first with a label.
fn session(scene: &Scene, id: &str, entries: [&str; 2], label: &str) {
    let message = |entry: &str| {
        let message = json!({"role": "user", "content": entry});
        let append = json!({"sessionId": id, "entryId": entry, "message": message});
        ("append_message", append)
    };
    let requests: [(&str, Value); 4] = [
        (
            "create_session",
            json!({"sessionId": id, "cwd": scene.work()}),
        ),
        message(entries[0]),
        message(entries[1]),
        (
            "append_label",
            json!({"sessionId": id, "targetId": entries[0], "label": label}),
        ),
    ];
    scene.call(&[], &requests);
}

#[test]
fn a_shell_completes_entries_by_their_labels_and_by_the_beginnings_of_their_ids() {
    let scene = Scene::new();
    session(&scene, "former", ["11112222", "33334444"], "the first try");
    session(&scene, "tour", ["55556666", "55557777"], "two ideas");
    for command in ["diff", "open", "restore"] {
        for program in [&["treelined-files"][..], &["treelined", "files"]] {
            let ids = |words: &[&str]| offered(&scene, &[program, &[command], words].concat());
            assert_eq!(ids(&["tw"]), ["two ideas"], "{program:?} {command}");
            assert_eq!(ids(&["55557"]), ["55557777"], "{program:?} {command}");
            let both = ids(&["5555"]);
            assert_eq!(both.len(), 2, "{program:?} {command}: {both:?}");
            let of_former = ids(&["--session", "former", "3333"]);
            assert_eq!(of_former, ["33334444"], "{program:?} {command}");
            assert_eq!(ids(&["--session", "former", "th"]), ["the first try"]);
        }
    }
}
