//! The shell completes the options of this program, and of the command that starts it.

use crate::daemon;
use std::process::Command;

/// The words that the script of `treelined completions` offers in place of the last of `words`.
fn offered(words: &[&str]) -> Vec<String> {
    let index = (words.len() - 1).to_string();
    let output = Command::new(daemon())
        .envs([
            ("TREELINED_COMPLETE", "bash"),
            ("_CLAP_COMPLETE_INDEX", &index),
            ("_CLAP_COMPLETE_COMP_TYPE", "9"),
            ("_CLAP_COMPLETE_SPACE", "true"),
            ("_CLAP_IFS", "\n"),
        ])
        .arg("--")
        .args(words)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    let words = String::from_utf8(output.stdout).unwrap();
    words.lines().map(str::to_owned).collect()
}

#[test]
fn a_shell_completes_the_options() {
    for words in [&["treelined-mcp", "--"][..], &["treelined", "mcp", "--"]] {
        let offered = offered(words);
        for option in ["--all", "--allow-notes", "--session", "--session-dir"] {
            assert!(
                offered.iter().any(|word| word == option),
                "{words:?}: {offered:?}"
            );
        }
    }
}
