//! Writes Markdown: front matter, a heading for each turn; thinking, calls and output are folded.

use super::piece::Piece;
use super::row::{Speaker, TranscriptRow, TranscriptSource, WrittenEntry, heading};
use treelined_core::{json, terminal};

/// The front matter, the title, and the outline (rows with their first lines) if it is given.
pub(super) fn head(
    source: &TranscriptSource,
    outline: Option<Vec<(&TranscriptRow, String)>>,
) -> String {
    let head = &source.head;
    let mut out = String::from("---\n");
    let quoted = |text: &str| String::from_utf8_lossy(&json::quoted(text)).into_owned();
    let mut member = |name: &str, value: String| out.push_str(&format!("{name}: {value}\n"));
    member("title", quoted(&head.title));
    member("session", quoted(&head.session_id));
    member("directory", quoted(&head.cwd));
    if let Some(created) = &head.created {
        member("created", quoted(created));
    }
    member("exported", quoted(&head.exported_at));
    member("scope", source.scope.to_owned());
    member("entries", source.rows.len().to_string());
    member("redacted", source.is_redacted.to_string());
    out.push_str("---\n\n# ");
    let title = match head.title.trim() {
        "" => "(no messages)",
        title => title,
    };
    push_line(&mut out, title);
    out.push_str("\n\n");
    if let Some(rows) = outline {
        push_outline(&mut out, &rows);
    }
    out
}

fn push_outline(out: &mut String, rows: &[(&TranscriptRow, String)]) {
    out.push_str("## Outline\n\n");
    for (row, preview) in rows {
        let Some(turn) = row.begins else { continue };
        out.push_str(&"  ".repeat(row.indent));
        let mark = if row.is_on_active_path { "**" } else { "" };
        out.push_str(&format!("- {mark}[{turn}. "));
        if row.speaker != Speaker::User {
            out.push_str(row.speaker.name());
            out.push_str(": ");
        }
        push_line(out, preview);
        out.push_str(&format!("](#turn-{turn}){mark}"));
        if let Some(label) = &row.label {
            out.push_str(" · ");
            push_line(out, label);
        }
        out.push('\n');
    }
    out.push('\n');
}

pub(super) fn push_entry(out: &mut String, entry: &WrittenEntry<'_>) {
    if let Some(turn) = entry.row.begins {
        out.push_str(&format!("<a id=\"turn-{turn}\"></a>\n\n## {turn}. "));
        push_line(out, &heading(entry.row));
        out.push_str("\n\n");
        if let Some(back_to) = entry.row.back_to {
            out.push_str(&format!(
                "*Another branch, after [turn {back_to}](#turn-{back_to}).*\n\n"
            ));
        }
    }
    for piece in &entry.pieces {
        match piece {
            Piece::Said(text) if text.trim().is_empty() => continue,
            Piece::Said(text) => push_said(out, text),
            Piece::Thinking(text) if text.trim().is_empty() => continue,
            Piece::Thinking(text) => {
                out.push_str("<details><summary>Thinking</summary>\n\n");
                push_said(out, text);
                out.push_str("\n</details>\n");
            }
            Piece::Call { title, arguments } => push_folded(out, "call", title, arguments, "json"),
            Piece::Output {
                title,
                text,
                is_error,
            } => {
                let name = if *is_error { "failed" } else { "output" };
                push_folded(out, name, title, text, "");
            }
            Piece::LeftOut(what) => {
                out.push('*');
                push_line(out, what);
                out.push_str("*\n");
            }
        }
        out.push('\n');
    }
}

