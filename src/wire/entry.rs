//! The shapes of what a session file holds: header, entries, leaf record (storage.md §1, §4;
//! protocol.md §9). Only for the schema: entries cross the pipe as raw bytes.
//!
//! Unknown types and members are allowed everywhere, and survive.

use super::navigate::MoveCause;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::marker::PhantomData;

/// The `customType` of leaf records.
const LEAF_RECORD: &str = "treelined.leaf";

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
            #[schemars(rename_all = "camelCase", transform = Tag($tag))]
            pub struct $name {
                /// Unique in the session.
                pub id: String,
                /// The entry before it; null at a root.
                pub parent_id: Option<String>,
                /// ISO 8601 with milliseconds, UTC.
                pub timestamp: String,
                $($(#[$attribute])* pub $field: $type,)*
            }
        )+

        /// The types of entries that are known.
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

    /// The thinking level from here on.
    ThinkingLevelChangeEntry "thinking_level_change" {
        /// The level, such as `off` or `high`.
        thinking_level: String,
    }

    /// The model from here on.
    ModelChangeEntry "model_change" {
        /// Who serves it.
        provider: String,
        /// The provider's name for it.
        model_id: String,
    }

    /// A summary in place of what stands before `firstKeptEntryId` on the path.
    CompactionEntry "compaction" {
        /// The text of the summary.
        summary: String,
        /// The first entry that stays in the context; the entry's own id if none does.
        first_kept_entry_id: String,
        /// Tokens of the context before, estimated.
        tokens_before: u64,
        /// Of whoever made the summary, such as the files it is about.
        #[schemars(skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
        /// Tokens the summary took.
        #[schemars(skip_serializing_if = "Option::is_none")]
        usage: Option<Map<String, Value>>,
        /// Stands before the summary in the context.
        #[schemars(skip_serializing_if = "Option::is_none")]
        system_message: Option<Value>,
        /// The summary came from a client.
        #[schemars(skip_serializing_if = "Option::is_none")]
        from_hook: Option<bool>,
    }

    /// A summary of a branch that was left.
    BranchSummaryEntry "branch_summary" {
        /// The leaf that was left; `root` if there was none.
        from_id: String,
        /// The text of the summary.
        summary: String,
        /// Of whoever made the summary, such as the files it is about.
        #[schemars(skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
        /// Tokens the summary took.
        #[schemars(skip_serializing_if = "Option::is_none")]
        usage: Option<Map<String, Value>>,
        /// The summary came from a client.
        #[schemars(skip_serializing_if = "Option::is_none")]
        from_hook: Option<bool>,
        /// Made by `merge_branch`: the branch was not left, but taken in.
        #[schemars(skip_serializing_if = "Option::is_none")]
        merge: Option<bool>,
    }

    /// Changes what the context shows of an earlier entry.
    ContextEditEntry "context_edit" {
        /// The entry it is about.
        target_id: String,
        /// Null leaves the target out of the context.
        replacement: Option<Replacement>,
    }

    /// State of a plugin; not in the context.
    CustomEntry "custom" {
        /// What it is, in the plugin's own terms.
        #[schemars(extend("not" = { "const": LEAF_RECORD }))]
        custom_type: String,
        /// Anything.
        #[schemars(skip_serializing_if = "Option::is_none")]
        data: Option<Value>,
    }

    /// A message of a plugin, in the context.
    CustomMessageEntry "custom_message" {
        /// What it is, in the plugin's own terms.
        custom_type: String,
        /// The text, or content blocks.
        content: Content,
        /// Show it to the user.
        display: bool,
        /// Anything.
        #[schemars(skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
    }

    /// A label for an entry; the latest one counts.
    LabelEntry "label" {
        /// The entry it is for.
        target_id: String,
        /// Left out, null or empty: no label.
        #[schemars(skip_serializing_if = "Option::is_none", with = "OrNull<String>")]
        label: Option<String>,
    }

    /// The name of the session; the latest one counts.
    SessionInfoEntry "session_info" {
        /// Left out, null or empty: no name.
        #[schemars(skip_serializing_if = "Option::is_none", with = "OrNull<String>")]
        name: Option<String>,
    }

    /// Tokens used outside the conversation.
    UsageEntry "usage" {
        /// What they were used for.
        kind: String,
        /// Who served the model.
        provider: String,
        /// The provider's name for it.
        model: String,
        /// The numbers.
        usage: Map<String, Value>,
        /// For people.
        #[schemars(skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    }
}

/// An entry of the tree, by its `type`.
pub struct Entry;

/// A line of a session file.
pub struct FileLine;

/// An entry of a type that is none of the others.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct OtherEntry {
    /// Any other type.
    #[schemars(extend("not" = { "enum": KNOWN_TYPES.iter().chain(&["session"]).collect::<Vec<_>>() }))]
    pub r#type: String,
    /// Unique in the session.
    pub id: String,
    /// The entry before it; null at a root.
    pub parent_id: Option<String>,
    /// ISO 8601 with milliseconds, UTC.
    pub timestamp: String,
}

