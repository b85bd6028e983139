//! Makes the entries of a session's nodes.

use crate::member::{Body, Node, NodeKind};
use crate::message::{self, Blocks, ModelMessage, Object, Usage, elements, whole};
use crate::value::{is_blank, literal, text};
use treelined_core::json;

/// The deepest nesting of data that is copied.
const DEEPEST: usize = 200;

/// The entry of a node. Its first record is the event. For an answer, a record of its usage may follow.
pub(super) fn body(node: &Node, records: &[&[u8]]) -> Body {
    let record = records.first().copied().unwrap_or_default();
    let [kind, data] = json::get_each(record, ["type", "data"]);
    let (label, data) = (text(kind).unwrap_or_default(), data.unwrap_or(b"{}"));
    let (kind, members) = match &node.kind {
        NodeKind::User => ("message", message::user(&words(data).array(), node.time)),
        NodeKind::Assistant => (
            "message",
            answer(node, data, records.get(1).copied().unwrap_or_default()),
        ),
        NodeKind::ToolResult => ("message", result(node, data)),
        NodeKind::Scaffolding => ("custom_message", scaffolding(&label, data)),
        NodeKind::Compaction { .. } => ("compaction", compaction(data)),
        NodeKind::ModelChange => ("model_change", model_change(data)),
        _ if matches!(&*label, "session.error" | "abort") && !is_again(node) => {
            ("custom", custom(&label, data))
        }
        _ => ("custom", message::duplicate(record)),
    };
    Body { kind, members }
}

/// Whether an earlier event has the same id.
fn is_again(node: &Node) -> bool {
    node.key.contains('/')
}

fn said(raw: Option<&[u8]>) -> Option<&[u8]> {
    literal(raw).filter(|raw| !is_blank(raw))
}

/// The text of a message, its images, and the names of its other files.
fn words(data: &[u8]) -> Blocks {
    let [content, files] = json::get_each(data, ["content", "attachments"]);
    let mut blocks = Blocks::default();
    if let Some(content) = said(content) {
        blocks.text(content);
    }
    for file in files.into_iter().flat_map(elements) {
        let names = ["path", "filePath", "displayName", "data", "mimeType"];
        let [path, selected, name, bytes, mime] = json::get_each(file, names);
        match (said(bytes), literal(mime)) {
            (Some(bytes), Some(mime)) if mime.starts_with(b"\"image/") => blocks.image(bytes, mime),
            _ => {
                let named = [path, selected, name].into_iter().find_map(text);
                let named = named.unwrap_or_default();
                blocks.text(&json::quoted(&format!("[file: {named}]")));
            }
        }
    }
    blocks
}

fn answer(node: &Node, data: &[u8], usage: &[u8]) -> Vec<u8> {
    let names = [
        "content",
        "reasoningText",
        "reasoningOpaque",
        "toolRequests",
        "model",
        "outputTokens",
    ];
    let [content, thought, signature, calls, model, output] = json::get_each(data, names);
    let mut blocks = Blocks::default();
    if let Some(thought) = said(thought) {
        blocks.thinking(thought, literal(signature));
    }
    if let Some(content) = said(content) {
        blocks.text(content);
    }
    let mut has_calls = false;
    for call in calls.into_iter().flat_map(elements) {
        let [id, name, arguments] = json::get_each(call, ["toolCallId", "name", "arguments"]);
        let name = literal(name).unwrap_or(b"\"unknown\"");
        let arguments = arguments.filter(|arguments| *arguments != b"null");
        blocks.call(literal(id).unwrap_or(b"\"\""), name, arguments);
        has_calls = true;
    }
    let usage = json::get_path(usage, &["data", "usage"]).unwrap_or(b"{}");
    ModelMessage {
        api: "openai-completions",
        provider: "github-copilot",
        model: literal(model),
        content: blocks,
        usage: tokens(usage, whole(output)),
        stop_reason: if has_calls { "toolUse" } else { "stop" },
        error: None,
        time: node.time,
    }
    .member()
}

fn tokens(usage: &[u8], output: u64) -> Usage {
    let names = [
        "inputTokens",
        "outputTokens",
        "cacheReadTokens",
        "cacheWriteTokens",
    ];
    let [input, counted, cache_read, cache_write] = json::get_each(usage, names).map(whole);
    Usage {
        input: input.saturating_sub(cache_read),
        output: counted.max(output),
        cache_read,
        cache_write,
    }
}

/// The result of a call. The note has the name of its tool.
fn result(node: &Node, data: &[u8]) -> Vec<u8> {
    let [id, success] = json::get_each(data, ["toolCallId", "success"]);
    let name = node.note.as_deref().unwrap_or_default();
    let is_error = success == Some(b"false");
    let id = literal(id).unwrap_or(b"\"\"");
    message::tool_result(id, name, &output(data), is_error, node.time)
}

/// The output of a tool: the text for the model, or the message of the error, and its images.
fn output(data: &[u8]) -> Blocks {
    let mut blocks = Blocks::default();
    let content = json::get_path(data, &["result", "content"]);
    let error = json::get_path(data, &["error", "message"]);
    if let Some(content) = said(content).or(said(error)) {
        blocks.text(content);
    }
    let binaries = json::get_path(data, &["result", "binaryResultsForLlm"]);
    for binary in binaries.into_iter().flat_map(elements) {
        let [bytes, mime] = json::get_each(binary, ["data", "mimeType"]);
        if let (Some(bytes), Some(mime)) = (said(bytes), literal(mime))
            && mime.starts_with(b"\"image/")
        {
            blocks.image(bytes, mime);
        }
    }
    blocks
}

fn scaffolding(label: &str, data: &[u8]) -> Vec<u8> {
    let (custom_type, content, is_shown) = match label {
        // The user has called the tool.
        "tool.execution_complete" => ("copilot.tool", output(data), true),
        "system.notification" => ("copilot.notification", words(data), true),
        _ => ("copilot.message", words(data), false),
    };
    message::scaffolding(custom_type, &content.array(), is_shown)
}

fn compaction(data: &[u8]) -> Vec<u8> {
    let [summary, before] = json::get_each(data, ["summaryContent", "preCompactionTokens"]);
    let mut out = Vec::new();
    let mut object = Object::after(&mut out);
    object.raw("summary", literal(summary).unwrap_or(b"\"\""));
    object.raw("tokensBefore", whole(before).to_string().as_bytes());
    out
}

fn model_change(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut object = Object::after(&mut out);
    object.text("provider", "github-copilot");
    let model = literal(json::get(data, "newModel"));
    object.raw("modelId", model.unwrap_or(b"\"\""));
    out
}

fn custom(label: &str, data: &[u8]) -> Vec<u8> {
    let mut value = Vec::new();
    match json::depth(data) <= DEEPEST {
        true => json::push_one_line(&mut value, data),
        false => value.extend_from_slice(b"{}"),
    }
    let mut out = Vec::new();
    let mut object = Object::after(&mut out);
    object.text("customType", &format!("copilot.{label}"));
    object.raw("data", &value);
    out
}
