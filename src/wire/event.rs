//! Questions that the daemon asks clients, and `answer_event` (protocol.md §5).

use super::params::{Raw, count, lenient_option, nullable_into, object_option, optional_object};
use super::people::UserValue;
use super::read::Model;
use super::summary::GivenSummary;
use serde::{Deserialize, Serialize, Serializer};
use std::sync::Arc;
use treelined_core::error::Error;

/// The params of `answer_event`. Exactly one of `result`, `error` and `extendMs` is given.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "eventId": "0198c1f0-5e00-7000-8000-000000000003", "result": {"label": "first try"}
}"#)))]
pub struct AnswerEventParams {
    /// The id of the question, from the event.
    pub event_id: String,
    /// The answer; an empty object is not an opinion. Default: none, with `error` or `extendMs`.
    #[serde(default, deserialize_with = "lenient_option")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<crate::shapes::Lenient<EventAnswer>>")
    )]
    pub result: Option<EventAnswer>,
    /// Answers `command_invoked`: why the command failed, for people. Default: none.
    pub error: Option<String>,
    /// Asks for this many milliseconds from now instead of answering; the question stays open at most
    /// `limits.maxAnswerMs`. Default: none, with `result`.
    #[serde(default, deserialize_with = "count")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::params::Count>"))]
    pub extend_ms: Option<u64>,
}

/// The content of a request `answer_event`.
#[derive(Debug)]
pub enum EventReply {
    Answer(Box<EventAnswer>),
    /// The command failed.
    Failure(String),
    /// The extension in milliseconds.
    Extend(u64),
}

impl AnswerEventParams {
    /// Returns the id of the event, and the answer, failure or extension. Fails with `invalidParams` unless exactly
    /// one of these is given.
    pub fn reply(self) -> Result<(String, EventReply), Error> {
        let reply = match (self.result, self.error, self.extend_ms) {
            (Some(answer), None, None) => EventReply::Answer(Box::new(answer)),
            (None, Some(error), None) => EventReply::Failure(error),
            (None, None, Some(extend_ms)) => EventReply::Extend(extend_ms),
            (None, None, None) => {
                let reason = "result, error or extendMs is required";
                return Err(Error::invalid_params("result", reason));
            }
            (_, error, extend_ms) => {
                let field = if extend_ms.is_some() {
                    "extendMs"
                } else {
                    "error"
                };
                let other = if error.is_some() && extend_ms.is_some() {
                    "error"
                } else {
                    "result"
                };
                let reason = format!("stands instead of {other}, not beside it");
                return Err(Error::invalid_params(field, reason));
            }
        };
        Ok((self.event_id, reply))
    }
}

/// The most characters of the reason of a cancel (protocol.md §5.2).
pub const MOST_REASON_CHARACTERS: usize = 500;

/// The opinion of a client. A `cancel` wins over everything else; of each other member, the first client that
/// gives it counts. A member that does not belong to the event is refused.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EventAnswer {
    /// True cancels the operation that the event is about. Default: false.
    pub cancel: Option<bool>,
    /// Text for people that says why, with `cancel`: at most 500 characters. Default: none.
    pub reason: Option<String>,
    /// Answers `session_before_tree`: the summary. It counts only if one is wanted. Default: none.
    #[serde(default, deserialize_with = "optional_object")]
    pub summary: Option<GivenSummary>,
    /// Answers `session_before_tree` and `session_before_compact`: replaces the instructions of the request.
    /// Default: those of the request.
    pub custom_instructions: Option<String>,
    /// Answers `session_before_tree` and `session_before_compact`: whether `customInstructions` replace the
    /// usual structure of a summary. Default: as in the request.
    pub replace_instructions: Option<bool>,
    /// Answers `session_before_tree`: replaces the label of the request; a blank one is none. Default: that
    /// of the request.
    pub label: Option<String>,
    /// Answers `session_before_compact`: the compaction. Default: none.
    #[serde(default, deserialize_with = "optional_object")]
    pub compaction: Option<GivenCompaction>,
    /// Answers `session_before_compact`: texts that the summarizer gets besides the conversation. Those of
    /// all answers count, in the order of the answers. Default: none.
    pub context: Option<Vec<String>>,
    /// Answers `command_invoked`: text to show. Default: none.
    pub output: Option<String>,
    /// Answers `command_invoked`: text that the caller may send as the user's next message. Default: none.
    pub prompt: Option<String>,
    /// Answers `user_asked`: the answer of the person, true or false for a `confirm`, else a text. Default: none,
    /// with `dismissed`.
    pub value: Option<UserValue>,
    /// Answers `user_asked`: true if the person gives no answer. Default: false.
    pub dismissed: Option<bool>,
}

