//! Opens a disk that is left, and compares it with the answers.

use crate::book::{Acked, Pages};
use crate::history::SESSIONS;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use treelined_core::durability::Durability;
use treelined_core::error::Kind;
use treelined_core::flow::append::{self, NewEntry};
use treelined_files::cancel::Cancel;
use treelined_files::clock::SystemSource;
use treelined_files::log::repair::repair;
use treelined_files::log::{Log, OpenedLog, unshed};
use treelined_files::os::FileAt;
use treelined_files::os::file::Location;
use treelined_files::os::handle::HandleAccess;
use treelined_files::os::simulated::{Disk, LeftOut, Rules, World};
use treelined_files::os::time;
use treelined_files::session::{Session, SessionState};
use treelined_files::store::Store;

/// The entries that must be there.
#[derive(Debug, Clone, Copy)]
pub struct Expected {
    /// Those that were only promised to survive their process, too.
    pub unsynced: bool,
    /// Those of a writer without a lock, too.
    pub lockless: bool,
}

/// Fails if an entry is lost, doubled or out of order, or if a session cannot be continued.
pub fn verify(disk: Disk, pages: &Pages, expected: Expected, seed: u64) -> Result<(), String> {
    let rules = Rules {
        left_out: LeftOut::Nothing,
        cut_at: None,
        is_traced: false,
    };
    let world = World::new(disk, seed, 1, rules);
    let mut sessions: BTreeMap<&str, Vec<&Acked>> = BTreeMap::new();
    for acked in &pages.acked {
        let is_due = match acked.is_lockless {
            true => expected.lockless,
            false => acked.is_durable || expected.unsynced,
        };
        if is_due {
            sessions.entry(&acked.session).or_default().push(acked);
        }
    }
    let judged = world.run(0, || {
        let store = Store::new(PathBuf::from(SESSIONS));
        for (id, due) in &sessions {
            session(&store, id, due).map_err(|error| format!("session {id}: {error}"))?;
        }
        Ok(())
    });
    judged.unwrap_or_else(|| Err("the check was killed".to_owned()))
}

fn session(store: &Store, id: &str, due: &[&Acked]) -> Result<(), String> {
    let failed =
        |error: treelined_core::error::Error| format!("{:?} {}", error.kind, error.message);
    let mut found: Vec<Location> = store.find(id).into_iter().collect();
    let is_here = !found.is_empty();
    // A deleted session is in the trash; a writer that was about to replace its file may have made it again, and it may
    // have been deleted again.
    for trashed in store.trashed().map_err(failed)? {
        let listing = &trashed.row.listing;
        if listing
            .header
            .as_ref()
            .is_some_and(|header| header.id == id)
        {
            let path = listing.path.to_str();
            found.extend(store.find_trashed(id, path).map_err(failed)?);
        }
    }
    let mut missing: Vec<&Acked> = due.to_vec();
    for at in &found {
        match unshed::restore(at) {
            // A line that was torn keeps branches in the cold file until it is repaired.
            Err(error) if error.kind == Kind::SessionLocked => {
                repair(at, false).map_err(failed)?;
                unshed::restore(at).map_err(failed)?;
            }
            restored => restored.map_err(failed)?,
        }
        let opened = Log::open(at.clone()).map_err(failed)?;
        missing = compare(at, &opened, due, missing)?;
    }
    if let Some(lost) = missing.first() {
        return Err(format!(
            "{} of {} are lost, first {lost:?}",
            missing.len(),
            due.len()
        ));
    }
    if is_here {
        go_on(store, id)?;
    }
    Ok(())
}

/// Checks the entries of a file: each is there once, and in the order of the answers. Returns those of `missing` that are
/// not in it.
fn compare<'a>(
    at: &Location,
    opened: &OpenedLog,
    due: &[&'a Acked],
    missing: Vec<&'a Acked>,
) -> Result<Vec<&'a Acked>, String> {
    let file = at
        .folder
        .file(&at.name, HandleAccess::Read)
        .map_err(|error| error.message)?;
    let size = at.status().map_err(|error| error.to_string())?.size;
    let mut bytes = vec![0; size as usize];
    file.read_exact_at(&mut bytes, 0)
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&bytes);
    let mut places = BTreeMap::new();
    for acked in due {
        let mut at = text.match_indices(&acked.tag);
        let Some((place, _)) = at.next() else {
            continue;
        };
        if at.next().is_some() {
            return Err(format!("doubled: {acked:?}"));
        }
        places.insert(&acked.tag, place);
        let node = opened.tree.find(&acked.id);
        if node.is_none() && !acked.id.is_empty() {
            return Err(format!("in the file and not in the tree: {acked:?}"));
        }
    }
    let in_file = |acked: &&Acked| places.get(&acked.tag).copied();
    let mut in_order: Vec<(&Acked, usize)> = due
        .iter()
        .filter(|acked| !acked.is_lockless)
        .filter_map(|acked| Some((*acked, in_file(acked)?)))
        .collect();
    in_order.sort_by_key(|(_, place)| *place);
    for (number, (later, _)) in in_order.iter().enumerate() {
        let mut earlier = in_order[..number].iter();
        if let Some((earlier, _)) = earlier.find(|(earlier, _)| later.answered < earlier.began) {
            return Err(format!("out of order: {earlier:?} before {later:?}"));
        }
    }
    Ok(missing
        .into_iter()
        .filter(|acked| in_file(acked).is_none())
        .collect())
}

/// Appends, and finds the entry again.
fn go_on(store: &Store, id: &str) -> Result<(), String> {
    let failed = |error: treelined_core::error::Error| {
        format!("goes on: {:?} {}", error.kind, error.message)
    };
    let opened = store
        .open(store.find(id).map_err(failed)?, &Cancel::new())
        .map_err(failed)?;
    let session: Arc<Session> = Session::new(opened, false, Durability::Always);
    let entry = [NewEntry::message(br#"{"role":"user","content":"<later>"}"#).map_err(failed)?];
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let ids = runtime.block_on(async {
        let guard = session.guard(time::now(), ())?;
        let plan = move |core: &SessionState| {
            append::plan(&core.tree, &SystemSource, &entry, &|node| core.entry(node))
        };
        let (_, _, outcome) = guard.commit(&Cancel::new(), plan).await;
        outcome.map(|outcome| outcome.entry_ids)
    });
    let ids = ids.map_err(failed)?;
    let opened = Log::open(store.find(id).map_err(failed)?).map_err(failed)?;
    match ids.iter().all(|id| opened.tree.find(id.as_str()).is_some()) {
        true => Ok(()),
        false => Err("an append after the power cut is lost".to_owned()),
    }
}
