//! Runs a program of the user, with its arguments and without a shell. The input goes to stdin, the output comes from
//! stdout; time and size are limited, and the environment is small. A program that another user could change is
//! refused.

pub use super::failure::Failure;
use super::unix::{group, process, safety};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

pub use super::unix::safety::check_file;

/// A program with its arguments and its environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executable {
    /// The path of the program, and its arguments, which are passed unchanged.
    pub argv: Vec<String>,
    pub environment: Environment,
}

/// A program with limits, which runs until it exits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    pub executable: Executable,
    pub timeout: Duration,
    /// The longest output, in bytes.
    pub max_output_bytes: usize,
}

/// Selects the environment variables that a program gets besides the `USUAL` ones. Other variables are left out,
/// since they may contain secrets of other programs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// The names of variables to pass.
    pub named: Vec<String>,
    /// The names of variables that contain keys. They are passed only if they are in `named` too.
    pub keys: Vec<String>,
}

/// Variables that every program gets; a name that ends with `*` is a prefix.
const USUAL: [&str; 11] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_*",
    "TZ",
    "TMPDIR",
    "XDG_*",
    "TREELINED_*",
];

impl Environment {
    /// The variables of this process that are passed.
    pub(super) fn variables(&self) -> Vec<(OsString, OsString)> {
        self.of(std::env::vars_os())
    }

    /// The variables of `all` that are passed.
    fn of(&self, all: impl Iterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
        all.filter(|(name, _)| name.to_str().is_some_and(|name| self.passes(name)))
            .collect()
    }

    fn passes(&self, name: &str) -> bool {
        let is_usual = |usual: &&str| match usual.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == *usual,
        };
        let is_in = |names: &[String]| names.iter().any(|known| known == name);
        is_in(&self.named) || (USUAL.iter().any(is_usual) && !is_in(&self.keys))
    }
}

impl Executable {
    /// The name of the program for users: its file name without folders.
    pub fn name(&self) -> &str {
        let path = self.argv.first().map(Path::new);
        let name = path.and_then(Path::file_name);
        name.and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// Fails if the program cannot be started, or if another user could change it: the file itself, each argument that
    /// names a file by an absolute path, and the folders and links in the paths of these files.
    pub fn check(&self) -> Result<(), Failure> {
        for (index, argument) in self.argv.iter().enumerate() {
            let path = Path::new(argument);
            if index == 0 {
                if !path.is_absolute() {
                    let why = format!("{argument} is not an absolute path");
                    return Err(Failure::Unsafe(why));
                }
                check_file(path)?;
                let metadata = path.metadata().map_err(Failure::NotStarted)?;
                if !safety::is_executable(&metadata) {
                    let denied = io::Error::from(io::ErrorKind::PermissionDenied);
                    return Err(Failure::NotStarted(denied));
                }
            } else if path.is_absolute() && path.is_file() {
                check_file(path)?;
            }
        }
        Ok(())
    }
}

impl Program {
    /// The name of the program for users: its file name without folders.
    pub fn name(&self) -> &str {
        self.executable.name()
    }

