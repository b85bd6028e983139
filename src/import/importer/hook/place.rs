//! Finds the files of the conversation that a hook names. A file is accepted only if it is in a location where its
//! tool keeps conversations, and is neither a symbolic link nor a pipe.

use super::event::HookEvent;
use crate::importer::discover::{Environment, Home, homes_in};
use crate::importer::source::regular;
use std::fs;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};
use treelined_core::agent::Tool;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::timestamp;

/// The milliseconds of a day.
const DAY: i64 = 86_400_000;
/// A subagent's file belongs to the turn only if it was written at most this long ago.
const RECENT: Duration = Duration::from_secs(3_600);
/// The most files of Codex that are opened to find subagents. The latest files are opened first.
const MAX_LOOKED_INTO: usize = 64;
/// The number of bytes at the beginning of a rollout that are read. They name the rollout's parent.
const BEGINNING: u64 = 4_096;

/// The files to import: the file that the hook names, or the databases of a tool that has no such files. For Codex,
/// the files of subagents are added.
pub(super) fn files(
    tool: Tool,
    event: &HookEvent,
    environment: Environment<'_>,
) -> Result<Vec<PathBuf>> {
    let homes = homes_in(tool, environment);
    let databases = homes.iter().filter(|home| home.is_container());
    let databases: Vec<PathBuf> = databases.map(|home| home.path().to_owned()).collect();
    match (&event.transcript, &event.session) {
        _ if !databases.is_empty() => Ok(databases),
        (Some(transcript), _) => Ok(vec![within(&homes, transcript, environment)?]),
        (None, Some(session)) if tool == Tool::Codex => rollouts(&homes, session),
        _ => {
            let message = format!("a hook of {} must name its transcript_path", tool.name());
            Err(Error::new(Kind::InvalidParams, message))
        }
    }
}

/// The file with this path, if it has a conversation of the tool.
fn within(homes: &[Home], named: &str, environment: Environment<'_>) -> Result<PathBuf> {
    let refused = |reason: &str| {
        let message = format!("{named}: {reason}");
        Error::new(Kind::PathDenied, message)
    };
    let path = match (named.strip_prefix("~/"), environment("HOME")) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => PathBuf::from(named),
    };
    let is_plain = |part| !matches!(part, Component::ParentDir | Component::CurDir);
    if !path.is_absolute() || !path.components().all(is_plain) {
        return Err(refused("it is not an absolute path without `..`"));
    }
    let unread = |error: io::Error| refused(&format!("it cannot be read: {error}"));
    let metadata = fs::symlink_metadata(&path).map_err(unread)?;
    if !metadata.is_file() {
        return Err(refused("it is not a regular file"));
    }
    let real = fs::canonicalize(&path).map_err(unread)?;
    let is_here = |home: &Home| real.starts_with(home.path()) && home.has_source(&real);
    match homes.iter().any(is_here) {
        true => Ok(real),
        false => Err(refused("it is not where the tool keeps its conversations")),
    }
}

/// The rollouts of a Codex thread and of its subagents. The id of the thread has the time at which it began, and
/// rollouts are in a folder for each day. The neighbouring days are searched too, because the time zone of the machine
/// is not known.
fn rollouts(homes: &[Home], thread: &str) -> Result<Vec<PathBuf>> {
    let id = uuid::Uuid::try_parse(thread).ok();
    let began = id.and_then(|id| id.get_timestamp()).map(|at| at.to_unix());
    let Some(began) = began.and_then(|(seconds, _)| i64::try_from(seconds).ok()) else {
        let message = format!("{thread:?} is not the id of a thread of Codex");
        return Err(Error::new(Kind::InvalidParams, message));
    };
    let now = SystemTime::now();
    let since_1970 = now.duration_since(SystemTime::UNIX_EPOCH);
    let today = since_1970.map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(0));
    let around = |at: i64| [at - DAY, at, at + DAY].map(day);
    let mut days: Vec<PathBuf> = around(began * 1000).into_iter().collect();
    days.extend(around(today));
    days.sort();
    days.dedup();
    let (mut found, mut recent) = (Vec::new(), Vec::new());
    for home in homes {
        for day in &days {
            for file in regular_files(&home.path().join(day)) {
                let name = file.path.file_name().unwrap_or_default().to_string_lossy();
                if !home.has_source(&file.path) {
                    continue;
                }
                match name.contains(thread) {
                    true => found.push(file.path.clone()),
                    false => recent.push(file),
                }
            }
        }
    }
    if found.is_empty() {
        let message = format!("no rollout of the thread {thread} was found");
        return Err(Error::new(Kind::InvalidParams, message));
    }
    recent.retain(|file| now.duration_since(file.modified).unwrap_or_default() < RECENT);
    recent.sort_by_key(|file| std::cmp::Reverse(file.modified));
    let looked_into = recent.into_iter().take(MAX_LOOKED_INTO);
    let names_thread = |file: &Found| begins_with(&file.path, thread);
    found.extend(looked_into.filter(names_thread).map(|file| file.path));
    Ok(found)
}

/// The path `YYYY/MM/DD` for a time in Unix milliseconds.
pub(super) fn day(at: i64) -> PathBuf {
    let text = timestamp::format(at);
    text.split('T')
        .next()
        .unwrap_or_default()
        .split('-')
        .collect()
}

struct Found {
    path: PathBuf,
    modified: SystemTime,
}

fn regular_files(folder: &Path) -> impl Iterator<Item = Found> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        // This does not follow symbolic links.
        let metadata = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        Some(Found {
            path: entry.path(),
            modified: metadata.modified().ok()?,
        })
    })
}

/// Whether the beginning of a file contains this id.
pub(super) fn begins_with(path: &Path, id: &str) -> bool {
    let mut beginning = Vec::new();
    let opened = regular::open(path);
    let read = opened.and_then(|(file, _)| file.take(BEGINNING).read_to_end(&mut beginning));
    read.is_ok() && memchr::memmem::find(&beginning, id.as_bytes()).is_some()
}
