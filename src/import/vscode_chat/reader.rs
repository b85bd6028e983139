//! Applies the changes in a session file, keeps all requests, and makes their nodes.

use super::invocation::short;
use super::patch::{self, Patch, Step};
use super::request::{Part, PartKind, Request, State};
use crate::member::{Member, Node, NodeKind, Parent, Place, Record};
use crate::message::elements;
use crate::reader::Reader;
use crate::value::{RecordTypes, millis, text};
use hashbrown::{HashMap, HashSet};
use treelined_core::json;
use treelined_core::timestamp::Millis;

/// An element of the list of requests.
#[derive(Debug, Clone, Copy)]
struct Item {
    /// The index of the request; `None` if the element is not a request, or repeats a request.
    request: Option<usize>,
    /// The index of the last request in the list up to this element.
    last: Option<usize>,
}

pub(super) struct ChatReader {
    member: Member,
    /// The name of the file. It is the id of a session whose state does not have the id.
    stem: String,
    requests: Vec<Request>,
    by_id: HashMap<Box<str>, usize>,
    list: Vec<Item>,
    listed: HashSet<usize>,
    has_state: bool,
    types: RecordTypes,
    /// The positions of all records.
    starts: Vec<u64>,
}

impl ChatReader {
    pub(super) fn new(path: &str) -> Self {
        let name = path.rsplit('/').next().unwrap_or(path);
        let stem = name.strip_suffix(".jsonl");
        let stem = stem.or_else(|| name.strip_suffix(".json"));
        Self {
            member: Member::default(),
            stem: stem.unwrap_or(name).to_owned(),
            requests: Vec::new(),
            by_id: HashMap::new(),
            list: Vec::new(),
            listed: HashSet::new(),
            has_state: false,
            types: RecordTypes::default(),
            starts: Vec::new(),
        }
    }

    /// Applies a change. Returns whether it fits the state.
    fn apply(&mut self, record: &Record<'_>, patch: &Patch<'_>) -> bool {
        match patch {
            Patch::State(state) => {
                self.state(record, state);
                true
            }
            Patch::Bad => false,
            _ if !self.has_state => false,
            Patch::Set(path, value) => self.set(record, path, *value),
            Patch::Push {
                path,
                values,
                length,
            } => self.push(record, path, values.unwrap_or(b"[]"), *length),
        }
    }

    fn state(&mut self, record: &Record<'_>, state: &[u8]) {
        self.has_state = true;
        for name in [
            "sessionId",
            "customTitle",
            "creationDate",
            "lastMessageDate",
        ] {
            if let Some(value) = json::get(state, name) {
                self.fact(name, Some(value));
            }
        }
        self.cut(0);
        self.add(record, json::get(state, "requests").unwrap_or(b"[]"));
    }

    fn fact(&mut self, name: &str, value: Option<&[u8]>) {
        let member = &mut self.member;
        match name {
            "sessionId" => {
                let id = text(value).filter(|id| !id.is_empty());
                if let (true, Some(id)) = (member.native_id.is_empty(), id) {
                    member.native_id = short(&id);
                }
            }
            "customTitle" => {
                let title = text(value).filter(|title| !title.is_empty());
                member.title = title.map(|title| title.into_owned());
            }
            "creationDate" => member.started = member.started.or(millis(value)),
            "lastMessageDate" => member.ended = member.ended.max(millis(value)),
            _ => {}
        }
    }

