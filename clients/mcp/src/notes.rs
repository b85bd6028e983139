//! The tools that leave notes. They never move, compact or delete.

use crate::history::{Failure, History, Result};
use crate::reading::answers::Facts;
use crate::text::Note;
use serde_json::json;

/// The most bytes of a reason.
const MAX_REASON: usize = 16 << 10;
/// The most bytes of a label, a name and an outcome.
const MAX_LABEL: usize = 200;

pub async fn label_entry(
    history: &History,
    session: Option<&str>,
    entry: &str,
    label: &str,
) -> Result<String> {
    check("label", label, MAX_LABEL)?;
    let written = history.append(session, |client, leaf| async move {
        let mut call = client.append_label(entry);
        if !label.trim().is_empty() {
            call = call.label(Some(label));
        }
        call.expected_leaf_id(leaf.as_deref()).await
    });
    let entry_id = written.await?.entry_id;
    Ok(done("Labelled.", Some(&entry_id)))
}

pub async fn leave_note(
    history: &History,
    session: Option<&str>,
    entry: &str,
    (reason, outcome): (&str, &str),
) -> Result<String> {
    check_said("reason", reason, MAX_REASON)?;
    check_said("outcome", outcome, MAX_LABEL)?;
    let written = history.append(session, |client, leaf| async move {
        // An unknown entry is refused here, since the daemon does not check `data`.
        client.get_entry(entry).await?;
        let note = json!({
            "type": "custom",
            "customType": Note::TYPE,
            "data": { "targetId": entry, "reason": reason, "outcome": outcome },
        });
        let call = client.append_entries([note]);
        call.expected_leaf_id(leaf.as_deref()).await
    });
    let entry_id = written.await?.entry_ids.into_iter().next();
    Ok(done("The note is left.", entry_id.as_deref()))
}

pub async fn name_session(history: &History, session: Option<&str>, name: &str) -> Result<String> {
    check_said("name", name, MAX_LABEL)?;
    let named = history.append(session, |client, leaf| async move {
        let call = client.set_session_name(name);
        call.expected_leaf_id(leaf.as_deref()).await
    });
    named.await?;
    Ok(done("Named.", None))
}

/// Refuses an empty text, and a text of more than `most` bytes.
fn check_said(what: &str, text: &str, most: usize) -> Result<()> {
    match text.trim().is_empty() {
        true => Err(Failure(format!("the {what} is blank; say it in words"))),
        false => check(what, text, most),
    }
}

fn check(what: &str, text: &str, most: usize) -> Result<()> {
    match text.len() > most {
        true => Err(Failure(format!(
            "the {what} has {} bytes; at most {most} are kept",
            text.len()
        ))),
        false => Ok(()),
    }
}

/// Makes an answer without text from earlier conversations.
fn done(text: &str, entry_id: Option<&str>) -> String {
    let mut facts = Facts::default();
    if let Some(id) = entry_id {
        facts.id("entry", id);
    }
    format!("{text}\n{facts}")
}
