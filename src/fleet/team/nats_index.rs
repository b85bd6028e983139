//! The team's list on NATS: a stream with the row of each session, and a bucket with the sessions that each daemon has
//! open. The rows are in the order of the last activity, so a page is read backwards from the end of the stream.

use super::parts::ListParts;
use super::presence::{self, MAX_PRESENCE_BYTES};
use super::row::{MAX_ROW_BYTES, StoredRow};
use super::row_reader::{RowPage, RowReader, Wanted, placed};
use super::selection::{self, Selection};
use super::values::{Settings, Value, Values};
use super::window::PlacedRow;
use crate::connection::{ANSWER, Connection};
use crate::engine::TeamIndex;
use crate::nats_log::LogAccess;
use crate::settings::NatsSettings;
use crate::stream;
use crate::subject;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use treelined_core::error::{Error, Kind, Result};
use treelined_core::team::{
    TeamFound, TeamList, TeamPage, TeamQuery, TeamQuestion, TeamRow, cursor_before,
};
use treelined_files::lock::lock;

/// The age at which the servers drop the row of a daemon, if the daemon does not renew it.
const MAX_AGE: Duration = Duration::from_secs(60);
/// The most sessions whose last revision is remembered. A remembered revision saves a request when the row is written.
const MOST_REVISIONS: usize = 4096;
/// The most sessions of a stream whose ids a daemon reads.
const MOST_IDS: u64 = 50_000;
/// The most sessions of a page.
const MOST: usize = 1000;
/// The most sessions with a file here that a list describes.
const MOST_HERE: usize = 10_000;
/// The number of these sessions that are looked up at the same time.
const AT_ONCE: usize = 64;
/// How long a daemon reads rows for a page, and how long it looks up the sessions with a file here.
const READING: Duration = Duration::from_millis(1000);
const LOOKING_UP: Duration = Duration::from_millis(500);
/// How many times the write of a row compares and sets before it fails.
const TRIES: usize = 16;

pub(crate) struct NatsIndex {
    rows: Values,
    presence: Values,
    connection: Connection,
    settings: NatsSettings,
    /// The time at which the stream was created.
    created: String,
    /// The name of this machine.
    host: String,
    /// The key of this daemon's row of presence: letters, digits, `-` and `_`. Empty for a command.
    daemon: String,
    /// This daemon's last write of each row, by the key of the row.
    revisions: Mutex<HashMap<String, WrittenRow>>,
    reader: tokio::sync::Mutex<Reader>,
}

/// A row that was written: its revision, and the sequence of the session that it describes.
struct WrittenRow {
    revision: u64,
    sequence: u64,
}

/// The rows, ids and presences that were read last.
struct Reader {
    rows: RowReader,
    ids: KnownIds,
    /// The last revision of the presences, their number, and the rows of presence of the other daemons.
    presences: (u64, u64),
    open: Vec<Vec<u8>>,
}

/// The ids of the sessions of the stream, if they are few or if a command needs them.
#[derive(Default)]
struct KnownIds {
    /// The number of sessions when the ids were read.
    sessions: u64,
    ids: HashSet<String>,
    /// The creation of the stream of rows and the number of rows when their keys were read.
    rows: (String, u64),
    keys: HashSet<String>,
}

/// The numbers of the two streams at one time.
#[derive(Clone, Copy)]
struct Numbers {
    /// The sessions of the stream, and the rows of the list.
    sessions: u64,
    rows: u64,
    /// The last message of the stream of sessions.
    last: u64,
}

impl Numbers {
    /// Whether a daemon reads the ids of all sessions.
    fn are_few(self) -> bool {
        self.sessions.max(self.rows) <= MOST_IDS
    }
}

impl NatsIndex {
    pub(crate) fn new(access: &LogAccess, host: String, daemon: String) -> Self {
        let (connection, stream) = (&access.connection, &access.settings.stream);
        Self {
            rows: Values::of_stream(connection, access.settings.rows_stream(), subject::ROWS),
            presence: Values::of_bucket(connection, &format!("{stream}-presence")),
            connection: connection.clone(),
            settings: access.settings.clone(),
            created: access.created.clone(),
            host,
            daemon,
            revisions: Mutex::default(),
            reader: tokio::sync::Mutex::new(Reader {
                rows: RowReader::new(),
                ids: KnownIds::default(),
                presences: (0, 0),
                open: Vec::new(),
            }),
        }
    }

