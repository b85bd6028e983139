//! The sessions that an agent may read, and those in which it may leave notes.

use crate::clean::{Cleaner, has_plain_ids};
use crate::conversations::Conversations;
use crate::finding::Findings;
use crate::request::Query;
use crate::scope::Scope;
use crate::text::Note;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::time::Duration;
use tokio::sync::{Mutex, MutexGuard};
use treelined_client::{
    Client, Entry, Error, ErrorKind, FamilyRow, ListSessionsResult, NearWords, OpenMode, SearchHit,
    SearchSyntax, Session, SessionRow, SessionSearchMode,
};
use treelined_redact::Redactor;

/// The most bytes of entries in one answer of the daemon.
const PAGE_BYTES: u64 = 32 << 10;
/// The most rows in one answer of the daemon, where all sessions are listed.
const ROWS: u64 = 200;
/// The most hits in one answer of the daemon.
const HITS: u64 = 200;
/// How often the program tries to write a note, if other writers are faster.
const ROUNDS: usize = 5;

/// A connection to a daemon, and the sessions in scope.
pub struct History {
    client: Client,
    scope: Scope,
    /// The id of the session in which the agent works.
    own: Option<String>,
    redactor: Redactor,
    /// The session that was read last. The session stays open, so that the next pages need not open it again. Only one
    /// call at a time uses the session.
    kept: Mutex<Option<String>>,
    /// The searches that can continue.
    pub findings: Mutex<Findings>,
}

/// A failure, in words for the model.
#[derive(Debug)]
pub struct Failure(pub String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure(error.to_string())
    }
}

pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// An open session. [`OpenSession::close`] ends its use.
pub struct OpenSession<'a> {
    /// The client for this session.
    pub client: Client,
    pub id: String,
    pub name: String,
    pub cwd: String,
    pub leaf: Option<String>,
    kept: MutexGuard<'a, Option<String>>,
}

impl History {
    pub fn new(client: Client, scope: Scope, own: Option<String>, redactor: Redactor) -> History {
        History {
            client,
            scope,
            own,
            redactor,
            kept: Mutex::new(None),
            findings: Mutex::new(Findings::default()),
        }
    }

    /// Ends the connection, and the daemon if this program has started it.
    pub async fn end(&self) -> anyhow::Result<()> {
        Ok(self.client.clone().close().await?)
    }

