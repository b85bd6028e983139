//! `search` (protocol.md §3.16): params, cursors and pages; the search itself is [`treelined_find`]'s.

use crate::daemon::convert::line::line;
use crate::rpc::arrival::Arrival;
use crate::rpc::handler::Remainder;
use crate::rpc::reply::page_bytes;
use std::sync::Arc;
use std::time::{Duration, Instant};
use treelined_core::error::{Error, Result};
use treelined_core::name;
use treelined_core::search::Query;
use treelined_core::timestamp::{self, Millis};
use treelined_files::blocking::blocking;
use treelined_find::{
    self, Branch, BranchFilter, EntryFilter, FieldSet, Hit, IndexSettings, Key, SearchOutcome,
    SearchRequest, SearchWatch, SearchedStore,
};
use treelined_wire as wire;

/// The hits of a page if the client does not say.
const USUAL_HITS: u64 = 50;
/// The most hits of a page.
const MOST_HITS: u64 = 1000;
/// The pause between two notifications of progress.
const PROGRESS_PAUSE: Duration = Duration::from_millis(100);

pub(in crate::rpc) fn search(
    arrival: &Arrival<'_>,
    params: wire::SearchParams,
) -> Result<Remainder<wire::SearchResult>> {
    let request = request(params)?;
    let (call, earlier) = (Arc::clone(arrival.call()), arrival.earlier_changes());
    let fits = page_bytes(call.connection.client_frame_bytes());
    let search = move || {
        let connection = &call.connection;
        let token = call.id.as_ref().filter(|_| connection.wants_search_hits());
        let mut on_hit = |hit: &Hit| {
            if let Some(token) = token {
                connection.search_hit(token, wire_hit(hit));
            }
        };
        let searched = SearchedStore {
            store: &call.daemon.files.store,
            index: IndexSettings::of_environment(),
        };
        let mut last: Option<Instant> = None;
        let mut on_progress = |bytes: u64, total: u64| {
            let is_due = last.is_none_or(|last| last.elapsed() >= PROGRESS_PAUSE);
            if let Some(token) = call.id.as_ref().filter(|_| is_due) {
                last = Some(Instant::now());
                connection.progress_toward(token, bytes.min(total), Some(total));
            }
        };
        let mut watch = SearchWatch {
            on_hit: &mut on_hit,
            on_progress: &mut on_progress,
        };
        let outcome = treelined_find::search(searched, &request, &call.cancel, &mut watch)?;
        result(outcome, fits)
    };
    Ok(Remainder::of(async move {
        earlier.await?;
        blocking(search).await
    }))
}

fn request(params: wire::SearchParams) -> Result<SearchRequest> {
    let query = Query::parse(&params.query, params.mode.unwrap_or_default());
    let query = query.map_err(|reason| Error::invalid_params("query", reason))?;
    let query = query.ok_or_else(|| Error::invalid_params("query", "is empty"))?;
    let fields = match params.fields {
        None => FieldSet::ALL,
        Some(fields) if fields.is_empty() => {
            return Err(Error::invalid_params("in", "names no field"));
        }
        Some(fields) => FieldSet::of(fields),
    };
    let limit = params.limit.unwrap_or(USUAL_HITS);
    if limit > MOST_HITS {
        let reason = format!("is more than {MOST_HITS}");
        return Err(Error::invalid_params("limit", reason));
    }
    let after = params.cursor.as_deref().map(|cursor| {
        Key::of_cursor(cursor)
            .ok_or_else(|| Error::invalid_params("cursor", "is no cursor of search"))
    });
    Ok(SearchRequest {
        query,
        fields,
        cwd: params.cwd.as_deref().map(name::directory),
        entries: EntryFilter {
            tool: params.tool,
            source: params.source,
            role: params.role,
        },
        since: time("since", params.since.as_deref())?,
        until: time("until", params.until.as_deref())?,
        branches: match params.branches.unwrap_or_default() {
            wire::SearchBranches::All => BranchFilter::All,
            wire::SearchBranches::Active => BranchFilter::Active,
            wire::SearchBranches::Abandoned => BranchFilter::Abandoned,
        },
        limit: usize::try_from(limit).unwrap_or(usize::MAX),
        after: after.transpose()?,
    })
}

/// An instant, or the beginning of a day in UTC.
fn time(field: &str, text: Option<&str>) -> Result<Option<Millis>> {
    let Some(text) = text else {
        return Ok(None);
    };
    let day = || timestamp::parse(&format!("{text}T00:00:00.000Z"));
    let at = timestamp::parse(text).or_else(day);
    let unreadable = || Error::invalid_params(field, "is neither YYYY-MM-DD nor an RFC 3339 time");
    at.map(Some).ok_or_else(unreadable)
}

/// A page ends before the first hit that does not fit into `fits` bytes, but has at least one.
fn result(outcome: SearchOutcome, fits: usize) -> Result<wire::SearchResult> {
    let SearchOutcome {
        hits,
        totals,
        has_more,
        partial,
    } = outcome;
    let mut page = Vec::with_capacity(hits.len());
    let (mut bytes, mut last, mut is_whole) = (0, None, !has_more);
    for (key, hit) in &hits {
        let hit = wire_hit(hit);
        bytes += line(&hit)?.len() + 1;
        if bytes > fits && last.is_some() {
            is_whole = false;
            break;
        }
        page.push(hit);
        last = Some(key);
    }
    let unsearched = partial.into_iter().map(|file| wire::UnsearchedFile {
        path: file.path.display().to_string(),
        kind: file.kind.name().to_owned(),
    });
    Ok(wire::SearchResult {
        hits: page,
        totals: wire::SearchTotals {
            sessions: totals.sessions,
            entries: totals.entries,
            scanned_bytes: totals.scanned_bytes,
            at_least: totals.are_least,
        },
        next_cursor: last.filter(|_| !is_whole).map(Key::to_cursor),
        partial: unsearched.collect(),
    })
}

fn wire_hit(hit: &Hit) -> wire::SearchHit {
    let Branch {
        tip_id,
        on_active_path,
        left_at,
    } = hit.branch.clone();
    let ranges = hit.excerpt.ranges.iter();
    wire::SearchHit {
        session_id: hit.session_id.clone(),
        session_name: hit.session_name.clone(),
        entry_id: hit.entry_id.clone(),
        field: hit.field,
        at: timestamp::format(hit.at),
        snippet: hit.excerpt.text.clone(),
        ranges: ranges
            .map(|range| [range.start as u64, range.end as u64])
            .collect(),
        score: f64::from(hit.score),
        branch: wire::HitBranch {
            tip_id,
            on_active_path,
            left_at,
        },
    }
}
