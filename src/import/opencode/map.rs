//! Makes the entries of opencode's messages.

use super::super::member::{Body, Node, NodeKind};
use super::super::value::{Usage, Value, Writer, count, joined, literal, number, text};
use super::record::{self, Item, image_of};
use treelined_core::json;

/// The `stopReason` for each `finish` of an answer. Other values are copied.
const FINISHES: &[(&str, &str)] = &[
    ("stop", "stop"),
    ("length", "length"),
    ("tool-calls", "toolUse"),
    ("error", "error"),
];

/// The `stopReason` for each `error.name` of an answer. For other names it is `error`.
const ERRORS: &[(&str, &str)] = &[
    ("MessageAbortedError", "aborted"),
    ("MessageOutputLengthError", "length"),
];

/// The entry of a node.
pub(super) fn body(node: &Node, records: &[&[u8]]) -> Body {
    let items: Vec<Item<'_>> = records
        .iter()
        .filter_map(|record| record::read(record)?.item)
        .collect();
    let messages = || items.iter().filter_map(message);
    let parts: Vec<PartData<'_>> = items.iter().filter_map(PartData::of).collect();
    let mut out = Writer::default();
    let kind = match &node.kind {
        NodeKind::User => {
            user(&mut out, node, &parts);
            "message"
        }
        NodeKind::Assistant => {
            answer(&mut out, node, messages().next(), &parts);
            "message"
        }
        NodeKind::ToolResult => {
            let missing = PartData { id: "", raw: b"" };
            result(&mut out, node, parts.first().copied().unwrap_or(missing));
            "message"
        }
        NodeKind::Scaffolding => {
            out.text("customType", "opencode.synthetic");
            out.member("content", &texts(&parts));
            out.member("display", b"false");
            "custom_message"
        }
        NodeKind::Compaction { .. } => {
            summary(&mut out, messages().next_back(), &parts);
            "compaction"
        }
        NodeKind::Subagent { native_id } => {
            out.text("customType", "subagent");
            out.open(Some("data"), b'{');
            out.text("nativeId", native_id);
            if let Some(call) = &node.note {
                out.text("toolCallId", call);
            }
            out.close(b'}');
            "custom"
        }
        NodeKind::Custom | NodeKind::ModelChange => {
            let is_retry = !parts.is_empty();
            out.text(
                "customType",
                if is_retry {
                    "opencode.retry"
                } else {
                    "opencode.message"
                },
            );
            out.optional(
                "data",
                parts
                    .first()
                    .map(|part| part.raw)
                    .or_else(|| messages().next().map(Value::raw)),
            );
            "custom"
        }
    };
    Body {
        kind,
        members: out.0,
    }
}

fn message<'i, 'a>(item: &'i Item<'a>) -> Option<&'i Value<'a>> {
    match item {
        Item::Message { data, .. } => Some(data),
        _ => None,
    }
}

/// A part, with its id. In a database the id is a column of the row.
#[derive(Clone, Copy)]
struct PartData<'i> {
    id: &'i str,
    raw: &'i [u8],
}

impl<'i> PartData<'i> {
    fn of(item: &'i Item<'_>) -> Option<Self> {
        match item {
            Item::Part { id, data, .. } => Some(Self {
                id,
                raw: data.raw(),
            }),
            _ => None,
        }
    }

    fn get(&self, name: &str) -> Option<&'i [u8]> {
        json::get(self.raw, name)
    }

    fn each<const N: usize>(&self, names: [&str; N]) -> [Option<&'i [u8]>; N] {
        json::get_each(self.raw, names)
    }

    /// The id of a call, as a string literal.
    fn call_id(&self) -> Vec<u8> {
        literal(self.get("callID")).map_or_else(|| json::quoted(self.id), <[u8]>::to_vec)
    }
}