/// The first line of a session file; not part of the tree.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", transform = Tag("session"))]
pub struct SessionHeader {
    /// Of the format.
    #[schemars(extend("const" = 3))]
    pub version: u64,
    /// The session's.
    pub id: String,
    /// ISO 8601 with milliseconds, UTC.
    pub timestamp: String,
    /// The working directory.
    pub cwd: String,
    /// The session it comes from.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub parent_session: Option<String>,
}

/// A move of the leaf without a summary. Bookkeeping, not an entry of the tree.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", transform = Tag("custom"))]
pub struct LeafRecord {
    /// Always this.
    #[schemars(extend("const" = LEAF_RECORD))]
    pub custom_type: String,
    /// Unique in the session.
    pub id: String,
    /// The new leaf; null: before the first entry.
    pub parent_id: Option<String>,
    /// ISO 8601 with milliseconds, UTC.
    pub timestamp: String,
    /// What the move was.
    pub data: LeafMove,
}

/// Where a move of the leaf came from, and what made it.
#[derive(JsonSchema)]
pub struct LeafMove {
    /// The old leaf; null: before the first entry.
    pub from: Option<String>,
    /// What moved the leaf.
    pub cause: MoveCause,
}

/// What a context_edit shows instead.
#[derive(JsonSchema)]
pub struct Replacement {
    /// In place of the content of the target.
    pub content: Content,
}

/// An entry to append. Besides these, the members of its type as in `session-file.v3.json`; others
/// are kept, bytes and order.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct NewEntry {
    /// Any type but `session`.
    pub r#type: String,
    /// Made by the daemon if left out.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The entry before it in the batch if left out, for the first one the leaf; null: a root.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
    /// ISO 8601; now if left out.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
}

/// A message. Members beside these are kept, and depend on the role.
#[derive(JsonSchema)]
pub struct Message {
    /// `user`, `assistant`, `toolResult`, `system`, `bashExecution`, `custom`, `branchSummary`,
    /// `compactionSummary`, or another.
    pub role: String,
    /// By role; null is as empty.
    #[schemars(
        default,
        skip_serializing_if = "Option::is_none",
        with = "OrNull<Content>"
    )]
    pub content: Option<Content>,
}

/// A text, or content blocks.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub enum Content {
    Text(String),
    Blocks(Vec<ContentBlock>),
}

/// A piece of content. Members beside its type depend on that.
#[derive(JsonSchema)]
pub struct ContentBlock {
    /// `text`, `image`, `thinking`, `toolCall`, or another.
    pub r#type: String,
}

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
        shapes.push(generator.subschema_for::<OtherEntry>());
        json_schema!({ "description": "A line of a session file.", "oneOf": shapes })
    }
}

/// The schema of a member that may be left out *and* may be null, which an optional member of
/// outgoing JSON otherwise may not.
struct OrNull<T>(PhantomData<T>);

impl<T: JsonSchema> JsonSchema for OrNull<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("{}OrNull", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<T>();
        json_schema!({ "oneOf": [value, { "type": "null" }] })
    }
}

/// Puts the `type` that tells a definition from the others into the definition itself: a tag that
/// the union adds is lost by code generators.
#[derive(Clone)]
struct Tag(&'static str);

impl schemars::transform::Transform for Tag {
    fn transform(&mut self, schema: &mut Schema) {
        let mut properties = Map::new();
        properties.insert("type".into(), serde_json::json!({ "description": "Tells what this is.", "type": "string", "const": self.0 }));
        if let Some(Value::Object(rest)) = schema.remove("properties") {
            properties.extend(rest);
        }
        schema.insert("properties".into(), Value::Object(properties));
        let mut required = vec![Value::from("type")];
        if let Some(Value::Array(rest)) = schema.remove("required") {
            required.extend(rest);
        }
        schema.insert("required".into(), Value::Array(required));
    }
}
