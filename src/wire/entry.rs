//! The shapes of the lines of a session file: header, entries, leaf record (session-file.md §1, §4; protocol.md §9).
//! The shapes are used only for the schema: entries themselves are sent as raw bytes.
//!
//! Unknown types and members are allowed everywhere, and are kept.

use super::message::{Content, Message, OrNull, Usage, or_null};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use treelined_core::id;

/// The `customType` of leaf records.
const LEAF_RECORD: &str = "treelined.leaf";
/// The `customType` of records of a branch.
const BRANCH_RECORDS: [&str; 3] = [
    "treelined.branch",
    "treelined.archived",
    "treelined.unarchived",
];
/// The `customType` of records of a deletion.
const DELETIONS: [&str; 2] = ["treelined.trashed", "treelined.restored"];

macro_rules! entries {
    ($(
        $(#[$doc:meta])*
        $name:ident $tag:literal {
            $($(#[$attribute:meta])* $field:ident: $type:ty,)*
        }
    )+) => {
        $(
            $(#[$doc])*
            #[derive(JsonSchema)]
            #[schemars(rename_all = "camelCase", transform = type_tag($tag))]
            pub struct $name {
                /// The id of the entry, unique in the session.
                pub id: String,
                /// The id of the parent; null at a root.
                pub parent_id: Option<String>,
                /// When the entry was written, in ISO 8601 with milliseconds, UTC.
                pub timestamp: String,
                /// True if the entry was appended in the background.
                #[schemars(skip_serializing_if = "Option::is_none")]
                pub background: Option<bool>,
                /// The question to which the branch that begins here is one of several answers.
                #[schemars(skip_serializing_if = "Option::is_none")]
                pub group: Option<String>,
                /// Of a copy, and of a summary of another session: the id of the source, or its `sessionId` and `entryId`.
                #[schemars(skip_serializing_if = "Option::is_none")]
                pub copied_from: Option<Value>,
                $($(#[$attribute])* pub $field: $type,)*
            }
        )+

        /// The types of entries that have their own definition.
        const KNOWN_TYPES: &[&str] = &[$($tag),+];

        fn known_entries(generator: &mut SchemaGenerator) -> Vec<Schema> {
            vec![$(generator.subschema_for::<$name>()),+]
        }
    };
}

entries! {
    /// A message of the conversation.
    MessageEntry "message" {
        /// The message.
        message: Message,
    }

    /// Sets the thinking level for what follows.
    ThinkingLevelChangeEntry "thinking_level_change" {
        /// The level, such as `off` or `high`.
        thinking_level: String,
    }

    /// Sets the model for what follows.
    ModelChangeEntry "model_change" {
        /// The provider that serves the model.
        provider: String,
        /// The provider's name for the model.
        model_id: String,
    }

    /// A compaction: its summary replaces everything on the path before `firstKeptEntryId`.
    CompactionEntry "compaction" {
        /// The text of the summary.
        summary: String,
        /// The id of the first entry that stays in the context; the id of this entry if none stays.
        first_kept_entry_id: String,
        /// The estimated number of tokens of the context before the compaction.
        tokens_before: u64,
        /// Any JSON from the author of the summary, such as the files that it is about.
        #[schemars(skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
        /// The tokens that the summary cost.
        #[schemars(skip_serializing_if = "Option::is_none", with = "Option<Usage>")]
        usage: Option<Usage>,
        /// A system message that precedes the summary in the context.
        #[schemars(skip_serializing_if = "Option::is_none")]
        system_message: Option<Map<String, Value>>,
        /// True if a client or a hook wrote the summary.
        #[schemars(skip_serializing_if = "Option::is_none")]
        from_hook: Option<bool>,
    }

    /// A summary of a branch that the leaf has left.
    BranchSummaryEntry "branch_summary" {
        /// The id of the leaf that was left; `root` at the empty position.
        from_id: String,
        /// The text of the summary.
        summary: String,
        /// Any JSON from the author of the summary, such as the files that it is about.
        #[schemars(skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
        /// The tokens that the summary cost.
        #[schemars(skip_serializing_if = "Option::is_none", with = "Option<Usage>")]
        usage: Option<Usage>,
        /// True if a client or a hook wrote the summary.
        #[schemars(skip_serializing_if = "Option::is_none")]
        from_hook: Option<bool>,
        /// True if `merge_branch` wrote it: the leaf did not leave the branch, the summary brings the branch
        /// in.
        #[schemars(skip_serializing_if = "Option::is_none")]
        merge: Option<bool>,
    }

    /// Changes what the context shows of an earlier entry.
    ContextEditEntry "context_edit" {
        /// The id of the entry whose content changes.
        target_id: String,
        /// The new content; null removes the entry from the context.
        replacement: Option<Replacement>,
    }

    /// State of a plugin. It is not part of the context.
    CustomEntry "custom" {
        /// The type, in the plugin's own terms.
        #[schemars(extend("not" = { "enum": [
            LEAF_RECORD, DELETIONS[0], DELETIONS[1],
            BRANCH_RECORDS[0], BRANCH_RECORDS[1], BRANCH_RECORDS[2]
        ] }))]
        custom_type: String,
        /// Any JSON.
        #[schemars(skip_serializing_if = "Option::is_none")]
        data: Option<Value>,
    }

    /// A message of a plugin. It is part of the context.
    CustomMessageEntry "custom_message" {
        /// The type, in the plugin's own terms.
        custom_type: String,
        /// A text, or content blocks.
        content: Content,
        /// Whether to show the message to the user.
        display: bool,
        /// Any JSON.
        #[schemars(skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
    }

    /// A label for an entry. The latest label of an entry counts.
    LabelEntry "label" {
        /// The id of the labelled entry.
        target_id: String,
        /// The label. If it is absent, null or empty, the entry has no label.
        #[schemars(skip_serializing_if = "Option::is_none", with = "OrNull<String>")]
        label: Option<String>,
    }

    /// The name of the session. The latest name counts.
    SessionInfoEntry "session_info" {
        /// The name. If it is absent, null or empty, the session has no name.
        #[schemars(skip_serializing_if = "Option::is_none", with = "OrNull<String>")]
        name: Option<String>,
    }

    /// Tokens that were used outside the conversation.
    UsageEntry "usage" {
        /// The purpose that the tokens were used for.
        kind: String,
        /// The provider that served the model.
        provider: String,
        /// The provider's name for the model.
        model: String,
        /// The tokens and their cost.
        usage: Usage,
        /// A note for people.
        #[schemars(skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    }
}

/// An entry of the tree, by its `type`.
pub struct Entry;

/// A line of a session file.
pub struct FileLine;

/// An entry of any other type.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct OtherEntry {
    /// The type.
    #[schemars(extend("not" = { "enum": KNOWN_TYPES.iter().chain(&["session"]).collect::<Vec<_>>() }))]
    pub r#type: String,
    /// The id of the entry, unique in the session.
    pub id: String,
    /// The id of the parent; null at a root.
    pub parent_id: Option<String>,
    /// When the entry was written, in ISO 8601 with milliseconds, UTC.
    pub timestamp: String,
}

/// The first line of a session file. It is not part of the tree.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", transform = type_tag("session"))]
pub struct SessionHeader {
    /// The version of the format.
    #[schemars(extend("const" = 3))]
    pub version: u64,
    /// The id of the session.
    pub id: String,
    /// When the session was created, in ISO 8601 with milliseconds, UTC.
    pub timestamp: String,
    /// The working directory.
    pub cwd: String,
    /// The session that this one was forked from: the path of its file, or its id.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub parent_session: Option<String>,
    /// The entry of that session at which this one was forked.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub parent_entry_id: Option<String>,
    /// The call that spawned this session, if it is a subagent's.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub spawned_by: Option<super::spawned_by::SpawnedBy>,
}

/// A move of the leaf without a summary. It is not an entry of the tree.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", transform = type_tag("custom"))]
pub struct LeafRecord {
    /// The `customType` of leaf records.
    #[schemars(extend("const" = LEAF_RECORD))]
    pub custom_type: String,
    /// The id of the record, unique in the session.
    pub id: String,
    /// The id of the new leaf; null at the empty position.
    pub parent_id: Option<String>,
    /// When the leaf moved, in ISO 8601 with milliseconds, UTC.
    pub timestamp: String,
    /// The old leaf and the cause of the move.
    pub data: LeafMove,
}

/// The old leaf and the cause of a move.
#[derive(JsonSchema)]
pub struct LeafMove {
    /// The id of the old leaf; null at the empty position.
    pub from: Option<String>,
    /// The operation that moved the leaf, `import`, `keep` for a place that was kept, or `continue` for a continuation.
    pub cause: LeafCause,
    /// The import that ends with this record; only with the cause `import`.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub import: Option<LeafImport>,
    /// The continuation that this record remembers; only with the cause `continue`.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub continuation: Option<LeafContinuation>,
}

/// The operation after which a leaf record was written.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LeafCause {
    SetLeaf,
    Branch,
    NavigateTree,
    Undo,
    Redo,
    Import,
    Keep,
    Continue,
}

