//! Lays out a document for a width. Each closed tool call and each closed thought takes one line.

use super::{Closed, Content, Document, Line, Part};
use crate::markdown::Prose;
use crate::model::prose::{LineStyle, SourceLine};
use crate::text;

impl Document {
    /// Lays out the entry in `columns`.
    pub fn layout(&self, columns: usize) -> Vec<Line> {
        self.layout_with(columns, Closed::default())
    }

    /// Lays out the entry in `columns`. A closed call, result or thought becomes one line with the number of its
    /// lines.
    pub fn layout_with(&self, columns: usize, closed: Closed) -> Vec<Line> {
        let is_one = |a: &Part, b: &Part| (a.content, a.block) == (b.content, b.block);
        let mut out: Vec<Line> = Vec::new();
        for parts in self.parts.chunk_by(is_one) {
            match parts {
                [first, ..] if closed.has(first.content) => out.extend(closed_line(parts, columns)),
                _ => parts
                    .iter()
                    .for_each(|part| lay_out(part, columns, &mut out)),
            }
        }
        out
    }
}

fn lay_out(part: &Part, columns: usize, out: &mut Vec<Line>) {
    for line in &part.lines {
        let style = part.style;
        let pieces = laid_out(line, style, columns);
        out.extend(pieces.into_iter().map(|prose| Line { style, prose }));
    }
}

/// Wraps a line into lines of at most `columns`.
fn laid_out(line: &SourceLine, style: LineStyle, columns: usize) -> Vec<Prose> {
    let keeps_columns = [
        LineStyle::Code,
        LineStyle::Added,
        LineStyle::Removed,
        LineStyle::Table,
    ];
    if keeps_columns.contains(&style) {
        let whole = format!("{}{}", line.marker, line.prose.text);
        let folded = text::fold(&whole, columns);
        return folded.into_iter().map(Prose::plain).collect();
    }
    let wide = text::width(&line.marker);
    if wide == 0 || wide >= columns {
        return line.prose.wrap(columns);
    }
    let indent = match style {
        // Each line of a quotation has its bar in front.
        LineStyle::Quote => line.marker.clone(),
        _ => " ".repeat(wide),
    };
    let wrapped = line.prose.wrap(columns - wide).into_iter().enumerate();
    let placed = wrapped.map(|(at, prose)| match at {
        0 => prose.behind(&line.marker),
        _ => prose.behind(&indent),
    });
    placed.collect()
}

fn closed_line(parts: &[Part], columns: usize) -> Option<Line> {
    let count: usize = parts.iter().map(|part| part.lines.len()).sum();
    let first = parts.first()?;
    let begin = &first.lines.first()?.prose.text;
    let mark = match first.content {
        Content::Thinking => "▸ thinking: ",
        _ => "▸ ",
    };
    let rest = match count {
        1 => String::new(),
        count => format!("  ({count} lines)"),
    };
    let room = columns.saturating_sub(text::width(mark) + text::width(&rest));
    Some(Line {
        style: LineStyle::Note,
        prose: Prose::plain(format!("{mark}{}{rest}", text::cut(begin, room))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Readers of answers once had to scroll past long calls and thoughts in each entry.
    #[test]
    fn calls_and_thoughts_are_closed_to_a_line_each() {
        let entry = json!({"type": "message", "id": "a", "message": {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "First\nthe cache"},
            {"type": "text", "text": "I look."},
            {"type": "toolCall", "id": "1", "name": "bash", "arguments": {"command": "ls\npwd"}},
            {"type": "toolCall", "id": "2", "name": "read", "arguments": {"path": "a"}},
        ]}});
        let document = Document::of(&entry);
        let shown = |closed| -> Vec<String> {
            let lines = document.layout_with(40, closed).into_iter();
            lines.map(|line| line.prose.text).collect()
        };
        let open = shown(Closed::default());
        let tools = Closed {
            tools: true,
            thinking: false,
        };
        let all = Closed {
            tools: true,
            thinking: true,
        };
        assert_eq!(open.len(), 6, "{open:?}");
        let calls = ["▸ → bash(command: ls  (2 lines)", "▸ → read(path: a)"];
        assert_eq!(shown(tools).get(3..), Some(&calls.map(str::to_owned)[..]));
        let all = shown(all);
        assert_eq!(all.first().unwrap(), "▸ thinking: First  (2 lines)");
        assert_eq!(all.len(), 4, "{all:?}");
        let result = json!({"type": "message", "id": "r", "message": {"role": "toolResult",
            "toolCallId": "1", "content": [{"type": "text", "text": "one\ntwo\nthree"}]}});
        let lines = Document::of(&result).layout_with(40, tools);
        let lines: Vec<&str> = lines.iter().map(|line| &*line.prose.text).collect();
        assert_eq!(lines, ["▸ one  (3 lines)"]);
    }
}
