//! Converts Markdown to HTML with a fixed set of elements and attributes (protocol.md §15.3).
//!
//! All markup that the daemon sends is made here. The parser reports events; [`html`] writes elements for some of them,
//! and escapes all text, so that no part of the source becomes markup unchanged. The time is linear in the length of
//! the source. Text that nests too deeply, or whose HTML is too long, is refused, and the caller shows the text
//! unchanged.

mod html;
mod link;
mod part;
#[cfg(test)]
mod tests;

use self::html::HtmlWriter;
pub(super) use self::html::language;
pub(crate) use part::Part;
use pulldown_cmark::{Options, Parser};

/// The most bytes of Markdown that are parsed.
pub(crate) const MARKDOWN_BYTES: usize = 1 << 20;
/// The last column in which a container (a quote or an item of a list) may begin. The column is limited because the
/// parser visits all open containers for each blank line.
const LAST_COLUMN: usize = 100;
/// The most bytes of HTML for each byte of Markdown. Cells that the parser adds to a table, and references to long
/// addresses, could make the HTML much longer than its source.
const GROWTH: usize = 16;
/// HTML of at most this many bytes is never too long.
const SHORT_HTML: usize = 4096;

/// The parts of a text. Code outside of lists and quotes is a separate part. `None` if the text is too long or nested
/// too deeply.
pub(crate) fn parts(markdown: &str) -> Option<Vec<Part>> {
    write(markdown, HtmlWriter::with_parts())
}

/// A text as HTML; `None` if it is too long or nested too deeply.
pub(crate) fn html(markdown: &str) -> Option<String> {
    let parts = write(markdown, HtmlWriter::whole())?;
    let mut html = parts.into_iter().filter_map(|part| match part {
        Part::Html(html) => Some(html),
        Part::Code { .. } => None,
    });
    Some(html.next().unwrap_or_default())
}

fn write(markdown: &str, mut writer: HtmlWriter) -> Option<Vec<Part>> {
    if markdown.len() > MARKDOWN_BYTES || nests_deeply(markdown) {
        return None;
    }
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let limit = SHORT_HTML.max(markdown.len() * GROWTH);
    for event in Parser::new_ext(markdown, options) {
        writer.push(event);
        if writer.bytes() > limit {
            return None;
        }
    }
    Some(writer.finish())
}

/// Whether a container begins after [`LAST_COLUMN`].
fn nests_deeply(markdown: &str) -> bool {
    let lines = memchr::memchr_iter(b'\n', markdown.as_bytes());
    let starts = lines.map(|end| end + 1);
    let mut starts = std::iter::once(0).chain(starts);
    starts.any(|start| last_container(markdown.as_bytes().get(start..).unwrap_or_default()))
}

/// Whether the first line of `text` begins a container after [`LAST_COLUMN`].
fn last_container(text: &[u8]) -> bool {
    let (mut at, mut column) = (0, 0);
    let ends = |at: usize| matches!(text.get(at), None | Some(b' ' | b'\t' | b'\n' | b'\r'));
    loop {
        let (length, is_container) = match text.get(at) {
            Some(b' ') => (1, false),
            Some(b'\t') => {
                column += 3;
                (1, false)
            }
            Some(b'>') => (1, true),
            Some(b'-' | b'+' | b'*') if ends(at + 1) => (1, true),
            Some(b'0'..=b'9') => {
                let digits = text.get(at..).unwrap_or_default().iter().take(10);
                let digits = digits.take_while(|byte| byte.is_ascii_digit()).count();
                match text.get(at + digits) {
                    Some(b'.' | b')') if ends(at + digits + 1) => (digits + 1, true),
                    _ => return false,
                }
            }
            _ => return false,
        };
        if is_container && column > LAST_COLUMN {
            return true;
        }
        at += length;
        column += length;
    }
}
