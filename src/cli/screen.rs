//! Stdout as a terminal: its width, its colours, and writing to it.
//!
//! Owns the styles. Callers sanitize text with [`crate::terminal`] first.

use crate::os::stream::terminal_columns;
use crate::terminal;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::process::{Command, Stdio};

/// The width if it is unknown, in columns.
const COLUMNS: usize = 100;
/// A smaller width counts as unknown.
const FEWEST_COLUMNS: usize = 20;

/// Locked stdout.
pub(super) struct Screen {
    out: BufWriter<StdoutLock<'static>>,
    pub columns: usize,
    colours: bool,
}

/// A style of text, for terminals with colours.
#[derive(Debug, Clone, Copy)]
pub(super) enum Style {
    Bold,
    Dim,
    Green,
    Yellow,
    Cyan,
    Red,
    /// A match of a query.
    Mark,
}

impl Screen {
    pub(super) fn new() -> Self {
        let is_terminal = io::stdout().is_terminal();
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let dumb = set("TERM").is_some_and(|term| term == "dumb");
        Self {
            out: BufWriter::new(io::stdout().lock()),
            columns: columns(is_terminal),
            colours: is_terminal && !dumb && set("NO_COLOR").is_none(),
        }
    }

    /// `text` in this style, if there are colours.
    pub(super) fn style(&self, style: Style, text: &str) -> String {
        if !self.colours || text.trim().is_empty() {
            return text.to_owned();
        }
        let code = match style {
            Style::Bold => 1,
            Style::Dim => 2,
            Style::Red => 31,
            Style::Green => 32,
            Style::Yellow => 33,
            Style::Cyan => 36,
            Style::Mark => return format!("\x1b[1;33m{text}\x1b[0m"),
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// A text with the places where a query matches, in characters, ascending and disjoint.
#[derive(Debug, Clone, Copy)]
pub(super) struct MarkedText<'t> {
    pub text: &'t str,
    pub ranges: &'t [[usize; 2]],
}

impl MarkedText<'_> {
    /// The text without controls, in at most `columns` columns. Matches have a style of their own, the rest has `rest`.
    pub(super) fn draw(
        self,
        screen: &Screen,
        columns: usize,
        cut: &str,
        rest: impl Fn(&str) -> String,
    ) -> String {
        let (mut out, mut left, mut done) = (String::new(), columns, 0);
        let end = self.text.chars().count();
        let ends = self.ranges.iter().map(|[start, end]| (*start, *end));
        for (start, stop) in ends.chain([(end, end)]) {
            for (from, to, is_match) in [(done, start, false), (start, stop, true)] {
                let part: String = self
                    .text
                    .chars()
                    .skip(from)
                    .take(to - from.min(to))
                    .collect();
                let part = terminal::line(&part);
                let shown = terminal::cut(&part, left, cut);
                out.push_str(&match is_match {
                    true => screen.style(Style::Mark, &shown),
                    false => rest(&shown),
                });
                if shown != part {
                    return out;
                }
                left -= terminal::width(&shown);
            }
            done = stop;
        }
        out
    }
}

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn columns(is_terminal: bool) -> usize {
    let said = std::env::var("COLUMNS").ok();
    let said = said.and_then(|columns| columns.trim().parse().ok());
    let known = said.or_else(|| is_terminal.then(terminal_columns).flatten());
    known.map_or(COLUMNS, |columns: usize| columns.max(FEWEST_COLUMNS))
}

/// A program through which text is shown page by page.
pub(super) struct Pager;

impl Pager {
    /// Shows the text in the user's pager if stdout is a terminal, else writes it there.
    pub(super) fn show(mut screen: Screen, text: &str) -> io::Result<()> {
        let chosen = std::env::var("PAGER").unwrap_or_else(|_| "less".to_owned());
        let is_wanted = io::stdout().is_terminal() && !matches!(chosen.trim(), "" | "cat");
        if !is_wanted {
            screen.write_all(text.as_bytes())?;
            return screen.flush();
        }
        // The pager writes to the same terminal.
        drop(screen);
        let mut pager = Command::new("sh");
        pager.args(["-c", &chosen]).stdin(Stdio::piped());
        if std::env::var_os("LESS").is_none() {
            // Ends if one screen is enough, passes colours, and leaves the text on the screen.
            pager.env("LESS", "FRX");
        }
        let mut pager = pager.spawn()?;
        if let Some(mut input) = pager.stdin.take() {
            // The user may leave before the end.
            let _left = input.write_all(text.as_bytes());
        }
        match pager.wait()?.success() {
            true => Ok(()),
            // There is no such program.
            false => io::stdout().lock().write_all(text.as_bytes()),
        }
    }
}
