//! Stdout as a terminal: its width, its colours, its pager, and the writing.
//!
//! This module has the styles. Callers must first sanitize text with [`treelined_core::terminal`].

use super::interrupt;
use super::options::Options;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::process::{Command, Stdio};
use treelined_core::terminal;
use treelined_files::os::stream::terminal_columns;

/// The width in columns if the width of the terminal is unknown.
const COLUMNS: usize = 100;
/// If the terminal has fewer columns than this, its width counts as unknown.
const FEWEST_COLUMNS: usize = 20;

/// The exit codes of a shell that did not find the program, or was not allowed to run it.
const NO_PROGRAM: [i32; 2] = [126, 127];

/// Stdout, directly or through a pager.
pub(super) struct Screen {
    out: ScreenOutput,
    pub columns: usize,
    colours: bool,
}

enum ScreenOutput {
    Direct(BufWriter<StdoutLock<'static>>),
    /// The text for the pager, collected until [`Screen::finish`].
    Collected(Vec<u8>),
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
    /// Stdout without a pager.
    pub(super) fn new() -> Self {
        Self::of(ScreenOutput::Direct(BufWriter::new(io::stdout().lock())))
    }

    /// Stdout through the pager of the user, if stdout is a terminal. [`Self::finish`] shows the text.
    pub(super) fn paged(options: &Options) -> Self {
        let is_paged = !options.no_pager && io::stdout().is_terminal() && pager().is_some();
        match is_paged {
            true => Self::of(ScreenOutput::Collected(Vec::new())),
            false => Self::new(),
        }
    }

    fn of(out: ScreenOutput) -> Self {
        let is_terminal = io::stdout().is_terminal();
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let dumb = set("TERM").is_some_and(|term| term == "dumb");
        Self {
            out,
            columns: columns(is_terminal),
            colours: is_terminal && !dumb && set("NO_COLOR").is_none(),
        }
    }

    pub(super) fn has_colours(&self) -> bool {
        self.colours
    }

    /// `text` in this style, if the terminal has colours.
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

    /// Writes a dim note. A note that is wider than the screen is broken after commas and semicolons, so that an option
    /// and its explanation stay on one line.
    pub(super) fn note(&mut self, note: &str) -> io::Result<()> {
        for line in lines_of(note, self.columns) {
            let line = self.style(Style::Dim, line);
            writeln!(self, "{line}")?;
        }
        Ok(())
    }

    /// Shows everything that was written, and waits until the user leaves the pager.
    pub(super) fn finish(self) -> io::Result<()> {
        match (self.out, pager()) {
            (ScreenOutput::Direct(mut out), _) => out.flush(),
            (ScreenOutput::Collected(text), Some(program)) => {
                interrupt::leave_to_pager(|| show_in(&program, &text))
            }
            (ScreenOutput::Collected(text), None) => io::stdout().lock().write_all(&text),
        }
    }
}

/// A text with the ranges where a query matches, in characters, ascending and disjoint.
#[derive(Debug, Clone, Copy)]
pub(super) struct MarkedText<'t> {
    pub text: &'t str,
    pub ranges: &'t [[usize; 2]],
}

impl MarkedText<'_> {
    /// Draws the text without control characters, in at most `columns` columns. Matches have their own style; the
    /// other text has the style `rest`.
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
        match &mut self.out {
            ScreenOutput::Direct(out) => out.write(bytes),
            ScreenOutput::Collected(text) => text.write(bytes),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        match &mut self.out {
            ScreenOutput::Direct(out) => out.flush(),
            ScreenOutput::Collected(_) => Ok(()),
        }
    }
}

/// The lines of a note. Only a part without a comma or semicolon is wider than `columns`.
fn lines_of(note: &str, columns: usize) -> Vec<&str> {
    let (mut lines, mut start, mut fits) = (Vec::new(), 0, 0);
    let parts = note.split_inclusive([',', ';']);
    let ends = parts.scan(0, |end, part| {
        *end += part.len();
        Some(*end)
    });
    // A comma within a number is not followed by a space.
    let is_end = |end: &usize| {
        note.get(*end..)
            .is_some_and(|rest| !rest.starts_with(|next| next != ' '))
    };
    for end in ends.filter(is_end) {
        let line = note.get(start..end).unwrap_or_default().trim_start();
        if terminal::width(line) > columns && fits > start {
            lines.push(note.get(start..fits).unwrap_or_default().trim());
            start = fits;
        }
        fits = end;
    }
    lines.push(note.get(start..).unwrap_or_default().trim());
    lines
}

fn columns(is_terminal: bool) -> usize {
    let said = std::env::var("COLUMNS").ok();
    let said = said.and_then(|columns| columns.trim().parse().ok());
    let known = said.or_else(|| is_terminal.then(terminal_columns).flatten());
    known.map_or(COLUMNS, |columns: usize| columns.max(FEWEST_COLUMNS))
}

/// The command of the user's pager; `None` if the user does not want a pager.
fn pager() -> Option<String> {
    let chosen = std::env::var("PAGER").unwrap_or_else(|_| "less".to_owned());
    (!matches!(chosen.trim(), "" | "cat")).then_some(chosen)
}

/// Shows the text in this pager. If the pager ends before the end of the text, the user has seen enough.
fn show_in(program: &str, text: &[u8]) -> io::Result<()> {
    let mut pager = Command::new("sh");
    pager.args(["-c", program]).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        // less then ends by itself if one screen is enough, shows colours, and leaves the text on the screen.
        pager.env("LESS", "FRX");
    }
    let mut pager = pager.spawn()?;
    if let Some(mut input) = pager.stdin.take() {
        // This fails if the user leaves the pager before the end of the text.
        let _left = input.write_all(text);
    }
    match pager.wait()?.code() {
        Some(code) if NO_PROGRAM.contains(&code) => io::stdout().lock().write_all(text),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_broken_after_commas_and_semicolons() {
        let note = "3 branches folded with 6 entries; --all shows them, --expand ENTRY opens one";
        assert_eq!(lines_of(note, 80), [note]);
        let in_three = [
            "3 branches folded with 6 entries;",
            "--all shows them,",
            "--expand ENTRY opens one",
        ];
        assert_eq!(lines_of(note, 40), in_three);
        let in_two = [in_three[0], "--all shows them, --expand ENTRY opens one"];
        assert_eq!(lines_of(note, 50), in_two);
        assert_eq!(lines_of("a word, and", 3), ["a word,", "and"]);
        assert_eq!(lines_of("4,213 words", 3), ["4,213 words"]);
        assert_eq!(lines_of("", 3), [""]);
    }
}