/// The texts of all parts, as one string literal.
fn texts(parts: &[PartData<'_>]) -> Vec<u8> {
    let texts = parts
        .iter()
        .filter(|part| text(part.get("type")).as_deref() == Some("text"));
    joined(texts.filter_map(|part| literal(part.get("text"))))
}

fn user(out: &mut Writer, node: &Node, parts: &[PartData<'_>]) {
    out.open_message("user");
    out.open(Some("content"), b'[');
    for part in parts {
        let [kind, body, prompt] = part.each(["type", "text", "prompt"]);
        match text(kind).as_deref() {
            Some("text") => block(out, "text", "text", body),
            Some("subtask") => block(out, "text", "text", prompt),
            Some("file") => image(out, part.raw),
            _ => {}
        }
    }
    out.close(b']');
    out.close_message(node.time);
}

/// Writes a block with a text, if there is a text.
fn block(out: &mut Writer, kind: &str, name: &str, text: Option<&[u8]>) {
    if let Some(text) = literal(text) {
        out.block(kind, name, text);
    }
}

fn image(out: &mut Writer, file: &[u8]) {
    let [url, mime] = json::get_each(file, ["url", "mime"]);
    if let Some((data, mime)) = image_of(url, mime) {
        out.image(&json::quoted(&data), &json::quoted(&mime));
    }
}

fn answer(out: &mut Writer, node: &Node, message: Option<&Value<'_>>, parts: &[PartData<'_>]) {
    out.open_message("assistant");
    out.open(Some("content"), b'[');
    let mut has_calls = false;
    for part in parts {
        let [kind, body, tool, state] = part.each(["type", "text", "tool", "state"]);
        match text(kind).as_deref() {
            Some("text") => block(out, "text", "text", body),
            Some("reasoning") => thinking(out, part, body),
            Some("file") => image(out, part.raw),
            Some("tool") => {
                has_calls = true;
                let input = state.and_then(|state| json::get(state, "input"));
                out.call(
                    &part.call_id(),
                    literal(tool).unwrap_or(b"\"unknown\""),
                    input,
                );
            }
            _ => {}
        }
    }
    out.close(b']');
    if let Some(message) = message {
        model(out, message);
        // The tokens belong to the whole message, so only the first entry of the message gets them.
        if !node.key.contains('/') {
            tokens(out, message);
        }
    }
    // The end of the message belongs to its last step.
    let ended = message.filter(|_| node.note.is_none());
    end(out, ended, has_calls);
    out.close_message(node.time);
}

fn thinking(out: &mut Writer, part: &PartData<'_>, body: Option<&[u8]>) {
    let Some(body) = literal(body) else { return };
    let signature = json::get_path(part.raw, &["metadata", "anthropic", "signature"]);
    out.open(None, b'{');
    out.text("type", "thinking");
    out.member("thinking", body);
    out.optional("thinkingSignature", literal(signature));
    out.close(b'}');
}

/// Writes the model: `modelID` of an answer, or `model` in older versions.
fn model(out: &mut Writer, message: &Value<'_>) {
    let [provider, id, model] = message.each(["providerID", "modelID", "model"]);
    let [model_provider, model_id] =
        json::get_each(model.unwrap_or_default(), ["providerID", "modelID"]);
    out.optional("provider", literal(provider).or(literal(model_provider)));
    out.optional("model", literal(id).or(literal(model_id)));
}

fn tokens(out: &mut Writer, message: &Value<'_>) {
    if let Some(usage) = usage(message) {
        usage.write(out);
    }
}

fn usage(message: &Value<'_>) -> Option<Usage> {
    let [tokens, cost] = message.each(["tokens", "cost"]);
    let [input, output, reasoning, total, cache] =
        json::get_each(tokens?, ["input", "output", "reasoning", "total", "cache"]);
    let [read, write] = json::get_each(cache.unwrap_or_default(), ["read", "write"]);
    let mut usage = Usage {
        input: count(input)?,
        output: count(output)?,
        cache_read: count(read).unwrap_or(0),
        cache_write: count(write).unwrap_or(0),
        total: count(total),
        cost: number(cost),
    };
    // Newer versions count the tokens of reasoning separately from the output. In older versions, the output includes
    // them.
    let reasoning = count(reasoning).unwrap_or(0);
    let with_reasoning = Usage {
        output: usage.output.saturating_add(reasoning),
        total: None,
        ..usage.clone()
    };
    if usage.total == Some(with_reasoning.sum()) {
        usage.output = with_reasoning.output;
    }
    Some(usage)
}

/// Writes the reason why an answer ended, and its error.
fn end(out: &mut Writer, message: Option<&Value<'_>>, has_calls: bool) {
    let [finish, error] = message.map_or([None; 2], |message| message.each(["finish", "error"]));
    let error = error.filter(|error| error.first() == Some(&b'{'));
    if let Some(error) = error {
        let [name, data] = json::get_each(error, ["name", "data"]);
        let name_text = text(name).unwrap_or_default();
        out.text("stopReason", mapped(ERRORS, &name_text).unwrap_or("error"));
        let message = data.and_then(|data| literal(json::get(data, "message")));
        out.optional("errorMessage", message.or(literal(name)));
    } else if has_calls {
        out.text("stopReason", "toolUse");
    } else if let Some(finish) = text(finish) {
        out.text("stopReason", mapped(FINISHES, &finish).unwrap_or(&finish));
    }
}

fn mapped(table: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    let mut rows = table.iter();
    rows.find(|(theirs, _)| *theirs == name)
        .map(|(_, ours)| *ours)
}

fn result(out: &mut Writer, node: &Node, part: PartData<'_>) {
    out.open_message("toolResult");
    let [tool, state] = part.each(["tool", "state"]);
    let [status, output, error, files, metadata] = json::get_each(
        state.unwrap_or_default(),
        ["status", "output", "error", "attachments", "metadata"],
    );
    let is_error = text(status).as_deref() == Some("error");
    out.member("toolCallId", &part.call_id());
    out.optional("toolName", literal(tool));
    out.open(Some("content"), b'[');
    block(out, "text", "text", if is_error { error } else { output });
    for file in elements(files) {
        image(out, file);
    }
    out.close(b']');
    if let Some(diff) = metadata.and_then(|metadata| literal(json::get(metadata, "diff"))) {
        out.open(Some("details"), b'{');
        out.member("diff", diff);
        out.close(b'}');
    }
    out.member("isError", if is_error { b"true" } else { b"false" });
    out.close_message(node.time);
}

fn elements(array: Option<&[u8]>) -> impl Iterator<Item = &[u8]> {
    let array = array.unwrap_or_default();
    let mut elements = json::Elements::open(array, 0).ok();
    std::iter::from_fn(move || array.get(elements.as_mut()?.next_value().ok()??))
}

fn summary(out: &mut Writer, message: Option<&Value<'_>>, parts: &[PartData<'_>]) {
    out.member("summary", &texts(parts));
    let usage = message.and_then(usage);
    let before = usage
        .as_ref()
        .map_or(0, |usage| usage.input.saturating_add(usage.cache_read));
    out.number("tokensBefore", before);
    if let Some(usage) = usage {
        usage.write(out);
    }
}
