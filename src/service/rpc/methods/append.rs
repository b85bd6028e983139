//! Appending: messages, batches, labels, names (protocol.md §3, §9).

use crate::rpc::handler::NewAppend;
use treelined_core::error::{Error, Result};
use treelined_core::flow::append::{NewEntry, NewParent};
use treelined_core::name;
use treelined_wire as wire;

/// The most bytes of the name of a group.
const MAX_GROUP_BYTES: usize = 256;

/// An append of one entry, with its result.
macro_rules! one_entry {
    ($entry:expr, $result:ident) => {
        NewAppend {
            entries: vec![$entry],
            ..one_entry!($result)
        }
    };
    ($result:ident) => {
        NewAppend {
            entries: Vec::new(),
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
        .with_parent(parent(&params.parent_id));
    let mut entries = vec![entry];
    born(&mut entries, params.keep_leaf, params.group.as_deref())?;
    Ok(NewAppend {
        entries,
        ..one_entry!(AppendMessageResult)
    })
}

fn parent(given: &wire::GivenPosition) -> NewParent {
    match given {
        wire::GivenPosition::Leaf => NewParent::Previous,
        wire::GivenPosition::Empty => NewParent::Named(None),
        wire::GivenPosition::At(parent) => NewParent::Named(Some(parent.clone())),
    }
}

/// Makes the entries part of a background branch, if the client wants that.
fn born(entries: &mut Vec<NewEntry>, keep_leaf: Option<bool>, group: Option<&str>) -> Result<()> {
    if !keep_leaf.unwrap_or_default() {
        return match group {
            Some(_) => {
                let reason = "marks branches that grow in the background: send keepLeaf too";
                Err(Error::invalid_params("group", reason))
            }
            None => Ok(()),
        };
    }
    let is_named = |entry: &NewEntry| matches!(entry.parent, NewParent::Named(_));
    if !entries.first().is_some_and(is_named) {
        let reason = "must be given with keepLeaf: the end of the branch that grows";
        return Err(Error::invalid_params("parentId", reason));
    }
    let mut group = group
        .map(|group| {
            name::given(group)
                .filter(|group| group.len() <= MAX_GROUP_BYTES)
                .ok_or_else(|| Error::invalid_params("group", "must have 1 to 256 bytes"))
        })
        .transpose()?;
    let given = std::mem::take(entries).into_iter().enumerate();
    let given = given.map(|(index, entry)| entry.in_background(index, group.take().as_deref()));
    *entries = given.collect::<Result<_>>()?;
    Ok(())
}

pub(in crate::rpc) fn append_entries(
    params: &wire::AppendEntriesParams,
) -> Result<NewAppend<wire::AppendEntriesResult>> {
    let entries = params.entries.iter().enumerate();
    let entries = entries.map(|(index, raw)| NewEntry::parse(index, raw.get().as_bytes()));
    let mut entries = entries.collect::<Result<Vec<_>>>()?;
    if let Some(first) = entries
        .first_mut()
        .filter(|first| first.parent == NewParent::Previous)
    {
        first.parent = parent(&params.parent_id);
    }
    born(&mut entries, params.keep_leaf, params.group.as_deref())?;
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
