//! A tool call: its arguments, the changes that it makes, and its result.

use super::context::CallResult;
use super::diff;
use super::writer::{BlockWriter, Text};
use treelined_core::json;
use treelined_core::tools::{CallArguments, FileAccess};
use treelined_core::view::call_summary;

/// Writes a tool call as a `toolCall` block.
pub(super) fn push(writer: &mut BlockWriter<'_>, call: &[u8], results: &[CallResult<'_>]) {
    let [id, name, raw] = json::get_each(call, ["id", "name", "arguments"]);
    let id = id.and_then(json::string).unwrap_or_default();
    let name = name.and_then(json::string).unwrap_or_default();
    let raw = raw.unwrap_or_default();
    let arguments = CallArguments::new(&name, raw);
    writer.block("toolCall", |writer| {
        writer.whole("id", super::writer::name(&id));
        writer.whole("name", super::writer::name(&name));
        let argument = call_summary(&arguments);
        writer.name("argument", Some(&*argument).filter(|text| !text.is_empty()));
        writer.text("arguments", Text::Decoded(&String::from_utf8_lossy(raw)));
        push_changes(writer, &arguments, raw);
        if let Some(result) = results.iter().find(|result| result.call_id == id) {
            push_result(writer, &arguments, result);
        }
    });
}

fn push_changes(writer: &mut BlockWriter<'_>, arguments: &CallArguments<'_>, raw: &[u8]) {
    let changes = diff::of_call(arguments, raw);
    if !changes.is_empty() {
        return writer.blocks("blocks", |writer| {
            for diff::FileDiff { path, text } in changes {
                writer.block("diff", |writer| {
                    writer.name("path", path.as_deref());
                    writer.text("text", Text::Decoded(&text));
                });
            }
        });
    }
    if arguments.access() != FileAccess::Change {
        return;
    }
    let written = ["content", "file_text", "contents"];
    let texts = json::get_each(raw, written);
    if let Some(text) = texts.into_iter().find_map(Text::of) {
        let language = language_of_file(arguments);
        writer.blocks("blocks", |writer| writer.code(text, language.as_deref()));
    }
}

fn push_result(
    writer: &mut BlockWriter<'_>,
    arguments: &CallArguments<'_>,
    result: &CallResult<'_>,
) {
    writer.object("result", |writer| {
        writer.whole("entryId", result.entry_id);
        writer.flag("isError", result.is_error);
        if let Some(entry) = result.entry {
            let content = json::get_path(entry, &["message", "content"]).unwrap_or_default();
            let language = match arguments.access() {
                FileAccess::Read => language_of_file(arguments),
                FileAccess::None | FileAccess::Change => None,
            };
            writer.blocks("blocks", |writer| {
                super::content::push_output(writer, content, language.as_deref());
            });
        }
    });
}

/// The extension of the file's name, if the call names exactly one file.
fn language_of_file(arguments: &CallArguments<'_>) -> Option<String> {
    let files = arguments.files();
    let mut files = files.iter();
    let (file, None) = (files.next()?, files.next()) else {
        return None;
    };
    let name = file.rsplit('/').next()?;
    let (_, extension) = name.rsplit_once('.')?;
    super::markdown::language(extension)
}
