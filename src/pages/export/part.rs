//! The entries of the exported part.

use super::request::Part;
use treelined_core::entry::{Kind, Role};
use treelined_core::error::{Error, Result};
use treelined_core::tree::{Node, Tree};
use treelined_core::view::Outline;
use treelined_core::{json, name};
use treelined_files::session::SessionState;

impl Part {
    /// Fails for a subtree that begins with a label, since a label does not belong to a conversation.
    pub(super) fn check(self, state: &SessionState) -> Result<()> {
        let Self::Subtree(top) = self else {
            return Ok(());
        };
        if state.tree.kind(top) != Kind::Label {
            return Ok(());
        }
        let reason = match label_target(state, top)? {
            Some(target) => format!(
                "is a label: name the entry that it labels, {:?}",
                state.tree.id(target)
            ),
            None => "is a label: name an entry of the conversation".to_owned(),
        };
        Err(Error::invalid_params("entryId", &reason))
    }

    /// For each item of the outline, whether the part contains it. `None` stands for all items. A subtree leaves out
    /// the labels of entries outside of it.
    pub(super) fn matched(
        self,
        state: &SessionState,
        outline: &Outline,
    ) -> Result<Option<Vec<bool>>> {
        let tree = &state.tree;
        let nodes = outline.items().iter().map(|item| item.node);
        match self {
            Self::Tree => Ok(None),
            Self::Branch(tip) => {
                let on_path = NodeSet::new(tree, tree.ancestors(tip));
                Ok(Some(nodes.map(|node| on_path.has(node)).collect()))
            }
            Self::Subtree(_) => {
                let in_scope = NodeSet::new(tree, nodes.clone());
                let matched = nodes.map(|node| {
                    Ok(tree.kind(node) != Kind::Label
                        || label_target(state, node)?.is_some_and(|target| in_scope.has(target)))
                });
                matched.collect::<Result<_>>().map(Some)
            }
        }
    }

    /// The first user messages of the part, at most `count` of them.
    pub(super) fn user_messages(self, tree: &Tree, outline: &Outline, count: usize) -> Vec<Node> {
        let is_user =
            |node: &Node| tree.kind(*node) == Kind::Message && tree.role(*node) == Role::User;
        match self {
            Self::Tree => tree.entries().filter(is_user).take(count).collect(),
            Self::Branch(tip) => {
                let path = tree.path(tip).into_iter();
                path.filter(is_user).take(count).collect()
            }
            Self::Subtree(_) => {
                let nodes = outline.items().iter().map(|item| item.node);
                let mut found: Vec<Node> = nodes.filter(is_user).collect();
                found.sort_unstable();
                found.truncate(count);
                found
            }
        }
    }

    /// The name of the session in the part. For a subtree, only names in the entries of the subtree count.
    pub(super) fn name(self, state: &SessionState, outline: &Outline) -> Result<Option<String>> {
        let tree = &state.tree;
        if !matches!(self, Self::Subtree(_)) {
            return Ok(tree.name().map(str::to_owned));
        }
        let nodes = outline.items().iter().map(|item| item.node);
        let Some(last) = { nodes }
            .filter(|node| tree.kind(*node) == Kind::SessionInfo)
            .max()
        else {
            return Ok(None);
        };
        let entry = state.entry(last)?;
        let name = json::get(&entry, "name").and_then(json::string);
        Ok(name.as_deref().and_then(name::given))
    }
}

/// The entry that a label belongs to; `None` if the session does not have this entry.
fn label_target(state: &SessionState, label: Node) -> Result<Option<Node>> {
    let entry = state.entry(label)?;
    let target = json::get(&entry, "targetId").and_then(json::id);
    Ok(target.and_then(|id| state.tree.find(&id)))
}

/// A set of nodes of a tree.
struct NodeSet(Vec<bool>);

impl NodeSet {
    fn new(tree: &Tree, nodes: impl Iterator<Item = Node>) -> Self {
        let mut set = vec![false; tree.node_count()];
        for node in nodes {
            if let Some(is_in) = set.get_mut(node.number()) {
                *is_in = true;
            }
        }
        Self(set)
    }

    fn has(&self, node: Node) -> bool {
        self.0.get(node.number()) == Some(&true)
    }
}
