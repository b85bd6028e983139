//! Renders entries of a session as blocks (protocol.md §15.2). This module reads the bodies, and finds the results of
//! calls and the entries that summaries replaced. [`crate::render`] writes the blocks.
//!
//! A [`RenderPlanner`] reads the tree, and then an [`EntryRenderer`] reads the bodies. So the tree is not needed while
//! bodies are read.

use crate::render::{self, CallResult, EntryContext, ReplacedEntries};
use crate::renderers::Renderers;
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use treelined_core::entry::{Kind, Role};
use treelined_core::error::Result;
use treelined_core::json::{self, Members};
use treelined_core::tree::{Flags, Node, Tree};
use treelined_core::view::Subject;
use treelined_files::log::body::{Bodies, BodyReader, Fetch};

/// The most entries below an assistant message that are searched for the results of its calls.
const MOST_SEARCHED: usize = 256;
/// The most tool results among these entries that are kept as candidates.
const MOST_CANDIDATES: usize = 64;
/// In the line of a result, most programs write the id of its call within this number of bytes from the beginning.
const HEAD_BYTES: usize = 1024;

/// Makes plans to render entries of one tree.
pub struct RenderPlanner<'t> {
    tree: &'t Tree,
    bodies: &'t Bodies,
    leaf: Option<Node>,
    /// For each node, whether it is on the path to `leaf`. Computed on first use.
    is_preferred: Option<Vec<bool>>,
    /// The root above each compaction for which a plan was made.
    roots: HashMap<Node, Node>,
}

/// How to render an entry.
pub struct RenderPlan {
    fetch: Fetch,
    id: String,
    subject: Subject,
    /// Results that may belong to the calls of an assistant message, the most likely first.
    candidates: Vec<Candidate>,
    /// The ids of the first and the last entry that a summary replaces.
    replaced: Option<(String, String)>,
}

/// A tool result that may answer a call of an assistant message above it.
struct Candidate {
    fetch: Fetch,
    id: String,
    is_error: bool,
}

impl RenderPlan {
    /// The number of stored bytes that rendering may read.
    pub fn bytes(&self) -> u64 {
        let candidates = self.candidates.iter().map(|candidate| &candidate.fetch);
        let fetches = std::iter::once(&self.fetch).chain(candidates);
        fetches.map(|fetch| u64::from(fetch.place.len)).sum()
    }
}

impl<'t> RenderPlanner<'t> {
    /// If a call has several results, the result on the path to `leaf` counts.
    pub fn new(tree: &'t Tree, bodies: &'t Bodies, leaf: Option<Node>) -> Self {
        Self {
            tree,
            bodies,
            leaf,
            is_preferred: None,
            roots: HashMap::new(),
        }
    }

    /// Makes the plan for an entry. Reads the file only if the entry is a summary.
    pub fn plan(&mut self, node: Node) -> Result<RenderPlan> {
        let tree = self.tree;
        let (kind, role) = (tree.kind(node), tree.role(node));
        let fetch = self.bodies.fetch(tree, node)?;
        let replaced = match kind {
            Kind::Compaction | Kind::BranchSummary => self.replaced(node, kind, &fetch)?,
            _ => None,
        };
        Ok(RenderPlan {
            fetch,
            id: tree.id(node).to_owned(),
            subject: Subject {
                kind,
                role,
                flags: tree.flags(node),
                calls: false,
            },
            candidates: match role {
                Role::Assistant => self.candidates(node)?,
                _ => Vec::new(),
            },
            replaced,
        })
    }

    /// The tool results below an assistant message, down to the next user message: first the results on the path to
    /// `leaf`, then the nearest results.
    fn candidates(&mut self, caller: Node) -> Result<Vec<Candidate>> {
        let tree = self.tree;
        let mut found = Vec::new();
        let mut open = VecDeque::from([caller]);
        let mut children = Vec::new();
        let (mut searched, mut has_branches) = (0, false);
        while let Some(node) = open.pop_front() {
            tree.children_into(Some(node), &mut children);
            has_branches |= children.len() > 1;
            for child in children.iter().copied() {
                searched += 1;
                match (tree.kind(child), tree.role(child)) {
                    (Kind::Message, Role::ToolResult) => {
                        found.push(child);
                        open.push_back(child);
                    }
                    (Kind::Message, Role::Assistant) => open.push_back(child),
                    (Kind::Message | Kind::BranchSummary | Kind::Compaction, _) => {}
                    _ => open.push_back(child),
                }
            }
            if searched > MOST_SEARCHED || found.len() >= MOST_CANDIDATES {
                break;
            }
        }
        found.truncate(MOST_CANDIDATES);
        if has_branches && found.len() > 1 {
            let is_preferred = self.preferred();
            found.sort_by_key(|node| is_preferred.get(node.number()) != Some(&true));
        }
        let candidates = found.into_iter().map(|node| {
            Ok(Candidate {
                fetch: self.bodies.fetch(tree, node)?,
                id: tree.id(node).to_owned(),
                is_error: tree.flags(node).has(Flags::ERROR),
            })
        });
        candidates.collect()
    }

