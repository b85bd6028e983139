//! Entries as blocks that a client shows: `render_entries` (protocol.md §15).
//!
//! The daemon writes the JSON of blocks itself (in `treelined-pages`). The types of [`crate::rendered`] describe that JSON.

use super::params::{GivenPosition, count, nullable_into};
use serde::{Deserialize, Serialize};

session_params! {
    /// The params of `render_entries`.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"entryIds": ["a1"]}"#)))]
    RenderEntriesParams {
        /// The ids of the entries, at most 10000.
        entry_ids: Vec<String>,
        /// The most bytes of the answer's entries, at least 4096. Default: the client's `maxFrameBytes`.
        #[serde(default, deserialize_with = "count")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<crate::params::Count>"))]
        max_bytes: Option<u64>,
        /// The members of the result within calls. Default: `blocks`.
        results: Option<RenderedResults>,
        /// The position whose path decides between several results of a call; null means the empty position. Default:
        /// the leaf.
        #[serde(default, deserialize_with = "nullable_into")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
        leaf_id: GivenPosition,
    }
}

/// The members of the result within calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RenderedResults {
    /// The entry of the result and its blocks.
    #[default]
    Blocks,
    /// The entry of the result without its blocks, for clients that render that entry too.
    Ids,
}
