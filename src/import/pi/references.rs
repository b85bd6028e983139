//! The members of an entry that name other entries.

/// The note of a node whose id another entry has already.
pub(super) const DUPLICATE: &str = "duplicate";

/// The members of an entry that name other entries; those of a compaction are the node's.
pub(super) fn references_of(kind: &str) -> &'static [&'static str] {
    match kind {
        "label" | "context_edit" => &["targetId"],
        "branch_summary" => &["fromId"],
        _ => &[],
    }
}
