//! Makes nodes from the lines of a rollout.

use super::record::{self, Line, hash};
use super::usage::Tokens;
use crate::member::{Base, Member, Node, NodeKind, Parent, Place, Record, Spawner};
use crate::reader::Reader;
use state::{Item, LONGEST_TYPE, MOST_TYPES, RolloutReader};
use treelined_core::json;
use treelined_core::tags::GitPlace;

mod answer;
mod event;
mod events;
mod file_name;
mod response;
pub(super) mod state;
mod users;

use file_name::FileName;

impl Reader for RolloutReader {
    fn record(&mut self, record: Record<'_>) {
        let line = Line::parse(record.bytes);
        let bytes_hash = line.ordinal.map(|_| hash(record.bytes));
        if bytes_hash.is_some() && bytes_hash == self.previous {
            self.member.duplicates += 1;
            return;
        }
        self.previous = bytes_hash;
        if let Some(time) = line.time {
            self.member.started.get_or_insert(time);
            self.member.ended = Some(time);
        }
        let order = self.next_order(line.ordinal.unwrap_or(record.number));
        let place = Place {
            at: record.at,
            len: record.bytes.len() as u64,
        };
        let line = &line;
        self.newest = None;
        self.line(&Item { line, place, order });
    }

    fn finish(mut self: Box<Self>) -> Vec<Member> {
        self.end_response();
        if let Some(response) = self.response.take() {
            self.write_note(&response);
            let first = usize::try_from(response.node()).unwrap_or(usize::MAX);
            let rest = self.member.nodes.get_mut(first..).unwrap_or_default();
            rest.iter_mut().for_each(|node| node.is_open = true);
        }
        if let Some(node) = self.newest.and_then(|newest| self.node(newest)) {
            node.is_open = true;
        }
        for _ in 0..self.summary.len() {
            self.count("response_item", "message");
        }
        for event in std::mem::take(&mut self.events).into_values().flatten() {
            self.count("event_msg", event.kind);
        }
        self.member.leaf = self.tip;
        vec![self.member]
    }
}

impl RolloutReader {
    pub(super) fn new(path: &str) -> Self {
        let file = FileName::parse(path);
        let mut reader = Self::default();
        reader.member.native_id.clone_from(&file.thread);
        reader.member.part_id = file.part_of(&file.thread, false);
        reader.file = file;
        reader
    }

    fn line(&mut self, item: &Item<'_>) {
        let (kind, payload) = (&*item.line.kind, item.line.payload);
        let is_copied = item.order < self.own_from;
        match kind {
            "session_meta" => self.meta(item),
            "turn_context" => return self.turn_context(item, is_copied),
            _ if is_copied => {}
            "response_item" => return self.response_item(item),
            "event_msg" => return self.event(item),
            "compacted" => return self.compacted(item),
            "inter_agent_communication" => {
                self.push(NodeKind::Scaffolding, item);
                return;
            }
            "token_usage_record" => {
                let usage = self.meter.record(payload);
                self.use_tokens(usage);
            }
            _ => {}
        }
        self.count(kind, "");
    }

    /// Reads `session_meta`, the first line of the file. In the file of a fork, a copy of the parent's line follows;
    /// it is ignored.
    fn meta(&mut self, item: &Item<'_>) {
        if std::mem::replace(&mut self.has_meta, true) {
            return;
        }
        let payload = item.line.payload;
        let text = |name: &str| record::text(payload, name).map(|text| text.into_owned());
        let id = text("id").unwrap_or_else(|| self.file.thread.clone());
        let source = json::get(payload, "source").unwrap_or_default();
        let spawned = json::get_path(source, &["subagent", "thread_spawn"]).unwrap_or_default();
        let parent = record::text(spawned, "parent_thread_id").map(|id| id.into_owned());
        let parent = parent.or_else(|| text("parent_thread_id"));
        let (base, forked_from) = (base(payload), text("forked_from_id"));
        let is_revert = parent.is_none() && base.is_some() && forked_from.is_none();
        self.member.base = match (&parent, base, forked_from) {
            (Some(_), ..) => Base::None,
            (None, Some(base), _) => base,
            (None, None, Some(native_id)) => Base::CopyOf { native_id },
            (None, None, None) => Base::None,
        };
        self.member.spawned_by = parent.map(|native_id| Spawner {
            native_id,
            tool_call_id: None,
        });
        let own_from = json::get(payload, "subagent_history_start_ordinal");
        self.own_from = own_from.and_then(record::number).unwrap_or(0);
        if self.member.nodes.is_empty() {
            self.member.part_id = self.file.part_of(&id, is_revert);
        }
        self.member.native_id = id;
        self.member.cwd = text("cwd").or(self.member.cwd.take());
        let git = json::get(payload, "git").unwrap_or_default();
        let of_git = |name| record::text(git, name).map(|text| text.into_owned());
        self.member.git = GitPlace {
            branch: of_git("branch"),
            commit: of_git("commit_hash"),
            worktree: None,
        };
        self.member.started = record::time(payload, "timestamp").or(self.member.started);
        self.provider = text("model_provider").or(self.provider.take());
    }

