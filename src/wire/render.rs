//! Entries as blocks that a client shows: `render_entries` (protocol.md §15).
//!
//! The daemon writes the JSON of blocks itself (in `treelined-pages`). The types of this module describe that JSON.

use super::compare::TouchedFiles;
use super::entry::{Tag, tag};
use super::params::{Count, GivenPosition, count, nullable_into};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

session_params! {
    /// The params of `render_entries`.
    #[schemars(example = super::examples::example(r#"{"entryIds": ["a1"]}"#))]
    RenderEntriesParams {
        /// The ids of the entries, at most 10000.
        entry_ids: Vec<String>,
        /// The most bytes of the answer's entries, at least 4096. Default: the client's `maxFrameBytes`.
        #[serde(default, deserialize_with = "count")]
        #[schemars(with = "Option<Count>")]
        max_bytes: Option<u64>,
        /// The members of the result within calls. Default: `blocks`.
        results: Option<RenderedResults>,
        /// The position whose path decides between several results of a call; null means the empty position. Default:
        /// the leaf.
        #[serde(default, deserialize_with = "nullable_into")]
        #[schemars(with = "Option<String>")]
        leaf_id: GivenPosition,
    }
}

/// The members of the result within calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RenderedResults {
    /// The entry of the result and its blocks.
    #[default]
    Blocks,
    /// The entry of the result without its blocks, for clients that render that entry too.
    Ids,
}

/// The result of `render_entries`.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", example = super::examples::example(r#"{
  "entries": [
    {
      "entryId": "a1", "type": "message", "role": "assistant", "timestamp": "2026-11-22T05:40:35.833Z",
      "provider": "example", "model": "large",
      "blocks": [{"kind": "html", "html": "<p>A stale cache, or a missing import.</p>"}]
    }
  ]
}"#))]
pub struct RenderEntriesResult {
    /// The entries in the order asked, without those that are missing.
    pub entries: Vec<RenderedEntry>,
    /// The ids that no entry has. Absent if there are none.
    #[schemars(skip_serializing_if = "Option::is_none", with = "Option<Vec<String>>")]
    pub missing: Option<Vec<String>>,
    /// The index in `entryIds` of the first id that did not fit: ask for the rest. Absent if all fit.
    #[schemars(skip_serializing_if = "Option::is_none", with = "Option<u64>")]
    pub next_index: Option<u64>,
}

/// An entry as blocks. Every string but `html` is plain text.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct RenderedEntry {
    /// The id of the entry.
    pub entry_id: String,
    /// The type of the entry.
    pub r#type: String,
    /// The role of a message.
    #[schemars(skip_serializing_if = "Option::is_none", with = "Option<String>")]
    pub role: Option<String>,
    /// When the entry was written, as stored: ISO 8601 if the writer kept to the format.
    #[schemars(skip_serializing_if = "Option::is_none", with = "Option<String>")]
    pub timestamp: Option<String>,
    /// The type of a custom entry or message, in the plugin's terms.
    #[schemars(skip_serializing_if = "Option::is_none", with = "Option<String>")]
    pub custom_type: Option<String>,
    /// The provider that served the model of an answer.
    #[schemars(skip_serializing_if = "Option::is_none", with = "Option<String>")]
    pub provider: Option<String>,
    /// The model of an answer.
    #[schemars(skip_serializing_if = "Option::is_none", with = "Option<String>")]
    pub model: Option<String>,
    /// The id of the call that a tool result answers.
    #[schemars(skip_serializing_if = "Option::is_none", with = "Option<String>")]
    pub tool_call_id: Option<String>,
    /// The tool of a tool result.
    #[schemars(skip_serializing_if = "Option::is_none", with = "Option<String>")]
    pub tool_name: Option<String>,
    /// True for a failed tool result or command, and an answer that ended early. Absent otherwise.
    #[schemars(skip_serializing_if = "Option::is_none", with = "Option<bool>")]
    pub is_error: Option<bool>,
    /// The blocks in order.
    pub blocks: Vec<RenderedBlock>,
    /// The number of blocks left out, if the entry has more than fit. Absent if it has all.
    #[schemars(skip_serializing_if = "Option::is_none", with = "Option<u64>")]
    pub omitted_blocks: Option<u64>,
}