    fn preferred(&mut self) -> &[bool] {
        let (tree, leaf) = (self.tree, self.leaf);
        self.is_preferred.get_or_insert_with(|| {
            let mut is_preferred = vec![false; tree.node_count()];
            for node in tree.ancestors(leaf) {
                if let Some(is_preferred) = is_preferred.get_mut(node.number()) {
                    *is_preferred = true;
                }
            }
            is_preferred
        })
    }

    /// The first and the last entry that a summary replaces. The replaced entries are the entries of the branch that
    /// the leaf left, or the entries of the path before the first kept entry.
    fn replaced(
        &mut self,
        node: Node,
        kind: Kind,
        fetch: &Fetch,
    ) -> Result<Option<(String, String)>> {
        let tree = self.tree;
        let entry = self.bodies.entry(fetch)?;
        let named = |member| {
            let id = json::get(&entry, member).and_then(json::id)?;
            tree.find(&id)
        };
        let ends = match kind {
            Kind::Compaction => {
                let first_kept = named("firstKeptEntryId");
                let last = match first_kept {
                    Some(kept) => tree.parent(kept),
                    None => tree.parent(node),
                };
                last.map(|last| (self.root(node), last))
            }
            _ => named("fromId").and_then(|from| {
                let (_, branch) = tree.branch(Some(from), tree.parent(node));
                Some((*branch.first()?, *branch.last()?))
            }),
        };
        let id = |node| tree.id(node).to_owned();
        Ok(ends.map(|(first, last)| (id(first), id(last))))
    }

    /// The root above a compaction. The walk ends at a compaction whose root is known, so for all compactions of a
    /// path, each entry is visited once.
    fn root(&mut self, compaction: Node) -> Node {
        let mut root = compaction;
        for node in self.tree.ancestors(Some(compaction)) {
            root = node;
            if self.tree.kind(node) == Kind::Compaction
                && let Some(known) = self.roots.get(&node)
            {
                root = *known;
                break;
            }
        }
        self.roots.insert(compaction, root);
        root
    }
}

/// The parts of a result that are shown in its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultParts {
    /// The id of its entry, and whether the call failed.
    Ids,
    /// The id, the failure, and the blocks.
    Blocks,
}

/// Changes an entry. It gets and returns the entry as clients receive it.
type EntryChange<'c> = dyn Fn(&[u8]) -> Vec<u8> + Sync + 'c;

/// Renders entries that have a plan. This is fastest if the entries are in file order.
pub struct EntryRenderer<'b> {
    entries: BodyReader<'b>,
    /// A second reader with its own window of the file, since results come after their calls.
    results: BodyReader<'b>,
    parts: ResultParts,
    renderers: Option<&'b Renderers>,
    change: Option<&'b EntryChange<'b>>,
}

impl<'b> EntryRenderer<'b> {
    pub fn new(bodies: &'b Bodies, parts: ResultParts) -> Self {
        Self {
            entries: bodies.reader(),
            results: bodies.reader(),
            parts,
            renderers: None,
            change: None,
        }
    }

    /// Shows custom messages with the text that their renderers make.
    pub fn with_renderers(self, renderers: &'b Renderers) -> Self {
        Self {
            renderers: Some(renderers),
            ..self
        }
    }

    /// Changes each entry, and each result of a call, with `change` before it is rendered. `change` must not change
    /// ids.
    pub(crate) fn changed_by(self, change: &'b EntryChange<'b>) -> Self {
        Self {
            change: Some(change),
            ..self
        }
    }

