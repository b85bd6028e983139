//! Reads a conversation and makes its nodes.

use crate::member::{Member, Node, NodeKind, Parent, Place, Record};
use crate::message::elements;
use crate::order::{Above, Hanging};
use crate::reader::Reader;
use crate::value::{instant, is_blank, literal, text};
use std::borrow::Cow;
use treelined_core::json;
use treelined_core::timestamp::Millis;
use xxhash_rust::xxh3::xxh3_64;

/// The longest id that is used unchanged, in bytes. The hash of a longer id is used instead of the id.
const LONGEST_ID: usize = 128;
/// The parent of the first messages. It is not a message itself.
const ROOT: &str = "00000000-0000-4000-8000-000000000000";

/// Reads the single record of a conversation.
pub(super) struct ConversationReader {
    member: Member,
    /// The id from the name of the source. It is used for a conversation that cannot be read.
    fallback: String,
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
            "uuid",
            "name",
            "created_at",
            "updated_at",
            "chat_messages",
            "current_leaf_message_uuid",
        ];
        let [id, name, created, updated, messages, leaf] = json::get_each(record.bytes, names);
        let Some(messages) = messages.filter(|messages| messages.starts_with(b"[")) else {
            return false;
        };
        if let Some(id) = text(id).filter(|id| !id.is_empty()) {
            self.member.native_id = id.into_owned();
        }
        self.member.title = text(name).map(Cow::into_owned);
        self.member.started = instant(created);
        self.member.ended = instant(updated);
        let messages = Messages::read(record, messages);
        messages.emit(&mut self.member, text(leaf).as_deref());
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

/// The parent of the nodes that are below a message.
#[derive(Clone)]
enum Tip {
    Base,
    Node(u32),
    /// The parent is missing. This message names the parent.
    Missing(usize),
}

/// The messages of a conversation.
struct Messages<'a> {
    record: &'a Record<'a>,
    items: Vec<&'a [u8]>,
    ids: Vec<Box<str>>,
    /// For each message, the id of its parent, even if that parent is missing.
    parents: Vec<Option<Box<str>>>,
    hanging: Hanging,
}

impl<'a> Messages<'a> {
    fn read(record: &'a Record<'a>, messages: &'a [u8]) -> Self {
        let mut all = Self {
            record,
            items: Vec::new(),
            ids: Vec::new(),
            parents: Vec::new(),
            hanging: Hanging::default(),
        };
        for (number, message) in elements(messages).enumerate() {
            let [id, parent] = json::get_each(message, ["uuid", "parent_message_uuid"]);
            if !message.starts_with(b"{") {
                continue;
            }
            let id = text(id).filter(|id| !id.is_empty());
            let id = id.map_or_else(|| format!("#{number}"), |id| short(&id).into_owned());
            let parent: Option<Box<str>> = match parent {
                None => all.ids.last().cloned(),
                parent => text(parent)
                    .filter(|it| it != ROOT)
                    .map(|it| (&*short(&it)).into()),
            };
            // A message with the id of an earlier one becomes a separate message below the same parent.
            let id = match all.hanging.find(&id) {
                Some(_) => format!("{id}/again{number}"),
                None => id,
            };
            all.hanging.add(&id, parent.as_deref());
            all.items.push(message);
            all.ids.push(id.into());
            all.parents.push(parent);
        }
        all
    }

    /// Adds the nodes of all messages and the leaf to the member.
    fn emit(&self, member: &mut Member, leaf: Option<&str>) {
        let mut tips = vec![Tip::Base; self.items.len()];
        for (number, above) in self.hanging.order() {
            let above = match above {
                Above::Nothing => Tip::Base,
                Above::Missing => Tip::Missing(number),
                Above::Record(parent) => tips.get(parent).cloned().unwrap_or(Tip::Base),
            };
            let tip = self.message(member, number, above);
            if let (Some(slot), Some(tip)) = (tips.get_mut(number), tip) {
                *slot = tip;
            }
        }
        let leaf = leaf.and_then(|leaf| self.hanging.find(&short(leaf)));
        let tip = leaf.map_or_else(|| tips.last(), |leaf| tips.get(leaf));
        if let Some(Tip::Node(leaf)) = tip {
            member.leaf = Some(*leaf);
        }
    }

    /// Adds the nodes of a message below `above`. Returns the parent of the nodes that are below the message.
    fn message(&self, member: &mut Member, number: usize, above: Tip) -> Option<Tip> {
        let (message, id) = (self.items.get(number).copied()?, self.ids.get(number)?);
        let names = [
            "sender",
            "content",
            "created_at",
            "attachments",
            "files",
            "text",
        ];
        let [sender, content, created, attachments, files, said] = json::get_each(message, names);
        let blocks: Vec<&[u8]> = content.into_iter().flat_map(elements).collect();
        let mut pen = Pen {
            messages: self,
            member,
            time: instant(created),
            id,
            tip: above,
            made: 0,
        };
        let has_words = |raw: Option<&[u8]>| literal(raw).is_some_and(|raw| !is_blank(raw));
        let is_answer = text(sender).as_deref() == Some("assistant");
        if is_answer {
            pen.answer(&blocks);
        }
        if pen.made == 0 {
            let mut files = attachments.into_iter().chain(files).flat_map(elements);
            let mut blocks = blocks.iter();
            let says = has_words(said)
                || files.next().is_some()
                || blocks.any(|block| has_words(json::get(block, "text")));
            if says {
                let kind = match text(sender).as_deref() {
                    Some("human" | "user") => NodeKind::User,
                    Some("assistant") => NodeKind::Assistant,
                    _ => NodeKind::Scaffolding,
                };
                pen.node(kind, vec![message], None);
            }
        }
        Some(pen.tip)
    }

