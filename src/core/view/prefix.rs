//! The guides drawn before a row (`render`, `prefix` of protocol.md §6).
//!
//! Three columns for each step of indent. The first row of a branch has the connector; the rows that
//! continue the branch are below it:
//!
//! ```text
//! a
//! ├─ b
//! │  c
//! │  ├─ d
//! │  └─ e
//! └─ f
//! ```
//!
//! Each row has its guides, so that a page costs only its own rows, at any depth.

use super::visible::Row;
use serde::{Deserialize, Serialize};

/// The characters of a `prefix`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "TreeRender"))]
pub enum Render {
    Unicode,
    Ascii,
}

/// Most steps drawn: 63 columns, and one for the mark of deeper rows.
const MAX_STEPS: u32 = 21;
const DEEPER: &str = "…";

struct GuidePieces {
    fork: &'static str,
    last: &'static str,
    line: &'static str,
    gap: &'static str,
}

impl Render {
    const fn pieces(self) -> GuidePieces {
        match self {
            Render::Unicode => GuidePieces {
                fork: "├─ ",
                last: "└─ ",
                line: "│  ",
                gap: "   ",
            },
            Render::Ascii => GuidePieces {
                fork: "|- ",
                last: "`- ",
                line: "|  ",
                gap: "   ",
            },
        }
    }
}

impl Row {
    /// The guides before the row.
    pub fn prefix(&self, render: Render) -> String {
        let mut out = Vec::new();
        push(&mut out, self, render);
        String::from_utf8(out).unwrap_or_default()
    }
}

/// Appends the guides of `row`, at most 64 columns. No character of them needs escaping in JSON.
pub(super) fn push(out: &mut Vec<u8>, row: &Row, render: Render) {
    let pieces = render.pieces();
    if row.indent > MAX_STEPS {
        out.extend_from_slice(DEEPER.as_bytes());
    }
    for step in (0..row.indent.min(MAX_STEPS)).rev() {
        let goes_on = row.guides >> step & 1 == 1;
        let piece = match (step == 0 && row.heads_branch, goes_on) {
            (true, true) => pieces.fork,
            (true, false) => pieces.last,
            (false, true) => pieces.line,
            (false, false) => pieces.gap,
        };
        out.extend_from_slice(piece.as_bytes());
    }
}
