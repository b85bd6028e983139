//! Everything the program knows, and how messages change it. Pure: no I/O, no clock, no terminal.
//!
//! [`Model::update`] takes a [`Message`] and says which [`Effect`]s are to be had; [`crate::view`] draws
//! the model. Each part of the screen has its state in a module of its own; this one holds them together.
//! What keys and the mouse do is in `control`, what the daemon says goes through `answers`.

mod answers;
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
use crate::message::{Draft, Effect, End, Failure, Message, Server, Session, Target};
use compare::{CompareView, Comparing};
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
    /// A comparison that is being read.
    pub comparing: Option<Comparing>,
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
    comparisons: u64,
    /// Where the conversation stood when the daemon ended, until it is known where it stands now.
    stood: Option<Stood>,
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
    /// There is none, or none any more.
    Down {
        end: End,
        /// There was one.
        was_up: bool,
    },
}

/// A place of the conversation.
#[derive(Debug)]
struct Stood {
    leaf: Option<String>,
    /// The row that stands for it, if it was here: its entry, and what it says.
    row: Option<(String, String)>,
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
            link: Link::Connecting,
            screen,
            sessions: SessionList::new(),
            session: None,
            tree: TreeView::new(filter),
            preview: Preview::default(),
            half,
            preview_focused: false,
            editor: None,
            kept_draft: None,
            compare: None,
            comparing: None,
            dialog: None,
            navigating: None,
            notice: None,
            opening: target,
            awaiting: false,
            held: VecDeque::new(),
            navigations: 0,
            comparisons: 0,
            stood: None,
            last_click: None,
            came_from_list: false,
        };
        model.arrange();
        model
    }

    /// Whether something on the screen moves by itself, so that ticks are wanted.
    pub fn animates(&self) -> bool {
        self.is_busy() || self.screen == Screen::Sessions && self.sessions.is_first_read()
    }

    /// Something is under way that Esc ends, and that has all other keys wait.
    fn is_busy(&self) -> bool {
        self.navigating.is_some() || self.comparing.is_some()
    }

    /// Which session was used last is not known yet.
    pub fn looks_for_latest(&self) -> bool {
        self.opening == Some(Target::Latest)
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
                self.sessions.now = now;
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
            && !self.is_busy()
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
            compare.resize(
                usize::from(panes.compare.width),
                usize::from(panes.compare.height),
            );
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
