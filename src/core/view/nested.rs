//! The nested form of the tree (`format: nested` of protocol.md §6), for clients that want `{entry,
//! children}`. It is written without recursion.

use super::row::push_label;
use super::snapshot::Snapshot;
use super::visible::Visible;

/// The deepest depth that may be nested by default, counted from 0 at the visible roots.
pub(crate) const DEPTH: u64 = 256;
/// The deepest depth that a client may request with `maxDepth`.
pub(crate) const MAX_DEPTH: u64 = 10_000;

/// The error for a visible tree that is too deep to be nested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooDeep {
    /// The depth of the deepest row.
    pub depth: u64,
    /// The deepest depth that is allowed.
    pub limit: u64,
}

impl std::fmt::Display for TooDeep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { depth, limit } = self;
        write!(
            f,
            "the tree is {depth} deep, over {limit}: ask for the flat form, or for less depth"
        )
    }
}

impl std::error::Error for TooDeep {}

/// Checks that `visible` may be nested. Call it before bodies are read.
pub fn check_depth(visible: &Visible, max_depth: Option<u64>) -> Result<(), TooDeep> {
    let depth = visible.rows().iter().map(|row| u64::from(row.depth)).max();
    let depth = depth.unwrap_or_default();
    let limit = max_depth.unwrap_or(DEPTH).clamp(DEPTH, MAX_DEPTH);
    if depth > limit {
        Err(TooDeep { depth, limit })
    } else {
        Ok(())
    }
}

/// Appends the array `nodes` of `{entry, children, label?, labelTimestamp?}` with all rows.
///
/// `push_entry` appends the stored entry of an item as one line of JSON; its error ends the walk.
/// `snapshot` must have the items of all rows.
pub fn push_json<E>(
    out: &mut Vec<u8>,
    visible: &Visible,
    snapshot: &Snapshot,
    mut push_entry: impl FnMut(&mut Vec<u8>, usize) -> Result<(), E>,
) -> Result<(), E> {
    let close = |out: &mut Vec<u8>, item: usize| {
        out.push(b']');
        if let Some(entry) = snapshot.entry(item) {
            push_label(out, &entry);
        }
        out.push(b'}');
    };
    let mut open: Vec<usize> = Vec::new();
    let mut is_first = true;
    out.push(b'[');
    for row in visible.rows() {
        while open.len() > row.depth as usize
            && let Some(item) = open.pop()
        {
            close(out, item);
            is_first = false;
        }
        if !is_first {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"entry\":");
        push_entry(out, row.item())?;
        out.extend_from_slice(b",\"children\":[");
        open.push(row.item());
        is_first = true;
    }
    while let Some(item) = open.pop() {
        close(out, item);
    }
    out.push(b']');
    Ok(())
}
