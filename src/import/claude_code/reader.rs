//! Reads the records of one file.

use super::deliveries::Deliveries;
use super::record::{self, Fields, Role, boxed};
use super::source::{Parentage, Source, Thread, TreeRecord};
use super::tree;
use crate::mapping::Former;
use crate::member::{Member, Record};
use crate::message::literal;
use crate::reader::Reader;
use hashbrown::{HashMap, HashSet};
use treelined_core::json;
use treelined_core::timestamp::Millis;

pub(super) struct SessionReader {
    source: Source,
    /// For each record with a uuid, by its index: the hash of the record.
    hashes: Vec<u64>,
    /// The hashes of records that have the same id as another record.
    duplicates: HashSet<u64>,
    agents: HashMap<Box<str>, usize>,
    /// The name of the file without its ending.
    stem: Box<str>,
    /// The id of the session in whose folder the file is.
    trunk: Option<Box<str>>,
    has_own_id: bool,
    last_session: Option<Box<str>>,
    /// For each session, the time of its first record that is not a copy.
    starts: HashMap<Box<str>, Millis>,
    /// The titles by their rank. The first rank is the best.
    titles: [Option<String>; 3],
    /// Titles, with the ids of the records to which they belong. Such a record may be in another file.
    summaries: Vec<(Box<str>, String)>,
    mode: Option<Box<str>>,
    deliveries: Deliveries,
    former: Former,
}

impl SessionReader {
    pub(super) fn new(path: &str) -> Self {
        let mut names = path.rsplit('/');
        let name = names.next().unwrap_or_default();
        let mut above = names.skip_while(|name| *name != "subagents");
        let trunk = above.nth(1).map(Into::into);
        Self {
            source: Source {
                threads: vec![Thread::default()],
                ..Source::default()
            },
            hashes: Vec::new(),
            duplicates: HashSet::new(),
            agents: HashMap::new(),
            stem: name.strip_suffix(".jsonl").unwrap_or(name).into(),
            trunk,
            has_own_id: false,
            last_session: None,
            starts: HashMap::new(),
            titles: [None, None, None],
            summaries: Vec::new(),
            mode: None,
            deliveries: Deliveries::default(),
            former: Former::default(),
        }
    }

    fn envelope(&mut self, fields: &Fields<'_>) {
        if let Some(session) = literal(fields.session) {
            let session = json::string(session).unwrap_or_default();
            self.has_own_id |= *session == *self.stem;
            if self.last_session.as_deref() != Some(&*session) {
                self.last_session = Some(session.into());
            }
        }
        if self.source.cwd.is_none() {
            self.source.cwd = fields.cwd.and_then(json::string).map(Into::into);
        }
        if let Some(branch) = fields.git_branch.and_then(json::string) {
            // An empty name means that there is no branch; `HEAD` means a commit without a branch.
            if !matches!(&*branch, "" | "HEAD") {
                self.source.git_branch = Some(branch.into_owned());
            }
        }
        if self.source.parent_session.is_none() {
            let session = fields
                .forked_from
                .and_then(|raw| json::get(raw, "sessionId"));
            self.source.parent_session = boxed(session);
        }
        if let Some(time) = fields.time() {
            self.source.started.get_or_insert(time);
            self.source.ended = Some(time);
            let session = self.last_session.as_ref();
            if let Some(session) = session.filter(|_| fields.forked_from.is_none())
                && !self.starts.contains_key(session)
            {
                self.starts.insert(session.clone(), time);
            }
        }
    }

    /// Reads a record that is not a message and not linked to a message. If the record comes between messages, it
    /// belongs to the tree, and its role is returned.
    fn state(&mut self, fields: &Fields<'_>) -> Option<Role> {
        let kind = fields.kind.and_then(json::string).unwrap_or_default();
        let text = |raw: Option<&[u8]>| raw.and_then(json::string).map(Into::into);
        match &*kind {
            "custom-title" => self.titles[0] = text(fields.title),
            "agent-name" => self.titles[1] = text(fields.title),
            "ai-title" => self.titles[2] = text(fields.title),
            "summary" => {
                if let (Some(leaf), Some(title)) = (boxed(fields.leaf), text(fields.summary)) {
                    self.summaries.push((leaf, title));
                }
            }
            "last-prompt" => {
                if let Some(leaf) = boxed(fields.leaf) {
                    self.source.leaf = Some((leaf, self.source.records.len()));
                }
            }
            "queue-operation" if fields.operation == Some(b"\"remove\"") => {
                let content = fields.content?;
                let is_text = content.starts_with(b"\"") && content != b"\"\"";
                let is_told = record::tag(content).is_some();
                return match is_text || content.starts_with(b"[") {
                    true if is_told => Some(Role::Scaffolding),
                    true => Some(Role::User),
                    false => None,
                };
            }
            "mode" | "permission-mode" => {
                let mode = boxed(fields.mode)?;
                let before = self.mode.replace(mode.clone());
                return before.filter(|before| *before != mode).map(|_| Role::Event);
            }
            "" if fields.agent_type.is_some() || fields.call.is_some() => {
                let title = text(fields.description).or_else(|| text(fields.agent_type));
                self.source.agent_title = title;
                self.source.agent_call = boxed(fields.call);
            }
            _ => {}
        }
        None
    }

