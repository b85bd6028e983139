//! The connections that watch the list of sessions, and the messages that they get.

use super::connection::Connection;
use super::session_files::SessionFiles;
use super::session_row::{is_of, shortened_row, shown_row};
use crate::stdio::Class;
use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};
use tokio::runtime::Handle;
use treelined_core::error::Result;
use treelined_core::json;
use treelined_core::name;
use treelined_core::team::TeamList;
use treelined_files::store::catalogue::{CatalogueRow, Rows};
use treelined_files::store::watch_folder::FolderWatch;
use treelined_wire::methods::Notification;
use treelined_wire::notification::SessionsChanged;

/// The most bytes of one notification.
pub(super) const MAX_BYTES: usize = 1 << 20;

/// The connections that watch the list.
pub(crate) struct ListWatch {
    pub(super) files: Arc<SessionFiles>,
    pub(super) state: Mutex<WatchState>,
    /// Whether a connection watches.
    pub(super) is_active: AtomicBool,
    /// Whether a look is scheduled.
    pub(super) is_due: AtomicBool,
    pub(super) runtime: OnceLock<Handle>,
    /// The pause before the next look, in milliseconds.
    pub(super) rest: AtomicU64,
}

impl ListWatch {
    pub(super) fn new(files: &Arc<SessionFiles>) -> Arc<Self> {
        Arc::new(Self {
            files: Arc::clone(files),
            state: Mutex::default(),
            is_active: AtomicBool::new(false),
            is_due: AtomicBool::new(false),
            runtime: OnceLock::new(),
            rest: AtomicU64::new(0),
        })
    }
}

#[derive(Default)]
pub(super) struct WatchState {
    pub(super) watchers: Vec<ListWatcher>,
    pub(super) folder: Option<FolderWatch>,
    /// Whether a task looks at the list of the team.
    pub(super) has_team_task: bool,
}

pub(crate) struct ListWatcher {
    pub(super) connection: Arc<Connection>,
    /// The directory of the watched sessions, normalized; `None` for all directories.
    pub(super) cwd: Option<String>,
    /// Whether the client wants archived sessions. Otherwise a session that is archived counts as removed.
    pub(super) archived: bool,
    /// The rows that the client knows.
    pub(super) known: Rows,
    /// The list of the team that the client may know; `None` before the first look.
    pub(super) team: Option<Arc<TeamList>>,
}

/// The messages for watchers with equal filters that know the same rows.
pub(super) struct MadeMessages {
    pub(super) known: Rows,
    pub(super) cwd: Option<String>,
    archived: bool,
    limit: usize,
    messages: Vec<Vec<u8>>,
}

impl ListWatcher {
    /// A watch of the sessions in a working directory, or of all sessions.
    pub(crate) fn new(connection: &Arc<Connection>, cwd: Option<&str>, archived: bool) -> Self {
        Self {
            connection: Arc::clone(connection),
            cwd: cwd.map(name::directory),
            archived,
            known: Arc::default(),
            team: None,
        }
    }

    pub(super) fn tell(&mut self, now: &Rows, made: &mut Vec<MadeMessages>) -> Result<()> {
        if !self.connection.wants(SessionsChanged::NAME) {
            return Ok(());
        }
        let limit = MAX_BYTES.min(self.connection.client_frame_bytes() / 2);
        let is_limited = self.connection.rights().is_limited();
        let known = std::mem::replace(&mut self.known, Arc::clone(now));
        let is_equal = |made: &&MadeMessages| {
            !is_limited
                && Arc::ptr_eq(&made.known, &known)
                && made.cwd == self.cwd
                && made.archived == self.archived
                && made.limit == limit
        };
        let messages = match made.iter().find(is_equal) {
            Some(made) => made.messages.clone(),
            None => {
                let messages = changes(&known, now, self, limit)?;
                if !is_limited {
                    made.push(MadeMessages {
                        known,
                        cwd: self.cwd.clone(),
                        archived: self.archived,
                        limit,
                        messages: messages.clone(),
                    });
                }
                messages
            }
        };
        for message in messages {
            self.connection.send(message, Class::Keep);
        }
        Ok(())
    }
}

