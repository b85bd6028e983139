//! Reads one record of Claude Code: its members, and its role in the tree.

use crate::message::{elements, literal};
use std::borrow::Cow;
use treelined_core::json::{self, Members};
use treelined_core::timestamp::{self, Millis};

/// The members that are used, as raw JSON. If a name occurs twice, the last member counts.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Fields<'a> {
    pub(super) kind: Option<&'a [u8]>,
    pub(super) subtype: Option<&'a [u8]>,
    pub(super) uuid: Option<&'a [u8]>,
    pub(super) parent: Option<&'a [u8]>,
    pub(super) logical_parent: Option<&'a [u8]>,
    pub(super) session: Option<&'a [u8]>,
    pub(super) timestamp: Option<&'a [u8]>,
    pub(super) cwd: Option<&'a [u8]>,
    pub(super) git_branch: Option<&'a [u8]>,
    pub(super) message: Option<&'a [u8]>,
    pub(super) data: Option<&'a [u8]>,
    pub(super) attachment: Option<&'a [u8]>,
    pub(super) content: Option<&'a [u8]>,
    pub(super) operation: Option<&'a [u8]>,
    pub(super) delivery: Option<&'a [u8]>,
    pub(super) command: Option<&'a [u8]>,
    pub(super) agent: Option<&'a [u8]>,
    pub(super) is_sidechain: bool,
    pub(super) is_meta: bool,
    pub(super) is_summary: bool,
    pub(super) is_error: bool,
    pub(super) is_aborted: bool,
    pub(super) forked_from: Option<&'a [u8]>,
    pub(super) compaction: Option<&'a [u8]>,
    pub(super) tool_result: Option<&'a [u8]>,
    pub(super) source_assistant: Option<&'a [u8]>,
    pub(super) source_call: Option<&'a [u8]>,
    pub(super) parent_call: Option<&'a [u8]>,
    pub(super) hook_errors: Option<&'a [u8]>,
    pub(super) prevented: bool,
    pub(super) summary: Option<&'a [u8]>,
    pub(super) leaf: Option<&'a [u8]>,
    pub(super) title: Option<&'a [u8]>,
    pub(super) mode: Option<&'a [u8]>,
    pub(super) agent_type: Option<&'a [u8]>,
    pub(super) call: Option<&'a [u8]>,
    pub(super) description: Option<&'a [u8]>,
}

impl<'a> Fields<'a> {
    /// Reads a record; `None` if it is not an object.
    pub(super) fn read(record: &'a [u8]) -> Option<Self> {
        let mut members = Members::open(record, json::skip_space(record, 0)).ok()?;
        let mut fields = Self::default();
        while let Ok(Some(member)) = members.next_member() {
            let value = record.get(member.value.clone());
            fields.set(&member.name(record), value);
        }
        Some(fields)
    }

    fn set(&mut self, name: &[u8], value: Option<&'a [u8]>) {
        let is_true = value == Some(b"true");
        match name {
            b"type" => self.kind = value,
            b"subtype" => self.subtype = value,
            b"uuid" => self.uuid = value,
            b"parentUuid" => self.parent = value,
            b"logicalParentUuid" => self.logical_parent = value,
            b"sessionId" => self.session = value,
            b"timestamp" => self.timestamp = value,
            b"cwd" => self.cwd = value,
            b"gitBranch" => self.git_branch = value,
            b"message" => self.message = value,
            b"data" => self.data = value,
            b"attachment" => self.attachment = value,
            b"content" => self.content = value,
            b"operation" => self.operation = value,
            b"deliveryId" => self.delivery = value,
            b"commandUuid" => self.command = value,
            b"agentId" => self.agent = value,
            b"isSidechain" => self.is_sidechain = is_true,
            b"isMeta" => self.is_meta = is_true,
            b"isCompactSummary" => self.is_summary = is_true,
            b"isApiErrorMessage" => self.is_error = is_true,
            b"isAbortedMidStream" => self.is_aborted = is_true,
            b"forkedFrom" => self.forked_from = value,
            b"compactMetadata" => self.compaction = value,
            b"toolUseResult" => self.tool_result = value,
            b"sourceToolAssistantUUID" => self.source_assistant = value,
            b"sourceToolUseID" => self.source_call = value,
            b"parentToolUseID" => self.parent_call = value,
            b"hookErrors" => self.hook_errors = value,
            b"preventedContinuation" => self.prevented = is_true,
            b"summary" => self.summary = value,
            b"leafUuid" => self.leaf = value,
            b"customTitle" | b"agentName" | b"aiTitle" => self.title = value,
            b"permissionMode" | b"mode" => self.mode = value,
            b"agentType" => self.agent_type = value,
            b"toolUseId" => self.call = value,
            b"description" => self.description = value,
            _ => {}
        }
    }

