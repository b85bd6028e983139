//! Copies the lines that other machines append to an open session into its file. The session then reads these lines
//! like the entries of any other writer.

use super::connector::{Connector, PAUSE};
use super::engine::{Engine, FollowedLog};
use super::replicated::{ReplicatedFile, TornLine};
use super::trash::DiscardedFile;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};
use tokio::task::AbortHandle;
use treelined_core::error::{Kind, Result};
use treelined_files::blocking::blocking;
use treelined_files::lock::lock;
use treelined_files::log::upstream::{LogHook, LogNews};

/// A message that arrives while the daemon appends is probably from that append. The follower waits up to a second
/// until the append has ended. Otherwise the follower could take the lock of the file before the next append.
const OWN_LOOKS: u32 = 200;
const OWN_PAUSE: Duration = Duration::from_millis(5);
/// The first pause of a follower that waits for a connection. The pauses double up to [`PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// The pause between two checks of the file for lines of other programs.
const LOOK: Duration = Duration::from_secs(2);
/// The pause between two checks whether a deleted session was restored, while the session is open.
const RETURN: Duration = Duration::from_secs(5);
/// The pause between two complete comparisons with the log, while the log lacks lines of the session.
const REFILL: Duration = Duration::from_secs(10);

/// The follower of one session. It ends when it is dropped.
pub(super) struct Follower(Arc<Mutex<FollowerTask>>);

#[derive(Default)]
struct FollowerTask {
    is_ended: bool,
    running: Option<AbortHandle>,
}

