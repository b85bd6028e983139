//! Everything the program knows, and how messages change it. Pure: no I/O, no clock, no terminal.
//!
//! [`Model::update`] takes a [`Message`] and says which [`Effect`]s are to be had; [`crate::view`] draws
//! the model. Each part of the screen has its state in a module of its own; this one holds them together
//! and sends answers where they belong. What keys and the mouse do is in `control`.

pub mod compare;
mod control;
pub mod dialog;
pub mod document;
pub mod editor;
pub mod input;
pub mod layout;
pub mod preview;
pub mod rows;
pub mod sessions;
pub mod tree;

use crate::config::Settings;
use crate::message::{
    Daemon, Draft, Effect, Event, Failure, Message, Navigation, Place, Server, Session, Target,
};
use compare::CompareView;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use dialog::{Dialog, Failed, Navigating};
use editor::Editor;
use preview::Preview;
use sessions::SessionList;
use std::collections::VecDeque;
use std::time::Duration;
use tree::TreeView;

/// The whole state.
#[derive(Debug)]
pub struct Model {
    pub settings: Settings,
    /// Columns and rows.
    pub size: (u16, u16),
    /// Since the program's start.
    pub now: Duration,
    /// When it started, in seconds since 1970.
    pub started: i64,
    pub link: Link,
    pub screen: Screen,
    pub sessions: SessionList,
    /// The open session.
    pub session: Option<Session>,
    pub tree: TreeView,
    pub preview: Preview,
    /// The tree leaves half of the screen to the preview.
    pub half: bool,
    /// The preview has the keys.
    pub preview_focused: bool,
    pub editor: Option<Editor>,
    /// A draft that was put away.
    pub kept_draft: Option<Draft>,
    pub compare: Option<CompareView>,
    pub dialog: Option<Dialog>,
    pub navigating: Option<Navigating>,
    pub notice: Option<Notice>,
    /// What to open once the daemon is there.
    opening: Option<Target>,
    /// Keys that are about where the cursor is going.
    held: VecDeque<KeyEvent>,
    /// A session is being opened; until then nothing can be asked of it.
    awaiting: bool,
    navigations: u64,
    /// The last click, to know a double one: column, row, when.
    last_click: Option<(u16, u16, Duration)>,
    /// Mouse and keys of the first screen lead back to the list.
    came_from_list: bool,
}

/// The connection to the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    Connecting,
    Up(Server),
    /// It is gone, and why.
    Down(String),
}

/// What fills the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Screen {
    Sessions,
    Tree,
}

/// A line for the user, until the next key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub text: String,
    pub is_error: bool,
}

impl Model {
    /// `target`: what to open at once; the list if there is none.
    pub fn new(settings: Settings, size: (u16, u16), started: i64, target: Option<Target>) -> Self {
        let screen = if target.is_some() {
            Screen::Tree
        } else {
            Screen::Sessions
        };
        let half = settings.half;
        let mut model = Self {
            settings,
            size,
            now: Duration::ZERO,
            started,
            link: Link::Connecting,
            screen,
            sessions: SessionList::new(),
            session: None,
            tree: TreeView::new(),
            preview: Preview::default(),
            half,
            preview_focused: false,
            editor: None,
            kept_draft: None,
            compare: None,
            dialog: None,
            navigating: None,
            notice: None,
            opening: target,
            awaiting: false,
            held: VecDeque::new(),
            navigations: 0,
            last_click: None,
            came_from_list: false,
        };
        model.arrange();
        model
    }

    /// Whether something on the screen moves by itself, so that ticks are wanted.
    pub fn animates(&self) -> bool {
        self.navigating.is_some()
    }

    /// The daemon is there and has what is on the screen.
    fn is_ready(&self) -> bool {
        matches!(self.link, Link::Up(_)) && !self.awaiting
    }

    /// A session is to be opened.
    fn open(&mut self, target: Target) -> Effect {
        self.awaiting = true;
        Effect::OpenSession(target)
    }

    /// Something happened: what is to be done.
    pub fn update(&mut self, message: Message) -> Vec<Effect> {
        let mut effects = match message {
            Message::Key(event) if self.holds(event) => {
                self.held.push_back(event);
                Vec::new()
            }
            Message::Key(event) => self.key(event),
            Message::Mouse(event) => self.mouse(event),
            Message::Paste(text) => self.paste(&text),
            Message::Resize(columns, rows) => {
                self.size = (columns, rows);
                Vec::new()
            }
            Message::Tick(now) => {
                self.now = now;
                Vec::new()
            }
            Message::Daemon(message) => {
                let mut effects = self.daemon(message);
                effects.extend(self.release());
                effects
            }
        };
        self.arrange();
        effects.extend(self.fill());
        effects
    }

