//! The state of the program, and how messages change it. The module is pure: no I/O, no clock, no
//! terminal.
//!
//! [`Model::update`] gets a [`Message`] and returns [`Effect`]s; [`crate::view`] draws the model. Each
//! part of the screen has its state in its own module. `control` handles keys and the mouse, and
//! `answers` handles the messages of the daemon.

pub mod advice;
mod answers;
pub mod columns;
pub mod command;
pub mod compare;
mod control;
pub mod dialog;
pub mod document;
pub mod editor;
pub mod groups;
pub mod handoff;
pub mod input;
pub mod layout;
pub mod picker;
pub mod preview;
pub mod prose;
pub mod question;
pub mod rows;
pub mod search;
pub mod sessions;
pub mod tree;

use crate::config::Settings;
use crate::message::{Draft, Effect, End, Failure, Level, Message, Server, Session, Target};
use command::{CommandLine, RunningCommand};
use compare::{CompareView, RunningComparison};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use dialog::{Dialog, FailureDialog, RunningNavigation};
use editor::Editor;
use preview::Preview;
use question::Question;
use search::{OpeningHit, SearchView};
use sessions::SessionList;
use std::collections::VecDeque;
use std::time::Duration;
use tree::TreeView;

/// The whole state of the program.
#[derive(Debug)]
pub struct Model {
    pub settings: Settings,
    /// The size of the terminal in columns and rows.
    pub size: (u16, u16),
    /// The present time, since the program's start.
    pub now: Duration,
    /// The time of the program's start, in seconds since 1970.
    pub started: i64,
    pub link: Connection,
    pub screen: Screen,
    pub sessions: SessionList,
    pub search: SearchView,
    /// The open session.
    pub session: Option<Session>,
    pub tree: TreeView,
    pub preview: Preview,
    /// Whether the preview takes half of the screen.
    pub half: bool,
    /// The number of steps by which the user has made the preview larger or smaller.
    pub preview_size: isize,
    /// Whether keys go to the preview.
    pub preview_focused: bool,
    pub editor: Option<Editor>,
    /// A draft that was closed and not sent.
    pub kept_draft: Option<Draft>,
    pub compare: Option<CompareView>,
    /// The running comparison.
    pub comparing: Option<RunningComparison>,
    pub dialog: Option<Dialog>,
    pub navigating: Option<RunningNavigation>,
    /// The `:` line, while it is open.
    pub command_line: Option<CommandLine>,
    /// The running command.
    pub running: Option<RunningCommand>,
    /// Questions of other clients that wait to be opened, the oldest first.
    pub waiting: VecDeque<Question>,
    pub notice: Option<Notice>,
    /// The session to open when the daemon is connected.
    opening: Option<Target>,
    /// Keys that wait until the cursor has arrived.
    held: VecDeque<KeyEvent>,
    /// Whether a session is being opened. Until it is open, no requests about it are possible.
    awaiting: bool,
    navigations: u64,
    comparisons: u64,
    commands: u64,
    /// The time of the last key or paste.
    last_key: Option<Duration>,
    /// The leaf before the daemon ended, until the leaf of the new daemon is known.
    old_leaf: Option<LeafPosition>,
    /// The time of the last Esc that was pressed in the tree when nothing was left to close.
    last_escape: Option<Duration>,
    /// The last click (column, row, time), to recognize a double click.
    last_click: Option<(u16, u16, Duration)>,
    /// The screen that Back in the tree returns to.
    back: Option<Screen>,
    /// The hit, if a session is being opened at a hit.
    opening_hit: Option<OpeningHit>,
}

/// The connection to the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connection {
    Connecting,
    Up(Server),
    /// No daemon was started, or it has ended.
    Down {
        end: End,
        /// Whether a daemon was connected before.
        was_up: bool,
    },
}

/// A leaf, and its row.
#[derive(Debug)]
struct LeafPosition {
    leaf: Option<String>,
    /// The entry and the preview of the leaf's row, if the row was loaded.
    row: Option<(String, String)>,
}

/// The main part of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Screen {
    Sessions,
    /// The search over all sessions.
    Search,
    Tree,
}

/// A message for the user. It is shown until the next key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub text: String,
    pub level: Level,
    /// Keys before this time do not remove the message.
    kept_until: Duration,
}

