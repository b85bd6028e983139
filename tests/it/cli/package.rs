//! `treelined acp` and `treelined mcp`, which run other programs beside this one.

use super::*;
use std::os::unix::fs::symlink;
use std::process::Command;

/// The parser once removed the `--` that the recorder's page shows before the agent's command, and the recorder refused
/// the command.
#[test]
fn a_program_beside_this_one_receives_its_arguments_as_they_were_typed() {
    // The folder is on the file system of the program, since a hard link needs that.
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
