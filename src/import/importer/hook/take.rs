//! Imports what hooks have requested.

use super::requests::{Request, Requests};
use crate::importer::reading::SETTLED;
use crate::importer::redaction::MakeRedact;
use crate::importer::report::ImportReport;
use crate::importer::request::{Import, ImportRequest};
use crate::importer::source::facts::SourceStatus;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};
use treelined_core::agent::Tool;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::id::Source as _;
use treelined_core::tags::GitPlace;
use treelined_core::timestamp::{self, Millis};
use treelined_files::cancel::Cancel;
use treelined_files::clock::SystemSource;
use treelined_files::store::Store;

/// The longest wait until no file changes any more. A tool may write the end of a turn after it has run its hook.
const UNREST: Duration = Duration::from_secs(1);
/// The pause between two checks of the files.
const LOOK: Duration = Duration::from_millis(50);
/// The pause between two attempts to import while another import runs.
const BUSY: Duration = Duration::from_millis(50);
/// The most imports of one file that changes again and again. The import of the next hook imports the rest.
const MAX_ROUNDS: usize = 4;

/// The position in git of each conversation, by its tool and native id.
type Places = BTreeMap<(Tool, String), GitPlace>;

/// The files of each tool, in two groups: files whose turn has ended, and files whose turn has not ended.
type Groups = BTreeMap<(Tool, bool), BTreeMap<PathBuf, Option<SourceStatus>>>;

/// The settings that all imports of a round share.
struct Means<'a> {
    /// The time until which an import waits for another one to end.
    until: Instant,
    redact: MakeRedact<'a>,
}

/// The result of one round of imports.
#[derive(Default)]
struct Imported {
    /// The files, each with its status before the import.
    files: Groups,
    /// The earliest Unix time in milliseconds at which an import takes held-back answers.
    held_until: Option<Millis>,
}

/// Imports the requested files until no request is left. Returns the errors of files and imports that failed. If
/// another import is running, waits for its end, at most `patience`. Then it fails with `importBusy`, and the
/// requests stay for a later call.
///
/// A file is imported again if it changes soon after its import, because a tool may write after its hook. It is also
/// imported again if its last answer, or the last answer of a subagent, was held back because the answer was too new.
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
    let message = "another import is running; the request of the hook waits for the next import";
    Error::new(Kind::ImportBusy, message)
}

fn add(groups: &mut Groups, request: &Request) {
    let group = groups.entry((request.tool, request.has_ended)).or_default();
    group.extend(request.paths.iter().map(|path| (path.clone(), None)));
}

/// Waits until all files have been quiet for a moment.
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
        // A missing path is left out, because the import refuses all paths if one is missing.
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

/// Runs one import. Waits while another import runs, and fails with `importBusy` at `means.until`.
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
    /// The files to import again. Until the held-back answers may be imported, these are the files that have changed.
    /// After that, these are all files.
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

/// The files whose status has changed since their import.
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

/// Waits at most `time` for a reason to import files again. Returns whether there is one.
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
