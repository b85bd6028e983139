//! Exports of a whole account: the file `conversations.json`, or the `.zip` that the user has downloaded.
//!
//! An export is streamed once to find the places of its conversations. Each conversation is a part. The bytes of a
//! part are the JSON object of the conversation on one line: line breaks become spaces. A `.zip` is unpacked to a
//! temporary file, because packed bytes cannot be read from the middle. Memory holds one conversation, and the places
//! of all conversations.

mod cut;
mod zip;

use super::source::facts::{Extraction, Part, Parts, ScanFailure, SourceFailure, SourceStatus};
use super::source::regular;
use crate::format;
use cut::{Cut, Cutter, End, LONGEST};
use hashbrown::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use treelined_core::agent::Tool;
use treelined_core::bytes::index;
use treelined_core::error::{Error, Kind};
use treelined_core::json;
use treelined_files::lock::lock;
use treelined_files::os::FileAt;
use treelined_files::os::file::{Status, unnamed_file};
use xxhash_rust::xxh3::xxh3_64;

/// The most bytes that are read at a time.
const CHUNK: usize = 256 << 10;
/// The number of bytes that are read to find out which tool made an export.
const HEAD: usize = 256 << 10;

/// Extracts conversations from the exports of one tool.
pub(super) struct Exports {
    tool: Tool,
    /// The exports that this import has opened. All stay open, because sources are read in the order of time and not
    /// export by export.
    open: Mutex<Vec<(PathBuf, Arc<Export>)>>,
}

/// An export with the places of its conversations.
struct Export {
    status: Status,
    /// The export itself, or the file to which it was unpacked.
    file: File,
    places: HashMap<String, (u64, u64)>,
    parts: Vec<Part>,
    failure: Option<SourceFailure>,
}

impl Exports {
    pub(super) const fn of(tool: Tool) -> Self {
        Self {
            tool,
            open: Mutex::new(Vec::new()),
        }
    }

    pub(super) fn close(&self) {
        lock(&self.open).clear();
    }

    fn open(&self, path: &Path) -> Result<Arc<Export>, SourceFailure> {
        let failed = |error: &io::Error| SourceFailure::io(Some(self.tool), path, error);
        let (file, status) = regular::open(path).map_err(|error| failed(&error))?;
        let mut open = lock(&self.open);
        let known = open.iter().find(|(opened, _)| opened == path);
        if let Some((_, export)) = known.filter(|(_, export)| export.status == status) {
            return Ok(Arc::clone(export));
        }
        let found = Search::new(self.tool, status).run(file);
        let export = Arc::new(found.map_err(|error| self.failure(path, &error))?);
        open.retain(|(opened, _)| opened != path);
        open.push((path.to_owned(), Arc::clone(&export)));
        Ok(export)
    }

    fn failure(&self, path: &Path, error: &io::Error) -> SourceFailure {
        let mut failure = SourceFailure::io(Some(self.tool), path, error);
        if is_of_zip(error) {
            failure.kind = Kind::ImportFailed.name();
        }
        failure
    }
}

impl Extraction for Exports {
    fn parts(&self, path: &Path) -> Result<Parts, SourceFailure> {
        let export = self.open(path)?;
        let failure = export.failure.clone().map(|failure| SourceFailure {
            path: path.to_owned(),
            ..failure
        });
        Ok(Parts {
            parts: export.parts.clone(),
            failure,
        })
    }

    fn write(
        &self,
        path: &Path,
        part: &str,
        _most: u64,
        out: &mut dyn Write,
    ) -> Result<(), ScanFailure> {
        let export = self.open(path)?;
        let Some((at, len)) = export.places.get(part).copied() else {
            return Ok(());
        };
        let (mut chunk, mut line, mut read) = (vec![0; CHUNK], Vec::new(), 0);
        while read < len {
            let next = index((len - read).min(CHUNK as u64));
            let bytes = chunk.get_mut(..next).unwrap_or_default();
            let filled = export.file.read_exact_at(bytes, at + read);
            filled.map_err(|error| self.failure(path, &error))?;
            line.clear();
            json::push_one_line(&mut line, bytes);
            read += next as u64;
            if read == len {
                line.push(b'\n');
            }
            let written = out.write_all(&line);
            written.map_err(|error| Error::io("keep a conversation", &error))?;
        }
        Ok(())
    }
}

/// The search for the conversations of an export, while the export is streamed.
struct Search {
    tool: Tool,
    status: Status,
    places: HashMap<String, (u64, u64)>,
    parts: Vec<Part>,
    /// The versions that were found. A conversation with the same bytes as another one is not added.
    versions: HashSet<(String, u64)>,
    objects: u64,
    others: u64,
    long: u64,
}

impl Search {
    fn new(tool: Tool, status: Status) -> Self {
        Self {
            tool,
            status,
            places: HashMap::new(),
            parts: Vec::new(),
            versions: HashSet::new(),
            objects: 0,
            others: 0,
            long: 0,
        }
    }

