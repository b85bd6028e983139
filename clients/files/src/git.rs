//! Runs `git` on a shadow repository. The user's repository and configuration have no influence on it (files.md §2).

use anyhow::{Context, anyhow, bail};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// The longest time that one call of git may take.
const TIMEOUT: Duration = Duration::from_secs(300);
/// The most bytes of a call's stderr that are kept.
const MAX_SAID: u64 = 16 << 10;
/// The most bytes of a call's output. It must be enough for the names of [`crate::snapshot::MAX_FILES`] files.
const MAX_ANSWER: u64 = 256 << 20;

/// The most bytes of output when the user's repository is asked.
const MAX_LINE: u64 = 64 << 10;

/// Settings that overrule all configuration files.
const SETTINGS: [&str; 18] = [
    // These names are special only on other systems.
    "core.protectNTFS=false",
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.autocrlf=false",
    "core.safecrlf=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.fileMode=true",
    "core.symlinks=true",
    "core.ignoreCase=false",
    "core.precomposeUnicode=false",
    "core.sparseCheckout=false",
    "core.splitIndex=false",
    "core.fsync=all",
    "core.fsyncMethod=batch",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.addEmbeddedRepo=false",
];

/// The content of `info/attributes`: git saves and restores all files byte for byte.
const ATTRIBUTES: &str = "* -text -filter -ident !working-tree-encoding\n";

/// A shadow repository, which only this program uses, and the folder that it saves.
#[derive(Debug, Clone)]
pub struct Shadow {
    /// The folder of the repository itself.
    pub dir: PathBuf,
    /// The folder whose files are saved.
    pub root: PathBuf,
}

impl Shadow {
    /// Opens the repository in `dir` for the folder `root`. It is made if it is missing.
    pub fn open(dir: PathBuf, root: PathBuf) -> anyhow::Result<Shadow> {
        let shadow = Shadow { dir, root };
        let attributes = shadow.dir.join("info/attributes");
        // After a crash, the attributes may be missing or incomplete.
        if std::fs::read(&attributes).ok().as_deref() != Some(ATTRIBUTES.as_bytes()) {
            let mut command = plain_git();
            command.args(["init", "--quiet", "--bare", "--object-format=sha256"]);
            command.args(["--template=", "--initial-branch=none"]);
            command.arg(&shadow.dir);
            run(command, Input::None, MAX_ANSWER)?;
            std::fs::create_dir_all(shadow.dir.join("info"))?;
            // The attributes are written last, so a repository that has them is complete.
            std::fs::write(attributes, ATTRIBUTES)?;
        }
        Ok(shadow)
    }

    /// A call of git whose working tree is the folder.
    pub fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = plain_git();
        let with = |name: &str, path: &Path| {
            let mut arg = OsString::from(name);
            arg.push(path);
            arg
        };
        command.arg(with("--git-dir=", &self.dir));
        command.arg(with("--work-tree=", &self.root));
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        command.args([
            "-c",
            "user.name=treelined",
            "-c",
            "user.email=treelined@localhost",
        ]);
        // The folder of an old state may no longer exist.
        command.args(args).current_dir(match self.root.is_dir() {
            true => &self.root,
            false => &self.dir,
        });
        command
    }

    /// Runs a call and returns its output. Fails if the call fails, or takes too long.
    pub fn run<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
        input: Option<Vec<u8>>,
    ) -> anyhow::Result<Answer> {
        run(self.command(args), input.into(), MAX_ANSWER)
    }

    /// Runs a call that uses another index file.
    pub fn run_with_index(
        &self,
        args: &[&str],
        index: &Path,
        input: Option<Vec<u8>>,
    ) -> anyhow::Result<Vec<u8>> {
        let mut command = self.command(args);
        command.env("GIT_INDEX_FILE", index);
        Ok(run(command, input.into(), MAX_ANSWER)?.out)
    }

    /// Runs a call that has exit code 1 if it finds nothing; returns `None` in this case.
    pub fn find<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
        input: Vec<u8>,
    ) -> anyhow::Result<Vec<u8>> {
        let (status, answer) = call(self.command(args), Input::Bytes(input), MAX_ANSWER)?;
        match status.code() {
            Some(0 | 1) if answer.said.is_empty() => Ok(answer.out),
            _ => bail!("git failed: {status}: {}", answer.said),
        }
    }

    /// Runs a call whose input is a file.
    pub fn run_on<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
        file: File,
    ) -> anyhow::Result<Vec<u8>> {
        Ok(run(self.command(args), Input::File(file), MAX_ANSWER)?.out)
    }

    /// Runs a call whose output is one line.
    pub fn line<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
    ) -> anyhow::Result<String> {
        let answer = self.run(args, None)?;
        Ok(String::from_utf8(answer.out)?.trim_end().to_owned())
    }

    /// Starts a call. The caller writes its input and reads its output.
    pub fn spawn<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
    ) -> anyhow::Result<Child> {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(Stdio::null()).spawn().map_err(absent)
    }
}