    /// The index of the conversation to which a record belongs.
    fn thread(&mut self, fields: &Fields<'_>, role: &Role) -> usize {
        if !fields.is_sidechain {
            return 0;
        }
        if let Some(agent) = boxed(fields.agent) {
            return self.agent_thread(&agent);
        }
        if let Some(agent) = self.stem.strip_prefix("agent-") {
            let agent: Box<str> = agent.into();
            return self.agent_thread(&agent);
        }
        let parent = boxed(fields.parent);
        let parent = parent.and_then(|parent| self.source.by_uuid.get(&parent));
        let parent = parent.and_then(|parent| self.source.records.get(*parent));
        match (parent, role) {
            (Some(parent), _) => parent.thread,
            (None, Role::User | Role::Scaffolding | Role::Assistant { .. }) => {
                self.source.threads.push(Thread {
                    agent: boxed(fields.uuid),
                    ..Thread::default()
                });
                self.source.threads.len() - 1
            }
            (None, _) => 0,
        }
    }

    fn agent_thread(&mut self, agent: &str) -> usize {
        if let Some(thread) = self.agents.get(agent) {
            return *thread;
        }
        self.source.threads.push(Thread {
            agent: Some(agent.into()),
            ..Thread::default()
        });
        let thread = self.source.threads.len() - 1;
        self.agents.insert(agent.into(), thread);
        thread
    }

    /// Adds a record to the tree. False if it repeats an earlier record.
    fn add(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        mut role: Role,
        label: usize,
    ) -> bool {
        let thread = self.thread(fields, &role);
        let uuid = boxed(fields.uuid);
        let hash = record::hash(record.bytes);
        let mut parent = parentage(fields, &role);
        let next = self.source.records.len();
        let first = uuid.as_ref().map_or(next, |uuid| {
            *self.source.by_uuid.entry(uuid.clone()).or_insert(next)
        });
        let content = fields.message.and_then(|raw| json::get(raw, "content"));
        let prompt = || fields.attachment.and_then(|raw| json::get(raw, "prompt"));
        let content = content.or_else(prompt).or(fields.content).map(record::hash);
        let is_again = first != next;
        if is_again && self.has_other_body(first, &role, content) {
            if !self.duplicates.insert(hash) {
                self.source.duplicates += 1;
                return false;
            }
            (role, parent) = (Role::Duplicate, Parentage::Between);
        } else if is_again {
            match self.hashes.get(first) == Some(&hash) {
                true => self.source.duplicates += 1,
                false => self.source.labels.count(label),
            }
            let (Parentage::Of(above), Some(uuid)) = (parent, &uuid) else {
                return false;
            };
            role = Role::Link;
            parent = Parentage::Again {
                uuid: uuid.clone(),
                parent: above,
            };
        }
        if let Some(thread) = self.source.threads.get_mut(thread)
            && thread.prompt.is_none()
        {
            thread.prompt = content;
        }
        let is_command = fields.subtype == Some(b"\"local_command\"");
        self.hashes.push(hash);
        self.source.records.push(TreeRecord {
            number: record.number,
            at: record.at,
            len: record.bytes.len() as u64,
            time: fields.time(),
            thread,
            original: fields
                .forked_from
                .and_then(|raw| boxed(json::get(raw, "messageUuid"))),
            uuid,
            parent,
            role,
            content: content.unwrap_or(0),
            label,
            ends_message: fields.kind == Some(b"\"system\"") && !is_command,
        });
        !is_again
    }

