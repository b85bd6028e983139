//! Reads a conversation and makes its nodes.

use super::message::{MappedNode, Shape};
use crate::member::{Member, Node, NodeKind, Parent, Place, Record};
use crate::message::elements;
use crate::order::{Above, Hanging};
use crate::reader::Reader;
use crate::value::{literal, millis_of_seconds, mixed, text};
use hashbrown::HashSet;
use std::borrow::Cow;
use treelined_core::json::{self, Members};
use xxhash_rust::xxh3::xxh3_64;

/// The longest id that is used unchanged, in bytes. The hash of a longer id is used instead of the id.
const LONGEST_ID: usize = 128;

/// Reads the single record of a conversation.
pub(super) struct ConversationReader {
    member: Member,
    /// The id from the name of the source. It is used for a conversation that cannot be read.
    fallback: String,
}

/// A node of `mapping`, with its position in the record.
struct Item {
    at: usize,
    len: usize,
    /// Whether an earlier node has the same id.
    is_repeated: bool,
}

/// The parent of the nodes that are below a node.
#[derive(Clone, Copy)]
enum Tip {
    Base,
    Node(u32),
    /// The parent is missing. This item names the parent.
    Missing(usize),
}

/// The state of the path that ends at a node.
#[derive(Clone, Copy)]
struct Path {
    tip: Tip,
    /// The index of the call that has no result yet.
    call: Option<u32>,
}

impl ConversationReader {
    pub(super) fn new(path: &str) -> Self {
        let (_, part) = path.rsplit_once('#').unwrap_or(("", path));
        Self {
            member: Member::default(),
            fallback: part.to_owned(),
        }
    }

    fn conversation(&mut self, record: &Record<'_>) -> bool {
        let names = [
            "conversation_id",
            "id",
            "title",
            "create_time",
            "update_time",
            "mapping",
            "current_node",
            "default_model_slug",
        ];
        let [
            conversation,
            id,
            title,
            created,
            updated,
            mapping,
            current,
            model,
        ] = json::get_each(record.bytes, names);
        let Some(mapping) = mapping.filter(|mapping| mapping.starts_with(b"{")) else {
            return false;
        };
        let id = text(conversation).or(text(id)).filter(|id| !id.is_empty());
        if let Some(id) = id {
            self.member.native_id = id.into_owned();
        }
        self.member.title = text(title).map(Cow::into_owned);
        self.member.started = millis_of_seconds(created);
        self.member.ended = millis_of_seconds(updated);
        let at = mapping.as_ptr() as usize - record.bytes.as_ptr() as usize;
        let mut nodes = Nodes {
            record,
            model: literal(model),
            items: Vec::new(),
            hanging: Hanging::default(),
            ids: Vec::new(),
        };
        nodes.read(mapping, at);
        nodes.emit(&mut self.member, text(current).as_deref());
        !self.member.nodes.is_empty()
    }
}

impl Reader for ConversationReader {
    fn record(&mut self, record: Record<'_>) {
        let is_first = self.member.nodes.is_empty();
        if !is_first || !self.conversation(&record) {
            *self
                .member
                .origin_only
                .entry("empty".to_owned())
                .or_default() += 1;
        }
    }

    fn finish(mut self: Box<Self>) -> Vec<Member> {
        if self.member.native_id.is_empty() {
            self.member.native_id = std::mem::take(&mut self.fallback);
        }
        self.member.part_id.clone_from(&self.member.native_id);
        vec![self.member]
    }
}

/// The nodes of `mapping`.
struct Nodes<'a> {
    record: &'a Record<'a>,
    /// The model of answers that do not name one.
    model: Option<&'a [u8]>,
    items: Vec<Item>,
    hanging: Hanging,
    /// The ids of the items.
    ids: Vec<Box<str>>,
}

impl<'a> Nodes<'a> {
    /// Reads `mapping`, which begins at the position `base` of the record.
    fn read(&mut self, mapping: &[u8], base: usize) {
        let Ok(mut members) = Members::open(mapping, 0) else {
            return;
        };
        let mut seen = HashSet::new();
        while let Ok(Some(member)) = members.next_member() {
            let value = mapping.get(member.value.clone()).unwrap_or_default();
            let name = String::from_utf8_lossy(&member.name(mapping)).into_owned();
            let id = short(&name);
            let is_repeated = self.hanging.find(&id).is_some();
            let is_new = seen.insert(mixed(xxh3_64(id.as_bytes()), xxh3_64(value)));
            if !value.starts_with(b"{") || !is_new {
                continue;
            }
            let node = MappedNode::read(value);
            let parent = text(node.parent).map(|parent| short(&parent).into_owned());
            self.hanging.add(&id, parent.as_deref());
            let children = node.children.filter(|_| !is_repeated);
            for (rank, child) in children.into_iter().flat_map(elements).enumerate() {
                if let Some(child) = text(Some(child)) {
                    self.hanging.rank(&short(&child), rank);
                }
            }
            self.items.push(Item {
                at: base + member.value.start,
                len: value.len(),
                is_repeated,
            });
            self.ids.push(id.into());
        }
    }