    /// Whether the key is about the entry that the cursor is on its way to. Esc is not: it stays here.
    fn holds(&self, event: KeyEvent) -> bool {
        self.screen == Screen::Tree
            && self.is_ready()
            && self.tree.is_going()
            && self.dialog.is_none()
            && self.editor.is_none()
            && self.compare.is_none()
            && self.navigating.is_none()
            && event.code != KeyCode::Esc
            && !event.modifiers.contains(KeyModifiers::CONTROL)
    }

    /// The keys that were held, once the cursor is there.
    fn release(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        while let Some(event) = self.held.front().copied() {
            if self.holds(event) {
                break;
            }
            self.held.pop_front();
            self.arrange();
            effects.extend(self.key(event));
        }
        effects
    }

    /// Tells every part how much of the screen it has.
    fn arrange(&mut self) {
        let panes = layout::panes(self);
        self.sessions.height = usize::from(panes.list.height).max(1);
        self.sessions.show_cursor();
        let tree_height = usize::from(panes.tree.height).max(1);
        if tree_height != self.tree.height {
            self.tree.height = tree_height;
            if !self.tree.rows.is_empty() {
                self.tree.show_cursor();
            }
        }
        self.preview.resize(
            usize::from(panes.preview.width),
            usize::from(panes.preview.height),
        );
        if let Some(editor) = &mut self.editor {
            let (_, (row, _)) = editor.input.layout(usize::from(panes.editor.width));
            let height = usize::from(panes.editor.height).max(1);
            editor.top = editor.top.clamp((row + 1).saturating_sub(height), row);
        }
        if let Some(compare) = &mut self.compare {
            compare.height = usize::from(panes.compare.height).max(1);
            compare.lines = crate::view::compare_lines(&compare.comparison, panes.compare.width);
            compare.scroll(0);
        }
    }

    /// Asks for what the screen lacks.
    fn fill(&mut self) -> Vec<Effect> {
        if self.screen != Screen::Tree || self.session.is_none() || !self.is_ready() {
            return Vec::new();
        }
        let mut effects = self.tree.fill();
        let panes = layout::panes(self);
        if panes.preview.height > 0
            && let Some(row) = self.tree.selected()
        {
            effects.extend(self.preview.want(&row.id));
        }
        effects
    }

