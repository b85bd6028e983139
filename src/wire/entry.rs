//! The shapes of what a session file holds: header, entries, leaf record (storage.md §1, §4;
//! protocol.md §9). Only for the schema: entries cross the pipe as raw bytes.
//!
//! Unknown types and members are allowed everywhere, and survive.

use super::message::{Content, Message, OrNull, Usage, or_null};
use super::navigate::MoveCause;
use crate::id;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

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
        #[schemars(skip_serializing_if = "Option::is_none", with = "Option<Usage>")]
        usage: Option<Usage>,
        /// Stands before the summary in the context.
        #[schemars(skip_serializing_if = "Option::is_none")]
        system_message: Option<Map<String, Value>>,
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
        #[schemars(skip_serializing_if = "Option::is_none", with = "Option<Usage>")]
        usage: Option<Usage>,
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
        usage: Usage,
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

/// An entry to append, by its type.
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
        shapes.push(generator.subschema_for::<OtherEntry>());
        json_schema!({ "description": "A line of a session file.", "oneOf": shapes })
    }
}

impl JsonSchema for NewEntry {
    fn schema_name() -> Cow<'static, str> {
        "NewEntry".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        // As the entries are delivered, whichever way these go.
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
            "description": "An entry to append, by its type. Other members are kept, bytes and order.",
            "oneOf": shapes.collect::<Vec<_>>(),
        })
    }
}

fn defined_name(reference: &Schema) -> Option<String> {
    let reference = reference.get("$ref")?.as_str()?;
    reference.rsplit('/').next().map(str::to_owned)
}

/// Makes of the definition of an entry that of one to append: `id`, `parentId` and `timestamp` may be
/// left out, and what may be left out may be null.
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
    for (member, schema) in properties.iter_mut() {
        let told = APPENDED.iter().find(|(name, _)| name == member);
        if let (Some((_, text)), Value::Object(schema)) = (told, &mut *schema) {
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

/// What the members that every entry has mean in one to append.
const APPENDED: &[(&str, &str)] = &[
    ("id", "Made by the daemon if left out."),
    (
        "parentId",
        "The entry before it in the batch if left out, for the first one the leaf; null: a root.",
    ),
    ("timestamp", "ISO 8601; now if left out."),
    (
        "firstKeptEntryId",
        "The first entry that stays in the context; null if none does.",
    ),
];

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
