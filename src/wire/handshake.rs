//! The connection itself: `initialize`, `shutdown`, `rpc.discover`, cancelling (protocol.md §1, §2, §5).

use super::params::{
    RequestId, count, declared, lenient_object, lenient_option, names, optional_object,
    required_count,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The params of `initialize`. The request is optional; a client sends it before everything else, and once.
/// Unknown members are ignored.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "protocolVersion": 1, "clientInfo": {"name": "example"},
  "capabilities": {"answers": {"session_before_tree": {}}}
}"#)))]
pub struct InitializeParams {
    /// The version of the protocol that the client speaks: 1. The daemon answers any other version with its
    /// own.
    #[serde(deserialize_with = "required_count")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::params::Count"))]
    pub protocol_version: u64,
    /// The name and version of the client. Default: none.
    #[serde(default, deserialize_with = "optional_object")]
    pub client_info: Option<ClientInfo>,
    /// The id of a process. When the process dies, the connection ends, and so does a daemon without other connections.
    /// Default: none.
    #[serde(default, deserialize_with = "count")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::params::Count>"))]
    pub process_id: Option<u64>,
    /// The working directory of sessions that the client creates without naming one. Default: on stdio that of the
    /// daemon, on a socket none.
    pub cwd: Option<String>,
    /// The abilities and options of the client. Default: nothing.
    #[serde(default, deserialize_with = "lenient_object")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<crate::shapes::Lenient<ClientCapabilities>>")
    )]
    pub capabilities: ClientCapabilities,
    /// A limit of what the connection may do from here on, besides the limit that it has. Default: none.
    pub access: Option<AccessParams>,
}

/// A limit of what a connection may do (protocol.md §10.7). Unknown members are refused.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AccessParams {
    /// The right of the connection on sessions. Default: `read`.
    pub may: Option<AccessRight>,
    /// Absolute directories: only the sessions in them or below exist for the connection. Default: all sessions.
    pub directories: Option<Vec<String>>,
    /// Whether secrets are replaced in all that the connection gets. Default: true.
    pub redact: Option<bool>,
}

/// A right of a limited connection on sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum AccessRight {
    /// It may only read.
    Read,
    /// It may read, add to sessions, move their leaf, and create sessions.
    Append,
}

/// The name and version of a client.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClientInfo {
    /// The name of the program. `event_resolved` names the client by it.
    pub name: String,
    /// The version of the program. Default: none.
    pub version: Option<String>,
}

/// The abilities and options of a client. Unknown members are ignored.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClientCapabilities {
    /// The events that the client answers; the daemon waits for its answers. Default: none.
    #[serde(default, deserialize_with = "lenient_object")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<crate::shapes::Lenient<Answers>>")
    )]
    pub answers: Answers,
    /// The names of notifications that the client does not want. Default: none.
    pub opt_out: Option<Vec<String>>,
    /// Given as an empty object: the daemon sends `summary_delta`. Default: absent.
    #[serde(default, deserialize_with = "declared")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<crate::shapes::Lenient<crate::params::AnyObject>>")
    )]
    pub summary_deltas: bool,
    /// Given as an empty object: the daemon sends `progress`. Default: absent.
    #[serde(default, deserialize_with = "declared")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<crate::shapes::Lenient<crate::params::AnyObject>>")
    )]
    pub progress: bool,
    /// Given as an empty object: the daemon sends `search_hit`. Default: absent.
    #[serde(default, deserialize_with = "declared")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<crate::shapes::Lenient<crate::params::AnyObject>>")
    )]
    pub search_hits: bool,
    /// The ways in which the client can ask the person in front of it: `select`, `confirm`, `input`, `editor`;
    /// others are ignored. With any list, an empty one too, the client gets `user_notified`. Default: none.
    #[serde(default, deserialize_with = "names")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<String>>"))]
    pub ui: Option<Vec<String>>,
    /// The most bytes of one message that the client can read. Default: the daemon's `limits.maxFrameBytes`.
    #[serde(default, deserialize_with = "count")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::params::Count>"))]
    pub max_frame_bytes: Option<u64>,
}

