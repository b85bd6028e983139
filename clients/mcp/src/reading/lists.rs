//! Lists: hits of a search, sessions, branches.

use super::answers::{Facts, MAX_LINE, MAX_TOKENS, answer, budget, fits};
use crate::clean::{Cleaner, inert};
use crate::history::{Found, History, OpenSession, Result};
use crate::request::SearchRequest;
use crate::text::quoted;
use std::collections::BTreeMap;
use std::fmt::Write;
use treelined_client::{SearchField, SearchHit, SessionRow};

/// The most characters of a snippet.
const MAX_SNIPPET: usize = 240;

pub async fn search_history(history: &History, mut request: SearchRequest) -> Result<String> {
    request.limit = request.limit.clamp(1, 100);
    loop {
        let answer = found(history, request.clone()).await?;
        if fits(&answer) || request.limit == 1 {
            return Ok(answer);
        }
        request.limit /= 2;
    }
}

async fn found(history: &History, request: SearchRequest) -> Result<String> {
    let Found {
        hits,
        total,
        at_least,
        next_cursor,
    } = history.search(request).await?;
    let mut cleaner = history.cleaner();
    let snippets = snippets(history, &hits, &mut cleaner).await?;
    let mut record = String::new();
    for (hit, snippet) in hits.iter().zip(snippets) {
        let left = match hit.branch.on_active_path {
            true => "",
            false => ", a branch that was left",
        };
        let _infallible = write!(
            record,
            "\nentry {} of session {}, branch {}{left}, {}\n{}{}",
            inert(&hit.entry_id),
            inert(&hit.session_id),
            inert(&hit.branch.tip_id),
            cleaner.word(&hit.at),
            quoted(&snippet),
            quoted(&format!(
                "session: {}",
                cleaner.cut_line(&hit.session_name, MAX_LINE)
            ))
        );
    }
    let mut facts = Facts::default();
    let about = if at_least { "at least " } else { "" };
    facts.add("hits", format!("{about}{total}"));
    facts.add("shown", hits.len());
    facts.cursor(next_cursor.as_deref());
    Ok(answer(facts, &record, cleaner))
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
            // A label is not a part of its entry.
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

pub async fn list_sessions(
    history: &History,
    query: Option<String>,
    limit: u64,
    cursor: Option<String>,
) -> Result<String> {
    let mut limit = limit.clamp(1, 200);
    loop {
        let answer = session_lines(history, query.clone(), limit, cursor.clone()).await?;
        if fits(&answer) || limit == 1 {
            return Ok(answer);
        }
        limit /= 2;
    }
}

/// Ids and titles of sessions, and the cursor of the next page.
pub async fn titles(
    history: &History,
    limit: u64,
    cursor: Option<String>,
) -> Result<(Vec<(String, String)>, Option<String>)> {
    let (rows, next_cursor) = history.sessions(None, limit, cursor).await?;
    let mut cleaner = history.cleaner();
    let rows = rows.iter();
    let titles = rows.map(|row| (inert(&row.session_id), title(row, &mut cleaner)));
    Ok((titles.collect(), next_cursor))
}

/// The name, else the first message.
fn title(row: &SessionRow, cleaner: &mut Cleaner<'_>) -> String {
    cleaner.cut_line(row.name.as_ref().unwrap_or(&row.first_message), MAX_LINE)
}

async fn session_lines(
    history: &History,
    query: Option<String>,
    limit: u64,
    cursor: Option<String>,
) -> Result<String> {
    let own = history.own_session().await.unwrap_or_default();
    let (rows, next_cursor) = history.sessions(query, limit, cursor).await?;
    let mut cleaner = history.cleaner();
    let mut record = String::new();
    for row in &rows {
        let mark = match row.session_id == own {
            true => " (this session)",
            false => "",
        };
        let _infallible = write!(
            record,
            "\nsession {}{mark}, {}, {} messages\n{}{}",
            inert(&row.session_id),
            cleaner.word(&row.modified),
            row.message_count,
            quoted(&title(row, &mut cleaner)),
            quoted(&format!("directory: {}", cleaner.line(&row.cwd, MAX_LINE)))
        );
    }
    let mut facts = Facts::default();
    facts.add("sessions", rows.len());
    facts.cursor(next_cursor.as_deref());
    Ok(answer(facts, &record, cleaner))
}

pub async fn list_branches(history: &History, session: Option<&str>) -> Result<String> {
    let open = history.open(session).await?;
    let answer = branch_lines(&open, history.cleaner()).await;
    open.close_after(answer).await
}

async fn branch_lines(open: &OpenSession<'_>, mut cleaner: Cleaner<'_>) -> Result<String> {
    let branches = open.client.list_branches().await?.branches;
    let mut record = open.title(&mut cleaner);
    let (mut shown, mut room) = (0, budget(Some(MAX_TOKENS)));
    let all = branches.len();
    for branch in branches.into_iter().rev() {
        let tip = open.client.get_entry(&branch.tip_id).await?.entry;
        let name = cleaner.line(&branch.name, MAX_LINE);
        let preview = cleaner.excerpt(&tip, &branch.preview, "", MAX_LINE);
        let said = format!(
            "\nbranch {}, {}, {} messages, {}, leaves the others at {}\n{}{}",
            inert(&branch.tip_id),
            if branch.is_active { "active" } else { "left" },
            branch.message_count,
            cleaner.word(&branch.last_activity),
            branch
                .fork_id
                .as_deref()
                .map_or("its root".to_owned(), inert),
            quoted(&preview),
            match name == preview {
                true => String::new(),
                false => quoted(&format!("name: {name}")),
            }
        );
        let Some(left) = room.checked_sub(said.len()) else {
            break;
        };
        room = left;
        shown += 1;
        record.push_str(&said);
    }
    let mut facts = open.facts();
    facts.add("branches", shown);
    if shown < all {
        facts.add("leftOut", all - shown);
    }
    Ok(answer(facts, &record, cleaner))
}
