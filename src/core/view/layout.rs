//! The entries of a view, their order, and whether the filter keeps each of them.
//!
//! This code runs under the session's lock, so it copies only numbers; the [snapshot](super::snapshot) copies texts.
//! [`super::visible`] makes the final choice of visible entries.

use super::subject::Subject;
use crate::entry::{Kind, Role};
use crate::tree::{Archived, FilePlace, Flags, Node, Tree, number32};
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

/// Which entries to show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "TreeFilter"))]
pub enum Filter {
    /// The conversation, without labels, settings and other bookkeeping.
    #[default]
    Default,
    /// As `default`, without tool results.
    NoTools,
    /// User messages, and messages of plugins that are shown to the user.
    UserOnly,
    /// Entries with a label.
    LabeledOnly,
    /// Every entry.
    All,
}

/// The order of siblings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "TreeOrder"))]
pub enum Order {
    /// The oldest first.
    #[default]
    Time,
    /// The active path first, then the oldest.
    ActiveFirst,
}

/// The scope of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scope {
    /// The only root of the view; `None` stands for all roots of the tree.
    pub root: Option<Node>,
    pub filter: Filter,
    pub order: Order,
    /// Whether the active path is last among siblings. Folding the branches that the leaf has left needs this order. If
    /// this is true, `order` has no effect.
    pub active_last: bool,
    /// Whether archived branches are in scope.
    pub archived: bool,
}

/// One entry in scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item {
    pub node: Node,
    pub(super) parent: u32,
    /// The nearest assistant message at or above the entry.
    caller: u32,
    /// Whether the item is a user message. Only computed if the scope folds branches, since these are named by their
    /// user messages.
    pub is_prompt: bool,
    /// Whether the filter shows the item.
    pub kept: bool,
    /// Whether the item is the leaf or an ancestor of the leaf.
    pub on_active_path: bool,
    /// Whether the item is in an archived branch.
    pub is_archived: bool,
}

impl Item {
    /// The item above this one; `None` for a root of the scope.
    pub fn parent(&self) -> Option<usize> {
        (self.parent != NONE).then_some(self.parent as usize)
    }
}

const NONE: u32 = u32::MAX;

/// An assistant message whose calls may be answered by tool results below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    pub node: Node,
    /// The next assistant message above this one.
    above: u32,
    offset: u64,
    len: u32,
    flags: Flags,
}

impl Caller {
    pub fn place(&self) -> FilePlace {
        FilePlace {
            offset: self.offset,
            len: self.len,
        }
    }

    /// The subject for reading the calls of the message.
    pub fn subject(&self) -> Subject {
        Subject {
            kind: Kind::Message,
            role: Role::Assistant,
            flags: self.flags,
            calls: true,
        }
    }
}

/// The most assistant messages above a tool result that are searched for its call, the nearest first. A result directly
/// follows its call, and the search for a missing or distant call must not walk the whole path.
const REACH: usize = 32;

/// All entries in scope, in depth-first pre-order. An *item* is an index into this list.
#[derive(Debug, PartialEq, Eq)]
pub struct Outline {
    items: Vec<Item>,
    callers: Vec<Caller>,
    /// The number of callers above the scope. These callers are the first ones of the list.
    callers_above: usize,
    leaf: Option<usize>,
    /// The number of archived branches below the roots of the scope, whether or not they are in scope.
    archived_branches: usize,
    /// The name that an entry gives to its branch, by the item of the entry.
    branch_names: HashMap<usize, Box<str>>,
    /// The number of nodes of the tree from which the outline was built.
    node_count: usize,
}

impl Outline {
    /// The memory that the outline uses, in bytes.
    pub fn bytes(&self) -> usize {
        self.items.capacity() * size_of::<Item>()
    }

