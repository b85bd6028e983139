//! A search as the model asks for it.

use treelined_client::{SearchBranches, SearchMode};

/// A search as the model asks for it.
#[derive(Clone)]
pub struct SearchRequest {
    pub query: String,
    pub mode: SearchMode,
    pub branches: SearchBranches,
    pub limit: u64,
    pub cursor: Option<String>,
}
