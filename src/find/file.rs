//! A file to search, and its parts.

use super::labels::LabelledEntry;
use super::page::Ceiling;
use std::ops::Range;
use treelined_files::os::file::{Location, Status};

/// A file to search, and its parts to scan.
#[derive(Debug)]
pub(crate) struct SearchedFile {
    pub location: Location,
    pub status: Status,
    /// The parts, ascending. If the last part ends at the end of the file, it also takes the lines that are appended
    /// later. A labelled entry is a separate part, which may be inside another part.
    pub parts: Vec<SearchedPart>,
    /// The entries whose label has a part of the query, in file order; `None` if they are unknown.
    pub(super) labelled: Option<Vec<LabelledEntry>>,
    /// Whether each line of the file is known to be one entry with its own id, below a header. Then each matching line
    /// is a hit, and the other lines do not matter.
    pub is_plain: bool,
    /// Whether its session is in the directory of the request; `None` if that is unknown.
    pub is_in_directory: Option<bool>,
}

/// A part of a file that is scanned.
#[derive(Debug, Clone)]
pub(crate) struct SearchedPart {
    /// Bytes from the start of the file.
    pub span: Range<u64>,
    pub(super) ceiling: Ceiling,
}

impl SearchedFile {
    pub(super) fn whole(location: Location, status: Status) -> Self {
        Self {
            parts: vec![SearchedPart {
                span: 0..status.size,
                ceiling: Ceiling::NONE,
            }],
            location,
            status,
            labelled: None,
            is_plain: false,
            is_in_directory: None,
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        let bytes = |part: &SearchedPart| part.span.end - part.span.start;
        self.parts.iter().map(bytes).sum()
    }
}
