//! The preview: the whole entry at the cursor, laid out for the pane, with its own scroll position.

use super::document::{Closed, Document, Line};
use crate::message::Effect;

/// The preview pane.
#[derive(Debug, Default)]
pub struct Preview {
    /// The entry that is shown.
    id: Option<String>,
    document: Document,
    lines: Vec<Line>,
    width: usize,
    closed: Closed,
    /// The entry that was requested.
    asked: Option<String>,
    pub top: usize,
    /// The height of the pane.
    pub height: usize,
}

impl Preview {
    /// Requests an entry, unless it is shown or another request is open.
    pub fn want(&mut self, id: &str) -> Option<Effect> {
        if self.id.as_deref() == Some(id) || self.asked.is_some() {
            return None;
        }
        self.asked = Some(id.to_owned());
        Some(Effect::GetEntry { id: id.to_owned() })
    }

    /// Stores the answer; `None` means that the entry could not be read.
    pub fn arrived(&mut self, id: String, document: Option<Document>) {
        self.asked = None;
        self.document = document.unwrap_or_default();
        self.id = Some(id);
        self.top = 0;
        self.lay_out();
    }

    /// Drops the shown entry, which may have changed.
    pub fn forget(&mut self) {
        self.id = None;
        self.asked = None;
    }

    /// Sets the size of the pane.
    pub fn resize(&mut self, width: usize, height: usize) {
        self.height = height;
        if width != self.width {
            self.width = width;
            self.lay_out();
        }
        self.scroll(0);
    }

    /// Opens all tool calls, or closes them. Returns whether they are closed.
    pub fn toggle_tools(&mut self) -> bool {
        self.closed.tools = !self.closed.tools;
        self.lay_out();
        self.closed.tools
    }

    /// Opens or closes all thinking. Returns whether the thinking is closed.
    pub fn toggle_thinking(&mut self) -> bool {
        self.closed.thinking = !self.closed.thinking;
        self.lay_out();
        self.closed.thinking
    }

    fn lay_out(&mut self) {
        let columns = self.width.max(1);
        self.lines = self.document.layout_with(columns, self.closed);
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

    /// Returns the shown entry.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    pub fn lines(&self) -> &[Line] {
        &self.lines
    }
}
