//! Collects the report of an import from the results of its sources and sessions.

use super::ledger::Ledger;
use super::reading::ReadSource;
use super::source::facts::{Source, SourceFailure};
use crate::importer::report::{
    ImportFailure, ImportReport, ImportTotals, ImportedFile, ImportedSession,
};
use std::collections::{HashMap, HashSet};
use treelined_core::agent::Tool;
use treelined_core::error::Error;
use treelined_files::os::file::Location;

/// The most places without records of one file that a report lists.
const MAX_UNPARSABLE: usize = 1_000;

#[derive(Default)]
pub(super) struct Results {
    result: ImportReport,
    /// The tools and ids of the sessions that are in the report. A session may have conversations of several tools.
    listed: HashSet<(String, String)>,
}

impl Results {
    /// Adds the number of sources that were found.
    pub(super) fn found(&mut self, sources: usize) {
        self.result.totals.files += sources as u64;
    }

    /// Adds a source that cannot be imported.
    pub(super) fn fail(&mut self, failure: SourceFailure) {
        self.result.totals.failed += 1;
        self.result.files.push(ImportedFile {
            tool: failure.tool.map(|tool| tool.name().to_owned()),
            path: failure.path.display().to_string(),
            error: Some(ImportFailure {
                kind: failure.kind.to_owned(),
                message: failure.message,
            }),
            ..ImportedFile::default()
        });
    }

    /// Adds a source that has not changed since an earlier import, with its sessions.
    pub(super) fn unchanged(
        &mut self,
        tool: Tool,
        source: &Source,
        ledger: &Ledger,
        known: &HashMap<String, Location>,
        is_wanted: &dyn Fn(&ImportedSession) -> bool,
    ) {
        self.result.totals.unchanged += 1;
        let row = ledger.source(tool, &source.name());
        for target in row.into_iter().flat_map(|row| &row.targets) {
            let session = ledger.session(tool, target);
            let Some(imported) = session.and_then(|session| session.row()) else {
                continue;
            };
            let name = (tool.name().to_owned(), target.clone());
            if !is_wanted(&imported) || !self.listed.insert(name) {
                continue;
            }
            let at = known.get(target).map(|at| at.path().display().to_string());
            let is_trashed = session.is_some_and(|session| session.trashed);
            self.list(ImportedSession {
                path: at.unwrap_or(imported.path),
                created: false,
                entries_added: 0,
                revised: 0,
                skipped: is_trashed.then(|| "trashed".to_owned()),
                ..imported
            });
        }
    }

    /// Adds a source that was read.
    pub(super) fn read(
        &mut self,
        source: &ReadSource,
        mut file: ImportedFile,
        error: Option<Error>,
    ) {
        self.result.totals.bytes += source.scan.len;
        if let Some(error) = error {
            file.error = Some(error.into());
        }
        self.result.totals.failed += u64::from(file.error.is_some());
        self.result.files.push(file);
    }

    /// Adds a session that was written, or that has nothing new.
    pub(super) fn session(&mut self, row: ImportedSession) {
        let name = (row.tool.clone(), row.session_id.clone());
        if self.listed.insert(name) {
            self.list(row);
        }
    }

    fn list(&mut self, row: ImportedSession) {
        let ImportTotals {
            sessions,
            created,
            entries_added,
            branches,
            recovered,
            gaps,
            duplicates,
            revised,
            held,
            held_until,
            ..
        } = &mut self.result.totals;
        *sessions += 1;
        *created += u64::from(row.created);
        for (sum, count) in [
            (entries_added, row.entries_added),
            (branches, row.branches),
            (recovered, row.recovered),
            (gaps, row.gaps),
            (duplicates, row.duplicates),
            (revised, row.revised),
            (held, row.held),
        ] {
            *sum += count;
        }
        let earlier = held_until.iter().chain(&row.held_until).min().cloned();
        *held_until = earlier;
        self.result.sessions.push(row);
    }

    pub(super) fn finish(self) -> ImportReport {
        self.result
    }
}

/// The report of a source, before its members are counted.
pub(super) fn file(source: &ReadSource) -> ImportedFile {
    let unparsable = source.scan.unparsable.iter().take(MAX_UNPARSABLE);
    let damage = source.scan.damage.as_ref();
    ImportedFile {
        tool: Some(source.source.tool.name().to_owned()),
        path: source.source.name(),
        records: source.scan.records,
        unparsable: unparsable.map(|place| [place.at, place.len]).collect(),
        error: damage.map(|damage| ImportFailure {
            kind: damage.kind.to_owned(),
            message: damage.message.clone(),
        }),
        ..ImportedFile::default()
    }
}