    pub fn new(tree: &Tree, scope: Scope) -> Self {
        let mut order = SiblingOrder::new(tree, scope);
        let mut callers = Vec::new();
        let above = scope
            .root
            .map_or(NONE, |root| push_callers_above(&mut callers, tree, root));
        let mut outline = Self {
            items: order.items(),
            callers_above: callers.len(),
            callers,
            leaf: None,
            archived_branches: order.archived_branches,
            branch_names: HashMap::new(),
            node_count: tree.node_count(),
        };
        outline.describe(&order, above);
        if tree.has_branch_names() {
            let items = outline.items.iter().enumerate();
            let name = |(at, item): (usize, &Item)| Some((at, tree.branch_name(item.node)?.into()));
            outline.branch_names = items.filter_map(name).collect();
        }
        outline
    }

    /// Fills in the facts of the items, and finds the leaf. `above` is the nearest caller above the scope.
    fn describe(&mut self, order: &SiblingOrder<'_>, above: u32) {
        let (tree, scope) = (order.tree, order.scope);
        let leaf = tree.leaf();
        for at in 0..self.items.len() {
            let Some((before, [item, ..])) = self.items.split_at_mut_checked(at) else {
                break;
            };
            let parent = before.get(item.parent as usize);
            let caller = parent.map_or(above, |parent| parent.caller);
            let (node, subject) = (item.node, subject(tree, item.node));
            let is_leaf = Some(node) == leaf;
            if is_leaf {
                self.leaf = Some(at);
            }
            item.caller = push_caller(&mut self.callers, tree, node, subject, caller);
            item.is_prompt = scope.active_last && is_prompt(subject);
            item.kept = keeps(scope.filter, tree, node, subject, is_leaf);
            item.on_active_path = order.is_active(node);
            item.is_archived = order.archived.hides(node);
        }
    }

    /// The same entries with another filter. `tree` must be the tree that [`Outline::new`] got.
    pub fn with_filter(&self, tree: &Tree, filter: Filter) -> Self {
        let items = self.items.iter().enumerate();
        let items = items.map(|(at, item)| Item {
            kept: keeps(
                filter,
                tree,
                item.node,
                subject(tree, item.node),
                Some(at) == self.leaf,
            ),
            ..*item
        });
        Self {
            items: items.collect(),
            callers: self.callers.clone(),
            branch_names: self.branch_names.clone(),
            ..*self
        }
    }

