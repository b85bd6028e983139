//! Images. The first bytes of an image decide its type; the type in the entry is not used.

use super::writer::BlockWriter;
use treelined_core::json;

/// The first bytes of each type of image. A WebP file has its size between `RIFF` and `WEBP`.
const TYPES: &[(&str, &[u8])] = &[
    ("image/png", b"\x89PNG\r\n\x1a\n"),
    ("image/jpeg", b"\xff\xd8\xff"),
    ("image/gif", b"GIF87a"),
    ("image/gif", b"GIF89a"),
    ("image/webp", b"RIFF"),
];

/// Writes the block of an image. The block is an `attachment` if the image has an unknown type, is not Base64, or is
/// too large.
pub(super) fn push(writer: &mut BlockWriter<'_>, block: &[u8]) {
    let [data, claimed] = json::get_each(block, ["data", "mimeType"]);
    let data = data.and_then(json::string).unwrap_or_default();
    let mime_type = image_type(&data).filter(|_| data.len() < writer.room() && is_base64(&data));
    match mime_type {
        Some(mime_type) => writer.block("image", |writer| {
            writer.whole("mimeType", mime_type);
            writer.whole("data", &data);
        }),
        None => writer.block("attachment", |writer| {
            let claimed = claimed.and_then(json::string);
            writer.name("mimeType", claimed.as_deref());
            let padding = data.bytes().rev().take(2).filter(|byte| *byte == b'=');
            let bytes = (data.len() / 4 * 3).saturating_sub(padding.count());
            writer.number("bytes", bytes as u64);
        }),
    }
}

/// The type of the image, from the beginning of its Base64.
fn image_type(data: &str) -> Option<&'static str> {
    let mut first = Vec::with_capacity(12);
    for group in data.as_bytes().chunks_exact(4).take(4) {
        let mut bits = 0;
        for byte in group {
            bits = bits << 6 | value(*byte).unwrap_or_default();
        }
        let [_, bytes @ ..] = bits.to_be_bytes();
        first.extend_from_slice(&bytes);
    }
    let mut types = TYPES.iter();
    let (mime_type, _) = types.find(|(_, magic)| first.starts_with(magic))?;
    let is_whole = *mime_type != "image/webp" || first.get(8..12) == Some(b"WEBP");
    is_whole.then_some(*mime_type)
}

/// The six bits that a character of Base64 stands for.
fn value(byte: u8) -> Option<u32> {
    Some(u32::from(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

fn is_base64(data: &str) -> bool {
    let characters = data.trim_end_matches('=');
    data.len().is_multiple_of(4)
        && data.len() - characters.len() <= 2
        && characters.bytes().all(|byte| value(byte).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes the block of an image with these members.
    fn block(data: &str, room: usize) -> String {
        let mut out = b"[".to_vec();
        let block = serde_json::json!({ "data": data, "mimeType": "image/png" }).to_string();
        push(&mut BlockWriter::new(&mut out, room), block.as_bytes());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_image_is_known_by_its_first_bytes() {
        for (data, mime_type) in [
            ("iVBORw0KGgoAAAANSUhEUg==", "image/png"),
            ("/9j/4AAQSkZJRgABAQ==", "image/jpeg"),
            ("R0lGODlhAQABAAAAACw=", "image/gif"),
            ("R0lGODdhAQABAAAAACw=", "image/gif"),
            ("UklGRhoAAABXRUJQVlA4", "image/webp"),
        ] {
            let expected =
                format!(r#"[{{"kind":"image","mimeType":"{mime_type}","data":"{data}"}}"#);
            assert_eq!(block(data, 4096), expected);
        }
    }

    #[test]
    fn other_data_is_an_attachment() {
        let attachment = |bytes: u64| {
            format!(r#"[{{"kind":"attachment","mimeType":"image/png","bytes":{bytes}}}"#)
        };
        // An SVG image, a WAVE sound, damaged Base64, nothing.
        assert_eq!(block("PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+", 4096), attachment(21));
        assert_eq!(block("UklGRhoAAABXQVZFZm10IA==", 4096), attachment(16));
        assert_eq!(block("iVBORw0KGgo\"onerror=\"a", 4096), attachment(15));
        assert_eq!(block("iVBORw0KGgoAAAANSUhEUg=", 4096), attachment(14));
        assert_eq!(block("", 4096), attachment(0));
        let long = format!("iVBORw0KGgoA{}", "A".repeat(4000));
        assert_eq!(block(&long, 2048), attachment(3009));
    }
}
