//! `treelined files watch`: saves the files at each turn of a session, if the session's folder is in a root that is
//! turned on (files.md §4).

use crate::navigate::Navigations;
use crate::offer;
use crate::record::{self, When};
use crate::session::{self, Opened};
use crate::space;
use crate::state::{self, Root, State, WAIT};
use anyhow::Context;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use treelined_client::{Client, Entry, ErrorKind, Notification};

/// The space of a root is checked at the first snapshot, and then once after each this many snapshots.
const SNAPSHOTS: usize = 16;
/// Repositories are packed when no session has changed for this time.
const IDLE: Duration = Duration::from_secs(600);
/// How often a process without the lock tries to get it.
const LOOK: Duration = Duration::from_secs(5);
const FOLLOWS: &str = "treelined-files: follows the sessions";
/// The most sessions whose last message is remembered.
const MAX_FOLLOWED: usize = 1_000;

/// The content of `failure.json`: the reason why the last snapshot was not made.
#[derive(Debug, Serialize, Deserialize)]
pub struct Failure {
    pub session: String,
    pub why: String,
}

/// Offers files and saves them until the connection with the daemon ends. Saves only with the lock. Without the lock,
/// `take` tries to get it from time to time, since the process that has it may end.
pub async fn run(
    client: &Client,
    state: &State,
    navigations: Option<&Navigations>,
    (mut lock, take): (Option<File>, impl Fn() -> anyhow::Result<Option<File>>),
) -> anyhow::Result<()> {
    let mut notifications = client.notifications();
    client.watch_sessions().await?;
    offer::register(client).await?;
    let mut follower = Follower {
        client: client.clone(),
        state: state.clone(),
        last: HashMap::new(),
        since: Timestamp::now(),
        saved: Counts::default(),
        grown: HashMap::new(),
    };
    let mut looked = Instant::now();
    if lock.is_some() {
        writeln!(io::stderr(), "{FOLLOWS}")?;
    }
    loop {
        if lock.is_none() && looked.elapsed() >= LOOK {
            looked = Instant::now();
            lock = take()?;
            if lock.is_some() {
                follower.since = Timestamp::now();
                writeln!(io::stderr(), "{FOLLOWS}")?;
            }
        }
        let wait = if lock.is_some() { IDLE } else { LOOK };
        let Ok(next) = tokio::time::timeout(wait, notifications.next()).await else {
            follower.pack().await;
            continue;
        };
        let Some(notification) = next else {
            return Ok(());
        };
        let mut changed = BTreeMap::new();
        match notification {
            Notification::SessionsChanged(list) => {
                changed.extend(
                    list.changed
                        .into_iter()
                        .map(|row| (row.session_id, row.cwd)),
                );
            }
            Notification::Missed { .. } => {
                let page = client.list_sessions().limit(100).await?;
                changed.extend(
                    page.sessions
                        .into_iter()
                        .map(|row| (row.session_id, row.cwd)),
                );
            }
            Notification::CommandInvoked(invoked) => {
                tokio::spawn(offer::run(client.clone(), state.clone(), invoked));
            }
            Notification::SessionTree(tree) => {
                if let Some(navigations) = navigations {
                    tokio::spawn(navigations.clone().moved(tree));
                }
            }
            _ => {}
        }
        if lock.is_some() {
            for (session, cwd) in changed {
                follower.look(&session, &cwd).await;
            }
        }
    }
}

struct Follower {
    client: Client,
    state: State,
    /// For each session that was checked, its last message.
    last: HashMap<String, String>,
    /// In a session that was not checked before, only messages after this time count.
    since: Timestamp,
    saved: Counts,
    /// The roots with snapshots since they were packed, by the folders of their state.
    grown: HashMap<PathBuf, Root>,
}

/// The number of snapshots of each root, by the folder of its state.
#[derive(Default)]
struct Counts(HashMap<PathBuf, usize>);

impl Counts {
    /// Counts a snapshot. Returns whether the space of its root must be checked.
    fn add(&mut self, folder: &Path) -> bool {
        let count = self.0.entry(folder.to_owned()).or_default();
        let is_due = count.is_multiple_of(SNAPSHOTS);
        *count += 1;
        is_due
    }
}

impl Follower {
    async fn look(&mut self, session: &str, cwd: &str) {
        let root = match self.state.nearest(Path::new(cwd)) {
            Ok(Some(root)) => root,
            Ok(None) => return,
            Err(error) => return say(session, &error),
        };
        let looked = self.save_if_due(&root, session).await;
        let path = root.folder.join("failure.json");
        match looked {
            Ok(false) => {}
            Ok(true) => {
                let _none = std::fs::remove_file(path);
                if self.saved.add(&root.folder) {
                    make_room(&root);
                }
                self.grown.insert(root.folder.clone(), root);
            }
            Err(error) => {
                say(session, &error);
                let (session, why) = (session.to_owned(), format!("{error:#}"));
                let _not_shown = state::write(&path, &Failure { session, why });
            }
        }
    }

