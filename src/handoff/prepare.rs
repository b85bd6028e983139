//! Makes a new session of an agent, without its files.

use crate::place::{FOLDER, NewFile};
use crate::record::Record;
use crate::text;
use crate::writers::{self, NewSession, Store};
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use treelined_core::error::{Error, Kind, Result};
use treelined_core::id::Source;
use treelined_files::os::file;
use treelined_import::Tool;
use treelined_import::importer::discover;
use treelined_import::neutral::{Losses, NeutralPath, Options, PathMessage, tokens_of};

/// The longest argument that a prompt may be, in bytes: systems end arguments at 128 KiB.
const MAX_ARGUMENT: usize = 96 << 10;
/// The largest settings of an agent that are read, in bytes.
const MAX_SETTINGS: u64 = 1 << 20;

/// A conversation to be handed over.
pub struct Request<'a> {
    /// `None`: any other agent, by a text.
    pub tool: Option<Tool>,
    pub session_id: &'a str,
    pub name: Option<&'a str>,
    /// The working directory of the new session.
    pub cwd: &'a str,
    pub path: Vec<PathMessage>,
    /// The text that stands for what was before the path.
    pub summary: Option<&'a str>,
    /// The summary of the branch that is left.
    pub learned: Option<&'a str>,
    /// The number of turns, the last ones.
    pub last: Option<usize>,
    pub keeps_thoughts: bool,
    /// The most tokens; 0 takes any number.
    pub limit: u64,
    pub session_dir: &'a Path,
    pub source: &'a dyn Source,
    /// The variables of the environment.
    pub environment: &'a dyn Fn(&str) -> Option<OsString>,
}

/// A new session of an agent, without its files.
pub struct Prepared {
    /// Of the continuation: 16 hexadecimal digits.
    pub id: String,
    pub native_id: Option<String>,
    pub files: Vec<NewFile>,
    /// Programs to run in the working directory, the agent last.
    pub steps: Vec<Vec<String>>,
    pub cwd: String,
    pub prompt: Option<String>,
    /// The handoff for any other agent.
    pub text: Option<String>,
    pub messages: u64,
    pub tokens: u64,
    pub losses: Losses,
    /// `data.continuation` of the record, an object of raw JSON.
    pub record: Vec<u8>,
    /// The version of the agent that was tested.
    pub tested: Option<&'static str>,
}

/// Fails with `invalidParams` for a working directory of an agent that is missing and for a path without an answer, with
/// `contextTooLarge`, and with `pathDenied` if the agent's folder is not known or is a relative path.
pub fn prepare(mut request: Request<'_>) -> Result<Prepared> {
    let cwd = match request.tool {
        Some(_) => folder(request.cwd)?,
        // Nothing is run.
        None => request.cwd.to_owned(),
    };
    let options = Options {
        tool: request.tool,
        last: request.last,
        keeps_thoughts: request.keeps_thoughts,
        summary: request.summary,
    };
    let path = NeutralPath::of(std::mem::take(&mut request.path), options);
    if path.last_entry().is_none() {
        let reason = "names a place before the first answer of a model: begin with the text in the agent itself";
        return Err(Error::invalid_params("entryId", reason));
    }
    let tokens = path.tokens() + request.learned.map_or(0, tokens_of);
    check_limit(tokens, request.limit)?;
    let (id, _) = request.source.random().as_u64_pair();
    let mut prepared = Prepared {
        id: format!("{id:016x}"),
        native_id: None,
        files: Vec::new(),
        steps: Vec::new(),
        prompt: first_words(request.learned, path.prompt.as_deref()),
        text: None,
        messages: path.messages.len() as u64,
        tokens,
        losses: path.losses.clone(),
        record: Vec::new(),
        tested: None,
        cwd,
    };
    match request.tool {
        Some(tool) => write(tool, &request, &path, &mut prepared)?,
        None => {
            let (title, prompt) = (title(&request), prepared.prompt.as_deref());
            prepared.text = Some(text::handoff(&path, title, request.session_id, prompt));
        }
    }
    Ok(prepared)
}

fn title<'a>(request: &Request<'a>) -> &'a str {
    request.name.unwrap_or("a conversation of treelined")
}

