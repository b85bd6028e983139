//! Markdown line by line: headings, lists, quotations, fenced code, tables and rules.

use crate::markdown::Prose;
use crate::text;

/// The indentation of fenced code.
const CODE_INDENT: &str = "  ";

/// The width of a rule between parts in columns.
const RULE: usize = 24;

/// A line that is not wrapped yet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceLine {
    /// The text before the first of the wrapped lines. The other lines are indented by its width.
    pub marker: String,
    pub prose: Prose,
}

impl SourceLine {
    pub fn plain(text: impl Into<String>) -> Self {
        Self {
            marker: String::new(),
            prose: Prose::plain(text),
        }
    }
}

/// The style of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineStyle {
    Text,
    Heading,
    /// A quotation.
    Quote,
    Code,
    /// A line that an edit adds.
    Added,
    /// A line that an edit removes.
    Removed,
    /// A row of a table. Its columns are not changed by wrapping.
    Table,
    /// Thinking of the model.
    Thinking,
    /// A tool call, an image, or a rule between parts.
    Note,
    Error,
}

/// Returns the lines to show, each with its style. They are sanitized.
pub fn lines(source: &[String]) -> Vec<(LineStyle, SourceLine)> {
    let mut out = Vec::with_capacity(source.len());
    let mut fence: Option<&str> = None;
    let mut rest = source.iter().enumerate();
    while let Some((at, line)) = rest.next() {
        let trimmed = line.trim_start();
        if let Some(open) = fence {
            match trimmed.starts_with(open) && trimmed.trim_matches(['`', '~', ' ']).is_empty() {
                true => fence = None,
                false => out.push((
                    LineStyle::Code,
                    SourceLine::plain(format!("{CODE_INDENT}{line}")),
                )),
            }
            continue;
        }
        fence = ["```", "~~~"]
            .into_iter()
            .find(|mark| trimmed.starts_with(mark));
        if fence.is_some() {
            continue;
        }
        let table = table_rows(source.get(at..).unwrap_or_default());
        if table > 1 {
            let rows = source.get(at..at + table).unwrap_or_default();
            out.extend(table_lines(rows));
            // The iterator has returned the first row already.
            rest.nth(table - 2);
            continue;
        }
        out.push(line_of(line, trimmed));
    }
    out
}

/// Returns a line that belongs neither to code nor to a table.
fn line_of(line: &str, trimmed: &str) -> (LineStyle, SourceLine) {
    let indent = " ".repeat((line.len() - trimmed.len()).min(12));
    let marked = |style, marker: String, text: &str| {
        let prose = Prose::parse(text);
        (style, SourceLine { marker, prose })
    };
    if let Some(text) = heading(trimmed) {
        return marked(LineStyle::Heading, String::new(), text);
    }
    if trimmed.len() >= 3 && ["---", "***", "___"].iter().any(|it| is_only(trimmed, it)) {
        return (LineStyle::Note, SourceLine::plain("─".repeat(RULE)));
    }
    if let Some(text) = trimmed.strip_prefix('>') {
        let text = text.strip_prefix(' ').unwrap_or(text);
        return marked(LineStyle::Quote, format!("{indent}▎ "), text);
    }
    let bullet = ["- ", "* ", "+ "]
        .iter()
        .find_map(|it| trimmed.strip_prefix(it));
    if let Some(text) = bullet {
        let (mark, text) = match (text.strip_prefix("[ ] "), text.strip_prefix("[x] ")) {
            (Some(open), _) => ("☐ ", open),
            (_, Some(done)) => ("☑ ", done),
            _ => ("• ", text),
        };
        return marked(LineStyle::Text, format!("{indent}{mark}"), text);
    }
    let digits = trimmed.len()
        - trimmed
            .trim_start_matches(|char: char| char.is_ascii_digit())
            .len();
    let (number, text) = trimmed.split_at(digits);
    if (1..=4).contains(&digits)
        && let Some(text) = text.strip_prefix(". ")
    {
        return marked(LineStyle::Text, format!("{indent}{number}. "), text);
    }
    (
        LineStyle::Text,
        SourceLine {
            marker: String::new(),
            prose: Prose::parse(line),
        },
    )
}

