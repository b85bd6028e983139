//! Applies the filters that need the tree of a session, or a line: by branch, by archive, by `without`, by phrases, and
//! by time for an entry without a time. For a label, all filters are applied here, since a label counts for the entry
//! that it labels. The filters apply to all entries with a word of the question, before the best entries are taken.

use super::counted::CountedFile;
use super::in_files::in_files;
use super::request::AskRequest;
use crate::branch::Branches;
use crate::labels;
use crate::outcome::UnreadFile;
use crate::request::EntryTest;
use crate::searched::SearchedStore;
use std::collections::{BTreeMap, HashMap};
use treelined_core::entry::Kind;
use treelined_core::error::Result;
use treelined_core::tree::{Node, Tree};
use treelined_files::cancel::Cancel;
use treelined_files::os::file::{Location, Status};
use treelined_files::store::Store;

/// Removes the entries that do not pass the filters. Opens a session only if its counts do not show whether its entries
/// pass.
pub(super) fn filter(
    searched: SearchedStore<'_>,
    request: &AskRequest,
    files: &[(Location, Status)],
    counted: &mut [CountedFile],
    cancel: &Cancel,
    partial: &mut Vec<UnreadFile>,
) -> Result<()> {
    let of_files: Vec<(usize, Vec<u64>)> = counted
        .iter()
        .filter_map(|file| Some((file.number, file.to_filter(request)?)))
        .collect();
    let look = |offsets: &Vec<u64>, location: &Location| {
        passing(searched.store, request, location, offsets, cancel)
    };
    let passing = in_files(&of_files, files, cancel, partial, look)?;
    let mut passing: BTreeMap<usize, Vec<(u64, u64)>> = passing.into_iter().collect();
    let is_open: BTreeMap<usize, Vec<u64>> = of_files.into_iter().collect();
    for file in counted {
        if is_open.contains_key(&file.number) {
            file.keep(&passing.remove(&file.number).unwrap_or_default());
        }
    }
    Ok(())
}

/// Returns the `offsets` in one session whose entries pass the filters. Each offset comes with the offset of the entry
/// that the hit belongs to.
fn passing(
    store: &Store,
    request: &AskRequest,
    location: &Location,
    offsets: &[u64],
    cancel: &Cancel,
) -> Result<Vec<(u64, u64)>> {
    let filters = &*request.filters;
    let opened = store.open(location.clone(), cancel)?;
    let (tree, started) = (&opened.tree, labels::started(&opened));
    let bodies = opened.log.bodies();
    let (mut reader, mut branches) = (bodies.reader(), Branches::of(tree));
    let mut test = EntryTest::new(filters);
    let mut passing = Vec::new();
    for (number, node) in entries_at(tree, offsets) {
        let at = tree.timestamp(node).unwrap_or(started);
        if !filters.takes_time(at)
            || !branches.takes(node, filters.branches)
            || branches.is_archived(node) && !filters.archived
        {
            continue;
        }
        let (about, own) = (tree.place(node).offset, offsets.get(number).copied());
        // The counts have already decided the filters for an entry that is not a label. For a label, the line of the
        // labelled entry must be read.
        let is_label = own != Some(about) && !filters.entries.is_empty();
        if is_label || filters.without.is_some() || request.phrases.is_some() {
            let line = reader.stored(tree.place(node), usize::MAX)?;
            let (kind, role) = (tree.kind(node), tree.role(node));
            let label = tree.label(node).map(|label| &*label.text);
            let mut phrases = request.phrases.iter();
            if is_label && !filters.takes_entry(line, kind)
                || test.is_left_out(line, kind, role)
                || !phrases.all(|one| one.are_in(line, (kind, role), label, filters))
            {
                continue;
            }
        }
        passing.extend(own.map(|own| (own, about)));
    }
    Ok(passing)
}

/// The entries at these offsets, which must ascend. Each entry comes with the index of its offset. For a label, the
/// entry that it labels is returned; a label that was replaced or removed is left out.
pub(super) fn entries_at(tree: &Tree, offsets: &[u64]) -> Vec<(usize, Node)> {
    let labels = tree.labels().map(|(node, label)| (label.entry, node));
    let labelled: HashMap<Node, Node> = labels.collect();
    let at = |node: Node| {
        let number = offsets.binary_search(&tree.place(node).offset).ok()?;
        let about = match tree.kind(node) {
            Kind::Label => *labelled.get(&node)?,
            _ => node,
        };
        Some((number, about))
    };
    tree.entries().filter_map(at).collect()
}
