//! `import_sessions` and `import_report` (protocol.md §3.17).

use super::times::time;
use crate::daemon::convert::line::on_one_line;
use crate::parts::ImportRun;
use crate::rpc::arrival::Arrival;
use crate::rpc::handler::Remainder;
use crate::rpc::reply::Prepared;
use crate::rpc::session_read::{Read, ReadAnswer};
use serde_json::value::RawValue;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use treelined_core::entry::Kind as EntryKind;
use treelined_core::error::Result;
use treelined_core::json;
use treelined_files::blocking::blocking;
use treelined_files::lock::lock;
use treelined_wire::{self as wire, Raw};

/// The pause between two notifications of progress.
const PROGRESS_PAUSE: Duration = Duration::from_millis(100);

/// The working memory of an import: a group of conversations, and the lines of the sources that are read at a time.
const IMPORT_BYTES: u64 = 64 << 20;

pub(in crate::rpc) fn import_sessions(
    arrival: &Arrival<'_>,
    params: wire::ImportSessionsParams,
) -> Result<Remainder<Prepared<wire::ImportSessionsResult>>> {
    let since = time("since", params.since.as_deref())?;
    let earlier = arrival.earlier_changes_of_sessions();
    let is_dry_run = params.dry_run.unwrap_or_default();
    let call = Arc::clone(arrival.call());
    let (queues, by) = (&call.daemon.registry.queues, call.connection.id);
    let place = (!is_dry_run).then(|| queues.import(Some(by)));
    let import = move || {
        let reported = Mutex::new(ReportedBytes::default());
        let progress = |read: u64, more: u64| {
            let Some(token) = &call.id else { return };
            if let Some((read, total)) = lock(&reported).add(read, more) {
                call.connection.progress_toward(token, read, Some(total));
            }
        };
        let _memory = call.daemon.memory.reserve(IMPORT_BYTES)?;
        let report = call.daemon.parts.importer()?.import(&ImportRun {
            params: &params,
            since,
            store: &call.daemon.files.store,
            now: call.daemon.source.now_ms(),
            cancel: &call.cancel,
            progress: &progress,
        })?;
        Ok(Prepared::bytes(on_one_line(report)))
    };
    Ok(Remainder::of(async move {
        let _place = place;
        earlier.await?;
        blocking(import).await
    }))
}

/// The progress of an import.
#[derive(Default)]
struct ReportedBytes {
    read: u64,
    total: u64,
    last: Option<Instant>,
}

impl ReportedBytes {
    /// Counts bytes. Returns the bytes that are read and their total, unless the last report is too recent.
    fn add(&mut self, read: u64, more: u64) -> Option<(u64, u64)> {
        self.total += more;
        // A compressed file gives more bytes than its size on disk, so the number is limited to the total.
        self.read = (self.read + read).min(self.total);
        if self
            .last
            .is_some_and(|last| last.elapsed() < PROGRESS_PAUSE)
        {
            return None;
        }
        self.last = Some(Instant::now());
        Some((self.read, self.total))
    }
}

pub(in crate::rpc) fn import_report(
    read: &Read<'_>,
    _params: &wire::ImportReportParams,
) -> Result<ReadAnswer<wire::ImportReportResult>> {
    let tree = &read.tree;
    let nodes = (0..tree.node_count()).filter_map(|number| tree.node(number));
    let records: Vec<_> = nodes
        .filter(|node| tree.kind(*node) == EntryKind::LeafRecord)
        .map(|node| tree.place(node))
        .collect();
    let size = records.iter().map(|place| u64::from(place.len)).sum();
    let bodies = read.bodies();
    Ok(ReadAnswer::later(size, move || {
        let mut imports = Vec::new();
        for place in records {
            imports.extend(import_record(&bodies.read(place)?));
        }
        Ok(wire::ImportReportResult { imports })
    }))
}

/// The report of an import, in the leaf record of the import. `None` for any other leaf record.
fn import_record(line: &[u8]) -> Option<wire::ImportRecord> {
    let text = |path: &[&str]| Some(json::string(json::get_path(line, path)?)?.into_owned());
    if text(&["data", "cause"])? != "import" {
        return None;
    }
    let report = json::get_path(line, &["data", "import", "report"])?;
    let report = String::from_utf8(report.to_vec()).ok()?;
    let report: Raw = RawValue::from_string(report).ok()?;
    Some(wire::ImportRecord {
        timestamp: text(&["timestamp"])?,
        source_leaf: text(&["data", "import", "sourceLeaf"]),
        report,
    })
}
