//! The `command` summarizer: the user's program reads the request and writes the summary (semantics.md §3.4).

use super::shared::{OnPiece, failed};
use std::sync::Mutex;
use treelined_core::error::Error;
use treelined_core::json;
use treelined_core::summary::{Summary, SummaryRequest, prompt};
use treelined_files::lock::lock;
use treelined_files::os::program::{Failure, Program};

/// Runs `program`. The stdin of the program is the request as one JSON object, and its stdout is the summary in UTF-8.
/// Fails with `summarizerFailed`.
pub(crate) async fn summarize(
    program: &Program,
    request: &SummaryRequest,
    on_piece: OnPiece<'_>,
) -> Result<Summary, Error> {
    let pieces = Mutex::new(Utf8Pieces::default());
    let heard = |bytes: &[u8]| {
        let mut pieces = lock(&pieces);
        pieces.push(bytes, on_piece);
    };
    let output = program.run(&input(request), &heard).await;
    let output = output.map_err(|failure| {
        let cause = match failure {
            Failure::TimedOut(_) => "timeout",
            Failure::TooMuchOutput(_) => "tooLong",
            _ => "program",
        };
        failed(cause, format!("the summarizer's program failed: {failure}"))
    })?;
    let text = String::from_utf8(output).map_err(|_| {
        failed(
            "badResponse",
            "the summarizer's program wrote text that is not UTF-8",
        )
    })?;
    if text.trim().is_empty() {
        return Err(failed("empty", "the summarizer's program wrote nothing"));
    }
    Ok(Summary { text, usage: None })
}

/// `{subject, goal?, conversation, previousSummary?, customInstructions?, replaceInstructions, context?,
/// readFiles, modifiedFiles, prompt:{system, user}, keptEntries?, entriesToSummarize?, entries}`. For a
/// branch with a compaction, `entries` are `keptEntries` followed by `entriesToSummarize`.
fn input(request: &SummaryRequest) -> Vec<u8> {
    let prompt = prompt::prompt(request);
    let mut input = b"{\"subject\":".to_vec();
    json::push_string(&mut input, request.subject.name());
    let mut text = |name: &str, text: &str| {
        input.extend_from_slice(format!(",\"{name}\":").as_bytes());
        json::push_string(&mut input, text);
    };
    if let Some(goal) = &request.goal {
        text("goal", goal);
    }
    text("conversation", &request.conversation);
    if let Some(previous) = &request.previous_summary {
        text("previousSummary", previous);
    }
    if let Some(instructions) = &request.custom_instructions {
        text("customInstructions", instructions);
    }
    let replace = format!(",\"replaceInstructions\":{}", request.replace_instructions);
    input.extend_from_slice(replace.as_bytes());
    if !request.context.is_empty() {
        input.extend_from_slice(b",\"context\":");
        json::push_strings(&mut input, &request.context);
    }
    for (name, paths) in [
        ("readFiles", &request.files.read_files),
        ("modifiedFiles", &request.files.modified_files),
    ] {
        input.extend_from_slice(format!(",\"{name}\":").as_bytes());
        json::push_strings(&mut input, paths);
    }
    input.extend_from_slice(b",\"prompt\":{\"system\":");
    json::push_string(&mut input, &prompt.system);
    input.extend_from_slice(b",\"user\":");
    json::push_string(&mut input, &prompt.user);
    input.push(b'}');
    let apart = request
        .kept_count
        .and_then(|count| request.entries.split_at_checked(count));
    if let Some((kept, rest)) = apart {
        push_entries(&mut input, "keptEntries", kept);
        push_entries(&mut input, "entriesToSummarize", rest);
    }
    push_entries(&mut input, "entries", &request.entries);
    input.extend_from_slice(b"}\n");
    input
}

/// Writes entries as a member with an array, `,"name":[…]`.
fn push_entries(input: &mut Vec<u8>, name: &str, entries: &[Vec<u8>]) {
    input.extend_from_slice(format!(",\"{name}\":[").as_bytes());
    for (index, entry) in entries.iter().enumerate() {
        if index > 0 {
            input.push(b',');
        }
        json::push_raw(input, entry);
    }
    input.push(b']');
}

/// Splits output into pieces of whole characters. Keeps the bytes of an incomplete character.
#[derive(Default)]
struct Utf8Pieces(Vec<u8>);

impl Utf8Pieces {
    fn push(&mut self, bytes: &[u8], on_piece: OnPiece<'_>) {
        self.0.extend_from_slice(bytes);
        let valid = match std::str::from_utf8(&self.0) {
            Ok(text) => text.len(),
            Err(error) => error.valid_up_to(),
        };
        let rest = self.0.split_off(valid);
        let whole = std::mem::replace(&mut self.0, rest);
        if let Ok(text) = String::from_utf8(whole)
            && !text.is_empty()
        {
            on_piece(&text);
        }
    }
}
