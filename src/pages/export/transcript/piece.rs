//! The parts of an entry that readers see.

use treelined_core::bytes::part;
use treelined_core::entry::{Kind, Role};
use treelined_core::json::{self, Elements};
pub(crate) use treelined_core::tree::Flags;
use treelined_core::view::{Subject, ToolCall};

/// A part of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// The text of the speaker. It is Markdown if the speaker is a model.
    Said(String),
    Thinking(String),
    /// A tool call on one line, and its arguments as JSON.
    Call {
        title: String,
        arguments: String,
    },
    /// The output of a tool or a command.
    Output {
        title: String,
        text: String,
        is_error: bool,
    },
    /// Something that the document leaves out, such as an image.
    LeftOut(String),
}

/// The id of the call that a tool result answers.
pub(super) fn call_id(entry: &[u8]) -> Option<String> {
    let id = json::get_path(entry, &["message", "toolCallId"])?;
    Some(json::id(id)?.into_owned())
}

/// The parts of an entry. `call` is the call that a tool result answers; `preview` is the text that the renderer of
/// a plugin makes.
pub(super) fn pieces(
    entry: &[u8],
    subject: Subject,
    call: Option<&ToolCall<'_>>,
    preview: Option<String>,
) -> Vec<Piece> {
    if let Some(preview) = preview {
        return vec![Piece::Said(preview)];
    }
    let message = match subject.is_message() {
        true => json::get(entry, "message").unwrap_or_default(),
        false => entry,
    };
    let text = |name: &str| text_of(json::get(message, name));
    let mut pieces = match (subject.kind, subject.role) {
        (Kind::Compaction | Kind::BranchSummary, _)
        | (_, Role::BranchSummary | Role::CompactionSummary) => {
            vec![Piece::Said(text("summary").unwrap_or_default())]
        }
        (_, Role::BashExecution) => vec![Piece::Output {
            title: text("command").unwrap_or_default(),
            text: text("output").unwrap_or_default(),
            is_error: subject.flags.has(Flags::ERROR),
        }],
        (_, Role::ToolResult) => result(message, subject, call),
        _ => said(json::get(message, "content").unwrap_or_default()),
    };
    if let Some(error) = text("errorMessage").filter(|_| subject.role == Role::Assistant) {
        pieces.push(Piece::LeftOut(format!("error: {error}")));
    }
    pieces
}

fn text_of(raw: Option<&[u8]>) -> Option<String> {
    Some(json::string(raw?)?.into_owned())
}

fn result(message: &[u8], subject: Subject, call: Option<&ToolCall<'_>>) -> Vec<Piece> {
    let name = text_of(json::get(message, "toolName"));
    let title = match call {
        Some(call) => format!("{} {}", call.name, call.summary),
        None => name.unwrap_or_else(|| "tool".to_owned()),
    };
    let mut text = String::new();
    let mut rest = Vec::new();
    for piece in said(json::get(message, "content").unwrap_or_default()) {
        match piece {
            Piece::Said(more) => {
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(&more);
            }
            other => rest.push(other),
        }
    }
    let output = Piece::Output {
        title: title.trim().to_owned(),
        text,
        is_error: subject.flags.has(Flags::ERROR),
    };
    std::iter::once(output).chain(rest).collect()
}

/// The parts of a content, which is a text or an array of blocks.
fn said(content: &[u8]) -> Vec<Piece> {
    if let Some(text) = text_of(Some(content)) {
        return vec![Piece::Said(text)];
    }
    let mut pieces = Vec::new();
    let Ok(mut blocks) = Elements::open(content, 0) else {
        return pieces;
    };
    while let Ok(Some(span)) = blocks.next_value() {
        let block = part(content, span);
        let text = |name: &str| text_of(json::get(block, name));
        let piece = match text("type").as_deref() {
            Some("text") => Piece::Said(text("text").unwrap_or_default()),
            Some("thinking") => Piece::Thinking(text("thinking").unwrap_or_default()),
            Some("toolCall") => {
                let arguments = json::get(block, "arguments").unwrap_or_default();
                let name = text("name").unwrap_or_default();
                let call = ToolCall::new("".into(), name.into(), arguments);
                Piece::Call {
                    title: format!("{} {}", call.name, call.summary).trim().to_owned(),
                    arguments: String::from_utf8_lossy(arguments).into_owned(),
                }
            }
            Some("image") => {
                let kind = text("mimeType").unwrap_or_else(|| "unknown type".to_owned());
                Piece::LeftOut(format!("image ({kind})"))
            }
            Some(other) => Piece::LeftOut(other.to_owned()),
            None => continue,
        };
        pieces.push(piece);
    }
    pieces
}
