//! Lists of sessions and of branches.

use super::answers::{Facts, MAX_LINE, MAX_TOKENS, answer, budget, fits};
use super::family;
use crate::clean::{Cleaner, inert};
use crate::history::{History, OpenSession, Result};
use crate::text::quoted;
use std::fmt::Write;
use treelined_client::SessionRow;

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

/// The name of the session, or its first message if it has no name.
fn title(row: &SessionRow, cleaner: &mut Cleaner<'_>) -> String {
    cleaner.cut_line(row.name.as_ref().unwrap_or(&row.first_message), MAX_LINE)
}

/// Whether other sessions come from this one. They are not counted, since some may be out of scope.
fn children(row: &SessionRow) -> &'static str {
    match row.children.unwrap_or_default() {
        0 => "",
        _ => ", list_branches names what comes from it",
    }
}

/// The tags of a session and its git branch; `None` if it has neither.
fn sorting(row: &SessionRow) -> Option<String> {
    let tags = row.tags.iter().flatten().map(|tag| format!("#{tag}"));
    let branch = row.git.as_ref().and_then(|git| git.branch.as_ref());
    let branch = branch.map(|branch| format!("git branch: {branch}"));
    let all: Vec<String> = tags.chain(branch).collect();
    (!all.is_empty()).then(|| all.join(" "))
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
            "\nsession {}{mark}, {}, {} messages{}\n{}{}",
            inert(&row.session_id),
            cleaner.word(&row.modified),
            row.message_count,
            children(row),
            quoted(&title(row, &mut cleaner)),
            quoted(&format!("directory: {}", cleaner.line(&row.cwd, MAX_LINE)))
        );
        if let Some(sorting) = sorting(row) {
            record += &quoted(&cleaner.line(&sorting, MAX_LINE));
        }
    }
    let mut facts = Facts::default();
    facts.add("sessions", rows.len());
    facts.cursor(next_cursor.as_deref());
    Ok(answer(facts, &record, cleaner))
}

pub async fn list_branches(history: &History, session: Option<&str>) -> Result<String> {
    let open = history.open(session).await?;
    let answer = branch_lines(history, &open, history.cleaner()).await;
    open.close_after(answer).await
}

async fn branch_lines(
    history: &History,
    open: &OpenSession<'_>,
    mut cleaner: Cleaner<'_>,
) -> Result<String> {
    let branches = open.client.list_branches().await?.branches;
    let mut record = open.title(&mut cleaner);
    let (family, relatives) = family::relatives(history, &open.id, &mut cleaner).await?;
    record += &family;
    let (mut shown, mut room) = (0, budget(Some(MAX_TOKENS)).saturating_sub(family.len()));
    let all = branches.len();
    for branch in branches.into_iter().rev() {
        let tip = open.client.get_entry(&branch.tip_id).await?.entry;
        let name = cleaner.line(&branch.name, MAX_LINE);
        let preview = cleaner.excerpt(&tip, &branch.preview, "", MAX_LINE);
        let said = format!(
            "\nbranch {}, {}, {} messages, {}, leaves the others at {}\n{}{}{}",
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
            },
            branch.group.as_deref().map_or(String::new(), |group| {
                let group = cleaner.line(group, MAX_LINE);
                quoted(&format!("one of several answers to: {group}"))
            })
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
    if relatives > 0 {
        facts.add("relatives", relatives);
    }
    Ok(answer(facts, &record, cleaner))
}
