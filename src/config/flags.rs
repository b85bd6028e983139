//! The options of the command line, and how environment variables are read.

use serde::Deserialize;
use std::ffi::OsString;
use std::path::PathBuf;
use treelined_core::durability::DurabilityPolicy;

/// The options of the command line. An option that was not given is `None`.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConfigFlags {
    pub config: Option<PathBuf>,
    pub session_dir: Option<PathBuf>,
    pub socket: Option<PathBuf>,
    pub summarizer: Option<SummarizerName>,
    pub durability: Option<DurabilityPolicy>,
    /// The most bytes of a frame.
    pub max_frame_bytes: Option<u64>,
    /// The most bytes that are queued.
    pub max_queued_bytes: Option<u64>,
    /// The servers of the team's stream.
    pub log: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SummarizerName {
    None,
    #[default]
    Outline,
    Command,
    Llm,
}

/// Looks up an environment variable.
pub(crate) type EnvironmentLookup<'a> = &'a dyn Fn(&str) -> Option<OsString>;
