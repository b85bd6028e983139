//! Applies the daemon's answers and notifications to the model.

use super::advice;
use super::compare::CompareView;
use super::dialog::{Dialog, RunningNavigation};
use super::editor::Editor;
use super::search::OpeningHit;
use super::tree::TreeView;
use super::{Connection, LeafPosition, Model, Screen};
use crate::keys::Action;
use crate::message::Comparison;
use crate::message::{
    Daemon, Draft, Effect, End, Event, Failure, Navigation, PagePosition, Prepared, Server,
    Session, Target,
};
use std::collections::HashMap;

impl Model {
    pub(super) fn daemon(&mut self, message: Daemon) -> Vec<Effect> {
        match message {
            Daemon::Connected(server) => self.connected(server),
            Daemon::Lost(end) => self.lost(end),
            Daemon::Sessions { generation, result } => match result {
                Ok(page) => self.sessions.arrived(generation, page),
                Err(failure) => {
                    self.sessions.failed();
                    self.fail("The sessions cannot be listed", failure)
                }
            },
            Daemon::Hit { generation, hit } => {
                self.search.hit(generation, hit);
                Vec::new()
            }
            Daemon::Found {
                generation,
                result,
                fault,
            } => match self.search.ended(generation, result, fault) {
                Ok(()) => Vec::new(),
                Err(failure) => self.fail("The sessions cannot be searched", failure),
            },
            Daemon::QueryCompleted {
                generation,
                completion,
            } => {
                self.search.completed(generation, completion);
                Vec::new()
            }
            Daemon::Opened(result) => self.opened(result),
            Daemon::OpenOn { session_id, hosts } => {
                let open = self.session.as_mut().filter(|open| open.id == session_id);
                if let Some(session) = open {
                    session.open_on = hosts;
                }
                Vec::new()
            }
            Daemon::Tree { query, result } => match self.tree.arrived(query, result) {
                Ok(effects) => {
                    self.compare_with_old_leaf();
                    effects
                }
                Err(failure) => self.fail("The tree cannot be read", failure),
            },
            Daemon::Entry { id, result } => {
                if let Err(failure) = &result
                    && !failure.is_of_connection()
                {
                    self.say_error(format!("The entry cannot be read: {}", failure.message));
                }
                self.preview.arrived(id, result.ok());
                Vec::new()
            }
            Daemon::Text(Ok(text)) => {
                self.say(format!("Copied: {}", crate::time::bytes(text.len())));
                vec![Effect::Copy(text)]
            }
            Daemon::Text(Err(failure)) => self.fail("Nothing was copied", failure),
            Daemon::Tokens(tokens) => {
                self.tree.columns.arrived(tokens);
                Vec::new()
            }
            Daemon::Prepared { target, result } => self.prepared(target, result),
            Daemon::Navigated {
                navigation_id,
                result,
            } => self.navigated(&navigation_id, result),
            Daemon::Moved { undo, result } => self.moved(undo, result),
            Daemon::Labelled(Ok(())) => self.tree.reload(),
            Daemon::Labelled(Err(failure)) => self.fail("The label was not set", failure),
            Daemon::Renamed(Ok(())) => self.sessions.reload(),
            Daemon::Renamed(Err(failure)) => self.fail("The session was not renamed", failure),
            Daemon::Trashed { session_id, result } => self.trashed(&session_id, result),
            Daemon::Sent(result) => self.sent(result),
            Daemon::Comparing { id, read, most } => {
                if let Some(comparing) = self.comparing.as_mut().filter(|it| it.id == id) {
                    comparing.read = read;
                    comparing.most = most;
                }
                Vec::new()
            }
            Daemon::Compared { id, result } => self.compared(id, result),
            Daemon::Listed { kind, result } => self.listed(kind, result),
            Daemon::Previewed { request, result } => self.previewed(&request, result),
            Daemon::Answered(result) => self.answered(result),
            answer @ (Daemon::Commands(_) | Daemon::CommandEnded { .. }) => {
                self.command_answer(answer)
            }
            Daemon::Event(event) => self.event(event),
        }
    }

