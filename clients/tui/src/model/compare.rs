//! Two branches side by side, below their common ancestor. The lines are wrapped once for each
//! width.

use crate::markdown::Prose;
use crate::message::{Comparison, Kind, SHOWN_FILES, Side};
use crate::text;
use std::time::Duration;

/// If the pane has fewer columns than this, the branches are shown one below the other.
const NARROW: usize = 60;

/// The number of columns between the two branches.
const GAP: usize = 3;

/// A running comparison.
#[derive(Debug)]
pub struct RunningComparison {
    pub id: u64,
    /// The time of its start, since the program's start.
    pub began: Duration,
    /// The number of entries read so far.
    pub read: usize,
    /// An upper bound of `read`: the number of entries above the two marked entries.
    pub most: usize,
}

impl RunningComparison {
    /// Returns whether to show the progress. Most comparisons end before a person could read it.
    pub fn is_shown(&self, now: Duration) -> bool {
        now.saturating_sub(self.began) > Duration::from_millis(400)
    }
}

/// A line of the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    Whole(Piece),
    /// The width of the left half in columns, the left half, and the right half.
    Halves(usize, Piece, Piece),
}

/// A text in one style.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Piece {
    pub look: TextStyle,
    pub prose: Prose,
}

/// The style of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TextStyle {
    Ancestor,
    Heading,
    User,
    Assistant,
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
    /// The width for which the lines are laid out.
    columns: usize,
    /// The first visible line; both sides scroll together.
    pub top: usize,
    /// The height of the pane.
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

    /// Sets the size of the pane.
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

    /// Returns the position of the view in percent; `None` if all lines are visible.
    pub fn percent(&self) -> Option<usize> {
        let last = self.lines.len().saturating_sub(self.height);
        (self.top * 100).checked_div(last)
    }
}

impl Comparison {
    fn layout(&self, columns: usize) -> Vec<Line> {
        let common = match &self.ancestor {
            Some(ancestor) => {
                let room = (2 * columns).saturating_sub("Common ancestor: ".len() + 2);
                format!("Common ancestor: {}", text::cut(ancestor, room))
            }
            None => "They have no common ancestor.".to_owned(),
        };
        let mut out: Vec<Line> = pieces(TextStyle::Ancestor, &common, columns)
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

fn pieces(look: TextStyle, text: &str, columns: usize) -> impl Iterator<Item = Piece> {
    let prose = match look {
        // These texts are Markdown that people and models wrote.
        TextStyle::File | TextStyle::Dim => Prose::plain(text),
        _ => Prose::parse(text),
    };
    let lines = prose.wrap(columns).into_iter();
    lines.map(move |prose| Piece { look, prose })
}

impl Side {
    /// Returns the number of messages, including those that are left out.
    pub fn messages(&self) -> usize {
        self.messages.len() + self.gap.map_or(0, |gap| gap.messages)
    }

    fn layout(&self, columns: usize) -> Vec<Piece> {
        let mut out = Vec::new();
        let mut push = |look, text: &str| out.extend(pieces(look, text, columns));
        push(TextStyle::Heading, &text::cut(&self.tip, columns));
        let mut since = match self.messages() {
            0 => "nothing since".to_owned(),
            1 => "1 message since".to_owned(),
            count => format!("{count} messages since"),
        };
        if let Some(cost) = &self.cost {
            since += &format!(", cost {cost}");
        }
        push(TextStyle::Dim, &since);
        for (title, files) in [("modified", &self.modified), ("read", &self.read)] {
            if !files.is_empty() {
                let more = if files.len() < SHOWN_FILES { "" } else { "+" };
                push(TextStyle::Text, "");
                push(
                    TextStyle::Heading,
                    &format!("{title}: {}{more}", files.len()),
                );
            }
            for file in files {
                push(TextStyle::File, &text::cut_front(file, columns));
            }
        }
        push(TextStyle::Text, "");
        for (at, message) in self.messages.iter().enumerate() {
            if let Some(gap) = self.gap.filter(|gap| gap.after == at) {
                push(
                    TextStyle::Dim,
                    &format!("… {} more messages …", gap.messages),
                );
            }
            let (look, who) = match &message.kind {
                Kind::User => (TextStyle::User, "**user:** "),
                Kind::Assistant => (TextStyle::Assistant, "**assistant:** "),
                Kind::Summary => (TextStyle::Text, "**summary:** "),
                Kind::Compaction => (TextStyle::Text, "**compaction:** "),
                _ => (TextStyle::Dim, ""),
            };
            push(look, &format!("{who}{}", message.text));
        }
        out
    }
}
