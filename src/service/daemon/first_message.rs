//! The first message of the user in an open session (protocol.md §3.2), as the list of sessions has it.

use treelined_core::tree::Node;
use treelined_files::session::SessionState;
use treelined_files::store::listing;

/// The first message of the user; empty without one. Found once: later entries do not change it. A body that cannot
/// be read says nothing, so that the session is open all the same.
pub(super) fn of(core: &SessionState) -> &str {
    match core.first_message.get() {
        Some(said) => said,
        None => found(core, listing::messages_of(&core.tree)).unwrap_or_default(),
    }
}

/// The same if these new entries say it, `None` if nothing was said or earlier entries say it.
pub(super) fn among<'s>(core: &'s SessionState, nodes: &[Node]) -> Option<&'s str> {
    match core.first_message.get() {
        Some(_) => None,
        None => found(core, nodes.iter().copied()),
    }
}

fn found(core: &SessionState, nodes: impl Iterator<Item = Node>) -> Option<&str> {
    let said = listing::first_message(&core.tree, &core.bodies(), nodes).unwrap_or_default();
    if said.is_empty() {
        return None;
    }
    Some(core.first_message.get_or_init(|| said))
}
