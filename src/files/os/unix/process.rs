//! This process: its user, its limits and its terminal; and the other processes that have a file open.

use crate::os::status::Identity;
use rustix::process::{Resource, Rlimit, geteuid, getppid, getrlimit, getuid, setrlimit, setsid};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The program that opens a file in the user's browser.
pub const OPENER: &str = match cfg!(target_os = "macos") {
    true => "open",
    false => "xdg-open",
};

/// The user who started this process.
pub fn user() -> u32 {
    getuid().as_raw()
}

/// The user whose rights this process has.
pub fn effective_user() -> u32 {
    geteuid().as_raw()
}

/// The id of the process that started this one; `None` if that process has ended.
pub fn parent_id() -> Option<u32> {
    getppid().and_then(|parent| u32::try_from(parent.as_raw_pid()).ok())
}

/// The name of this machine.
pub fn host_name() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

/// Leaves the session of the terminal. Programs that this process starts later inherit no files other than the
/// standard streams.
pub(crate) fn leave_terminal() {
    // `setsid` fails for the leader of a process group. Such a process was started without a terminal.
    let _leader = setsid();
    // If a pipe of the client's parent stayed open, the reader of that pipe would wait for this process.
    close_fds::set_fds_cloexec(3, &[]);
}

/// Makes the program the leader of its own process group, so that an interrupt at the terminal does not end it.
pub fn lead_group(command: &mut Command) {
    command.process_group(0);
}

/// Replaces this process with the program of `command`. Returns only on failure, with the reason.
pub fn exec(command: &mut Command) -> io::Error {
    command.exec()
}

/// The most open descriptors of this process; `None` if there is no limit.
pub(crate) fn descriptor_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// Raises the limit of open descriptors of this process as far as the system allows.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "the limit of open files was not raised");
    }
}

/// The processes of other programs that have a file open for writing. Processes of this program are left out, since a
/// process of this program follows a replaced file. Processes of other users and machines are not visible. `None` if
/// the system does not provide this information.
#[cfg(target_os = "linux")]
pub fn writers_of(identity: Identity) -> Option<Vec<u32>> {
    // The simulation does not know which processes write, so each replaced file is followed for the whole time.
    if cfg!(feature = "simulation") {
        return None;
    }
    let processes = numbers(std::path::Path::new("/proc"))?;
    let program = |process: &str| {
        let path = std::fs::read_link(format!("/proc/{process}/exe")).ok()?;
        let name = path.file_name()?.to_string_lossy().into_owned();
        // If the executable was replaced by an update, its name has this ending.
        Some(name.trim_end_matches(" (deleted)").to_owned())
    };
    let ours = program("self");
    let others = processes.filter(|process| {
        let found = program(&process.to_string());
        found.is_none() || found != ours
    });
    let writes = |process: &u32| {
        let may_write = |descriptor: &u32| may_write(*process, *descriptor);
        open_descriptors(*process, identity).any(|descriptor| may_write(&descriptor))
    };
    Some(others.filter(writes).collect())
}

/// The other processes that have a file open, also the processes of this program. Processes of other users and machines
/// are not visible. `None` if the system does not provide this information.
#[cfg(target_os = "linux")]
pub fn openers_of(identity: Identity) -> Option<Vec<u32>> {
    #[cfg(feature = "simulation")]
    return Some(crate::os::simulated::openers_of(identity));
    #[cfg(not(feature = "simulation"))]
    real_openers_of(identity)
}

#[cfg(all(target_os = "linux", not(feature = "simulation")))]
fn real_openers_of(identity: Identity) -> Option<Vec<u32>> {
    let processes = numbers(std::path::Path::new("/proc"))?;
    let others = processes.filter(|process| *process != std::process::id());
    let opens = |process: &u32| open_descriptors(*process, identity).next().is_some();
    Some(others.filter(opens).collect())
}

#[cfg(not(target_os = "linux"))]
pub fn writers_of(_identity: Identity) -> Option<Vec<u32>> {
    None
}

#[cfg(not(target_os = "linux"))]
pub fn openers_of(_identity: Identity) -> Option<Vec<u32>> {
    None
}

/// The names in a folder that are numbers; `None` if it cannot be read.
#[cfg(target_os = "linux")]
fn numbers(folder: &std::path::Path) -> Option<impl Iterator<Item = u32> + use<>> {
    let entries = std::fs::read_dir(folder).ok()?;
    Some(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()))
}

/// The descriptors under which a process has this file open.
#[cfg(target_os = "linux")]
fn open_descriptors(process: u32, identity: Identity) -> impl Iterator<Item = u32> {
    use std::os::unix::fs::MetadataExt;
    let folder = format!("/proc/{process}/fd");
    let descriptors = numbers(std::path::Path::new(&folder));
    let is_of_file = move |descriptor: &u32| {
        let status = std::fs::metadata(format!("{folder}/{descriptor}"));
        status.is_ok_and(|status| {
            let found = Identity {
                device: status.dev(),
                inode: status.ino(),
            };
            found == identity
        })
    };
    descriptors.into_iter().flatten().filter(is_of_file)
}

/// Whether a process has more than read access to the file under this descriptor.
#[cfg(target_os = "linux")]
fn may_write(process: u32, descriptor: u32) -> bool {
    let info = std::fs::read_to_string(format!("/proc/{process}/fdinfo/{descriptor}"));
    let info = info.unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    // O_RDONLY is zero. A mode that cannot be read counts as writing.
    flags.is_none_or(|flags| flags & 0o3 != 0)
}
