//! Tags, pins, the archive of sessions, families and candidates (protocol.md §3.21 to §3.23).

use crate::message::{Effect, Target};
use crate::model::dialog::Dialog;
use crate::model::input::Input;
use crate::model::picker::PickerItem;
use crate::model::search::OpeningHit;
use crate::model::{Model, Screen};
use crate::operation::Operation;
use std::collections::HashMap;

impl Model {
    /// The session that an action is for: the selected one in the list, or else the open one.
    fn meant_session(&self) -> Option<String> {
        match self.screen {
            Screen::Sessions => {
                let row = self.sessions.selected();
                let row = row.filter(|row| !row.id.is_empty() && row.host.is_none());
                row.map(|row| row.id.clone())
            }
            _ => self.session.as_ref().map(|session| session.id.clone()),
        }
    }

    /// Asks which tags to add to the session, and which to remove.
    pub(super) fn ask_tags(&mut self) -> Vec<Effect> {
        if let Some(session_id) = self.meant_session() {
            let input = Input::line("");
            self.dialog = Some(Dialog::Tags { session_id, input });
        }
        Vec::new()
    }

    /// Pins the session; if it is pinned, unpins it.
    pub(super) fn pin(&mut self) -> Vec<Effect> {
        match self.meant_session() {
            Some(session_id) => self.operate(Operation::Pin { session_id }),
            None => Vec::new(),
        }
    }

    /// Archives the session; if it is archived, brings it back.
    pub(super) fn archive_session(&mut self) -> Vec<Effect> {
        match self.meant_session() {
            Some(session_id) => self.operate(Operation::ArchiveSession { session_id }),
            None => Vec::new(),
        }
    }

    /// Opens a session of the family. The session from which the open one comes is opened at the entry that
    /// connects them.
    pub(super) fn open_relative(&mut self, item: PickerItem) -> Vec<Effect> {
        if item.is_active {
            return Vec::new();
        }
        self.opening_hit = item.entry.map(|entry_id| OpeningHit {
            entry_id,
            found: HashMap::new(),
        });
        self.say("Opening…");
        vec![self.open(Target::Path(item.path))]
    }

    /// Asks for the reason of choosing a candidate. The reason is written on the other candidates.
    pub(super) fn ask_reason(&mut self, item: PickerItem) -> Vec<Effect> {
        self.dialog = Some(Dialog::Reason {
            tip: item.id,
            input: Input::line(""),
        });
        Vec::new()
    }
}