    fn place(&self, part: &[u8]) -> Place {
        let at = part.as_ptr() as usize - self.record.bytes.as_ptr() as usize;
        Place {
            at: self.record.at + at as u64,
            len: part.len() as u64,
        }
    }
}

/// Adds the nodes of one message.
struct Pen<'m, 'a> {
    messages: &'m Messages<'a>,
    member: &'m mut Member,
    time: Option<Millis>,
    id: &'m str,
    tip: Tip,
    made: usize,
}

impl Pen<'_, '_> {
    /// Adds the nodes of an answer. All blocks before a result, and after the previous one, become one entry.
    fn answer(&mut self, blocks: &[&[u8]]) {
        let mut waiting: Vec<&[u8]> = Vec::new();
        let mut first = 0;
        // The ids of calls that have no result yet, the oldest first.
        let mut calls: Vec<String> = Vec::new();
        for (number, block) in blocks.iter().copied().enumerate() {
            let [kind, id, called] = json::get_each(block, ["type", "id", "tool_use_id"]);
            match text(kind).as_deref() {
                Some("tool_result") => {
                    self.segment(&mut waiting, first);
                    first = number + 1;
                    let named = text(called).map(|id| short(&id).into_owned());
                    let is_its = |call: &String| named.as_ref().is_none_or(|named| named == call);
                    match calls.iter().position(is_its) {
                        Some(at) => {
                            let call = calls.remove(at);
                            self.node(NodeKind::ToolResult, vec![block], Some(call));
                        }
                        None => self.node(NodeKind::Scaffolding, vec![block], None),
                    }
                }
                Some("tool_use") => {
                    let own = text(id).filter(|id| !id.is_empty());
                    calls.push(match own {
                        Some(id) => short(&id).into_owned(),
                        None => call_id(self.id, number),
                    });
                    if calls.len() > MOST_CALLS {
                        calls.remove(0);
                    }
                    waiting.push(block);
                }
                _ if is_said(block) => waiting.push(block),
                // A block of an unknown type ends the entry, so that the numbers of the later blocks stay correct. The
                // origin has the block.
                _ => {
                    self.segment(&mut waiting, first);
                    first = number + 1;
                }
            }
            if waiting.len() == 1 {
                first = number;
            }
        }
        self.segment(&mut waiting, first);
    }

    /// Adds one node for these blocks. `first` is the number of the first block.
    fn segment(&mut self, blocks: &mut Vec<&[u8]>, first: usize) {
        if !blocks.is_empty() {
            let note = call_id(self.id, first);
            self.node(NodeKind::Assistant, std::mem::take(blocks), Some(note));
        }
    }

    fn node(&mut self, kind: NodeKind, parts: Vec<&[u8]>, note: Option<String>) {
        let Ok(at) = u32::try_from(self.member.nodes.len()) else {
            return;
        };
        let key = match self.made {
            0 => self.id.to_owned(),
            made => format!("{}/{made}", self.id),
        };
        let parent = match &self.tip {
            Tip::Base => Parent::Base,
            Tip::Node(at) => Parent::Node(*at),
            Tip::Missing(number) => {
                let parent = self.messages.parents.get(*number).cloned().flatten();
                parent.map_or(Parent::Base, Parent::Key)
            }
        };
        let places = parts.into_iter().map(|part| self.messages.place(part));
        self.member.nodes.push(Node {
            key: key.into(),
            parent,
            kind,
            time: self.time,
            order: u64::from(at),
            places: places.collect(),
            fingerprint: 0,
            note: note.map(String::into_boxed_str),
            is_open: false,
        });
        self.member.ended = self.member.ended.max(self.time);
        self.tip = Tip::Node(at);
        self.made += 1;
    }
}

/// The most calls of one message that wait for their results.
const MOST_CALLS: usize = 256;

/// Whether an entry can show a block.
fn is_said(block: &[u8]) -> bool {
    let [said, thought] = json::get_each(block, ["text", "thinking"]);
    let mut words = [said, thought].into_iter().filter_map(literal);
    words.any(|words| !is_blank(words))
}

/// The id for a call that has none: the id of the message, and the number of the block.
pub(super) fn call_id(message: &str, block: usize) -> String {
    format!("{message}:{block}")
}

/// An id that is short enough to be repeated in many nodes.
pub(super) fn short(id: &str) -> Cow<'_, str> {
    match id.len() {
        0..=LONGEST_ID => Cow::Borrowed(id),
        _ => Cow::Owned(format!("{:016x}", xxh3_64(id.as_bytes()))),
    }
}
