//! Commands that one client offers and another runs (protocol.md §12).

use super::params::count;
use serde::{Deserialize, Serialize};

/// The params of `register_command`. It replaces the connection's own command of the same name.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "name": "todo", "description": "Adds an item to the list", "argumentHint": "TEXT"
}"#)))]
pub struct RegisterCommandParams {
    /// The name: a letter from a to z, then at most 63 of `a-z0-9_-`.
    #[cfg_attr(
        feature = "schema",
        schemars(regex(pattern = "^[a-z][a-z0-9_-]{0,63}$"))
    )]
    pub name: String,
    /// Description of the command, for people; at most 1000 characters. Default: none.
    pub description: Option<String>,
    /// Description of its argument, for people; at most 200 characters. Default: none.
    pub argument_hint: Option<String>,
}

/// The result of `register_command`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example("{}")))]
pub struct RegisterCommandResult {}

/// The params of `unregister_command`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"name": "todo"}"#)))]
pub struct UnregisterCommandParams {
    /// The name of a command of this connection.
    pub name: String,
}

/// The result of `unregister_command`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example("{}")))]
pub struct UnregisterCommandResult {}

/// The params of `list_commands`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example("{}")))]
pub struct ListCommandsParams {}

/// The result of `list_commands`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "commands": [
    {
      "name": "todo", "description": "Adds an item to the list", "argumentHint": "TEXT",
      "by": "todo-list"
    }
  ]
}"#)))]
pub struct ListCommandsResult {
    /// The commands of all connections, sorted by name.
    pub commands: Vec<RegisteredCommand>,
}

/// A command that a connection offers.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RegisteredCommand {
    /// The name.
    pub name: String,
    /// Description of the command, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Description of its argument, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argument_hint: Option<String>,
    /// The name of the client that offers it, else `client-` and the number of its connection.
    pub by: String,
}

/// The params of `run_command`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"name": "todo", "args": "Ship it", "sessionId": "tour"}"#)))]
pub struct RunCommandParams {
    /// The name of a registered command.
    pub name: String,
    /// The argument, at most 1 MiB. Default: the empty text.
    pub args: Option<String>,
    /// The id of an open session that the command is about. Default: none.
    pub session_id: Option<String>,
    /// How many milliseconds the command may take, at most `limits.maxAnswerMs`. Default: 30000.
    #[serde(default, deserialize_with = "count")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::params::Count>"))]
    pub timeout_ms: Option<u64>,
}

/// The result of `run_command`.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"output": "Added: Ship it"}"#)))]
pub struct RunCommandResult {
    /// Text to show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Text that the client may send as the user's next message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

/// The params of `command_invoked`. It is sent to the connection that offers the command, which answers with
/// `answer_event`. It has no `seq`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "eventId": "7b0c6a53-3a0e-4a0c-8d1e-6a41d1f4c7aa", "name": "todo", "args": "Ship it",
  "sessionId": "tour", "by": "editor", "timeoutMs": 30000
}"#)))]
pub struct CommandInvoked {
    /// The id of the question, for `answer_event`.
    pub event_id: String,
    /// The name of the command.
    pub name: String,
    /// The argument.
    pub args: String,
    /// The id of the session that the command is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The name of the client that runs it, else `client-` and the number of its connection.
    pub by: String,
    /// How many milliseconds the daemon waits for the answer.
    pub timeout_ms: u64,
}
