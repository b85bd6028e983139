//! The `:` line with its completion, and a running command (protocol.md §12).

use super::input::Input;
use crate::message::Command;
use std::time::Duration;

/// Commands of this program: name, argument, about.
const OWN: [(&str, &str, &str); 6] = [
    ("tree", "", "to the leaf"),
    ("branch", "", "go to the selected entry"),
    ("pop", "", "edit the selected user message again"),
    ("label", "TEXT", "label the selected entry"),
    (
        "fork",
        "",
        "fork at the selected entry, into a session that is opened",
    ),
    (
        "compact",
        "[FOCUS]",
        "summarize the older part of the context",
    ),
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
}

impl RunningCommand {
    /// Returns whether to show it: most commands end before it could be read.
    pub fn is_shown(&self, now: Duration) -> bool {
        now.saturating_sub(self.began) > Duration::from_millis(400)
    }
}

impl CommandLine {
    /// Begins with the program's own commands, which need an open session.
    pub fn new(has_session: bool) -> Self {
        let own = OWN.iter().filter(|_| has_session);
        let own = own.map(|(name, argument, about)| Command {
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