/// The output of a call that has not failed.
pub struct Answer {
    pub out: Vec<u8>,
    /// The text on stderr: warnings.
    pub said: String,
}

/// The input of a call.
enum Input {
    None,
    Bytes(Vec<u8>),
    File(File),
}

impl From<Option<Vec<u8>>> for Input {
    fn from(bytes: Option<Vec<u8>>) -> Input {
        bytes.map_or(Input::None, Input::Bytes)
    }
}

/// A call of `git` without the user's environment variables and configuration.
fn plain_git() -> Command {
    let mut command = Command::new("git");
    without_variables(&mut command);
    command
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_ATTR_NOSYSTEM", "1")
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .env("GIT_NO_LAZY_FETCH", "1");
    command
}

fn without_variables(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.as_bytes().starts_with(b"GIT_") {
            command.env_remove(name);
        }
    }
    command
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("LC_ALL", "C");
}

/// Asks the user's own repository, with the user's configuration. Returns `None` if git answers that the value does
/// not exist.
pub fn ask_user(root: &Path, args: &[&str]) -> anyhow::Result<Option<Vec<u8>>> {
    let mut command = Command::new("git");
    without_variables(&mut command);
    command
        .arg("-C")
        .arg(root)
        .args(["-c", "core.fsmonitor=false"]);
    command.args(args);
    let (status, Answer { mut out, .. }) = call(command, Input::None, MAX_LINE)?;
    while out.last() == Some(&b'\n') {
        out.pop();
    }
    Ok((status.success() && !out.is_empty()).then_some(out))
}

/// Fails if git is not installed, or is too old to make a shadow repository.
pub fn check() -> anyhow::Result<()> {
    let mut command = plain_git();
    command.arg("version");
    let answer = run(command, Input::None, MAX_ANSWER)?;
    let version = String::from_utf8_lossy(&answer.out).into_owned();
    let mut numbers = version
        .split(|char: char| !char.is_ascii_digit())
        .filter_map(|word| word.parse::<u32>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) if (major, minor) >= (2, 36) => Ok(()),
        _ => bail!(
            "{} is too old; files are saved with git 2.36 or newer",
            version.trim()
        ),
    }
}

fn absent(error: io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::NotFound => anyhow!("git is not installed; install it to save files"),
        _ => anyhow!(error).context("start git"),
    }
}

fn run(command: Command, input: Input, most: u64) -> anyhow::Result<Answer> {
    let name = name(&command);
    let (status, answer) = call(command, input, most)?;
    match (status.success(), answer.said.is_empty()) {
        (true, _) => Ok(answer),
        (_, true) => bail!("git {name} failed: {status}"),
        (_, false) => bail!("git {name} failed: {}", answer.said),
    }
}

/// Runs a call, and returns its exit status and output, even if it fails.
fn call(mut command: Command, input: Input, most: u64) -> anyhow::Result<(ExitStatus, Answer)> {
    let name = name(&command);
    let (stdin, input) = match input {
        Input::None => (Stdio::null(), Vec::new()),
        Input::Bytes(bytes) => (Stdio::piped(), bytes),
        Input::File(file) => (file.into(), Vec::new()),
    };
    command.stdin(stdin);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(absent)?;
    if let Some(mut stdin) = child.stdin.take() {
        // If the call ends before it has read all input, it says the reason on stderr.
        thread::spawn(move || stdin.write_all(&input));
    }
    let (send, ended) = mpsc::channel();
    let said = child.stderr.take().map(|stderr| {
        thread::spawn(move || {
            let mut said = Vec::new();
            let mut stderr = stderr;
            let _part = (&mut stderr).take(MAX_SAID).read_to_end(&mut said);
            let _rest = io::copy(&mut stderr, &mut io::sink());
            said
        })
    });
    if let Some(stdout) = child.stdout.take() {
        thread::spawn(move || {
            let mut out = Vec::new();
            let read = stdout.take(most.saturating_add(1)).read_to_end(&mut out);
            let _gone = send.send(read.map(|_| out));
        });
    }
    let out = ended.recv_timeout(TIMEOUT);
    let is_whole = matches!(&out, Ok(Ok(out)) if out.len() as u64 <= most);
    if !is_whole {
        let _ended = child.kill();
    }
    let status = child.wait().context("wait for git")?;
    let said = said
        .and_then(|thread| thread.join().ok())
        .unwrap_or_default();
    let said = String::from_utf8_lossy(&said).trim().to_owned();
    match out {
        Err(_) => bail!("git {name} took over {} s", TIMEOUT.as_secs()),
        Ok(Err(error)) => Err(error).with_context(|| format!("read from git {name}")),
        Ok(Ok(_)) if !is_whole => bail!("git {name} answers with more than {most} bytes"),
        Ok(Ok(out)) => Ok((status, Answer { out, said })),
    }
}

/// The name of a call for error messages.
fn name(command: &Command) -> String {
    let words = command.get_args().map(OsStr::to_string_lossy);
    let mut words = words.skip_while(|word| word.starts_with('-') || word.contains('='));
    words.next().unwrap_or_default().into_owned()
}
