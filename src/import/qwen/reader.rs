//! Reads the records of a chat and makes its nodes.

use super::message::{Part, call_id, parts};
use crate::member::{Member, Node, NodeKind, Parent, Place, Record};
use crate::order::{Above, Hanging};
use crate::reader::Reader;
use crate::value::{RecordTypes, boxed, instant, is_blank, text};
use hashbrown::HashSet;
use treelined_core::json;
use treelined_core::timestamp::Millis;
use xxhash_rust::xxh3::xxh3_64;

/// The most results of one record that become entries. The limit is needed because each entry is made from the whole
/// record.
const MOST_RESULTS: usize = 256;

/// A record without its content.
struct Line {
    id: Box<str>,
    place: Place,
    number: u64,
    time: Option<Millis>,
    kind: Option<NodeKind>,
    /// The ids of the calls whose results the record has.
    results: Vec<Box<str>>,
    /// Whether an earlier record has the same id.
    is_repeated: bool,
}

/// The parent of the nodes that are below a record.
#[derive(Clone, Copy)]
enum Tip {
    Base,
    Node(u32),
    /// The parent is missing. This record names the parent.
    Missing(usize),
}

/// Reads the records of a chat.
pub(super) struct ChatReader {
    member: Member,
    /// The name of the file. It is the id of a chat whose records do not have the id.
    stem: String,
    lines: Vec<Line>,
    parents: Vec<Option<Box<str>>>,
    hanging: Hanging,
    types: RecordTypes,
    seen: HashSet<u64>,
}

impl ChatReader {
    pub(super) fn new(path: &str) -> Self {
        let name = path.rsplit('/').next().unwrap_or(path);
        let stem = name.strip_suffix(".jsonl").unwrap_or(name);
        Self {
            member: Member::default(),
            stem: stem.to_owned(),
            lines: Vec::new(),
            parents: Vec::new(),
            hanging: Hanging::default(),
            types: RecordTypes::default(),
            seen: HashSet::new(),
        }
    }

    fn line(&mut self, record: &Record<'_>) {
        let names = [
            "uuid",
            "parentUuid",
            "type",
            "subtype",
            "timestamp",
            "message",
            "systemPayload",
            "sessionId",
            "cwd",
            "gitBranch",
        ];
        let [
            id,
            parent,
            kind,
            subtype,
            time,
            message,
            payload,
            session,
            cwd,
            branch,
        ] = json::get_each(record.bytes, names);
        let (kind, subtype) = (text(kind), text(subtype));
        let label = match (kind.as_deref(), subtype.as_deref()) {
            (Some(kind), Some(subtype)) => format!("{kind}/{subtype}"),
            (kind, _) => kind.unwrap_or("no type").to_owned(),
        };
        let Some(id) = boxed(id).filter(|id| !id.is_empty()) else {
            self.types.add(record.at, &label);
            return;
        };
        let is_repeated = self.hanging.find(&id).is_some();
        if !self.seen.insert(xxh3_64(record.bytes)) && is_repeated {
            self.member.duplicates += 1;
            return;
        }
        self.types.add(record.at, &label);
        let time = instant(time);
        self.facts(time, session, cwd, branch);
        let mut results = Vec::new();
        let kind = match (kind.as_deref(), subtype.as_deref()) {
            _ if is_repeated => Some(NodeKind::Custom),
            (Some("tool_result"), _) => {
                results = result_ids(message);
                (!results.is_empty()).then_some(NodeKind::ToolResult)
            }
            (Some("system"), Some("custom_title")) => {
                let title = payload.and_then(|payload| json::get(payload, "customTitle"));
                let title = text(title).map(|title| title.into_owned());
                self.member.title = title.or(self.member.title.take());
                None
            }
            (kind, subtype) => node_kind(kind, subtype, message),
        };
        let parent = boxed(parent);
        self.hanging.add(&id, parent.as_deref());
        self.parents.push(parent);
        self.lines.push(Line {
            id,
            place: Place {
                at: record.at,
                len: record.bytes.len() as u64,
            },
            number: record.number,
            time,
            kind,
            results,
            is_repeated,
        });
    }

    fn facts(
        &mut self,
        time: Option<Millis>,
        session: Option<&[u8]>,
        cwd: Option<&[u8]>,
        branch: Option<&[u8]>,
    ) {
        let member = &mut self.member;
        member.started = member.started.or(time);
        member.ended = member.ended.max(time);
        if let (true, Some(session)) = (member.native_id.is_empty(), text(session)) {
            member.native_id = session.into_owned();
        }
        if let (None, Some(cwd)) = (&member.cwd, text(cwd)) {
            member.cwd = Some(cwd.into_owned());
        }
        if let Some(branch) = text(branch).filter(|branch| !branch.is_empty()) {
            member.git.branch = Some(branch.into_owned());
        }
    }