    /// Applies the result of an undo or a redo.
    fn moved(&mut self, undo: bool, result: Result<(), Failure>) -> Vec<Effect> {
        match result {
            Ok(()) => {
                self.say(if undo {
                    format!("Undone. {} redoes it.", self.hint(Action::Redo))
                } else {
                    "Redone.".to_owned()
                });
                self.tree.load(PagePosition::Leaf)
            }
            Err(failure) if failure.kind == "nothingToUndo" => {
                self.say(if undo {
                    "Nothing to undo."
                } else {
                    "Nothing to redo."
                });
                Vec::new()
            }
            Err(failure) => self.fail("The move was not undone", failure),
        }
    }

    fn trashed(&mut self, session_id: &str, result: Result<(), Failure>) -> Vec<Effect> {
        match result {
            Ok(()) => {
                self.say("Moved to the trash.");
                self.session.take_if(|open| open.id == session_id);
                self.sessions.reload()
            }
            Err(failure) => self.fail("The session was not moved to the trash", failure),
        }
    }

    fn sent(&mut self, result: Result<(), Failure>) -> Vec<Effect> {
        match result {
            Ok(()) => {
                self.editor = None;
                self.say("Sent.");
                self.tree.load(PagePosition::Leaf)
            }
            Err(failure) => {
                if let Some(editor) = &mut self.editor {
                    editor.sending = false;
                }
                self.fail(
                    "The message was not sent; it is still in the editor",
                    failure,
                )
            }
        }
    }

    fn compared(&mut self, id: u64, result: Result<Box<Comparison>, Failure>) -> Vec<Effect> {
        if self.comparing.take_if(|it| it.id == id).is_none() {
            return Vec::new();
        }
        match result {
            Ok(comparison) => {
                self.compare = Some(CompareView::new(*comparison));
                Vec::new()
            }
            Err(failure) => self.fail("The entries cannot be compared", failure),
        }
    }

    fn connected(&mut self, server: Server) -> Vec<Effect> {
        self.link = Connection::Up(server);
        // The new daemon does not know the requests to the old one.
        self.sessions.failed();
        self.search.abandon();
        self.tree.abandon_questions();
        self.tree.columns.abandon();
        self.preview.forget();
        let reopened = self.session.as_ref().map(|open| match &open.path {
            Some(path) => Target::Path(path.clone()),
            None => Target::Id(open.id.clone()),
        });
        if reopened.is_some() && self.tree.rows.is_known() {
            let row = self.tree.rows.find(|row| row.is_leaf);
            let row = row.and_then(|at| self.tree.rows.get(at));
            self.old_leaf = Some(LeafPosition {
                leaf: self.tree.leaf.clone(),
                row: row.map(|row| (row.id.clone(), row.preview.clone())),
            });
        }
        match self.opening.clone().or(reopened) {
            Some(target) => {
                let mut effects = vec![self.open(target)];
                if self.screen == Screen::Sessions {
                    effects.extend(self.sessions.reload());
                }
                effects
            }
            None => {
                self.screen = Screen::Sessions;
                self.sessions.reload()
            }
        }
    }

    /// Looks for the row at which the leaf was before the daemon ended. A restarted daemon uses the leaf
    /// in the file, which other writers may have moved. If it has moved, the user gets a message.
    fn compare_with_old_leaf(&mut self) {
        if self.tree.reloading {
            return;
        }
        let Some(old_leaf) = self.old_leaf.take() else {
            return;
        };
        let rows = &self.tree.rows;
        let is_row = |(id, _): &(String, String)| rows.find(|row| row.is_leaf && row.id == *id);
        if old_leaf.leaf == self.tree.leaf || old_leaf.row.as_ref().and_then(is_row).is_some() {
            return;
        }
        let was = match &old_leaf.row {
            Some((_, preview)) => format!(": it was at “{}”", crate::text::cut(preview, 32)),
            None => String::new(),
        };
        self.say(format!("The leaf is at another entry now{was}."));
    }

    /// Handles the end of the daemon. Open requests get no answer, and the screen stays as it is.
    fn lost(&mut self, end: End) -> Vec<Effect> {
        let was_up = matches!(self.link, Connection::Up(_));
        self.link = Connection::Down { end, was_up };
        self.awaiting = false;
        self.held.clear();
        self.opening_hit = None;
        self.sessions.failed();
        self.search.abandon();
        self.tree.abandon_questions();
        self.tree.columns.abandon();
        self.preview.forget();
        self.navigating = None;
        self.comparing = None;
        self.running = None;
        // The clients that asked these questions are gone, or will ask again.
        self.waiting.clear();
        self.dialog
            .take_if(|dialog| matches!(dialog, Dialog::Question(_)));
        if let Some(editor) = &mut self.editor {
            editor.sending = false;
        }
        Vec::new()
    }

