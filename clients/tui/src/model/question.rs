//! A question of another client, and the answer so far (protocol.md §13).

use super::input::Input;
use crate::text;
use std::time::Duration;

/// A question, open or waiting to be opened.
#[derive(Debug)]
pub struct Question {
    pub event_id: String,
    /// The client that asks.
    pub by: String,
    pub title: String,
    /// More about it; empty if there is no more.
    pub message: String,
    /// A hint in an empty field.
    pub placeholder: String,
    pub field: AnswerField,
    /// When it took the focus by itself, since the program's start; `None` if the user has opened it.
    pub appeared: Option<Duration>,
}

/// The user's answer to a question; its text is not sanitized.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserAnswer {
    Text(String),
    Choice(bool),
    Dismissed,
}

/// The field for the answer.
#[derive(Debug)]
pub enum AnswerField {
    /// One of these; `selected` is an index.
    Choice {
        choices: Vec<Choice>,
        selected: usize,
    },
    /// A line.
    Line(Input),
    /// A longer text.
    Text(Input),
}

/// A choice.
#[derive(Debug, Clone)]
pub struct Choice {
    /// Sanitized.
    pub shown: String,
    pub answer: UserAnswer,
}

impl AnswerField {
    /// The choices of a `select`; `initial` is selected.
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

    /// Returns the answer in the field; `None` without choices.
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
