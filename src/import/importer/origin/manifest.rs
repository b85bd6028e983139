//! The list of an origin's segments.

use crate::mapping::{Former, VERSION};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::sync::Arc;
use treelined_core::agent::Tool;
pub(crate) use treelined_files::os::file::{Folder, Location};
use treelined_files::os::handle::HandleAccess;
use treelined_files::os::temporary::{self, Temporary};

const NAME: &str = "manifest.jsonl";
/// The ending of segments' names.
const ENDING: &str = ".zst";
/// The most bytes of a manifest that are read.
const LONGEST: u64 = 64 << 20;

/// The segments of one origin, in order.
#[derive(Debug, Default)]
pub(super) struct Manifest {
    tool: String,
    path: String,
    pub(super) segments: Vec<Segment>,
    /// The number of the next segment.
    next: u64,
    /// The records that older versions of the reader have read.
    former: Former,
}

/// A line of the manifest: one segment, with facts about the source up to the end of the segment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Segment {
    /// The name of the segment's file.
    pub(super) segment: String,
    tool: String,
    /// The path of the source when the segment was written. A session of a database follows after `#`.
    path: String,
    /// The position in the source where the segment begins, in bytes.
    pub(super) at: u64,
    /// The length of the source up to the end of the segment, in bytes.
    pub(super) length: u64,
    /// The SHA-256 of the source up to the end of the segment.
    pub(super) sha256: String,
    /// The size of the segment's file, in bytes.
    pub(super) stored: u64,
    /// The version of the reader that read the source up to here, with the records that older versions had read.
    #[serde(default = "first_version")]
    mapping: u32,
    #[serde(default, skip_serializing_if = "Former::is_empty")]
    former: Former,
}

/// The version in manifests that do not have the member.
fn first_version() -> u32 {
    1
}

impl Manifest {
    pub(super) fn new(tool: Tool, path: &str) -> Self {
        Self {
            tool: tool.name().to_owned(),
            path: path.to_owned(),
            segments: Vec::new(),
            next: 1,
            former: Former::default(),
        }
    }

    /// Reads the list up to the first segment that is missing or incomplete.
    pub(super) fn read(&mut self, folder: &Folder) {
        let mut text = Vec::new();
        if let Ok(file) = folder.file(OsStr::new(NAME), HandleAccess::Read) {
            // If the manifest cannot be read, all bytes are kept again.
            let _read = file.take(LONGEST).read_to_end(&mut text);
        }
        for line in text.split(|byte| *byte == b'\n') {
            let Ok(segment) = serde_json::from_slice::<Segment>(line) else {
                break;
            };
            let is_whole = folder
                .status(OsStr::new(&segment.segment))
                .is_ok_and(|status| status.size == segment.stored);
            let number = number_of(OsStr::new(&segment.segment));
            let is_next = segment.at == self.len() && segment.length > segment.at;
            let Some(number) = number.filter(|_| is_whole && is_next) else {
                break;
            };
            self.next = self.next.max(number + 1);
            self.segments.push(segment);
        }
        if let Some(last) = self.segments.last() {
            self.former = last.former.clone().and(last.mapping, last.length);
        }
    }

    /// The records that older versions of the reader have read.
    pub(super) fn former(&self) -> &Former {
        &self.former
    }

    /// Sets the records that older versions of the reader have read. Returns whether this is a change.
    pub(super) fn set_former(&mut self, former: &Former) -> bool {
        if self.former == *former {
            return false;
        }
        self.former = former.clone();
        for segment in &mut self.segments {
            segment.mapping = VERSION;
            segment.former = former.clone();
        }
        !self.segments.is_empty()
    }

    /// The number of bytes of the source that are kept.
    pub(super) fn len(&self) -> u64 {
        self.segments.last().map_or(0, |last| last.length)
    }

    /// The SHA-256 of the kept bytes, in hexadecimal digits; empty if none are kept.
    pub(super) fn hash(&self) -> &str {
        self.segments.last().map_or("", |last| &last.sha256)
    }

    /// The path of the source when its last bytes were kept; empty if none are kept.
    pub(super) fn last_path(&self) -> &str {
        self.segments.last().map_or("", |last| &last.path)
    }

    /// The tool of the source; `None` if no bytes are kept.
    pub(super) fn last_tool(&self) -> Option<Tool> {
        let last = self.segments.last()?;
        Tool::ALL.into_iter().find(|tool| tool.name() == last.tool)
    }

    /// The name of the next segment's file.
    pub(super) fn next_name(&self) -> String {
        format!("{}{ENDING}", self.next)
    }

    /// Adds a segment with the name [`Self::next_name`].
    pub(super) fn push(&mut self, length: u64, sha256: String, stored: u64) {
        self.segments.push(Segment {
            segment: self.next_name(),
            tool: self.tool.clone(),
            path: self.path.clone(),
            at: self.len(),
            length,
            sha256,
            stored,
            mapping: VERSION,
            former: self.former.clone(),
        });
        self.next += 1;
    }

    /// Replaces the manifest in a folder of `origins`.
    pub(super) fn write(&self, origins: &Arc<Folder>, folder: &Arc<Folder>) -> io::Result<()> {
        let mut text = Vec::new();
        for segment in &self.segments {
            serde_json::to_writer(&mut text, segment)?;
            text.push(b'\n');
        }
        let new = Temporary::for_name(origins, OsStr::new(NAME))?;
        (&**new.file()).write_all(&text)?;
        new.name(&Location {
            folder: Arc::clone(folder),
            name: NAME.into(),
        })
    }

    /// Removes segments that the manifest does not list, and files that a killed process has left.
    pub(super) fn remove_unlisted(&self, folder: &Folder) -> io::Result<()> {
        for (name, _) in folder.list()? {
            let is_listed = self.segments.iter().any(|one| *one.segment == *name);
            if number_of(&name).is_some() && !is_listed {
                folder.remove(&name)?;
            }
        }
        temporary::remove_abandoned(folder)
    }
}

/// The number in a segment's name.
fn number_of(name: &OsStr) -> Option<u64> {
    let number = name.to_str()?.strip_suffix(ENDING)?;
    number.parse().ok().filter(|_| !number.starts_with('+'))
}
