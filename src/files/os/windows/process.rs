//! This process: its user, its limits and its terminal.

use super::group::NEW_PROCESS_GROUP;
use crate::os::file::Identity;
use std::io;
use std::os::windows::process::CommandExt;
use std::process::Command;

/// The program that opens a file in the user's browser.
pub(crate) const OPENER: &str = "explorer";

/// A number that no user has: users have none.
pub(crate) fn user() -> u32 {
    u32::MAX
}

/// As [`user`].
pub(crate) fn effective_user() -> u32 {
    u32::MAX
}

/// `None`: the standard library does not tell.
pub(crate) fn parent_id() -> Option<u32> {
    None
}

/// The name of this machine.
pub(crate) fn host_name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_else(|_| "windows".to_owned())
}

/// Does nothing: a program inherits only the files that it is given.
pub(crate) fn leave_terminal() {}

/// Lets the program lead a process group of its own: an interrupt at the terminal does not end it.
pub(crate) fn lead_group(command: &mut Command) {
    command.creation_flags(NEW_PROCESS_GROUP);
}

/// Runs the program of `command` and ends with its exit code. Returns only the reason why it was not started.
pub(crate) fn exec(command: &mut Command) -> io::Error {
    match command.status() {
        Ok(status) => std::process::exit(status.code().unwrap_or(1)),
        Err(error) => error,
    }
}

/// `None`: the memory limits them.
pub(crate) fn descriptor_limit() -> Option<u64> {
    None
}

/// Does nothing, as there is no limit.
pub(crate) fn raise_descriptor_limit() {}

/// `None`: the system does not tell.
pub(crate) fn writers_of(_identity: Identity) -> Option<Vec<u32>> {
    None
}
