//! Answers of hooks: the output of a hook, read as an answer to a before event (protocol.md §5.8).

use super::received_answer::{ReceivedAnswer, check_stored};
use crate::hooks::{Hook, OnFailure};
use std::borrow::Cow;
use std::fmt;
use treelined_core::bytes::part;
use treelined_core::error::Error;
use treelined_core::json::{self, Members};
use treelined_files::os::program;
use treelined_wire::{self as wire, BeforeEvent};

/// The reason why a hook gave no answer.
pub(super) enum Failure {
    Program(program::Failure),
    /// The output is not an answer. The error is at this line and column.
    NotAnAnswer {
        line: usize,
        column: usize,
    },
    /// A member of the answer belongs to another event, or is nested too deeply.
    Refused(Error),
}

/// The answer in the output of a hook. If the output cannot be read, the answer that replaces it.
pub(super) fn read_answer(hook: &Hook, output: &[u8], event: BeforeEvent) -> ReceivedAnswer {
    match answer_of(output, event) {
        Ok(answer) => ReceivedAnswer {
            answer,
            is_failure: false,
        },
        Err(failure) => failed(hook, &failure, output),
    }
}

/// The answer that replaces the answer of a failed hook. If the output has a cancel, the cancel counts, whatever
/// `on_failure` says.
pub(super) fn failed(hook: &Hook, failure: &Failure, output: &[u8]) -> ReceivedAnswer {
    hook.log_failure(failure);
    match veto_in(output) {
        Some(reason) => {
            let why = reason.unwrap_or_else(|| failure.to_string());
            ReceivedAnswer::of_failure(OnFailure::Cancel, &why)
        }
        None => ReceivedAnswer::of_failure(hook.on_failure, &failure.to_string()),
    }
}

/// Finds an object with `"cancel": true` in an output that is not an answer, and returns its `reason` if it has one.
/// The object is alone on a line, or it starts at the first line that begins with a brace. Text after the object is
/// ignored, and its end may be missing.
fn veto_in(output: &[u8]) -> Option<Option<String>> {
    let mut from = 0;
    let mut is_first = true;
    for line in output.split_inclusive(|byte| *byte == b'\n') {
        let text = line.trim_ascii_start();
        let begin = from + (line.len() - text.len());
        from += line.len();
        if !text.starts_with(b"{") {
            continue;
        }
        let text = match std::mem::take(&mut is_first) {
            true => output.get(begin..).unwrap_or_default(),
            false => text,
        };
        if let Some(reason) = veto(text) {
            return Some(reason);
        }
    }
    None
}

/// Like [`veto_in`], for an object at the beginning of the text.
fn veto(text: &[u8]) -> Option<Option<String>> {
    let mut members = Members::open(text, 0).ok()?;
    let (mut cancels, mut reason) = (false, None);
    while let Ok(Some(member)) = members.next_member() {
        let value = part(text, member.value.clone());
        cancels |= member.is(text, "cancel") && value == b"true";
        if member.is(text, "reason") {
            reason = json::string(value).map(Cow::into_owned);
        }
    }
    cancels.then_some(reason)
}

/// The answer of a hook: an object as in `answer_event`, or nothing.
fn answer_of(output: &[u8], event: BeforeEvent) -> std::result::Result<wire::EventAnswer, Failure> {
    if let b"" | b"null" | b"[]" = output.trim_ascii() {
        return Ok(wire::EventAnswer::default());
    }
    let mut answer: wire::EventAnswer =
        serde_json::from_slice(output).map_err(|error| Failure::NotAnAnswer {
            line: error.line(),
            column: error.column(),
        })?;
    // A long reason is cut, so that the cancel counts.
    if let Some(reason) = &mut answer.reason
        && let Some((end, _)) = reason.char_indices().nth(wire::MOST_REASON_CHARACTERS)
    {
        reason.truncate(end);
    }
    answer.check(event).map_err(Failure::Refused)?;
    check_stored(&answer, "").map_err(Failure::Refused)?;
    Ok(answer)
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Program(failure) => failure.fmt(f),
            Failure::NotAnAnswer { line, column } => {
                write!(
                    f,
                    "its output is not an answer (line {line}, column {column})"
                )
            }
            Failure::Refused(error) => f.write_str(&error.message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancel_is_found_in_any_output() {
        let because = Some(Some("building".to_owned()));
        for output in [
            r#"{"cancel":true,"reason":"building"}"#,
            "checking …\n{\"cancel\":true,\"reason\":\"building\"}\ndone\n",
            "checking …\n  {\n  \"reason\": \"building\",\n  \"cancel\": true\n}\n",
            r#"{"cancel":true,"reason":"building","#,
            r#"{"cancel":false,"reason":"building","cancel":true}"#,
            "{}\n{\"reason\":\"building\",\"c\\u0061ncel\":true} trailing",
        ] {
            assert_eq!(veto_in(output.as_bytes()), because, "{output}");
        }
        for output in [
            "",
            "{}",
            "cancel: true",
            r#"{"cancel":false}"#,
            r#"{"cancel":"true"}"#,
            r#"{"summary":{"cancel":true}}"#,
            r#"[{"cancel":true}]"#,
        ] {
            assert_eq!(veto_in(output.as_bytes()), None, "{output}");
        }
        assert_eq!(veto_in(br#"{"cancel":true,"reason":7}"#), Some(None));
    }
}