    /// Runs the program in its own process group, with `input` as its stdin, and returns its stdout; `heard` receives
    /// the output as it arrives. Returns after the program has exited and closed its stdout. Its stderr is discarded.
    /// Dropping the future, or exceeding a limit, kills the group. The files of the program are checked at each run,
    /// since they may have changed.
    pub async fn run(
        &self,
        input: impl AsyncRead + Unpin + Send,
        heard: &(dyn Fn(&[u8]) + Send + Sync),
    ) -> Result<Vec<u8>, Failure> {
        let (program, arguments) = self
            .executable
            .argv
            .split_first()
            .ok_or_else(|| Failure::NotStarted(io::ErrorKind::InvalidInput.into()))?;
        self.executable.check()?;
        let mut command = Command::new(program);
        group::lead(&mut command);
        let child = command
            .args(arguments)
            .env_clear()
            .envs(self.executable.environment.variables())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(Failure::NotStarted)?;
        let mut group = ProcessGroup(child);
        let talk = group.talk(input, heard, self.max_output_bytes);
        match tokio::time::timeout(self.timeout, talk).await {
            Ok(output) => output,
            Err(_) => Err(Failure::TimedOut(self.timeout)),
        }
    }
}

/// The file of this program, even if another file has replaced it at its path.
#[cfg(target_os = "linux")]
#[allow(clippy::unnecessary_wraps, reason = "it can fail on other systems")]
pub(super) fn this_program() -> io::Result<PathBuf> {
    Ok(PathBuf::from("/proc/self/exe"))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn this_program() -> io::Result<PathBuf> {
    std::env::current_exe()
}

/// Whether a program is a file in one of the folders of `path`, which has the form of the variable `PATH`.
pub fn is_on_path(program: &str, path: &OsStr) -> bool {
    let mut found = std::env::split_paths(path).map(|folder| folder.join(program).metadata());
    found.any(|metadata| metadata.is_ok_and(|metadata| safety::is_executable(&metadata)))
}

/// The hidden command that leaves the terminal and runs this program without waiting for it.
pub const DETACH_COMMAND: &str = "detach";

/// Runs this program with these arguments and with this file as stdin, and does not wait for it. The new process is
/// not a child of this process, and keeps none of its streams open.
pub fn start_detached(arguments: &[OsString], stdin: &File) -> io::Result<()> {
    let status = std::process::Command::new(this_program()?)
        .args([DETACH_COMMAND, "--"])
        .args(arguments)
        .stdin(stdin.try_clone()?)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    match status.success() {
        true => Ok(()),
        false => Err(io::Error::other("a process did not start")),
    }
}

/// Leaves the terminal and runs this program with these arguments, without waiting for it.
pub fn detach(arguments: &[OsString]) -> io::Result<()> {
    process::leave_terminal();
    let mut command = std::process::Command::new(this_program()?);
    command.args(arguments).spawn()?;
    Ok(())
}

/// A child that leads its own process group. Unless the child has exited, dropping this kills the whole group.
struct ProcessGroup(Child);

impl ProcessGroup {
    async fn talk(
        &mut self,
        mut input: impl AsyncRead + Unpin + Send,
        heard: &(dyn Fn(&[u8]) + Send + Sync),
        max_output_bytes: usize,
    ) -> Result<Vec<u8>, Failure> {
        let (stdin, stdout) = (self.0.stdin.take(), self.0.stdout.take());
        let write = async move {
            if let Some(mut stdin) = stdin {
                // The program may exit without reading its input.
                let _unread = tokio::io::copy(&mut input, &mut stdin).await;
            }
        };
        let read = async move {
            let mut output = Vec::new();
            let Some(mut stdout) = stdout else {
                return Ok(output);
            };
            let mut block = vec![0; 16 << 10];
            loop {
                let read = stdout.read(&mut block).await.map_err(Failure::Unreadable)?;
                let new = block.get(..read).unwrap_or_default();
                if new.is_empty() {
                    return Ok(output);
                }
                if output.len() + read > max_output_bytes {
                    return Err(Failure::TooMuchOutput(max_output_bytes));
                }
                heard(new);
                output.extend_from_slice(new);
            }
        };
        // The result need not wait until the program has read its input.
        let mut write = std::pin::pin!(write);
        let mut read = std::pin::pin!(read);
        let output = tokio::select! {
            output = &mut read => output?,
            () = &mut write => read.await?,
        };
        let status = self.0.wait().await.map_err(Failure::Unreadable)?;
        match status.success() {
            true => Ok(output),
            false => Err(Failure::Exited(status.code())),
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // If there is no id, the process has exited and was waited for, so its id may belong to another process
        // now.
        if let Some(id) = self.0.id() {
            group::kill(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Programs once inherited the whole environment, including the keys of model providers. A rule by prefix is not
    /// enough, since a key may be in `TREELINED_KEY`.
    #[test]
    fn only_usual_and_named_variables_are_passed_and_no_keys() {
        let environment = Environment {
            named: vec!["MINE".into(), "NAMED_KEY".into()],
            keys: vec!["TREELINED_KEY".into(), "NAMED_KEY".into()],
        };
        let all = [
            "PATH",
            "HOME",
            "USER",
            "LOGNAME",
            "SHELL",
            "LANG",
            "LC_ALL",
            "TZ",
            "TMPDIR",
            "XDG_X",
            "TREELINED_LOG",
            "MINE",
            "NAMED_KEY",
            // The following variables are not passed.
            "TREELINED_KEY",
            "ANTHROPIC_API_KEY",
            "LD_PRELOAD",
            "PATHS",
            "LC",
            "MINE2",
            "http_proxy",
        ];
        let all = all.map(|name| (OsString::from(name), OsString::from("x")));
        let passed = environment.of(all.clone().into_iter());
        assert_eq!(passed, all.get(..13).unwrap());
    }
}
