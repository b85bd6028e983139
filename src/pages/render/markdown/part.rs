//! The parts of rendered Markdown.

/// A part of a text. The parts are in order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Html(String),
    /// Fenced or indented code, outside of lists and quotes.
    Code {
        language: Option<String>,
        text: String,
    },
}

/// Appends `text` with the characters that have a meaning in HTML escaped.
pub(crate) fn push_escaped(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find(['&', '<', '>', '"', '\'']) {
        let (plain, special) = rest.split_at(at);
        out.push_str(plain);
        let mut chars = special.chars();
        out.push_str(match chars.next() {
            Some('&') => "&amp;",
            Some('<') => "&lt;",
            Some('>') => "&gt;",
            Some('"') => "&quot;",
            _ => "&#39;",
        });
        rest = chars.as_str();
    }
    out.push_str(rest);
}
