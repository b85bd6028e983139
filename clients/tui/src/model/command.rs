//! The `:` line with its completion, and a running command (protocol.md §12).

use super::input::Input;
use crate::message::Command;
use crate::operation::Operation;
use std::time::Duration;

/// A command of this program: name, argument, about.
type Own = (&'static str, &'static str, &'static str);

/// Commands that need no open session.
const OWN: [Own; 6] = [
    ("new", "[NAME]", "create a session"),
    (
        "import",
        "[TOOL|PATH]",
        "import conversations of other tools",
    ),
    ("trash", "", "restore a deleted session"),
    ("web", "", "the address of the page for browsers"),
    ("help", "", "all keys"),
    ("quit", "", "quit"),
];

/// Commands about the open session.
const OF_SESSION: [Own; 18] = [
    ("tree", "", "to the leaf"),
    ("branch", "", "go to the selected entry"),
    ("branches", "", "list the branches"),
    ("pop", "", "edit a user message again"),
    ("label", "TEXT", "label the selected entry"),
    (
        "fork",
        "[here]",
        "fork at a user message, into a session that is opened",
    ),
    (
        "compact",
        "[FOCUS]",
        "summarize the older part of the context",
    ),
    (
        "merge",
        "[FOCUS]",
        "append a summary of the selected branch at the leaf",
    ),
    (
        "cherry-pick",
        "",
        "copy the marked entries, or the selected one, to the leaf",
    ),
    ("root", "", "move the leaf to before the first message"),
    (
        "export",
        "[FORMAT] [PATH]",
        "write the session as html, markdown, jsonl or text",
    ),
    ("name", "[NAME]", "name this session"),
    ("stats", "", "messages, tokens and cost"),
    ("context", "", "the messages that the model sees"),
    ("moves", "", "the moves of the leaf"),
    ("import-report", "", "the imports that changed this session"),
    ("sessions", "", "the list of sessions"),
    ("search", "", "search the text of all sessions"),
];

/// The line in which a command is typed.
#[derive(Debug, Default)]
pub struct CommandLine {
    pub input: Input,
    commands: Vec<Command>,
    /// Whether the commands of other clients are still being listed.
    pub listing: bool,
    /// The selected candidate, once one was selected.
    pub selected: Option<usize>,
}

/// A running command.
#[derive(Debug)]
pub struct RunningCommand {
    pub id: u64,
    pub name: String,
    /// Time since the program's start.
    pub began: Duration,
    /// The operation, if the command is one of this program.
    pub operation: Option<Operation>,
    /// How far the operation has come, once the daemon has said so.
    pub progress: Option<WorkProgress>,
}

/// How far an operation has come: in bytes read, or in characters of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkProgress {
    pub done: u64,
    pub total: Option<u64>,
}

impl RunningCommand {
    /// Returns whether to show it: most commands end before it could be read.
    pub fn is_shown(&self, now: Duration) -> bool {
        now.saturating_sub(self.began) > Duration::from_millis(400)
    }

    /// Takes the progress of the daemon's work on the running operation.
    pub fn has_come_to(&mut self, progress: WorkProgress) {
        if self.operation.as_ref().is_some_and(Operation::has_progress) {
            self.progress = Some(progress);
        }
    }

    /// Adds a piece of the summary of a merge.
    pub fn has_written(&mut self, delta: &str) {
        if matches!(self.operation, Some(Operation::Merge { .. })) {
            let before = self.progress.map_or(0, |progress| progress.done);
            let done = before + delta.chars().count() as u64;
            self.progress = Some(WorkProgress { done, total: None });
        }
    }
}

impl CommandLine {
    /// Begins with the program's own commands.
    pub fn new(has_session: bool) -> Self {
        let of_session = OF_SESSION.iter().filter(|_| has_session);
        let own = of_session
            .chain(&OWN)
            .map(|(name, argument, about)| Command {
                name: (*name).to_owned(),
                argument: (*argument).to_owned(),
                about: (*about).to_owned(),
                by: None,
            });
        Self {
            commands: own.collect(),
            listing: true,
            ..Self::default()
        }
    }

    /// Adds the commands of other clients.
    pub fn arrived(&mut self, commands: Vec<Command>) {
        self.listing = false;
        self.commands.extend(commands);
        self.selected = None;
    }

    /// Returns the name and the argument as typed. A slash before the name is ignored.
    fn parts(&self) -> (&str, &str) {
        let text = self.input.text().trim_start();
        let text = text.strip_prefix('/').unwrap_or(text);
        text.split_once(char::is_whitespace).unwrap_or((text, ""))
    }

    pub fn name(&self) -> &str {
        self.parts().0
    }

    pub fn argument(&self) -> &str {
        self.parts().1.trim()
    }

    /// Returns the commands that begin as typed; only the command itself once its argument is typed.
    pub fn candidates(&self) -> Vec<&Command> {
        let name = self.name();
        let has_argument = self.input.text().trim_start().contains(char::is_whitespace);
        let fits = |it: &&Command| match has_argument {
            true => it.name == name,
            false => it.name.starts_with(name),
        };
        self.commands.iter().filter(fits).collect()
    }

    /// Returns the command to run: the one typed, else the selected one, else the only candidate.
    pub fn chosen(&self) -> Option<&Command> {
        let candidates = self.candidates();
        let typed = candidates.iter().find(|it| it.name == self.name());
        let selected = || self.selected.and_then(|at| candidates.get(at));
        let only = || candidates.first().filter(|_| candidates.len() == 1);
        typed.or_else(selected).or_else(only).copied()
    }

    /// Completes the name by the selected candidate, else by the first.
    pub fn complete(&mut self) {
        let candidates = self.candidates();
        let Some(found) = candidates.get(self.selected.unwrap_or(0)) else {
            return;
        };
        if found.name != self.name() || self.argument().is_empty() {
            self.input = Input::line(&format!("{} ", found.name));
            self.selected = None;
        }
    }

    /// Selects the next candidate, or the one before.
    pub fn select(&mut self, forward: bool) {
        let count = self.candidates().len();
        self.selected = match (self.selected, forward) {
            _ if count == 0 => None,
            (None, true) => Some(0),
            (None, false) => Some(count - 1),
            (Some(at), true) => Some((at + 1) % count),
            (Some(at), false) => Some((at + count - 1) % count),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The daemon refuses these names to other clients (protocol.md §12.1).
    #[test]
    fn the_own_commands_are_those_of_the_list_shared_with_the_daemon() {
        let shared = include_str!("../../../../schema/commands.txt");
        let own = OWN.iter().chain(&OF_SESSION);
        let mut names: Vec<&str> = own.map(|(name, ..)| *name).collect();
        names.sort_unstable();
        assert_eq!(names, shared.lines().collect::<Vec<_>>());
    }
}
