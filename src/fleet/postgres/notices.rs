//! The notifications by which daemons learn of appends. They are sent after the commit, at most every 10 ms for all
//! sessions together. They are sent over a separate connection: if an append sent its own notification, all commits
//! would wait for each other. A notification is only a hint, and can be lost.

use super::pool::Pool;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc};
use tokio::task::AbortHandle;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Notification};
use treelined_files::lock::lock;

const CHANNEL: &str = "treelined";
/// The time for which notifications of appends are collected.
const GATHERED: Duration = Duration::from_millis(10);
/// The most bytes of a notification. The server accepts 8000.
const MOST_BYTES: usize = 7000;
/// The most sessions that wait for a notification. The followers of other sessions read after a pause.
const MOST_WAITING: usize = 10_000;
/// If nothing arrives for `BEAT`, a request tests the connection. The connection is lost if no answer arrives within
/// `ANSWER`.
const BEAT: Duration = Duration::from_secs(3);
const ANSWER: Duration = Duration::from_secs(3);
/// The first and the longest pause before a lost connection is made again.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_secs(2);

/// The notifications of a database.
pub(super) struct Notices {
    parts: Arc<NoticeParts>,
    running: AbortHandle,
}

#[derive(Default)]
struct NoticeParts {
    /// The followers of each session.
    followers: Mutex<HashMap<String, Vec<Weak<NewestLine>>>>,
    /// The new end of each session that other daemons do not know yet.
    waiting: Mutex<BTreeMap<String, u64>>,
    noted: Notify,
    is_lost: AtomicBool,
}

/// The newest line of a session, as the notifications of other daemons name it.
#[derive(Default)]
pub(super) struct NewestLine {
    pub(super) end: AtomicU64,
    pub(super) arrived: Notify,
}

impl Drop for Notices {
    fn drop(&mut self) {
        self.running.abort();
    }
}

impl Notices {
    /// Connects in the background. Connects again when the connection is lost.
    pub(super) fn listen(pool: Pool, runtime: &Handle) -> Self {
        let parts = Arc::<NoticeParts>::default();
        let running = runtime.spawn(listen_on(pool, Arc::clone(&parts)));
        Self {
            running: running.abort_handle(),
            parts,
        }
    }

    /// Whether the connection is lost. Other connections to the same servers are then lost too.
    pub(super) fn is_lost(&self) -> bool {
        self.parts.is_lost.load(Ordering::Relaxed)
    }

    /// Notifies other daemons of the end of a session.
    pub(super) fn say(&self, session: &str, end: u64) {
        let mut waiting = lock(&self.parts.waiting);
        if waiting.len() < MOST_WAITING || waiting.contains_key(session) {
            waiting.insert(session.to_owned(), end);
        }
        drop(waiting);
        self.parts.noted.notify_one();
    }

    /// The newest line of a session. The value is updated from now on.
    pub(super) fn of(&self, session: &str) -> Arc<NewestLine> {
        let newest = Arc::<NewestLine>::default();
        let mut followers = lock(&self.parts.followers);
        let of = followers.entry(session.to_owned()).or_default();
        of.retain(|follower| follower.strong_count() > 0);
        of.push(Arc::downgrade(&newest));
        newest
    }
}

async fn listen_on(pool: Pool, parts: Arc<NoticeParts>) {
    let mut pause = FIRST_PAUSE;
    loop {
        match pool.listening().await {
            Ok((client, notices)) => {
                pause = FIRST_PAUSE;
                parts.is_lost.store(false, Ordering::Relaxed);
                parts.hear(&client, notices).await;
            }
            Err(error) => tracing::info!(%error, "the database is away"),
        }
        parts.is_lost.store(true, Ordering::Relaxed);
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LAST_PAUSE);
    }
}

impl NoticeParts {
    /// Receives and sends notifications until the connection is lost.
    async fn hear(&self, client: &Client, mut notices: mpsc::Receiver<Notification>) {
        let Some(own) = own_process(client).await else {
            return;
        };
        // Notifications that were sent before this moment are lost, so all followers read.
        self.wake_all();
        loop {
            tokio::select! {
                notice = notices.recv() => match notice {
                    Some(notice) if notice.process_id() == own => {}
                    Some(notice) => self.take(notice.payload()),
                    None => return,
                },
                () = self.noted.notified() => {
                    // The first notification is sent at once, since a command may end soon. The next ones are
                    // collected.
                    if !self.tell(client).await {
                        return;
                    }
                    tokio::time::sleep(GATHERED).await;
                }
                () = tokio::time::sleep(BEAT) => {
                    let answered = tokio::time::timeout(ANSWER, client.simple_query(""));
                    if !matches!(answered.await, Ok(Ok(_))) {
                        return;
                    }
                }
            }
        }
    }

    /// Notifies others of all waiting sessions. Returns whether the connection works.
    async fn tell(&self, client: &Client) -> bool {
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        let mut texts = vec![String::new()];
        for (session, end) in waiting {
            let line = format!("{end} {session}\n");
            match texts.last_mut() {
                Some(text) if text.len() + line.len() <= MOST_BYTES => text.push_str(&line),
                // An id may be too long for a notification. The followers of its session read after a pause.
                _ => texts.push(line),
            }
        }
        for text in texts
            .iter()
            .filter(|text| !text.is_empty() && text.len() <= MOST_BYTES)
        {
            let params: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
                [(&CHANNEL, Type::TEXT), (text, Type::TEXT)];
            let told = client.query_typed("SELECT pg_notify($1, $2)", &params);
            match tokio::time::timeout(ANSWER, told).await {
                Ok(Ok(_)) => {}
                _ => return false,
            }
        }
        true
    }

    fn take(&self, text: &str) {
        let mut followers = lock(&self.followers);
        for line in text.lines() {
            let Some((end, session)) = line.split_once(' ') else {
                continue;
            };
            let (Ok(end), Some(of)) = (end.parse::<u64>(), followers.get_mut(session)) else {
                continue;
            };
            of.retain(|follower| follower.strong_count() > 0);
            for newest in of.iter().filter_map(Weak::upgrade) {
                newest.end.fetch_max(end, Ordering::Relaxed);
                newest.arrived.notify_one();
            }
        }
        followers.retain(|_, of| !of.is_empty());
    }

    fn wake_all(&self) {
        let followers = lock(&self.followers);
        let all = followers.values().flatten().filter_map(Weak::upgrade);
        for newest in all {
            newest.end.store(u64::MAX, Ordering::Relaxed);
            newest.arrived.notify_one();
        }
    }
}

/// Begins to listen. Returns the process number of this connection on the server. Notifications with this number come
/// from this daemon.
async fn own_process(client: &Client) -> Option<i32> {
    let listening = async {
        client.batch_execute("LISTEN treelined").await.ok()?;
        let rows = client
            .query_typed("SELECT pg_backend_pid()", &[])
            .await
            .ok()?;
        rows.first()?.try_get(0).ok()
    };
    tokio::time::timeout(ANSWER, listening).await.ok().flatten()
}
