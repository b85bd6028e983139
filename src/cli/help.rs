//! The help of the program: its commands by what a person wants to do.

use super::screen::columns;
use super::table::GROUPS;
use std::io::{self, IsTerminal};
use treelined_core::terminal;

/// Columns of the names of commands, with the gap behind them.
const NAMES: usize = 13;
/// Columns before a name.
const MARGIN: usize = 2;

/// The template of clap for the help. Without a terminal the styles are left out when it is printed.
pub(super) fn template() -> String {
    let columns = columns(io::stdout().is_terminal());
    let mut groups = String::new();
    for group in GROUPS {
        groups += &heading(group.title);
        for row in group.rows.iter().filter(|row| row.is_built) {
            let left = columns.saturating_sub(MARGIN + NAMES);
            let about = wrapped(row.about, left).join(&format!("\n{:1$}", "", MARGIN + NAMES));
            let name = bold(&format!("{:<NAMES$}", row.name));
            groups += &format!("{:MARGIN$}{name}{about}\n", "");
        }
        groups.push('\n');
    }
    let options = heading("Options of every command");
    format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}{options}{{options}}{{after-help}}"
    )
}

fn heading(title: &str) -> String {
    format!("\x1b[1m\x1b[4m{title}:\x1b[0m\n")
}

fn bold(text: &str) -> String {
    format!("\x1b[1m{text}\x1b[0m")
}

/// The words in lines of at most so many columns, but for a word that is longer.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if terminal::width(line) + 1 + terminal::width(word) <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
