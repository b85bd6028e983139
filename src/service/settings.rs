//! The settings of one daemon. Programs fill them from wherever they keep theirs.

use crate::extensions::Extension;
use crate::hooks::Hook;
use crate::summarizer::Summarizer;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use treelined_core::durability::Durability;
use treelined_pages::renderers::Renderer;

/// The settings of one daemon.
#[derive(Debug, Clone)]
pub struct DaemonSettings {
    pub session_dir: PathBuf,
    pub durability: Durability,
    pub summarizer: Option<Summarizer>,
    pub hooks: Vec<Hook>,
    /// The clients that a serving daemon starts.
    pub extensions: Vec<Extension>,
    /// The looks of custom messages, by custom type.
    pub renderers: BTreeMap<String, Renderer>,
    pub redact: RedactSettings,
    /// Bytes.
    pub max_frame_bytes: usize,
    /// Bytes.
    pub max_queued_bytes: usize,
    /// Bytes of frames that arrive and of summaries that are made, of all connections together.
    pub max_working_bytes: usize,
    /// The working directory of sessions that name none.
    pub cwd: String,
}

/// Secrets that exports replace wherever they are.
#[derive(Clone, Default)]
pub struct RedactSettings {
    pub words: Vec<String>,
    /// Names of environment variables with keys, beside those whose name says so.
    pub variables: Vec<String>,
}

/// Words are secrets.
impl fmt::Debug for RedactSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedactSettings").finish_non_exhaustive()
    }
}
