//! Writes plain text: a rule with the speaker before each turn; output is indented.

use super::piece::Piece;
use super::row::{TranscriptSource, WrittenEntry, heading};
use treelined_core::entry::Role;
use treelined_core::terminal;

/// The width of a rule in columns.
const COLUMNS: usize = 78;

/// The first lines of the document, about the session.
pub(super) fn head(source: &TranscriptSource) -> String {
    let head = &source.head;
    let title = match head.title.trim() {
        "" => "(no messages)",
        title => title,
    };
    let about = format!("{} · {}", head.session_id, head.cwd);
    format!("{}\n{}\n", terminal::line(title), terminal::line(&about))
}

pub(super) fn push_entry(out: &mut String, entry: &WrittenEntry<'_>) {
    if let Some(turn) = entry.row.begins {
        let heading = format!("── {turn}. {} ", heading(entry.row));
        let rest = COLUMNS.saturating_sub(terminal::width(&heading)).max(2);
        out.push_str(&format!("\n{heading}{}\n", "─".repeat(rest)));
        if let Some(back_to) = entry.row.back_to {
            out.push_str(&format!("(another branch, after {back_to})\n"));
        }
        out.push('\n');
    }
    for piece in &entry.pieces {
        match piece {
            Piece::Said(text) | Piece::Thinking(text) if text.trim().is_empty() => continue,
            Piece::Said(text) => push_lines(out, "", text),
            Piece::Thinking(text) => push_lines(out, "  ~ ", text),
            Piece::Call { title, .. } => push_lines(out, "", &format!("[{title}]")),
            Piece::Output {
                title,
                text,
                is_error,
            } => {
                // The call above the result has the same title.
                let is_result = entry.row.subject.role == Role::ToolResult;
                let mark = match (is_error, is_result) {
                    (true, _) => " failed",
                    (false, true) => " result",
                    (false, false) => "",
                };
                push_lines(out, "", &format!("[{title}]{mark}"));
                push_lines(out, "    ", text);
            }
            Piece::LeftOut(what) => push_lines(out, "", &format!("[{what}]")),
        }
    }
}

fn push_lines(out: &mut String, indent: &str, text: &str) {
    for line in text.lines() {
        out.push_str(indent);
        // A tab is a control character too, but it has no effect beyond its line, so it stays.
        for (at, part) in line.split('\t').enumerate() {
            if at > 0 {
                out.push('\t');
            }
            out.push_str(&terminal::line(part));
        }
        out.push('\n');
    }
}
