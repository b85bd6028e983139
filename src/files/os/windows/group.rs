//! Process groups of programs.

use tokio::process::Command;

/// The flag of a process that gets no Ctrl-C of this one.
pub(super) const NEW_PROCESS_GROUP: u32 = 0x200;

/// Lets the program lead a process group of its own.
pub(crate) fn lead(command: &mut Command) {
    command.creation_flags(NEW_PROCESS_GROUP);
}

/// Kills nothing but the child, which is killed when it is dropped: the programs that it has started live on.
pub(crate) fn kill(_leader: u32) {}
