//! Reads sessions through the daemon: finds the session that the user names, its entries and its records.

use crate::record::{Record, TYPE, When};
use anyhow::{Context, bail};
use serde_json::Value;
use std::path::Path;
use treelined_client::{
    Client, Entry, ErrorKind, ListSessionsResult, OpenMode, Session, TreeFilter, TreeNode,
};

/// The number of rows in one answer of the daemon.
const ROWS: u64 = 200;
/// The fewest characters of the beginning of an id.
const FEWEST: usize = 4;
/// The most bytes of entries in one answer of the daemon.
const PAGE: u64 = 1 << 20;

/// An open session.
pub struct Opened {
    pub client: Client,
    pub id: String,
    pub cwd: String,
    pub leaf: Option<String>,
}

/// Opens a session by its id, the beginning of its id, or its file. Without a name, opens the newest session of the
/// folder.
pub async fn open(
    client: &Client,
    named: Option<&str>,
    folder: &Path,
    mode: OpenMode,
) -> anyhow::Result<Opened> {
    if let Some(named) = named {
        let call = match Path::new(named).is_absolute() {
            true => client.open_session().path(named),
            false => client.open_session().session_id(named),
        };
        match call.mode(mode.clone()).await {
            Err(error) if error.is(ErrorKind::SessionNotFound) => {}
            opened => return Ok(Opened::of(client, opened?.session)),
        }
    }
    let id = find(client, named, folder).await?;
    let call = client.open_session().session_id(&id);
    Ok(Opened::of(client, call.mode(mode).await?.session))
}

