//! `treelined import --hook`: stores a request to import the conversation of a tool whose turn has ended, and starts a
//! process in the background that imports it. The tool waits for neither of them, and failures are not reported to the
//! tool.

use super::failure::{ShellError, warn};
use super::options::Options;
use crate::wiring::secrets;
use anyhow::{Context, bail};
use std::ffi::OsString;
use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use treelined_core::error::{Error, Kind};
use treelined_files::os::program::start_detached;
use treelined_files::os::ready;
use treelined_files::store::Store;
use treelined_import::Tool;
use treelined_import::importer::hook;

/// The longest wait for the first byte of the input, and the longest time for the rest of the input. On a busy machine
/// an agent may write late.
const PATIENCE: Duration = Duration::from_secs(1);
/// The longest pause within the input, since some agents do not close it.
const PAUSE: Duration = Duration::from_millis(120);
/// The agent waits for this pause and for the start of two processes, together a fifth of a second at most.
const _: () = assert!(PAUSE.as_millis() <= 120);
/// How long the process in the background waits until another import ends.
const TURN: Duration = Duration::from_secs(10);

/// Whether the command line is the call of a hook. If so, the exit code is always 0, since some tools interpret any
/// other code as a request to continue.
pub(super) fn is_hook(words: impl IntoIterator<Item = OsString>) -> bool {
    let mut is_import = false;
    words.into_iter().any(|word| {
        is_import |= word == "import";
        let word = word.to_string_lossy();
        is_import && (word == "--hook" || word.starts_with("--hook="))
    })
}

/// Requests the import. `argument` is the input of the hook, if the input is not on stdin.
pub(super) fn run(options: &Options, tool: Tool, argument: Option<&PathBuf>) -> anyhow::Result<()> {
    let session_dir = options.config()?.daemon.session_dir;
    let requested = request(options, &session_dir, tool, argument);
    requested.inspect_err(|error| note(&session_dir, tool.name(), error))
}

fn request(
    options: &Options,
    session_dir: &Path,
    tool: Tool,
    argument: Option<&PathBuf>,
) -> anyhow::Result<()> {
    let said = match argument {
        Some(argument) => argument.as_os_str().as_encoded_bytes().to_vec(),
        None => heard()?,
    };
    hook::request(session_dir, tool, &said)?;
    let mut arguments = options.as_arguments();
    arguments.extend(["import", "--requested"].map(OsString::from));
    let nothing = File::open("/dev/null").context("open /dev/null")?;
    start_detached(&arguments, &nothing).context("start the import in the background")
}

/// Reads the input of the hook from stdin.
fn heard() -> anyhow::Result<Vec<u8>> {
    let patience = match std::io::stdin().is_terminal() {
        true => PAUSE,
        false => PATIENCE,
    };
    let mut until = Instant::now() + patience;
    let mut end = None;
    let mut stdin = std::io::stdin().lock();
    let (mut said, mut block) = (Vec::new(), vec![0; 64 << 10]);
    // The block is larger than the buffer of `stdin`, so no read leaves bytes in that buffer, where `is_readable` would
    // not see them.
    while said.len() <= hook::MAX_INPUT {
        let left = until.saturating_duration_since(Instant::now());
        if !ready::is_readable(std::io::stdin(), left).context("wait for stdin")? {
            break;
        }
        let read = stdin.read(&mut block).context("read stdin")?;
        let new = block.get(..read).unwrap_or_default();
        if new.is_empty() {
            break;
        }
        said.extend_from_slice(new);
        let now = Instant::now();
        until = (now + PAUSE).min(*end.get_or_insert(now + PATIENCE));
    }
    if said.is_empty() {
        bail!("the hook has no input on stdin");
    }
    Ok(said)
}

/// Makes the imports that hooks have requested, in the background process.
pub(super) fn import(options: &Options) -> anyhow::Result<()> {
    let store = Store::new(options.config()?.daemon.session_dir);
    note_all(&store, hook::take(&store, TURN, &secrets::redact));
    Ok(())
}

/// At the end of an import: makes the imports that hooks requested while that import was running.
pub(super) fn take_over(options: &Options) -> anyhow::Result<()> {
    let store = Store::new(options.config()?.daemon.session_dir);
    let taken = hook::take(&store, Duration::ZERO, &secrets::redact);
    match taken {
        // The background process of a hook is making them already.
        Err(error) if error.kind == Kind::ImportBusy => {}
        taken => note_all(&store, taken),
    }
    Ok(())
}

/// Writes the failures to the log of hooks.
fn note_all(store: &Store, taken: treelined_core::error::Result<Vec<Error>>) {
    let failures = taken.unwrap_or_else(|error| vec![error]);
    for failure in failures {
        note(store.path(), "import", &failure.into());
    }
}

fn note(session_dir: &Path, who: &str, error: &anyhow::Error) {
    let message = ShellError::of(error).message;
    if let Err(error) = hook::log::note(session_dir, &format!("{who}: {message}")) {
        let file = session_dir.join(hook::log::PATH);
        warn(&format!("{}: {error}", file.display()), "");
    }
}