    /// A cleaner for the texts of one answer.
    pub fn cleaner(&self) -> Cleaner<'_> {
        Cleaner::new(&self.redactor)
    }

    /// Whether secrets are shown as they are.
    pub fn shows_secrets(&self) -> bool {
        self.redactor.keeps_text()
    }

    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The id of the agent's own session: the given session, else the newest session of the working directory.
    pub async fn own_session(&self) -> Result<String> {
        if let Some(id) = &self.own {
            return Ok(id.clone());
        }
        let mut cursor = None::<String>;
        let mut directories = self.scope.directories();
        loop {
            let page = self.page(None, ROWS, cursor).await?;
            let mut rows = page.sessions.into_iter();
            let newest = rows.find(|row| directories.is_own(&row.cwd));
            cursor = page.next_cursor;
            match newest {
                Some(row) => return Ok(row.session_id),
                None if cursor.is_some() => {}
                None => {
                    return Err(Failure(
                        "no session is here yet; name one by `session`, or ask list_sessions"
                            .to_owned(),
                    ));
                }
            }
        }
    }

    /// Opens a session for reading; `None`: the agent's own.
    pub async fn open(&self, id: Option<&str>) -> Result<OpenSession<'_>> {
        let id = self.named(id).await?;
        let mut kept = self.kept.lock().await;
        let mut session = self.opened(&id, OpenMode::Read).await?;
        if kept.as_deref() != Some(id.as_str()) {
            // This opens the session a second time. The first opening stays open.
            self.release(&mut kept).await?;
            session = self.opened(&id, OpenMode::Read).await?;
            *kept = Some(id);
        } else if session
            .path
            .as_ref()
            .is_some_and(|path| !Path::new(path).exists())
        {
            // Another client has deleted the session meanwhile, so it must not be read any more.
            self.close(&id).await?;
            self.release(&mut kept).await?;
            session = self.opened(&id, OpenMode::Read).await?;
        }
        self.in_scope(session, kept).await
    }

    /// Opens a session to write a note. The session is opened again, so that its leaf is the leaf of the file.
    async fn open_to_write(&self, id: Option<&str>) -> Result<OpenSession<'_>> {
        let id = self.named(id).await?;
        let mut kept = self.kept.lock().await;
        self.release(&mut kept).await?;
        let session = self.opened(&id, OpenMode::Write).await?;
        self.in_scope(session, kept).await
    }

    async fn named(&self, id: Option<&str>) -> Result<String> {
        match id {
            Some(id) => Ok(id.to_owned()),
            None => self.own_session().await,
        }
    }

    async fn opened(&self, id: &str, mode: OpenMode) -> Result<Session> {
        let call = self.client.open_session().session_id(id).mode(mode);
        Ok(call.await?.session)
    }

    async fn close(&self, id: &str) -> Result<()> {
        match self.client.with_session(id).close_session().await {
            // A session that another connection has deleted is closed already.
            Err(error) if !error.is(ErrorKind::SessionNotFound) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Closes the session that was read last.
    async fn release(&self, kept: &mut Option<String>) -> Result<()> {
        match kept.take() {
            Some(id) => self.close(&id).await,
            None => Ok(()),
        }
    }

    async fn in_scope<'a>(
        &'a self,
        session: Session,
        kept: MutexGuard<'a, Option<String>>,
    ) -> Result<OpenSession<'a>> {
        let open = OpenSession {
            client: self.client.with_session(&session.session_id),
            id: session.session_id,
            name: session.name.unwrap_or_default(),
            cwd: session.cwd,
            leaf: session.leaf_id,
            kept,
        };
        if self.scope.directories().are_with(&open.cwd) {
            return Ok(open);
        }
        let message = format!(
            "session {} is of another directory; start this server with --all to read it",
            open.id
        );
        open.close_after(Err(Failure(message))).await
    }

    /// Appends at the leaf of the file. Before each attempt the session is opened again. If another writer was faster,
    /// there is another attempt, since a note at the old position would move the conversation back to that position.
    pub async fn append<T, F, C>(&self, id: Option<&str>, append: F) -> Result<T>
    where
        F: Fn(Client, Option<String>) -> C,
        C: Future<Output = Result<T, Error>>,
    {
        for _round in 0..ROUNDS {
            let open = self.open_to_write(id).await?;
            let appended = append(open.client.clone(), open.leaf.clone()).await;
            open.close().await?;
            match appended {
                Err(error) if error.is(ErrorKind::LeafMoved) => {}
                appended => return Ok(appended?),
            }
        }
        Err(Failure(
            "others are writing to this session; try again".to_owned(),
        ))
    }

    /// At least `limit` sessions in scope, or all if there are fewer, and the cursor of the next page.
    pub async fn sessions(
        &self,
        query: Option<String>,
        limit: u64,
        mut cursor: Option<String>,
    ) -> Result<(Vec<SessionRow>, Option<String>)> {
        let mut rows = Vec::new();
        let mut directories = self.scope.directories();
        loop {
            let page = self.page(query.as_deref(), limit, cursor).await?;
            let in_scope = page.sessions.into_iter();
            rows.extend(in_scope.filter(|row| directories.are_with(&row.cwd)));
            cursor = page.next_cursor;
            if cursor.is_none() || rows.len() as u64 >= limit {
                return Ok((rows, cursor));
            }
        }
    }

    async fn page(
        &self,
        query: Option<&str>,
        limit: u64,
        cursor: Option<String>,
    ) -> Result<ListSessionsResult> {
        let mut call = self.client.list_sessions().limit(limit);
        if let Some(query) = query {
            call = call.query(query);
        }
        if let Some(cursor) = cursor {
            call = call.cursor(cursor);
        }
        Ok(call.await?)
    }

    /// A page of all sessions, with the archived ones.
    async fn page_of_all(&self, cursor: Option<String>) -> Result<ListSessionsResult> {
        let mut call = self.client.list_sessions().limit(ROWS).archived(true);
        if let Some(cursor) = cursor {
            call = call.cursor(cursor);
        }
        Ok(call.await?)
    }

    /// The rows of all sessions, in scope or not, with the archived ones.
    pub async fn rows(&self) -> Result<Vec<SessionRow>> {
        let (mut rows, mut cursor) = (Vec::new(), None);
        loop {
            let page = self.page_of_all(cursor).await?;
            rows.extend(page.sessions);
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(rows);
            }
        }
    }

    /// The sessions in scope that belong to the family of a session. A session without a file has no family.
    pub async fn family(&self, id: &str) -> Result<Vec<FamilyRow>> {
        let (mut rows, mut cursor) = (Vec::new(), None::<String>);
        let mut directories = self.scope.directories();
        loop {
            let mut call = self.client.get_family(id);
            if let Some(cursor) = cursor {
                call = call.cursor(cursor);
            }
            let page = match call.await {
                Err(error) if error.is(ErrorKind::SessionNotFound) => return Ok(Vec::new()),
                page => page?,
            };
            let in_scope = page.sessions.into_iter();
            rows.extend(in_scope.filter(|row| directories.are_with(&row.cwd)));
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(rows);
            }
        }
    }

    /// The files from which a session was imported, in scope or not.
    pub async fn sources(&self, id: &str) -> Result<Vec<String>> {
        let session = self.opened(id, OpenMode::Read).await?;
        let client = self.client.with_session(&session.session_id);
        let reports = client.import_report().await;
        self.close(&session.session_id).await?;
        let reports = reports?.imports.into_iter();
        let reports = reports.map(|import| import.report.parse().unwrap_or_default());
        Ok(reports.flat_map(|report| sources(&report)).collect())
    }

    /// The newest notes in the sessions of a directory and of the directories below it.
    pub async fn notes(&self, cwd: &str) -> Result<Vec<SearchHit>> {
        let call = self.client.search("").syntax(SearchSyntax::Filters);
        let call = call.r#type(Note::TYPE).cwd(cwd).limit(HITS);
        Ok(call.await?.hits)
    }

    /// The best entries for a question in the sessions of a directory and of the directories below it. Sessions that
    /// the index lacks are read as long as there is time.
    pub async fn best(&self, question: &str, cwd: &str, read: Duration) -> Result<Best> {
        let read = u64::try_from(read.as_millis()).unwrap_or(u64::MAX);
        let call = self.client.search(question).mode(SessionSearchMode::Ask);
        let found = call.cwd(cwd).limit(HITS).read_ms(read).await?;
        Ok(Best {
            hits: found.hits,
            is_behind: found.totals.unread.is_some(),
        })
    }

    /// The sessions that are in scope now. Archived sessions are included: they are hidden, not lost.
    pub async fn readable(&self) -> Result<Readable> {
        let mut readable = Readable {
            ids: HashSet::new(),
            conversations: Conversations::default(),
        };
        let mut directories = self.scope.directories();
        let mut cursor = None;
        loop {
            let page = self.page_of_all(cursor).await?;
            for row in page.sessions {
                if directories.are_with(&row.cwd) {
                    readable.conversations.add(&row);
                    readable.ids.insert(row.session_id);
                }
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(readable);
            }
        }
    }

    /// One page of the daemon's hits, without the hits that are out of scope.
    pub async fn find(
        &self,
        query: &Query,
        readable: &Readable,
        cursor: Option<String>,
    ) -> Result<Found> {
        let call = self.client.search(&query.text).limit(HITS);
        let mut call = call.syntax(SearchSyntax::Filters);
        match query.is_question {
            true => call = call.mode(SessionSearchMode::Ask),
            // Without redaction, an agent could find out a secret letter by letter from the hits.
            false if !self.shows_secrets() => call = call.redact(true),
            false => {}
        }
        if let Ok(here) = std::env::current_dir() {
            call = call.directory(here.to_string_lossy());
        }
        if let Some(cwd) = self.scope.path() {
            call = call.cwd(cwd);
        }
        if let Some(entry_type) = query.entry_type {
            call = call.r#type(entry_type);
        }
        if !query.fields.is_empty() {
            call = call.r#in(query.fields.clone());
        }
        if let Some(session) = &query.session {
            call = call.session_id(session);
        }
        if let Some(cursor) = cursor {
            call = call.cursor(cursor);
        }
        let page = call.await?;
        let hits = page.hits.into_iter();
        let mut hits: Vec<SearchHit> = hits
            .filter(|hit| readable.ids.contains(&hit.session_id) && has_plain_ids(hit))
            .collect();
        readable.conversations.remove_copies(&mut hits);
        // The total of a question also counts each entry with one of its words.
        let is_counted = !query.is_question;
        let shown = hits.len() as u64;
        Ok(Found {
            total: if is_counted {
                page.totals.entries
            } else {
                shown
            },
            at_least: match is_counted {
                true => page.totals.at_least.unwrap_or_default(),
                false => page.totals.entries > shown,
            },
            near_words: page.did_you_mean.unwrap_or_default(),
            hits,
            next_cursor: page.next_cursor,
        })
    }
}

