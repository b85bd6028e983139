//! `import_sessions` and `import_report` (protocol.md §3.17).

use super::list;
use crate::daemon::call::Call;
use crate::daemon::convert;
use crate::parts::ImportRun;
use crate::rpc::handler::{Read, ReadAnswer, Remainder};
use crate::rpc::reply::Prepared;
use serde_json::value::RawValue;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use treelined_core::entry::Kind as EntryKind;
use treelined_core::error::{Error, Result};
use treelined_core::json;
use treelined_core::timestamp::{self, Millis};
use treelined_files::blocking::blocking;
use treelined_files::lock::lock;
use treelined_wire::{self as wire, Raw};

/// The pause between two notifications of progress.
const PROGRESS_PAUSE: Duration = Duration::from_millis(100);

pub(in crate::rpc) fn import_sessions(
    call: &Arc<Call>,
    params: wire::ImportSessionsParams,
) -> Result<Remainder<Prepared<wire::ImportSessionsResult>>> {
    let since = params.since.as_deref().map(instant).transpose()?;
    let earlier = list::earlier_changes_of_sessions(call);
    let is_dry_run = params.dry_run.unwrap_or_default();
    let place = (!is_dry_run).then(|| call.daemon.queues.import(Some(call.connection.id)));
    let call = Arc::clone(call);
    let import = move || {
        let told = Mutex::new(ReportedBytes::default());
        let progress = |read: u64, more: u64| tell(&call, &mut lock(&told), read, more);
        let report = call.daemon.importer()?.import(&ImportRun {
            params: &params,
            since,
            store: &call.daemon.store,
            now: call.daemon.source.now_ms(),
            cancel: &call.cancel,
            progress: &progress,
        })?;
        Ok(Prepared::bytes(convert::on_one_line(report)))
    };
    Ok(Box::pin(async move {
        let _place = place;
        earlier.await?;
        blocking(import).await
    }))
}

/// An instant in RFC 3339, or the beginning of a day in UTC.
fn instant(text: &str) -> Result<Millis> {
    let whole = match text.len() {
        10 => timestamp::parse(&format!("{text}T00:00:00Z")),
        _ => timestamp::parse(text),
    };
    whole.ok_or_else(|| Error::invalid_params("since", "is neither RFC 3339 nor YYYY-MM-DD"))
}

/// The progress of an import.
#[derive(Default)]
struct ReportedBytes {
    read: u64,
    total: u64,
    last: Option<Instant>,
}

fn tell(call: &Call, told: &mut ReportedBytes, read: u64, more: u64) {
    told.total += more;
    // A compressed file has more bytes than its size on disk.
    told.read = (told.read + read).min(told.total);
    let is_early = told
        .last
        .is_some_and(|last| last.elapsed() < PROGRESS_PAUSE);
    if let Some(token) = call.id.as_ref().filter(|_| !is_early) {
        told.last = Some(Instant::now());
        call.connection
            .progress_toward(token, told.read, Some(told.total));
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

/// The report in a leaf record; `None` if it is not that of an import.
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
