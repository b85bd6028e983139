//! Drives a model by keys, answers its effects from a list of rows, and returns its screen as text.

use crossterm::event::{KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::time::Duration;
use treelined_tui::config::{DoubleEscape, Settings, Summary};
use treelined_tui::keys::{Key, Keymap};
use treelined_tui::message::Row;
use treelined_tui::message::{
    Daemon, Effect, Filter, Message, PagePosition, Prepared, Server, Session, SessionPage,
    SessionRow, Target, TreePage, TreeQuery,
};
use treelined_tui::model::Model;
use treelined_tui::model::document::Document;
use treelined_tui::theme::Theme;
use treelined_tui::view;

/// 2026-11-21T20:00:00Z.
pub const NOW: i64 = 1_795_291_200;

pub struct Screen {
    pub model: Model,
    /// The rows of the fake daemon.
    pub rows: Vec<Row>,
    pub hidden: usize,
    pub archived_branches: usize,
    pub shed_branches: usize,
    /// For each hidden entry, the row that represents it.
    pub stand_in: HashMap<String, String>,
    pub leaf: Option<String>,
    pub revision: u32,
    pub entries: HashMap<String, Value>,
    pub sessions: Vec<SessionRow>,
    /// The sessions of other machines.
    pub team: Vec<SessionRow>,
    /// The effects that were not answered here.
    pub asked: Vec<Effect>,
    /// The number of rows that were requested.
    pub fetched: usize,
    /// Whether answers are held back.
    pub silent: bool,
}

impl Screen {
    /// Shows the list of sessions of a connected daemon.
    pub fn list(columns: u16, rows: u16, sessions: Vec<SessionRow>) -> Self {
        let mut screen = Self::begin(columns, rows, None);
        screen.sessions = sessions;
        screen.connect();
        screen
    }

    /// Shows an open session.
    pub fn tree(columns: u16, rows: u16, tree: Vec<Row>) -> Self {
        let mut screen = Self::begin(columns, rows, Some(Target::Id("tour".into())));
        screen.leaf = tree
            .iter()
            .find(|row| row.is_leaf)
            .map(|row| row.id.clone());
        screen.rows = tree;
        screen.connect();
        screen
    }

    /// Shows the list of sessions before a daemon is connected.
    pub fn unconnected(columns: u16, rows: u16) -> Self {
        Self::begin(columns, rows, None)
    }

    fn begin(columns: u16, rows: u16, target: Option<Target>) -> Self {
        let settings = Settings {
            keymap: Keymap::default(),
            theme: Theme::dark(),
            half: true,
            filter: Filter::Default,
            summary: Summary::Ask,
            double_escape: DoubleEscape::None,
            cwd: "/home/ada/project".into(),
            program: vec!["treelined".into()],
        };
        Self {
            model: Model::new(settings, (columns, rows), NOW, target),
            rows: Vec::new(),
            hidden: 0,
            archived_branches: 0,
            shed_branches: 0,
            stand_in: HashMap::new(),
            leaf: None,
            revision: 0,
            entries: HashMap::new(),
            sessions: Vec::new(),
            team: Vec::new(),
            asked: Vec::new(),
            fetched: 0,
            silent: false,
        }
    }

    pub fn connect(&mut self) {
        self.daemon(Daemon::Connected(Server {
            version: "0.1.0".into(),
            summarizer: Some("outline".into()),
        }));
    }

    pub fn daemon(&mut self, message: Daemon) {
        self.send(Message::Daemon(message));
    }

    pub fn send(&mut self, message: Message) {
        let mut messages = VecDeque::from([message]);
        while let Some(message) = messages.pop_front() {
            for effect in self.model.update(message) {
                messages.extend(self.answer(effect).map(Message::Daemon));
            }
        }
    }

    /// Answers an effect that was held back.
    pub fn ask(&mut self, effect: Effect) {
        if let Some(answer) = self.answer(effect) {
            self.daemon(answer);
        }
    }

    fn answer(&mut self, effect: Effect) -> Option<Daemon> {
        if self.silent {
            self.asked.push(effect);
            return None;
        }
        Some(match effect {
            Effect::GetTree(query) => {
                let page = self.page(&query);
                Daemon::Tree {
                    query,
                    result: Ok(Box::new(page)),
                }
            }
            Effect::GetEntry { id } => {
                let entry = self
                    .entries
                    .get(&id)
                    .cloned()
                    .unwrap_or_else(|| self.made_up(&id));
                Daemon::Entry {
                    id,
                    result: Ok(Document::of(&entry)),
                }
            }
            Effect::OpenSession(_) => Daemon::Opened(Ok(opened("tour"))),
            Effect::ListSessions(query) => Daemon::Sessions {
                generation: query.generation,
                result: Ok(SessionPage {
                    rows: self.sessions.clone(),
                    team: self.team.clone(),
                    next: None,
                }),
            },
            other => {
                self.asked.push(other);
                return None;
            }
        })
    }

    /// Returns the answer to a request for rows that was held back.
    pub fn tree_answer(&mut self, query: &TreeQuery) -> Daemon {
        Daemon::Tree {
            query: query.clone(),
            result: Ok(Box::new(self.page(query))),
        }
    }

    fn made_up(&self, id: &str) -> Value {
        let row = self.rows.iter().find(|row| row.id == id);
        let text = row.map_or("", |row| &row.preview);
        json!({"type": "message", "id": id, "message": {"role": "user", "content": text}})
    }

    fn page(&mut self, query: &TreeQuery) -> TreePage {
        let find = |id: &str| self.rows.iter().position(|row| row.id == id);
        let total = self.rows.len();
        let at = match &query.place {
            PagePosition::Offset(_) => None,
            PagePosition::Around(id) => find(id).or((total > 0).then_some(0)),
            PagePosition::Leaf => self.rows.iter().position(|row| row.is_leaf).or(Some(0)),
        };
        let offset = match (&query.place, at) {
            (PagePosition::Offset(offset), _) => *offset,
            (_, Some(at)) => at
                .saturating_sub(query.limit / 2)
                .min(total.saturating_sub(query.limit)),
            _ => 0,
        };
        let rows: Vec<Row> = self
            .rows
            .iter()
            .skip(offset)
            .take(query.limit)
            .cloned()
            .collect();
        self.fetched += rows.len();
        TreePage {
            offset,
            rows,
            total,
            hidden: self.hidden,
            archived_branches: self.archived_branches,
            shed_branches: self.shed_branches,
            revision: self.revision.to_string(),
            leaf: self.leaf.clone(),
            at: at.filter(|_| total > 0),
            others: query
                .others
                .as_ref()
                .map(|id| self.stand_in.get(id).unwrap_or(id).clone()),
        }
    }

    /// Presses keys, given by name.
    pub fn keys(&mut self, names: &str) -> &mut Self {
        for name in names.split_whitespace() {
            let key = Key::parse(name).unwrap_or_else(|| panic!("{name}"));
            self.send(Message::Key(KeyEvent::new(key.code(), key.modifiers())));
        }
        self
    }

    /// Types a text.
    pub fn typed(&mut self, text: &str) -> &mut Self {
        for char in text.chars() {
            let code = crossterm::event::KeyCode::Char(char);
            self.send(Message::Key(KeyEvent::from(code)));
        }
        self
    }

    pub fn click(&mut self, column: u16, row: u16) {
        self.mouse(MouseEventKind::Down(MouseButton::Left), column, row);
    }

    pub fn mouse(&mut self, kind: MouseEventKind, column: u16, row: u16) {
        let modifiers = crossterm::event::KeyModifiers::NONE;
        self.send(Message::Mouse(MouseEvent {
            kind,
            column,
            row,
            modifiers,
        }));
    }

    pub fn tick(&mut self, millis: u64) {
        self.send(Message::Tick(Duration::from_millis(millis)));
    }

    fn buffer(&self) -> Buffer {
        let (columns, rows) = self.model.size;
        let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
        terminal
            .draw(|frame| view::draw(&self.model, frame))
            .unwrap();
        terminal.backend().buffer().clone()
    }

    /// Returns the screen without styles and trailing spaces.
    pub fn text(&self) -> String {
        let buffer = self.buffer();
        let mut out = String::new();
        for y in 0..buffer.area.height {
            let mut line = String::new();
            let mut x = 0;
            while x < buffer.area.width {
                let symbol = buffer[(x, y)].symbol();
                line.push_str(symbol);
                // The cells after a wide character are empty.
                x += u16::try_from(treelined_tui::text::width(symbol).max(1)).unwrap();
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }

    /// Returns the screen with its styles: `{cyan bold}` begins a style, `{}` ends it.
    pub fn styled(&self) -> String {
        let buffer = self.buffer();
        let mut out = String::new();
        for y in 0..buffer.area.height {
            let mut line = String::new();
            let mut before = String::new();
            for x in 0..buffer.area.width {
                let cell = &buffer[(x, y)];
                let style = style_name(cell.fg, cell.bg, cell.modifier);
                if style != before {
                    line.push_str(&format!("{{{style}}}"));
                    before = style;
                }
                line.push_str(cell.symbol());
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }

    /// Compares the screen with `expected/NAME.txt`; `UPDATE_SCREENS=1` writes the file instead.
    #[track_caller]
    pub fn check(&self, name: &str) {
        compare(name, &self.text());
    }

    #[track_caller]
    pub fn check_styled(&self, name: &str) {
        compare(name, &self.styled());
    }
}

#[track_caller]
fn compare(name: &str, screen: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/screens/expected");
    let path = folder.join(format!("{name}.txt"));
    if std::env::var_os("UPDATE_SCREENS").is_some() {
        std::fs::write(&path, screen).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path)
        .unwrap_or_else(|_| panic!("{name} is new; UPDATE_SCREENS=1 writes it\n{screen}"));
    assert!(
        screen == expected,
        "{name} was\n{expected}\nand is\n{screen}"
    );
}

fn style_name(fg: Color, bg: Color, modifier: Modifier) -> String {
    let mut words = Vec::new();
    if fg != Color::Reset {
        words.push(fg.to_string().to_lowercase());
    }
    if bg != Color::Reset {
        words.push(format!("on {bg}").to_lowercase());
    }
    words.extend(modifier.iter_names().map(|(name, _)| name.to_lowercase()));
    words.join(" ")
}

/// The branch that a navigation leaves, with a summarizer that can summarize it.
pub fn left(abandoned: usize) -> Prepared {
    Prepared {
        abandoned,
        is_on_path: false,
        can_summarize: true,
    }
}

/// A session that was opened.
pub fn opened(id: &str) -> Session {
    Session {
        id: id.into(),
        path: None,
        cwd: "/home/ada/project".into(),
        name: Some("A tour".into()),
        first_message: String::new(),
        read_only: false,
        damaged: 0,
        rewound: false,
        newer: None,
        open_on: Vec::new(),
        queued: false,
    }
}

/// Makes a row with defaults for everything else.
pub fn row(id: &str, prefix: &str, preview: &str) -> Row {
    Row {
        id: id.into(),
        prefix: prefix.into(),
        preview: preview.into(),
        ..Row::default()
    }
}

pub fn session(id: &str, title: &str, parent: Option<&str>, age: i64) -> SessionRow {
    SessionRow {
        id: id.into(),
        path: format!("/s/{id}.jsonl"),
        cwd: "/home/ada/project".into(),
        name: Some(title.into()),
        modified: NOW - age,
        messages: 12,
        first_message: String::new(),
        source: None,
        parent: parent.map(Into::into),
        marks: Vec::new(),
        damage: None,
        host: None,
        open_on: Vec::new(),
        queued: false,
    }
}
