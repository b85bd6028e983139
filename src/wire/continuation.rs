//! Going on with a conversation in another agent (protocol.md §3.18).

use super::append::Durability;
use serde::{Deserialize, Serialize};
use treelined_core::agent::Tool;
use treelined_core::each_tool;

session_params! {
    /// The params of `continue_session`.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"tool": "codex", "entryId": "a1", "learned": true}"#)))]
    ContinueSessionParams {
        /// The id of the last entry that is handed over. Default: the leaf.
        entry_id: Option<String>,
        /// The agent that goes on.
        tool: ContinueIn,
        /// The working directory of the new session, an absolute path. Default: that of the session.
        cwd: Option<String>,
        /// Whether the first words have a summary of the branch that is left. Default: false.
        learned: Option<bool>,
        /// Whether turns that do not fit `limit` are replaced by a summary. Default: false.
        compact: Option<bool>,
        /// The number of turns that are handed over, the last ones. Default: all.
        last: Option<u32>,
        /// The most tokens that are handed over, estimated; 0 takes any number. Default: 150,000.
        limit: Option<u64>,
        /// The treatment of thoughts. Default: `drop`.
        thinking: Option<HandedThoughts>,
        /// Whether nothing is written. Default: false.
        dry_run: Option<bool>,
    }
}

macro_rules! continue_in {
    ([$($agent:ident = $name:literal,)+] $others:tt) => {
        /// The agent that goes on with a conversation.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum ContinueIn {
            $(#[serde(rename = $name)] $agent,)+
            /// Any other agent: the conversation is a text.
            #[serde(rename = "text")]
            Text,
        }

        impl ContinueIn {
            /// The agent; `None` for any other.
            pub fn agent(self) -> Option<Tool> {
                match self {
                    $(Self::$agent => Some(Tool::$agent),)+
                    Self::Text => None,
                }
            }
        }
    };
}
each_tool!(continue_in);

/// The treatment of the thoughts of models when a conversation is handed over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum HandedThoughts {
    /// They are left out.
    #[default]
    Drop,
    /// They are part of the text.
    Text,
}

/// The result of `continue_session`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "continuationId": "5f0a3fa94c01b7d2", "tool": "codex", "nativeId": "01a20124-4777-7de2-915b-ef7ddcee9bbf",
  "files": [
    {
      "path": "/home/ada/.codex/sessions/2026/11/24/rollout-2026-11-24T08-16-21-01a20124-4777-7de2-915b-ef7ddcee9bbf.jsonl",
      "bytes": 1840
    }
  ],
  "steps": [["codex", "resume", "01a20124-4777-7de2-915b-ef7ddcee9bbf"]], "cwd": "/home/ada/project",
  "messages": 2, "tokens": 31, "losses": [{"kind": "thoughts", "count": 1, "text": "1 thought left out"}],
  "tested": "0.169.0", "durability": "interval"
}"#)))]
pub struct ContinueSessionResult {
    /// The id of the continuation. Absent with `dryRun` and for the tool `text`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuation_id: Option<String>,
    /// The agent that goes on.
    pub tool: ContinueIn,
    /// The agent's id of the new session. Absent if the agent chooses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_id: Option<String>,
    /// The files that were made, or would be.
    pub files: Vec<HandedFile>,
    /// The programs to run one after the other in `cwd`, as lists of arguments; the last one is the agent. The argument
    /// `{nativeId}` stands for the id that the step before it prints.
    pub steps: Vec<Vec<String>>,
    /// The working directory of the new session.
    pub cwd: String,
    /// The words to say first. They are an argument of the last step; if they are too long, they are in a file that the
    /// argument names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The conversation in Markdown. Present for the tool `text`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The number of messages that are handed over.
    pub messages: u64,
    /// The estimated number of tokens of these messages.
    pub tokens: u64,
    /// The parts of the conversation that the new session does not have.
    pub losses: Vec<HandoffLoss>,
    /// The programs of `steps` that are not on the daemon's `PATH`. Absent if all are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<Vec<String>>,
    /// The version of the agent with which continuations were tested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tested: Option<String>,
    /// The failures that the record of the continuation survives.
    pub durability: Durability,
}

/// A file made for an agent.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HandedFile {
    /// The absolute path.
    pub path: String,
    /// The size.
    pub bytes: u64,
}

/// Parts of a conversation that a handoff leaves out or changes.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HandoffLoss {
    /// The kind of the parts.
    pub kind: HandoffLossKind,
    /// Their number.
    pub count: u64,
    /// The loss in English.
    pub text: String,
}

/// A kind of parts that a handoff leaves out or changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum HandoffLossKind {
    /// Thoughts that are left out.
    Thoughts,
    /// Calls without a result, which get a result.
    ClosedCalls,
    /// Results without a call, which are left out.
    OrphanResults,
    /// Names of calls that the agent does not have.
    ToolNames,
    /// Ids of calls that are replaced.
    CallIds,
    /// Images that are described.
    Images,
    /// System messages that are left out.
    SystemMessages,
    /// Messages that an agent wrote for itself, which are left out.
    Scaffolding,
    /// A beginning that is not a message of the user: such a message is put before it.
    Beginning,
    /// Characters that are not Unicode.
    Characters,
    /// Parts of messages of unknown types, which are left out.
    Blocks,
    /// Turns before the last ones.
    EarlierTurns,
    /// Messages that a summary replaces.
    Compacted,
}

session_params! {
    /// The params of `continuation_started`.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"continuationId": "5f0a3fa94c01b7d2", "nativeId": "20261124_3"}"#)))]
    ContinuationStartedParams {
        /// The id of the continuation.
        continuation_id: String,
        /// The id that the agent gave the new session.
        native_id: String,
    }
}

/// The result of `continuation_started`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"durability": "interval"}"#)))]
pub struct ContinuationStartedResult {
    /// The failures that the record survives; `none` if the id was known.
    pub durability: Durability,
}