    /// Adds the entries that were appended after the outline was built. This works only in the usual case during a
    /// conversation: the leaf was the last item, and the new entries are a chain from this item to the present leaf.
    /// Returns false and changes nothing if the tree has changed in any other way. `tree` and `scope` must be the
    /// arguments that [`Outline::new`] got.
    pub fn extend(&mut self, tree: &Tree, scope: Scope) -> bool {
        let Some((at, last)) = self.items.iter().enumerate().next_back() else {
            return false;
        };
        // A new label belongs to an older entry.
        if self.leaf != Some(at) || scope.filter == Filter::LabeledOnly {
            return false;
        }
        let last = *last;
        let appended = self.node_count..tree.node_count();
        let chain = || appended.clone().filter_map(|number| tree.node(number));
        let mut above = last.node;
        for node in chain() {
            if tree.parent(node) != Some(above) || tree.only_child(above) != Some(node) {
                return false;
            }
            above = node;
        }
        if tree.leaf() != Some(above) || tree.has_children(above) {
            return false;
        }
        if let Some(former) = self.items.last_mut() {
            let subject = subject(tree, last.node);
            former.kept = keeps(scope.filter, tree, last.node, subject, last.node == above);
        }
        let mut caller = last.caller;
        for node in chain() {
            let subject = subject(tree, node);
            caller = push_caller(&mut self.callers, tree, node, subject, caller);
            self.items.push(Item {
                node,
                parent: number32(self.items.len() - 1),
                caller,
                is_prompt: scope.active_last && is_prompt(subject),
                kept: keeps(scope.filter, tree, node, subject, node == above),
                on_active_path: true,
                is_archived: false,
            });
        }
        self.leaf = Some(self.items.len() - 1);
        self.node_count = appended.end;
        true
    }

    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// The items that the filter keeps. A query searches these.
    pub fn kept(&self) -> impl Iterator<Item = usize> + '_ {
        let items = self.items.iter().enumerate();
        items.filter(|(_, item)| item.kept).map(|(at, _)| at)
    }

    /// The assistant messages at and above an item that may contain the call of a tool result, nearest first.
    pub fn callers(&self, item: usize) -> impl Iterator<Item = &Caller> {
        self.callers_from(item, 0)
    }

    /// Like [`Outline::callers`], without the messages above the roots of the scope.
    pub fn callers_in_scope(&self, item: usize) -> impl Iterator<Item = &Caller> {
        self.callers_from(item, self.callers_above)
    }

    fn callers_from(&self, item: usize, first: usize) -> impl Iterator<Item = &Caller> {
        let nearest = self.items.get(item).map_or(NONE, |item| item.caller);
        let is_wanted = move |at: &u32| *at as usize >= first;
        let caller = move |at: u32| {
            Some(at)
                .filter(is_wanted)
                .and_then(|at| self.callers.get(at as usize))
        };
        std::iter::successors(caller(nearest), move |below| caller(below.above)).take(REACH)
    }

    /// The name of the branch that begins with an item.
    pub fn branch_name(&self, item: usize) -> Option<&str> {
        self.branch_names.get(&item).map(|name| &**name)
    }

    /// The name of the branch that begins with an item, or with the nearest item above it. Only items that come after
    /// the item `before` in the list are examined.
    pub(super) fn branch_name_behind(&self, item: usize, before: Option<usize>) -> Option<&str> {
        if self.branch_names.is_empty() {
            return None;
        }
        let above = |item: &usize| self.items.get(*item)?.parent();
        let mut path = std::iter::successors(Some(item), above)
            .take_while(|item| before.is_none_or(|before| *item > before));
        path.find_map(|item| self.branch_name(item))
    }

    /// The number of archived branches below the roots of the scope, whether or not they are in scope.
    pub fn archived_branches(&self) -> usize {
        self.archived_branches
    }

    /// The leaf, if it is in scope.
    pub(crate) fn leaf(&self) -> Option<usize> {
        self.leaf
    }

    /// The item of `node`; `None` if the node is not in scope. Takes linear time.
    pub fn find(&self, node: Node) -> Option<usize> {
        self.items.iter().position(|item| item.node == node)
    }
}

/// Which siblings are in scope, and their order.
struct SiblingOrder<'t> {
    tree: &'t Tree,
    scope: Scope,
    /// For each node, whether it is on the path to the leaf.
    active: Vec<bool>,
    archived: Archived,
    hides_archived: bool,
    /// The number of archived branches met so far.
    archived_branches: usize,
}

impl<'t> SiblingOrder<'t> {
    fn new(tree: &'t Tree, scope: Scope) -> Self {
        let mut active = vec![false; tree.node_count()];
        for node in tree.ancestors(tree.leaf()) {
            if let Some(active) = active.get_mut(node.number()) {
                *active = true;
            }
        }
        let archived = tree.archived();
        // A client that names an entry of an archived branch wants to see the branch.
        let is_named = scope.root.is_some_and(|root| archived.hides(root));
        Self {
            tree,
            scope,
            active,
            hides_archived: !scope.archived && !is_named,
            archived,
            archived_branches: 0,
        }
    }

    /// The entries in scope, in pre-order. Their facts are still missing.
    fn items(&mut self) -> Vec<Item> {
        let tree = self.tree;
        let (mut items, mut siblings) = match self.scope.root {
            Some(root) => (Vec::new(), vec![root]),
            None => (Vec::with_capacity(tree.entry_count()), tree.children(None)),
        };
        self.arrange(&mut siblings);
        // The entries to visit, each with the item above it.
        let mut open: Vec<(Node, u32)> = siblings.iter().rev().map(|root| (*root, NONE)).collect();
        while let Some((mut node, mut parent)) = open.pop() {
            loop {
                items.push(Item {
                    node,
                    parent,
                    caller: NONE,
                    is_prompt: false,
                    kept: false,
                    on_active_path: false,
                    is_archived: false,
                });
                parent = number32(items.len() - 1);
                match tree.only_child(node) {
                    Some(child) if !self.archived.begins_with(child) => node = child,
                    _ => break,
                }
            }
            tree.children_into(Some(node), &mut siblings);
            self.arrange(&mut siblings);
            open.extend(siblings.iter().rev().map(|child| (*child, parent)));
        }
        items
    }

