//! The members of an entry that refer to other entries.

/// The note of a node that has the same id as an earlier entry.
pub(super) const DUPLICATE: &str = "duplicate";

/// The members that refer to other entries, for this type of entry. A compaction is not listed: its node has the
/// reference.
pub(super) fn references_of(kind: &str) -> &'static [&'static str] {
    match kind {
        "label" | "context_edit" => &["targetId"],
        "branch_summary" => &["fromId"],
        _ => &[],
    }
}
