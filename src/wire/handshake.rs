//! The connection itself: `initialize`, `shutdown`, `rpc.discover`, cancelling (protocol.md §1, §2, §5).

use super::params::{
    AnyObject, Count, Lenient, RequestId, count, declared, lenient_object, optional_object,
    required_count,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Introduces the client. Optional; members unknown to the daemon are ignored.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = super::example(r#"{
  "protocolVersion": 1, "clientInfo": {"name": "example"},
  "capabilities": {"answers": {"session_before_tree": {}}}
}"#))]
pub struct InitializeParams {
    /// 1. To any other version the daemon answers with its own.
    #[serde(deserialize_with = "required_count")]
    #[schemars(with = "Count")]
    pub protocol_version: u64,
    /// Who the client is.
    #[serde(default, deserialize_with = "optional_object")]
    pub client_info: Option<ClientInfo>,
    /// The process whose death ends the daemon.
    #[serde(default, deserialize_with = "count")]
    #[schemars(with = "Option<Count>")]
    pub process_id: Option<u64>,
    /// What the client can do and wants.
    #[serde(default, deserialize_with = "lenient_object")]
    #[schemars(with = "Option<Lenient<ClientCapabilities>>")]
    pub capabilities: ClientCapabilities,
}

/// Who the client is.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientInfo {
    /// The name of the program.
    pub name: String,
    /// The version of the program.
    pub version: Option<String>,
}

/// What the client can do and wants. Members unknown to the daemon are ignored.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientCapabilities {
    /// The events that this client will answer, and that therefore wait for it.
    #[serde(default, deserialize_with = "lenient_object")]
    #[schemars(with = "Option<Lenient<Answers>>")]
    pub answers: Answers,
    /// Notifications that the client does not want, by name.
    pub opt_out: Option<Vec<String>>,
    /// Declared: send `summary_delta`.
    #[serde(default, deserialize_with = "declared")]
    #[schemars(with = "Option<Lenient<AnyObject>>")]
    pub summary_deltas: bool,
    /// Declared: send `progress`.
    #[serde(default, deserialize_with = "declared")]
    #[schemars(with = "Option<Lenient<AnyObject>>")]
    pub progress: bool,
    /// Bytes of the longest frame the client can take.
    #[serde(default, deserialize_with = "count")]
    #[schemars(with = "Option<Count>")]
    pub max_frame_bytes: Option<u64>,
}

/// The events that a client will answer; each declared by an empty object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct Answers {
    /// Navigations wait for this client.
    #[serde(default, deserialize_with = "declared")]
    #[schemars(with = "Option<Lenient<AnyObject>>")]
    pub session_before_tree: bool,
    /// Forks wait for this client.
    #[serde(default, deserialize_with = "declared")]
    #[schemars(with = "Option<Lenient<AnyObject>>")]
    pub session_before_fork: bool,
    /// Compactions wait for this client.
    #[serde(default, deserialize_with = "declared")]
    #[schemars(with = "Option<Lenient<AnyObject>>")]
    pub session_before_compact: bool,
}

/// The result of `initialize`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = super::example(r#"{
  "protocolVersion": 1, "serverInfo": {"name": "treelined", "version": "0.1.0"},
  "instanceId": "0198c1f0-5e00-7000-8000-000000000001",
  "schemaHash": "sha256:c474c1c13d161069268e9e5a6189776425ee708c7ea8e2194bb751e902bf0b87",
  "capabilities": {"summarizer": "outline"},
  "limits": {"maxFrameBytes": 67108864, "maxAnswerMs": 600000, "maxQueuedBytes": 16777216}
}"#))]
pub struct InitializeResult {
    /// The version the daemon speaks.
    pub protocol_version: u32,
    /// What the daemon is.
    pub server_info: ServerInfo,
    /// Another for every start of the daemon.
    pub instance_id: String,
    /// `sha256:` and the hash of `treelined.v1.json`.
    pub schema_hash: String,
    /// What the daemon can do.
    pub capabilities: ServerCapabilities,
    /// What the daemon bears.
    pub limits: Limits,
}

/// What the daemon is.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerInfo {
    /// `treelined`.
    pub name: String,
    /// The version of the program.
    pub version: String,
}

/// What the daemon can do.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerCapabilities {
    /// `outline`, `llm` or `command`; null if none is configured.
    pub summarizer: Option<String>,
}

/// What the daemon bears.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Bytes of the longest request.
    pub max_frame_bytes: u64,
    /// Milliseconds for which a question can stay open.
    pub max_answer_ms: u64,
    /// Bytes of unread output above which the daemon stops reading.
    pub max_queued_bytes: u64,
}

/// Asks for the OpenRPC document of exactly this daemon.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = super::example(r#"{}"#))]
pub struct DiscoverParams {}

/// An OpenRPC document.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(example = super::example(r#"{
  "openrpc": "1.3.2", "info": {"title": "treelined", "version": "0.1.0"}, "methods": []
}"#))]
pub struct DiscoverResult(pub Map<String, Value>);

/// Ends the daemon as the end of its input does.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = super::example(r#"{}"#))]
pub struct ShutdownParams {}

/// The result of `shutdown`.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(example = super::example(r#"{}"#))]
pub struct ShutdownResult {}

/// Cancels a request that waits; a notification, or a request.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = super::example(r#"{"requestId": 7}"#))]
pub struct CancelRequestParams {
    /// The id of the request; an unknown one is ignored.
    pub request_id: RequestId,
}

/// `$/cancel_request` as language servers spell it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = super::example(r#"{"id": 7}"#))]
pub struct LspCancelRequestParams {
    /// The id of the request; an unknown one is ignored.
    pub id: RequestId,
}

/// The result of `$/cancel_request`.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(example = super::example(r#"{}"#))]
pub struct CancelRequestResult {}