    /// Packs what the snapshots have left, root by root.
    async fn pack(&mut self) {
        for (_, root) in self.grown.drain() {
            let pack = move || {
                let lock = root.lock(WAIT);
                let packed = lock.and_then(|lock| space::pack_loose(&root, &lock, space::LOOSE));
                if let Err(error) = packed {
                    report(&root, &error);
                }
            };
            let _panicked = tokio::task::spawn_blocking(pack).await;
        }
    }

    /// Checks the new messages of a session. Returns whether the files were saved.
    async fn save_if_due(&mut self, root: &Root, session: &str) -> anyhow::Result<bool> {
        let opened = match self.client.open_session().session_id(session).await {
            // The session was deleted meanwhile.
            Err(error) if error.is(ErrorKind::SessionNotFound) => return Ok(false),
            opened => Opened::of(&self.client, opened?.session),
        };
        let saved = self.save_in(root, &opened).await;
        // If a turn is running, the session cannot be closed, and stays open until the next check.
        let _busy = opened.client.close_session().await;
        saved
    }

    async fn save_in(&mut self, root: &Root, opened: &Opened) -> anyhow::Result<bool> {
        let since = self.last.get(&opened.id).map(String::as_str);
        let Some(last) = opened.messages(since).await?.pop() else {
            return Ok(false);
        };
        let is_first = since.is_none();
        if self.last.len() >= MAX_FOLLOWED {
            self.last.clear();
            self.since = Timestamp::now();
        }
        self.last.insert(opened.id.clone(), last.id().to_owned());
        // If the last turn ended before this process started, the files may have changed since. They are not saved
        // for that turn.
        if is_first && !self.is_due(opened, &last).await? {
            return Ok(false);
        }
        match session::turn(&last) {
            Some(when) => save(root, opened, when, last.id()).await.map(|_| true),
            None => Ok(false),
        }
    }

    /// Whether the last message of a session is new and has no record. This is used for a session that was not
    /// checked before.
    async fn is_due(&self, opened: &Opened, last: &Entry) -> anyhow::Result<bool> {
        let time = last.timestamp().parse::<Timestamp>();
        if !time.is_ok_and(|time| time >= self.since) {
            return Ok(false);
        }
        let mut records = opened.records().await?.into_iter();
        Ok(!records.any(|record| record.data.entry_id == last.id()))
    }
}

/// Saves the files, and writes a record about a message. Returns the id of the record; `None` if the nearest record
/// has the same files.
pub async fn save(
    root: &Root,
    opened: &Opened,
    when: When,
    message: &str,
) -> anyhow::Result<Option<String>> {
    let records = opened.records().await?;
    let nearest = opened.nearest(&records, message).await?;
    let nearest = nearest.map(|record| record.data.clone());
    let id = uuid::Uuid::new_v4().simple().to_string();
    let id = id.get(..16).unwrap_or(&id).to_owned();
    let made = {
        let (root, session, id) = (root.clone(), opened.id.clone(), id.clone());
        let message = message.to_owned();
        let make = move || {
            let lock = root.lock(WAIT)?;
            let of = (session.as_str(), id.as_str());
            let about = (when, message.as_str());
            record::make((&root, &lock), of, about, nearest.as_ref(), root.limits)
        };
        tokio::task::spawn_blocking(make)
            .await
            .context("save the files")??
    };
    let Some(data) = made else {
        return Ok(None);
    };
    // The record is appended at the leaf, so that the user's position does not change.
    opened
        .client
        .append_entries([record::entry(&id, &data)])
        .await?;
    Ok(Some(id))
}

/// Removes the oldest records of a root if it exceeds its budget.
fn make_room(root: &Root) {
    let pruned = root.lock(WAIT).and_then(|lock| {
        let used = space::of(root, &lock)?;
        match used.bytes > space::BUDGET {
            true => space::prune(root, &lock, space::BUDGET).map(|_| ()),
            false => Ok(()),
        }
    });
    if let Err(error) = pruned {
        report(root, &error);
    }
}

fn report(root: &Root, error: &anyhow::Error) {
    let path = root.path.display();
    let _written = writeln!(io::stderr(), "treelined-files: {path}: {error:#}");
}

/// Writes an error to stderr. If stderr is closed, `failure.json` still has the error.
fn say(session: &str, error: &anyhow::Error) {
    let _written = writeln!(
        io::stderr(),
        "treelined-files: {session}: not saved: {error:#}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The snapshots of all roots were once counted together, from the start of each daemon. So a daemon that ran for a
    /// few turns never checked the space, and if there were several roots, one was never checked.
    #[test]
    fn the_space_of_each_root_is_checked() {
        let mut counts = Counts::default();
        let mut due = |folder: &str| {
            let checks = (0..33).filter(|_| counts.add(Path::new(folder)));
            checks.count()
        };
        assert_eq!(due("/home/ada/one"), 3);
        assert_eq!(due("/home/ada/two"), 3);
    }
}
