//! Finds the tool calls that read or changed a file.

use super::answers::{Facts, answer, budget};
use crate::clean::{Cleaner, inert};
use crate::history::{Failure, History, Result};
use crate::request::Query;
use crate::scope::Directories;
use crate::text::quoted;
use serde_json::Value;
use std::collections::HashSet;
use std::path::Path;
use treelined_client::{SearchField, SearchHit};

/// The most entries that one search reads.
const MOST_ENTRIES: usize = 60;
/// The most characters of a session's name.
const MAX_NAME: usize = 60;
/// The most bytes of a path, which is the limit of Linux.
const MAX_PATH: usize = 4096;

/// Parts of tool names, in small letters, that mean a change of a file.
const CHANGES: [&str; 8] = [
    "write", "edit", "patch", "replace", "create", "delete", "move", "insert",
];
const READS: [&str; 6] = ["read", "view", "cat", "open", "grep", "search"];

pub async fn files_history(history: &History, path: &str) -> Result<String> {
    let scope = history.scope();
    let Some(file) = scope.relative(path).filter(|file| !file.is_empty()) else {
        return Err(Failure(format!(
            "{} is not a file below {}; start this server with --all for other directories",
            inert(path),
            scope.path().unwrap_or_default()
        )));
    };
    let (hits, has_more) = calls_with(history, &file).await?;
    let directory = scope.path();
    let wanted = WantedFile::new(&file, directory.as_deref());
    let mut cleaner = history.cleaner();
    let mut directories = scope.directories();
    let (mut record, mut shown, mut read, room) = (String::new(), 0, 0, budget(None));
    let all = hits.len();
    for hit in hits.into_iter().take(MOST_ENTRIES) {
        let Ok(open) = history.open(Some(&hit.session_id)).await else {
            continue;
        };
        let (entry, cwd) = (open.client.get_entry(&hit.entry_id).await, open.cwd.clone());
        open.close().await?;
        read += 1;
        // A session that can no longer be read has no calls.
        let Ok(entry) = entry else { continue };
        let value: Value = entry.entry.json().parse().unwrap_or_default();
        let uses = uses(&value, &wanted, Path::new(&cwd), &mut directories);
        if uses.is_empty() {
            continue;
        }
        let said = use_text(&hit, &uses, &mut cleaner);
        if record.len() + said.len() > room && shown > 0 {
            read -= 1;
            break;
        }
        record += &said;
        shown += 1;
    }
    let mut facts = Facts::default();
    facts.add("shown", shown);
    let left_out = all - read;
    if left_out > 0 || has_more {
        facts.add("leftOut", format!("at least {}", left_out.max(1)));
    }
    Ok(answer(facts, &record, cleaner))
}

/// The calls that have the path of a file, then the calls that have only its name. A call names a file by the path from
/// the directory of its session, which may be another directory. The boolean says whether the daemon has more such
/// calls.
async fn calls_with(history: &History, file: &str) -> Result<(Vec<SearchHit>, bool)> {
    let readable = history.readable().await?;
    let (mut hits, mut has_more) = (Vec::<SearchHit>::new(), false);
    let name = name_of(file);
    for text in [file, name]
        .into_iter()
        .take(if name == file { 1 } else { 2 })
    {
        let query = Query {
            // A quotation mark would end the phrase.
            text: format!("\"{}\"", text.split('"').next().unwrap_or_default()),
            fields: vec![SearchField::ToolCalls],
            ..Query::default()
        };
        let found = history.find(&query, &readable, None).await?;
        has_more |= found.next_cursor.is_some();
        let known: HashSet<(String, String)> = hits.iter().map(names_of).collect();
        let new = found
            .hits
            .into_iter()
            .filter(|hit| !known.contains(&names_of(hit)));
        hits.extend(new);
    }
    Ok((hits, has_more))
}

fn names_of(hit: &SearchHit) -> (String, String) {
    (hit.session_id.clone(), hit.entry_id.clone())
}

/// The last part of a path.
fn name_of(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

fn use_text(hit: &SearchHit, uses: &[(&str, String)], cleaner: &mut Cleaner<'_>) -> String {
    let left = match hit.branch.on_active_path {
        true => "",
        false => ", a branch that was left",
    };
    let mut said: Vec<String> = uses
        .iter()
        .map(|(what, tool)| format!("{what} by {}", cleaner.word(tool)))
        .collect();
    said.dedup();
    format!(
        "\nentry {} of session {}, branch {}{left}, {}: {}\n{}",
        inert(&hit.entry_id),
        inert(&hit.session_id),
        inert(&hit.branch.tip_id),
        cleaner.word(&hit.at),
        said.join(", "),
        quoted(&format!(
            "session: {}",
            cleaner.cut_line(&hit.session_name, MAX_NAME)
        ))
    )
}

/// The accesses of a message to a file, each with its tool. `cwd` is the directory of the session.
fn uses(
    entry: &Value,
    wanted: &WantedFile<'_>,
    cwd: &Path,
    directories: &mut Directories<'_>,
) -> Vec<(&'static str, String)> {
    let content = entry.pointer("/message/content").and_then(Value::as_array);
    let calls = content.into_iter().flatten();
    let calls = calls.filter(|block| block.get("type").and_then(Value::as_str) == Some("toolCall"));
    let mut uses = Vec::new();
    for call in calls {
        let name = call.get("name").and_then(Value::as_str).unwrap_or_default();
        if call
            .get("arguments")
            .is_some_and(|value| names(value, wanted, cwd, directories))
        {
            uses.push((access(name), name.to_owned()));
        }
    }
    uses
}

fn access(tool: &str) -> &'static str {
    let tool = tool.to_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| tool.contains(part));
    match (has(&CHANGES), has(&READS)) {
        (true, _) => "changed",
        (_, true) => "read",
        _ => "named",
    }
}