    /// Adds a record if its type links it to other records, or if it comes between messages. Returns whether it was
    /// added.
    fn tree_record(&mut self, record: &Record<'_>, fields: &Fields<'_>, label: usize) -> bool {
        let inner = fields.agent_message();
        let inner_role = inner.as_ref().and_then(record::role);
        let is_agent = matches!(
            inner_role,
            Some(Role::User | Role::Scaffolding | Role::Assistant { .. } | Role::Results { .. })
        );
        let mut is_new = is_agent;
        if let Some(role) = record::role(fields) {
            let role = self.once(record, fields, role);
            if matches!(role, Role::Link) && !is_agent && !self.is_known(fields) {
                self.source.labels.count(label);
            }
            is_new = self.add(record, fields, role, label);
        } else if let Some(role) = self.state(fields) {
            match self.once(record, fields, role) {
                Role::Link => self.source.labels.count(label),
                role => {
                    self.add(record, fields, role, label);
                }
            }
        } else if !is_agent {
            return false;
        }
        if let (Some(inner), Some(role), true) = (inner, inner_role, is_agent && is_new) {
            let role = self.once(record, &inner, role);
            self.add(record, &inner, role, label);
            let agent = inner.agent.and_then(json::id).unwrap_or_default();
            let thread = self.agents.get(&*agent).copied().unwrap_or_default();
            if let Some(thread) = self.source.threads.get_mut(thread) {
                thread.call = thread.call.take().or_else(|| boxed(fields.parent_call));
            }
        }
        true
    }

    /// The role of a record. The role is a link if an earlier record has reported the same message. A record that an
    /// older version of the reader has read keeps the role from that version.
    fn once(&mut self, record: &Record<'_>, fields: &Fields<'_>, role: Role) -> Role {
        let is_former = self.former.version_at(record.at) < 2;
        match role {
            Role::Results { results, .. } if is_former => Role::Results {
                results,
                has_text: false,
            },
            Role::Assistant { .. } => {
                self.deliveries.answered();
                role
            }
            Role::User | Role::Scaffolding if fields.message.is_none() => {
                match self.deliveries.is_told_again(fields) && !is_former {
                    true => Role::Link,
                    false => role,
                }
            }
            _ => role,
        }
    }

    /// Whether a record has the same id as the record `first`, but another content. The position of the record is not
    /// compared, because a compaction may write records again at another position.
    fn has_other_body(&self, first: usize, role: &Role, content: Option<u64>) -> bool {
        let Some(first) = self.source.records.get(first) else {
            return false;
        };
        let is_same_role = std::mem::discriminant(&first.role) == std::mem::discriminant(role);
        let is_same = is_same_role && first.content == content.unwrap_or(0);
        !matches!(role, Role::Link) && !is_same
    }

    fn is_known(&self, fields: &Fields<'_>) -> bool {
        boxed(fields.uuid).is_some_and(|uuid| self.source.by_uuid.contains_key(&uuid))
    }

    fn take_titles(&mut self) {
        let mut summaries = std::mem::take(&mut self.summaries).into_iter().rev();
        let is_here = |leaf: &str| self.source.by_uuid.contains_key(leaf);
        let summary = summaries.find(|(leaf, _)| is_here(leaf));
        let mut titles = std::mem::take(&mut self.titles).into_iter().flatten();
        let named = titles.find(|title| !title.trim().is_empty());
        self.source.title = named.or(summary.map(|(_, title)| title));
    }
}

impl Reader for SessionReader {
    fn formerly(&mut self, former: Former) {
        self.former = former;
    }

    fn record(&mut self, record: Record<'_>) {
        let Some(fields) = Fields::read(record.bytes) else {
            let label = self.source.labels.index("not an object");
            self.source.labels.count(label);
            return;
        };
        self.envelope(&fields);
        let label = self.source.labels.index(&fields.label());
        if !self.tree_record(&record, &fields, label) {
            self.source.labels.count(label);
        }
    }

    fn finish(mut self: Box<Self>) -> Vec<Member> {
        self.take_titles();
        let own = match self.has_own_id {
            true => self.stem.clone(),
            false => self.last_session.take().unwrap_or(self.stem),
        };
        // Copied records are older than the session, so they do not count for its start.
        self.source.started = self.starts.get(&own).copied().or(self.source.started);
        self.source.session = self.trunk.unwrap_or(own);
        tree::members(self.source)
    }
}

fn parentage(fields: &Fields<'_>, role: &Role) -> Parentage {
    let logical = boxed(fields.logical_parent).map(Parentage::Of);
    match (fields.parent, fields.uuid) {
        (Some(parent), _) => match boxed(Some(parent)) {
            Some(parent) => Parentage::Of(parent),
            None => logical.unwrap_or(Parentage::Root),
        },
        (None, _) if logical.is_some() => logical.unwrap_or(Parentage::Root),
        (None, None) if is_between(fields) => Parentage::Between,
        (None, _) if matches!(role, Role::Link) => Parentage::Root,
        (None, _) => Parentage::Previous,
    }
}

/// Whether records of this type never have a uuid or a parent.
fn is_between(fields: &Fields<'_>) -> bool {
    matches!(
        fields.kind,
        Some(b"\"queue-operation\"" | b"\"mode\"" | b"\"permission-mode\"")
    )
}
