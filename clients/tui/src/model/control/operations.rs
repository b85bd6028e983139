//! Starts the operations of this program: from a command in the `:` line, from a key, or from a list.

use crate::keys::{Action, Context, Key};
use crate::message::Kind;
use crate::message::{Effect, PagePosition};
use crate::model::Connection;
use crate::model::dialog::{Dialog, FocusOf};
use crate::model::input::Input;
use crate::model::picker::{Picker, PickerKind};
use crate::model::{Model, Screen};
use crate::operation::{ExportFormat, Operation, USAGE_BY, export_of, file_name, import_of};
use crossterm::event::KeyCode;
use std::path::Path;

/// The kind of rows for `usage`, by a typed word; `None` for an unknown word.
fn usage_of(argument: &str) -> Option<&'static str> {
    let wanted = if argument.is_empty() { "day" } else { argument };
    USAGE_BY.into_iter().find(|by| *by == wanted)
}

impl Model {
    /// Runs a command of this program.
    pub(super) fn run_own(&mut self, name: &str, argument: String) -> Vec<Effect> {
        let operation = match name {
            "tree" => return self.tree.go_to(PagePosition::Leaf),
            "branch" => return self.navigate_to_cursor(false),
            "branches" => return self.pick_branch(),
            "name-branch" => return self.name_branch(argument),
            "archive" => return self.archive(),
            "unarchive" => return self.unarchive(),
            "pin" => return self.pin(),
            "archive-session" => return self.archive_session(),
            "btw" => return self.ask_beside(argument),
            "keep" => return self.keep_aside(),
            "show-archived" => return self.show_archived(),
            "pop" => return self.pop(),
            "fork" if argument.is_empty() => return self.pick(PickerKind::Fork),
            "label" => return self.label_as(argument),
            "trash" => return self.pick(PickerKind::Trash),
            "import" => match import_of(&argument) {
                Some(source) => Operation::Import(source),
                None => return self.pick(PickerKind::Import),
            },
            "export" => {
                let (format, path) = export_of(&argument);
                return match format {
                    Some(format) => self.export(format, path),
                    None => self.pick(PickerKind::Export),
                };
            }
            "compact" if argument.is_empty() => return self.ask_focus(FocusOf::Compaction),
            "compact" => Operation::Compact { focus: argument },
            "merge" => return self.merge(argument),
            "cherry-pick" => return self.cherry_pick(),
            "fork" => match self.selected_id() {
                Some(entry) => Operation::Fork { entry },
                None => return Vec::new(),
            },
            "new" if argument.is_empty() => return self.ask_name_of_new(),
            "new" => Operation::Create { name: argument },
            "name" if argument.is_empty() => return self.rename_open(),
            "name" => Operation::Name { name: argument },
            "root" => Operation::Root,
            "stats" => Operation::Stats,
            "usage" => match usage_of(&argument) {
                Some(by) => Operation::Usage { by },
                None => {
                    self.say(format!("usage takes {}.", USAGE_BY.join(", ")));
                    return Vec::new();
                }
            },
            "context" => Operation::Context,
            "moves" => Operation::Moves,
            "web" => Operation::Web,
            "import-report" => Operation::ImportReport,
            "sessions" => return self.show_sessions(),
            "search" => return self.search_all(),
            "help" => return self.help(),
            "quit" => return vec![Effect::Quit],
            _ => return Vec::new(),
        };
        self.operate(operation)
    }

    /// Starts an operation. It is shown as a running command.
    pub(super) fn operate(&mut self, operation: Operation) -> Vec<Effect> {
        let id = self.start_command(operation.name(), Some(operation.clone()));
        vec![Effect::Operate { id, operation }]
    }

    /// Updates the screen after an operation has ended.
    pub(super) fn after_operation(&mut self, operation: &Operation) -> Vec<Effect> {
        match operation {
            operation if operation.moves_leaf() => {
                self.tree.marks.clear();
                self.tree.load(PagePosition::Leaf)
            }
            Operation::Import(_)
            | Operation::Restore { .. }
            | Operation::Tag { .. }
            | Operation::Pin { .. }
            | Operation::ArchiveSession { .. }
                if self.screen == Screen::Sessions =>
            {
                self.sessions.reload()
            }
            operation if operation.changes_branches() => self.tree.reload(),
            _ => Vec::new(),
        }
    }

    pub(super) fn selected_id(&self) -> Option<String> {
        self.tree.selected().map(|row| row.id.clone())
    }

    fn label_as(&mut self, label: String) -> Vec<Effect> {
        if label.is_empty() {
            return self.label_selected();
        }
        let id = self.selected_id();
        id.map(|id| Effect::Label { id, label })
            .into_iter()
            .collect()
    }

    /// Goes to the position before the selected user message. If no user message is selected, shows a list of them.
    pub(super) fn pop(&mut self) -> Vec<Effect> {
        match self.tree.selected() {
            Some(row) if row.kind == Kind::User => self.navigate_to_cursor(true),
            _ => self.pick(PickerKind::Pop),
        }
    }

