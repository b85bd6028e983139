//! A summary that a client provides.

use super::params::{Raw, object_option};
use serde::{Deserialize, Serialize};

/// A summary that a client made itself.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GivenSummary {
    /// The text of the summary.
    pub summary: String,
    /// Any JSON; its bytes are stored unchanged. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
    pub details: Option<Raw>,
    /// The tokens that the summary cost, in the shape of the `usage` of an assistant message. Its bytes are
    /// stored unchanged, and `get_stats` counts them. Default: none.
    #[serde(
        default,
        deserialize_with = "object_option",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Option<super::message::Usage>"))]
    pub usage: Option<Raw>,
}
