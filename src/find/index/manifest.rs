//! The list of the index's segments, and of the files that they cover.

use super::builder::LabelTexts;
use crate::labels::LabelledEntry;
use std::collections::HashMap;
use std::io;
use treelined_core::bytes::{Cursor, Fields};
use treelined_files::cache::{Cache, FormatName, get_status, put_status};
use treelined_files::log::fingerprint::Fingerprint;
use treelined_files::os::file::{Identity, Status};

/// The version of the format of this file, of the words, and of the parts of segments. Change it when one of these
/// changes.
const FORMAT: &FormatName = b"treelined searc6";
const NAME: &str = "search.list";

/// The segments and files of the index.
#[derive(Debug, Default)]
pub(super) struct Manifest {
    pub segments: Vec<SegmentFile>,
    pub files: HashMap<Identity, CoveredFile>,
    /// The key of the next file.
    pub next_key: u64,
}

/// A segment, and the status of its file. A segment whose file has another status has been changed by another program
/// and is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SegmentFile {
    pub name: String,
    pub status: Status,
}

/// A session file whose beginning the index covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CoveredFile {
    /// The key by which segments name the file. A file that was changed gets another key.
    pub key: u64,
    /// The fingerprint of the covered bytes.
    pub fingerprint: Fingerprint,
    /// The status of the file when it was covered.
    pub status: Status,
    /// Whether each covered line, except the header, is an entry with its own id.
    pub is_plain: bool,
    /// The directory in the header, if that is the first line.
    pub cwd: Option<String>,
    pub labels: LabelTexts,
    /// The labelled entries of the file in that status; `None` if they are unknown.
    pub labelled: Option<Vec<LabelledEntry>>,
}

impl CoveredFile {
    /// The labelled entries of the file in this status; `None` if they are unknown.
    pub(super) fn known_labels(&self, status: Status) -> Option<&[LabelledEntry]> {
        self.labelled.as_deref().filter(|_| self.status == status)
    }
}

impl Manifest {
    /// The saved list; an empty one if it is missing or damaged.
    pub(super) fn load(cache: &Cache) -> Self {
        let read = || {
            let kept = cache.open(NAME, FORMAT)?;
            let bytes = kept.blocks.first()?.read(&kept.file)?;
            let mut fields = Cursor::new(&bytes);
            let manifest = Self::get(&mut fields)?;
            fields.is_at_end().then_some(manifest)
        };
        read().unwrap_or_default()
    }

    pub(super) fn save(&self, cache: &Cache) -> io::Result<()> {
        let mut out = Fields::default();
        self.put(&mut out);
        cache.write(NAME, FORMAT, &[], &[&out.0])
    }

    fn put(&self, out: &mut Fields) {
        out.u64(self.next_key);
        out.count(self.segments.len());
        for SegmentFile { name, status } in &self.segments {
            out.text(name);
            put_status(out, *status);
        }
        out.count(self.files.len());
        for (identity, file) in &self.files {
            out.u64(identity.device);
            out.u64(identity.inode);
            out.u64(file.key);
            file.fingerprint.put(out);
            put_status(out, file.status);
            out.u8(u8::from(file.is_plain));
            out.optional(file.cwd.as_deref(), Fields::text);
            out.u8(u8::from(file.labels.are_more));
            for texts in [&file.labels.texts, &file.labels.names] {
                out.count(texts.len());
                texts.iter().for_each(|text| out.text(text));
            }
            out.optional(file.labelled.as_deref(), put_labelled);
        }
    }

    fn get(fields: &mut Cursor<'_>) -> Option<Self> {
        let next_key = fields.u64()?;
        let segments = fields.list(|fields| {
            Some(SegmentFile {
                name: fields.text()?.to_owned(),
                status: get_status(fields)?,
            })
        })?;
        let files = fields.list(|fields| {
            let identity = Identity {
                device: fields.u64()?,
                inode: fields.u64()?,
            };
            let file = CoveredFile {
                key: fields.u64()?,
                fingerprint: Fingerprint::get(fields)?,
                status: get_status(fields)?,
                is_plain: fields.u8()? != 0,
                cwd: fields.optional(|fields| fields.text().map(str::to_owned))?,
                labels: LabelTexts {
                    are_more: fields.u8()? != 0,
                    texts: fields.list(|fields| Some(fields.text()?.to_owned()))?,
                    names: fields.list(|fields| Some(fields.text()?.to_owned()))?,
                },
                labelled: fields.optional(|fields| fields.list(labelled_entry))?,
            };
            Some((identity, file))
        })?;
        Some(Self {
            segments,
            files: files.into_iter().collect(),
            next_key,
        })
    }
}

fn put_labelled(out: &mut Fields, entries: &[LabelledEntry]) {
    out.count(entries.len());
    for LabelledEntry { span, at, label } in entries {
        out.u64(span.start);
        out.u64(span.end);
        out.i64(*at);
        out.text(label);
    }
}

fn labelled_entry(fields: &mut Cursor<'_>) -> Option<LabelledEntry> {
    Some(LabelledEntry {
        span: fields.u64()?..fields.u64()?,
        at: fields.i64()?,
        label: fields.text()?.to_owned(),
    })
}
