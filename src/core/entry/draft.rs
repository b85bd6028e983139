//! The text and images of an entry.

use crate::bytes::part;
use crate::json::{self, Elements};

/// The content of a message or custom_message, in the form for an editor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Draft {
    pub text: String,
    /// Image blocks, raw JSON.
    pub images: Vec<Vec<u8>>,
}

/// The text (its blocks joined) and the images of an entry; empty if the entry has neither text nor images.
pub fn draft(entry: &[u8]) -> Draft {
    let content =
        json::get_path(entry, &["message", "content"]).or_else(|| json::get(entry, "content"));
    let Some(content) = content else {
        return Draft::default();
    };
    if let Some(text) = json::string(content) {
        return Draft {
            text: text.into_owned(),
            images: Vec::new(),
        };
    }
    let mut draft = Draft::default();
    let Ok(mut blocks) = Elements::open(content, 0) else {
        return draft;
    };
    while let Ok(Some(span)) = blocks.next_value() {
        let block = part(content, span);
        match json::get(block, "type").and_then(json::string).as_deref() {
            Some("text") => {
                let text = json::get(block, "text").and_then(json::string);
                draft.text.push_str(text.as_deref().unwrap_or_default());
            }
            Some("image") => draft.images.push(block.to_vec()),
            _ => {}
        }
    }
    draft
}