    fn set(&mut self, record: &Record<'_>, path: &[Step<'_>], value: Option<&[u8]>) -> bool {
        let Some((Step::Name(first), rest)) = path.split_first() else {
            return false;
        };
        if first != "requests" {
            if rest.is_empty() {
                self.fact(first, value);
            }
            return true;
        }
        match rest {
            [] => {
                self.cut(0);
                self.add(record, value.unwrap_or(b"[]"));
                true
            }
            [Step::Index(at)] => self.replace(record, *at, value.unwrap_or(b"null")),
            [Step::Index(at), Step::Name(name), rest @ ..] => {
                let Some(request) = self.at(*at) else {
                    return false;
                };
                match (&**name, rest) {
                    (_, []) => request.set(record, name, value),
                    ("message", [Step::Name(member)]) if member == "text" => {
                        request.set(record, "message", value);
                    }
                    ("response", [Step::Index(at)]) => {
                        let part = Part::of(record, value.unwrap_or(b"null"));
                        let length = request.response.len();
                        match request.response.get_mut(*at) {
                            Some(slot) => *slot = part,
                            None if *at == length => request.response.push(part),
                            None => return false,
                        }
                    }
                    ("message" | "response" | "result" | "modelState", _) => return false,
                    _ => {}
                }
                true
            }
            _ => false,
        }
    }

    fn push(
        &mut self,
        record: &Record<'_>,
        path: &[Step<'_>],
        values: &[u8],
        length: Option<usize>,
    ) -> bool {
        let Some((Step::Name(first), rest)) = path.split_first() else {
            return false;
        };
        if first != "requests" {
            return true;
        }
        match rest {
            [] => {
                let length = length.unwrap_or(self.list.len());
                let fits = length <= self.list.len();
                if fits {
                    self.cut(length);
                    self.add(record, values);
                }
                fits
            }
            [Step::Index(at), Step::Name(name), rest @ ..] => {
                let Some(request) = self.at(*at) else {
                    return false;
                };
                if name != "response" {
                    return !matches!(&**name, "message" | "result" | "modelState");
                }
                let length = length.unwrap_or(request.response.len());
                let fits = rest.is_empty() && length <= request.response.len();
                if fits {
                    request.response.truncate(length);
                    request.add(record, values);
                }
                fits
            }
            _ => false,
        }
    }

    /// The request at a position of the list.
    fn at(&mut self, at: usize) -> Option<&mut Request> {
        let item = self.list.get(at)?;
        self.requests.get_mut(item.request?)
    }

    /// Removes the elements of the list from this position on.
    fn cut(&mut self, length: usize) {
        for item in self.list.drain(length.min(self.list.len())..) {
            if let Some(request) = item.request {
                self.listed.remove(&request);
            }
        }
    }

    /// Adds elements to the end of the list.
    fn add(&mut self, record: &Record<'_>, values: &[u8]) {
        if values.starts_with(b"[") {
            for value in elements(values) {
                let before = self.list.last().and_then(|item| item.last);
                let at = self.list.len();
                let request = self.request(record, value, at, before);
                let last = request.or(before);
                self.list.push(Item { request, last });
            }
        }
    }

    /// Replaces an element of the list. The position after the last element is allowed too.
    fn replace(&mut self, record: &Record<'_>, at: usize, value: &[u8]) -> bool {
        let before = match at.checked_sub(1) {
            None => None,
            Some(above) => match self.list.get(above) {
                Some(item) => item.last,
                None => return false,
            },
        };
        if let Some(request) = self.list.get(at).and_then(|item| item.request) {
            self.listed.remove(&request);
        }
        let request = self.request(record, value, at, before);
        let last = request.or(before);
        match self.list.get_mut(at) {
            Some(slot) => *slot = Item { request, last },
            None => self.list.push(Item { request, last }),
        }
        true
    }

    /// Reads a request that is now in the list. Returns its index.
    fn request(
        &mut self,
        record: &Record<'_>,
        value: &[u8],
        at: usize,
        before: Option<usize>,
    ) -> Option<usize> {
        if !value.starts_with(b"{") {
            return None;
        }
        let id = text(json::get(value, "requestId")).filter(|id| !id.is_empty());
        let id: Box<str> = match id {
            Some(id) => short(&id).into(),
            None => format!("#{at}").into(),
        };
        let number = match self.by_id.get(&id) {
            Some(known) => *known,
            None => {
                let number = self.requests.len();
                self.by_id.insert(id.clone(), number);
                self.requests.push(Request {
                    id,
                    parent: before,
                    number: record.number,
                    ..Request::default()
                });
                number
            }
        };
        if !self.listed.insert(number) {
            return None;
        }
        let request = self.requests.get_mut(number)?;
        request.read(record, value);
        Some(number)
    }
}

impl Reader for ChatReader {
    fn record(&mut self, record: Record<'_>) {
        let patch = patch::read(record.bytes);
        let label = match self.apply(&record, &patch) {
            true => match &patch {
                Patch::Set(path, _) | Patch::Push { path, .. } => match path.first() {
                    Some(Step::Name(name)) => format!("patch/{name}"),
                    _ => "patch".to_owned(),
                },
                _ => "state".to_owned(),
            },
            false => "bad patch".to_owned(),
        };
        self.types.add(record.at, &label);
        self.starts.push(record.at);
    }

    fn finish(self: Box<Self>) -> Vec<Member> {
        let Self {
            mut member,
            stem,
            requests,
            list,
            types,
            starts,
            ..
        } = *self;
        let last = list.last().and_then(|item| item.last);
        let has_next = |number: usize| requests.iter().any(|it| it.parent == Some(number));
        let last = last.filter(|last| !has_next(*last));
        let ended = last.and_then(|last| requests.get(last));
        member.has_end_mark = ended.is_some_and(Request::is_complete);
        let mut tips: Vec<Option<u32>> = Vec::with_capacity(requests.len());
        for (number, request) in requests.iter().enumerate() {
            let above = request.parent.and_then(|parent| tips.get(parent).copied());
            let mut pen = Pen {
                member: &mut member,
                request,
                tip: above.flatten(),
                made: 0,
                is_open: last == Some(number),
            };
            pen.request();
            let tip = pen.tip;
            tips.push(tip);
        }
        let shown = list.iter().map_while(|item| {
            let request = item.request.map(|number| (number, requests.get(number)));
            match request {
                Some((_, Some(request))) if request.is_hidden() => None,
                Some((number, _)) => Some(Some(number)),
                None => Some(None),
            }
        });
        let leaf = shown.flatten().last();
        member.leaf = leaf.and_then(|leaf| tips.get(leaf).copied()).flatten();
        if member.native_id.is_empty() {
            member.native_id = stem;
        }
        member.part_id.clone_from(&member.native_id);
        let start = |place: &Place| {
            let after = starts.partition_point(|start| *start <= place.at);
            after.checked_sub(1).and_then(|at| starts.get(at).copied())
        };
        let places = member.nodes.iter().flat_map(|node| &node.places);
        member.origin_only = types.unused(places.filter_map(start).collect());
        vec![member]
    }
}

