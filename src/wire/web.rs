//! Params and result of `open_web`.

use serde::{Deserialize, Serialize};

/// The params of `open_web`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example("{}")))]
pub struct OpenWebParams {}

/// The result of `open_web`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "address": "http://127.0.0.1:41957/", "webSocket": "ws://127.0.0.1:41957/ws",
  "token": "6b1f0c5a4e7d2938a1b0c9d8e7f6051423324150697887a6b5c4d3e2f1009f8e"
}"#)))]
pub struct OpenWebResult {
    /// The URL of the page. A browser opens it with `#t=` and the token.
    pub address: String,
    /// The URL of the WebSocket.
    pub web_socket: String,
    /// The token, a secret: whoever has it can do all that this client can.
    pub token: String,
}