/// The events that a client answers, each given as an object, which may be empty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answers {
    /// Navigations wait for this client. Default: absent.
    #[serde(default, deserialize_with = "lenient_option")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<crate::shapes::Lenient<DeclaredAnswer>>")
    )]
    pub session_before_tree: Option<DeclaredAnswer>,
    /// Forks wait for this client. Default: absent.
    #[serde(default, deserialize_with = "lenient_option")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<crate::shapes::Lenient<DeclaredAnswer>>")
    )]
    pub session_before_fork: Option<DeclaredAnswer>,
    /// Compactions wait for this client. Default: absent.
    #[serde(default, deserialize_with = "lenient_option")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<crate::shapes::Lenient<DeclaredAnswer>>")
    )]
    pub session_before_compact: Option<DeclaredAnswer>,
}

/// How a client answers an event. Unknown members are ignored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeclaredAnswer {
    /// The answer that counts if the client fails: its connection ends while it is asked. Default: `cancel`.
    pub on_failure: Option<OnFailure>,
}

/// The answer to a before event that counts in place of the answer of a client that fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum OnFailure {
    /// The operation is cancelled: a guard that fails does not consent.
    #[default]
    Cancel,
    /// The client has no opinion.
    Proceed,
}

/// The result of `initialize`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "protocolVersion": 1, "serverInfo": {"name": "treelined", "version": "0.1.0"},
  "instanceId": "0198c1f0-5e00-7000-8000-000000000001",
  "schemaHash": "sha256:c474c1c13d161069268e9e5a6189776425ee708c7ea8e2194bb751e902bf0b87",
  "capabilities": {"summarizer": "outline"},
  "limits": {"maxFrameBytes": 67108864, "maxAnswerMs": 600000, "maxQueuedBytes": 16777216}
}"#)))]
pub struct InitializeResult {
    /// The version of the protocol that the daemon speaks.
    pub protocol_version: u32,
    /// The name and version of the daemon.
    pub server_info: ServerInfo,
    /// An id that differs for every start of the daemon.
    pub instance_id: String,
    /// `sha256:` and the hash of `treelined.v1.json`, in hexadecimal digits.
    pub schema_hash: String,
    /// The abilities of the daemon.
    pub capabilities: ServerCapabilities,
    /// The limits of the daemon.
    pub limits: Limits,
    /// The limits of what the connection may do; left out if it is not limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<GrantedAccess>,
}

/// The limits of what a connection may do.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GrantedAccess {
    /// The right of the connection on sessions.
    pub may: AccessRight,
    /// The directories whose sessions exist for the connection, without links; left out for all sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directories: Option<Vec<String>>,
    /// Whether secrets are replaced in all that the connection gets.
    pub redact: bool,
}

/// The name and version of the daemon.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServerInfo {
    /// The name of the program: `treelined`.
    pub name: String,
    /// The version of the program.
    pub version: String,
}

/// The abilities of the daemon.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServerCapabilities {
    /// The configured summarizer: `outline`, `llm` or `command`; null if there is none.
    pub summarizer: Option<String>,
}

/// The limits of the daemon.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// The most bytes of one message that the daemon reads.
    pub max_frame_bytes: u64,
    /// How many milliseconds a question can stay open.
    pub max_answer_ms: u64,
    /// How many bytes of unread output make the daemon stop reading.
    pub max_queued_bytes: u64,
}

/// The params of `rpc.discover`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{}"#)))]
pub struct DiscoverParams {}

/// An OpenRPC document.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "openrpc": "1.3.2", "info": {"title": "treelined", "version": "0.1.0"}, "methods": []
}"#)))]
pub struct DiscoverResult(pub Map<String, Value>);

/// The params of `shutdown`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{}"#)))]
pub struct ShutdownParams {}

/// The result of `shutdown`.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{}"#)))]
pub struct ShutdownResult {}

/// The params of `$/cancel_request`. A client sends it as a notification or as a request. A cancelled navigation
/// answers `cancelled: true`, and any other request fails with `cancelled`. If the operation is already
/// committed, its result stands.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"requestId": 7}"#)))]
pub struct CancelRequestParams {
    /// The id of the request to cancel; an unknown one is ignored.
    pub request_id: RequestId,
}

/// The params of `$/cancelRequest`. It does the same as `$/cancel_request`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"id": 7}"#)))]
pub struct LspCancelRequestParams {
    /// The id of the request to cancel; an unknown one is ignored.
    pub id: RequestId,
}

/// An empty object.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{}"#)))]
pub struct CancelRequestResult {}
