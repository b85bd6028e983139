//! What a list of sessions shows of each, found by reading its file once (storage.md §5).
//!
//! Owns the row of `list_sessions`; the catalogue that keeps rows is the store's.

use crate::error::{Kind as ErrorKind, Result};
use crate::flow::navigate;
use crate::log::Opened;
use crate::log::body::Bodies;
use crate::log::file::{Location, status_of};
use crate::log::handle::Access;
use crate::log::ingest::Header;
use crate::log::lines::Lines;
use crate::log::scan::{self, Kind, Line, Role};
use crate::timestamp::{self, Millis};
use crate::tree::{Node, Tree};
use std::path::PathBuf;

/// Characters of the first message that are kept for the list.
const FIRST_MESSAGE_CHARS: usize = 200;
/// How far into a file its header is looked for, in lines.
const HEADER_LINES: usize = 16;
/// Bytes read at a time while it is looked for.
const HEADER_CHUNK: usize = 4096;

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    pub path: PathBuf,
    /// `None` for a file that is no session; `problem` says why.
    pub header: Option<Header>,
    pub name: Option<String>,
    /// Unix milliseconds.
    pub created: Millis,
    /// Last activity in Unix milliseconds: the latest timestamp of an entry, else the creation.
    pub modified: Millis,
    /// `message` entries of all branches and roles.
    pub message_count: u64,
    /// The first user message that has text, cut and on one line.
    pub first_message: String,
    /// Why the file is no session.
    pub problem: Option<ErrorKind>,
}

impl Listing {
    /// Of what opening the file at `location` gave. An error only if it cannot be read at all.
    pub fn of(location: &Location, opened: Result<Opened>) -> Result<Self> {
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) if error.kind == ErrorKind::HeaderMissing => {
                return Self::of_broken(location, error.kind);
            }
            Err(error) => return Err(error),
        };
        let tree = &opened.tree;
        let header = opened.log.header().cloned();
        let started = header
            .as_ref()
            .and_then(|header| header.timestamp.as_deref());
        let created = started.and_then(timestamp::parse);
        let times = tree.entries().filter_map(|node| tree.timestamp(node));
        let modified = times.max().or(created).unwrap_or_default();
        let messages = || {
            tree.entries()
                .filter(|node| tree.kind(*node) == Kind::Message)
        };
        Ok(Self {
            path: location.path(),
            name: tree.name().map(str::to_owned),
            created: created.unwrap_or(modified),
            modified,
            message_count: messages().count() as u64,
            first_message: first_message(tree, &opened.log.bodies(), messages())?,
            header,
            problem: None,
        })
    }

    fn of_broken(location: &Location, problem: ErrorKind) -> Result<Self> {
        let file = location.folder.file(&location.name, Access::Read)?;
        let modified = status_of(&file).map_or(0, |status| status.modified.0 * 1000);
        Ok(Self {
            path: location.path(),
            header: None,
            name: None,
            created: modified,
            modified,
            message_count: 0,
            first_message: String::new(),
            problem: Some(problem),
        })
    }
}

fn first_message(
    tree: &Tree,
    bodies: &Bodies,
    messages: impl Iterator<Item = Node>,
) -> Result<String> {
    for node in messages.filter(|node| tree.role(*node) == Role::User) {
        let entry = bodies.entry(&bodies.fetch(tree, node)?)?;
        let text = navigate::draft(&entry).text;
        let line = one_line(&text);
        if !line.is_empty() {
            return Ok(line);
        }
    }
    Ok(String::new())
}

fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ").chars().take(FIRST_MESSAGE_CHARS).collect()
}

/// The session id in a file's header, without reading further.
pub fn header_id(location: &Location) -> Option<String> {
    let file = location.folder.file(&location.name, Access::Read).ok()?;
    let mut lines = Lines::in_chunks(&file, 0, HEADER_CHUNK);
    for _ in 0..HEADER_LINES {
        let line = lines.next().ok()??;
        let bytes = line.bytes?;
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        match scan::scan_line(bytes) {
            Ok(Line::Header(header)) => return header.id.map(std::borrow::Cow::into_owned),
            Ok(Line::Entry(_)) => return None,
            Ok(Line::Blank) | Err(_) => {}
        }
    }
    None
}
