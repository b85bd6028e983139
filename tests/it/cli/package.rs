//! `treelined acp` and `treelined mcp`, which run other programs beside this one.

use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};
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

/// `treelined --config FILE tui` once started its daemon without the file, so a hook of the file guarded nothing.
#[test]
fn the_configuration_file_holds_for_a_program_beside_this_one() {
    let folder = tempfile::tempdir_in(binary().parent().unwrap()).unwrap();
    let own = folder.path().join("treelined");
    fs::hard_link(binary(), &own).unwrap();
    let program = folder.path().join("treelined-tui");
    fs::write(&program, "#!/bin/sh\nexec \"$TREELINED_BIN\" config\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(folder.path().join("own.toml"), "idle_exit = \"420s\"\n").unwrap();
    let shown = |args: &[&str], variable: &str| {
        let mut command = Command::new(&own);
        command.args(args).current_dir(folder.path());
        let output = command.env("TREELINED_CONFIG", variable).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    for (args, variable) in [
        (&["--config", "own.toml", "tui"][..], ""),
        (&["tui"], "own.toml"),
        (&["config"], "own.toml"),
    ] {
        let shown = shown(args, variable);
        assert!(
            shown.contains("idle_exit = \"420s\" # file"),
            "{args:?}: {shown}"
        );
    }
    assert!(!shown(&["tui"], "").contains("420s"));
}
