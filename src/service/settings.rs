//! The settings of one daemon. The program reads them from its own configuration.

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
    /// The extensions, which a serving daemon starts.
    pub extensions: Vec<Extension>,
    /// The renderers of custom messages, by custom type.
    pub renderers: BTreeMap<String, Renderer>,
    pub redact: RedactSettings,
    /// The limit of a message, in bytes.
    pub max_frame_bytes: usize,
    /// The limit of the unread output of a connection, in bytes.
    pub max_queued_bytes: usize,
    /// The most bytes of arriving frames and of unfinished summaries, for all connections together.
    pub max_working_bytes: usize,
    /// The most bytes of data that are kept between requests, and that can be made or read again.
    pub max_kept_bytes: usize,
    /// The working directory of a session whose request names none.
    pub cwd: String,
}

/// The secrets that exports replace wherever they are.
#[derive(Clone, Default)]
pub struct RedactSettings {
    pub words: Vec<String>,
    /// The names of environment variables with keys. Variables whose names show that they have keys need not be listed.
    pub variables: Vec<String>,
}

/// The words are secrets, so they are not written.
impl fmt::Debug for RedactSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedactSettings").finish_non_exhaustive()
    }
}
