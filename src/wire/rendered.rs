//! The shapes of entries as blocks: the result of `render_entries` (protocol.md §15). The daemon writes the JSON of
//! blocks itself (in `treelined-pages`).

use super::compare::TouchedFiles;
#[cfg(feature = "schema")]
use super::entry::{Tag, tag};
#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// The result of `render_entries`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename_all = "camelCase", example = super::examples::example(r#"{
  "entries": [
    {
      "entryId": "a1", "type": "message", "role": "assistant", "timestamp": "2026-11-22T05:40:35.833Z",
      "provider": "example", "model": "large",
      "blocks": [{"kind": "html", "html": "<p>A stale cache, or a missing import.</p>"}]
    }
  ]
}"#)))]
pub struct RenderEntriesResult {
    /// The entries in the order asked, without those that are missing.
    pub entries: Vec<RenderedEntry>,
    /// The ids that no entry has. Absent if there are none.
    #[cfg_attr(
        feature = "schema",
        schemars(skip_serializing_if = "Option::is_none", with = "Option<Vec<String>>")
    )]
    pub missing: Option<Vec<String>>,
    /// The index in `entryIds` of the first id that did not fit: ask for the rest. Absent if all fit.
    #[cfg_attr(
        feature = "schema",
        schemars(skip_serializing_if = "Option::is_none", with = "Option<u64>")
    )]
    pub next_index: Option<u64>,
}

/// An entry as blocks. Every string but `html` is plain text.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename_all = "camelCase"))]
pub struct RenderedEntry {
    /// The id of the entry.
    pub entry_id: String,
    /// The type of the entry.
    pub r#type: String,
    /// The role of a message.
    #[cfg_attr(
        feature = "schema",
        schemars(skip_serializing_if = "Option::is_none", with = "Option<String>")
    )]
    pub role: Option<String>,
    /// When the entry was written, as stored: ISO 8601 if the writer kept to the format.
    #[cfg_attr(
        feature = "schema",
        schemars(skip_serializing_if = "Option::is_none", with = "Option<String>")
    )]
    pub timestamp: Option<String>,
    /// The type of a custom entry or message, in the plugin's terms.
    #[cfg_attr(
        feature = "schema",
        schemars(skip_serializing_if = "Option::is_none", with = "Option<String>")
    )]
    pub custom_type: Option<String>,
    /// The provider that served the model of an answer.
    #[cfg_attr(
        feature = "schema",
        schemars(skip_serializing_if = "Option::is_none", with = "Option<String>")
    )]
    pub provider: Option<String>,
    /// The model of an answer.
    #[cfg_attr(
        feature = "schema",
        schemars(skip_serializing_if = "Option::is_none", with = "Option<String>")
    )]
    pub model: Option<String>,
    /// The id of the call that a tool result answers.
    #[cfg_attr(
        feature = "schema",
        schemars(skip_serializing_if = "Option::is_none", with = "Option<String>")
    )]
    pub tool_call_id: Option<String>,
    /// The tool of a tool result.
    #[cfg_attr(
        feature = "schema",
        schemars(skip_serializing_if = "Option::is_none", with = "Option<String>")
    )]
    pub tool_name: Option<String>,
    /// True for a failed tool result or command, and an answer that ended early. Absent otherwise.
    #[cfg_attr(
        feature = "schema",
        schemars(skip_serializing_if = "Option::is_none", with = "Option<bool>")
    )]
    pub is_error: Option<bool>,
    /// The blocks in order.
    pub blocks: Vec<RenderedBlock>,
    /// The number of blocks left out, if the entry has more than fit. Absent if it has all.
    #[cfg_attr(
        feature = "schema",
        schemars(skip_serializing_if = "Option::is_none", with = "Option<u64>")
    )]
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
            #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
            #[cfg_attr(feature = "schema", schemars(rename_all = "camelCase", transform = kind_tag($kind)))]
            pub struct $name {
                $($(#[$attribute])* pub $field: $type,)*
            }
        )+

        #[cfg(feature = "schema")]
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
        #[cfg_attr(feature = "schema", schemars(skip_serializing_if = "Option::is_none", with = "Option<String>"))]
        language: Option<String>,
        /// The number of bytes that the text was cut by. Absent if it is whole.
        #[cfg_attr(feature = "schema", schemars(skip_serializing_if = "Option::is_none", with = "Option<u64>"))]
        truncated: Option<u64>,
    }

    /// A change of a file.
    RenderedDiff "diff" {
        /// The file, as the call names it.
        #[cfg_attr(feature = "schema", schemars(skip_serializing_if = "Option::is_none", with = "Option<String>"))]
        path: Option<String>,
        /// The lines. Each begins with a space (unchanged), `+` (added), `-` (removed) or `@` (another place of the
        /// file begins).
        text: String,
        /// The number of bytes that the text was cut by. Absent if it is whole.
        #[cfg_attr(feature = "schema", schemars(skip_serializing_if = "Option::is_none", with = "Option<u64>"))]
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
        #[cfg_attr(feature = "schema", schemars(skip_serializing_if = "Option::is_none", with = "Option<String>"))]
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
        #[cfg_attr(feature = "schema", schemars(skip_serializing_if = "Option::is_none", with = "Option<String>"))]
        argument: Option<String>,
        /// The arguments as JSON, as the entry has them.
        arguments: String,
        /// The number of bytes that the arguments were cut by. Absent if they are whole.
        #[cfg_attr(feature = "schema", schemars(skip_serializing_if = "Option::is_none", with = "Option<u64>"))]
        truncated: Option<u64>,
        /// The changes that the call makes, each a `diff`, or the text of the file that it writes, as `code`. Absent for
        /// other calls.
        #[cfg_attr(feature = "schema", schemars(skip_serializing_if = "Option::is_none", with = "Option<Vec<RenderedBlock>>"))]
        blocks: Option<Vec<RenderedBlock>>,
        /// The result of the call. Absent if the session has none.
        #[cfg_attr(feature = "schema", schemars(skip_serializing_if = "Option::is_none", with = "Option<RenderedOutput>"))]
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
        #[cfg_attr(feature = "schema", schemars(skip_serializing_if = "Option::is_none", with = "Option<ReplacedEntries>"))]
        replaced: Option<ReplacedEntries>,
        /// The files that the replaced entries read and modified. Absent if the summary does not list them.
        #[cfg_attr(feature = "schema", schemars(skip_serializing_if = "Option::is_none", with = "Option<TouchedFiles>"))]
        files: Option<TouchedFiles>,
        /// The estimated number of tokens of the context before a compaction.
        #[cfg_attr(feature = "schema", schemars(skip_serializing_if = "Option::is_none", with = "Option<u64>"))]
        tokens: Option<u64>,
    }

    /// Text that is not Markdown: lines of the daemon, texts of entries without messages, and Markdown that is too large
    /// to be HTML.
    RenderedText "text" {
        /// The text.
        text: String,
        /// The number of bytes that the text was cut by. Absent if it is whole.
        #[cfg_attr(feature = "schema", schemars(skip_serializing_if = "Option::is_none", with = "Option<u64>"))]
        truncated: Option<u64>,
    }
}

