//! The editor of a user message. The message is new, or a draft that was returned.

use super::input::Input;
use crate::message::Draft;
use serde_json::Value;

/// The editor pane.
#[derive(Debug)]
pub struct Editor {
    pub input: Input,
    /// The content blocks that are sent together with the text.
    pub images: Vec<Value>,
    /// The leaf when the editor was opened.
    pub expected_leaf: Option<String>,
    /// Whether the message was sent, and the answer has not arrived yet.
    pub sending: bool,
    /// The first visible row.
    pub top: usize,
}

impl Editor {
    pub fn new(draft: Draft) -> Self {
        Self {
            input: Input::lines(&draft.text),
            images: draft.images,
            expected_leaf: draft.expected_leaf,
            sending: false,
            top: 0,
        }
    }

    pub fn draft(&self) -> Draft {
        Draft {
            text: self.input.text().to_owned(),
            images: self.images.clone(),
            expected_leaf: self.expected_leaf.clone(),
        }
    }

    /// Returns whether there is no text and no image to send.
    pub fn is_empty(&self) -> bool {
        self.input.text().trim().is_empty() && self.images.is_empty()
    }
}
