//! Makes conversations from records. The documentation of the parent module says how records are linked.

use super::emit;
use super::record::{CallResult, Role};
use super::source::{Parentage, Source, TreeRecord};
use super::turn::{Anchor, Turn, TurnKind, TurnResult};
use crate::member::Member;
use hashbrown::{HashMap, HashSet};
use treelined_core::timestamp::Millis;

struct Builder<'a> {
    source: &'a Source,
    anchors: Vec<Anchor>,
    turns: Vec<Turn>,
    groups: HashMap<(usize, &'a str), usize>,
    /// For each call, by conversation and id: the index of its record, and the index of the call in that record.
    calls: HashMap<(usize, &'a str), (usize, usize)>,
    answered: HashSet<(usize, &'a str)>,
    /// For each message, by its parent, time and content: its turn. A compaction repeats these three when it writes a
    /// message again.
    written: HashMap<(Anchor, Option<Millis>, u64), usize>,
    /// The parts of model messages, by turn, time and content.
    parts: HashSet<(usize, Option<Millis>, u64)>,
    /// For each record that a compaction keeps, by its uuid: the record of the compaction. The children of the kept
    /// record are attached to the compaction.
    moved: HashMap<&'a str, usize>,
    /// For each conversation, its last message.
    tips: Vec<Option<usize>>,
    /// For each conversation, the first and the last of the turns between the last message and the next message.
    between: Vec<Option<(usize, usize)>>,
    /// The records without a node.
    dropped: Vec<usize>,
}

/// Makes the members of a source.
pub(super) fn members(mut source: Source) -> Vec<Member> {
    let (turns, anchors, mut dropped) = {
        let mut builder = Builder::new(&source);
        builder.place_all();
        builder.mark_open();
        builder.drop_idle_events();
        (builder.turns, builder.anchors, builder.dropped)
    };
    let mut members = emit::members(&source, &turns, &anchors);
    dropped.sort_unstable();
    for record in dropped {
        let label = source.records.get(record).map(|record| record.label);
        label
            .into_iter()
            .for_each(|label| source.labels.count(label));
    }
    if let Some(main) = members.first_mut() {
        main.duplicates = source.duplicates;
        main.origin_only = source.labels.counted();
    }
    members
}

impl<'a> Builder<'a> {
    fn new(source: &'a Source) -> Self {
        let mut calls = HashMap::new();
        for (at, record) in source.records.iter().enumerate() {
            if let Role::Assistant { calls: made, .. } = &record.role {
                for (index, call) in made.iter().enumerate() {
                    calls
                        .entry((record.thread, &*call.id))
                        .or_insert((at, index));
                }
            }
        }
        Self {
            source,
            anchors: vec![Anchor::Unknown; source.records.len()],
            turns: Vec::new(),
            groups: HashMap::new(),
            calls,
            answered: HashSet::new(),
            written: HashMap::new(),
            parts: HashSet::new(),
            moved: HashMap::new(),
            tips: vec![None; source.threads.len()],
            between: vec![None; source.threads.len()],
            dropped: Vec::new(),
        }
    }

    fn anchor(&self, record: usize) -> Anchor {
        self.anchors.get(record).copied().unwrap_or_default()
    }

    /// Finds the position of every record. If the position depends on another record, the position of that record is
    /// found first. A cycle is cut where it is found.
    fn place_all(&mut self) {
        let mut is_begun = vec![false; self.source.records.len()];
        let mut waiting = Vec::new();
        for first in 0..self.source.records.len() {
            waiting.push(first);
            while let Some(&at) = waiting.last() {
                let before = self.dependency(at);
                let before = before.filter(|before| self.anchor(*before) == Anchor::Unknown);
                if let Some(begun) = before.and_then(|before| is_begun.get_mut(before))
                    && !std::mem::replace(begun, true)
                {
                    waiting.extend(before);
                    continue;
                }
                waiting.pop();
                if self.anchor(at) == Anchor::Unknown {
                    self.place(at);
                }
            }
            self.go_on_from(first);
        }
    }

    fn dependency(&self, at: usize) -> Option<usize> {
        let record = self.source.records.get(at)?;
        if let Role::Results { results, .. } = &record.role {
            let mut calls = results.iter();
            let call = calls.find_map(|result| self.calls.get(&(record.thread, &*result.call)));
            if let Some((made, _)) = call {
                return Some(*made);
            }
        }
        match &record.parent {
            Parentage::Of(parent) | Parentage::Again { parent, .. } => {
                self.source.by_uuid.get(parent).copied()
            }
            _ => None,
        }
    }

    /// For a record that does not name its parent, sets the message that comes before the record.
    fn go_on_from(&mut self, at: usize) {
        let Some(record) = self.source.records.get(at) else {
            return;
        };
        let is_message = !matches!(record.role, Role::Link | Role::Event)
            && !matches!(record.parent, Parentage::Between);
        if let (Anchor::Turn(turn), true) = (self.anchor(at), is_message)
            && let Some(tip) = self.tips.get_mut(record.thread)
        {
            *tip = Some(turn);
        }
    }

    fn above(&self, at: usize, record: &'a TreeRecord) -> Anchor {
        let tip = || self.tips.get(record.thread).copied().flatten();
        let above = match &record.parent {
            Parentage::Root => Anchor::Root,
            Parentage::Previous | Parentage::Between => tip().map_or(Anchor::Root, Anchor::Turn),
            Parentage::Of(parent) | Parentage::Again { parent, .. } => {
                match (self.moved.get(&**parent), self.source.by_uuid.get(parent)) {
                    (Some(turn), _) => Anchor::Turn(*turn),
                    (None, Some(parent)) => self.anchor(*parent),
                    (None, None) => Anchor::Missing(at),
                }
            }
        };
        match above {
            Anchor::Unknown => Anchor::Root,
            Anchor::Turn(turn) if !self.is_in(turn, record.thread) => Anchor::Root,
            above => above,
        }
    }

    fn is_in(&self, turn: usize, thread: usize) -> bool {
        let turn = self.turns.get(turn);
        turn.is_some_and(|turn| turn.thread == thread)
    }

    fn place(&mut self, at: usize) {
        let source = self.source;
        let Some(record) = source.records.get(at) else {
            return;
        };
        let above = self.above(at, record);
        let anchor = match &record.role {
            Role::Link => {
                self.move_again(record, above);
                above
            }
            Role::Assistant { group, .. } => {
                self.place_assistant(at, record, group.as_deref(), above)
            }
            Role::User => self.place_message(at, record, TurnKind::User, above),
            Role::Scaffolding => self.place_message(at, record, TurnKind::Scaffolding, above),
            Role::Results { results, has_text } => {
                let below = self.place_results(at, record, results, above);
                match has_text {
                    true => self.place_message(at, record, TurnKind::User, below),
                    false => below,
                }
            }
            Role::Boundary { kept } => {
                let turn = self.begin(at, record, TurnKind::Compaction, above);
                self.keep(turn, kept);
                Anchor::Turn(turn)
            }
            Role::Summary => self.place_summary(at, record, above),
            Role::Event | Role::Duplicate => match above {
                Anchor::Turn(_) => Anchor::Turn(self.begin(at, record, TurnKind::Event, above)),
                above => {
                    self.dropped.push(at);
                    above
                }
            },
        };
        if let Some(slot) = self.anchors.get_mut(at) {
            *slot = anchor;
        }
    }

    fn begin(&mut self, at: usize, record: &TreeRecord, kind: TurnKind, above: Anchor) -> usize {
        let turn = self.turns.len();
        let parent = self.after_between(record, turn, kind, above);
        self.turns.push(Turn {
            thread: record.thread,
            parent,
            kind,
            records: vec![at],
            ..Turn::default()
        });
        turn
    }

    /// Attaches a turn that follows a message. If there are turns between the message and this turn, this turn is
    /// attached below them.
    fn after_between(
        &mut self,
        record: &TreeRecord,
        turn: usize,
        kind: TurnKind,
        above: Anchor,
    ) -> Anchor {
        let Some(slot) = self.between.get_mut(record.thread) else {
            return above;
        };
        let between = slot.filter(|(base, _)| above == Anchor::Turn(*base));
        if matches!(record.parent, Parentage::Between) {
            if let Anchor::Turn(base) = above {
                *slot = Some((between.map_or(base, |(base, _)| base), turn));
            }
        } else if kind != TurnKind::Event {
            *slot = None;
        }
        between.map_or(above, |(_, last)| Anchor::Turn(last))
    }

    fn place_message(
        &mut self,
        at: usize,
        record: &'a TreeRecord,
        kind: TurnKind,
        above: Anchor,
    ) -> Anchor {
        let key = (above, record.time, record.content);
        let is_known = matches!(above, Anchor::Turn(_)) && record.time.is_some();
        if let Some(first) = self.written.get(&key).filter(|_| is_known) {
            self.dropped.push(at);
            return Anchor::Turn(*first);
        }
        let turn = self.begin(at, record, kind, above);
        self.written.insert(key, turn);
        Anchor::Turn(turn)
    }

    fn place_assistant(
        &mut self,
        at: usize,
        record: &'a TreeRecord,
        group: Option<&'a str>,
        above: Anchor,
    ) -> Anchor {
        let Some(group) = group else {
            return self.place_message(at, record, TurnKind::Assistant, above);
        };
        let key = (record.thread, group);
        let known = self.groups.get(&key).copied();
        let turn = known.unwrap_or_else(|| self.begin(at, record, TurnKind::Assistant, above));
        self.groups.insert(key, turn);
        let is_new = self.parts.insert((turn, record.time, record.content));
        if let (Some(_), Some(turn)) = (known, self.turns.get_mut(turn)) {
            match is_new || record.time.is_none() {
                true => turn.records.push(at),
                false => self.dropped.push(at),
            }
        }
        Anchor::Turn(turn)
    }

    fn place_results(
        &mut self,
        at: usize,
        record: &'a TreeRecord,
        results: &'a [CallResult],
        above: Anchor,
    ) -> Anchor {
        let mut own = None;
        let mut of_calls = None;
        let mut is_kept = false;
        for (index, result) in results.iter().enumerate() {
            let call = self.calls.get(&(record.thread, &*result.call)).copied();
            let caller = call.map(|(made, _)| self.anchor(made));
            if !result.call.is_empty() && !self.answered.insert((record.thread, &result.call)) {
                of_calls = of_calls.or(caller);
                continue;
            }
            is_kept = true;
            let turn = match caller {
                Some(Anchor::Turn(turn)) => turn,
                _ => *own.get_or_insert_with(|| self.begin(at, record, TurnKind::Results, above)),
            };
            of_calls = of_calls.or(caller);
            if let Some(turn) = self.turns.get_mut(turn) {
                turn.results.push(TurnResult {
                    record: at,
                    result: index,
                    call,
                });
            }
        }
        if !is_kept && !matches!(record.role, Role::Results { has_text: true, .. }) {
            self.dropped.push(at);
        }
        match (of_calls, own) {
            (Some(Anchor::Turn(turn)), _) | (_, Some(turn)) => Anchor::Turn(turn),
            _ => above,
        }
    }

    fn place_summary(&mut self, at: usize, record: &'a TreeRecord, above: Anchor) -> Anchor {
        if let Anchor::Turn(turn) = above
            && let Some(boundary) = self.turns.get_mut(turn)
            && boundary.kind == TurnKind::Compaction
            && boundary.records.len() == 1
            && !boundary.is_summary
        {
            boundary.records.push(at);
            return above;
        }
        let turn = self.begin(at, record, TurnKind::Compaction, above);
        if let Some(turn) = self.turns.get_mut(turn) {
            turn.is_summary = true;
        }
        Anchor::Turn(turn)
    }

    /// Notes that the children of kept records become children of the compaction.
    fn keep(&mut self, boundary: usize, kept: &'a [Box<str>]) {
        let first = kept.first().and_then(|head| self.source.by_uuid.get(head));
        if let Some(Anchor::Turn(first)) = first.map(|head| self.anchor(*head))
            && let Some(boundary) = self.turns.get_mut(boundary)
            && boundary.thread == 0
        {
            boundary.first_kept = Some(first);
        }
        for uuid in kept {
            self.moved.insert(uuid, boundary);
        }
    }

    /// Notes that a record that is written again below a compaction stays in the context.
    fn move_again(&mut self, record: &'a TreeRecord, above: Anchor) {
        let (Parentage::Again { uuid, .. }, Anchor::Turn(turn)) = (&record.parent, above) else {
            return;
        };
        let first = self.source.by_uuid.get(uuid);
        let first = first.map(|first| self.anchor(*first));
        let Some(compaction) = self.turns.get_mut(turn) else {
            return;
        };
        if compaction.kind == TurnKind::Compaction
            && let Some(Anchor::Turn(first)) = first
            && first < turn
        {
            compaction.first_kept.get_or_insert(first);
            self.moved.insert(uuid, turn);
        }
    }

    /// Marks the last model message of each conversation, and all turns below it, as open if the message may still
    /// grow.
    fn mark_open(&mut self) {
        let mut last: Vec<Option<(usize, bool)>> = vec![None; self.source.threads.len()];
        for (at, record) in self.source.records.iter().enumerate() {
            let Some(last) = last.get_mut(record.thread) else {
                continue;
            };
            match (self.anchor(at), &record.role) {
                (Anchor::Turn(turn), Role::Assistant { .. }) => match last {
                    Some((open, _)) if *open == turn => {}
                    _ => *last = Some((turn, false)),
                },
                (Anchor::Turn(turn), role)
                    if !matches!(role, Role::Link | Role::Event | Role::Duplicate) =>
                {
                    let is_other = |(open, _): &(usize, bool)| *open != turn;
                    if last.as_ref().is_some_and(is_other) {
                        *last = last.map(|(open, _)| (open, true));
                    }
                }
                _ if record.ends_message => *last = last.map(|(open, _)| (open, true)),
                _ => {}
            }
        }
        for (last, thread) in last.into_iter().zip(&self.source.threads) {
            let Some((open, is_followed)) = last else {
                continue;
            };
            // If the call of a subagent has a result, the subagent has ended.
            let is_ended = |call: &str| self.answered.contains(&(0, call));
            let is_followed = is_followed || thread.call.as_deref().is_some_and(is_ended);
            let is_answered = self.is_answered(open);
            let is_marked = self.is_marked(open);
            if let Some(turn) = self.turns.get_mut(open) {
                turn.is_open = !(is_followed && is_answered);
                turn.has_end_mark = turn.is_open && is_answered && is_marked;
            }
        }
        for at in 0..self.turns.len() {
            let Some(turn) = self.turns.get(at) else {
                continue;
            };
            let is_below = match turn.parent {
                Anchor::Turn(above) => self.turns.get(above).is_some_and(|above| above.is_open),
                _ => false,
            };
            if let Some(turn) = self.turns.get_mut(at) {
                turn.is_open |= is_below;
            }
        }
    }

    fn is_marked(&self, turn: usize) -> bool {
        let records = self.turns.get(turn).into_iter();
        let records = records.flat_map(|turn| &turn.records);
        let mut records = records.filter_map(|record| self.source.records.get(*record));
        records.any(|record| {
            let Role::Assistant { has_end_mark, .. } = record.role else {
                return false;
            };
            has_end_mark
        })
    }

    fn is_answered(&self, turn: usize) -> bool {
        let Some(turn) = self.turns.get(turn) else {
            return true;
        };
        let records = turn.records.iter();
        let records = records.filter_map(|record| self.source.records.get(*record));
        let mut calls = records.flat_map(|record| match &record.role {
            Role::Assistant { calls, .. } => calls.iter(),
            _ => [].iter(),
        });
        calls.all(|call| self.answered.contains(&(turn.thread, &*call.id)))
    }

    /// Removes turns that must not be leaves and have nothing below them: events, and boundaries without a summary. A
    /// record that has the same id as an earlier record is never removed.
    fn drop_idle_events(&mut self) {
        let mut children = vec![0_usize; self.turns.len()];
        for at in (0..self.turns.len()).rev() {
            let Some(turn) = self.turns.get_mut(at) else {
                continue;
            };
            if turn.kind == TurnKind::Compaction && turn.records.len() == 1 && !turn.is_summary {
                turn.kind = TurnKind::Event;
            }
            let first = turn.records.first();
            let first = first.and_then(|first| self.source.records.get(*first));
            let is_duplicate = first.is_some_and(|first| matches!(first.role, Role::Duplicate));
            let is_idle =
                children.get(at) == Some(&0) && turn.kind == TurnKind::Event && !is_duplicate;
            if is_idle {
                turn.is_idle = true;
                self.dropped.append(&mut turn.records);
            } else if let Anchor::Turn(above) = turn.parent
                && let Some(count) = children.get_mut(above)
            {
                *count += 1;
            }
        }
    }
}