    async fn make(&self) -> Result<Vec<String>> {
        let replicas = self.settings.replicas;
        let rows = Settings {
            replicas,
            max_age: None,
            max_bytes: MAX_ROW_BYTES,
            is_kept: true,
        };
        let presence = Settings {
            replicas,
            max_age: Some(MAX_AGE),
            max_bytes: MAX_PRESENCE_BYTES,
            is_kept: false,
        };
        let mut made = Vec::new();
        made.extend(self.rows.ensure(&rows).await?);
        made.extend(self.presence.ensure(&presence).await?);
        Ok(made)
    }

    /// The ids of the sessions that any daemon has open.
    pub(crate) async fn open_sessions(&self) -> Result<HashSet<String>> {
        let mut open = HashSet::new();
        for row in self.presences().await? {
            let sessions = presence::decode(&row.value).ok_or_else(presence::damaged)?;
            open.extend(sessions.into_iter().map(|(session, _)| session));
        }
        Ok(open)
    }

    /// The rows of presence of all daemons.
    async fn presences(&self) -> Result<Vec<Value>> {
        let mut rows = Vec::new();
        let mut take = |value: Value| {
            if !value.value.is_empty() {
                rows.push(value);
            }
        };
        let opened = self.presence.open(0).await?;
        self.presence.read(opened, u64::MAX, &mut take).await?;
        Ok(rows)
    }

    async fn write(&self, row: TeamRow) -> Result<()> {
        let row = StoredRow {
            row,
            stream_created: self.created.clone(),
        };
        let key = subject::key(&row.row.session_id);
        let sequence = row.row.sequence;
        let known = lock(&self.revisions).remove(&key);
        let known = known.filter(|known| known.sequence < sequence);
        let known = known.map(|known| known.revision);
        let written = write_row(&self.rows, &key, &row, known).await?;
        let mut revisions = lock(&self.revisions);
        if revisions.len() >= MOST_REVISIONS {
            revisions.clear();
        }
        revisions.extend(written.map(|revision| (key, WrittenRow { revision, sequence })));
        Ok(())
    }

    async fn read(&self, query: &TeamQuery) -> Result<TeamList> {
        let mut reader = self.reader.lock().await;
        let (rows, written) = reader.rows.refresh(&self.rows).await?;
        self.refresh_presences(&mut reader).await?;
        // This is read after the rows, so that the stream has the messages that the rows describe.
        let info = stream::info(&self.connection, &self.settings, ANSWER).await?;
        let numbers = Numbers {
            sessions: info.state.num_subjects,
            rows,
            last: info.state.last_seq,
        };
        let mut parts = ListParts::default();
        let (mut page, earlier, why) = self
            .add_page(&mut reader, query, numbers, &mut parts)
            .await?;
        let is_whole = self
            .add_here(&mut reader, query, numbers, &mut parts)
            .await?;
        parts.add_damaged(reader.rows.known.damaged());
        parts.add_presences(reader.open.iter().map(Vec::as_slice));
        let mut mark = DefaultHasher::new();
        (written, reader.presences, numbers.sessions).hash(&mut mark);
        page.mark = mark.finish();
        let mut list = parts.list(&self.settings.stream);
        list.page = Some(page);
        list.missing = earlier;
        let late = || {
            let why = "the sessions with a file here are still looked up in the team";
            (Kind::LogUnavailable, why.to_owned())
        };
        let why = why.or_else(|| (!is_whole).then(late));
        list.incomplete = list.incomplete.or(why);
        Ok(list)
    }