/// Adds the nodes of one request.
struct Pen<'p> {
    member: &'p mut Member,
    request: &'p Request,
    tip: Option<u32>,
    made: usize,
    /// Whether the request is the last one. Its response may still grow, because a session file has the state of a
    /// response before its parts.
    is_open: bool,
}

impl Pen<'_> {
    fn request(&mut self) {
        let request = self.request;
        if let Some(message) = request.message {
            let places = [Some(message), request.files];
            let places = places.into_iter().flatten().collect();
            self.node(NodeKind::User, places, None, request.time);
        }
        let asked = self.member.nodes.len();
        match request.outcome.rounds.is_empty() {
            true => self.parts(&request.response),
            false => self.rounds(),
        }
        let error = request.outcome.error;
        let stop = match (error, request.state) {
            (Some(_), _) => "error",
            (None, State::Cancelled) => "aborted",
            _ => return,
        };
        // The last message of the model gets the note how the response has ended.
        let nodes = self.member.nodes.get_mut(asked..).unwrap_or_default();
        let last = nodes.last_mut();
        match last.filter(|node| node.kind == NodeKind::Assistant) {
            Some(node) => {
                node.places.extend(error);
                node.note = Some(note(stop, request).into());
            }
            None => {
                if let Some(error) = error {
                    let note = note(stop, request);
                    self.answer(vec![error], note);
                }
            }
        }
    }

    /// The messages of the model, with the results of their calls.
    fn rounds(&mut self) {
        let request = self.request;
        for round in &request.outcome.rounds {
            self.answer(vec![round.place], note("", request));
            for call in &round.calls {
                if let Some(result) = call.result {
                    let note = format!("{}\n{}", call.id, call.name);
                    self.result(result, note);
                }
            }
        }
        let last = request.outcome.rounds.last();
        if last.is_some_and(|last| !last.calls.is_empty()) {
            // No round has the words after the last call.
            let is_call = |part: &Part| matches!(part.kind, PartKind::Call { .. });
            let after = request.response.iter().rposition(is_call);
            let rest = after.and_then(|after| request.response.get(after + 1..));
            self.parts(rest.unwrap_or_default());
        }
    }

    /// The parts of a response. Each call ends a message of the model.
    fn parts(&mut self, parts: &[Part]) {
        let request = self.request;
        let mut waiting = Vec::new();
        for part in parts {
            match &part.kind {
                PartKind::Other => {}
                PartKind::Said => waiting.push(part.place),
                PartKind::Call { id, name } => {
                    waiting.push(part.place);
                    let key = self.key();
                    self.answer(std::mem::take(&mut waiting), note("", request));
                    let id = match id.is_empty() {
                        true => key,
                        false => id.to_string(),
                    };
                    self.result(part.place, format!("{id}\n{name}"));
                }
            }
        }
        if !waiting.is_empty() {
            self.answer(waiting, note("", request));
        }
    }

    fn answer(&mut self, places: Vec<Place>, note: String) {
        let time = self.request.ended.or(self.request.time);
        self.node(NodeKind::Assistant, places, Some(note), time);
    }

    fn result(&mut self, place: Place, note: String) {
        let time = self.request.ended.or(self.request.time);
        self.node(NodeKind::ToolResult, vec![place], Some(note), time);
    }

    /// The key of the next node.
    fn key(&self) -> String {
        match self.made {
            0 => self.request.id.to_string(),
            made => format!("{}/{made}", self.request.id),
        }
    }

    fn node(
        &mut self,
        kind: NodeKind,
        places: Vec<Place>,
        note: Option<String>,
        time: Option<Millis>,
    ) {
        let Ok(at) = u32::try_from(self.member.nodes.len()) else {
            return;
        };
        let is_open = self.is_open && kind != NodeKind::User;
        let node = Node {
            key: self.key().into(),
            parent: self.tip.map_or(Parent::Base, Parent::Node),
            kind,
            time,
            order: self.request.number,
            places,
            fingerprint: 0,
            note: note.map(String::into_boxed_str),
            is_open,
        };
        self.member.nodes.push(node);
        self.member.started = self.member.started.or(time);
        self.member.ended = self.member.ended.max(time);
        self.tip = Some(at);
        self.made += 1;
    }
}

/// The note of a message of the model: how it has ended, and the model.
fn note(stop: &str, request: &Request) -> String {
    format!("{stop}\n{}", request.model.as_deref().unwrap_or_default())
}