impl EventAnswer {
    /// Fails with `invalidParams` if a member does not belong to the event.
    pub fn check(&self, event: impl Into<AskingEvent>) -> Result<(), Error> {
        use AskingEvent::{
            CommandInvoked as Command, SessionBeforeCompact as Compact, SessionBeforeFork as Fork,
            SessionBeforeTree as Tree, UserAsked as User,
        };
        let event = event.into();
        let members: [(&str, bool, &[AskingEvent]); 12] = [
            ("cancel", self.cancel.is_some(), &[Tree, Fork, Compact]),
            ("reason", self.reason.is_some(), &[Tree, Fork, Compact]),
            ("output", self.output.is_some(), &[Command]),
            ("prompt", self.prompt.is_some(), &[Command]),
            ("value", self.value.is_some(), &[User]),
            ("dismissed", self.dismissed.is_some(), &[User]),
            ("summary", self.summary.is_some(), &[Tree]),
            ("label", self.label.is_some(), &[Tree]),
            (
                "customInstructions",
                self.custom_instructions.is_some(),
                &[Tree, Compact],
            ),
            (
                "replaceInstructions",
                self.replace_instructions.is_some(),
                &[Tree, Compact],
            ),
            ("compaction", self.compaction.is_some(), &[Compact]),
            ("context", self.context.is_some(), &[Compact]),
        ];
        for (name, is_given, of) in members {
            if is_given && !of.contains(&event) {
                let of: Vec<&str> = of.iter().map(|event| event.name()).collect();
                let (event, of) = (event.name(), of.join(" and "));
                let reason = format!("does not answer {event}; it is a member of answers to {of}");
                return Err(Error::invalid_params(format!("result.{name}"), reason));
            }
        }
        self.check_reason()
    }

    fn check_reason(&self) -> Result<(), Error> {
        let fault = match &self.reason {
            Some(_) if self.cancel != Some(true) => {
                "says why the answer cancels: give cancel: true too"
            }
            Some(reason) if reason.chars().nth(MOST_REASON_CHARACTERS).is_some() => {
                "has more than 500 characters"
            }
            _ => return Ok(()),
        };
        Err(Error::invalid_params("result.reason", fault))
    }
}

/// A compaction that a client made itself.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GivenCompaction {
    /// The text of the summary.
    pub summary: String,
    /// The id of the first entry that stays in the context, on the path to the leaf; null keeps nothing.
    /// Default: as prepared.
    #[serde(default, deserialize_with = "nullable_into")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub first_kept_entry_id: KeptFrom,
    /// The number of tokens of the context before. Default: as prepared.
    #[serde(default, deserialize_with = "count")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::params::Count>"))]
    pub tokens_before: Option<u64>,
    /// Any JSON; its bytes are stored unchanged. Default: none.
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
    pub details: Option<Raw>,
    /// The tokens that the summary cost, in the shape of the `usage` of an assistant message. Its bytes are
    /// stored unchanged, and `get_stats` counts them. Default: none.
    #[serde(default, deserialize_with = "object_option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<super::message::Usage>"))]
    pub usage: Option<Raw>,
}

/// The first entry that a compaction keeps, as a client answers it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum KeptFrom {
    /// The member is left out: the proposal of the question counts.
    #[default]
    AsPrepared,
    /// Null: the compaction keeps nothing.
    Nothing,
    /// The id of the first entry that is kept.
    Entry(String),
}

impl From<Option<String>> for KeptFrom {
    fn from(id: Option<String>) -> Self {
        id.map_or(Self::Nothing, Self::Entry)
    }
}

/// The result of `answer_event`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"accepted": true}"#)))]
pub struct AnswerEventResult {
    /// True: the answer came in time.
    pub accepted: bool,
    /// How many milliseconds are left. Present after `extendMs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// The ids of entries, in order. All ids are in one text, which copies share, since a branch may have 100,000
/// entries.
#[derive(Debug, Clone)]
pub struct IdList(Arc<IdTexts>);

#[derive(Debug)]
struct IdTexts {
    text: String,
    /// The length of each id in bytes.
    lens: Vec<u32>,
}

/// The number of bytes of the ids that this program makes.
const USUAL_ID_BYTES: usize = 8;

impl<'a> FromIterator<&'a str> for IdList {
    fn from_iter<I: IntoIterator<Item = &'a str>>(ids: I) -> Self {
        let ids = ids.into_iter();
        let (count, _) = ids.size_hint();
        let mut texts = IdTexts {
            text: String::with_capacity(count * USUAL_ID_BYTES),
            lens: Vec::with_capacity(count),
        };
        for id in ids {
            let len = u32::try_from(id.len());
            debug_assert!(len.is_ok(), "an id is part of a line, which is shorter");
            texts.text.push_str(id);
            texts.lens.push(len.unwrap_or(u32::MAX));
        }
        Self(Arc::new(texts))
    }
}

