//! Questions and messages to a person (protocol.md §13): the limits of their texts, and the answers that fit.

use treelined_core::error::{Error, Result};
use treelined_wire::{AskKind, AskUserParams, AskingEvent, EventAnswer, EventReply, UserValue};

const MAX_TITLE_CHARS: usize = 500;
const MAX_PLACEHOLDER_CHARS: usize = 500;
const MAX_MESSAGE_BYTES: usize = 64 << 10;
const MAX_INITIAL_BYTES: usize = 1 << 20;
const MAX_OPTIONS: usize = 1000;
/// The most bytes of all options together.
const MAX_OPTIONS_BYTES: usize = 64 << 10;

/// The kinds of questions with these names. Unknown names are ignored.
pub(crate) fn kinds(names: &[String]) -> Vec<AskKind> {
    let kind = |name: &String| {
        Some(match name.as_str() {
            "select" => AskKind::Select,
            "confirm" => AskKind::Confirm,
            "input" => AskKind::Input,
            "editor" => AskKind::Editor,
            _ => return None,
        })
    };
    names.iter().filter_map(kind).collect()
}

/// Fails with `invalidParams` if the question cannot be asked.
pub(crate) fn check(params: &AskUserParams) -> Result<()> {
    if params.title.trim().is_empty() {
        return Err(Error::invalid_params("title", "must not be blank"));
    }
    check_chars("title", Some(&params.title), MAX_TITLE_CHARS)?;
    check_chars(
        "placeholder",
        params.placeholder.as_ref(),
        MAX_PLACEHOLDER_CHARS,
    )?;
    check_bytes("message", params.message.as_ref(), MAX_MESSAGE_BYTES)?;
    check_bytes("initial", params.initial.as_ref(), MAX_INITIAL_BYTES)?;
    let options = params.options.as_deref().unwrap_or_default();
    if params.kind == AskKind::Select && options.is_empty() {
        return Err(Error::invalid_params(
            "options",
            "a select needs at least one",
        ));
    }
    let bytes: usize = options.iter().map(String::len).sum();
    if options.len() > MAX_OPTIONS || bytes > MAX_OPTIONS_BYTES {
        let reason =
            format!("at most {MAX_OPTIONS} options, of {MAX_OPTIONS_BYTES} bytes together");
        return Err(Error::invalid_params("options", reason));
    }
    Ok(())
}

/// Fails with `invalidParams` if the message is too long.
pub(crate) fn check_message(message: &String) -> Result<()> {
    check_bytes("message", Some(message), MAX_MESSAGE_BYTES)
}

fn check_chars(field: &str, text: Option<&String>, max: usize) -> Result<()> {
    match text.is_some_and(|text| text.len() > max && text.chars().count() > max) {
        true => Err(Error::invalid_params(
            field,
            format!("must have at most {max} characters"),
        )),
        false => Ok(()),
    }
}

fn check_bytes(field: &str, text: Option<&String>, max: usize) -> Result<()> {
    match text.is_some_and(|text| text.len() > max) {
        true => Err(Error::invalid_params(
            field,
            format!("must have at most {max} bytes"),
        )),
        false => Ok(()),
    }
}

/// The answers that fit a question.
#[derive(Debug, Clone)]
pub(crate) struct FittingAnswers {
    pub kind: AskKind,
    /// The choices of a `select`.
    pub options: Vec<String>,
}

impl FittingAnswers {
    /// Fails with `invalidParams` if the reply does not answer the question.
    pub(crate) fn check(&self, reply: &EventReply) -> Result<()> {
        let answer = match reply {
            EventReply::Answer(answer) => answer,
            EventReply::Failure(_) | EventReply::Extend(_) => {
                return Err(Error::invalid_params(
                    "error",
                    "answers command_invoked only",
                ));
            }
        };
        answer.check(AskingEvent::UserAsked)?;
        self.check_answer(answer)
    }

