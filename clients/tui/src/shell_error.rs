//! The errors that the program prints to a terminal, with their exit codes. They have the form of
//! the errors of treelined's commands.

use crate::text;
use std::fmt;

/// The exit codes, which are the same as for treelined's commands.
pub const FAILED: u8 = 1;
pub const USAGE: u8 = 2;
pub const NOT_FOUND: u8 = 3;

/// An error. It is printed in the form of the errors of treelined's commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellError {
    /// The message, sanitized. Lines after the first one list alternatives.
    pub message: String,
    /// The remedy: a sentence or a command. Empty if there is nothing to try.
    pub remedy: String,
    pub code: u8,
}

impl ShellError {
    pub fn new(code: u8, message: impl AsRef<str>, remedy: impl Into<String>) -> Self {
        let lines: Vec<String> = message.as_ref().split('\n').map(text::line).collect();
        Self {
            message: lines.join("\n"),
            remedy: remedy.into(),
            code,
        }
    }

    /// The error for wrong arguments.
    pub fn of_usage(error: &clap::Error) -> Self {
        let report = error.render().to_string();
        let report = report.strip_prefix("error: ").unwrap_or(&report);
        let message = report.split("\n\n").next().unwrap_or(report);
        Self::new(USAGE, message, "treelined-tui --help")
    }
}

impl From<String> for ShellError {
    fn from(message: String) -> Self {
        Self::new(FAILED, message, "")
    }
}

impl fmt::Display for ShellError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        match self.remedy.as_str() {
            "" => Ok(()),
            remedy => write!(f, "\n  try: {remedy}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Args;
    use clap::Parser;

    #[test]
    fn wrong_arguments_have_a_message_and_a_remedy() {
        let error = Args::try_parse_from(["treelined-tui", "--themes"]).unwrap_err();
        let error = ShellError::of_usage(&error);
        assert_eq!(
            (error.to_string().as_str(), error.code),
            (
                "error: unexpected argument '--themes' found\n  try: treelined-tui --help",
                USAGE
            )
        );
        let error = ShellError::from("a\u{1b}[2J".to_owned());
        assert_eq!(
            (error.to_string().as_str(), error.code),
            ("error: a␛[2J", FAILED)
        );
    }
}