/// Writes the session of an agent.
fn write(
    tool: Tool,
    request: &Request<'_>,
    path: &NeutralPath,
    prepared: &mut Prepared,
) -> Result<()> {
    let folder = request.session_dir.join(FOLDER);
    let agent = discover::store(tool, request.environment);
    let settings = agent.as_ref().zip(writers::settings(tool));
    let settings = settings.and_then(|(folder, name)| settings_in(&folder.join(name)));
    let mut written = writers::write(
        tool,
        &NewSession {
            path,
            cwd: &prepared.cwd,
            title: title(request),
            session_id: request.session_id,
            now: request.source.now_ms(),
            source: request.source,
            store: Store {
                agent,
                own: &folder,
            },
            settings: settings.as_deref().unwrap_or_default(),
        },
    )?;
    // `last` may leave the summary out.
    let summary = request.summary.filter(|_| path.begins_with_summary());
    let record = Record {
        id: &prepared.id,
        session_id: request.session_id,
        entry_id: path.last_entry().unwrap_or_default(),
        tool,
        native_id: written.native_id.as_deref(),
        path: written.files.first().map(|file| &*file.path),
        cwd: &prepared.cwd,
        from: path
            .first_entry()
            .filter(|_| request.last.is_some() || request.summary.is_some()),
        summary,
        keeps_thoughts: request.keeps_thoughts,
        messages: &path.messages,
    };
    prepared.record = record.json();
    let said = prepared.prompt.as_deref().map(|prompt| {
        let path = folder.join(format!("{}.prompt.md", prepared.id));
        argument(prompt, path, &mut written.files)
    });
    prepared.steps = (written.steps)(said.as_deref());
    prepared.native_id = written.native_id;
    prepared.files = written.files;
    prepared.tested = Some(writers::tested(tool));
    Ok(())
}

/// The text of an agent's settings; `None` without a regular file of at most [`MAX_SETTINGS`] bytes.
fn settings_in(path: &Path) -> Option<String> {
    // People keep their settings elsewhere, and link to them.
    let file = file::open_regular(&std::fs::canonicalize(path).ok()?).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > MAX_SETTINGS {
        return None;
    }
    let mut text = String::new();
    file.take(MAX_SETTINGS).read_to_string(&mut text).ok()?;
    Some(text)
}

/// A prompt as an argument; one that is too long is in a file.
fn argument(prompt: &str, path: PathBuf, files: &mut Vec<NewFile>) -> String {
    match prompt.len() {
        // Agents take a dash for the beginning of an option.
        0..=MAX_ARGUMENT if prompt.starts_with('-') => format!(" {prompt}"),
        0..=MAX_ARGUMENT => prompt.to_owned(),
        _ => {
            let said = format!("Read {} and go on", path.display());
            let bytes = prompt.as_bytes().to_vec();
            files.push(NewFile { path, bytes });
            said
        }
    }
}

/// The working directory without links, as programs that run in it see it.
fn folder(cwd: &str) -> Result<String> {
    let refused = |reason: String| Err(Error::invalid_params("cwd", &reason));
    if !Path::new(cwd).is_absolute() {
        return refused(format!("is not absolute: {cwd:?}"));
    }
    let found: Option<PathBuf> = std::fs::canonicalize(cwd).ok().filter(|path| path.is_dir());
    match found.as_deref().map(Path::to_str) {
        Some(Some(path)) => Ok(path.to_owned()),
        Some(None) => refused("is not Unicode".to_owned()),
        None => refused(format!(
            "names a folder that does not exist: {cwd:?}; `mkdir -p` makes it, or name another one"
        )),
    }
}

fn check_limit(tokens: u64, limit: u64) -> Result<()> {
    if limit == 0 || tokens <= limit {
        return Ok(());
    }
    let message = format!("the conversation has about {tokens} tokens, and the limit is {limit}");
    let details = serde_json::json!({ "tokens": tokens, "limit": limit });
    Err(Error::new(Kind::ContextTooLarge, message).with_details(details))
}

/// The first words of the new session: the summary of the branch that is left, then the question that has no answer.
fn first_words(learned: Option<&str>, question: Option<&str>) -> Option<String> {
    let learned = learned.map(|learned| {
        format!(
            "Another way was tried from here and left. What was learned there:\n\n{}",
            // An argument ends at a NUL.
            learned.trim().replace('\0', "\u{fffd}")
        )
    });
    match (learned, question) {
        (Some(learned), Some(question)) => Some(format!("{learned}\n\n---\n\n{question}")),
        (learned, question) => learned.or_else(|| question.map(str::to_owned)),
    }
}
