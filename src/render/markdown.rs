//! Markdown as HTML.

/// Appends `text` with the characters escaped that mean something in HTML.
fn push_escaped(out: &mut String, text: &str) {
    for char in text.chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            char => out.push(char),
        }
    }
}

/// Appends the HTML of Markdown.
pub(crate) fn push_html(out: &mut String, markdown: &str) {
    for part in markdown
        .split("\n\n")
        .filter(|part| !part.trim().is_empty())
    {
        out.push_str("<p>");
        push_escaped(out, part);
        out.push_str("</p>");
    }
}