macro_rules! blocks {
    ($(
        $(#[$doc:meta])*
        $name:ident $kind:literal {
            $($(#[$attribute:meta])* $field:ident: $type:ty,)*
        }
    )+) => {
        $(
            $(#[$doc])*
            #[derive(JsonSchema)]
            #[schemars(rename_all = "camelCase", transform = kind_tag($kind))]
            pub struct $name {
                $($(#[$attribute])* pub $field: $type,)*
            }
        )+

        fn known_blocks(generator: &mut SchemaGenerator) -> Vec<Schema> {
            vec![$(generator.subschema_for::<$name>()),+]
        }
    };
}

blocks! {
    /// Markdown as HTML. It has only the elements and attributes of protocol.md §15.2.
    RenderedHtml "html" {
        /// The HTML. A client may put it into its page as it is.
        html: String,
    }

    /// Text to show as it is written, in a font of fixed width: fenced code of Markdown, the output of a tool or a
    /// command.
    RenderedCode "code" {
        /// The text.
        text: String,
        /// The language, as the author or the name of the file says it: at most 32 of the characters `a-z`, `0-9`,
        /// `+`, `#`, `.`, `_` and `-`.
        #[schemars(skip_serializing_if = "Option::is_none", with = "Option<String>")]
        language: Option<String>,
        /// The number of bytes that the text was cut by. Absent if it is whole.
        #[schemars(skip_serializing_if = "Option::is_none", with = "Option<u64>")]
        truncated: Option<u64>,
    }

    /// A change of a file.
    RenderedDiff "diff" {
        /// The file, as the call names it.
        #[schemars(skip_serializing_if = "Option::is_none", with = "Option<String>")]
        path: Option<String>,
        /// The lines. Each begins with a space (unchanged), `+` (added), `-` (removed) or `@` (another place of the
        /// file begins).
        text: String,
        /// The number of bytes that the text was cut by. Absent if it is whole.
        #[schemars(skip_serializing_if = "Option::is_none", with = "Option<u64>")]
        truncated: Option<u64>,
    }

    /// An image. Its first bytes are those of its type.
    RenderedImage "image" {
        /// `image/png`, `image/jpeg`, `image/gif` or `image/webp`, by the first bytes.
        mime_type: String,
        /// The image in Base64, with the alphabet of RFC 4648 §4 and padding.
        data: String,
    }

    /// Data that is not shown: of another type than the images, damaged, or too large.
    RenderedAttachment "attachment" {
        /// The type that the entry claims.
        #[schemars(skip_serializing_if = "Option::is_none", with = "Option<String>")]
        mime_type: Option<String>,
        /// The size of the decoded data, in bytes.
        bytes: u64,
    }

    /// A tool call with its result.
    RenderedToolCall "toolCall" {
        /// The id of the call; empty if the entry has none.
        id: String,
        /// The tool.
        name: String,
        /// The argument that describes the call, such as the command or the path, on one line of at most 120
        /// characters.
        #[schemars(skip_serializing_if = "Option::is_none", with = "Option<String>")]
        argument: Option<String>,
        /// The arguments as JSON, as the entry has them.
        arguments: String,
        /// The number of bytes that the arguments were cut by. Absent if they are whole.
        #[schemars(skip_serializing_if = "Option::is_none", with = "Option<u64>")]
        truncated: Option<u64>,
        /// The changes that the call makes, each a `diff`, or the text of the file that it writes, as `code`. Absent for
        /// other calls.
        #[schemars(skip_serializing_if = "Option::is_none", with = "Option<Vec<RenderedBlock>>")]
        blocks: Option<Vec<RenderedBlock>>,
        /// The result of the call. Absent if the session has none.
        #[schemars(skip_serializing_if = "Option::is_none", with = "Option<RenderedOutput>")]
        result: Option<RenderedOutput>,
    }

    /// Thinking of a model.
    RenderedThinking "thinking" {
        /// The HTML, as of an `html` block.
        html: String,
    }

    /// A summary that takes the place of other entries.
    RenderedSummary "summary" {
        /// The kind of the summary.
        of: SummaryOf,
        /// The kind of the summary, in words for people.
        title: String,
        /// The HTML of the summary, as of an `html` block.
        html: String,
        /// The entries that it takes the place of. Absent if they are not known.
        #[schemars(skip_serializing_if = "Option::is_none", with = "Option<ReplacedEntries>")]
        replaced: Option<ReplacedEntries>,
        /// The files that the replaced entries read and modified. Absent if the summary does not list them.
        #[schemars(skip_serializing_if = "Option::is_none", with = "Option<TouchedFiles>")]
        files: Option<TouchedFiles>,
        /// The estimated number of tokens of the context before a compaction.
        #[schemars(skip_serializing_if = "Option::is_none", with = "Option<u64>")]
        tokens: Option<u64>,
    }

    /// Text that is not Markdown: lines of the daemon, texts of entries without messages, and Markdown that is too large
    /// to be HTML.
    RenderedText "text" {
        /// The text.
        text: String,
        /// The number of bytes that the text was cut by. Absent if it is whole.
        #[schemars(skip_serializing_if = "Option::is_none", with = "Option<u64>")]
        truncated: Option<u64>,
    }
}

/// A part of an entry, by its kind. Clients show kinds that they do not know as nothing.
pub struct RenderedBlock;

impl JsonSchema for RenderedBlock {
    fn schema_name() -> Cow<'static, str> {
        "RenderedBlock".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let shapes = known_blocks(generator);
        json_schema!({ "description": "A part of an entry, by its kind.", "oneOf": shapes })
    }
}

/// The result of a tool call.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct RenderedOutput {
    /// The id of the result's entry.
    pub entry_id: String,
    /// Whether the call failed.
    pub is_error: bool,
    /// The blocks of the result. Absent with `results: "ids"`.
    #[schemars(
        skip_serializing_if = "Option::is_none",
        with = "Option<Vec<RenderedBlock>>"
    )]
    pub blocks: Option<Vec<RenderedBlock>>,
}

/// The kind of a summary.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub enum SummaryOf {
    /// Of a branch.
    Branch,
    /// Of the older part of a context.
    Compaction,
}

/// The entries that a summary takes the place of: those of a path between two entries, both included.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct ReplacedEntries {
    /// The id of the first entry.
    pub first_id: String,
    /// The id of the last entry.
    pub last_id: String,
}

const fn kind_tag(kind: &'static str) -> Tag {
    tag("kind", "The kind.", kind)
}
