//! Imports what hooks have requested.

use super::requests::{Request, Requests};
use crate::importer::reading::SETTLED;
use crate::importer::redaction::MakeRedact;
use crate::importer::report::ImportReport;
use crate::importer::request::{Import, ImportRequest};
use crate::importer::source::facts::SourceStatus;
use crate::tool::Tool;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};
use treelined_core::error::{Error, Kind, Result};
use treelined_core::id::Source as _;
use treelined_core::tags::GitPlace;
use treelined_core::timestamp::{self, Millis};
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

/// Where in git each conversation is, by the tool's id of it.
type Places = BTreeMap<(Tool, String), GitPlace>;

/// The files of one tool, and whether the turn has ended.
type Groups = BTreeMap<(Tool, bool), BTreeMap<PathBuf, Option<SourceStatus>>>;

/// What each import of a round has.
struct Means<'a> {
    /// How long to wait for another import.
    until: Instant,
    redact: MakeRedact<'a>,
}

/// The files of one round.
#[derive(Default)]
struct Imported {
    /// The files with their status before.
    files: Groups,
    /// When an answer counts that a file, or one of its subagents', has held back.
    held_until: Option<Millis>,
}

/// Imports what hooks have requested, until nothing is left; returns what failed. Waits at most `patience` for
/// another import, and then fails with `importBusy`: the requests stay, for whoever takes them next.
///
/// A file that changes soon after is imported again, as a tool may write after its hook; so is one whose last answer, or a
/// subagent's, was written too late to count.
pub fn take(store: &Store, patience: Duration, redact: MakeRedact<'_>) -> Result<Vec<Error>> {
    let until = Instant::now() + patience;
    let Some(requests) = Requests::existing(store.path()) else {
        return Ok(Vec::new());
    };
    if requests.waiting()?.is_empty() {
        return Ok(Vec::new());
    }
    let mut failures = Vec::new();
    let mut imported = Imported::default();
    let mut places = Places::new();
    for _ in 0..MAX_ROUNDS {
        let lock = requests.lock(until)?.ok_or_else(busy)?;
        let waiting = requests.waiting()?;
        let mut wanted = imported.again();
        for (_, request) in &waiting {
            match request {
                Some(request) => {
                    add(&mut wanted, request);
                    let git = request.git.clone();
                    places.extend(git.map(|(native, place)| ((request.tool, native), place)));
                }
                None => failures.push(Error::new(Kind::StorageIo, "a request cannot be read")),
            }
        }
        settle(&wanted);
        let means = Means { until, redact };
        imported = import(store, &wanted, &places, &means, &mut failures)?;
        for (name, _) in &waiting {
            requests.remove(name)?;
        }
        drop(lock);
        if !is_again_within(&imported, UNREST) {
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

fn import(
    store: &Store,
    wanted: &Groups,
    places: &Places,
    means: &Means<'_>,
    failures: &mut Vec<Error>,
) -> Result<Imported> {
    let mut imported = Imported::default();
    for ((tool, has_ended), paths) in wanted {
        let status = |path: &PathBuf| Some((path.clone(), SourceStatus::of_database(path).ok()));
        let before: BTreeMap<_, _> = paths.keys().filter_map(status).collect();
        // A path that is missing would refuse the others.
        let is_there = |(_, status): &(&PathBuf, &Option<SourceStatus>)| status.is_some();
        let there = before.iter().filter(is_there);
        let of_tool = places.iter().filter(|((of, _), _)| of == tool);
        let of_tool = of_tool.map(|((_, native), place)| (native.clone(), place.clone()));
        let request = ImportRequest {
            from: Some(*tool),
            paths: there.map(|(path, _)| path.clone()).collect(),
            has_ended: *has_ended,
            git: of_tool.collect(),
            ..ImportRequest::default()
        };
        if request.paths.is_empty() {
            continue;
        }
        let report = run(store, &request, means, failures)?;
        let held = report.totals.held_until.as_deref();
        let held = held.and_then(timestamp::parse).into_iter();
        imported.held_until = held.chain(imported.held_until).min();
        imported.files.insert((*tool, *has_ended), before);
    }
    Ok(imported)
}

/// One import, for which it waits. Fails if another one is still running.
fn run(
    store: &Store,
    request: &ImportRequest,
    means: &Means<'_>,
    failures: &mut Vec<Error>,
) -> Result<ImportReport> {
    loop {
        let import = Import {
            store,
            session_dir: store.path(),
            request,
            now: SystemSource.now_ms(),
            cancel: &Cancel::new(),
            progress: &|_, _| (),
            redact: means.redact,
        };
        match import.run_repeatably() {
            Ok((report, _)) => {
                let failed = report.files.iter().filter_map(|file| {
                    let message = format!("{}: {}", file.path, file.error.as_ref()?.message);
                    Some(Error::new(Kind::ImportFailed, message))
                });
                failures.extend(failed);
                return Ok(report);
            }
            Err(error) if error.kind != Kind::ImportBusy => {
                failures.push(error);
                return Ok(ImportReport::default());
            }
            Err(_) if Instant::now() < means.until => thread::sleep(BUSY),
            Err(_) => return Err(busy()),
        }
    }
}

impl Imported {
    /// The files to import again: all of them once what was held back counts, else those that have changed.
    fn again(&self) -> Groups {
        let counts = |at| at <= SystemSource.now_ms();
        if !self.held_until.is_some_and(counts) {
            return changed(&self.files);
        }
        let all = self.files.iter().map(|(group, files)| {
            let files = files.keys().map(|path| (path.clone(), None));
            (*group, files.collect())
        });
        all.collect()
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

/// Whether files have to be imported again after at most this time.
fn is_again_within(imported: &Imported, time: Duration) -> bool {
    let until = Instant::now() + time;
    while Instant::now() < until && !imported.files.is_empty() {
        if !imported.again().is_empty() {
            return true;
        }
        thread::sleep(LOOK);
    }
    false
}
