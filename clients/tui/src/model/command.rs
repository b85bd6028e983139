//! The `:` line with its completion, and the running command (protocol.md §12).

use super::input::Input;
use crate::message::{Command, WorkProgress};
use crate::operation::{Operation, USAGE_BY};
use std::time::Duration;

/// A command of this program: its name, its argument, and a description.
type Own = (&'static str, &'static str, &'static str);

/// The commands that need no open session.
const OWN: [Own; 7] = [
    ("new", "[NAME]", "create a session"),
    (
        "import",
        "[TOOL|[--large] PATH]",
        "import conversations of other tools",
    ),
    ("trash", "", "restore a deleted session"),
    ("web", "", "the address of the page for browsers"),
    (
        "usage",
        "[day|model|tool|session|directory]",
        "tokens and cost of all sessions",
    ),
    ("help", "", "all keys"),
    ("quit", "", "quit"),
];

/// The commands about the open session.
const OF_SESSION: [Own; 26] = [
    ("tree", "", "to the leaf"),
    ("branch", "", "go to the selected entry"),
    ("branches", "", "list the branches"),
    ("name-branch", "[NAME]", "name the selected branch"),
    ("archive", "", "put the selected branch away"),
    ("unarchive", "", "bring the selected branch back"),
    ("show-archived", "", "show or hide archived branches"),
    (
        "btw",
        "[QUESTION]",
        "ask a question beside the conversation",
    ),
    ("keep", "", "bring the selected question beside it into it"),
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
    ("pin", "", "pin this session, or unpin it"),
    (
        "archive-session",
        "",
        "archive this session, or bring it back",
    ),
    ("stats", "", "messages, tokens and cost"),
    ("context", "", "the messages that the model sees"),
    ("moves", "", "the moves of the leaf"),
    ("import-report", "", "the imports that changed this session"),
    ("sessions", "", "the list of sessions"),
    ("search", "", "search the text of all sessions"),
];

/// The arguments that commands take, as examples and for completion.
const ARGUMENTS: [(&str, &[&str]); 11] = [
    ("new", &["Plan of the release"]),
    (
        "import",
        &[
            "claude-code",
            "codex",
            "opencode",
            "gemini",
            "goose",
            "pi",
            "~/talks",
        ],
    ),
    ("label", &["the way"]),
    ("name-branch", &["the cache"]),
    ("btw", &["is this documented?"]),
    ("fork", &["here"]),
    ("compact", &["keep the decisions"]),
    ("merge", &["what failed and why"]),
    (
        "export",
        &["html", "markdown", "jsonl", "text", "html ~/talk.html"],
    ),
    ("name", &["A tour"]),
    ("usage", &USAGE_BY),
];

/// The line in which a command is typed.
#[derive(Debug, Default)]
pub struct CommandLine {
    pub input: Input,
    commands: Vec<Command>,
    /// Whether the commands of other clients are still being listed.
    pub listing: bool,
    /// The index of the selected candidate, once the user has selected one.
    pub selected: Option<usize>,
}

/// A running command.
#[derive(Debug)]
pub struct RunningCommand {
    pub id: u64,
    pub name: String,
    /// The time of its start, since the program's start.
    pub began: Duration,
    /// The operation that the command runs, if it is a command of this program.
    pub operation: Option<Operation>,
    /// The progress of the operation, once the daemon has reported it.
    pub progress: Option<WorkProgress>,
}

impl RunningCommand {
    /// Returns whether to show the command. Most commands end before a person could read it.
    pub fn is_shown(&self, now: Duration) -> bool {
        now.saturating_sub(self.began) > Duration::from_millis(400)
    }

    /// Stores the progress that the daemon reports about the running operation.
    pub fn has_come_to(&mut self, progress: WorkProgress) {
        if self.operation.as_ref().is_some_and(Operation::has_progress) {
            self.progress = Some(progress);
        }
    }

    /// Counts a piece of the summary of a merge as progress.
    pub fn has_written(&mut self, delta: &str) {
        if matches!(self.operation, Some(Operation::Merge { .. })) {
            let before = self.progress.map_or(0, |progress| progress.done);
            let done = before + delta.chars().count() as u64;
            self.progress = Some(WorkProgress { done, total: None });
        }
    }
}

impl CommandLine {
    /// Opens the line with the commands of this program.
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

    /// Returns the typed name and the typed argument. A slash before the name is ignored.
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

    /// Returns the commands whose names begin with the typed text. If an argument was typed too, returns only the
    /// command with this name.
    pub fn candidates(&self) -> Vec<&Command> {
        let name = self.name();
        let has_argument = self.input.text().trim_start().contains(char::is_whitespace);
        let fits = |it: &&Command| match has_argument {
            true => it.name == name,
            false => it.name.starts_with(name),
        };
        self.commands.iter().filter(fits).collect()
    }

    /// Returns the arguments of the typed command that begin with the typed text; empty for commands of other
    /// clients.
    pub fn examples(&self) -> Vec<&'static str> {
        let own = |command: &&Command| command.by.is_none();
        let Some(command) = self.chosen().filter(own) else {
            return Vec::new();
        };
        let known = ARGUMENTS.iter().find(|(name, _)| *name == command.name);
        let typed = self.argument();
        let fits = |example: &&&str| example.starts_with(typed) && **example != typed;
        known.map_or_else(Vec::new, |(_, all)| {
            all.iter().filter(fits).copied().collect()
        })
    }

    /// Returns the command to run: the typed one, else the selected one, else the only candidate.
    pub fn chosen(&self) -> Option<&Command> {
        let candidates = self.candidates();
        let typed = candidates.iter().find(|it| it.name == self.name());
        let selected = || self.selected.and_then(|at| candidates.get(at));
        let only = || candidates.first().filter(|_| candidates.len() == 1);
        typed.or_else(selected).or_else(only).copied()
    }

    /// Completes the name to the selected candidate, or else to the first one. If the name is complete, completes the
    /// argument to the first example.
    pub fn complete(&mut self) {
        let has_name = self
            .chosen()
            .is_some_and(|command| command.name == self.name());
        let ends_name = self.input.text().ends_with(char::is_whitespace);
        if has_name && (ends_name || !self.argument().is_empty()) {
            if let Some(example) = self.examples().first() {
                self.input = Input::line(&format!("{} {example}", self.name()));
            }
            return;
        }
        let candidates = self.candidates();
        let Some(found) = candidates.get(self.selected.unwrap_or(0)) else {
            return;
        };
        if found.name != self.name() || self.argument().is_empty() {
            self.input = Input::line(&format!("{} ", found.name));
            self.selected = None;
        }
    }

    /// Selects the next or the previous candidate.
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

    /// The form of an argument was once shown nowhere.
    #[test]
    fn arguments_have_examples_that_are_completed() {
        let mut line = CommandLine::new(true);
        let mut completed = |typed: &str| {
            line.input = Input::line(typed);
            let examples = line.examples().join("|");
            line.complete();
            (line.input.text().to_owned(), examples)
        };
        let formats = "html|markdown|jsonl|text|html ~/talk.html";
        assert_eq!(completed("exp"), ("export ".into(), formats.into()));
        assert_eq!(completed("export "), ("export html".into(), formats.into()));
        assert_eq!(completed("export m").0, "export markdown");
        assert_eq!(completed("export markdown").0, "export markdown");
        assert_eq!(completed("export my file").0, "export my file");
        assert_eq!(completed("stats "), ("stats ".into(), String::new()));
        let of = |name: &str| OWN.iter().chain(&OF_SESSION).find(|(own, ..)| *own == name);
        for (name, _) in ARGUMENTS {
            assert_ne!(of(name).unwrap().1, "", "{name}");
        }
    }

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