    pub(super) fn time(&self) -> Option<Millis> {
        timestamp::parse(&json::string(self.timestamp?)?)
    }

    /// The type for reports: `type` or `type/subtype`. In progress records and attachments, another member has the
    /// subtype.
    pub(super) fn label(&self) -> Cow<'a, str> {
        let text = |raw: Option<&'a [u8]>| raw.and_then(json::string).unwrap_or_default();
        let kind = text(self.kind);
        let detail = match &*kind {
            "progress" => text(self.data.and_then(|data| json::get(data, "type"))),
            "attachment" => text(self.attachment.and_then(|data| json::get(data, "type"))),
            "queue-operation" => text(self.operation),
            _ => text(self.subtype),
        };
        let label = match (kind.is_empty(), detail.is_empty()) {
            (true, _) => "no type".into(),
            (false, true) => kind,
            (false, false) => format!("{kind}/{detail}").into(),
        };
        match label.len() <= LONGEST_LABEL {
            true => label,
            false => label.chars().take(LONGEST_LABEL).collect(),
        }
    }

    /// The message of a subagent in a progress record. It has the same members as a record.
    pub(super) fn agent_message(&self) -> Option<Self> {
        let data = self.data?;
        let [kind, message, agent] = json::get_each(data, ["type", "message", "agentId"]);
        if json::string(kind?)? != "agent_progress" {
            return None;
        }
        let mut inner = Self::read(message?)?;
        inner.agent = literal(agent).or(literal(self.parent_call));
        inner.parent = None;
        inner.timestamp = inner.timestamp.or(self.timestamp);
        inner.is_sidechain = true;
        Some(inner)
    }
}

/// The longest type in a report, in characters.
const LONGEST_LABEL: usize = 64;

/// The role of a record in the tree.
#[derive(Debug)]
pub(super) enum Role {
    /// A model message, or a part of one.
    Assistant {
        /// The id of the model message. `None`: the record is a message by itself.
        group: Option<Box<str>>,
        calls: Vec<Call>,
        /// Whether the tool says that the message has ended.
        has_end_mark: bool,
    },
    User,
    /// A message of the harness to the model. The harness is the program around the model.
    Scaffolding,
    Results {
        results: Vec<CallResult>,
        /// Whether the record also has a text of the user.
        has_text: bool,
    },
    /// The boundary of a compaction, with the ids of the records that stay in the context.
    Boundary {
        kept: Vec<Box<str>>,
    },
    /// The summary of a compaction.
    Summary,
    /// An event. It becomes an entry only if other entries are below it.
    Event,
    /// A record with the id of an earlier record and another content. The tree has the earlier record.
    Duplicate,
    /// A record without an entry. Its children become children of its parent.
    Link,
}

/// The call of a tool.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: Box<str>,
    pub(super) name: Box<str>,
    /// The hash of the prompt, if the call spawns a subagent.
    pub(super) prompt: Option<u64>,
}

/// The result of a call.
#[derive(Debug)]
pub(super) struct CallResult {
    /// The id of the call; empty if the record does not have it.
    pub(super) call: Box<str>,
    /// The index of the block with the result.
    pub(super) block: usize,
    /// The subagent that gave the result.
    pub(super) agent: Option<Box<str>>,
}

pub(super) fn boxed(raw: Option<&[u8]>) -> Option<Box<str>> {
    literal(raw).and_then(json::id).map(Into::into)
}

/// The hash of a raw value.
pub(super) fn hash(raw: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(raw)
}

/// The role of a record. A record without a uuid has a role only if it is a message.
pub(super) fn role(fields: &Fields<'_>) -> Option<Role> {
    let kind = json::string(fields.kind?)?;
    match &*kind {
        "assistant" => assistant(fields),
        "user" => user(fields),
        "system" => Some(system(fields)),
        "attachment" => Some(attachment(fields)),
        _ => fields.uuid.map(|_| Role::Link),
    }
}