impl FollowerTask {
    fn run(&mut self, log: &dyn Engine, following: impl Future<Output = ()> + Send + 'static) {
        if !self.is_ended {
            self.running = Some(log.runtime().spawn(following).abort_handle());
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut task = lock(&self.0);
        task.is_ended = true;
        if let Some(running) = task.running.take() {
            running.abort();
        }
    }
}

impl Follower {
    pub(super) fn new(
        connector: &Arc<Connector>,
        session: &str,
        file: &Arc<ReplicatedFile>,
        news: LogHook,
    ) -> Self {
        let task = Arc::new(Mutex::new(FollowerTask::default()));
        let follower = Self(Arc::clone(&task));
        let (connector, session) = (Arc::downgrade(connector), session.to_owned());
        let file = Arc::downgrade(file);
        tokio::spawn(async move {
            let mut pause = FIRST_PAUSE;
            // One thread connects for all followers.
            while let Some(connected) = connector.upgrade().map(|it| it.connected_beside()) {
                if let Some(log) = connected {
                    let following = copy_on(Arc::downgrade(&log), connector, session, file, news);
                    lock(&task).run(&*log, following);
                    return;
                }
                if lock(&task).is_ended {
                    return;
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE);
            }
        });
        follower
    }
}

async fn copy_on(
    log: Weak<dyn Engine>,
    connector: Weak<Connector>,
    session: String,
    file: Weak<ReplicatedFile>,
    news: LogHook,
) {
    let mut trashed: Option<DiscardedFile> = None;
    while let (Some(log), Some(file)) = (log.upgrade(), file.upgrade()) {
        let pause = match trashed.take() {
            Some(there) if !is_back(&connector, &file, there.path.clone()).await => {
                trashed = Some(there);
                RETURN
            }
            _ => {
                let mut pause = PAUSE;
                let had_lost = file.has_lost();
                if let Err(error) = copy_while_connected(&*log, &session, &file, &news).await {
                    match error.kind {
                        Kind::SessionDeleted => {
                            trashed = discarded(&connector, &file, &news).await;
                        }
                        Kind::SessionErased if is_gone(&connector, &session).await => return,
                        Kind::LogRewound => {
                            pause = REFILL;
                            file.note_failure(&error);
                            if !had_lost {
                                news(LogNews::Rewound);
                            }
                        }
                        _ => {}
                    }
                    if trashed.is_none() {
                        tracing::info!(session, %error, "a session is followed again later");
                    }
                }
                pause
            }
        };
        drop((log, file));
        tokio::time::sleep(pause).await;
    }
}

/// Moves the file of a deleted session to the trash, and reports which entries are lost with it. `None` if the session
/// must be followed again.
async fn discarded(
    connector: &Weak<Connector>,
    file: &Arc<ReplicatedFile>,
    news: &LogHook,
) -> Option<DiscardedFile> {
    let (connector, file) = (connector.upgrade()?, Arc::clone(file));
    let discarded = blocking(move || connector.discard(&file)).await;
    let mut discarded = discarded.unwrap_or_else(|error| {
        tracing::warn!(%error, "the file of a deleted session is moved to the trash later");
        None
    })?;
    let lost = std::mem::take(&mut discarded.lost);
    if !lost.is_empty() {
        news(LogNews::Lost(lost));
    }
    Some(discarded)
}

/// Removes the files of an erased session. Returns whether they are gone.
async fn is_gone(connector: &Weak<Connector>, session: &str) -> bool {
    let Some(connector) = connector.upgrade() else {
        return false;
    };
    let session = session.to_owned();
    let removed = blocking(move || connector.store.erase(&session)).await;
    if let Err(error) = &removed {
        tracing::warn!(%error, "the files of an erased session are removed later");
    }
    removed.is_ok()
}

/// Moves the file of a deleted session back if the session has been restored. Returns whether the file is there.
async fn is_back(
    connector: &Weak<Connector>,
    file: &Arc<ReplicatedFile>,
    path: Option<PathBuf>,
) -> bool {
    let Some(connector) = connector.upgrade() else {
        return false;
    };
    let file = Arc::clone(file);
    let back = blocking(move || connector.bring_back(&file, path.as_deref())).await;
    back.unwrap_or_else(|error| {
        tracing::info!(%error, "a deleted session is looked for again later");
        false
    })
}

/// Copies until the connection fails. Ends only with an error.
async fn copy_while_connected(
    log: &dyn Engine,
    session: &str,
    file: &Arc<ReplicatedFile>,
    news: &LogHook,
) -> Result<()> {
    let mut followed = log.followed(session).await?;
    let settle = |file: &ReplicatedFile| file.settle_alone(TornLine::Leave);
    noticing(file, news, settle).await?;
    let mut was_unequal = false;
    let mut looked = Instant::now();
    loop {
        copy_stored(&mut followed, file, news).await?;
        let at = || file.position();
        loop {
            let look_in = LOOK.saturating_sub(looked.elapsed());
            let (arrived, is_left_behind) = tokio::select! {
                arrived = tokio::time::timeout(look_in, followed.news(&at)) => (arrived, false),
                () = file.left_behind() => (Ok(()), true),
            };
            if is_left_behind || looked.elapsed() >= LOOK {
                was_unequal = look(file, was_unequal, news).await?;
                looked = Instant::now();
            }
            if arrived.is_ok() {
                break;
            }
        }
    }
}

/// Copies the parts of the log that the file does not have.
async fn copy_stored(
    followed: &mut FollowedLog<'_>,
    file: &Arc<ReplicatedFile>,
    news: &LogHook,
) -> Result<()> {
    loop {
        let before = file.position();
        let Some(part) = followed.stored(before).await? else {
            return Ok(());
        };
        for _ in 0..OWN_LOOKS {
            if !file.is_appending() {
                break;
            }
            tokio::time::sleep(OWN_PAUSE).await;
        }
        if file.position() >= part.end {
            continue;
        }
        let end = part.end;
        let take = move |file: &ReplicatedFile| file.take(before, &part);
        noticing(file, news, take).await?;
        // An incomplete line at the end of the file prevents the copy. The next look ends that line with a line break,
        // and copies.
        if file.position() < end {
            return Ok(());
        }
    }
}

/// Publishes lines of other programs, and lines that wait in the file. Returns whether there were any. With
/// `was_unequal`, an incomplete line at the end of the file gets a line break.
pub(crate) async fn look(
    file: &Arc<ReplicatedFile>,
    was_unequal: bool,
    news: &LogHook,
) -> Result<bool> {
    let torn = match was_unequal {
        true => TornLine::Close,
        false => TornLine::Leave,
    };
    let work = move |file: &ReplicatedFile| match file.is_equal() || file.is_equal_now()? {
        true => {
            if let Err(error) = file.save_sometimes() {
                tracing::warn!(%error, "the next opening of a session compares more");
            }
            Ok(false)
        }
        false => file.settle_alone(torn).map(|()| true),
    };
    noticing(file, news, work).await
}

/// Runs work on a blocking thread. Calls the hook if lines of other programs were published. Also calls it if lines
/// were reported as waiting in the file and no longer wait: an append, or the opening of the session, may have found
/// these lines in the log meanwhile.
async fn noticing<T: Send + 'static>(
    file: &Arc<ReplicatedFile>,
    news: &LogHook,
    work: impl FnOnce(&ReplicatedFile) -> Result<T> + Send + 'static,
) -> Result<T> {
    let (file, news) = (Arc::clone(file), Arc::clone(news));
    blocking(move || {
        let before = file.published();
        // This call keeps its result in the file's state: the lines that wait now may be in the log after the work.
        file.waits();
        let done = work(&file)?;
        let has_published = file.published() > before;
        // More lines may have been written to the file during the work.
        if file.has_stopped_waiting() || (has_published && !file.waits()) {
            news(LogNews::Published);
        }
        Ok(done)
    })
    .await
}