/// Returns whether the line is only repetitions of the mark of a rule.
fn is_only(line: &str, rule: &str) -> bool {
    let mark = rule.chars().next();
    line.chars().all(|char| char == ' ' || Some(char) == mark)
}

fn heading(line: &str) -> Option<&str> {
    let hashes = line.len() - line.trim_start_matches('#').len();
    let text = line.get(hashes..)?.strip_prefix(' ')?;
    (1..=6).contains(&hashes).then(|| text.trim())
}

/// Returns the number of rows of the table at the beginning of `lines`; 0 if there is no table.
fn table_rows(lines: &[String]) -> usize {
    let is_row = |line: &String| line.trim_start().starts_with('|');
    let rule = |line: &String| {
        let inner = line.trim();
        is_row(line) && inner.contains('-') && inner.chars().all(|it| "|-: ".contains(it))
    };
    match (lines.first(), lines.get(1)) {
        (Some(head), Some(second)) if is_row(head) && rule(second) => {
            lines.iter().take_while(|line| is_row(line)).count()
        }
        _ => 0,
    }
}

/// Aligns the columns of a table.
fn table_lines(rows: &[String]) -> Vec<(LineStyle, SourceLine)> {
    let cells = |row: &String| -> Vec<String> {
        let row = row.trim().trim_matches('|');
        let cells = row.split('|').map(|cell| Prose::parse(cell.trim()).text);
        cells.collect()
    };
    // The second row is the rule below the heading, and is left out.
    let body = rows.iter().enumerate().filter(|(at, _)| *at != 1);
    let table: Vec<Vec<String>> = body.map(|(_, row)| cells(row)).collect();
    let mut widths: Vec<usize> = Vec::new();
    for row in &table {
        widths.resize(widths.len().max(row.len()), 0);
        for (wide, cell) in widths.iter_mut().zip(row) {
            *wide = (*wide).max(text::width(cell));
        }
    }
    let mut out = Vec::new();
    for (at, row) in table.iter().enumerate() {
        let padded = row.iter().zip(&widths).map(|(cell, wide)| {
            let gap = " ".repeat(wide.saturating_sub(text::width(cell)));
            format!("{cell}{gap}")
        });
        let line = padded.collect::<Vec<_>>().join(" │ ");
        let style = if at == 0 {
            LineStyle::Heading
        } else {
            LineStyle::Table
        };
        out.push((style, SourceLine::plain(line)));
        if at == 0 {
            let rules: Vec<String> = widths.iter().map(|wide| "─".repeat(*wide)).collect();
            out.push((LineStyle::Note, SourceLine::plain(rules.join("─┼─"))));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let source: Vec<String> = text.lines().map(str::to_owned).collect();
        let lines = lines(&source).into_iter();
        let one = |(style, line): (LineStyle, SourceLine)| {
            let text = format!("{}{}", line.marker, line.prose.text);
            format!("{style:?}: {}", text.trim_end())
        };
        lines.map(one).collect()
    }

    #[test]
    fn blocks_are_rendered() {
        let text =
            "## Plan ##\n- [ ] one\n  * **two**\n3. three\n> said\n---\n```sh\nls -l\n```\nend";
        assert_eq!(
            shown(text),
            [
                "Heading: Plan ##",
                "Text: ☐ one",
                "Text:   • two",
                "Text: 3. three",
                "Quote: ▎ said",
                "Note: ────────────────────────",
                "Code:   ls -l",
                "Text: end",
            ]
        );
    }

    #[test]
    fn columns_of_tables_are_aligned() {
        assert_eq!(
            shown("| a | long |\n|---|:--|\n| `漢字` | b |\nend"),
            [
                "Heading: a    │ long",
                "Note: ─────┼─────",
                "Table: 漢字 │ b",
                "Text: end"
            ]
        );
        assert_eq!(shown("| no table"), ["Text: | no table"]);
    }

    #[test]
    fn an_open_fence_keeps_the_rest_as_code() {
        assert_eq!(shown("~~~\n```\n# a"), ["Code:   ```", "Code:   # a"]);
    }
}
