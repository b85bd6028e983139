//! Names, archives and brings back branches (protocol.md §3.20).

use crate::keys::Action;
use crate::message::Effect;
use crate::model::Model;
use crate::model::dialog::Dialog;
use crate::model::input::Input;
use crate::operation::Operation;

impl Model {
    /// If the cursor is on a row of several branches, opens this row, since no single branch is selected. Returns the
    /// effects; `None` for any other row.
    fn open_several(&mut self) -> Option<Vec<Effect>> {
        let several = self.tree.selected().is_some_and(|row| row.branches > 1);
        several.then(|| {
            self.say("Several branches are here: choose one of them.");
            self.tree.open_selected()
        })
    }

    /// Names the branch at the cursor. If `name` is empty, asks the user for it.
    pub(super) fn name_branch(&mut self, name: String) -> Vec<Effect> {
        if let Some(effects) = self.open_several() {
            return effects;
        }
        let Some(entry) = self.selected_id() else {
            return Vec::new();
        };
        if !name.is_empty() {
            return self.operate(Operation::NameBranch { entry, name });
        }
        let input = Input::line("");
        self.dialog = Some(Dialog::NameBranch { entry, input });
        Vec::new()
    }

    /// Asks a question beside the conversation. If `question` is empty, asks the user for it.
    pub(super) fn ask_beside(&mut self, question: String) -> Vec<Effect> {
        if !question.is_empty() {
            return self.operate(Operation::Aside { question });
        }
        self.dialog = Some(Dialog::Aside {
            input: Input::line(""),
        });
        Vec::new()
    }

    /// Brings the background branch at the cursor into the conversation.
    pub(super) fn keep_aside(&mut self) -> Vec<Effect> {
        if let Some(effects) = self.open_several() {
            return effects;
        }
        match self.selected_id() {
            Some(entry) => self.operate(Operation::Keep { entry }),
            None => Vec::new(),
        }
    }

    /// Archives the branch at the cursor, or brings it back if it is archived.
    pub(super) fn archive_or_bring_back(&mut self) -> Vec<Effect> {
        match self.tree.selected() {
            Some(row) if row.is_archived && row.branches < 2 => self.unarchive(),
            _ => self.archive(),
        }
    }

    /// Archives the branch at the cursor. If the leaf must move out of it, asks the user first.
    pub(super) fn archive(&mut self) -> Vec<Effect> {
        if let Some(effects) = self.open_several() {
            return effects;
        }
        let Some(row) = self.tree.selected() else {
            return Vec::new();
        };
        let (entry, title) = (row.id.clone(), row.preview.clone());
        if !row.on_active_path {
            return self.operate(Operation::Archive { entry });
        }
        self.dialog = Some(Dialog::Archive { entry, title });
        Vec::new()
    }

    /// Brings the branch at the cursor back.
    pub(super) fn unarchive(&mut self) -> Vec<Effect> {
        if let Some(effects) = self.open_several() {
            return effects;
        }
        match self.selected_id() {
            Some(entry) => self.operate(Operation::Unarchive { entry }),
            None => Vec::new(),
        }
    }

    /// Shows archived branches, or hides them.
    pub(super) fn show_archived(&mut self) -> Vec<Effect> {
        if self.tree.rows.archived_branches() == 0 && !self.tree.archived {
            let archive = self.hint(Action::Archive);
            self.say(format!("No branch is archived. {archive} archives one."));
            return Vec::new();
        }
        self.tree.toggle_archived()
    }

    /// Returns the words that say which keys reverse an operation on a branch.
    pub(super) fn inverse_of(&self, operation: &Operation) -> Option<String> {
        let (archive, show) = (self.hint(Action::Archive), Action::ShowArchived);
        Some(match operation {
            Operation::Archive { .. } if self.tree.archived => {
                format!("{archive} brings it back.")
            }
            Operation::Archive { .. } => {
                format!("{} shows it, {archive} brings it back.", self.hint(show))
            }
            Operation::Unarchive { .. } => format!("{archive} archives it again."),
            Operation::NameBranch { .. } => {
                format!("{} names it again.", self.hint(Action::NameBranch))
            }
            _ => return None,
        })
    }
}