    /// Makes the nodes of a record below `above`. Returns the parent of the nodes that are below the record.
    fn nodes(&mut self, number: usize, above: Tip) -> Tip {
        let Some(line) = self.lines.get(number) else {
            return above;
        };
        let Some(kind) = &line.kind else {
            return above;
        };
        let keys: Vec<(Box<str>, Option<Box<str>>)> = match kind {
            NodeKind::ToolResult => {
                let keys = line.results.iter();
                keys.map(|call| (format!("{}/r:{call}", line.id).into(), Some(call.clone())))
                    .collect()
            }
            _ if line.is_repeated => vec![(format!("{}/{number}", line.id).into(), None)],
            _ => vec![(line.id.clone(), None)],
        };
        let mut tip = above;
        for (key, note) in keys {
            let Ok(at) = u32::try_from(self.member.nodes.len()) else {
                return tip;
            };
            let parent = match tip {
                Tip::Base => Parent::Base,
                Tip::Node(at) => Parent::Node(at),
                Tip::Missing(number) => {
                    let parent = self.parents.get(number).cloned().flatten();
                    parent.map_or(Parent::Base, Parent::Key)
                }
            };
            self.member.nodes.push(Node {
                key,
                parent,
                kind: kind.clone(),
                time: line.time,
                order: line.number,
                places: vec![line.place],
                fingerprint: 0,
                note,
                is_open: false,
            });
            tip = Tip::Node(at);
        }
        tip
    }
}

impl Reader for ChatReader {
    fn record(&mut self, record: Record<'_>) {
        self.line(&record);
    }

    fn finish(mut self: Box<Self>) -> Vec<Member> {
        let mut tips = vec![Tip::Base; self.lines.len()];
        for (number, above) in self.hanging.order() {
            let above = match above {
                Above::Nothing => Tip::Base,
                Above::Missing => Tip::Missing(number),
                Above::Record(parent) => tips.get(parent).copied().unwrap_or(Tip::Base),
            };
            let tip = self.nodes(number, above);
            if let Some(slot) = tips.get_mut(number) {
                *slot = tip;
            }
        }
        if let Some(Tip::Node(leaf)) = tips.last() {
            self.member.leaf = Some(*leaf);
        }
        let names = self.lines.iter().zip(&tips);
        let names = names.filter(|(line, _)| line.kind.is_none() && !line.is_repeated);
        let aliases = names.filter_map(|(line, tip)| match tip {
            Tip::Node(at) => Some((line.id.clone(), *at)),
            _ => None,
        });
        self.member.aliases = aliases.collect();
        let places = self.member.nodes.iter().flat_map(|node| &node.places);
        let used = places.map(|place| place.at).collect();
        self.member.origin_only = self.types.unused(used);
        if self.member.native_id.is_empty() {
            self.member.native_id.clone_from(&self.stem);
        }
        self.member.part_id.clone_from(&self.member.native_id);
        vec![self.member]
    }
}

/// The kind of the node that a record becomes; `None` if it does not become one.
fn node_kind(
    kind: Option<&str>,
    subtype: Option<&str>,
    message: Option<&[u8]>,
) -> Option<NodeKind> {
    match (kind, subtype) {
        (Some("user"), Some("notification" | "cron")) if says(message) => {
            Some(NodeKind::Scaffolding)
        }
        (Some("user"), _) if says(message) => Some(NodeKind::User),
        (Some("assistant"), _) if says(message) => Some(NodeKind::Assistant),
        (Some("system"), Some("chat_compression")) => {
            Some(NodeKind::Compaction { first_kept: None })
        }
        _ => None,
    }
}

/// Whether a message has content that an entry can show.
fn says(message: Option<&[u8]>) -> bool {
    parts(message).any(|part| match part {
        Part::Text(raw) | Part::Thought(raw) => !is_blank(raw),
        Part::Call { .. } | Part::Image { .. } => true,
        Part::Result { .. } => false,
    })
}

/// The ids of the calls whose results a message has, each once.
fn result_ids(message: Option<&[u8]>) -> Vec<Box<str>> {
    let mut seen = HashSet::new();
    let results = parts(message).filter_map(|part| match part {
        Part::Result { id, .. } => Some(id),
        _ => None,
    });
    let ids = results.enumerate().map(|(number, id)| call_id(id, number));
    let ids = ids.filter(|id| seen.insert(id.clone())).take(MOST_RESULTS);
    ids.map(|id| (&*id).into()).collect()
}