fn assistant(fields: &Fields<'_>) -> Option<Role> {
    let message = fields.message.filter(|raw| raw.starts_with(b"{"))?;
    let names = ["id", "model", "content", "stop_reason"];
    let [id, model, content, reason] = json::get_each(message, names);
    let is_synthetic = model == Some(b"\"<synthetic>\"");
    let blocks = content.into_iter().flat_map(elements);
    let calls = blocks.enumerate().filter_map(|(at, block)| {
        let [kind, id, name, input] = json::get_each(block, ["type", "id", "name", "input"]);
        if kind != Some(b"\"tool_use\"") {
            return None;
        }
        let name = boxed(name).unwrap_or_default();
        let prompt = match &*name {
            "Task" | "Agent" => input.and_then(|input| json::get(input, "prompt")),
            _ => None,
        };
        Some(Call {
            id: boxed(id).unwrap_or_else(|| call_id(fields.uuid, at)),
            name,
            prompt: prompt.map(hash),
        })
    });
    Some(Role::Assistant {
        group: boxed(id).filter(|_| !is_synthetic),
        calls: calls.collect(),
        has_end_mark: is_end_mark(reason),
    })
}

/// Whether this `stop_reason` means that the message has ended. With other reasons the end is not known: results
/// follow `tool_use`, and more of the answer follows `max_tokens` and `pause_turn`.
fn is_end_mark(reason: Option<&[u8]>) -> bool {
    matches!(
        reason,
        Some(b"\"end_turn\"" | b"\"stop_sequence\"" | b"\"refusal\"")
    )
}

/// The id for a call that has none: the id of the record, and the index of the block.
pub(super) fn call_id(uuid: Option<&[u8]>, block: usize) -> Box<str> {
    let uuid = boxed(uuid).unwrap_or_default();
    format!("{uuid}/{block}").into()
}

fn user(fields: &Fields<'_>) -> Option<Role> {
    let content = json::get(fields.message?, "content")?;
    if fields.is_summary {
        return Some(Role::Summary);
    }
    let results: Vec<CallResult> = elements(content)
        .enumerate()
        .filter_map(|(block, raw)| {
            let [kind, call] = json::get_each(raw, ["type", "tool_use_id"]);
            (kind == Some(b"\"tool_result\"")).then(|| CallResult {
                call: boxed(call)
                    .or_else(|| boxed(fields.source_call))
                    .unwrap_or_default(),
                block,
                agent: agent(fields, raw),
            })
        })
        .collect();
    if !results.is_empty() {
        let has_text = !fields.is_meta && has_words(content);
        return Some(Role::Results { results, has_text });
    }
    match fields.is_meta || tag(content).is_some() {
        true => Some(Role::Scaffolding),
        false => Some(Role::User),
    }
}

/// Whether a record with results also has a text of the user.
fn has_words(content: &[u8]) -> bool {
    elements(content).any(|block| {
        let [kind, text] = json::get_each(block, ["type", "text"]);
        let text = text.filter(|text| text.starts_with(b"\"") && *text != b"\"\"");
        kind == Some(b"\"text\"") && text.is_some_and(|text| tag_of(text).is_none())
    })
}

/// The subagent that gave this result. A member names the subagent; in older versions, the text of the result names it.
fn agent(fields: &Fields<'_>, result: &[u8]) -> Option<Box<str>> {
    let named = fields
        .tool_result
        .and_then(|raw| boxed(json::get(raw, "agentId")));
    let named = named.or_else(|| boxed(fields.agent).filter(|_| !fields.is_sidechain));
    named.or_else(|| {
        const MARK: &[u8] = b"agentId: ";
        // The last occurrence is found from the start, because a search from the end is ten times slower.
        let at = memchr::memmem::find_iter(result, MARK).last()?;
        let id = result.get(at + MARK.len()..)?;
        let len = id
            .iter()
            .take_while(|byte| byte.is_ascii_hexdigit())
            .count();
        let id = std::str::from_utf8(id.get(..len)?).ok()?;
        // A file that the tool has read may contain these words too, so the text after them is checked.
        let is_told = result.get(at + MARK.len() + len..)?.starts_with(b" (");
        (len >= 7 && is_told).then(|| id.into())
    })
}

