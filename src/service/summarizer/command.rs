//! The `command` summarizer: the user's program reads the request and writes the summary (semantics.md §3.4).

use super::shared::{OnPiece, failed};
use std::io::{self, BufWriter, Write};
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio::runtime::Handle;
use treelined_core::error::Error;
use treelined_core::json;
use treelined_core::summary::{Summary, SummaryRequest, prompt};
use treelined_files::blocking::blocking;
use treelined_files::lock::lock;
use treelined_files::os::program::{Failure, Program};

/// The bytes of the request that wait for the program to read them.
const UNREAD_BYTES: usize = 256 << 10;

/// Runs `program`. The stdin of the program is the request as one JSON object, and its stdout is the summary in UTF-8.
/// Fails with `summarizerFailed`, or with the errors of the entries.
pub(crate) async fn summarize(
    program: &Program,
    request: Arc<SummaryRequest>,
    on_piece: OnPiece<'_>,
) -> Result<Summary, Error> {
    let pieces = Mutex::new(Utf8Pieces::default());
    let heard = |bytes: &[u8]| {
        let mut pieces = lock(&pieces);
        pieces.push(bytes, on_piece);
    };
    let (unread, stdin) = tokio::io::duplex(UNREAD_BYTES);
    let runtime = Handle::current();
    let writing = blocking(move || write_input(&request, Stdin { runtime, stdin }));
    let (output, written) = tokio::join!(program.run(unread, &heard), writing);
    // If only a part of the request was written, the program may have written a summary of this part.
    written?;
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

/// The stdin of the program, for a thread that may wait.
struct Stdin {
    runtime: Handle,
    stdin: DuplexStream,
}

impl Write for Stdin {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.runtime.block_on(self.stdin.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.runtime.block_on(self.stdin.flush())
    }
}

/// Writes the request: `{subject, goal?, conversation, previousSummary?, customInstructions?, replaceInstructions,
/// context?, readFiles, modifiedFiles, prompt:{system, user}, keptEntries?, entriesToSummarize?, entries}`. For a
/// branch with a compaction, `entries` are `keptEntries` followed by `entriesToSummarize`. The program may exit without
/// reading its input, so a failed write is not an error.
fn write_input(request: &SummaryRequest, stdin: impl Write) -> Result<(), Error> {
    let mut stdin = BufWriter::with_capacity(UNREAD_BYTES, stdin);
    let entries = &request.entries;
    let mut lists = Vec::new();
    if let Some((kept, rest)) = entries.apart() {
        lists.push(("keptEntries", kept));
        lists.push(("entriesToSummarize", rest));
    }
    lists.push(("entries", entries.all()));
    if stdin.write_all(&members(request)).is_err() {
        return Ok(());
    }
    for (name, numbers) in lists {
        if write_entries(&mut stdin, name, request, numbers)?.is_err() {
            return Ok(());
        }
    }
    let _unread = stdin.write_all(b"}\n").and_then(|()| stdin.flush());
    Ok(())
}

/// The members before the lists of entries, without the end of the object.
fn members(request: &SummaryRequest) -> Vec<u8> {
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
    input
}

/// Writes entries as a member with an array, `,"name":[…]`. The inner result is the result of the writes to the
/// program's stdin.
fn write_entries(
    stdin: &mut impl Write,
    name: &str,
    request: &SummaryRequest,
    numbers: Range<usize>,
) -> Result<io::Result<()>, Error> {
    let mut written = write!(stdin, ",\"{name}\":[");
    let (mut is_first, mut line) = (true, Vec::new());
    request.entries.pass(numbers, |entry| {
        line.clear();
        if !std::mem::take(&mut is_first) {
            line.push(b',');
        }
        json::push_raw(&mut line, entry);
        if written.is_ok() {
            written = stdin.write_all(&line);
        }
        match written {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    })?;
    Ok(written.and_then(|()| stdin.write_all(b"]")))
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
