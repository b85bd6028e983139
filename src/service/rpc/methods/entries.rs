//! `get_entry`, with what the servers of the team say about the entry; `get_entries` for entries of some types, and for
//! clients that say how many entries they know (protocol.md §3.8).

use super::revision;
use crate::daemon::convert::member::{push_id_member, push_number_member};
use crate::daemon::convert::stored::raw;
use crate::rpc::reply::{Prepared, page_bytes};
use crate::rpc::session_read::{Once, Read, ReadAnswer};
use treelined_core::author::Author;
use treelined_core::entry::Kind;
use treelined_core::error::{self, Error, Result};
use treelined_core::json;
use treelined_core::tree::Node;
use treelined_files::log::upstream::{LineInStream, LineState};
use treelined_files::session::SessionState;
use treelined_wire as wire;

/// The types whose entries have a custom type.
const CUSTOM: [&str; 2] = ["custom", "custom_message"];

/// The entries that a client wants.
pub(super) struct EntryFilter {
    /// The wanted types; `None` for all.
    types: Option<Vec<String>>,
    custom_type: Option<String>,
}

/// Fails if the file has another number of entries before the page than the client knows. If the numbers differ, the
/// client has other entries than the file.
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

    /// Whether entries of this kind can be wanted. Only the body of an entry shows whether that entry is wanted.
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

pub(in crate::rpc) fn get_entry(
    read: &Read<'_>,
    params: &wire::GetEntryParams,
) -> Result<Once<wire::GetEntryResult>> {
    let node = read.find(&params.entry_id)?;
    check_fits(read, &[node], read.frame_bytes())?;
    let entry = read.entry(node)?;
    let result = wire::GetEntryResult {
        entry: raw(&entry),
        flags: read.tree.flags(node).names().map(str::to_owned).collect(),
        verified: None,
    };
    if !params.verify {
        return Ok(Once(ReadAnswer::Ready(result)));
    }
    let check = read.line_check(node).ok_or_else(no_team)?;
    // In memory are the entry, its line here, and its line in the stream.
    let bytes = entry.len() as u64 * 3;
    Ok(Once(ReadAnswer::waiting(bytes, move || {
        let found = check.run()?.ok_or_else(no_team)?;
        let verified = Some(verified(found, Author::of(&entry)));
        Ok(wire::GetEntryResult { verified, ..result })
    })))
}

fn no_team() -> Error {
    let why =
        "the daemon keeps this session in no team, so that no server knows the entry: leave it out";
    Error::invalid_params("verify", why)
}

fn verified(found: LineInStream, by: Option<Author>) -> wire::VerifiedEntry {
    let line = match found.state {
        LineState::Equal => wire::VerifiedLine::Equal,
        LineState::Differs => wire::VerifiedLine::Differs,
        LineState::Queued => wire::VerifiedLine::Queued,
    };
    let by = by.filter(|_| found.state == LineState::Equal);
    let agrees = by.zip(found.account.as_ref());
    wire::VerifiedEntry {
        stream: found.stream,
        line,
        agrees: agrees.map(|(by, account)| by.name == *account),
        account: found.account,
    }
}

/// Fails with `responseTooLarge` if these entries have more than `limit` bytes together. The sizes are known, so no
/// body is read for a response that cannot be sent.
pub(super) fn check_fits(state: &SessionState, nodes: &[Node], limit: usize) -> Result<()> {
    let bodies = state.bodies();
    // An entry that is edited for the response may become shorter, so only half of its size counts.
    let least = |node: &Node| {
        let size = u64::from(state.tree.place(*node).len);
        match bodies.is_verbatim(&state.tree, *node) {
            true => size + 1,
            false => size / 2,
        }
    };
    let size: u64 = nodes.iter().map(least).sum();
    match size > limit as u64 {
        true => Err(too_large(size, limit)),
        false => Ok(()),
    }
}

fn too_large(size: u64, limit: usize) -> Error {
    Error::new(
        error::Kind::ResponseTooLarge,
        format!(
            "the entries have {size} bytes, the client takes {limit}: \
             read them in pages with get_entries"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_account_agrees_only_with_the_writer_of_the_same_line() {
        let by = |name: &str| Some(Author::new(name, "desk", "d".to_owned()));
        let shown = |state, account: Option<&str>, by| {
            let account = account.map(str::to_owned);
            let stream = "t".to_owned();
            let found = LineInStream {
                stream,
                state,
                account,
            };
            serde_json::to_value(verified(found, by)).unwrap()
        };
        assert_eq!(
            shown(LineState::Equal, Some("ada"), by("ada")),
            json!({ "stream": "t", "line": "equal", "account": "ada", "agrees": true })
        );
        assert_eq!(
            shown(LineState::Equal, Some("bea"), by("ada")),
            json!({ "stream": "t", "line": "equal", "account": "bea", "agrees": false })
        );
        assert_eq!(
            shown(LineState::Equal, Some("ada"), None),
            json!({ "stream": "t", "line": "equal", "account": "ada" })
        );
        assert_eq!(
            shown(LineState::Equal, None, by("ada")),
            json!({ "stream": "t", "line": "equal", "account": null })
        );
        assert_eq!(
            shown(LineState::Differs, Some("ada"), by("ada")),
            json!({ "stream": "t", "line": "differs", "account": "ada" })
        );
    }
}
