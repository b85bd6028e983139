//! The score of a match, by the field that it is in.

use treelined_core::entry::Role;
use treelined_core::search::FieldKind;

/// The score of a match in a field (protocol.md §3.16).
pub(super) fn weight(kind: FieldKind, role: Role) -> u8 {
    match (kind, role) {
        (FieldKind::Labels, _) => 5,
        (FieldKind::Text, Role::User) => 4,
        (FieldKind::Text, Role::Assistant) => 3,
        (FieldKind::ToolResults, _) => 1,
        _ => 2,
    }
}