/// Appends Markdown of a message. Open fences and comments of the message are closed, so that they have no effect on
/// the text after the message.
fn push_said(out: &mut String, text: &str) {
    let mut fence: Option<(char, usize)> = None;
    for line in text.lines() {
        let marks = fence_marks(line);
        match (fence, marks) {
            (None, Some(opened)) => fence = Some(opened),
            (Some((char, length)), Some((other, marks)))
                if char == other && marks >= length && is_only_marks(line) =>
            {
                fence = None;
            }
            _ => {}
        }
        for char in line.chars() {
            push_visible(out, char);
        }
        out.push('\n');
        if fence.is_none() && line.contains("<!--") {
            // A comment that is not closed would hide the rest of the document.
            let start = out.len() - line.len().min(out.len() - 1) - 1;
            let escaped = out
                .get(start..)
                .unwrap_or_default()
                .replace("<!--", "&lt;!--");
            out.truncate(start);
            out.push_str(&escaped);
        }
    }
    if let Some((char, length)) = fence {
        out.extend(std::iter::repeat_n(char, length));
        out.push('\n');
    }
}

/// The character of a fence, and how often it is repeated, if the line begins or ends a fence.
fn fence_marks(line: &str) -> Option<(char, usize)> {
    let trimmed = line.trim_start_matches(' ');
    let first = trimmed
        .chars()
        .next()
        .filter(|char| matches!(char, '`' | '~'))?;
    let marks = trimmed.chars().take_while(|char| *char == first).count();
    (marks >= 3).then_some((first, marks))
}

fn is_only_marks(line: &str) -> bool {
    line.trim().chars().all(|char| matches!(char, '`' | '~'))
}

/// Appends a folded text, in a fence that the text cannot end.
fn push_folded(out: &mut String, name: &str, title: &str, text: &str, language: &str) {
    out.push_str(&format!("<details><summary>{name}: <code>"));
    push_html(out, title);
    out.push_str("</code></summary>\n\n");
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    out.push_str(&format!("{fence}{language}\n"));
    for char in text.chars() {
        push_visible(out, char);
    }
    if !text.ends_with('\n') {
        out.push('\n');
    }
    out.push_str(&format!("{fence}\n\n</details>\n"));
}

/// The length of the longest run of backticks in the text.
fn longest_run(text: &str) -> usize {
    let (mut longest, mut run) = (0, 0);
    for char in text.chars() {
        run = if char == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// Appends a character. A control character that has an effect in a terminal is replaced by its picture.
fn push_visible(out: &mut String, char: char) {
    match char {
        '\n' | '\t' => out.push(char),
        '\r' => {}
        char if terminal::is_control(char) => {
            out.push_str(&terminal::line(char.encode_utf8(&mut [0; 4])))
        }
        char => out.push(char),
    }
}

/// Appends plain text on one line, in HTML.
fn push_html(out: &mut String, text: &str) {
    for char in terminal::line(text).chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            char => out.push(char),
        }
    }
}

/// Appends plain text on one line, in Markdown.
fn push_line(out: &mut String, text: &str) {
    for char in terminal::line(text).chars() {
        if matches!(
            char,
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '!' | '|' | '~' | '&'
        ) {
            out.push('\\');
        }
        out.push(char);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        let mut out = String::new();
        push_said(&mut out, text);
        out
    }

    /// An open fence or comment in one message would make the headings of all later messages a part of it.
    #[test]
    fn a_message_cannot_reach_beyond_its_end() {
        assert_eq!(said("a\n```rust\nlet x;"), "a\n```rust\nlet x;\n```\n");
        assert_eq!(said("~~~~\n```\n~~~"), "~~~~\n```\n~~~\n~~~~\n");
        assert_eq!(
            said("```\n<!--\n```\nb <!-- c"),
            "```\n<!--\n```\nb &lt;!-- c\n"
        );
        assert_eq!(said("é <!-- é"), "é &lt;!-- é\n");
        let mut out = String::new();
        push_folded(
            &mut out,
            "output",
            "sh </code><b>",
            "a\n````\nb\u{1b}[0m",
            "",
        );
        assert_eq!(
            out,
            "<details><summary>output: <code>sh &lt;/code&gt;&lt;b&gt;</code></summary>\n\n`````\na\n````\nb␛[0m\n`````\n\n</details>\n"
        );
    }
}