    fn daemon(&mut self, message: Daemon) -> Vec<Effect> {
        match message {
            Daemon::Connected(server) => self.connected(server),
            Daemon::Lost(reason) => self.lost(reason),
            Daemon::Sessions { generation, result } => match result {
                Ok(page) => self.sessions.arrived(generation, page),
                Err(failure) => {
                    self.sessions.failed();
                    self.fail("The sessions cannot be listed", failure)
                }
            },
            Daemon::Opened(result) => self.opened(result),
            Daemon::Tree { query, result } => match self.tree.arrived(query, result) {
                Ok(effects) => effects,
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
            Daemon::Prepared { target, result } => self.prepared(target, result),
            Daemon::Navigated {
                navigation_id,
                result,
            } => self.navigated(&navigation_id, result),
            Daemon::Moved { undo, result } => match result {
                Ok(()) => {
                    self.say(if undo {
                        format!(
                            "Undone. {} does it again.",
                            self.hint(crate::keys::Action::Redo)
                        )
                    } else {
                        "Done again.".to_owned()
                    });
                    self.tree.load(Place::Leaf)
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
            },
            Daemon::Labelled(Ok(())) => self.tree.reload(),
            Daemon::Labelled(Err(failure)) => self.fail("The label was not set", failure),
            Daemon::Renamed(Ok(())) => self.sessions.reload(),
            Daemon::Renamed(Err(failure)) => self.fail("The session was not renamed", failure),
            Daemon::Trashed { session_id, result } => match result {
                Ok(()) => {
                    self.say("Moved to the trash.");
                    if self
                        .session
                        .as_ref()
                        .is_some_and(|open| open.id == session_id)
                    {
                        self.session = None;
                    }
                    self.sessions.reload()
                }
                Err(failure) => self.fail("The session was not moved to the trash", failure),
            },
            Daemon::Sent(Ok(())) => {
                self.editor = None;
                self.say("Sent.");
                self.tree.load(Place::Leaf)
            }
            Daemon::Sent(Err(failure)) => {
                if let Some(editor) = &mut self.editor {
                    editor.sending = false;
                }
                self.fail(
                    "The message was not sent; it is still in the editor",
                    failure,
                )
            }
            Daemon::Compared(Ok(comparison)) => {
                self.notice = None;
                self.compare = Some(CompareView {
                    comparison: *comparison,
                    top: 0,
                    lines: 0,
                    height: 1,
                });
                Vec::new()
            }
            Daemon::Compared(Err(failure)) => self.fail("The entries cannot be compared", failure),
            Daemon::Event(event) => self.event(event),
        }
    }

    fn connected(&mut self, server: Server) -> Vec<Effect> {
        self.link = Link::Up(server);
        // What was asked before has not been heard.
        self.sessions.failed();
        self.tree.abandon_questions();
        self.preview.forget();
        let reopened = self.session.as_ref().map(|open| match &open.path {
            Some(path) => Target::Path(path.clone()),
            None => Target::Id(open.id.clone()),
        });
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

    /// The daemon is gone. What was under way will not be answered; what is on the screen stays.
    fn lost(&mut self, reason: String) -> Vec<Effect> {
        self.link = Link::Down(reason);
        self.awaiting = false;
        self.held.clear();
        self.sessions.failed();
        self.tree.abandon_questions();
        self.preview.forget();
        self.navigating = None;
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
                        "{} {lines} damaged; `treelined doctor` tells more.",
                        session.damaged
                    ));
                }
                let is_same = self
                    .session
                    .as_ref()
                    .is_some_and(|open| open.id == session.id);
                self.session = Some(session);
                self.screen = Screen::Tree;
                self.preview.forget();
                if is_same {
                    return self.tree.reload();
                }
                self.tree = TreeView::new();
                self.editor = None;
                self.kept_draft = None;
                self.compare = None;
                self.preview_focused = false;
                self.arrange();
                self.tree.load(Place::Leaf)
            }
            Err(failure) => {
                self.screen = Screen::Sessions;
                self.session = None;
                let mut effects = self.sessions.reload();
                effects.extend(self.fail("The session cannot be opened", failure));
                effects
            }
        }
    }

    fn event(&mut self, event: Event) -> Vec<Effect> {
        match event {
            Event::Appended {
                by_others,
                count,
                others_at,
            } => {
                if by_others {
                    self.tree.news += count;
                }
                self.tree.others_at = others_at;
                self.tree.reload()
            }
            Event::Moved | Event::Missed => self.tree.reload(),
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
            Event::Closed => {
                self.session = None;
                self.screen = Screen::Sessions;
                self.say("The session was closed.");
                self.sessions.reload()
            }
        }
    }

    fn this_navigation(&mut self, id: &str) -> Option<&mut Navigating> {
        self.navigating
            .as_mut()
            .filter(|navigating| navigating.navigation_id == id)
    }

    fn prepared(&mut self, target: String, result: Result<Option<usize>, Failure>) -> Vec<Effect> {
        let choose = match &mut self.dialog {
            Some(Dialog::Choose(choose)) if choose.target == target => choose,
            _ => return Vec::new(),
        };
        match result {
            Ok(Some(abandoned)) => {
                choose.abandoned = Some(abandoned);
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

    fn already_there(&mut self) {
        self.say("Already at this point");
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
            self.say(match reason {
                Some("aborted") => "Aborted. Nothing has moved.",
                Some("cancelledByClient") => "A hook has refused the move.",
                Some("noAnswer") => "A hook has not answered. Nothing has moved.",
                _ => "Cancelled. Nothing has moved.",
            });
            return Vec::new();
        }
        if reason == Some("alreadyThere") {
            self.already_there();
            return Vec::new();
        }
        let undo = self.hint(crate::keys::Action::Undo);
        let summary = match (navigating.summarize, navigation.summarized) {
            (_, true) => " A summary of the branch is in its place.",
            (true, false) => " There was nothing to summarize.",
            (false, false) => "",
        };
        self.say(format!("Moved.{summary} {undo} takes you back."));
        if let Some(draft) = navigation.draft {
            self.editor = Some(Editor::new(Draft {
                expected_leaf: navigation.new_leaf,
                ..draft
            }));
        }
        self.tree.load(Place::Leaf)
    }

    fn say(&mut self, text: impl Into<String>) {
        self.notice = Some(Notice {
            text: text.into(),
            is_error: false,
        });
    }

    fn say_error(&mut self, text: impl Into<String>) {
        self.notice = Some(Notice {
            text: text.into(),
            is_error: true,
        });
    }

    /// Tells of a failure, in a dialog of its own. Where there is no daemon, that is said already.
    fn fail(&mut self, what: &str, failure: Failure) -> Vec<Effect> {
        if !failure.is_of_connection() {
            self.dialog = Some(Dialog::Failed(Failed {
                what: what.to_owned(),
                failure,
            }));
        }
        Vec::new()
    }

    fn hint(&self, action: crate::keys::Action) -> String {
        self.settings
            .keymap
            .hint(crate::keys::Context::Tree, action)
    }
}

/// Where a view of `height` lines must begin to show line `cursor` of `total`, if it began at `top`.
fn scrolled(top: usize, cursor: usize, height: usize, total: usize) -> usize {
    let lowest = (cursor + 1).saturating_sub(height);
    let last = total.saturating_sub(height);
    top.clamp(lowest, cursor).min(last)
}
