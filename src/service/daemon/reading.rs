//! Reads from a session, and the thread on which large reads run.

use treelined_core::context::{Kept, PathStep};
use treelined_core::error::Result;
use treelined_core::tree::Node;
use treelined_files::blocking::blocking;
use treelined_files::session::SessionState;

/// Bodies larger than this together, in bytes, are read on a blocking thread.
pub(crate) const INLINE_BYTES: u64 = 256 << 10;
/// More entries than this are walked on a blocking thread.
pub(crate) const INLINE_ENTRIES: usize = 4096;

/// The stored bytes of these entries.
pub(crate) fn size_of(core: &SessionState, nodes: impl IntoIterator<Item = Node>) -> u64 {
    let sizes = nodes.into_iter().map(|node| core.tree.place(node).len);
    sizes.map(u64::from).sum()
}

/// The part of a path that the context contains.
pub(crate) fn kept(core: &SessionState, path: &[PathStep]) -> Result<Kept> {
    Kept::of(path, |node| core.entry(node), |id| core.tree.find(id))
}

/// The path to a position, in the form that the context needs.
pub(crate) fn steps(core: &SessionState, leaf: Option<Node>) -> Vec<PathStep> {
    let path = core.tree.path(leaf).into_iter();
    path.map(|node| step(core, node)).collect()
}

pub(crate) fn step(core: &SessionState, node: Node) -> PathStep {
    PathStep {
        node,
        kind: core.tree.kind(node),
        role: core.tree.role(node),
    }
}

/// Large reads run on a blocking thread, not on the reader thread.
pub(crate) async fn inline_or_blocking<T: Send + 'static>(
    size: u64,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    if size > INLINE_BYTES {
        blocking(work).await
    } else {
        work()
    }
}
