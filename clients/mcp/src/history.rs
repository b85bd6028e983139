//! The sessions that an agent may read, and those in which it may leave notes.

use crate::clean::Cleaner;
use serde::Deserialize;
use serde_json::json;
use std::fmt;
use std::path::Path;
use tokio::sync::{Mutex, MutexGuard};
use treelined_client::{Client, Entry, Error, ErrorKind, OpenMode, Session, SessionRow};
use treelined_redact::Redactor;

/// The bytes of entries in one answer of the daemon.
const PAGE_BYTES: u64 = 32 << 10;
/// The times that a note is tried again after another writer was faster.
const ROUNDS: usize = 5;

/// A daemon, and the part of its sessions in scope.
pub struct History {
    client: Client,
    /// The working directory; `None`: every session.
    scope: Option<String>,
    /// The session that the agent is in, by its id.
    own: Option<String>,
    redactor: Redactor,
    /// The session that was read last, which stays open: its pages are read without opening it again. One call uses it
    /// at a time.
    kept: Mutex<Option<String>>,
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
    /// Its calls are about the session.
    pub client: Client,
    pub id: String,
    pub name: String,
    pub leaf: Option<String>,
    kept: MutexGuard<'a, Option<String>>,
}

impl History {
    pub fn new(
        client: Client,
        scope: Option<String>,
        own: Option<String>,
        redactor: Redactor,
    ) -> History {
        History {
            client,
            scope,
            own,
            redactor,
            kept: Mutex::new(None),
        }
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    /// A cleaner for the texts of one answer.
    pub fn cleaner(&self) -> Cleaner<'_> {
        Cleaner::new(&self.redactor)
    }

    /// Whether secrets are shown as they are.
    pub fn shows_secrets(&self) -> bool {
        self.redactor.keeps_text()
    }

    /// The working directory of the sessions in scope; `None`: all.
    pub fn scope(&self) -> Option<&str> {
        self.scope.as_deref()
    }

    /// The id of the agent's own session: the given one, else the newest of the working directory.
    pub async fn own_session(&self) -> Result<String> {
        if let Some(id) = &self.own {
            return Ok(id.clone());
        }
        let mut call = self.client.list_sessions().limit(1);
        if let Some(cwd) = &self.scope {
            call = call.cwd(cwd);
        }
        let newest = call.await?.sessions.into_iter().next();
        newest.map(|row| row.session_id).ok_or_else(|| {
            Failure(
                "no session is here yet; name one by `session`, or ask list_sessions".to_owned(),
            )
        })
    }

    /// Opens a session for reading; `None`: the agent's own.
    pub async fn open(&self, id: Option<&str>) -> Result<OpenSession<'_>> {
        let id = self.named(id).await?;
        let mut kept = self.kept.lock().await;
        let mut session = self.opened(&id, OpenMode::Read).await?;
        if kept.as_deref() != Some(id.as_str()) {
            // A second opening, which stays.
            self.release(&mut kept).await?;
            session = self.opened(&id, OpenMode::Read).await?;
            *kept = Some(id);
        } else if session
            .path
            .as_ref()
            .is_some_and(|path| !Path::new(path).exists())
        {
            // It was deleted meanwhile, and must not be read any more.
            self.close(&id).await?;
            self.release(&mut kept).await?;
            session = self.opened(&id, OpenMode::Read).await?;
        }
        self.in_scope(session, kept).await
    }

    /// Opens a session for a note: anew, to see the leaf of the file.
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
            // Another connection has deleted it.
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
            leaf: session.leaf_id,
            kept,
        };
        if self.is_in_scope(&session.cwd) {
            return Ok(open);
        }
        let message = format!(
            "session {} is of another directory; start this server with --all to read it",
            open.id
        );
        open.close_after(Err(Failure(message))).await
    }

    fn is_in_scope(&self, cwd: &str) -> bool {
        let scope = self.scope.as_deref();
        scope.is_none_or(|scope| Path::new(cwd).starts_with(scope))
    }

    /// Appends at the leaf of the file. Opens the session anew, and again if another writer was faster: a note at
    /// an older place would move the conversation there.
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

    /// At least `limit` sessions in scope if there are so many, and the cursor of the next page.
    pub async fn sessions(
        &self,
        query: Option<String>,
        limit: u64,
        mut cursor: Option<String>,
    ) -> Result<(Vec<SessionRow>, Option<String>)> {
        let mut rows = Vec::new();
        loop {
            let mut call = self.client.list_sessions().limit(limit);
            if let Some(query) = &query {
                call = call.query(query);
            }
            if let Some(cursor) = cursor.take() {
                call = call.cursor(cursor);
            }
            let page = call.await?;
            let in_scope = page.sessions.into_iter();
            rows.extend(in_scope.filter(|row| self.is_in_scope(&row.cwd)));
            cursor = page.next_cursor;
            if cursor.is_none() || rows.len() as u64 >= limit {
                return Ok((rows, cursor));
            }
        }
    }
}

impl OpenSession<'_> {
    pub async fn close(self) -> Result<()> {
        self.client.close_session().await?;
        Ok(())
    }

    /// Ends the use of the session. After a failure it does not stay open: its file may have been replaced.
    pub async fn close_after<T>(mut self, answer: Result<T>) -> Result<T> {
        if answer.is_err() && self.kept.take().is_some() {
            self.client.close_session().await?;
        }
        self.close().await?;
        answer
    }

    /// A page of the entries from the root to `tip`: those below `since`, if it is given.
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
