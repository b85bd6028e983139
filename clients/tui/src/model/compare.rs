//! Two branches side by side: what each did since they parted.

/// What was found; texts are sanitized.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Comparison {
    /// Where they part: one line; `None` if they have nothing in common.
    pub ancestor: Option<String>,
    pub left: Side,
    pub right: Side,
}

/// One of the branches, from the common ancestor on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Side {
    /// The marked entry, in one line.
    pub tip: String,
    /// In order.
    pub said: Vec<Said>,
    /// Sorted.
    pub read: Vec<String>,
    /// Sorted; written or edited.
    pub modified: Vec<String>,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    pub kind: super::rows::Kind,
    /// One line.
    pub text: String,
}

/// The view of a comparison.
#[derive(Debug)]
pub struct CompareView {
    pub comparison: Comparison,
    /// The first line on the screen; both sides move together.
    pub top: usize,
    /// Lines there are, and lines on the screen.
    pub lines: usize,
    pub height: usize,
}

impl CompareView {
    pub fn scroll(&mut self, lines: isize) {
        let last = self.lines.saturating_sub(self.height);
        self.top = self.top.saturating_add_signed(lines).min(last);
    }
}
