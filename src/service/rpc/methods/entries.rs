//! `get_entries` for entries of some types, and for clients that say how many entries they know (protocol.md §3.8).

use super::revision;
use crate::daemon::convert::member::{push_id_member, push_number_member};
use crate::rpc::reply::{Prepared, page_bytes};
use crate::rpc::session_read::{Read, ReadAnswer};
use treelined_core::entry::Kind;
use treelined_core::error::{Error, Result};
use treelined_core::json;
use treelined_core::tree::Node;
use treelined_wire as wire;

/// The types whose entries have a custom type.
const CUSTOM: [&str; 2] = ["custom", "custom_message"];

/// The entries that a client wants.
pub(super) struct EntryFilter {
    /// The wanted types; `None` for all.
    types: Option<Vec<String>>,
    custom_type: Option<String>,
}

/// Fails if the file has another number of entries before the page than the client knows. The client then has other
/// entries than the file.
pub(super) fn check_known(
    read: &Read<'_>,
    params: &wire::GetEntriesParams,
    first: usize,
    known: u64,
) -> Result<()> {
    if params.types.is_some() || params.custom_type.is_some() {
        let reason = "counts entries of all types: leave out `types` and `customType`, or `known`";
        return Err(Error::invalid_params("known", reason));
    }
    let there = read.tree.entry_count() - read.tree.entries_from(first).count();
    if there as u64 == known {
        return Ok(());
    }
    let revision = revision::of(read.open.session.nonce, read.tree.revision());
    let message = "the session has other entries up to `since` than the client";
    Err(revision::changed(message, &revision))
}

impl EntryFilter {
    /// The filter of a request, if it has one.
    pub(super) fn of(params: &wire::GetEntriesParams) -> Result<Option<Self>> {
        if params.types.as_ref().is_some_and(Vec::is_empty) {
            let reason = "names no type; leave it out for entries of all types";
            return Err(Error::invalid_params("types", reason));
        }
        let filter = Self {
            types: params.types.clone(),
            custom_type: params.custom_type.clone(),
        };
        Ok((filter.types.is_some() || filter.custom_type.is_some()).then_some(filter))
    }

    /// Whether entries of this kind can be wanted. Whether a certain entry is wanted, only its body shows.
    fn may_take(&self, kind: Kind) -> bool {
        let is_kind = |name: &str| match kind {
            Kind::Note => name == "custom",
            kind => Kind::of(name) == kind,
        };
        let types = self.types.as_ref();
        let is_wanted = types.is_none_or(|types| types.iter().any(|name| is_kind(name)));
        is_wanted && (self.custom_type.is_none() || CUSTOM.into_iter().any(is_kind))
    }

    /// Whether this entry is wanted. The caller has checked its kind with [`Self::may_take`].
    fn takes(&self, entry: &[u8]) -> bool {
        let is = |name: &str, wanted: &str| {
            let text = json::get(entry, name).and_then(json::string);
            text.is_some_and(|text| text == wanted)
        };
        let types = self.types.as_ref();
        types.is_none_or(|types| types.iter().any(|wanted| is("type", wanted)))
            && (self.custom_type.as_ref()).is_none_or(|wanted| is("customType", wanted))
    }

    /// A page of the wanted entries from the node with the number `first` on. Reads only bodies of kinds that can be
    /// wanted, and reads them without the session.
    pub(super) fn page(
        self,
        read: &Read<'_>,
        params: &wire::GetEntriesParams,
        first: usize,
    ) -> Result<ReadAnswer<Prepared<wire::GetEntriesResult>>> {
        let tree = &read.tree;
        let candidates = tree.entries_from(first);
        let candidates: Vec<Node> = candidates
            .filter(|node| self.may_take(tree.kind(*node)))
            .collect();
        let ids: Vec<String> = candidates
            .iter()
            .map(|node| tree.id(*node).to_owned())
            .collect();
        let size = read.stored_bytes(candidates.iter().copied());
        let (bodies, fetches) = (read.bodies(), read.fetch(candidates)?);
        let limit = params.limit.map_or(u64::MAX, |limit| limit.max(1));
        let fits = page_bytes(read.frame_bytes());
        let max_bytes = params
            .max_bytes
            .map_or(fits, |max| (max as usize).min(fits));
        let (leaf_id, seq) = (read.leaf_id().map(str::to_owned), read.seq());
        let write = move || {
            let mut out = b"{\"entries\":[".to_vec();
            let start = out.len();
            let mut reader = bodies.reader();
            let (mut count, mut last, mut has_more) = (0, None, false);
            for (fetch, id) in fetches.iter().zip(&ids) {
                let entry = reader.entry(fetch)?;
                if !self.takes(&entry) {
                    continue;
                }
                let is_full = count >= limit || out.len() - start + entry.len() + 1 > max_bytes;
                if count > 0 && is_full {
                    has_more = true;
                    break;
                }
                if count > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(&entry);
                (count, last) = (count + 1, Some(id));
            }
            out.push(b']');
            push_id_member(&mut out, "leafId", leaf_id.as_deref());
            push_number_member(&mut out, "seq", seq);
            if let Some(last) = last.filter(|_| has_more) {
                push_id_member(&mut out, "nextCursor", Some(last));
            }
            out.push(b'}');
            Ok(Prepared::bytes(out))
        };
        Ok(ReadAnswer::later(size, write))
    }
}