/// An import of a session, in the leaf record with which it ends.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct LeafImport {
    /// The rows of the session and of its files, `{session, files}`, as in the result of `import_sessions`.
    pub report: serde_json::Map<String, serde_json::Value>,
    /// The id of the entry at which the tool went on; null at the empty position.
    pub source_leaf: Option<String>,
    /// The tool's ids of the sessions that are in this session.
    pub natives: Vec<String>,
    /// The nodes that were entries already: for the id that a node would have, the id of its entry, or null for the
    /// position before the first entry. Only nodes that no earlier import has named. Absent without any.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub adopted: Option<std::collections::BTreeMap<String, Option<String>>>,
}

/// A path that was handed over to another agent (session-file.md §4.6).
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct LeafContinuation {
    /// 16 hexadecimal digits. A later record of the same id replaces an earlier one.
    pub id: String,
    /// The id of the session. In a copy of the file under another id, the record says nothing.
    pub session_id: String,
    /// The id of the last entry that was handed over.
    pub entry_id: String,
    /// The agent, as `import_sessions` names it.
    pub tool: String,
    /// The agent's id of the new session.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub native_id: Option<String>,
    /// The file that was made, an absolute path.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The working directory of the new session.
    pub cwd: String,
    /// The id of the first entry whose message was handed over, if earlier ones were left out.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The text that stands for the earlier messages.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// `text`, if thoughts were put into the text.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<String>,
    /// The number of messages.
    pub messages: u64,
    /// The hash of the path as it was written, in hexadecimal digits.
    pub sha256: String,
}

