//! `list_sessions`: filters, order and pages of rows (protocol.md §3). The catalogue makes the rows.

use super::selection::Selection;
use super::team_rows::{self, LogMembers};
use crate::daemon::convert::line::line;
use crate::daemon::session_row::{LONGEST_ESCAPE, is_of, path_of, session_row, shortened_row};
use crate::daemon::shown_rows::ShownRows;
use crate::rpc::arrival::Arrival;
use crate::rpc::handler::Remainder;
use crate::rpc::reply::{Prepared, page_bytes};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use treelined_core::error::{Error, Result};
use treelined_core::name;
use treelined_core::search::ShownText;
use treelined_core::timestamp::{self, Millis};
use treelined_files::blocking::blocking;
use treelined_files::log::upstream;
use treelined_files::os::file::Location;
use treelined_files::store::catalogue::CatalogueRow;
use treelined_files::store::conversations::Conversations;
use treelined_files::store::family::ChildCounts;
use treelined_files::store::trash::DeletedSession;
use treelined_wire as wire;

pub(in crate::rpc) fn list_sessions(
    arrival: &Arrival<'_>,
    params: wire::ListSessionsParams,
) -> Result<Remainder<Prepared<wire::ListSessionsResult>>> {
    let (files, earlier) = (
        Arc::clone(&arrival.call().daemon.files),
        arrival.earlier_changes(),
    );
    let fits = page_bytes(arrival.call().connection.client_frame_bytes());
    let rights = Arc::clone(arrival.call().connection.rights());
    Ok(Remainder::of(async move {
        earlier.await?;
        blocking(move || {
            let team = files
                .team()
                .filter(|_| !params.local && !rights.is_limited());
            let mut rows = rights.rows(files.store.list()?);
            let mut log = LogMembers {
                team: team.map(|team| team.list(&team_rows::query(&rows, &params))),
                queued: files.queued_sessions(),
                ..LogMembers::default()
            };
            if let Some(team) = &log.team {
                let mut left = rows.to_vec();
                files.discard_deleted(team, &mut left);
                rows = Arc::new(left);
            }
            if let Some(shown) = rights.shown_text().filter(|_| params.query.is_some()) {
                rows = Arc::new(rows.iter().map(|row| shown_as(row, &shown)).collect());
            }
            log.conversations = Conversations::of(&rows);
            log.children = ChildCounts::of(&rows);
            page(&rows, &params, &log, &files.shown_rows, fits).map(Prepared::bytes)
        })
        .await
    }))
}

pub(in crate::rpc) fn list_trash(
    arrival: &Arrival<'_>,
    params: wire::ListTrashParams,
) -> Result<Remainder<wire::ListTrashResult>> {
    let files = Arc::clone(&arrival.call().daemon.files);
    let list = move || trash_page(files.store.trashed()?, &params);
    Ok(Remainder::of(blocking(list)))
}

/// A page of the trash.
fn trash_page(
    mut trashed: Vec<DeletedSession>,
    params: &wire::ListTrashParams,
) -> Result<wire::ListTrashResult> {
    let cwd = params.cwd.as_deref().map(name::directory);
    trashed.retain(|trashed| is_of(&trashed.row.listing, cwd.as_deref()));
    let is_last = |cursor: &str, trashed: &DeletedSession| path_of(&trashed.row.listing) == cursor;
    let start = after(&trashed, params.cursor.as_deref(), is_last)?;
    let limit = params.limit.map_or(usize::MAX, |limit| limit as usize);
    let end = trashed.len().min(start.saturating_add(limit));
    let shown = trashed.get(start..end).unwrap_or_default();
    let row = |trashed: &DeletedSession| wire::TrashedRow {
        row: wire::SessionRow {
            path: trashed.returns_to.display().to_string(),
            ..session_row(&trashed.row)
        },
        trashed_path: path_of(&trashed.row.listing),
        deleted_at: timestamp::format(trashed.deleted_at),
        lost: lost_in(&trashed.row.listing.path),
    };
    let last = shown.last().filter(|_| end < trashed.len());
    Ok(wire::ListTrashResult {
        sessions: shown.iter().map(row).collect(),
        next_cursor: last.map(|last| path_of(&last.row.listing)),
    })
}