    /// Adds the sessions of a page. Returns the page, the rows of sessions of an earlier stream, and the reason why the
    /// page may lack sessions.
    async fn add_page(
        &self,
        reader: &mut Reader,
        query: &TeamQuery,
        numbers: Numbers,
        parts: &mut ListParts,
    ) -> Result<(TeamPage, Vec<TeamRow>, Option<(Kind, String)>)> {
        let limit = query.limit.min(MOST);
        if limit == 0 {
            return Ok(Default::default());
        }
        let wanted = Wanted {
            selection: Selection::new(query, &self.created, numbers.last),
            after: query.after.as_deref(),
            limit,
            until: self.is_daemon().then(|| Instant::now() + READING),
        };
        let RowPage {
            found,
            mut next,
            is_end,
            is_cut,
        } = reader.rows.page(&self.rows, &wanted).await?;
        let (mut count, mut why) = (found.count, None);
        if is_cut {
            why = Some((
                Kind::ResponseTooLarge,
                format!(
                    "{} rows were read for this page in the time that a list has: the next page goes on after them",
                    found.looked_at
                ),
            ));
        }
        let mut left = limit - found.rows.len();
        for row in &found.rows {
            if let Ok(described) = wanted.selection.described(row) {
                let session = described.session_id.clone();
                parts.add(session, Some(row.place), Some(described.clone()));
            }
        }
        if is_end {
            let bare = self.bare(reader, numbers, &mut why).await?;
            let after = query
                .after
                .as_deref()
                .and_then(|cursor| cursor.strip_prefix(' '));
            let bare = bare.into_iter().filter(|id| wanted.selection.has_bare(id));
            let bare = bare.filter(|id| after.is_none_or(|after| **id > *after));
            let mut last = found.rows.last().map(|row| cursor_before(row.place));
            for session in bare {
                count += 1;
                if left == 0 {
                    // This session does not fit. The next page begins after the last session of this page.
                    next.clone_from(&last);
                    continue;
                }
                left -= 1;
                last = Some(format!(" {session}"));
                parts.add(session, None, None);
            }
        }
        let page = TeamPage {
            count,
            is_at_least: !is_end,
            next,
            mark: 0,
        };
        Ok((page, found.earlier, why))
    }

    fn is_daemon(&self) -> bool {
        !self.daemon.is_empty()
    }

    /// The sessions of the stream that no row describes. If these are not known, sets `why` to the reason.
    async fn bare(
        &self,
        reader: &mut Reader,
        numbers: Numbers,
        why: &mut Option<(Kind, String)>,
    ) -> Result<Vec<String>> {
        if !numbers.are_few() && self.is_daemon() {
            if let Some(bare) = numbers
                .sessions
                .checked_sub(numbers.rows)
                .filter(|bare| *bare > 0)
            {
                let text = format!(
                    "the list has no row of {bare} sessions of the team: `treelined pull --list` names them"
                );
                *why = Some((Kind::ResponseTooLarge, text));
            }
            return Ok(Vec::new());
        }
        // If each session has a usable row, no session is bare.
        if !numbers.are_few() && reader.rows.known.usable() >= numbers.sessions {
            return Ok(Vec::new());
        }
        self.read_ids(reader, numbers).await?;
        let Reader { rows, ids, .. } = reader;
        let has_all = rows.has_all();
        let of = (rows.created().to_owned(), numbers.rows);
        if !has_all && ids.rows != of {
            ids.keys = self.rows.keys().await?.into_iter().collect();
            ids.rows = of;
        }
        let has_key = |key: &str| match has_all {
            true => rows.window.get(key).is_some(),
            false => ids.keys.contains(key),
        };
        Ok(selection::bare(
            ids.ids.iter().cloned(),
            has_key,
            &rows.known,
        ))
    }

    /// Reads the ids of all sessions, unless they are known.
    async fn read_ids(&self, reader: &mut Reader, numbers: Numbers) -> Result<()> {
        if reader.ids.sessions != numbers.sessions {
            let ids = stream::sessions(&self.connection, &self.settings).await?;
            reader.ids.ids = ids.into_iter().collect();
            reader.ids.sessions = numbers.sessions;
        }
        Ok(())
    }

    /// Adds the sessions of the team that have a file here. Returns whether all of them were looked up.
    async fn add_here(
        &self,
        reader: &mut Reader,
        query: &TeamQuery,
        numbers: Numbers,
        parts: &mut ListParts,
    ) -> Result<bool> {
        let here = query.here.get(..MOST_HERE).unwrap_or(&query.here);
        if !here.is_empty() && numbers.are_few() {
            self.read_ids(reader, numbers).await?;
        }
        let is_whole = self.look_up(reader, here).await?;
        let selection = Selection::new(query, &self.created, numbers.last);
        for session in here {
            let key = subject::key(session);
            let looked_up = reader.rows.here.get(&key).and_then(Option::as_ref);
            let row = reader.rows.window.get(&key).or(looked_up);
            let described = row.and_then(|row| Some((row.place, selection.described(row).ok()?)));
            match described {
                Some((place, row)) => parts.add(session.clone(), Some(place), Some(row.clone())),
                None if reader.ids.ids.contains(session) => parts.add(session.clone(), None, None),
                None => {}
            }
        }
        Ok(is_whole)
    }