    pub(super) fn merge(&mut self, focus: String) -> Vec<Effect> {
        let Some(row) = self.tree.selected() else {
            return Vec::new();
        };
        if row.on_active_path {
            self.say("Put the cursor on an entry of another branch, then merge it.");
            return Vec::new();
        }
        let tip = row.id.clone();
        if focus.is_empty() {
            return self.ask_focus(FocusOf::Merge(tip));
        }
        self.operate(Operation::Merge { tip, focus })
    }

    /// Asks the user before entries are copied, since otherwise a single key would write to the session.
    pub(super) fn ask_to_copy(&mut self) -> Vec<Effect> {
        let entries = self.entries_to_copy();
        let marked = self
            .tree
            .marks
            .iter()
            .find(|(id, _)| entries.first() == Some(id));
        let selected = self.tree.selected().map(|row| row.preview.as_str());
        let title = marked.map(|(_, preview)| preview.as_str()).or(selected);
        let title = title.unwrap_or_default().to_owned();
        if !entries.is_empty() {
            self.dialog = Some(Dialog::Copy { entries, title });
        }
        Vec::new()
    }

    /// Copies the entries.
    fn cherry_pick(&mut self) -> Vec<Effect> {
        let entries = self.entries_to_copy();
        match entries.is_empty() {
            true => Vec::new(),
            false => self.operate(Operation::CherryPick { entries }),
        }
    }

    /// Returns the marked entries, or the selected one if none is marked. The entries are in the order of the tree,
    /// if their rows are loaded.
    fn entries_to_copy(&self) -> Vec<String> {
        let mut entries: Vec<String> = self.tree.marks.iter().map(|(id, _)| id.clone()).collect();
        entries.sort_by_key(|id| self.tree.rows.find(|row| row.id == *id));
        if entries.is_empty() {
            entries.extend(self.selected_id());
        }
        entries
    }

    /// Shows what an export of the open session would replace, and then exports it. A session file is whole, so nothing
    /// is shown first. Without a path, the file is in the working directory.
    pub(super) fn export(&mut self, format: ExportFormat, path: Option<&str>) -> Vec<Effect> {
        let Some(session) = &self.session else {
            return Vec::new();
        };
        let title = session.name.as_deref().unwrap_or(&session.id);
        let path = match path {
            Some(path) => path.to_owned(),
            None => file_name(title, format),
        };
        let path = match path.starts_with("~/") {
            // `~/` is replaced when the file is written.
            true => path,
            false => Path::new(&self.settings.cwd)
                .join(path)
                .to_string_lossy()
                .into_owned(),
        };
        match format {
            ExportFormat::Jsonl => self.operate(Operation::Export {
                format,
                path,
                keep: Vec::new(),
                replace: Vec::new(),
            }),
            _ => {
                self.dialog = Some(Dialog::Picker(Picker::of_review(format, path)));
                vec![Effect::ListItems(PickerKind::Review { format })]
            }
        }
    }

    pub(super) fn ask_name_of_new(&mut self) -> Vec<Effect> {
        self.dialog = Some(Dialog::Create {
            input: Input::line(""),
        });
        Vec::new()
    }

    fn rename_open(&mut self) -> Vec<Effect> {
        if let Some(session) = &self.session {
            self.dialog = Some(Dialog::Rename {
                session_id: session.id.clone(),
                input: Input::line(session.name.as_deref().unwrap_or_default()),
            });
        }
        Vec::new()
    }

    /// Asks the user what the summary must keep. If there is no summarizer, the focus can be typed as a command, so
    /// that a hook or another client can write the summary.
    pub(super) fn ask_focus(&mut self, focus_of: FocusOf) -> Vec<Effect> {
        if let Connection::Up(server) = &self.link
            && server.summarizer.is_none()
        {
            let command = match focus_of {
                FocusOf::Compaction => ":compact",
                FocusOf::Merge(_) => ":merge",
            };
            self.say(format!(
                "No summarizer is configured. {command} FOCUS asks hooks and other clients for a summary."
            ));
            return Vec::new();
        }
        self.dialog = Some(Dialog::Focus {
            focus_of,
            input: Input::lines(""),
        });
        Vec::new()
    }

    /// Handles a key while the user types the focus of a compaction or merge.
    pub(super) fn key_in_focus(&mut self, key: Key) -> Vec<Effect> {
        let columns = crate::view::question_columns(self.size);
        let action = self.settings.keymap.action(Context::Editor, key);
        let Some(Dialog::Focus { focus_of, input }) = &mut self.dialog else {
            return Vec::new();
        };
        if key.is(KeyCode::Esc) {
            self.dialog = None;
        } else if action == Some(Action::Send) {
            let focus = input.text().trim().to_owned();
            let operation = match focus_of.clone() {
                FocusOf::Compaction => Operation::Compact { focus },
                FocusOf::Merge(tip) => Operation::Merge { tip, focus },
            };
            self.dialog = None;
            return self.operate(operation);
        } else {
            edit(input, key, action, columns);
        }
        Vec::new()
    }
}

/// Handles a key in a text of several lines. The text is drawn in `columns` columns.
pub(super) fn edit(input: &mut Input, key: Key, action: Option<Action>, columns: usize) {
    match key.code() {
        _ if action == Some(Action::Newline) => input.insert("\n"),
        KeyCode::Up => input.vertical(columns, false),
        KeyCode::Down => input.vertical(columns, true),
        _ => {
            input.key(key);
        }
    }
}
