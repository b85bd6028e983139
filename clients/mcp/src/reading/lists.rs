//! Lists: hits of a search, sessions, branches.

use super::{Answer, MAX_LINE, MAX_TOKENS, budget, say_next};
use crate::clean::{Cleaner, inert, usable};
use crate::history::{History, OpenSession, Result};
use crate::portable::portable;
use crate::text::{HEADING, quoted};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use treelined_client::{SearchBranches, SearchField, SearchHit, SearchMode};

/// The most characters of a snippet.
const MAX_SNIPPET: usize = 240;

#[derive(Serialize, JsonSchema)]
#[schemars(transform = portable)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    pub session_id: String,
    pub session_name: String,
    pub entry_id: String,
    /// The end of the entry's branch, for `read_branch` and `why_left`.
    pub branch: String,
    /// Whether the branch was left.
    pub abandoned: bool,
    pub at: String,
    /// The text around the match, on one line.
    pub snippet: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(transform = portable)]
#[serde(rename_all = "camelCase")]
pub struct SearchHistory {
    pub hits: Vec<Found>,
    /// Hits on all pages.
    pub total: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A search as the model asks for it.
#[derive(Clone)]
pub struct SearchRequest {
    pub query: String,
    pub mode: SearchMode,
    pub branches: SearchBranches,
    pub limit: u64,
    pub cursor: Option<String>,
}

pub async fn search_history(
    history: &History,
    mut request: SearchRequest,
) -> Result<Answer<SearchHistory>> {
    request.limit = request.limit.clamp(1, 100);
    loop {
        let answer = found(history, request.clone()).await?;
        if answer.fits() || request.limit == 1 {
            return Ok(answer);
        }
        request.limit /= 2;
    }
}

async fn found(history: &History, request: SearchRequest) -> Result<Answer<SearchHistory>> {
    let mut call = history.client().search(request.query).mode(request.mode);
    call = call.branches(request.branches).limit(request.limit);
    if let Some(cwd) = history.scope() {
        call = call.cwd(cwd);
    }
    if let Some(cursor) = request.cursor {
        call = call.cursor(cursor);
    }
    let page = call.await?;
    let mut cleaner = history.cleaner();
    let snippets = snippets(history, &page.hits, &mut cleaner).await?;
    let mut text = format!("{HEADING}\n{} hits in all.\n", page.totals.entries);
    let mut hits = Vec::new();
    for (hit, snippet) in page.hits.into_iter().zip(snippets) {
        let found = Found {
            session_id: inert(&hit.session_id),
            session_name: cleaner.cut_line(&hit.session_name, MAX_LINE),
            entry_id: inert(&hit.entry_id),
            branch: inert(&hit.branch.tip_id),
            abandoned: !hit.branch.on_active_path,
            at: cleaner.line(&hit.at, MAX_LINE),
            snippet,
        };
        let left = if found.abandoned {
            ", a branch that was left"
        } else {
            ""
        };
        let _infallible = writeln!(
            text,
            "\nentry {} of session {} ({}), branch {}{left}, {}\n{}",
            found.entry_id,
            found.session_id,
            found.session_name,
            found.branch,
            found.at,
            quoted(&found.snippet).trim_end()
        );
        hits.push(found);
    }
    say_next(&mut text, page.next_cursor.as_deref());
    let data = SearchHistory {
        hits,
        total: page.totals.entries,
        next_cursor: page.next_cursor,
    };
    Ok(Answer::new(text, data, cleaner))
}

/// The snippets of the hits, in their order, without secrets: each entry is looked at as a whole, since a snippet may
/// have a part of a secret only.
async fn snippets(
    history: &History,
    hits: &[SearchHit],
    cleaner: &mut Cleaner<'_>,
) -> Result<Vec<String>> {
    let mut snippets: Vec<String> = vec![String::new(); hits.len()];
    let mut of_session: BTreeMap<&str, Vec<(&SearchHit, &mut String)>> = BTreeMap::new();
    for (hit, snippet) in hits.iter().zip(&mut snippets) {
        match history.shows_secrets() {
            true => *snippet = cleaner.line(&hit.snippet, MAX_SNIPPET),
            false => {
                let hits = of_session.entry(&hit.session_id).or_default();
                hits.push((hit, snippet));
            }
        }
    }
    for (session, hits) in of_session {
        // One that cannot be opened has no snippets.
        let Ok(open) = history.open(Some(session)).await else {
            continue;
        };
        for (hit, snippet) in hits {
            // A label is no part of its entry.
            *snippet = match open.client.get_entry(&hit.entry_id).await {
                Ok(found) if hit.field != SearchField::Labels => {
                    let (whole, matched) = (&hit.snippet, matched(hit));
                    cleaner.excerpt(&found.entry, whole, &matched, MAX_SNIPPET)
                }
                Ok(_) => cleaner.cut_line(&hit.snippet, MAX_SNIPPET),
                Err(_) => String::new(),
            };
        }
        open.close().await?;
    }
    Ok(snippets)
}

/// The first match in the snippet of a hit.
fn matched(hit: &SearchHit) -> String {
    let range = hit.ranges.first().map(Vec::as_slice).unwrap_or_default();
    let place = |at: Option<&u64>| usize::try_from(at.copied().unwrap_or_default());
    let (start, end) = (place(range.first()), place(range.get(1)));
    let (start, end) = (start.unwrap_or_default(), end.unwrap_or_default());
    let chars = hit.snippet.chars().skip(start);
    chars.take(end.saturating_sub(start)).collect()
}

#[derive(Serialize, JsonSchema)]
#[schemars(transform = portable)]
#[serde(rename_all = "camelCase")]
pub struct SessionLine {
    pub session_id: String,
    /// The name, else the first message.
    pub title: String,
    pub cwd: String,
    pub modified: String,
    pub messages: u64,
    /// Whether it is the session that a call without `session` is about.
    pub own: bool,
}

#[derive(Serialize, JsonSchema)]
#[schemars(transform = portable)]
#[serde(rename_all = "camelCase")]
pub struct SessionList {
    pub sessions: Vec<SessionLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

pub async fn list_sessions(
    history: &History,
    query: Option<String>,
    limit: u64,
    cursor: Option<String>,
) -> Result<Answer<SessionList>> {
    let mut limit = limit.clamp(1, 200);
    loop {
        let answer = session_lines(history, query.clone(), limit, cursor.clone()).await?;
        if answer.fits() || limit == 1 {
            return Ok(answer);
        }
        limit /= 2;
    }
}

async fn session_lines(
    history: &History,
    query: Option<String>,
    limit: u64,
    cursor: Option<String>,
) -> Result<Answer<SessionList>> {
    let own = history.own_session().await.unwrap_or_default();
    let (rows, next_cursor) = history.sessions(query, limit, cursor).await?;
    let mut cleaner = history.cleaner();
    let mut text = format!("{HEADING}\n");
    let mut sessions = Vec::new();
    for row in rows {
        let title = row.name.unwrap_or(row.first_message);
        let line = SessionLine {
            own: row.session_id == own,
            session_id: inert(&row.session_id),
            title: cleaner.cut_line(&title, MAX_LINE),
            cwd: cleaner.line(&row.cwd, MAX_LINE),
            modified: cleaner.line(&row.modified, MAX_LINE),
            messages: row.message_count,
        };
        let mark = if line.own { " (this session)" } else { "" };
        let _infallible = writeln!(
            text,
            "\nsession {}{mark}, {}, {} messages, {}\n{}",
            line.session_id,
            line.modified,
            line.messages,
            line.cwd,
            quoted(&line.title).trim_end()
        );
        sessions.push(line);
    }
    say_next(&mut text, next_cursor.as_deref());
    let data = SessionList {
        sessions,
        next_cursor,
    };
    Ok(Answer::new(text, data, cleaner))
}

#[derive(Serialize, JsonSchema)]
#[schemars(transform = portable)]
#[serde(rename_all = "camelCase")]
pub struct BranchLine {
    /// The last entry of the branch.
    pub tip: String,
    /// The entry at which it leaves the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fork: Option<String>,
    /// Whether the conversation goes on here.
    pub active: bool,
    /// Messages after the fork.
    pub messages: u64,
    pub last_activity: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The last message.
    pub preview: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(transform = portable)]
#[serde(rename_all = "camelCase")]
pub struct BranchList {
    pub session_id: String,
    pub branches: Vec<BranchLine>,
    /// Branches that this answer has no room for.
    pub left_out: usize,
}

pub async fn list_branches(history: &History, session: Option<&str>) -> Result<Answer<BranchList>> {
    let open = history.open(session).await?;
    let answer = branch_lines(&open, history.cleaner()).await;
    open.close_after(answer).await
}

async fn branch_lines(
    open: &OpenSession<'_>,
    mut cleaner: Cleaner<'_>,
) -> Result<Answer<BranchList>> {
    let branches = open.client.list_branches().await?.branches;
    let mut text = open.heading(&mut cleaner);
    let (mut lines, mut room) = (Vec::new(), budget(Some(MAX_TOKENS)));
    let all = branches.len();
    for branch in branches.into_iter().rev() {
        let tip = open.client.get_entry(&branch.tip_id).await?.entry;
        let line = BranchLine {
            tip: inert(&branch.tip_id),
            fork: branch.fork_id.as_deref().map(inert),
            active: branch.is_active,
            messages: branch.message_count,
            last_activity: cleaner.line(&branch.last_activity, MAX_LINE),
            label: branch
                .label
                .as_deref()
                .map(|label| cleaner.line(label, MAX_LINE)),
            preview: cleaner.excerpt(&tip, &branch.preview, "", MAX_LINE),
        };
        let state = if line.active { "active" } else { "left" };
        let label = line.label.as_ref().map(|label| format!(" [{label}]"));
        let said = format!(
            "\nbranch {}{}, {state}, {} messages, {}, leaves the others at {}\n{}",
            line.tip,
            label.unwrap_or_default(),
            line.messages,
            line.last_activity,
            line.fork.as_deref().unwrap_or("its root"),
            quoted(&line.preview)
        );
        let Some(left) = room.checked_sub(said.len()) else {
            break;
        };
        room = left;
        text.push_str(&said);
        lines.push(line);
    }
    let data = BranchList {
        session_id: usable(&open.id),
        left_out: all - lines.len(),
        branches: lines,
    };
    Ok(Answer::new(text, data, cleaner))
}
