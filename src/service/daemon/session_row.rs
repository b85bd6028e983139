//! Rows of session files as clients get them (protocol.md §3.4).

use super::convert::line::line;
use std::cmp::Reverse;
use treelined_core::entry::SpawnedBy;
use treelined_core::error::Result;
use treelined_core::name;
use treelined_core::tags::GitPlace;
use treelined_core::timestamp;
use treelined_files::store::catalogue::CatalogueRow;
use treelined_files::store::listing::Listing;
use treelined_wire as wire;

/// The most sessions of agents that a row has.
const MOST_AGENT_SESSIONS: usize = 64;

/// The JSON of a row.
pub(crate) fn shown_row(row: &CatalogueRow) -> Result<Vec<u8>> {
    line(&session_row(row))
}

/// The longest escape of one byte in a JSON string, in bytes.
pub(crate) const LONGEST_ESCAPE: usize = 6;

/// Cuts the texts of a row that is larger than a page, the longest text first. The id and the path are not cut.
pub(crate) fn shortened_row(row: &CatalogueRow, fits: usize) -> Result<Vec<u8>> {
    let mut made = session_row(row);
    shorten(&mut made, fits)
}

/// Cuts the texts of a row until its JSON has at most `fits` bytes. Returns the JSON.
pub(crate) fn shorten(row: &mut wire::SessionRow, fits: usize) -> Result<Vec<u8>> {
    for text in longest_first(row) {
        cut(text, fits);
    }
    loop {
        let line = line(row)?;
        let Some(longest) = longest_first(row).into_iter().next() else {
            return Ok(line);
        };
        if line.len() <= fits || longest.is_empty() {
            return Ok(line);
        }
        // An escape has up to six times the bytes of its character. Each round removes at least one byte.
        let surplus = (line.len() - fits).div_ceil(6).min(longest.len());
        let left = longest.len() - surplus;
        cut(longest, left);
    }
}

/// Cuts a text to at most this many bytes, at a character boundary.
fn cut(text: &mut String, bytes: usize) {
    let mut ends = (0..=bytes.min(text.len())).rev();
    let end = ends.find(|end| text.is_char_boundary(*end));
    text.truncate(end.unwrap_or_default());
}

/// The texts of a row that may be cut.
fn longest_first(row: &mut wire::SessionRow) -> Vec<&mut String> {
    let named = [row.name.as_mut(), row.parent_session.as_mut()];
    let mut texts: Vec<&mut String> = named.into_iter().flatten().collect();
    if let Some(spawner) = &mut row.spawned_by {
        texts.push(&mut spawner.session_id);
        texts.extend(
            [&mut spawner.entry_id, &mut spawner.tool_call_id]
                .into_iter()
                .flatten(),
        );
    }
    if let Some(git) = &mut row.git {
        let parts = [&mut git.branch, &mut git.commit, &mut git.worktree];
        texts.extend(parts.into_iter().flatten());
    }
    texts.extend(row.source.as_mut());
    texts.extend(&mut row.native_ids);
    let agents = row.agent_sessions.iter_mut();
    texts.extend(agents.flat_map(|agent| [&mut agent.native_id, &mut agent.entry_id]));
    texts.extend([&mut row.first_message, &mut row.cwd]);
    texts.sort_by_key(|text| Reverse(text.len()));
    texts
}

pub(crate) fn path_of(row: &Listing) -> String {
    row.path.display().to_string()
}

/// Whether the session belongs to the directory `cwd`, which is normalized. `None` is every directory.
pub(crate) fn is_of(row: &Listing, cwd: Option<&str>) -> bool {
    let header = row.header.as_ref();
    let directory = header.map(|header| header.cwd.as_str()).unwrap_or_default();
    is_of_directory(directory, cwd)
}

/// Whether a directory, written as in a header, is `cwd`, which is normalized.
pub(crate) fn is_of_directory(directory: &str, cwd: Option<&str>) -> bool {
    cwd.is_none_or(|cwd| directory == cwd || name::directory(directory) == cwd)
}

pub(crate) fn session_row(row: &CatalogueRow) -> wire::SessionRow {
    let (marks, tags) = (&row.marks, row.tags());
    let row = &row.listing;
    let header = row.header.as_ref();
    wire::SessionRow {
        session_id: header.map(|header| header.id.clone()).unwrap_or_default(),
        path: path_of(row),
        cwd: header.map(|header| header.cwd.clone()).unwrap_or_default(),
        name: row.name.clone(),
        created: timestamp::format(row.created),
        modified: timestamp::format(row.modified),
        message_count: row.message_count,
        first_message: row.first_message.clone(),
        source: row.source.as_ref().and_then(|source| source.tool.clone()),
        native_ids: row
            .source
            .as_ref()
            .map(|source| source.native_ids.clone())
            .unwrap_or_default(),
        agent_sessions: agent_sessions(row),
        parent_session: header.and_then(|header| header.parent_session.clone()),
        spawned_by: header
            .and_then(|header| header.spawned_by.clone())
            .map(spawner),
        tags,
        pinned: marks.is_pinned.then_some(true),
        archived: marks.is_archived.then_some(true),
        git: git(&row.sorting.git),
        children: None,
        diagnostic: row.problem.map(|kind| wire::RowDiagnostic {
            kind: kind.name().to_owned(),
            message: "the file does not begin with a session header".to_owned(),
        }),
        log: None,
        queued: None,
        same_conversation: Vec::new(),
    }
}

fn git(place: &GitPlace) -> Option<wire::GitPlace> {
    let place = (!place.is_empty()).then(|| place.clone())?;
    Some(wire::GitPlace {
        branch: place.branch,
        commit: place.commit,
        worktree: place.worktree,
    })
}

/// The last sessions of agents that continue the session from one of its positions.
fn agent_sessions(row: &Listing) -> Vec<wire::AgentSession> {
    let continued = row.continued.iter().filter_map(|continued| {
        Some(wire::AgentSession {
            native_id: continued.native_id.clone()?,
            entry_id: continued.entry_id.clone(),
            tool: Some(continued.tool.clone()),
        })
    });
    let recorded = row.recorded.iter().map(|record| wire::AgentSession {
        native_id: record.native_id.clone(),
        entry_id: record.entry_id.clone(),
        tool: None,
    });
    let mut sessions: Vec<wire::AgentSession> = continued.chain(recorded).collect();
    sessions.drain(..sessions.len().saturating_sub(MOST_AGENT_SESSIONS));
    sessions
}

fn spawner(spawner: SpawnedBy) -> wire::SpawnedBy {
    wire::SpawnedBy {
        session_id: spawner.session_id,
        entry_id: spawner.entry_id,
        tool_call_id: spawner.tool_call_id,
    }
}
