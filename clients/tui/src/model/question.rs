//! A question of another client, and the answer so far (protocol.md §13).

use super::input::Input;
use crate::text;
use std::time::Duration;

/// A question that is open, or waits to be opened.
#[derive(Debug)]
pub struct Question {
    pub event_id: String,
    /// The client that asks.
    pub by: String,
    pub title: String,
    /// More text about the question; may be empty.
    pub message: String,
    /// The hint in an empty field.
    pub placeholder: String,
    pub field: AnswerField,
    /// The time, since the program's start, at which the question took the focus by itself; `None` if
    /// the user opened it.
    pub appeared: Option<Duration>,
}

/// The user's answer to a question. Its text is not sanitized.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserAnswer {
    Text(String),
    Choice(bool),
    Dismissed,
}

/// The field in which the user answers.
#[derive(Debug)]
pub enum AnswerField {
    /// A choice between these; `selected` is an index.
    Choice {
        choices: Vec<Choice>,
        selected: usize,
    },
    /// A text of one line.
    Line(Input),
    /// A text of several lines.
    Text(Input),
}

/// One of the choices.
#[derive(Debug, Clone)]
pub struct Choice {
    /// The sanitized text.
    pub shown: String,
    pub answer: UserAnswer,
}

impl AnswerField {
    /// The choices of a `select`; the choice `initial` is selected.
    pub fn options(options: Vec<String>, initial: Option<&str>) -> Self {
        let selected = options.iter().position(|it| Some(&**it) == initial);
        let choices = options.into_iter().map(|option| Choice {
            shown: text::line(&option),
            answer: UserAnswer::Text(option),
        });
        Self::Choice {
            choices: choices.collect(),
            selected: selected.unwrap_or(0),
        }
    }

    /// The choices of a `confirm`; `initial` is `true` or `false`.
    pub fn yes_or_no(initial: Option<&str>) -> Self {
        let choice = |shown: &str, answer| Choice {
            shown: shown.to_owned(),
            answer: UserAnswer::Choice(answer),
        };
        Self::Choice {
            choices: vec![choice("Yes", true), choice("No", false)],
            selected: usize::from(initial == Some("false")),
        }
    }

    /// Returns the answer in the field; `None` if there are no choices.
    pub fn answer(&self) -> Option<UserAnswer> {
        match self {
            Self::Choice { choices, selected } => {
                choices.get(*selected).map(|choice| choice.answer.clone())
            }
            Self::Line(input) | Self::Text(input) => {
                Some(UserAnswer::Text(input.text().to_owned()))
            }
        }
    }

    pub fn input(&mut self) -> Option<&mut Input> {
        match self {
            Self::Choice { .. } => None,
            Self::Line(input) | Self::Text(input) => Some(input),
        }
    }
}