/// The id of the only session whose id begins with `named`. Without a name, the id of the newest session of the
/// folder.
async fn find(client: &Client, named: Option<&str>, folder: &Path) -> anyhow::Result<String> {
    let mut cursor = None::<String>;
    let mut found: Vec<String> = Vec::new();
    loop {
        let mut call = client.list_sessions().limit(ROWS);
        if let Some(cursor) = &cursor {
            call = call.cursor(cursor);
        }
        let page: ListSessionsResult = call.await?;
        for row in page.sessions {
            match named {
                Some(named) if named.len() >= FEWEST && row.session_id.starts_with(named) => {
                    found.push(row.session_id);
                }
                None if Path::new(&row.cwd)
                    .canonicalize()
                    .is_ok_and(|cwd| cwd == folder) =>
                {
                    return Ok(row.session_id);
                }
                _ => {}
            }
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    match (named, found.as_slice()) {
        (Some(_), [id]) => Ok(id.clone()),
        (Some(named), []) => bail!("no session {named}; `treelined list --all` shows them"),
        (Some(named), _) => bail!("several sessions begin with {named}; name one by its whole id"),
        (None, _) => bail!(
            "no session of {}; name one with --session",
            folder.display()
        ),
    }
}

impl Opened {
    pub fn of(client: &Client, session: Session) -> Opened {
        Opened {
            client: client.with_session(&session.session_id),
            id: session.session_id,
            cwd: session.cwd,
            leaf: session.leaf_id,
        }
    }

    /// The id of an entry that a person names by its id, its label, or the beginning of its id, in this order, like in
    /// all commands of treelined. Without a name, the id of the leaf.
    pub async fn entry(&self, named: Option<&str>) -> anyhow::Result<String> {
        let Some(named) = named else {
            let leaf = self.leaf.clone();
            return leaf.context("the session has no entries yet");
        };
        match self.client.get_entry(named).await {
            Err(error) if error.is(ErrorKind::EntryNotFound) => {}
            Err(error) => return Err(error.into()),
            Ok(found) => return Ok(found.entry.id().to_owned()),
        }
        let has_label = |row: &TreeNode| row.label.as_deref() == Some(named.trim());
        let labelled = self.rows(TreeFilter::LabeledOnly, has_label).await?;
        if let Some(id) = only(named, "have the label", &labelled)? {
            return Ok(id);
        }
        // A long id is shown without its end, with `…` in its place.
        let beginning = named.trim_end_matches('…');
        if beginning.chars().count() >= FEWEST {
            let begins = |row: &TreeNode| row.id.starts_with(beginning);
            let begun = self.rows(TreeFilter::All, begins).await?;
            if let Some(id) = only(beginning, "have ids that begin with", &begun)? {
                return Ok(id);
            }
        }
        bail!(
            "no entry {named:?}: name one by its id, the beginning of it ({FEWEST} characters or more) or its label; \
             `treelined tree --ids` shows them"
        )
    }

    /// The ids of the rows of a filter, archived branches included, that fit.
    async fn rows(
        &self,
        filter: TreeFilter,
        fits: impl Fn(&TreeNode) -> bool,
    ) -> anyhow::Result<Vec<String>> {
        let (mut ids, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let call = self.client.get_tree().filter(filter.clone());
            let mut call = call.archived(true).limit(ROWS);
            if let Some(cursor) = cursor.take() {
                call = call.cursor(cursor);
            }
            let page = call.await?;
            let found = page.nodes.into_iter().filter(&fits);
            ids.extend(found.map(|row| row.id));
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(ids);
            }
        }
    }

    async fn entries(
        &self,
        kind: Option<&str>,
        custom: Option<&str>,
        since: Option<&str>,
    ) -> anyhow::Result<Vec<Entry>> {
        let mut all: Vec<Entry> = Vec::new();
        let mut since = since.map(str::to_owned);
        loop {
            let mut call = self.client.get_entries().max_bytes(PAGE);
            if let Some(kind) = kind {
                call = call.types([kind]);
            }
            if let Some(custom) = custom {
                call = call.custom_type(custom);
            }
            if let Some(since) = &since {
                call = call.since(since);
            }
            let page = call.await?;
            all.extend(page.entries);
            since = page.next_cursor;
            if since.is_none() {
                return Ok(all);
            }
        }
    }

    /// The records of the session, in the order in which they were written.
    pub async fn records(&self) -> anyhow::Result<Vec<Record>> {
        let entries = self.entries(None, Some(TYPE), None).await?;
        Ok(entries.iter().filter_map(Record::of).collect())
    }

    /// The record about the files at an entry (files.md §4): the entry's own record, or the nearest one above. At a
    /// message of the user, it is the record from before the agent's answer.
    pub async fn nearest<'r>(
        &self,
        records: &'r [Record],
        entry: &str,
    ) -> anyhow::Result<Option<&'r Record>> {
        if let Some(own) = records.iter().find(|record| record.id == entry) {
            return Ok(Some(own));
        }
        if records.is_empty() {
            return Ok(None);
        }
        let mut above = Some(entry.to_owned());
        let mut is_first = true;
        while let Some(id) = above {
            let entry = self.client.get_entry(&id).await?.entry;
            let is_question = is_first && role(&entry).as_deref() == Some("user");
            let mut of = records
                .iter()
                .rev()
                .filter(|record| record.id == id || record.data.entry_id == id);
            if let Some(record) = of.find(|one| !is_question || one.data.when == When::Start) {
                return Ok(Some(record));
            }
            above = entry.parent_id().map(str::to_owned);
            is_first = false;
        }
        Ok(None)
    }

    /// The messages after an entry, in the order in which they were written.
    pub async fn messages(&self, since: Option<&str>) -> anyhow::Result<Vec<Entry>> {
        self.entries(Some("message"), None, since).await
    }
}

/// The only id; `None` if there is none. Fails if there are several.
fn only(named: &str, what: &str, ids: &[String]) -> anyhow::Result<Option<String>> {
    match ids {
        [] => Ok(None),
        [id] => Ok(Some(id.clone())),
        several => bail!(
            "{} entries {what} {named:?}; name one by its id: {}",
            several.len(),
            several.join(", ")
        ),
    }
}

/// The role of a message; `None` for other entries.
pub fn role(entry: &Entry) -> Option<String> {
    let body: Value = entry.json().parse().ok()?;
    let role = body.get("message")?.get("role")?.as_str()?;
    Some(role.to_owned())
}

/// Whether a message begins or ends a turn; `None` if the message is in the middle of a turn.
pub fn turn(entry: &Entry) -> Option<When> {
    let body: Value = entry.json().parse().ok()?;
    let message = body.get("message")?;
    match message.get("role")?.as_str()? {
        "user" => Some(When::Start),
        "assistant" => {
            let blocks = message.get("content").and_then(Value::as_array);
            let mut kinds = blocks
                .into_iter()
                .flatten()
                .filter_map(|block| block.get("type"));
            let calls = kinds.any(|kind| kind == "toolCall");
            let reason = message.get("stopReason").and_then(Value::as_str);
            // A message with calls does not end the turn, because results follow. It ends the turn if the turn was
            // aborted or failed.
            let is_over = matches!(reason, Some("aborted" | "error"));
            (!calls || is_over).then_some(When::End)
        }
        _ => None,
    }
}
