//! Imports what hooks have requested.

use super::requests::{Request, Requests};
use crate::importer::reading::SETTLED;
use crate::importer::request::{Import, ImportRequest};
use crate::importer::source::facts::SourceStatus;
use crate::tool::Tool;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};
use treelined_core::error::{Error, Kind, Result};
use treelined_core::id::Source as _;
use treelined_files::cancel::Cancel;
use treelined_files::clock::SystemSource;
use treelined_files::store::Store;

/// The longest wait until a file does not change: a tool may write the end of a turn after its hook.
const UNREST: Duration = Duration::from_secs(1);
/// The pause between two looks at the files.
const LOOK: Duration = Duration::from_millis(50);
/// The pause between two attempts while another import runs.
const BUSY: Duration = Duration::from_millis(50);
/// The most imports of one file that changes again and again; the next hook brings the rest.
const MAX_ROUNDS: usize = 4;

/// The files of one tool, and whether the turn has ended.
type Groups = BTreeMap<(Tool, bool), BTreeMap<PathBuf, Option<SourceStatus>>>;

/// Imports what hooks have requested, until nothing is left; returns what failed. Waits at most `patience` for
/// another import, and then fails with `importBusy`: the requests stay, for whoever takes them next.
///
/// A file that changes soon after is imported again, as a tool may write after its hook.
pub fn take(store: &Store, patience: Duration) -> Result<Vec<Error>> {
    let until = Instant::now() + patience;
    let Some(requests) = Requests::existing(store.path()) else {
        return Ok(Vec::new());
    };
    if requests.waiting()?.is_empty() {
        return Ok(Vec::new());
    }
    let mut failures = Vec::new();
    let mut imported = Groups::new();
    for _ in 0..MAX_ROUNDS {
        let lock = requests.lock(until)?.ok_or_else(busy)?;
        let waiting = requests.waiting()?;
        let mut wanted = changed(&imported);
        for (_, request) in &waiting {
            match request {
                Some(request) => add(&mut wanted, request),
                None => failures.push(Error::new(Kind::StorageIo, "a request cannot be read")),
            }
        }
        settle(&wanted);
        imported = import(store, &wanted, until, &mut failures)?;
        for (name, _) in &waiting {
            requests.remove(name)?;
        }
        drop(lock);
        if !changes_within(&imported, UNREST) {
            break;
        }
    }
    Ok(failures)
}

fn busy() -> Error {
    let message = "another import is running; what the hook asks for waits for the next one";
    Error::new(Kind::ImportBusy, message)
}

fn add(groups: &mut Groups, request: &Request) {
    let group = groups.entry((request.tool, request.has_ended)).or_default();
    group.extend(request.paths.iter().map(|path| (path.clone(), None)));
}

/// Waits until no file has changed for a moment.
fn settle(wanted: &Groups) {
    let until = Instant::now() + UNREST;
    let is_quiet = |path: &PathBuf| {
        let status = SourceStatus::of_database(path);
        status.is_ok_and(|status| status.is_quiet(SystemSource.now_ms(), SETTLED))
    };
    while !wanted.values().flat_map(BTreeMap::keys).all(is_quiet) && Instant::now() < until {
        thread::sleep(LOOK);
    }
}

/// Imports the files; returns them with their status before.
fn import(
    store: &Store,
    wanted: &Groups,
    until: Instant,
    failures: &mut Vec<Error>,
) -> Result<Groups> {
    let mut imported = Groups::new();
    for ((tool, has_ended), paths) in wanted {
        let status = |path: &PathBuf| Some((path.clone(), SourceStatus::of_database(path).ok()));
        let before: BTreeMap<_, _> = paths.keys().filter_map(status).collect();
        // A path that is missing would refuse the others.
        let is_there = |(_, status): &(&PathBuf, &Option<SourceStatus>)| status.is_some();
        let there = before.iter().filter(is_there);
        let request = ImportRequest {
            from: Some(*tool),
            paths: there.map(|(path, _)| path.clone()).collect(),
            has_ended: *has_ended,
            ..ImportRequest::default()
        };
        if request.paths.is_empty() {
            continue;
        }
        failures.extend(run(store, &request, until)?);
        imported.insert((*tool, *has_ended), before);
    }
    Ok(imported)
}

/// One import, for which it waits. Returns why it failed, or fails if another one is still running.
fn run(store: &Store, request: &ImportRequest, until: Instant) -> Result<Vec<Error>> {
    loop {
        let import = Import {
            store,
            session_dir: store.path(),
            request,
            now: SystemSource.now_ms(),
            cancel: &Cancel::new(),
            progress: &|_, _| (),
        };
        match import.run_repeatably() {
            Ok((report, _)) => {
                let failed = report.files.into_iter().filter_map(|file| {
                    let error = file.error?;
                    let message = format!("{}: {}", file.path, error.message);
                    Some(Error::new(Kind::ImportFailed, message))
                });
                return Ok(failed.collect());
            }
            Err(error) if error.kind != Kind::ImportBusy => return Ok(vec![error]),
            Err(_) if Instant::now() < until => thread::sleep(BUSY),
            Err(_) => return Err(busy()),
        }
    }
}

/// The files whose status is another one than before their import.
fn changed(imported: &Groups) -> Groups {
    let mut changed = Groups::new();
    for (group, files) in imported {
        let has_changed = |(path, before): &(&PathBuf, &Option<SourceStatus>)| {
            before.is_some() && SourceStatus::of_database(path).ok() != **before
        };
        let files = files.iter().filter(has_changed);
        let files: BTreeMap<_, _> = files.map(|(path, _)| (path.clone(), None)).collect();
        if !files.is_empty() {
            changed.insert(*group, files);
        }
    }
    changed
}

fn changes_within(imported: &Groups, time: Duration) -> bool {
    let until = Instant::now() + time;
    while Instant::now() < until {
        if !changed(imported).is_empty() {
            return true;
        }
        if imported.is_empty() {
            return false;
        }
        thread::sleep(LOOK);
    }
    false
}
