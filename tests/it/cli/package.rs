//! `treelined acp` and `treelined mcp`: programs beside this one.

use super::*;
use std::os::unix::fs::symlink;
use std::process::Command;

/// The parser took away the `--` that the page of the recorder shows before the agent's command, and the recorder
/// refused the command.
#[test]
fn a_program_beside_this_one_receives_its_arguments_as_they_were_typed() {
    // On the file system of the program, for a hard link to it.
    let folder = tempfile::tempdir_in(binary().parent().unwrap()).unwrap();
    let own = folder.path().join("treelined");
    fs::hard_link(binary(), &own).unwrap();
    symlink("/bin/echo", folder.path().join("treelined-acp")).unwrap();
    for typed in [
        &["--", "python3", "x.py"][..],
        &["--shared", "--", "agent", "--", "-x"],
        &["--shared"],
    ] {
        let output = Command::new(&own).arg("acp").args(typed).output().unwrap();
        let received = String::from_utf8(output.stdout).unwrap();
        assert_eq!(received.trim_end(), typed.join(" "));
    }
}
