//! The help of the program. It lists the commands by their purpose.

use super::table::GROUPS;
use treelined_core::terminal;

/// The width of the column of command names, with the gap after it.
const NAMES: usize = 17;
/// The number of columns before a name.
const MARGIN: usize = 2;
/// The fewest columns for a text beside a name. With fewer columns the text is below the name.
const FEWEST: usize = 24;
/// The number of columns before a text below a name.
const BELOW: usize = 10;

/// The template of clap for the help. When the help is not printed to a terminal, its styles are removed.
pub(super) fn template() -> String {
    let mut groups = String::new();
    for group in GROUPS {
        groups += &heading(group.title);
        for row in group.rows.iter().filter(|row| row.is_built) {
            let name = bold(&format!("{:<NAMES$}", row.name));
            groups += &format!("{:MARGIN$}{name}{}\n", "", row.about);
        }
        groups.push('\n');
    }
    let options = heading("Options of every command");
    format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}{options}{{options}}{{after-help}}"
    )
}

/// Wraps a text to lines of at most `columns` columns, unless a word is longer. The following lines are indented to
/// the column where the explanation begins, after the name of an option or an example.
pub(super) fn fitted(text: &str, columns: usize) -> String {
    let lines = text.lines().map(|line| match shown_width(line) <= columns {
        true => line.to_owned(),
        false => fitted_line(line, columns),
    });
    lines.map(|line| line + "\n").collect()
}

fn fitted_line(line: &str, columns: usize) -> String {
    let margin = line.len() - line.trim_start().len();
    let gap = line.get(margin..).and_then(|text| text.find("  "));
    let begin = gap.map_or(margin, |gap| {
        let rest = line.get(margin + gap..).unwrap_or_default();
        margin + gap + rest.len() - rest.trim_start().len()
    });
    let (name, text) = line.split_at_checked(begin).unwrap_or(("", line));
    let mut place = shown_width(name);
    let (mut out, mut column) = (name.to_owned(), place);
    if begin > margin && place + FEWEST > columns {
        place = BELOW;
        out = format!("{}\n{:place$}", name.trim_end(), "");
        column = place;
    }
    for (at, word) in text.split(' ').enumerate() {
        let width = shown_width(word);
        if at > 0 && column + 1 + width > columns {
            out += &format!("\n{:place$}", "");
            column = place;
        } else if at > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += width;
    }
    out
}

/// The width of a text in columns, without its styles.
fn shown_width(text: &str) -> usize {
    let mut parts = text.split('\x1b');
    let plain = parts.next().map_or(0, terminal::width);
    let styled = parts.map(|part| {
        part.split_once('m')
            .map_or(0, |(_, text)| terminal::width(text))
    });
    plain + styled.sum::<usize>()
}

fn heading(title: &str) -> String {
    format!("\x1b[1m\x1b[4m{title}:\x1b[0m\n")
}

fn bold(text: &str) -> String {
    format!("\x1b[1m{text}\x1b[0m")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_go_on_below_their_text() {
        let text = "Usage: x\n  -a, --all  \x1b[1mOf all\x1b[0m directories, whose names are long\nwhole words stay";
        for (columns, expected) in [
            (80, format!("{text}\n")),
            (
                38,
                "Usage: x\n  -a, --all  \x1b[1mOf all\x1b[0m directories, whose\n             names are long\n\
                 whole words stay\n"
                    .to_owned(),
            ),
            (
                30,
                "Usage: x\n  -a, --all\n          \x1b[1mOf all\x1b[0m directories,\n          whose names are long\n\
                 whole words stay\n"
                    .to_owned(),
            ),
        ] {
            assert_eq!(fitted(text, columns), expected, "{columns}");
        }
    }
}
