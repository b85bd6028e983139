//! The HTML around the chunks: policy, style, script, and the elements that contain the chunks.

use super::super::output::Output;
use crate::page::{self, SCRIPT, STYLE};
use treelined_core::error::Result;

/// The beginning of the document, up to the text for readers without JavaScript.
pub(super) fn head(title: &str) -> String {
    let mut out =
        String::from("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    out.push_str(&format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n",
        page::policy()
    ));
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    out.push_str("<meta name=\"color-scheme\" content=\"light dark\">\n");
    out.push_str(&format!(
        "<meta name=\"generator\" content=\"{GENERATOR}\">\n<title>"
    ));
    push_escaped(&mut out, title);
    out.push_str(&format!(
        "</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
    ));
    out.push_str("<div id=\"app\"></div>\n");
    out
}

/// The name and the version of the program.
pub(super) const GENERATOR: &str = concat!("treelined ", env!("CARGO_PKG_VERSION"));

/// The element of the script.
pub(super) fn script() -> String {
    format!("<script>{SCRIPT}</script>\n")
}

/// The end of the document.
pub(super) const END: &str = "</body>\n</html>\n";

/// Writes the element of a chunk.
pub(super) fn write_chunk(out: &mut Output, name: &str, packed: &[u8]) -> Result<()> {
    let start = format!("<script type=\"application/octet-stream;base64\" id=\"c-{name}\">");
    out.write(start.as_bytes())?;
    out.write(packed)?;
    out.write(b"</script>\n")
}

/// Appends text, escaped for the content of an element or for an attribute in double quotes.
pub(super) fn push_escaped(out: &mut String, text: &str) {
    for char in text.chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\0' => out.push('\u{fffd}'),
            char => out.push(char),
        }
    }
}