/// The number of entries that are only in this file of the trash.
fn lost_in(path: &Path) -> Option<u64> {
    let at = Location::of_path(path).ok()?;
    Some(upstream::lost(&at)).filter(|lost| *lost > 0)
}

/// The index of the first row after this cursor.
fn after<T>(rows: &[T], cursor: Option<&str>, is_last: impl Fn(&str, &T) -> bool) -> Result<usize> {
    let Some(cursor) = cursor else {
        return Ok(0);
    };
    let last = rows.iter().position(|row| is_last(cursor, row));
    let last = last
        .ok_or_else(|| Error::invalid_params("cursor", "names no session of this list any more"))?;
    Ok(last + 1)
}

/// A `ListSessionsResult`. The page ends at `limit` rows, or before a row that does not fit into `fits` bytes.
fn page(
    rows: &[Arc<CatalogueRow>],
    params: &wire::ListSessionsParams,
    log: &LogMembers,
    shown_rows: &ShownRows,
    fits: usize,
) -> Result<Vec<u8>> {
    let others = match log.team.as_deref() {
        Some(team) if params.cursor.is_none() => team_rows::members(team, rows, params, fits / 4)?,
        _ => Vec::new(),
    };
    let (rows, archived) = match params.team_cursor {
        None => filtered(rows, params),
        Some(_) => (Vec::new(), 0),
    };
    let rows = ordered(rows, params.sort.unwrap_or_default());
    let is_last =
        |cursor: &str, row: &Arc<CatalogueRow>| row.listing.path.to_string_lossy() == *cursor;
    let start = after(&rows, params.cursor.as_deref(), is_last)?;
    let limit = params.limit.map_or(usize::MAX, |limit| limit as usize);
    let end = rows.len().min(start.saturating_add(limit));
    let shown = rows.get(start..end).unwrap_or_default();
    let left = fits - others.len().min(fits);
    let mut made = result(shown, end < rows.len(), log, shown_rows, left)?;
    team_rows::insert(&mut made, &others);
    if params.cursor.is_none() && archived > 0 {
        let count = format!("\"archivedCount\":{archived}");
        team_rows::insert(&mut made, count.as_bytes());
    }
    Ok(made)
}

/// A `ListSessionsResult` of as many rows as fit, but at least one. `more` says whether rows follow them.
fn result(
    rows: &[Arc<CatalogueRow>],
    more: bool,
    log: &LogMembers,
    shown_rows: &ShownRows,
    fits: usize,
) -> Result<Vec<u8>> {
    let mut out = b"{\"sessions\":[".to_vec();
    let mut last = None;
    for row in rows {
        let mut shown = shown_rows.json(row)?;
        // The cursor needs space if the page ends at this row.
        let cursor = row.listing.path.as_os_str().len() * LONGEST_ESCAPE;
        let members = log.of(row)?;
        let left = fits.saturating_sub(out.len() + cursor + members.len());
        if last.is_some() && shown.len() > left {
            break;
        }
        if shown.len() > left {
            shown = shortened_row(row, left)?.into();
        }
        if last.is_some() {
            out.push(b',');
        }
        out.extend_from_slice(&shown);
        team_rows::insert(&mut out, &members);
        last = Some(row);
    }
    out.push(b']');
    let is_whole = !more && last.map(Arc::as_ptr) == rows.last().map(Arc::as_ptr);
    if let Some(last) = last.filter(|_| !is_whole) {
        out.extend_from_slice(b",\"nextCursor\":");
        out.extend_from_slice(&line(&path_of(&last.listing))?);
    }
    out.push(b'}');
    Ok(out)
}

/// A row with the texts that a connection sees. A query must not match any other text.
fn shown_as(row: &CatalogueRow, shown: &ShownText) -> Arc<CatalogueRow> {
    let mut listing = row.listing.clone();
    for text in listing.name.iter_mut().chain([&mut listing.first_message]) {
        if let Some(shown) = (shown.0)(text) {
            *text = shown;
        }
    }
    Arc::new(CatalogueRow {
        marks: row.marks.clone(),
        ..CatalogueRow::new(row.status, listing)
    })
}

