//! The client's agent turns, and messages from plugins (semantics.md §5).

use super::append::Durability;
use super::params::Raw;
use serde::Serialize;

session_params! {
    /// The params of `begin_turn`. Until `end_turn`, operations that move the leaf without appending fail with
    /// `sessionBusy`; during a turn of a branch, only closing or deleting the session and archiving the branch are
    /// refused.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"entryId": "b1"}"#)))]
    BeginTurnParams {
        /// An entry of the branch to which the turn belongs, such as its prompt. Default: none, the turn of the session.
        entry_id: Option<String>,
    }
}

/// The result of `begin_turn`.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"turnId": "6b1fa0c37e0949d1"}"#)))]
pub struct BeginTurnResult {
    /// The id of the turn, for `end_turn` and `send_message`.
    pub turn_id: String,
}

session_params! {
    /// The params of `end_turn`. Messages that were queued during the turn are appended.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"turnId": "6b1fa0c37e0949d1"}"#)))]
    EndTurnParams {
        /// The id of the turn. Default: the turn of the session.
        turn_id: Option<String>,
    }
}

/// The result of `end_turn`.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{}"#)))]
pub struct EndTurnResult {}

mutation_params! {
    /// The params of `send_message`. It appends a custom_message entry.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
      "customType": "build", "content": "The build is green.", "display": true
    }"#)))]
    SendMessageParams {
        /// The type of the message, in the plugin's own terms.
        custom_type: String,
        /// A text, or content blocks. Its bytes are stored unchanged.
        #[cfg_attr(feature = "schema", schemars(with = "crate::message::Content"))]
        content: Raw,
        /// Whether to show the message to the user.
        display: bool,
        /// Any JSON; its bytes are stored unchanged. Default: none.
        #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
        details: Option<Raw>,
        /// The id of a turn of a branch: the message waits for the end of the turn, and goes to the branch of the turn.
        /// Default: none, the conversation of the leaf.
        turn_id: Option<String>,
        /// Whether to ask for a turn if none is running. A queued message never does. Default: false.
        trigger_turn: Option<bool>,
        /// The id of the new entry. A client that chooses it can repeat the request safely. Default: the
        /// daemon chooses one.
        entry_id: Option<String>,
    }
}

/// The result of `send_message`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "disposition": "appended", "entryId": "de0a292b", "durability": "interval"
}"#)))]
pub struct SendMessageResult {
    /// The outcome for the message.
    pub disposition: Disposition,
    /// The id of the message's entry. Absent for a queued message without a chosen id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_id: Option<String>,
    /// How safe the write is at the time of the response; `none` while the message is queued.
    pub durability: Durability,
}

/// The outcome for a sent message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Disposition {
    Appended,
    /// It waits for `end_turn`.
    Queued,
    /// It was appended, and `turn_requested` was sent.
    TurnRequested,
}
