//! The keys of the `:` line, and commands.

use crate::keys::Key;
use crate::message::{CommandOutput, Daemon, Draft, Effect, Failure};
use crate::model::command::{CommandLine, RunningCommand};
use crate::model::dialog::Dialog;
use crate::model::editor::Editor;
use crate::model::{Model, Screen};
use crate::operation::Operation;
use crossterm::event::KeyCode;

impl Model {
    /// Opens the `:` line, and requests the commands of other clients.
    pub(super) fn begin_command(&mut self) -> Vec<Effect> {
        let has_session = self.session.is_some() && self.screen == Screen::Tree;
        self.command_line = Some(CommandLine::new(has_session));
        vec![Effect::ListCommands]
    }

    pub(super) fn key_in_command_line(&mut self, key: Key) -> Vec<Effect> {
        let Some(line) = &mut self.command_line else {
            return Vec::new();
        };
        match key.code() {
            KeyCode::Esc => self.command_line = None,
            KeyCode::Backspace if line.input.is_empty() => self.command_line = None,
            KeyCode::Enter => return self.run_typed(),
            KeyCode::Tab if key.modifiers().is_empty() => line.complete(),
            KeyCode::Up => line.select(false),
            KeyCode::Down => line.select(true),
            _ => {
                line.input.key(key);
                line.selected = None;
            }
        }
        Vec::new()
    }

    fn run_typed(&mut self) -> Vec<Effect> {
        let Some(line) = &mut self.command_line else {
            return Vec::new();
        };
        if line.name().is_empty() && line.selected.is_none() {
            self.command_line = None;
            return Vec::new();
        }
        let Some(command) = line.chosen().cloned() else {
            let name = crate::text::line(line.name());
            self.say_error(
                match self.command_line.as_ref().is_some_and(|it| it.listing) {
                    true => "One moment: the commands are being listed.".to_owned(),
                    false => format!("There is no command “{name}”."),
                },
            );
            return Vec::new();
        };
        // If the name was not typed in full, the user may still want to type an argument.
        let needs_argument = !command.argument.is_empty() && !command.argument.starts_with('[');
        if command.name != line.name() && needs_argument {
            line.complete();
            return Vec::new();
        }
        let argument = line.argument().to_owned();
        self.command_line = None;
        if command.by.is_none() {
            return self.run_own(&command.name, argument);
        }
        let id = self.start_command(&command.name, None);
        vec![Effect::RunCommand {
            id,
            name: command.name,
            argument,
        }]
    }

    /// Shows a command as running. Returns its number, which its end also has.
    pub(super) fn start_command(&mut self, name: &str, operation: Option<Operation>) -> u64 {
        self.commands += 1;
        self.running = Some(RunningCommand {
            id: self.commands,
            name: name.to_owned(),
            began: self.now,
            operation,
            progress: None,
        });
        self.commands
    }

    pub(super) fn key_while_running(&mut self, key: Key) -> Vec<Effect> {
        if !key.is(KeyCode::Esc) {
            return Vec::new();
        }
        self.running = None;
        self.say("Cancelled the command.");
        vec![Effect::StopCommand]
    }

    /// Applies the daemon's answers about commands.
    pub(in crate::model) fn command_answer(&mut self, answer: Daemon) -> Vec<Effect> {
        match answer {
            Daemon::Commands(Ok(commands)) => {
                if let Some(line) = &mut self.command_line {
                    line.arrived(commands);
                }
                Vec::new()
            }
            Daemon::Commands(Err(failure)) => {
                if let Some(line) = &mut self.command_line {
                    line.arrived(Vec::new());
                }
                self.fail("The commands cannot be listed", failure)
            }
            Daemon::CommandEnded { id, result } => self.command_ended(id, result),
            _ => Vec::new(),
        }
    }

    fn command_ended(&mut self, id: u64, result: Result<CommandOutput, Failure>) -> Vec<Effect> {
        let Some(command) = self.running.take_if(|it| it.id == id) else {
            return Vec::new();
        };
        let ended = match result {
            Ok(ended) => ended,
            Err(failure) => return self.fail(&format!("{} has failed", command.name), failure),
        };
        let has_prompt = ended.prompt.is_some();
        if let Some(prompt) = ended.prompt {
            self.put_into_draft(&prompt);
        }
        let columns = usize::from(self.size.0);
        let operation = command.operation.as_ref();
        let back = operation.filter(|_| ended.has_inverse);
        let back = back.and_then(|operation| self.inverse_of(operation));
        let output = match (ended.output, back) {
            (Some(text), Some(back)) => Some(format!("{text} {back}")),
            (text, _) => text,
        };
        match output {
            Some(text) if text.contains('\n') || crate::text::width(&text) > columns => {
                self.dialog = Some(Dialog::Pager {
                    title: command.name,
                    text,
                    top: 0,
                });
            }
            Some(text) if !text.is_empty() => self.say(text),
            _ if has_prompt => {}
            _ => self.say(format!("{} has ended.", command.name)),
        }
        match command.operation {
            Some(operation) => self.after_operation(&operation),
            None => Vec::new(),
        }
    }

    /// Opens the editor. The text comes after the text of an earlier draft.
    fn put_into_draft(&mut self, text: &str) {
        let mut draft = self.kept_draft.take().unwrap_or_else(|| Draft {
            expected_leaf: self.tree.leaf.clone(),
            ..Draft::default()
        });
        if !draft.text.trim().is_empty() {
            draft.text.push_str("\n\n");
        }
        draft.text.push_str(text);
        match self.session.is_some() && self.screen == Screen::Tree {
            true => self.editor = Some(Editor::new(draft)),
            false => {
                self.kept_draft = Some(draft);
                self.say("The command has written a draft; it is in the tree.");
            }
        }
    }
}
