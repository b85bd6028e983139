//! Questions and messages to a person (protocol.md §13).

use super::params::count;
use serde::{Deserialize, Serialize};

/// How a person answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum AskKind {
    /// By choosing one of `options`.
    Select,
    /// By yes or no.
    Confirm,
    /// By a line of text.
    Input,
    /// By a longer text.
    Editor,
}

/// The params of `ask_user`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "kind": "select", "title": "Where to go?", "options": ["Stay", "Leave"], "timeoutMs": 60000
}"#)))]
pub struct AskUserParams {
    /// How the person answers.
    pub kind: AskKind,
    /// The question, 1 to 500 characters.
    pub title: String,
    /// More about it, at most 64 KiB. Default: none.
    pub message: Option<String>,
    /// The choices of a `select`, which needs them: 1 to 1000, together at most 64 KiB. Default: none.
    pub options: Option<Vec<String>>,
    /// A hint shown in an empty field, at most 500 characters. Default: none.
    pub placeholder: Option<String>,
    /// The text or the choice to begin with, at most 1 MiB. Default: none.
    pub initial: Option<String>,
    /// How many milliseconds to wait, at most `limits.maxAnswerMs`. Default: `limits.maxAnswerMs`.
    #[serde(default, deserialize_with = "count")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::params::Count>"))]
    pub timeout_ms: Option<u64>,
    /// The id of an open session: only connections that have it open are asked. Default: all connections.
    pub session_id: Option<String>,
}

/// The value that a person gives: of a `confirm` true or false, else a text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(untagged, expecting = "must be true, false or a text")]
pub enum UserValue {
    Choice(bool),
    Text(String),
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for UserValue {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "UserValue".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        // Generators of types cannot represent a union of a string and a boolean.
        schemars::json_schema!({})
    }
}

/// The result of `ask_user`: `value`, or `dismissed` with its `reason`.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"value": "Leave"}"#)))]
pub struct AskUserResult {
    /// The answer: of a `confirm` true or false, else a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<UserValue>,
    /// True if there is no answer, else absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dismissed: Option<bool>,
    /// Why there is no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<DismissReason>,
}

/// Why a question to a person has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum DismissReason {
    /// The person dismissed it.
    Dismissed,
    /// No answer came in time.
    Timeout,
}

/// The params of `user_asked`. Clients answer with `answer_event`. It has no `seq`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "eventId": "c0a2a1a4-58b1-4d1f-9c8d-1f4a5d0c7a11", "by": "guard", "kind": "confirm",
  "title": "Leave the branch?", "message": "Its tests fail.", "timeoutMs": 60000, "sessionId": "tour"
}"#)))]
pub struct UserAsked {
    /// The id of the question, for `answer_event`.
    pub event_id: String,
    /// The name of the client that asks, else `client-` and the number of its connection.
    pub by: String,
    /// How the person answers.
    pub kind: AskKind,
    /// The question.
    pub title: String,
    /// More about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The choices of a `select`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<String>>,
    /// A hint shown in an empty field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placeholder: Option<String>,
    /// The text or the choice to begin with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial: Option<String>,
    /// How many milliseconds the daemon waits for the answer.
    pub timeout_ms: u64,
    /// The id of the session that the question is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// The importance of a message to a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum NotifyLevel {
    Info,
    Warning,
    Error,
}

/// The params of `notify_user`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"message": "The build is green.", "level": "info"}"#)))]
pub struct NotifyUserParams {
    /// The message, at most 64 KiB.
    pub message: String,
    /// Its importance.
    pub level: NotifyLevel,
    /// The id of an open session: only connections that have it open are notified. Default: all connections.
    pub session_id: Option<String>,
}

/// The result of `notify_user`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"delivered": 2}"#)))]
pub struct NotifyUserResult {
    /// The number of connections to which the message was sent.
    pub delivered: u64,
}

/// The params of `user_notified`. It has no `seq`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "message": "The build is green.", "level": "info", "by": "watcher"
}"#)))]
pub struct UserNotified {
    /// The message.
    pub message: String,
    /// Its importance.
    pub level: NotifyLevel,
    /// The name of the client that sent it, else `client-` and the number of its connection.
    pub by: String,
    /// The id of the session that the message is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}