    /// Adds all nodes and the leaf to the member.
    fn emit(&self, member: &mut Member, current: Option<&str>) {
        let first = Path {
            tip: Tip::Base,
            call: None,
        };
        let mut paths = vec![first; self.items.len()];
        for (number, above) in self.hanging.order() {
            let above = match above {
                Above::Nothing => first,
                Above::Missing => Path {
                    tip: Tip::Missing(number),
                    call: None,
                },
                Above::Record(parent) => paths.get(parent).copied().unwrap_or(first),
            };
            let path = self.node(member, number, above).unwrap_or(above);
            if let Some(slot) = paths.get_mut(number) {
                *slot = path;
            }
        }
        let current = current.and_then(|current| self.hanging.find(&short(current)));
        let tip = current.and_then(|number| paths.get(number));
        member.leaf = match tip.map(|path| path.tip) {
            Some(Tip::Node(leaf)) => Some(leaf),
            _ => None,
        };
    }

    /// Adds the node of an item below `above`. `None` if the item has no content.
    fn node(&self, member: &mut Member, number: usize, above: Path) -> Option<Path> {
        let (item, id) = (self.items.get(number)?, self.ids.get(number)?);
        let value = self.record.bytes.get(item.at..item.at + item.len)?;
        let message = MappedNode::read(value).message;
        let shape = match (item.is_repeated, &message) {
            (true, _) => Shape::Notice,
            (false, message) => message.as_ref()?.shape()?,
        };
        let call = above
            .call
            .and_then(|call| member.nodes.get(usize::try_from(call).ok()?));
        let kind = match (shape, call) {
            (Shape::User, _) => NodeKind::User,
            (Shape::Answer | Shape::Call, _) => NodeKind::Assistant,
            (Shape::Tool, Some(_)) => NodeKind::ToolResult,
            (Shape::Tool, None) | (Shape::Scaffolding, _) => NodeKind::Scaffolding,
            (Shape::Notice, _) => NodeKind::Custom,
        };
        let note = match kind {
            NodeKind::ToolResult => call.map(|call| call.key.clone()),
            NodeKind::Assistant => self.model_of(message.as_ref()?.metadata("model_slug")),
            NodeKind::Custom => item.is_repeated.then(|| REPEATED.into()),
            _ => None,
        };
        let at = u32::try_from(member.nodes.len()).ok()?;
        let key = match item.is_repeated {
            true => format!("{id}/{number}").into_boxed_str(),
            false => id.clone(),
        };
        let time = message.as_ref().and_then(|message| message.time());
        member.ended = member.ended.max(time);
        member.nodes.push(Node {
            key,
            parent: self.parent(above.tip),
            kind,
            time,
            order: u64::from(at),
            places: vec![Place {
                at: self.record.at + item.at as u64,
                len: item.len as u64,
            }],
            fingerprint: 0,
            note,
            is_open: false,
        });
        let is_answered = matches!(shape, Shape::User | Shape::Answer | Shape::Tool);
        Some(Path {
            tip: Tip::Node(at),
            call: match shape {
                Shape::Call => Some(at),
                _ if is_answered => None,
                _ => above.call,
            },
        })
    }

    /// The model of the conversation, if the answer does not name a model.
    fn model_of(&self, own: Option<&[u8]>) -> Option<Box<str>> {
        let model = text(self.model.filter(|_| literal(own).is_none()))?;
        (model.len() <= LONGEST_ID).then(|| model.into())
    }

    fn parent(&self, tip: Tip) -> Parent {
        match tip {
            Tip::Base => Parent::Base,
            Tip::Node(at) => Parent::Node(at),
            Tip::Missing(number) => {
                let item = self.items.get(number);
                let value =
                    item.and_then(|item| self.record.bytes.get(item.at..item.at + item.len));
                let parent = value.and_then(|value| text(MappedNode::read(value).parent));
                parent.map_or(Parent::Base, |parent| {
                    Parent::Key((&*short(&parent)).into())
                })
            }
        }
    }
}

/// The note of a node that has the same id as an earlier node.
pub(super) const REPEATED: &str = "repeated";

/// An id that is short enough to be repeated in many nodes.
fn short(id: &str) -> Cow<'_, str> {
    match id.len() {
        0..=LONGEST_ID => Cow::Borrowed(id),
        _ => Cow::Owned(format!("{:016x}", xxh3_64(id.as_bytes()))),
    }
}
