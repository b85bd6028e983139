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
//! Each row has all its guides, so that a page costs only its own rows, at any depth.

use super::visible_row::Row;
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

/// The columns of one step of indent.
const STEP: usize = 3;
/// Guides with fewer columns have no room for the mark of the steps that are left out.
const LEAST: usize = 6;

/// How guides are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guides {
    pub render: Render,
    /// The most columns of a row's guides.
    pub columns: usize,
}

impl Guides {
    /// The most columns by default.
    pub const COLUMNS: usize = 64;

    pub fn new(render: Render, columns: Option<usize>) -> Self {
        let columns = columns.unwrap_or(Self::COLUMNS);
        Self {
            render,
            columns: columns.clamp(LEAST, Self::COLUMNS),
        }
    }
}

struct GuidePieces {
    deeper: &'static str,
    fork: &'static str,
    last: &'static str,
    line: &'static str,
    gap: &'static str,
}

impl Render {
    const fn pieces(self) -> GuidePieces {
        match self {
            Render::Unicode => GuidePieces {
                deeper: "…",
                fork: "├─ ",
                last: "└─ ",
                line: "│  ",
                gap: "   ",
            },
            Render::Ascii => GuidePieces {
                deeper: "<",
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
    pub fn prefix(&self, guides: Guides) -> String {
        let mut out = Vec::new();
        push(&mut out, self, guides);
        String::from_utf8(out).unwrap_or_default()
    }
}

/// Appends the guides of `row`. If the row is too deep, the guides begin with the number of steps that are left out. No
/// character of the guides needs an escape in JSON.
pub(super) fn push(out: &mut Vec<u8>, row: &Row, guides: Guides) {
    let pieces = guides.render.pieces();
    let (depth, fits) = (row.indent as usize, guides.columns / STEP);
    let mut steps = depth;
    if depth > fits {
        // The mark is as wide as one step. If it stands for 100 steps or more, it is as wide as two steps.
        let wide = if depth - fits < 99 { 1 } else { 2 };
        steps = fits.saturating_sub(wide);
        let mark = format!("{}{}", pieces.deeper, depth - steps);
        let columns = wide * STEP;
        out.extend_from_slice(format!("{mark:<columns$}").as_bytes());
    }
    for step in (0..steps).rev() {
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