/// The record that ends a deleted session in the team's stream, or the record that ends its deletion. It is not an
/// entry of the tree.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", transform = type_tag("custom"))]
pub struct DeletionRecord {
    /// `treelined.trashed`, or `treelined.restored`.
    #[schemars(extend("enum" = DELETIONS))]
    pub custom_type: String,
    /// The id of the record, unique in the session.
    pub id: String,
    /// The id of the leaf, which stays where it is; null at the empty position.
    pub parent_id: Option<String>,
    /// When the session was deleted or restored, in ISO 8601 with milliseconds, UTC.
    pub timestamp: String,
    /// The session that the record is about.
    pub data: DeletionOf,
}

/// The session of a deletion.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct DeletionOf {
    /// The id of the session. In a copy of the file under another id, the record says nothing.
    pub session_id: String,
}

/// A record of a branch (session-file.md §4.7). It is not an entry of the tree.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", transform = type_tag("custom"))]
pub struct BranchRecord {
    /// `treelined.branch` names a branch, `treelined.archived` archives it, `treelined.unarchived` brings it back.
    #[schemars(extend("enum" = BRANCH_RECORDS))]
    pub custom_type: String,
    /// The id of the record, unique in the session.
    pub id: String,
    /// The id of the place where the file opens, which stays; null at the empty position.
    pub parent_id: Option<String>,
    /// When the record was written, in ISO 8601 with milliseconds, UTC.
    pub timestamp: String,
    /// The branch.
    pub data: BranchMark,
}

/// The branch of a record.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct BranchMark {
    /// The id of the first entry of the branch.
    pub entry_id: String,
    /// The name; null or absent removes it. Only with `treelined.branch`.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub name: Option<Option<String>>,
}

/// The content that a context edit shows instead.
#[derive(JsonSchema)]
pub struct Replacement {
    /// The content that replaces that of the target.
    pub content: Content,
}

/// An entry to append, by its `type`.
pub struct NewEntry;

impl JsonSchema for Entry {
    fn schema_name() -> Cow<'static, str> {
        "Entry".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut shapes = known_entries(generator);
        shapes.push(generator.subschema_for::<OtherEntry>());
        json_schema!({ "description": "An entry of the tree, by its type.", "oneOf": shapes })
    }
}

impl JsonSchema for FileLine {
    fn schema_name() -> Cow<'static, str> {
        "FileLine".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut shapes = vec![generator.subschema_for::<SessionHeader>()];
        shapes.extend(known_entries(generator));
        shapes.push(generator.subschema_for::<LeafRecord>());
        shapes.push(generator.subschema_for::<DeletionRecord>());
        shapes.push(generator.subschema_for::<BranchRecord>());
        shapes.push(generator.subschema_for::<OtherEntry>());
        json_schema!({ "description": "A line of a session file.", "oneOf": shapes })
    }
}

