//! The family of a session: its ancestors and the sessions that come from it (protocol.md §3.22).

use super::answers::MAX_LINE;
use crate::clean::{Cleaner, inert};
use crate::history::{History, Result};
use crate::text::quoted;
use treelined_client::{ComesFrom, FamilyRow, Kinship};

/// The most relatives that an answer names.
const MOST: usize = 20;

/// The nearest relatives in scope as lines of a record, and the number of all relatives in scope.
pub(super) async fn relatives(
    history: &History,
    session: &str,
    cleaner: &mut Cleaner<'_>,
) -> Result<(String, usize)> {
    let family = history.family(session).await?;
    let own = family.iter().find(|row| row.session_id == session);
    let above = own.and_then(|row| row.comes_from.as_ref());
    let mut lines = Vec::new();
    if let Some(from) = above
        && let Some(row) = family.iter().find(|row| row.session_id == from.session_id)
    {
        let (kind, id) = (word(&from.kind), inert(&row.session_id));
        let said = format!(
            "\nthis session is a {kind} of session {id}{}\n",
            place(from)
        );
        lines.push(said + &quoted(&title(row, cleaner)));
    }
    for row in &family {
        let from = row.comes_from.as_ref();
        if let Some(from) = from.filter(|from| from.session_id == session) {
            let (kind, id) = (word(&from.kind), inert(&row.session_id));
            let said = format!("\nsession {id} is a {kind} of this one{}\n", place(from));
            lines.push(said + &quoted(&title(row, cleaner)));
        }
    }
    let count = lines.len();
    lines.truncate(MOST);
    if count > MOST {
        lines.push(format!("\nand {} sessions more\n", count - MOST));
    }
    Ok((lines.concat(), count))
}

fn word(kind: &Kinship) -> &'static str {
    match kind {
        Kinship::Fork => "fork",
        Kinship::Subagent => "subagent",
        Kinship::Continuation => "continuation",
        _ => "relative",
    }
}

/// Where a session comes from. The entry id is the text of a header, which is not trusted.
fn place(from: &ComesFrom) -> String {
    let entry = from.entry_id.as_deref();
    entry.map_or(String::new(), |entry| {
        format!(", at entry {}", inert(entry))
    })
}

fn title(row: &FamilyRow, cleaner: &mut Cleaner<'_>) -> String {
    cleaner.cut_line(row.name.as_ref().unwrap_or(&row.first_message), MAX_LINE)
}
