//! The first message of the user in an open session (protocol.md §3.2), by the same rule as in the list of sessions.

use treelined_core::tree::Node;
use treelined_files::session::SessionState;
use treelined_files::store::listing;

/// The first message of the user; empty if there is none. Once found, the message is kept, since later entries do not
/// change it. A body that cannot be read counts as no message, so that the session can be opened.
pub(super) fn of(state: &SessionState) -> &str {
    match state.first_message.get() {
        Some(said) => said,
        None => found(state, listing::messages_of(&state.tree)).unwrap_or_default(),
    }
}

/// The first message of the session, if it is one of these new entries; otherwise `None`.
pub(super) fn among<'s>(state: &'s SessionState, nodes: &[Node]) -> Option<&'s str> {
    match state.first_message.get() {
        Some(_) => None,
        None => found(state, nodes.iter().copied()),
    }
}

fn found(state: &SessionState, nodes: impl Iterator<Item = Node>) -> Option<&str> {
    let said = listing::first_message(&state.tree, &state.bodies(), nodes).unwrap_or_default();
    if said.is_empty() {
        return None;
    }
    Some(state.first_message.get_or_init(|| said))
}