impl JsonSchema for NewEntry {
    fn schema_name() -> Cow<'static, str> {
        "NewEntry".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        // This generator may be for params or for results. The definitions are always made first in the form of the
        // entries that the daemon delivers.
        let mut delivered = SchemaSettings::draft2020_12()
            .for_serialize()
            .into_generator();
        let mut names = known_entries(&mut delivered);
        names.push(delivered.subschema_for::<OtherEntry>());
        let names: Vec<String> = names.iter().filter_map(defined_name).collect();
        let definitions = generator.definitions_mut();
        for (name, mut definition) in delivered.take_definitions(true) {
            if names.contains(&name) {
                to_append(&name, &mut definition);
                definitions.insert(format!("New{name}"), definition);
            } else {
                definitions.entry(name).or_insert(definition);
            }
        }
        let shapes = names
            .iter()
            .map(|name| json!({ "$ref": format!("#/$defs/New{name}") }));
        json_schema!({
            "description": "An entry to append, by its type. Members that are not listed are stored too, with their bytes and order.",
            "oneOf": shapes.collect::<Vec<_>>(),
        })
    }
}

fn defined_name(reference: &Schema) -> Option<String> {
    let reference = reference.get("$ref")?.as_str()?;
    reference.rsplit('/').next().map(str::to_owned)
}

/// Changes the definition of an entry to the definition of an entry to append: `id`, `parentId` and `timestamp` become
/// optional, and every optional member may be null.
fn to_append(name: &str, definition: &mut Value) {
    let Some(definition) = definition.as_object_mut() else {
        return;
    };
    let mut required: Vec<String> = Vec::new();
    if let Some(Value::Array(names)) = definition.get_mut("required") {
        names.retain(|name| {
            !["id", "parentId", "timestamp"]
                .iter()
                .any(|own| name == own)
        });
        required.extend(
            names
                .iter()
                .filter_map(|name| name.as_str().map(str::to_owned)),
        );
    }
    let Some(Value::Object(properties)) = definition.get_mut("properties") else {
        return;
    };
    // Only the daemon writes these members.
    for own in ["background", "group", "copiedFrom"] {
        properties.remove(own);
    }
    for (member, schema) in properties.iter_mut() {
        let described = APPENDED.iter().find(|(name, _)| name == member);
        if let (Some((_, text)), Value::Object(schema)) = (described, &mut *schema) {
            schema.insert("description".into(), (*text).into());
        }
        match member.as_str() {
            "id" => {
                insert(schema, "pattern", json!(id::PATTERN));
                insert(schema, "maxLength", json!(id::MAX_ID_BYTES));
                insert(schema, "not", json!({ "const": "root" }));
            }
            "customType" if name == "CustomEntry" => {
                insert(schema, "not", json!({ "pattern": "^treelined[.]" }));
            }
            "timestamp" => {}
            "firstKeptEntryId" => or_null(schema),
            _ if required.contains(member) => {}
            _ => or_null(schema),
        }
    }
}

fn insert(schema: &mut Value, word: &str, value: Value) {
    if let Value::Object(schema) = schema {
        schema.insert(word.into(), value);
    }
}

/// The descriptions of the common members of an entry to append.
const APPENDED: &[(&str, &str)] = &[
    (
        "id",
        "The id of the entry. A client that chooses it can repeat the request safely. Default: the daemon chooses one.",
    ),
    (
        "parentId",
        "The id of the parent; null makes the entry a root. Default: the entry before it in the batch, for the first one the leaf.",
    ),
    (
        "timestamp",
        "When the entry was written, in ISO 8601. Default: now.",
    ),
    (
        "firstKeptEntryId",
        "The id of the first entry that stays in the context; null if none stays.",
    ),
];

/// Adds the member that distinguishes a definition to the definition itself, since code generators lose a tag that is
/// only in the union.
#[derive(Clone)]
pub(super) struct Tag {
    member: &'static str,
    description: &'static str,
    value: &'static str,
}

/// The tag `member` with the constant `value`.
pub(super) const fn tag(
    member: &'static str,
    description: &'static str,
    value: &'static str,
) -> Tag {
    Tag {
        member,
        description,
        value,
    }
}

const fn type_tag(value: &'static str) -> Tag {
    tag("type", "The type.", value)
}

impl schemars::transform::Transform for Tag {
    fn transform(&mut self, schema: &mut Schema) {
        let mut properties = Map::new();
        properties.insert(
            self.member.into(),
            serde_json::json!({ "description": self.description, "type": "string", "const": self.value }),
        );
        if let Some(Value::Object(rest)) = schema.remove("properties") {
            properties.extend(rest);
        }
        schema.insert("properties".into(), Value::Object(properties));
        let mut required = vec![Value::from(self.member)];
        if let Some(Value::Array(rest)) = schema.remove("required") {
            required.extend(rest);
        }
        schema.insert("required".into(), Value::Array(required));
    }
}