    fn run(mut self, mut file: File) -> io::Result<Export> {
        let mut begin = [0; ZIP_LEN];
        let read = file.read_at(&mut begin, 0)?;
        let (file, fault) = match begin.get(..read) == Some(zip::ZIP) {
            true => self.unpack(&file)?,
            false => {
                let mut cutter = Cutter::default();
                let mut chunk = vec![0; CHUNK];
                loop {
                    match file.read(&mut chunk) {
                        Ok(0) => break,
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Ok(read) => {
                            let bytes = chunk.get(..read).unwrap_or_default();
                            cutter.push(bytes, &mut |cut| self.add(0, cut));
                        }
                        Err(error) => return Err(error),
                    }
                }
                let fault = fault(cutter.end());
                (file, fault)
            }
        };
        let failure = self.failure(fault);
        Ok(Export {
            status: self.status,
            file,
            places: self.places,
            parts: self.parts,
            failure,
        })
    }

    /// Unpacks the conversations into a temporary file without a name. Also returns the fault that ended the
    /// unpacking early.
    fn unpack(&mut self, zip: &File) -> io::Result<(File, Option<String>)> {
        let files = zip::conversations(zip, self.status.size)?;
        if files.is_empty() {
            let message = "no conversations.json is in it";
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let mut out = unnamed_file()?;
        let mut left = zip::budget(self.status.size);
        let (mut base, mut found) = (0, None);
        for packed in &files {
            let mut cutter = Cutter::default();
            let mut made = 0;
            let unpacked = zip::unpack(zip, packed, &mut left, &mut |bytes| {
                made += bytes.len() as u64;
                out.write_all(bytes)?;
                cutter.push(bytes, &mut |cut| self.add(base, cut));
                Ok(())
            });
            base += made;
            let fault = match unpacked {
                Ok(()) => fault(cutter.end()),
                Err(error) if is_of_zip(&error) => Some(error.to_string()),
                Err(error) => return Err(error),
            };
            let named = fault.map(|fault| format!("{}: {fault}", packed.name));
            found = found.or(named);
        }
        Ok((out, found))
    }

    /// Adds an object. `base` is the position of the object's stream in the file, in bytes.
    fn add(&mut self, base: u64, cut: Cut<'_>) {
        self.objects += 1;
        if cut.bytes.is_empty() {
            self.long += 1;
            return;
        }
        let Some(head) = format(self.tool).head(cut.bytes) else {
            self.others += 1;
            return;
        };
        let version = xxh3_64(cut.bytes);
        if !self.versions.insert((head.id.clone(), version)) {
            return;
        }
        let mut name = head.id.clone();
        let mut number = 1;
        while self.places.contains_key(&name) {
            number += 1;
            name = format!("{}~{number}", head.id);
        }
        let modified = head.changed.map(|at| (at.div_euclid(1000), 0));
        self.parts.push(Part {
            native_id: name.clone(),
            status: SourceStatus {
                size: cut.len,
                modified: modified.unwrap_or(self.status.modified),
                identity: self.status.identity,
                version,
            },
        });
        self.places.insert(name, (base + cut.at, cut.len));
    }

    /// The failure for conversations of the export that are not imported; `None` if all are.
    fn failure(&self, fault: Option<String>) -> Option<SourceFailure> {
        let tool = self.tool.name();
        let mut kind = Kind::ImportFailed.name();
        let whole = self.parts.len();
        let message = match fault {
            Some(fault) if whole > 0 => {
                format!("{fault}; the {whole} conversations before it are imported")
            }
            Some(fault) => fault,
            None if self.objects > 0 && self.others == self.objects => {
                kind = "unrecognized";
                format!("this is not an export of {tool}")
            }
            None if self.others > 0 => {
                format!(
                    "{} of its {} objects are not conversations of {tool}",
                    self.others, self.objects
                )
            }
            None if self.long > 0 => {
                format!(
                    "{} of its conversations are longer than {} MiB and not read",
                    self.long,
                    LONGEST >> 20
                )
            }
            None => return None,
        };
        Some(SourceFailure {
            tool: Some(self.tool),
            path: PathBuf::new(),
            kind,
            message,
        })
    }
}

const ZIP_LEN: usize = 4;

/// Whether an error comes from the contents of the `.zip`, and not from the system.
fn is_of_zip(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof
    )
}

fn fault(end: End) -> Option<String> {
    match end {
        End::Whole => None,
        End::Torn => Some("it ends in the middle of a conversation; download it again".to_owned()),
        End::Other(at) => Some(format!(
            "it is not a list of conversations from byte {at} on"
        )),
    }
}

/// The first bytes of the conversations in a `.zip`; empty if they cannot be read.
pub(super) fn unpacked_head(path: &Path) -> io::Result<Vec<u8>> {
    let (file, status) = regular::open(path)?;
    let mut head = Vec::new();
    let Ok(files) = zip::conversations(&file, status.size) else {
        return Ok(head);
    };
    if let Some(first) = files.first() {
        let mut left = zip::budget(status.size);
        // The closure ends the unpacking when it has enough bytes, so an error is expected.
        let _ended = zip::unpack(&file, first, &mut left, &mut |bytes| {
            head.extend_from_slice(bytes);
            match head.len() >= HEAD {
                true => Err(io::Error::other("enough")),
                false => Ok(()),
            }
        });
    }
    Ok(head)
}

/// Whether a file begins like a `.zip`.
pub(super) fn is_zip(head: &[u8]) -> bool {
    head.starts_with(zip::ZIP)
}