    fn opened(&mut self, result: Result<Session, Failure>) -> Vec<Effect> {
        self.opening = None;
        self.awaiting = false;
        match result {
            Ok(session) => {
                self.notice = None;
                if session.damaged > 0 {
                    let lines = if session.damaged == 1 {
                        "line is"
                    } else {
                        "lines are"
                    };
                    self.say_error(format!(
                        "{} {lines} damaged; `treelined doctor` lists them.",
                        session.damaged
                    ));
                }
                if session.rewound {
                    self.say_error(advice::of("logRewound", None));
                }
                let newer = session.newer.clone();
                if let Some(newer) = &newer
                    && session.damaged == 0
                    && !session.rewound
                {
                    self.say_newer(newer.turns);
                }
                let is_same = self
                    .session
                    .as_ref()
                    .is_some_and(|open| open.id == session.id);
                self.session = Some(session);
                self.screen = Screen::Tree;
                self.preview.forget();
                let hit = self.opening_hit.take();
                if is_same {
                    self.preview_focused &= hit.is_none();
                    return match hit {
                        Some(OpeningHit { entry_id, found }) => {
                            self.tree.mark_found(found);
                            self.tree.open_at(entry_id)
                        }
                        None => {
                            self.tree.mark_found(HashMap::new());
                            self.tree.reload()
                        }
                    };
                }
                self.old_leaf = None;
                self.tree = TreeView::new(self.settings.filter);
                self.tree.others_at = newer.map(|newer| newer.tip);
                self.editor = None;
                self.kept_draft = None;
                self.compare = None;
                self.preview_focused = false;
                self.arrange();
                match hit {
                    Some(OpeningHit { entry_id, found }) => {
                        self.tree.mark_found(found);
                        self.tree.open_at(entry_id)
                    }
                    None => self.tree.load(PagePosition::Leaf),
                }
            }
            Err(failure) => {
                self.screen = match self.opening_hit.take() {
                    Some(_) => Screen::Search,
                    None => Screen::Sessions,
                };
                self.session = None;
                let mut effects = self.sessions.reload();
                effects.extend(self.fail("The session cannot be opened", failure));
                effects
            }
        }
    }

    /// Notifies the user that the newest entries are not on the branch that opens, and names the key that goes to them.
    fn say_newer(&mut self, turns: u64) {
        let newer = match turns {
            0 => "Newer entries are".to_owned(),
            1 => "1 newer turn is".to_owned(),
            turns => format!("{turns} newer turns are"),
        };
        let key = self.hint(Action::ToNews);
        self.say(format!("{newer} on another branch: {key} goes there."));
    }

    fn event(&mut self, event: Event) -> Vec<Effect> {
        match event {
            Event::Appended {
                by_others,
                count,
                others_at,
                first_message,
            } => {
                if let (Some(session), Some(said)) = (&mut self.session, first_message) {
                    session.first_message = said;
                }
                if by_others {
                    self.tree.news += count;
                }
                self.tree.others_at = others_at;
                self.tree.reload()
            }
            Event::Moved | Event::Missed => self.tree.reload(),
            Event::Queued { queued, lost } => {
                if let Some(session) = &mut self.session {
                    session.queued = queued;
                }
                if lost > 0 {
                    let entries = if lost == 1 {
                        "1 entry is"
                    } else {
                        &format!("{lost} entries are")
                    };
                    self.say(format!(
                        "Another machine has deleted the session: {entries} only in the trash here. Restore it to keep them."
                    ));
                }
                Vec::new()
            }
            Event::Named(name) => {
                if let Some(session) = &mut self.session {
                    session.name = name;
                }
                self.tree.reload()
            }
            Event::Delta {
                navigation_id,
                text,
            } => {
                if let Some(navigating) = self.this_navigation(&navigation_id) {
                    navigating.summary.push_str(&text);
                } else if let Some(running) = &mut self.running {
                    // This is the summary of a merge; the daemon calls a merge a navigation too.
                    running.has_written(&text);
                }
                Vec::new()
            }
            Event::Progress {
                navigation_id,
                message,
            } => {
                if let Some(navigating) = self.this_navigation(&navigation_id) {
                    navigating.progress = Some(message);
                }
                Vec::new()
            }
            Event::Worked(progress) => {
                // Progress of a search is not shown.
                if !self.search.searching
                    && let Some(running) = &mut self.running
                {
                    running.has_come_to(progress);
                }
                Vec::new()
            }
            event @ (Event::Asked(_) | Event::Resolved { .. } | Event::Notified { .. }) => {
                self.person_event(event)
            }
            Event::SessionsChanged if self.screen == Screen::Sessions => self.sessions.reload(),
            // The list is read again when it is shown.
            Event::SessionsChanged => Vec::new(),
            Event::Closed => {
                self.session = None;
                self.screen = Screen::Sessions;
                self.say("The session was closed.");
                self.sessions.reload()
            }
        }
    }

