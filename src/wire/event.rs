//! Questions put to clients, and `answer_event` (protocol.md §5).

use super::entry::Entry;
use super::navigate::GivenSummary;
use super::params::{
    Count, Lenient, Raw, count, lenient_option, nullable_into, object_option, optional_object,
};
use super::read::Model;
use crate::error::Error;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use std::sync::Arc;

/// Answers a *before* event, or asks for more time: `result` or `extendMs`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AnswerEventParams {
    /// As in the event.
    pub event_id: String,
    /// The answer; an empty one is no opinion.
    #[serde(default, deserialize_with = "lenient_option")]
    #[schemars(with = "Option<Lenient<EventAnswer>>")]
    pub result: Option<EventAnswer>,
    /// Instead of `result`: milliseconds from now, up to `limits.maxAnswerMs`.
    #[serde(default, deserialize_with = "count")]
    #[schemars(with = "Option<Count>")]
    pub extend_ms: Option<u64>,
}

/// What an `answer_event` asks for.
#[derive(Debug)]
pub enum EventReply {
    Answer(Box<EventAnswer>),
    /// Milliseconds.
    Extend(u64),
}

impl AnswerEventParams {
    /// Exactly one of the two members; fails with `invalidParams`.
    pub fn reply(self) -> Result<(String, EventReply), Error> {
        match (self.result, self.extend_ms) {
            (Some(answer), None) => Ok((self.event_id, EventReply::Answer(Box::new(answer)))),
            (None, Some(extend_ms)) => Ok((self.event_id, EventReply::Extend(extend_ms))),
            (None, None) => Err(Error::invalid_params(
                "result",
                "result or extendMs is required",
            )),
            (Some(_), Some(_)) => Err(Error::invalid_params(
                "extendMs",
                "stands instead of result, not beside it",
            )),
        }
    }
}

/// A client's opinion; of each member the first client that gives one counts, a `cancel` before
/// anything else. A member that answers another event is refused.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EventAnswer {
    /// True: it shall not happen.
    pub cancel: Option<bool>,
    /// To `session_before_tree`: the summary, if one is wanted.
    #[serde(default, deserialize_with = "optional_object")]
    pub summary: Option<GivenSummary>,
    /// To `session_before_tree` and `session_before_compact`: in place of the instructions given.
    pub custom_instructions: Option<String>,
    /// To `session_before_tree` and `session_before_compact`: `customInstructions` replace the usual
    /// structure of a summary.
    pub replace_instructions: Option<bool>,
    /// To `session_before_tree`: in place of the label given; blank is none.
    pub label: Option<String>,
    /// To `session_before_compact`: the compaction.
    #[serde(default, deserialize_with = "optional_object")]
    pub compaction: Option<GivenCompaction>,
    /// To `session_before_compact`: what the summarizer is told besides the conversation. That of all
    /// answers counts, in their order.
    pub context: Option<Vec<String>>,
}

impl EventAnswer {
    /// Fails with `invalidParams` if a member answers another event.
    pub fn check(&self, event: BeforeEvent) -> Result<(), Error> {
        use BeforeEvent::{SessionBeforeCompact as Compact, SessionBeforeTree as Tree};
        let members: [(&str, bool, &[BeforeEvent]); 6] = [
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
        Ok(())
    }
}

/// A compaction that a client made itself.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GivenCompaction {
    /// The text of the summary.
    pub summary: String,
    /// An entry on the path to the leaf; null keeps nothing; as prepared if left out.
    #[serde(default, deserialize_with = "nullable_into")]
    #[schemars(with = "Option<String>")]
    pub first_kept_entry_id: KeptFrom,
    /// Tokens of the context before; as prepared if left out.
    #[serde(default, deserialize_with = "count")]
    #[schemars(with = "Option<Count>")]
    pub tokens_before: Option<u64>,
    /// Anything; stored byte for byte.
    #[schemars(with = "Option<Value>")]
    pub details: Option<Raw>,
    /// Tokens the summary took, in the shape of an assistant message's `usage`; stored byte for byte,
    /// and counted by `get_stats`.
    #[serde(default, deserialize_with = "object_option")]
    #[schemars(with = "Option<super::message::Usage>")]
    pub usage: Option<Raw>,
}

/// Where the part of the context begins that a compaction keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum KeptFrom {
    /// The member is left out: as the question proposed.
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
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnswerEventResult {
    /// It came in time.
    pub accepted: bool,
    /// Milliseconds left, after `extendMs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// Ids of entries, in order. They share one text, and a copy shares it too: a branch may have 100,000.
#[derive(Debug, Clone)]
pub struct IdList(Arc<IdTexts>);

#[derive(Debug)]
struct IdTexts {
    text: String,
    /// Bytes of each id.
    lens: Vec<u32>,
}

/// Ids made by this program have so many bytes.
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
            let (id, behind) = rest.split_at_checked(*len as usize)?;
            *rest = behind;
            Some(id)
        });
        serializer.collect_seq(ids)
    }
}

/// What a navigation is about to do.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TreePreparation {
    /// Where the navigation goes.
    pub target_id: String,
    /// Null: before the first entry.
    pub old_leaf_id: Option<String>,
    /// The deepest entry on both paths; null if there is none.
    pub common_ancestor_id: Option<String>,
    /// How many entries are left behind, of every type: from the common ancestor, exclusive, to the old
    /// leaf; to the tip of the other branch in a merge.
    pub abandoned_count: u64,
    /// The summary of the nearest compaction on the branch that is left, if it has one. A model saw this
    /// first, then `keptEntries`, then `entriesToSummarize`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_summary: Option<String>,
    /// What that compaction kept of the branch, in file order, without earlier compactions and system
    /// messages; there if there is such a compaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Entry>>")]
    pub kept_entries: Option<Vec<Raw>>,
    /// Instead of `keptEntries`, where the entries are too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<String>>")]
    pub kept_entry_ids: Option<IdList>,
    /// The branch that is left, from the common ancestor or its nearest compaction on, both exclusive,
    /// in file order.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Entry>>")]
    pub entries_to_summarize: Option<Vec<Raw>>,
    /// Instead of `entriesToSummarize`, where the entries are too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<String>>")]
    pub entry_ids: Option<IdList>,
    /// True if ids stand for the entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
    /// A summary is wanted: an answer may bring one.
    pub user_wants_summary: bool,
    /// The model at the old leaf.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Model>,
    /// What the summary shall dwell on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_instructions: Option<String>,
    /// `customInstructions` replace the usual structure of a summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replace_instructions: Option<bool>,
    /// The label asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// An event that clients are asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
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

    /// The name of its notification.
    pub const fn name(self) -> &'static str {
        match self {
            BeforeEvent::SessionBeforeTree => "session_before_tree",
            BeforeEvent::SessionBeforeFork => "session_before_fork",
            BeforeEvent::SessionBeforeCompact => "session_before_compact",
        }
    }
}

/// Why what was asked about did not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CancelReason {
    /// A client or a hook answered `cancel`.
    CancelledByClient,
    /// Nobody answered in time, and `onNoAnswer` was `cancel`.
    NoAnswer,
    /// A hook failed whose `on_failure` is `cancel`; `by` names it.
    HookFailed,
}

/// How a question ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EventOutcome {
    /// A client or a hook answered `cancel`, or a hook failed whose `on_failure` is `cancel`.
    Cancelled,
    /// A client gave the summary.
    Summary,
    /// All have answered.
    Proceed,
    /// Not all have answered in time.
    Timeout,
    /// What was asked about ended otherwise.
    Aborted,
}
