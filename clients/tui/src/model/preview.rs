//! The preview: the entry under the cursor in full, laid out for the pane, with a position of its own.

use super::document::{Document, Line};
use crate::message::Effect;

/// The pane.
#[derive(Debug, Default)]
pub struct Preview {
    /// The entry that is shown.
    id: Option<String>,
    document: Document,
    lines: Vec<Line>,
    width: usize,
    /// The entry that is asked for.
    asked: Option<String>,
    pub top: usize,
    /// Lines on the screen.
    pub height: usize,
}

impl Preview {
    /// The entry that shall be shown: asked for unless another question is under way.
    pub fn want(&mut self, id: &str) -> Option<Effect> {
        if self.id.as_deref() == Some(id) || self.asked.is_some() {
            return None;
        }
        self.asked = Some(id.to_owned());
        Some(Effect::GetEntry { id: id.to_owned() })
    }

    /// The entry is here; `None` if it could not be had.
    pub fn arrived(&mut self, id: String, document: Option<Document>) {
        self.asked = None;
        self.document = document.unwrap_or_default();
        self.id = Some(id);
        self.top = 0;
        self.lines = self.document.layout(self.width.max(1));
    }

    /// What is shown may have changed, or another daemon has it.
    pub fn forget(&mut self) {
        self.id = None;
        self.asked = None;
    }

    /// The pane has another size.
    pub fn resize(&mut self, width: usize, height: usize) {
        self.height = height;
        if width != self.width {
            self.width = width;
            self.lines = self.document.layout(width.max(1));
        }
        self.scroll(0);
    }

    pub fn scroll(&mut self, lines: isize) {
        self.top = self.top.saturating_add_signed(lines).min(self.last_top());
    }

    pub fn last_top(&self) -> usize {
        self.lines.len().saturating_sub(self.height)
    }

    pub fn title(&self) -> &str {
        &self.document.title
    }

    /// The entry that is shown.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    pub fn lines(&self) -> &[Line] {
        &self.lines
    }
}
