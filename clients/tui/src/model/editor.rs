//! The editor of a user message: a draft that came back from the tree, or a new one.

use super::input::Input;
use crate::message::Draft;
use serde_json::Value;

/// The pane.
#[derive(Debug)]
pub struct Editor {
    pub input: Input,
    /// Content blocks that go with the text.
    pub images: Vec<Value>,
    /// Where the conversation stood when it was opened.
    pub expected_leaf: Option<String>,
    /// Sent, and not answered yet.
    pub sending: bool,
    /// The first drawn row on the screen.
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

    /// Nothing to send.
    pub fn is_empty(&self) -> bool {
        self.input.text().trim().is_empty() && self.images.is_empty()
    }
}
