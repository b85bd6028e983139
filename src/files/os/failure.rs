//! The reasons why a program of the user gave no answer.

use std::time::Duration;
use std::{fmt, io};

/// The reason why a program gave no answer.
#[derive(Debug)]
pub enum Failure {
    NotStarted(io::Error),
    TimedOut(Duration),
    /// The program wrote more bytes than this limit.
    TooMuchOutput(usize),
    Unreadable(io::Error),
    /// The program exited with this code; `None` if a signal ended it.
    Exited(Option<i32>),
    /// Another user could change one of the program's files. The text says which file, and why.
    Unsafe(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::NotStarted(error) => write!(f, "it could not be started: {error}"),
            Failure::TimedOut(timeout) => write!(f, "it took longer than {timeout:?}"),
            Failure::TooMuchOutput(max) => write!(f, "it wrote more than {max} bytes"),
            Failure::Unreadable(error) => write!(f, "its output could not be read: {error}"),
            Failure::Exited(Some(code)) => write!(f, "it exited with code {code}"),
            Failure::Exited(None) => f.write_str("it was ended by a signal"),
            Failure::Unsafe(why) => f.write_str(why),
        }
    }
}