    fn turn_context(&mut self, item: &Item<'_>, is_copied: bool) {
        if let Some(response) = self.response.take_if(|response| response.is_answered()) {
            self.close(response);
        }
        let model = record::text(item.line.payload, "model").map(|model| model.into_owned());
        let is_new = model.is_some() && model != self.model;
        // This rollout continues another rollout, which already has the first model.
        let goes_on = self.model.is_none() && matches!(self.member.base, Base::Before { .. });
        self.model = model.or(self.model.take());
        if !is_new || is_copied || goes_on {
            return self.count("turn_context", "");
        }
        let note = self.provider.clone();
        let index = self.push(NodeKind::ModelChange, item);
        let named = hash(self.model.as_deref().unwrap_or_default().as_bytes());
        if let Some(node) = self.node(index) {
            node.note = note.map(String::into_boxed_str);
            node.fingerprint = named;
        }
    }

    fn compacted(&mut self, item: &Item<'_>) {
        let usage = self.loose_usage.take();
        self.close_response();
        let before = self.meter.latest.map_or(0, Tokens::total);
        let mut note = format!(",\"tokensBefore\":{before}");
        if let Some(usage) = usage {
            // The tokens have a price only if the model is known.
            self.push_model(&mut note);
            usage.push(&mut note);
        }
        let answer = std::mem::take(&mut self.summary);
        let index = self.push(NodeKind::Compaction { first_kept: None }, item);
        if let Some(node) = self.node(index) {
            node.places.splice(0..0, answer);
            node.note = Some(note.into_boxed_str());
        }
    }

    /// Removes the last `turns` messages of the user, and all nodes below them, from the path. They stay as a branch.
    fn roll_back(&mut self, turns: &[u8]) {
        self.close_response();
        // Codex removes all turns if the number is larger than the number of turns.
        let text = str::from_utf8(turns).unwrap_or_default();
        let wanted = text.parse::<f64>().unwrap_or(0.0);
        let most = self.turns.len();
        let wanted = match record::number(turns).map(usize::try_from) {
            Some(Ok(wanted)) => wanted.min(most),
            _ if wanted > 0.0 => most,
            _ => 0,
        };
        let kept = most - wanted;
        let first = self.turns.get(kept).copied();
        let first = first.and_then(|turn| self.node(turn));
        if let Some(first) = first {
            self.tip = match first.parent {
                Parent::Node(before) => Some(before),
                Parent::Base | Parent::Key(_) => None,
            };
        }
        self.turns.truncate(kept);
    }

    /// Adds a node at the tip.
    fn push(&mut self, kind: NodeKind, item: &Item<'_>) -> u32 {
        let node = Node {
            key: format!("{}#{}", self.member.part_id, item.order).into(),
            parent: self.tip.map_or(Parent::Base, Parent::Node),
            kind,
            time: item.line.time,
            order: item.order,
            places: vec![item.place],
            fingerprint: hash(item.line.payload),
            note: None,
            is_open: false,
        };
        self.push_node(node)
    }

    fn push_node(&mut self, node: Node) -> u32 {
        let index = u32::try_from(self.member.nodes.len()).unwrap_or(u32::MAX);
        self.member.nodes.push(node);
        self.tip = Some(index);
        index
    }

    fn node(&mut self, index: u32) -> Option<&mut Node> {
        self.member.nodes.get_mut(usize::try_from(index).ok()?)
    }

    /// The order of the next node. Orders must grow, because keys are made from them. So an ordinal that does not grow
    /// is ignored.
    fn next_order(&mut self, wanted: u64) -> u64 {
        let order = match self.order {
            Some(last) => wanted.max(last.saturating_add(1)),
            None => wanted,
        };
        self.order = Some(order);
        order
    }

    /// Counts a record that does not become an entry.
    fn count(&mut self, kind: &str, payload_kind: &str) {
        let mut name = match (kind, payload_kind) {
            ("", _) => "unknown".to_owned(),
            (kind, "") => kind.to_owned(),
            (kind, payload_kind) => format!("{kind}.{payload_kind}"),
        };
        let counts = &mut self.member.origin_only;
        if name.len() > LONGEST_TYPE || counts.len() >= MOST_TYPES && !counts.contains_key(&name) {
            "other".clone_into(&mut name);
        }
        *counts.entry(name).or_insert(0) += 1;
    }

    fn close_response(&mut self) {
        if let Some(response) = self.response.take() {
            self.close(response);
        }
        self.loose_usage = None;
    }
}

/// The position in another rollout from which this rollout continues.
fn base(meta: &[u8]) -> Option<Base> {
    let base = json::get(meta, "history_base")?;
    let part_id = record::text(base, "thread_id")?.into_owned();
    let order = record::number(json::get(base, "end_ordinal_exclusive")?)?;
    Some(Base::Before { part_id, order })
}