    fn this_navigation(&mut self, id: &str) -> Option<&mut RunningNavigation> {
        self.navigating
            .as_mut()
            .filter(|navigating| navigating.navigation_id == id)
    }

    fn prepared(
        &mut self,
        target: String,
        result: Result<Option<Prepared>, Failure>,
    ) -> Vec<Effect> {
        let choose = match &mut self.dialog {
            Some(Dialog::Choose(choose)) if choose.target == target => choose,
            _ => return Vec::new(),
        };
        match result {
            Ok(Some(prepared)) => {
                choose.prepared(&prepared);
                Vec::new()
            }
            Ok(None) => {
                self.dialog = None;
                self.already_there();
                Vec::new()
            }
            Err(failure) => {
                self.dialog = None;
                self.fail("The move cannot be made", failure)
            }
        }
    }

    pub(super) fn already_there(&mut self) {
        self.say("Already at this position");
    }

    fn navigated(&mut self, id: &str, result: Result<Navigation, Failure>) -> Vec<Effect> {
        let Some(navigating) = self
            .navigating
            .take_if(|navigating| navigating.navigation_id == id)
        else {
            return Vec::new();
        };
        let navigation = match result {
            Ok(navigation) => navigation,
            Err(failure) => {
                let effects = self.tree.reload();
                self.fail("The move was not made", failure);
                return effects;
            }
        };
        let reason = navigation.reason.as_deref();
        if navigation.cancelled {
            let deed = match reason {
                Some("cancelledByClient") => Some("cancelled the move"),
                Some("hookFailed") => Some("failed, and nothing has moved"),
                _ => None,
            };
            if let (Some(by), Some(deed)) = (&navigation.by, deed) {
                let why = navigation.message.as_deref().map(|why| format!(": {why}"));
                self.say(format!("{by} {deed}{}", why.unwrap_or_else(|| ".".into())));
                return Vec::new();
            }
            self.say(match reason {
                Some("aborted") => "Aborted. Nothing has moved.",
                Some("cancelledByClient") => "A client or a hook has refused the move.",
                Some("noAnswer") => "A hook has not answered. Nothing has moved.",
                Some("hookFailed") => {
                    "A hook has failed. Nothing has moved; treelined config may say why."
                }
                _ => "Cancelled. Nothing has moved.",
            });
            return Vec::new();
        }
        if reason == Some("alreadyThere") {
            self.already_there();
            return Vec::new();
        }
        let undo = self.hint(Action::Undo);
        let moved = match (navigating.summarize, navigation.summarized) {
            (_, true) => "Summarized.",
            (true, false) => "Nothing to summarize.",
            (false, false) => "Moved.",
        };
        let next = self.hint(Action::Continue);
        let next = match navigation.draft {
            Some(_) => format!("Send the text, then {next} goes on in another agent."),
            None => {
                let compose = self.hint(Action::Compose);
                format!("{compose} writes a message here, {next} goes on in another agent.")
            }
        };
        self.say(format!("{moved} {next} {undo} takes you back."));
        if let Some(draft) = navigation.draft {
            self.editor = Some(Editor::new(Draft {
                expected_leaf: navigation.new_leaf,
                ..draft
            }));
        }
        self.tree.load(PagePosition::Leaf)
    }
}