impl Model {
    /// Makes the model. `target` is the session to open at once; with `None` the list of sessions is
    /// shown.
    pub fn new(settings: Settings, size: (u16, u16), started: i64, target: Option<Target>) -> Self {
        let filter = settings.filter;
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
            link: Connection::Connecting,
            screen,
            sessions: SessionList::new(),
            search: SearchView::new(),
            session: None,
            tree: TreeView::new(filter),
            preview: Preview::default(),
            half,
            preview_size: 0,
            preview_focused: false,
            editor: None,
            kept_draft: None,
            compare: None,
            comparing: None,
            dialog: None,
            navigating: None,
            command_line: None,
            running: None,
            waiting: VecDeque::new(),
            notice: None,
            opening: target,
            awaiting: false,
            held: VecDeque::new(),
            navigations: 0,
            comparisons: 0,
            commands: 0,
            last_key: None,
            old_leaf: None,
            last_escape: None,
            last_click: None,
            back: None,
            opening_hit: None,
        };
        model.sessions.started = started;
        model.arrange();
        model
    }

    /// Returns whether something on the screen is animated and needs ticks.
    pub fn animates(&self) -> bool {
        self.is_busy() || self.screen == Screen::Sessions && self.sessions.is_first_read()
    }

    /// Returns whether an operation is running. Then Esc ends it, and other keys have no effect.
    fn is_busy(&self) -> bool {
        self.navigating.is_some() || self.comparing.is_some() || self.running.is_some()
    }

    /// Returns whether the program is still looking for the session that was used last.
    pub fn looks_for_latest(&self) -> bool {
        self.opening == Some(Target::Latest)
    }

    /// Returns whether the daemon is connected and has opened the session on the screen.
    fn is_ready(&self) -> bool {
        matches!(self.link, Connection::Up(_)) && !self.awaiting
    }

    /// Starts to open a session.
    fn open(&mut self, target: Target) -> Effect {
        self.awaiting = true;
        Effect::OpenSession(target)
    }

    /// Applies a message and returns the effects to run.
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
                self.sessions.now = now;
                Vec::new()
            }
            Message::Ran { agent, result } => self.ran(agent, result),
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

    /// Returns whether the key must wait until the cursor has arrived. Esc need not wait, since it
    /// stops the cursor.
    fn holds(&self, event: KeyEvent) -> bool {
        self.screen == Screen::Tree
            && self.is_ready()
            && self.tree.is_going()
            && self.dialog.is_none()
            && self.editor.is_none()
            && self.compare.is_none()
            && self.command_line.is_none()
            && !self.is_busy()
            && event.code != KeyCode::Esc
            && !event.modifiers.contains(KeyModifiers::CONTROL)
    }

    /// Handles the waiting keys after the cursor has arrived.
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

    /// Sets the sizes of all parts.
    fn arrange(&mut self) {
        let panes = layout::panes(self);
        self.sessions.height = usize::from(panes.list.height).max(1);
        self.sessions.show_cursor();
        if panes.hits.height > 0 {
            self.search.height = usize::from(panes.hits.height);
            self.search.show_cursor();
        }
        let tree_height = usize::from(panes.tree.height).max(1);
        if tree_height != self.tree.height {
            self.tree.height = tree_height;
            if !self.tree.rows.is_empty() {
                self.tree.show_cursor();
            }
        }
        self.tree.width = layout::tree_columns(self);
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
            compare.resize(
                usize::from(panes.compare.width),
                usize::from(panes.compare.height),
            );
        }
    }

    /// Requests the data that the screen needs and does not have.
    fn fill(&mut self) -> Vec<Effect> {
        if self.screen == Screen::Search && self.is_ready() {
            return self.search.fill();
        }
        if self.screen != Screen::Tree || self.session.is_none() || !self.is_ready() {
            return Vec::new();
        }
        let mut effects = self.tree.fill();
        let tree = &mut self.tree;
        let visible = tree.top..tree.top + tree.height;
        let visible = visible.filter_map(|at| tree.rows.get(at));
        effects.extend(tree.columns.want(visible));
        let panes = layout::panes(self);
        if panes.preview.height > 0
            && let Some(row) = self.tree.selected()
        {
            effects.extend(self.preview.want(&row.id));
        }
        effects
    }

    /// Shows a message of this program, unless a message of another client is so new that the user may
    /// not have read it.
    fn say(&mut self, text: impl Into<String>) {
        let notice = self.notice.as_ref();
        if notice.is_some_and(|notice| self.now < notice.kept_until) {
            return;
        }
        self.notify(text, Level::Info, Duration::ZERO);
    }

    fn say_error(&mut self, text: impl Into<String>) {
        self.notify(text, Level::Error, Duration::ZERO);
    }

    fn notify(&mut self, text: impl Into<String>, level: Level, kept_until: Duration) {
        self.notice = Some(Notice {
            text: text.into(),
            level,
            kept_until,
        });
    }

    /// Removes the message on the screen, unless it is so new that the user may not have read it.
    fn remove_notice(&mut self) {
        let now = self.now;
        self.notice.take_if(|notice| now >= notice.kept_until);
    }

    /// Shows a failure in a dialog, except the end of the connection, which has a dialog already.
    fn fail(&mut self, what: &str, failure: Failure) -> Vec<Effect> {
        if !failure.is_of_connection() {
            self.dialog = Some(Dialog::Failed(FailureDialog {
                what: what.to_owned(),
                failure,
                top: 0,
            }));
        }
        Vec::new()
    }

    /// Returns the name of the daemon's summarizer.
    pub fn summarizer(&self) -> Option<&str> {
        match &self.link {
            Connection::Up(server) => server.summarizer.as_deref(),
            _ => None,
        }
    }

    fn hint(&self, action: crate::keys::Action) -> String {
        self.settings
            .keymap
            .hint(crate::keys::Context::Tree, action)
    }
}

/// Returns the first visible line that is closest to `top` and keeps the line `cursor` visible.
fn scrolled(top: usize, cursor: usize, height: usize, total: usize) -> usize {
    let lowest = (cursor + 1).saturating_sub(height);
    let last = total.saturating_sub(height);
    top.clamp(lowest, cursor).min(last)
}