/// A part of an entry, by its kind. Clients show kinds that they do not know as nothing.
pub struct RenderedBlock;

#[cfg(feature = "schema")]
impl JsonSchema for RenderedBlock {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RenderedBlock".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let shapes = known_blocks(generator);
        json_schema!({ "description": "A part of an entry, by its kind.", "oneOf": shapes })
    }
}

/// The result of a tool call.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename_all = "camelCase"))]
pub struct RenderedOutput {
    /// The id of the result's entry.
    pub entry_id: String,
    /// Whether the call failed.
    pub is_error: bool,
    /// The blocks of the result. Absent with `results: "ids"`.
    #[cfg_attr(
        feature = "schema",
        schemars(
            skip_serializing_if = "Option::is_none",
            with = "Option<Vec<RenderedBlock>>"
        )
    )]
    pub blocks: Option<Vec<RenderedBlock>>,
}

/// The kind of a summary.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename_all = "lowercase"))]
pub enum SummaryOf {
    /// Of a branch.
    Branch,
    /// Of the older part of a context.
    Compaction,
}

/// The entries that a summary takes the place of: those of a path between two entries, both included.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename_all = "camelCase"))]
pub struct ReplacedEntries {
    /// The id of the first entry.
    pub first_id: String,
    /// The id of the last entry.
    pub last_id: String,
}

#[cfg(feature = "schema")]
const fn kind_tag(kind: &'static str) -> Tag {
    tag("kind", "The kind.", kind)
}
