//! Running a program of the user's: argv without a shell, input on stdin, an answer on stdout, within
//! a time and a size. Knows neither what is said nor what it is for.

use rustix::process::{Pid, Signal, kill_process_group};
use std::fmt;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

/// What is run, and what it may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The program and its arguments, passed as they are.
    pub argv: Vec<String>,
    pub timeout: Duration,
    /// Longest output, in bytes.
    pub max_output_bytes: usize,
}

/// Why a program gave no answer.
#[derive(Debug)]
pub enum Failure {
    NotStarted(io::Error),
    TimedOut(Duration),
    /// Bytes that were allowed.
    TooMuchOutput(usize),
    Unreadable(io::Error),
    /// `None`: ended by a signal.
    Exited(Option<i32>),
    /// A file of it that others may write, and why that is so.
    Unsafe(String),
}

impl Program {
    /// Its name for people: the file's, without folders.
    pub fn name(&self) -> &str {
        let path = self.argv.first().map(Path::new);
        let name = path.and_then(Path::file_name);
        name.and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// Runs it in a process group of its own and gives its stdout; `heard` gets that as it comes.
    /// Dropping the future kills the group, as do a time or a size that is over. Its stderr goes
    /// nowhere. It is done when it has exited and closed its stdout.
    pub async fn run(
        &self,
        input: &[u8],
        heard: &(dyn Fn(&[u8]) + Send + Sync),
    ) -> Result<Vec<u8>, Failure> {
        let (program, arguments) = self
            .argv
            .split_first()
            .ok_or_else(|| Failure::NotStarted(io::ErrorKind::InvalidInput.into()))?;
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(Failure::NotStarted)?;
        let mut group = Group(child);
        let talk = group.talk(input, heard, self.max_output_bytes);
        match tokio::time::timeout(self.timeout, talk).await {
            Ok(output) => output,
            Err(_) => Err(Failure::TimedOut(self.timeout)),
        }
    }

    /// Fails if somebody else could change what is run: each argument that names a file by an absolute
    /// path, the program itself first, and the folders above.
    pub fn check_files(&self) -> Result<(), Failure> {
        for (index, argument) in self.argv.iter().enumerate() {
            let path = Path::new(argument);
            if index == 0 && !path.is_absolute() {
                let why = format!("{argument} is not an absolute path");
                return Err(Failure::Unsafe(why));
            }
            if path.is_absolute() && (index == 0 || path.exists()) {
                check_file(path)?;
            }
        }
        Ok(())
    }
}

/// Fails if others may write the file, or put another one in its place.
pub fn check_file(path: &Path) -> Result<(), Failure> {
    let real = path.canonicalize().map_err(Failure::NotStarted)?;
    let own = rustix::process::geteuid().as_raw();
    for (level, at) in real.ancestors().enumerate() {
        let metadata = at.metadata().map_err(Failure::NotStarted)?;
        let mode = metadata.permissions().mode();
        let is_sticky_folder = level > 0 && mode & 0o1000 != 0;
        if mode & 0o022 != 0 && !is_sticky_folder {
            let why = format!("{} can be written by others", at.display());
            return Err(Failure::Unsafe(why));
        }
        if metadata.uid() != own && metadata.uid() != 0 {
            let why = format!("{} belongs to somebody else", at.display());
            return Err(Failure::Unsafe(why));
        }
    }
    Ok(())
}

/// A child at the head of its process group, which is killed with it unless it has exited.
struct Group(Child);

impl Group {
    async fn talk(
        &mut self,
        input: &[u8],
        heard: &(dyn Fn(&[u8]) + Send + Sync),
        max_output_bytes: usize,
    ) -> Result<Vec<u8>, Failure> {
        let (stdin, stdout) = (self.0.stdin.take(), self.0.stdout.take());
        let write = async move {
            if let Some(mut stdin) = stdin {
                // A program need not read what it is told.
                let _unread = stdin.write_all(input).await;
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
        // An answer need not wait for the rest to be read.
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

impl Drop for Group {
    fn drop(&mut self) {
        // No id: it has exited and been waited for, and the number may be another's by now.
        let id = self.0.id().and_then(|id| i32::try_from(id).ok());
        if let Some(id) = id.and_then(Pid::from_raw) {
            let _gone = kill_process_group(id, Signal::KILL);
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::NotStarted(error) => write!(f, "it could not be started: {error}"),
            Failure::TimedOut(timeout) => write!(f, "it took longer than {timeout:?}"),
            Failure::TooMuchOutput(max) => write!(f, "it wrote more than {max} bytes"),
            Failure::Unreadable(error) => write!(f, "its output could not be read: {error}"),
            Failure::Exited(Some(code)) => write!(f, "it exited with code {code}"),
            Failure::Exited(None) => write!(f, "it was ended by a signal"),
            Failure::Unsafe(why) => f.write_str(why),
        }
    }
}
