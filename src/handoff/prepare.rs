//! Prepares a new session of an agent. Its files are not made yet.

use crate::place::{FOLDER, NewFile};
use crate::record::Record;
use crate::text;
use crate::writers::{self, NewSession, Store};
use serde_json::json;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use treelined_core::error::{Error, Kind, Result};
use treelined_core::id::Source;
use treelined_files::os::file;
use treelined_import::Tool;
use treelined_import::importer::discover;
use treelined_import::neutral::{
    Losses, Message, NeutralPath, Options, Part, PathMessage, tokens_of,
};

/// The longest prompt that is passed as an argument, in bytes. Systems limit an argument to 128 KiB.
const MAX_ARGUMENT: usize = 96 << 10;
/// The longest title that is made from a prompt, in characters.
const MAX_TITLE: usize = 72;
/// The largest settings file of an agent that is read, in bytes.
const MAX_SETTINGS: u64 = 1 << 20;

/// A conversation to hand over.
pub struct Request<'a> {
    /// The agent; `None` makes a text for any other agent.
    pub tool: Option<Tool>,
    pub session_id: &'a str,
    pub name: Option<&'a str>,
    /// The working directory of the new session.
    pub cwd: &'a str,
    pub path: Vec<PathMessage>,
    /// A text that is handed over in place of the messages before the path.
    pub summary: Option<&'a str>,
    /// The summary of the branch that the conversation leaves.
    pub learned: Option<&'a str>,
    /// The number of turns at the end of the path that are handed over; `None` for all.
    pub last: Option<usize>,
    pub keeps_thoughts: bool,
    /// The most tokens; 0 means no limit.
    pub limit: u64,
    pub session_dir: &'a Path,
    pub source: &'a dyn Source,
    /// Looks up an environment variable.
    pub environment: &'a dyn Fn(&str) -> Option<OsString>,
}

/// A prepared session. Its files are not made yet.
pub struct Prepared {
    /// The id of the continuation: 16 hexadecimal digits.
    pub id: String,
    pub native_id: Option<String>,
    pub files: Vec<NewFile>,
    /// The commands to run in the working directory. The last one starts the agent.
    pub steps: Vec<Vec<String>>,
    pub cwd: String,
    pub prompt: Option<String>,
    /// The text of the conversation, if it is for any other agent.
    pub text: Option<String>,
    pub messages: u64,
    pub tokens: u64,
    pub losses: Losses,
    /// `data.continuation` of the leaf record: an object of raw JSON.
    pub record: Vec<u8>,
    /// The version of the agent with which its writer was tested.
    pub tested: Option<&'static str>,
}

/// Prepares a new session. Fails with `invalidParams` if the working directory of an agent is missing, or the path
/// has no answer. Fails with `contextTooLarge` above the limit, and with `pathDenied` if the agent's folder is not
/// known or is a relative path.
pub fn prepare(mut request: Request<'_>) -> Result<Prepared> {
    let cwd = match request.tool {
        Some(_) => folder(request.cwd)?,
        // No program runs in the directory, so it may be missing.
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
        return Err(no_conversation(request.tool, &cwd));
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
            let (title, prompt) = (title(&request, &path), prepared.prompt.as_deref());
            prepared.text = Some(text::handoff(&path, title, request.session_id, prompt));
        }
    }
    Ok(prepared)
}

/// The error for a path on which no model has answered.
fn no_conversation(tool: Option<Tool>, cwd: &str) -> Error {
    let agent = tool.map_or("the agent", Tool::name);
    let message = format!(
        "no model has answered yet, so there is no conversation to hand over: start {agent} in {cwd}, and give it the prompt"
    );
    let details = json!({"field": "entryId", "reason": "no model has answered before this entry"});
    Error::new(Kind::InvalidParams, message).with_details(details)
}

/// The name of the session, else the beginning of the last prompt, which is different for the branches of a tree.
fn title<'a>(request: &Request<'a>, path: &'a NeutralPath) -> &'a str {
    let last = || path.messages.iter().rev().find_map(asked);
    let name = request.name.or_else(last);
    name.unwrap_or("a conversation of treelined")
}

/// The beginning of the first line of a prompt.
fn asked(message: &Message) -> Option<&str> {
    let Message::User(user) = message else {
        return None;
    };
    let texts = user.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        Part::Image { .. } => None,
    });
    let mut lines = texts.flat_map(str::lines).map(str::trim);
    let line = lines.find(|line| !line.is_empty() && !user.is_summary)?;
    let end = line.char_indices().nth(MAX_TITLE).map(|(end, _)| end);
    end.map_or(Some(line), |end| line.get(..end))
}

/// Makes the files, commands and record of a session for an agent.
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
            title: title(request, path),
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
    // With `last`, the path may not begin with the summary.
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

/// The text of an agent's settings. `None` if the file is not regular, or has more than [`MAX_SETTINGS`] bytes.
fn settings_in(path: &Path) -> Option<String> {
    // Users often replace the settings file by a link to a file elsewhere, so links are followed.
    let file = file::open_regular(&std::fs::canonicalize(path).ok()?).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > MAX_SETTINGS {
        return None;
    }
    let mut text = String::new();
    file.take(MAX_SETTINGS).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The argument for a prompt. A prompt that is too long goes into a new file, and the argument asks the agent to read
/// this file.
fn argument(prompt: &str, path: PathBuf, files: &mut Vec<NewFile>) -> String {
    match prompt.len() {
        // An agent would take a text that begins with a dash for an option.
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

/// The working directory with symbolic links resolved, as programs in it see it.
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

/// The first prompt of the new session: the summary of the branch that the conversation leaves, and the user's last
/// message if it has no answer.
fn first_words(learned: Option<&str>, question: Option<&str>) -> Option<String> {
    let learned = learned.map(|learned| {
        format!(
            "Another way was tried from here and left. What was learned there:\n\n{}",
            // An argument cannot contain NUL.
            learned.trim().replace('\0', "\u{fffd}")
        )
    });
    match (learned, question) {
        (Some(learned), Some(question)) => Some(format!("{learned}\n\n---\n\n{question}")),
        (learned, question) => learned.or_else(|| question.map(str::to_owned)),
    }
}
