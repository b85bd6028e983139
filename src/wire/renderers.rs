//! How custom messages look: `register_renderer` (protocol.md §14).

use serde::{Deserialize, Serialize};
pub use treelined_core::view::RowStyle;

/// The params of `register_renderer`. It replaces the connection's own renderer of the same custom type.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "customType": "todo", "preview": "{details.done}/{details.total} {content}", "style": "accent"
}"#)))]
pub struct RegisterRendererParams {
    /// The `customType` of the entries, at most 256 bytes.
    pub custom_type: String,
    /// The template of the preview, at most 1024 bytes. `{details.done}` is a member of the entry, `{{` a brace.
    pub preview: String,
    /// An icon to show before the preview, at most 16 characters. Default: none.
    pub icon: Option<String>,
    /// The style of the rows. Default: `accent` for displayed messages, else none.
    pub style: Option<RowStyle>,
}

/// The result of `register_renderer`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example("{}")))]
pub struct RegisterRendererResult {}