/// The notifications of the differences between two lists. Each has about `limit` bytes at most.
fn changes(before: &Rows, now: &Rows, of: &ListWatcher, limit: usize) -> Result<Vec<Vec<u8>>> {
    let (mut new, mut old) = differences(before, now);
    let takes = of.connection.rights().directory_test();
    let is_of = |row: &&CatalogueRow| {
        let header = row.listing.header.as_ref();
        let cwd = header.map(|header| header.cwd.as_str()).unwrap_or_default();
        is_of(&row.listing, of.cwd.as_deref()) && takes.as_ref().is_none_or(|takes| takes(cwd))
    };
    let is_shown = |row: &&CatalogueRow| of.archived || !row.marks.is_archived;
    new.retain(is_of);
    old.retain(is_of);
    let (rows, archived): (Vec<&CatalogueRow>, Vec<_>) = new.into_iter().partition(is_shown);
    let gone = old.into_iter().chain(archived);
    let mut removed: Vec<&str> = gone.filter_map(id_of).collect();
    // A session whose file has moved is not removed.
    removed.retain(|id| !rows.iter().any(|row| id_of(row) == Some(*id)));
    removed.sort_unstable();
    let mut messages = Vec::new();
    let mut message = MessageInProgress::new(limit);
    for row in rows {
        let mut shown = shown_row(row)?;
        if shown.len() > limit {
            shown = shortened_row(row, limit)?;
        }
        if message.is_full(shown.len()) {
            messages.extend(std::mem::replace(&mut message, MessageInProgress::new(limit)).end());
        }
        message.add_row(&shown);
    }
    for id in removed {
        if message.is_full(id.len()) {
            messages.extend(std::mem::replace(&mut message, MessageInProgress::new(limit)).end());
        }
        message.removed.push(id.to_owned());
        message.bytes += id.len();
    }
    messages.extend(message.end());
    Ok(messages)
}

/// The rows that only the second list has, in order, and the rows of the first list whose file is not in the second
/// list.
fn differences<'r>(
    before: &'r [Arc<CatalogueRow>],
    now: &'r [Arc<CatalogueRow>],
) -> (Vec<&'r CatalogueRow>, Vec<&'r CatalogueRow>) {
    let (mut new, mut old) = (Vec::new(), Vec::new());
    let (mut before, mut now) = (before.iter().peekable(), now.iter().peekable());
    loop {
        match (before.peek(), now.peek()) {
            (Some(was), Some(is)) if Arc::ptr_eq(was, is) => {
                before.next();
                now.next();
            }
            (Some(was), is) if is.is_none_or(|is| was.key() <= is.key()) => {
                old.extend(before.next().map(|row| &**row));
            }
            (_, Some(_)) => new.extend(now.next().map(|row| &**row)),
            (_, None) => break,
        }
    }
    let paths: HashSet<&Path> = new.iter().map(|row| &*row.listing.path).collect();
    old.retain(|row| !paths.contains(&*row.listing.path));
    (new, old)
}

fn id_of(row: &CatalogueRow) -> Option<&str> {
    row.listing.header.as_ref().map(|header| header.id.as_str())
}

/// A notification that is being made. Rows are added to it.
pub(super) struct MessageInProgress {
    limit: usize,
    bytes: usize,
    /// The rows, with commas between them.
    changed: Vec<u8>,
    removed: Vec<String>,
}

impl MessageInProgress {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            bytes: 0,
            changed: Vec::new(),
            removed: Vec::new(),
        }
    }

    fn is_full(&self, more: usize) -> bool {
        self.bytes > 0 && self.bytes + more > self.limit
    }

    fn add_row(&mut self, row: &[u8]) {
        if !self.changed.is_empty() {
            self.changed.push(b',');
        }
        self.changed.extend_from_slice(row);
        self.bytes += row.len() + 1;
    }

    /// The JSON of the message; `None` if it has no changes.
    fn end(self) -> Option<Vec<u8>> {
        if self.bytes == 0 {
            return None;
        }
        Some(self.json(b""))
    }

    /// The JSON of a message that says that the list of the team has changed.
    pub(super) fn with_team(self) -> Vec<u8> {
        self.json(b",\"team\":true")
    }

    fn json(&self, more: &[u8]) -> Vec<u8> {
        let mut out = b"{\"jsonrpc\":\"2.0\",\"method\":\"".to_vec();
        out.extend_from_slice(SessionsChanged::NAME.as_bytes());
        out.extend_from_slice(b"\",\"params\":{\"changed\":[");
        out.extend_from_slice(&self.changed);
        out.extend_from_slice(b"],\"removed\":[");
        for (index, id) in self.removed.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            json::push_string(&mut out, id);
        }
        out.push(b']');
        out.extend_from_slice(more);
        out.extend_from_slice(b"}}");
        out
    }
}