    fn is_active(&self, node: Node) -> bool {
        self.active.get(node.number()).copied().unwrap_or(false)
    }

    fn arrange(&mut self, siblings: &mut Vec<Node>) {
        siblings.retain(|node| {
            let above = self.tree.parent(*node);
            let is_within = above.is_some_and(|above| self.archived.hides(above));
            let begins = self.archived.begins_with(*node) && !is_within;
            self.archived_branches += usize::from(begins);
            !(self.hides_archived && begins)
        });
        let moves = self.scope.active_last || self.scope.order == Order::ActiveFirst;
        if !moves || siblings.len() < 2 {
            return;
        }
        let Some(at) = siblings.iter().position(|node| self.is_active(*node)) else {
            return;
        };
        if self.scope.active_last {
            if let Some(from) = siblings.get_mut(at..) {
                from.rotate_left(1);
            }
        } else if let Some(head) = siblings.get_mut(..=at) {
            head.rotate_right(1);
        }
    }
}

/// The subject for a row of this entry.
fn subject(tree: &Tree, node: Node) -> Subject {
    Subject {
        kind: tree.kind(node),
        role: tree.role(node),
        flags: tree.flags(node),
        calls: false,
    }
}

/// Adds `node` if it is an assistant message; returns the nearest caller at or above the node.
fn push_caller(
    callers: &mut Vec<Caller>,
    tree: &Tree,
    node: Node,
    subject: Subject,
    above: u32,
) -> u32 {
    if subject.role != Role::Assistant {
        return above;
    }
    let FilePlace { offset, len } = tree.place(node);
    callers.push(Caller {
        node,
        above,
        offset,
        len,
        flags: subject.flags,
    });
    number32(callers.len() - 1)
}

/// Adds the callers above the root of a scope, at most `REACH` of them; returns the nearest one.
fn push_callers_above(callers: &mut Vec<Caller>, tree: &Tree, root: Node) -> u32 {
    let above = tree.ancestors(tree.parent(root));
    let assistants = above.filter(|node| tree.role(*node) == Role::Assistant);
    let mut nearest: Vec<_> = assistants.take(REACH).collect();
    nearest.reverse();
    let mut above = NONE;
    for node in nearest {
        above = push_caller(callers, tree, node, subject(tree, node), above);
    }
    above
}

fn is_prompt(subject: Subject) -> bool {
    subject.is_message() && subject.role == Role::User
}

fn keeps(filter: Filter, tree: &Tree, node: Node, subject: Subject, is_leaf: bool) -> bool {
    let Subject {
        kind, role, flags, ..
    } = subject;
    if filter == Filter::All {
        return true;
    }
    if kind == Kind::CustomMessage && flags.has(Flags::HIDDEN) {
        return false;
    }
    match filter {
        Filter::All => true,
        Filter::LabeledOnly => tree.label(node).is_some(),
        Filter::UserOnly => match kind {
            Kind::Message => role == Role::User,
            kind => kind == Kind::CustomMessage,
        },
        Filter::NoTools if kind == Kind::Message && role == Role::ToolResult => false,
        Filter::Default | Filter::NoTools => match kind {
            Kind::Label
            | Kind::Custom
            | Kind::LeafRecord
            | Kind::Note
            | Kind::ContextEdit
            | Kind::Usage
            | Kind::SessionInfo
            | Kind::ThinkingLevelChange
            | Kind::ModelChange
            | Kind::ModeChange => false,
            Kind::Message => !flags.has(Flags::SILENT) || is_leaf,
            Kind::Compaction | Kind::BranchSummary | Kind::CustomMessage | Kind::Unknown => true,
        },
    }
}
