//! Appending: messages, batches, labels, names (protocol.md §3, §9).

use crate::rpc::handler::NewAppend;
use treelined_core::error::Result;
use treelined_core::flow::append::{NewEntry, NewParent};
use treelined_wire as wire;

/// The append of one entry, with its result.
macro_rules! one_entry {
    ($entry:expr, $result:ident) => {
        NewAppend {
            entries: vec![$entry],
            result: |appended| {
                let entry_id = appended.last()?;
                Ok(wire::$result {
                    leaf_id: entry_id.clone(),
                    entry_id,
                    durability: appended.durability,
                })
            },
        }
    };
}

pub(in crate::rpc) fn append_message(
    params: &wire::AppendMessageParams,
) -> Result<NewAppend<wire::AppendMessageResult>> {
    let entry = NewEntry::message(params.message.get().as_bytes())?
        .with_id(params.entry_id.as_deref(), "entryId")?
        .with_parent(match &params.parent_id {
            wire::GivenPosition::Leaf => NewParent::Previous,
            wire::GivenPosition::Empty => NewParent::Named(None),
            wire::GivenPosition::At(parent) => NewParent::Named(Some(parent.clone())),
        });
    Ok(one_entry!(entry, AppendMessageResult))
}

pub(in crate::rpc) fn append_entries(
    params: &wire::AppendEntriesParams,
) -> Result<NewAppend<wire::AppendEntriesResult>> {
    let entries = params.entries.iter().enumerate();
    let entries = entries.map(|(index, raw)| NewEntry::parse(index, raw.get().as_bytes()));
    let entries = entries.collect::<Result<Vec<_>>>()?;
    Ok(NewAppend {
        entries,
        result: |appended| {
            Ok(wire::AppendEntriesResult {
                leaf_id: appended.last()?,
                entry_ids: appended.entry_ids,
                durability: appended.durability,
            })
        },
    })
}

pub(in crate::rpc) fn append_label(
    params: &wire::AppendLabelParams,
) -> Result<NewAppend<wire::AppendLabelResult>> {
    let entry = NewEntry::label(&params.target_id, params.label.as_deref());
    let entry = entry.with_id(params.entry_id.as_deref(), "entryId")?;
    Ok(one_entry!(entry, AppendLabelResult))
}

pub(in crate::rpc) fn set_session_name(
    params: &wire::SetSessionNameParams,
) -> Result<NewAppend<wire::SetSessionNameResult>> {
    let entry = NewEntry::session_info(&params.name);
    Ok(one_entry!(entry, SetSessionNameResult))
}
