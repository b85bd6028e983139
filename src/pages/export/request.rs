//! The request for an export, and its result.

use super::tally::Redaction;
use crate::redact::Redactor;
use std::path::PathBuf;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::tree::Node;
use treelined_files::store::catalogue::Rows;
use treelined_redact::{Choices, KnownValues};

/// The form of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Html,
    Markdown,
    Jsonl,
    Text,
    Data(DataFormat),
}

/// A form for programs that train and evaluate models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataFormat {
    /// The messages of a branch, a line each branch.
    Sft,
    /// A trajectory of ATIF a branch.
    Atif,
    /// The graph of verifiers.
    Verifiers,
    /// A session file of a branch without secrets.
    Trace,
    /// Pairs of a better and a worse answer, a line each pair.
    Dpo,
}

/// The part of the session that is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Tree,
    /// The path to an entry; `None` for the empty path.
    Branch(Option<Node>),
    Subtree(Node),
}

/// The place of the result.
#[derive(Debug, Clone)]
pub enum Target {
    File {
        path: PathBuf,
        overwrite: bool,
    },
    /// Text of at most this many bytes.
    Content {
        limit: usize,
    },
}

/// The format of an export, and the changes to its text.
#[derive(Debug, Clone)]
pub struct ExportOptions {
    pub format: Format,
    pub redacts: bool,
    /// Values and words that are secrets.
    pub values: KnownValues,
    /// What a person has decided about single secrets.
    pub choices: Choices,
    /// The home directory, if paths in it are shortened.
    pub home: Option<String>,
}

impl ExportOptions {
    /// Replaces what the export does not show.
    pub(super) fn redactor(&self) -> Result<Redactor> {
        let redactor = Redactor::new(self.redacts, self.home.as_deref());
        let redactor =
            redactor.map_err(|error| Error::new(Kind::InternalError, error.to_string()))?;
        let redactor = redactor.with_values(self.values.clone());
        Ok(redactor.with_choices(self.choices.clone()))
    }
}

/// Receives the progress: bytes read, and all bytes to read.
pub(crate) type Progress<'p> = &'p (dyn Fn(u64, u64) + Sync);

/// Lists the sessions of the session directory, among them the sessions of subagents. May read files.
pub type Sessions<'p> = &'p (dyn Fn() -> Result<Rows> + Sync);

/// A finished export.
#[derive(Debug)]
pub struct Exported {
    /// The text, if the target is not a file.
    pub content: Option<String>,
    pub bytes: u64,
    /// Lines of data; `None` for other formats.
    pub items: Option<u64>,
    pub redactions: Vec<Redaction>,
}