    fn check_answer(&self, answer: &EventAnswer) -> Result<()> {
        let of_value = |reason: &str| Err(Error::invalid_params("result.value", reason));
        match (&answer.value, answer.dismissed) {
            (None, Some(true)) => Ok(()),
            (None, _) => of_value("value or dismissed is required"),
            (Some(_), Some(true)) => of_value("stands instead of dismissed, not beside it"),
            (Some(value), _) => match (self.kind, value) {
                (AskKind::Confirm, UserValue::Choice(_)) => Ok(()),
                (AskKind::Confirm, UserValue::Text(_)) => of_value("must be true or false"),
                (_, UserValue::Choice(_)) => of_value("must be a text"),
                (AskKind::Select, UserValue::Text(text)) if !self.options.contains(text) => {
                    of_value("must be one of the options")
                }
                (_, UserValue::Text(_)) => Ok(()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(json: &str) -> AskUserParams {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn the_texts_of_a_question_are_limited() {
        check(&question(r#"{"kind":"input","title":"Name?"}"#)).unwrap();
        let long = "ä".repeat(501);
        let large = "x".repeat((64 << 10) + 1);
        let many = format!("[{}]", vec!["\"x\""; 1001].join(","));
        let huge = "x".repeat((1 << 20) + 1);
        for (json, field) in [
            (r#"{"kind":"input","title":" "}"#.to_owned(), "title"),
            (format!(r#"{{"kind":"input","title":"{long}"}}"#), "title"),
            (
                format!(r#"{{"kind":"input","title":"t","placeholder":"{long}"}}"#),
                "placeholder",
            ),
            (
                format!(r#"{{"kind":"input","title":"t","message":"{large}"}}"#),
                "message",
            ),
            (
                format!(r#"{{"kind":"editor","title":"t","initial":"{huge}"}}"#),
                "initial",
            ),
            (r#"{"kind":"select","title":"t"}"#.to_owned(), "options"),
            (
                r#"{"kind":"select","title":"t","options":[]}"#.to_owned(),
                "options",
            ),
            (
                format!(r#"{{"kind":"select","title":"t","options":{many}}}"#),
                "options",
            ),
            (
                format!(r#"{{"kind":"select","title":"t","options":["{large}"]}}"#),
                "options",
            ),
        ] {
            let error = check(&question(&json)).unwrap_err();
            assert_eq!(error.details.unwrap()["field"], field);
        }
        assert!(check_message(&large).is_err());
    }

    #[test]
    fn an_answer_fits_the_kind_of_the_question() {
        let fits = |kind, result: &str| {
            let fitting = FittingAnswers {
                kind,
                options: vec!["a".to_owned(), "b".to_owned()],
            };
            let answer: EventAnswer = serde_json::from_str(result).unwrap();
            let checked = fitting.check(&EventReply::Answer(Box::new(answer)));
            checked.map_err(|error| error.details.unwrap()["field"].clone())
        };
        let (text, yes) = (r#"{"value":"a"}"#, r#"{"value":true}"#);
        for kind in [AskKind::Select, AskKind::Input, AskKind::Editor] {
            fits(kind, text).unwrap();
            assert_eq!(fits(kind, yes).unwrap_err(), "result.value");
        }
        fits(AskKind::Confirm, yes).unwrap();
        fits(AskKind::Confirm, r#"{"dismissed":true}"#).unwrap();
        for wrong in [
            text,
            "{}",
            r#"{"dismissed":false}"#,
            r#"{"value":true,"dismissed":true}"#,
        ] {
            assert_eq!(
                fits(AskKind::Confirm, wrong).unwrap_err(),
                "result.value",
                "{wrong}"
            );
        }
        assert_eq!(
            fits(AskKind::Select, r#"{"value":"c"}"#).unwrap_err(),
            "result.value"
        );
        assert_eq!(
            fits(AskKind::Input, r#"{"output":"c"}"#).unwrap_err(),
            "result.output"
        );
        assert_eq!(
            fits(AskKind::Input, r#"{"cancel":true}"#).unwrap_err(),
            "result.cancel"
        );
    }
}
