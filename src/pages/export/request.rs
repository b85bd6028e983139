//! The request for an export, and its result.

use super::tally::Redaction;
use crate::redact::Redactor;
use std::path::PathBuf;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::tree::Node;
use treelined_files::store::catalogue::Rows;
use treelined_redact::{Choices, KnownValues};

/// The format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Html,
    Markdown,
    Jsonl,
    Text,
    Data(DataFormat),
}

/// A format for programs that train and evaluate models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataFormat {
    /// The messages of branches, one line for each branch.
    Sft,
    /// Trajectories of ATIF, one for each branch.
    Atif,
    /// The graph of verifiers.
    Verifiers,
    /// A session file of one branch, without secrets.
    Trace,
    /// Pairs of a better and a worse answer, one line for each pair.
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

/// The target of the result.
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
    /// The values and words that are replaced as secrets.
    pub values: KnownValues,
    /// The decisions of a person about single secrets.
    pub choices: Choices,
    /// The home directory, if paths in it must be shortened.
    pub home: Option<String>,
}

impl ExportOptions {
    /// Makes the redactor that replaces secrets.
    pub(super) fn redactor(&self) -> Result<Redactor> {
        let redactor = Redactor::new(self.redacts, self.home.as_deref());
        let redactor =
            redactor.map_err(|error| Error::new(Kind::InternalError, error.to_string()))?;
        let redactor = redactor.with_values(self.values.clone());
        Ok(redactor.with_choices(self.choices.clone()))
    }
}

/// Receives the progress: the number of bytes read, and the number of bytes to read in all.
pub(crate) type Progress<'p> = &'p (dyn Fn(u64, u64) + Sync);

/// Lists the sessions of the session directory, including the sessions of subagents. The function may read files.
pub type Sessions<'p> = &'p (dyn Fn() -> Result<Rows> + Sync);

/// A finished export.
#[derive(Debug)]
pub struct Exported {
    /// The exported text; `None` if the target is a file.
    pub content: Option<String>,
    pub bytes: u64,
    /// The number of lines of data; `None` for other formats.
    pub items: Option<u64>,
    pub redactions: Vec<Redaction>,
}
