//! Two branches side by side: what each did since they parted, and its lines, wrapped once per width.

use super::rows::Kind;
use crate::text;
use std::time::Duration;

/// Messages of a branch that are shown from its beginning at most, and as many from its end.
pub const SHOWN_MESSAGES: usize = 500;

/// Files of a branch that are told at most, read ones and modified ones each.
pub const SHOWN_FILES: usize = 10_000;

/// Below this width there are no columns.
const NARROW: usize = 60;

/// Between the columns.
const GAP: usize = 3;

/// A comparison that is still being read.
#[derive(Debug)]
pub struct Comparing {
    pub id: u64,
    /// Since the program's start.
    pub began: Duration,
    /// Entries read so far.
    pub read: usize,
    /// Entries there are above both marked ones: more are not read.
    pub most: usize,
}

impl Comparing {
    /// Most are over before one could read about it.
    pub fn is_shown(&self, now: Duration) -> bool {
        now.saturating_sub(self.began) > Duration::from_millis(400)
    }
}

/// What was found; texts are sanitized.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Comparison {
    /// Where they part: one line; `None` if they have nothing in common.
    pub ancestor: Option<String>,
    pub left: Side,
    pub right: Side,
}

/// One of the branches, from the common ancestor on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Side {
    /// The marked entry, in one line.
    pub tip: String,
    /// In order.
    pub said: Vec<Said>,
    /// Messages that are left out, of a branch that is very long.
    pub gap: Option<Gap>,
    /// Sorted.
    pub read: Vec<String>,
    /// Sorted; written or edited.
    pub modified: Vec<String>,
}

/// Messages that are not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// Messages before it.
    pub after: usize,
    /// How many they are.
    pub messages: usize,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    pub kind: Kind,
    /// One line.
    pub text: String,
}

/// A line of the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    Whole(Piece),
    /// The left column of so many columns, and the right one.
    Halves(usize, Piece, Piece),
}

/// Text of one look.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Piece {
    pub look: Look,
    pub text: String,
}

/// What a text is, for its style.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Look {
    Ancestor,
    Heading,
    User,
    Dim,
    #[default]
    Text,
    File,
}

/// The view of a comparison.
#[derive(Debug)]
pub struct CompareView {
    comparison: Comparison,
    lines: Vec<Line>,
    /// For which they are laid out.
    columns: usize,
    /// The first line on the screen; both sides move together.
    pub top: usize,
    /// Lines on the screen.
    pub height: usize,
}

impl CompareView {
    pub fn new(comparison: Comparison) -> Self {
        Self {
            comparison,
            lines: Vec::new(),
            columns: 0,
            top: 0,
            height: 1,
        }
    }

    /// The pane has this size.
    pub fn resize(&mut self, columns: usize, height: usize) {
        self.height = height.max(1);
        if columns != self.columns {
            self.columns = columns;
            self.lines = self.comparison.layout(columns);
        }
        self.scroll(0);
    }

    pub fn scroll(&mut self, lines: isize) {
        let last = self.lines.len().saturating_sub(self.height);
        self.top = self.top.saturating_add_signed(lines).min(last);
    }

    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// How far it is scrolled, of a hundred; `None` where all of it is on the screen.
    pub fn percent(&self) -> Option<usize> {
        let last = self.lines.len().saturating_sub(self.height);
        (self.top * 100).checked_div(last)
    }
}

impl Comparison {
    fn layout(&self, columns: usize) -> Vec<Line> {
        let common = match &self.ancestor {
            Some(ancestor) => format!("Both come from: {ancestor}"),
            None => "They have nothing in common.".to_owned(),
        };
        let mut out: Vec<Line> = pieces(Look::Ancestor, &common, columns)
            .map(Line::Whole)
            .collect();
        out.push(Line::Whole(Piece::default()));
        if columns < NARROW {
            for side in [&self.left, &self.right] {
                out.extend(side.layout(columns).into_iter().map(Line::Whole));
                out.push(Line::Whole(Piece::default()));
            }
            return out;
        }
        let half = (columns - GAP) / 2;
        let mut left = self.left.layout(half).into_iter();
        let mut right = self.right.layout(half).into_iter();
        loop {
            match (left.next(), right.next()) {
                (None, None) => return out,
                (one, other) => out.push(Line::Halves(
                    half,
                    one.unwrap_or_default(),
                    other.unwrap_or_default(),
                )),
            }
        }
    }
}

fn pieces(look: Look, text: &str, columns: usize) -> impl Iterator<Item = Piece> {
    let lines = text::wrap(text, columns).into_iter();
    lines.map(move |text| Piece { look, text })
}

impl Side {
    /// Messages since they parted, those that are not shown too.
    pub fn messages(&self) -> usize {
        self.said.len() + self.gap.map_or(0, |gap| gap.messages)
    }

    fn layout(&self, columns: usize) -> Vec<Piece> {
        let mut out = Vec::new();
        let mut push = |look, text: &str| out.extend(pieces(look, text, columns));
        push(Look::Heading, &text::cut(&self.tip, columns));
        push(
            Look::Dim,
            &match self.messages() {
                0 => "nothing since".to_owned(),
                1 => "1 message since".to_owned(),
                count => format!("{count} messages since"),
            },
        );
        for (title, files) in [("modified", &self.modified), ("read", &self.read)] {
            if !files.is_empty() {
                let more = if files.len() < SHOWN_FILES { "" } else { "+" };
                push(Look::Text, "");
                push(Look::Heading, &format!("{title}: {}{more}", files.len()));
            }
            for file in files {
                push(Look::File, &text::cut_front(file, columns));
            }
        }
        push(Look::Text, "");
        for (at, said) in self.said.iter().enumerate() {
            if let Some(gap) = self.gap.filter(|gap| gap.after == at) {
                push(Look::Dim, &format!("… {} more messages …", gap.messages));
            }
            let (look, who) = match &said.kind {
                Kind::User => (Look::User, "user: "),
                Kind::Assistant => (Look::Text, "assistant: "),
                Kind::Summary => (Look::Text, "summary: "),
                Kind::Compaction => (Look::Text, "compaction: "),
                _ => (Look::Dim, ""),
            };
            push(look, &format!("{who}{}", said.text));
        }
        out
    }
}