impl Serialize for IdList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let IdTexts { text, lens } = &*self.0;
        let ids = lens.iter().scan(text.as_str(), |rest, len| {
            let (id, after) = rest.split_at_checked(*len as usize)?;
            *rest = after;
            Some(id)
        });
        serializer.collect_seq(ids)
    }
}

/// The branch that a navigation is about to leave.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TreePreparation {
    /// The id of the target of the navigation.
    pub target_id: String,
    /// The session that has the target and the entries. Present for a merge from another session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_session_id: Option<String>,
    /// The id of the leaf; null at the empty position.
    pub old_leaf_id: Option<String>,
    /// The id of the deepest entry on the paths of both the leaf and the target; null if there is none.
    pub common_ancestor_id: Option<String>,
    /// The number of entries that the leaf leaves behind, of every type: from the common ancestor, exclusive,
    /// to the old leaf; in a merge, to the tip of the other branch.
    pub abandoned_count: u64,
    /// The summary of the nearest compaction on the branch. The model saw it first, then `keptEntries`, then
    /// `entriesToSummarize`. Absent without a compaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_summary: Option<String>,
    /// The entries of the branch that this compaction kept, in file order, without earlier compactions and
    /// system messages. Absent without a compaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<Vec<crate::entry::Entry>>")
    )]
    pub kept_entries: Option<Vec<Raw>>,
    /// The ids of the kept entries. Present instead of `keptEntries` if those are too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<String>>"))]
    pub kept_entry_ids: Option<IdList>,
    /// The entries to summarize, in file order: those after the common ancestor, or after the nearest
    /// compaction of the branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<Vec<crate::entry::Entry>>")
    )]
    pub entries_to_summarize: Option<Vec<Raw>>,
    /// The ids of the entries to summarize. Present instead of `entriesToSummarize` if those are too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<String>>"))]
    pub entry_ids: Option<IdList>,
    /// True if ids replace entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
    /// True if a summary is wanted: an answer may give one.
    pub user_wants_summary: bool,
    /// The model at the old leaf. Absent if nothing on the path names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Model>,
    /// The focus of the summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_instructions: Option<String>,
    /// Whether `customInstructions` replace the usual structure of a summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replace_instructions: Option<bool>,
    /// The label of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// An event that asks clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[allow(
    clippy::enum_variant_names,
    reason = "the variants are the names of the notifications"
)]
pub enum BeforeEvent {
    SessionBeforeTree,
    SessionBeforeFork,
    SessionBeforeCompact,
}

impl BeforeEvent {
    pub const ALL: [BeforeEvent; 3] = [
        BeforeEvent::SessionBeforeTree,
        BeforeEvent::SessionBeforeFork,
        BeforeEvent::SessionBeforeCompact,
    ];

    /// The name of the notification of the event.
    pub const fn name(self) -> &'static str {
        match self {
            BeforeEvent::SessionBeforeTree => "session_before_tree",
            BeforeEvent::SessionBeforeFork => "session_before_fork",
            BeforeEvent::SessionBeforeCompact => "session_before_compact",
        }
    }
}

/// An event that asks a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AskingEvent {
    SessionBeforeTree,
    SessionBeforeFork,
    SessionBeforeCompact,
    CommandInvoked,
    UserAsked,
}

impl AskingEvent {
    /// The name of the notification of the event.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SessionBeforeTree => BeforeEvent::SessionBeforeTree.name(),
            Self::SessionBeforeFork => BeforeEvent::SessionBeforeFork.name(),
            Self::SessionBeforeCompact => BeforeEvent::SessionBeforeCompact.name(),
            Self::CommandInvoked => "command_invoked",
            Self::UserAsked => "user_asked",
        }
    }
}

impl From<BeforeEvent> for AskingEvent {
    fn from(event: BeforeEvent) -> Self {
        match event {
            BeforeEvent::SessionBeforeTree => Self::SessionBeforeTree,
            BeforeEvent::SessionBeforeFork => Self::SessionBeforeFork,
            BeforeEvent::SessionBeforeCompact => Self::SessionBeforeCompact,
        }
    }
}

/// Why an operation did not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum CancelReason {
    /// A client or a hook answered `cancel`.
    CancelledByClient,
    /// A client did not answer in time, and `onNoAnswer` is `cancel`.
    NoAnswer,
    /// A client, a hook or an extension failed, and has not declared that operations proceed then. `by` names it.
    HookFailed,
}

/// How a question ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum EventOutcome {
    /// A client or a hook answered `cancel`, or failed and has not declared that operations proceed then.
    Cancelled,
    /// A client or a hook gave the summary.
    Summary,
    /// All clients and hooks answered.
    Proceed,
    /// Not all answered in time.
    Timeout,
    /// The operation ended for another reason.
    Aborted,
    /// A person answered.
    Answered,
    /// A person gave no answer.
    Dismissed,
}
