//! The client's agent turns, and messages from plugins (semantics.md §5).

use super::append::Durability;
use super::message::Content;
use super::params::Raw;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

session_params! {
    /// The client's agent begins to run: the leaf only moves by appending until `end_turn`.
    #[schemars(example = super::example(r#"{}"#))]
    BeginTurnParams {}
}

/// The result of `begin_turn`.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(example = super::example(r#"{}"#))]
pub struct BeginTurnResult {}

session_params! {
    /// The client's agent has stopped: queued messages are appended.
    #[schemars(example = super::example(r#"{}"#))]
    EndTurnParams {}
}

/// The result of `end_turn`.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(example = super::example(r#"{}"#))]
pub struct EndTurnResult {}

mutation_params! {
    /// Appends a custom_message, during a turn when it ends.
    #[schemars(example = super::example(r#"{
      "customType": "build", "content": "The build is green.", "display": true
    }"#))]
    SendMessageParams {
        /// Who the message is from or what it is, in the sender's own terms.
        custom_type: String,
        /// A text or content blocks; stored byte for byte.
        #[schemars(with = "Content")]
        content: Raw,
        /// Show it to the user.
        display: bool,
        /// Anything; stored byte for byte.
        #[schemars(with = "Option<Value>")]
        details: Option<Raw>,
        /// Ask for a turn if none is running; false if left out. A message that is queued never does.
        trigger_turn: Option<bool>,
        /// The id of the new entry; makes retries safe.
        entry_id: Option<String>,
    }
}

/// The result of `send_message`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = super::example(r#"{
  "disposition": "appended", "entryId": "de0a292b", "durability": "interval"
}"#))]
pub struct SendMessageResult {
    /// What became of it.
    pub disposition: Disposition,
    /// The entry, as far as it has an id yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_id: Option<String>,
    /// `none` while it is queued.
    pub durability: Durability,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Disposition {
    Appended,
    /// Until `end_turn`.
    Queued,
    /// Appended, and `turn_requested` was sent.
    TurnRequested,
}
