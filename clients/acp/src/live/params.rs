//! The members of params that the relay reads. Pure.

use super::message::Message;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The most bytes of params that are kept of a request.
pub(super) const MAX_PARAMS: usize = 256 << 10;

/// The params with which the editor has opened a session.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Setup {
    pub(crate) cwd: String,
    #[serde(default)]
    pub(crate) mcp_servers: Option<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ListParams {
    pub(super) cwd: Option<String>,
    pub(super) cursor: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ForkParams {
    #[serde(rename = "_meta")]
    pub(super) meta: Option<Meta>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Meta {
    pub(super) treelined: Option<OurMeta>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct OurMeta {
    pub(super) message_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Commands<'a> {
    #[serde(borrow)]
    pub(super) update: CommandsUpdate<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CommandsUpdate<'a> {
    pub(super) session_update: String,
    #[serde(borrow)]
    pub(super) available_commands: &'a RawValue,
}

#[derive(Deserialize)]
pub(super) struct Updated {
    pub(super) update: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Prompt<'a> {
    #[serde(borrow)]
    pub(super) prompt: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Setting {
    #[serde(default)]
    pub(super) config_id: String,
}

/// Reads the params with which a request opens a session.
pub(super) fn setup(message: &Message<'_>) -> Option<Setup> {
    let params: &RawValue = message.params()?;
    let setup = (params.get().len() <= MAX_PARAMS).then(|| message.params());
    setup.flatten()
}

/// The params of a request that opens `session`, or of a request that makes a session if `session` is `None`.
pub(super) fn place_params(session: Option<&str>, setup: &Setup) -> String {
    let mut params = json!({ "cwd": setup.cwd });
    if let (Some(session), Value::Object(members)) = (session, &mut params) {
        members.insert("sessionId".to_owned(), json!(session));
    }
    let params = params.to_string();
    let members = params.strip_suffix('}').unwrap_or_default();
    let servers = setup
        .mcp_servers
        .as_ref()
        .map_or("[]", |servers| servers.get());
    format!("{members},\"mcpServers\":{servers}}}")
}