/// Whether a text in this value names the file, by its absolute path or by its path from `cwd`.
fn names(
    value: &Value,
    wanted: &WantedFile<'_>,
    cwd: &Path,
    directories: &mut Directories<'_>,
) -> bool {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) if wanted.is_in(text, cwd, directories) => return true,
            Value::Array(items) => open.extend(items),
            Value::Object(members) => open.extend(members.values()),
            _ => {}
        }
    }
    false
}

/// The file whose history is asked for.
struct WantedFile<'f> {
    /// The path below the directory of the scope.
    path: &'f str,
    name: &'f str,
    /// The folder of the file, from the root and from the directory of the scope, each with a `/` at its end.
    folders: Vec<String>,
}

impl<'f> WantedFile<'f> {
    fn new(path: &'f str, scope: Option<&str>) -> Self {
        let name = name_of(path);
        let folder = path.strip_suffix(name).unwrap_or_default();
        let mut folders: Vec<String> = scope
            .map(|scope| format!("{scope}/{folder}"))
            .into_iter()
            .collect();
        folders.extend((!folder.is_empty()).then(|| folder.to_owned()));
        Self {
            path,
            name,
            folders,
        }
    }

    fn is_in(&self, text: &str, cwd: &Path, directories: &mut Directories<'_>) -> bool {
        let is_one = |c: char| c.is_alphanumeric() || "/._-~".contains(c);
        let whole = text.trim();
        if whole.len() <= MAX_PATH
            && whole.ends_with(self.name)
            && directories.have(&cwd.join(whole), self.path)
        {
            return true;
        }
        text.match_indices(self.name).any(|(at, _)| {
            let (before, rest) = text.split_at(at);
            let behind = rest.get(self.name.len()..).unwrap_or_default();
            // A full stop after the path may end a sentence.
            let mut behind = behind.chars();
            let ends = match (behind.next(), behind.next()) {
                (Some('.'), Some(next)) => !is_one(next),
                (Some(next), _) => next == '.' || !is_one(next),
                (None, _) => true,
            };
            // If the folder is absolute, it replaces the path of the directory.
            let folders = self.folders_at_end(before, cwd, is_one);
            ends && folders.into_iter().any(|folder| {
                let is_whole = folder.is_empty() || folder.ends_with('/');
                is_whole && directories.have(&cwd.join(folder).join(self.name), self.path)
            })
        })
    }

    /// The possible folders at the end of a text: the last characters that are usual in paths, the text after the last
    /// quotation mark, and the folder of the file itself. The last two are needed because a folder such as `my
    /// project/app/[id]` has other characters too.
    fn folders_at_end<'t>(
        &self,
        text: &'t str,
        cwd: &Path,
        is_one: impl Fn(char) -> bool,
    ) -> Vec<&'t str> {
        // A longer run of path characters is not a path.
        let start = text.len().saturating_sub(MAX_PATH + 1);
        let start = (start..=text.len()).find(|at| text.is_char_boundary(*at));
        let end = text.get(start.unwrap_or_default()..).unwrap_or_default();
        let mut chars = end.char_indices().rev();
        let usual = chars.find(|(_, c)| !is_one(*c));
        let usual = usual.map(|(at, c)| at + c.len_utf8());
        let mut folders = Vec::new();
        if end.len() <= MAX_PATH || usual.is_some() {
            folders.extend(end.get(usual.unwrap_or_default()..));
        }
        folders.extend(end.rfind(['"', '\'', '`']).and_then(|at| end.get(at + 1..)));
        let cwd = cwd.to_str().unwrap_or_default();
        let of_session = self
            .folders
            .first()
            .and_then(|folder| folder.strip_prefix(cwd));
        let of_session = of_session.and_then(|folder| folder.strip_prefix('/'));
        let own = self.folders.iter().map(String::as_str);
        for folder in own.chain(of_session.filter(|folder| !folder.is_empty())) {
            let before = end.strip_suffix(folder);
            if let Some(before) = before.filter(|before| !before.ends_with(&is_one)) {
                folders.extend(end.get(before.len()..));
            }
        }
        folders
    }
}