    /// Looks up rows that the window lacks. Returns whether all rows of these sessions are then known.
    async fn look_up(&self, reader: &mut Reader, here: &[String]) -> Result<bool> {
        if reader.rows.has_all() {
            return Ok(true);
        }
        let rows = &mut reader.rows;
        if rows.here.len() > 2 * MOST_HERE {
            rows.here.clear();
        }
        let keys = here.iter().map(|session| subject::key(session));
        let unknown =
            keys.filter(|key| rows.window.get(key).is_none() && !rows.here.contains_key(key));
        let unknown: Vec<String> = unknown.collect();
        let until = Instant::now() + LOOKING_UP;
        let asked = futures_util::stream::iter(unknown).map(|key| async {
            let found = self.rows.look_up(&key).await;
            found.map(|found| (key, found.map(placed)))
        });
        let mut asked = asked.buffer_unordered(AT_ONCE);
        while let Some(found) = asked.next().await {
            let (key, row): (String, Option<PlacedRow>) = found?;
            rows.here.insert(key, row);
            if self.is_daemon() && Instant::now() >= until {
                return Ok(asked.next().await.is_none());
            }
        }
        Ok(true)
    }

    /// Reads the rows of presence of the other daemons.
    async fn refresh_presences(&self, reader: &mut Reader) -> Result<()> {
        let state = self.presence.info().await?.state;
        let now = (state.last_seq, state.messages);
        if now == reader.presences {
            return Ok(());
        }
        let rows = match state.messages {
            0 => Vec::new(),
            _ => self.presences().await?,
        };
        let others = rows.into_iter().filter(|row| row.key != self.daemon);
        reader.open = others.map(|row| row.value).collect();
        reader.presences = now;
        Ok(())
    }
}

impl TeamIndex for NatsIndex {
    fn ensure(&self) -> BoxFuture<'_, Result<Vec<String>>> {
        Box::pin(self.make())
    }

    fn write_row(&self, row: TeamRow) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.write(row))
    }

    fn say_open(&self, sessions: Vec<(String, i64)>) -> BoxFuture<'_, Result<()>> {
        let text = presence::encode(&self.host, &self.daemon, sessions);
        Box::pin(async move {
            let written = self.presence.put(&self.daemon, text, None);
            written.await.map(drop)
        })
    }

    fn say_closed(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.presence.remove(&self.daemon))
    }

    fn list<'a>(&'a self, query: &'a TeamQuery) -> BoxFuture<'a, Result<TeamList>> {
        Box::pin(self.read(query))
    }

    fn find<'a>(&'a self, _question: &'a TeamQuestion) -> BoxFuture<'a, Result<TeamFound>> {
        Box::pin(async {
            let why = "needs a team on PostgreSQL, since NATS cannot search: `treelined pull --all`, and search here";
            Err(Error::invalid_params("team", why))
        })
    }
}

/// Writes a row, unless the stream has a row of the session that is as new or newer. `known` is the revision of an
/// older row of the same writer. Returns the revision of the row; `None` if it was not written.
async fn write_row(
    rows: &Values,
    key: &str,
    row: &StoredRow,
    known: Option<u64>,
) -> Result<Option<u64>> {
    let text = row.encode();
    let mut expected = known;
    for _ in 0..TRIES {
        let revision = match expected.take() {
            Some(revision) => revision,
            None => match rows.get(key).await? {
                None => 0,
                Some(stored) => {
                    let before = StoredRow::decode(key, &stored.value);
                    if !row.replaces(before.as_ref()) {
                        return Ok(None);
                    }
                    stored.revision
                }
            },
        };
        let written = rows.put(key, text.clone(), Some(revision)).await?;
        if written.is_some() {
            return Ok(written);
        }
    }
    let why = format!("others wrote the row {key:?} in each of {TRIES} rounds");
    Err(Error::new(Kind::LogConflict, why))
}