/// The rows that the params select, and the number of archived rows that they leave out.
fn filtered(
    rows: &[Arc<CatalogueRow>],
    params: &wire::ListSessionsParams,
) -> (Vec<Arc<CatalogueRow>>, u64) {
    let (selection, shows) = (Selection::of(params), params.archived.unwrap_or_default());
    let mut left_out = 0;
    let keep = |row: &&Arc<CatalogueRow>| {
        let is_left_out = row.marks.is_archived && !shows;
        if is_left_out && selection.has(row) {
            left_out += 1;
        }
        !is_left_out && selection.has(row)
    };
    let kept = rows.iter().filter(keep).cloned().collect();
    (kept, left_out)
}

/// Sorts rows. The rows come sorted by last activity, and rows that are equal keep that order.
fn ordered(mut rows: Vec<Arc<CatalogueRow>>, sort: wire::SessionSort) -> Vec<Arc<CatalogueRow>> {
    match sort {
        wire::SessionSort::Recent => {}
        wire::SessionSort::Pinned => rows.sort_by_key(|row| !row.marks.is_pinned),
        wire::SessionSort::Created => rows.sort_by_key(|row| Reverse(row.listing.created)),
        wire::SessionSort::Name => rows.sort_by_cached_key(|row| {
            let name = row.listing.name.as_ref().map(|name| name.to_lowercase());
            (name.is_none(), name)
        }),
        wire::SessionSort::Threaded => return threaded(rows),
    }
    rows
}

/// Sorts forks directly after their source. Families, and the forks of one session, are sorted by their newest
/// activity.
fn threaded(rows: Vec<Arc<CatalogueRow>>) -> Vec<Arc<CatalogueRow>> {
    let mut families = Families::of(&rows);
    let mut newest: Vec<Millis> = rows.iter().map(|row| row.listing.modified).collect();
    // In reverse order, each fork comes before its source.
    for index in families.in_order().into_iter().rev() {
        let own = newest.get(index).copied();
        let parent = families.parents.get(index).copied().flatten();
        if let Some(parent) = parent.and_then(|parent| newest.get_mut(parent)) {
            *parent = own.map_or(*parent, |own| own.max(*parent));
        }
    }
    families.sort_by_key(|index| Reverse(newest.get(index).copied()));
    let order = families.in_order().into_iter();
    order.filter_map(|index| rows.get(index).cloned()).collect()
}

/// The source of a fork, as the header of the row names it.
fn source_of(row: &CatalogueRow) -> Option<&str> {
    row.listing.header.as_ref()?.parent_session.as_deref()
}

/// For each row, its source and its forks, by index.
struct Families {
    parents: Vec<Option<usize>>,
    children: HashMap<usize, Vec<usize>>,
    roots: Vec<usize>,
}

impl Families {
    fn of(rows: &[Arc<CatalogueRow>]) -> Self {
        let mut by_name: HashMap<Cow<'_, str>, usize> = HashMap::new();
        // Most lists have no forks, so the table is made only if there are some.
        let has_forks = rows.iter().any(|row| source_of(row).is_some());
        for (index, row) in rows.iter().enumerate().filter(|_| has_forks) {
            by_name.insert(row.listing.path.to_string_lossy(), index);
            if let Some(header) = &row.listing.header {
                let id = Cow::Borrowed(&*header.id);
                by_name.entry(id).or_insert(index);
            }
        }
        let parent = |(index, row): (usize, &Arc<CatalogueRow>)| {
            let named = source_of(row)?;
            // The header may have a path that is relative to the folder of the fork.
            let beside = || row.listing.path.with_file_name(named).display().to_string();
            let parent = by_name.get(named).or_else(|| by_name.get(&*beside()));
            parent.copied().filter(|parent| *parent != index)
        };
        let mut families = Self {
            parents: rows.iter().enumerate().map(parent).collect(),
            children: HashMap::new(),
            roots: Vec::new(),
        };
        for (index, parent) in families.parents.iter().enumerate() {
            match parent {
                Some(parent) => families.children.entry(*parent).or_default().push(index),
                None => families.roots.push(index),
            }
        }
        families.cut_circles();
        families
    }

