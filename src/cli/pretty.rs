//! Formats JSON on several lines: one line for each member and element.
//!
//! The text is formatted without decoding it, so that numbers, the order of members and duplicate keys do not change.
//! Nesting costs one byte for each level.

/// The deepest level that is indented further, since deeper indents would fill the screen with spaces.
const INDENTED: usize = 40;

/// Formats valid JSON with two spaces for each level; empty objects and arrays stay on one line.
pub(super) fn pretty(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let mut depth = 0;
    let mut in_string = false;
    let mut escaped = false;
    let mut chars = json.chars().filter(|char| *char != '\r').peekable();
    while let Some(char) = chars.next() {
        if in_string {
            out.push(char);
            in_string = escaped || char != '"';
            escaped = !escaped && char == '\\';
            continue;
        }
        match char {
            ' ' | '\t' | '\n' => {}
            '{' | '[' => {
                out.push(char);
                while chars.next_if(|next| next.is_ascii_whitespace()).is_some() {}
                if let Some(end) = chars.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(end);
                } else {
                    depth += 1;
                    break_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                break_line(&mut out, depth);
                out.push(char);
            }
            ',' => {
                out.push(char);
                break_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            char => {
                in_string = char == '"';
                out.push(char);
            }
        }
    }
    out
}

fn break_line(out: &mut String, depth: usize) {
    out.push('\n');
    for _ in 0..depth.min(INDENTED) {
        out.push_str("  ");
    }
}

#[cfg(test)]
mod tests {
    use super::pretty;

    #[test]
    fn layout() {
        for (json, shown) in [
            ("null", "null"),
            ("{ }", "{}"),
            ("[[],{}]", "[\n  [],\n  {}\n]"),
            (
                r#"{"a":1.0,"a":[1, 2],"s":"{\"x\":[1,2]}\\"}"#,
                "{\n  \"a\": 1.0,\n  \"a\": [\n    1,\n    2\n  ],\n  \"s\": \"{\\\"x\\\":[1,2]}\\\\\"\n}",
            ),
        ] {
            assert_eq!(pretty(json), shown);
        }
    }

    #[test]
    fn nesting_does_not_recurse() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(pretty(&deep).ends_with("\n]"));
    }
}