    /// Appends the entry as one JSON object, `RenderedEntry` of protocol.md §15.2, of about `max_bytes` at most.
    pub fn push(&mut self, out: &mut Vec<u8>, plan: &RenderPlan, max_bytes: usize) -> Result<()> {
        let change = self.change;
        let changed = |entry: &'_ [u8]| change.map(|change| change(entry));
        let Self {
            entries,
            results,
            parts,
            renderers,
            ..
        } = self;
        let mut failed = None;
        entries.see_entry(&plan.fetch, |stored| {
            let own = changed(stored);
            let entry = own.as_deref().unwrap_or(stored);
            let found = match plan.candidates.is_empty() {
                true => Ok(Vec::new()),
                false => find_results(results, plan, entry, *parts),
            };
            let mut found = found.unwrap_or_else(|error| {
                failed = Some(error);
                Vec::new()
            });
            for result in &mut found {
                if let Some(entry) = result.entry.as_deref().and_then(changed) {
                    result.entry = Some(entry);
                }
            }
            let found: Vec<CallResult<'_>> =
                found.iter().map(FoundResult::as_call_result).collect();
            let preview = renderers.and_then(|renderers| preview(renderers, entry, plan.subject));
            let context = EntryContext {
                id: &plan.id,
                is_error: plan.subject.flags.has(Flags::ERROR),
                results: &found,
                replaced: plan
                    .replaced
                    .as_ref()
                    .map(|(first, last)| ReplacedEntries { first, last }),
                preview: preview.as_deref(),
            };
            render::push_entry(out, entry, &context, max_bytes);
        })?;
        failed.map_or(Ok(()), Err)
    }
}

/// The text that a renderer makes of a custom message.
fn preview(renderers: &Renderers, entry: &[u8], subject: Subject) -> Option<String> {
    if !subject.is_custom() || renderers.is_empty() {
        return None;
    }
    let renderer = renderers.find(entry, subject).ok().flatten()?;
    renderer.look(entry, subject).preview
}

/// The result of a call.
struct FoundResult<'p> {
    call_id: String,
    candidate: &'p Candidate,
    entry: Option<Vec<u8>>,
}

impl FoundResult<'_> {
    fn as_call_result(&self) -> CallResult<'_> {
        CallResult {
            call_id: &self.call_id,
            entry_id: &self.candidate.id,
            is_error: self.candidate.is_error,
            entry: self.entry.as_deref(),
        }
    }
}

/// The results of the calls of an assistant message. For each call, the first candidate with its id counts.
fn find_results<'p>(
    reader: &mut BodyReader<'_>,
    plan: &'p RenderPlan,
    entry: &[u8],
    parts: ResultParts,
) -> Result<Vec<FoundResult<'p>>> {
    let mut open = render::call_ids(entry);
    let mut found = Vec::new();
    for candidate in &plan.candidates {
        if open.is_empty() {
            break;
        }
        let Some(id) = answered_call(reader, &candidate.fetch)? else {
            continue;
        };
        if let Some(at) = open.iter().position(|call| **call == *id) {
            found.push(FoundResult {
                call_id: open.swap_remove(at).into_owned(),
                candidate,
                entry: match parts {
                    ResultParts::Blocks => Some(reader.entry(&candidate.fetch)?),
                    ResultParts::Ids => None,
                },
            });
        }
    }
    Ok(found)
}

/// The id of the call that a tool result answers.
fn answered_call(reader: &mut BodyReader<'_>, fetch: &Fetch) -> Result<Option<String>> {
    let head = reader.stored(fetch.place, HEAD_BYTES)?;
    if let Some(id) = first_call_id(head) {
        return Ok(Some(id));
    }
    reader.see_entry(fetch, |entry| {
        let id = json::get_path(entry, &["message", "toolCallId"]);
        id.and_then(json::string).map(Cow::into_owned)
    })
}

/// The id of the call, if the beginning of a line has it.
fn first_call_id(head: &[u8]) -> Option<String> {
    let member = |at: usize, name: &str| {
        let mut members = Members::open(head, at).ok()?;
        while let Some(key) = members.next_key().ok()? {
            if key.is(head, name) {
                return Some(key.value_at);
            }
            members.value().ok()?;
        }
        None
    };
    let message = member(json::skip_space(head, 0), "message")?;
    let at = member(message, "toolCallId")?;
    let end = json::skip_value(head, at).ok()?;
    let id = head.get(at..end).and_then(json::string)?;
    Some(id.into_owned())
}
