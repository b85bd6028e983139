//! The settings of one daemon. Programs fill them from wherever they keep theirs.

use crate::extensions::Extension;
use crate::hooks::Hook;
use crate::summarizer::Summarizer;
use std::collections::BTreeMap;
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
    /// Bytes.
    pub max_frame_bytes: usize,
    /// Bytes.
    pub max_queued_bytes: usize,
    /// The working directory of sessions that name none.
    pub cwd: String,
}