fn system(fields: &Fields<'_>) -> Role {
    let subtype = fields.subtype.and_then(json::string).unwrap_or_default();
    let has_hook_errors = || {
        fields
            .hook_errors
            .is_some_and(|raw| elements(raw).next().is_some())
    };
    match &*subtype {
        "compact_boundary" => Role::Boundary {
            kept: kept(fields.compaction),
        },
        "stop_hook_summary" if fields.prevented || has_hook_errors() => Role::Event,
        "api_error"
        | "error"
        | "api_refusal"
        | "model_refusal_fallback"
        | "local_command"
        | "away_summary"
        | "microcompact_boundary" => Role::Event,
        _ => Role::Link,
    }
}

/// The ids of the records that a compaction keeps in the context, in order.
fn kept(compaction: Option<&[u8]>) -> Vec<Box<str>> {
    let Some(compaction) = compaction else {
        return Vec::new();
    };
    let [segment, messages] = json::get_each(compaction, ["preservedSegment", "preservedMessages"]);
    let [head, tail] = segment.map_or([None; 2], |raw| {
        json::get_each(raw, ["headUuid", "tailUuid"])
    });
    let listed = messages.and_then(|raw| json::get(raw, "uuids"));
    let listed = listed.into_iter().flat_map(elements).map(Some);
    let all = std::iter::once(head).chain(listed).chain([tail]);
    all.filter_map(boxed).collect()
}

fn attachment(fields: &Fields<'_>) -> Role {
    let kind = fields.attachment.and_then(|raw| json::get(raw, "type"));
    match &*kind.and_then(json::string).unwrap_or_default() {
        "queued_command" => queued(fields).unwrap_or(Role::Link),
        "hook_blocking_error"
        | "hook_non_blocking_error"
        | "hook_stopped_continuation"
        | "plan_mode"
        | "plan_mode_exit" => Role::Event,
        _ => Role::Link,
    }
}

/// The role of a message that waited while the model worked.
fn queued(fields: &Fields<'_>) -> Option<Role> {
    let [prompt, mode, is_meta] =
        json::get_each(fields.attachment?, ["prompt", "commandMode", "isMeta"]);
    let prompt = prompt.filter(|raw| raw.starts_with(b"\"") || raw.starts_with(b"["))?;
    let is_notice = mode == Some(b"\"task-notification\"") || is_meta == Some(b"true");
    match is_notice || fields.is_meta || tag(prompt).is_some() {
        true => Some(Role::Scaffolding),
        false => Some(Role::User),
    }
}

/// The beginnings of texts that the harness writes as the user, with the name of each kind.
const TAGS: &[(&[u8], &str)] = &[
    (b"<command-name>", "command"),
    (b"<command-message>", "command"),
    (b"<command-args>", "command"),
    (b"<command-contents>", "command"),
    (b"<local-command-stdout>", "command-output"),
    (b"<local-command-stderr>", "command-output"),
    (b"<local-command-caveat>", "caveat"),
    (
        b"Caveat: The messages below were generated by the user",
        "caveat",
    ),
    (b"<bash-input>", "shell-command"),
    (b"<bash-stdout>", "shell-output"),
    (b"<bash-stderr>", "shell-output"),
    (b"<user-memory-input>", "memory"),
    (b"<task-notification>", "notification"),
    (b"<agent-message", "notification"),
    (b"<teammate-message", "notification"),
    (b"<ide_opened_file>", "editor"),
    (b"<ide_selection>", "editor"),
    (b"<system-reminder>", "reminder"),
    (b"[Request interrupted by user", "interruption"),
];

/// The kind of the harness's text in a content. `None` if the content has a text that the harness did not write, or a
/// block that is not a text. `content` is raw.
pub(super) fn tag(content: &[u8]) -> Option<&'static str> {
    if content.starts_with(b"\"") {
        return tag_of(content);
    }
    let mut found = None;
    for block in elements(content) {
        let [kind, text] = json::get_each(block, ["type", "text"]);
        if kind != Some(b"\"text\"") {
            return None;
        }
        let tag = tag_of(text?)?;
        found = found.or(Some(tag));
    }
    found
}

fn tag_of(text: &[u8]) -> Option<&'static str> {
    let mut text = text.strip_prefix(b"\"")?;
    while let Some(rest) = text
        .strip_prefix(b" ")
        .or_else(|| text.strip_prefix(b"\\n"))
    {
        text = rest;
    }
    let mut tags = TAGS.iter();
    let (_, name) = tags.find(|(beginning, _)| text.starts_with(beginning))?;
    Some(name)
}
