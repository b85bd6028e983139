//! Appending: messages, batches, labels, names (protocol.md §3, §9).

use super::reply::Reply;
use crate::daemon::commit::Appended;
use crate::error::Result;
use crate::flow::append::{NewEntry, NewParent};
use crate::wire;

/// Entries to be appended as one operation, written together with the appends beside it in the queue.
pub(super) struct NewAppend {
    pub(super) entries: Vec<NewEntry>,
    pub(super) reply: fn(Appended) -> Result<Reply>,
}

pub(super) fn append_message(params: &wire::AppendMessageParams) -> Result<NewAppend> {
    let entry = NewEntry::message(params.message.get().as_bytes())?
        .with_id(params.entry_id.as_deref(), "entryId")?
        .with_parent(match &params.parent_id {
            wire::GivenPosition::Leaf => NewParent::Previous,
            wire::GivenPosition::Empty => NewParent::Named(None),
            wire::GivenPosition::At(parent) => NewParent::Named(Some(parent.clone())),
        });
    let reply = |appended: Appended| {
        let entry_id = appended.last()?;
        Reply::of(&wire::AppendMessageResult {
            leaf_id: entry_id.clone(),
            entry_id,
            durability: appended.durability,
        })
    };
    Ok(NewAppend {
        entries: vec![entry],
        reply,
    })
}

pub(super) fn append_entries(params: &wire::AppendEntriesParams) -> Result<NewAppend> {
    let entries = params.entries.iter().enumerate();
    let entries = entries.map(|(index, raw)| NewEntry::parse(index, raw.get().as_bytes()));
    let entries = entries.collect::<Result<Vec<_>>>()?;
    let reply = |appended: Appended| {
        Reply::of(&wire::AppendEntriesResult {
            leaf_id: appended.last()?,
            entry_ids: appended.entry_ids,
            durability: appended.durability,
        })
    };
    Ok(NewAppend { entries, reply })
}

pub(super) fn append_label(params: &wire::AppendLabelParams) -> Result<NewAppend> {
    let entry = NewEntry::label(&params.target_id, params.label.as_deref());
    let entry = entry.with_id(params.entry_id.as_deref(), "entryId")?;
    let reply = |appended: Appended| {
        let entry_id = appended.last()?;
        Reply::of(&wire::AppendLabelResult {
            leaf_id: entry_id.clone(),
            entry_id,
            durability: appended.durability,
        })
    };
    Ok(NewAppend {
        entries: vec![entry],
        reply,
    })
}

pub(super) fn set_session_name(params: &wire::SetSessionNameParams) -> Result<NewAppend> {
    let entry = NewEntry::session_info(&params.name);
    let reply = |appended: Appended| {
        let entry_id = appended.last()?;
        Reply::of(&wire::SetSessionNameResult {
            leaf_id: entry_id.clone(),
            entry_id,
            durability: appended.durability,
        })
    };
    Ok(NewAppend {
        entries: vec![entry],
        reply,
    })
}