    /// If forks form a cycle, none of them is a root. The first fork of each cycle then becomes a root.
    fn cut_circles(&mut self) {
        let mut seen = vec![false; self.parents.len()];
        let see = |seen: &mut Vec<bool>, found: Vec<usize>| {
            for index in found {
                if let Some(seen) = seen.get_mut(index) {
                    *seen = true;
                }
            }
        };
        see(&mut seen, self.in_order());
        for index in 0..self.parents.len() {
            if seen.get(index) == Some(&true) {
                continue;
            }
            let parent = self.parents.get_mut(index).and_then(Option::take);
            if let Some(forks) = parent.and_then(|parent| self.children.get_mut(&parent)) {
                forks.retain(|fork| *fork != index);
            }
            self.roots.push(index);
            see(&mut seen, self.below(vec![index]));
        }
    }

    fn sort_by_key<K: Ord>(&mut self, key: impl Fn(usize) -> K) {
        self.roots.sort_by_key(|index| key(*index));
        for forks in self.children.values_mut() {
            forks.sort_by_key(|index| key(*index));
        }
    }

    /// All rows in an order in which each row comes before its forks.
    fn in_order(&self) -> Vec<usize> {
        self.below(self.roots.clone())
    }

    fn below(&self, roots: Vec<usize>) -> Vec<usize> {
        let mut order = Vec::with_capacity(self.parents.len());
        let mut waiting = roots;
        waiting.reverse();
        while let Some(index) = waiting.pop() {
            order.push(index);
            let forks = self.children.get(&index).into_iter().flatten();
            waiting.extend(forks.rev());
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::HashSet;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use treelined_core::error::Kind;
    use treelined_core::team::{TeamList, TeamSession};
    use treelined_files::os::file::{Identity, Status};
    use treelined_files::store::listing::Listing;

    fn row(path: &[u8], name: Option<&str>, problem: Option<Kind>) -> Arc<CatalogueRow> {
        let status = Status {
            identity: Identity {
                device: 1,
                inode: 2,
            },
            size: 3,
            modified: (4, 5),
            changed: (4, 5),
        };
        let header = treelined_files::log::header::Header::new("s", 5, "/c\u{2029}", Some("p\n"));
        let listing = Listing {
            path: OsStr::from_bytes(path).into(),
            header: Some(header).filter(|_| problem.is_none()),
            name: name.map(str::to_owned),
            created: -1,
            modified: 1_700_000_000_000,
            message_count: 7,
            first_message: "first \"quoted\"".to_owned(),
            source: None,
            recorded: Vec::new(),
            continued: Vec::new(),
            sorting: treelined_core::tags::Sorting::default(),
            problem,
        };
        Arc::new(CatalogueRow::new(status, listing))
    }

    #[test]
    fn a_page_put_together_is_what_its_type_says() {
        let rows = [
            row(b"/a.jsonl", None, None),
            row(b"/\xff\xe2\x80\xa8.jsonl", Some("n\u{2028}\u{1f600}"), None),
            row(b"/b\\\".jsonl", None, Some(Kind::HeaderMissing)),
        ];
        let shown_rows = ShownRows::default();
        for count in 0..=rows.len() {
            let rows = &rows[..count];
            for more in [false, true] {
                let last = rows.last().filter(|_| more);
                let expected = line(&wire::ListSessionsResult {
                    sessions: rows.iter().map(|row| session_row(row)).collect(),
                    next_cursor: last.map(|row| path_of(&row.listing)),
                    archived_count: None,
                    team: None,
                    team_count: None,
                    team_at_least: None,
                    next_team_cursor: None,
                    team_diagnostic: None,
                })
                .unwrap();
                assert_eq!(
                    result(rows, more, &LogMembers::default(), &shown_rows, 1 << 20).unwrap(),
                    expected,
                    "made"
                );
                assert_eq!(
                    result(rows, more, &LogMembers::default(), &shown_rows, 1 << 20).unwrap(),
                    expected,
                    "kept"
                );
            }
        }
    }

    #[test]
    fn a_session_of_the_log_is_in_the_list_once_with_its_file_or_without() {
        let session = |id: &str| TeamSession {
            session_id: id.to_owned(),
            row: None,
            open_on: Vec::new(),
            place: None,
        };
        let team = TeamList::new("log".to_owned(), vec![session("s"), session("t")]);
        let log = LogMembers {
            team: Some(Arc::new(team)),
            queued: HashSet::from(["s".to_owned()]),
            ..LogMembers::default()
        };
        let rows = || vec![row(b"/a.jsonl", None, None)];
        let read = |rows: &[Arc<CatalogueRow>], params, log: &LogMembers| -> serde_json::Value {
            let params = serde_json::from_value(params).unwrap();
            let made = page(rows, &params, log, &ShownRows::default(), 4000).unwrap();
            serde_json::from_slice(&made).unwrap()
        };
        let list = read(&rows(), json!({}), &log);
        assert_eq!(
            list["sessions"][0]["log"],
            json!({ "stream": "log", "openOn": [] })
        );
        assert_eq!(list["sessions"][0]["queued"], true);
        assert_eq!(list["team"], json!([{ "sessionId": "t", "openOn": [] }]));
        assert_eq!(list["teamCount"], 1);
        // A session whose row the params leave out still has a file here, so it is not a session of the team alone.
        let list = read(&rows(), json!({ "named": true }), &log);
        assert_eq!(
            (&list["sessions"], &list["teamCount"]),
            (&json!([]), &json!(0))
        );
        let list = read(&rows(), json!({ "cursor": "/a.jsonl" }), &log);
        assert_eq!(list, json!({ "sessions": [] }), "a further page");
        let list = read(&rows(), json!({}), &LogMembers::default());
        let row = &list["sessions"][0];
        assert!(row.get("log").is_none() && row.get("queued").is_none());
        assert!(list.get("team").is_none());
    }

    /// A thousand rows of 100 kB were once answered with `responseTooLarge`. A page must end before a row that does not
    /// fit, and a row that fits no page must be shortened.
    #[test]
    fn a_page_ends_before_the_row_that_does_not_fit_and_no_row_is_too_large() {
        let name = "n\n".repeat(2_000);
        let rows = [
            row(b"/a.jsonl", Some("short"), None),
            row(b"/b.jsonl", Some(&name), None),
            row(b"/c.jsonl", None, None),
        ];
        let read = |rows: &[Arc<CatalogueRow>], fits: usize| -> serde_json::Value {
            let bytes = result(
                rows,
                false,
                &LogMembers::default(),
                &ShownRows::default(),
                fits,
            )
            .unwrap();
            // The object around the rows does not count for the limit.
            assert!(bytes.len() <= fits + 32, "{} of {fits}", bytes.len());
            serde_json::from_slice(&bytes).unwrap()
        };
        for fits in [700, 2_000, 6_000, 20_000] {
            let mut seen = Vec::new();
            let mut rest = &rows[..];
            loop {
                let page = read(rest, fits);
                let sessions = page["sessions"].as_array().unwrap();
                assert!(!sessions.is_empty());
                for session in sessions {
                    let name = session["name"].as_str().unwrap_or_default();
                    seen.push((session["path"].clone(), name.len()));
                }
                rest = &rest[sessions.len()..];
                let next = page.get("nextCursor").and_then(serde_json::Value::as_str);
                assert_eq!(next.is_some(), !rest.is_empty());
                if rest.is_empty() {
                    break;
                }
            }
            let paths: Vec<_> = seen.iter().map(|(path, _)| path.clone()).collect();
            assert_eq!(paths, ["/a.jsonl", "/b.jsonl", "/c.jsonl"]);
            assert_eq!(
                seen[1].1 == name.len(),
                fits > 6_000,
                "{fits}: {}",
                seen[1].1
            );
        }
    }
}
