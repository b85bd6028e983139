//! The rows of sessions, and of the trash, as listed by a daemon.

use super::daemon::ChildDaemon;
use anyhow::Context;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::path::PathBuf;

/// The number of rows on a page of the list.
pub(super) const PAGE: usize = 1000;

/// A row of the list of sessions.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListedRow {
    pub session_id: String,
    pub path: PathBuf,
    pub name: Option<String>,
    pub first_message: String,
    #[serde(default)]
    pub cwd: String,
    /// The ids that the tool gave to the conversations from which the session was imported.
    #[serde(default)]
    pub native_ids: Vec<String>,
    /// The ids of the other sessions of the same conversation.
    #[serde(default)]
    pub same_conversation: Vec<String>,
    /// The time of the last activity; for a deleted session, the time of deletion.
    pub modified: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListPage {
    pub(super) sessions: Vec<ListedRow>,
    next_cursor: Option<String>,
}

/// All sessions; those with the latest activity come first.
pub(super) fn rows(daemon: &mut ChildDaemon) -> anyhow::Result<Vec<ListedRow>> {
    let mut rows = Vec::new();
    let mut cursor = None;
    loop {
        let params =
            json!({ "limit": PAGE, "cursor": cursor, "local": true, "archived": true }).to_string();
        let page = page(daemon, &params)?;
        rows.extend(page.sessions);
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => return Ok(rows),
        }
    }
}

pub(super) fn page(daemon: &mut ChildDaemon, params: &str) -> anyhow::Result<ListPage> {
    let answered = daemon.call("list_sessions", params)?;
    serde_json::from_str(answered.get()).context("read the answer to list_sessions")
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TrashRow {
    pub(super) session_id: String,
    pub(super) name: Option<String>,
    pub(super) first_message: String,
    #[serde(default)]
    pub(super) native_ids: Vec<String>,
    pub(super) cwd: String,
    pub(super) trashed_path: String,
    pub(super) deleted_at: String,
    /// The number of entries that only this file has.
    #[serde(default)]
    pub(super) lost: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TrashPage<R> {
    sessions: Vec<R>,
    next_cursor: Option<String>,
}

/// The deleted sessions; those that were deleted last come first.
pub(super) fn trashed<R: DeserializeOwned>(daemon: &mut ChildDaemon) -> anyhow::Result<Vec<R>> {
    let mut trashed = Vec::new();
    let mut cursor = None;
    loop {
        let params = json!({ "cursor": cursor }).to_string();
        let answered = daemon.call("list_trash", &params)?;
        let page: TrashPage<R> =
            serde_json::from_str(answered.get()).context("understand list_trash")?;
        trashed.extend(page.sessions);
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(trashed);
        }
    }
}

/// The deleted sessions as rows from which a person can choose.
pub(super) fn deleted(daemon: &mut ChildDaemon) -> anyhow::Result<Vec<ListedRow>> {
    let rows: Vec<TrashRow> = trashed(daemon)?;
    Ok(rows.iter().map(TrashRow::listed).collect())
}

impl TrashRow {
    pub(super) fn listed(&self) -> ListedRow {
        ListedRow {
            session_id: self.session_id.clone(),
            path: self.trashed_path.clone().into(),
            name: self.name.clone(),
            first_message: self.first_message.clone(),
            cwd: self.cwd.clone(),
            native_ids: self.native_ids.clone(),
            same_conversation: Vec::new(),
            modified: self.deleted_at.clone(),
        }
    }
}