/// The paths of the sources in the report of an import.
fn sources(report: &Value) -> Vec<String> {
    let files = report.get("files").and_then(Value::as_array);
    let paths = files.into_iter().flatten().map(|file| file.get("path"));
    let paths = paths.map(|path| path.and_then(Value::as_str).unwrap_or_default());
    paths.map(str::to_owned).collect()
}

/// The best entries for a question.
pub struct Best {
    pub hits: Vec<SearchHit>,
    /// Whether there was too little time to read all sessions that the index lacks.
    pub is_behind: bool,
}

/// The sessions in scope.
pub struct Readable {
    ids: HashSet<String>,
    pub conversations: Conversations,
}

/// Hits of a search.
pub struct Found {
    pub hits: Vec<SearchHit>,
    /// Hits on all pages.
    pub total: u64,
    /// Whether there may be more hits than `total`.
    pub at_least: bool,
    /// The words of a question that occur in no entry, each with similar words.
    pub near_words: Vec<NearWords>,
    pub next_cursor: Option<String>,
}

impl OpenSession<'_> {
    pub async fn close(self) -> Result<()> {
        self.client.close_session().await?;
        Ok(())
    }

    /// Ends the use of the session. After a failure the session does not stay open: its file may have been replaced.
    pub async fn close_after<T>(mut self, answer: Result<T>) -> Result<T> {
        if answer.is_err() && self.kept.take().is_some() {
            self.client.close_session().await?;
        }
        self.close().await?;
        answer
    }

    /// A page of the entries from the root to `tip`, or from `since` (exclusive) to `tip`.
    pub async fn path(&self, tip: &str, since: Option<&str>) -> Result<PathPage, Error> {
        let params = json!({
            "sessionId": self.id,
            "entryId": tip,
            "since": since,
            "maxBytes": PAGE_BYTES,
        });
        self.client.call("get_path", params).await
    }
}

/// Entries of a path.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PathPage {
    pub entries: Vec<Entry>,
    /// The `since` of the next page.
    pub next_cursor: Option<String>,
}
