//! An answer to a before event, from a client, a hook or an extension.

use crate::hooks::OnFailure;
use treelined_core::error::Result;
use treelined_core::flow::validate;
use treelined_wire as wire;

/// An answer, and whether it replaces the answer of an answerer that failed.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReceivedAnswer {
    pub answer: wire::EventAnswer,
    /// Whether the answer replaces the answer of a client, a hook or an extension that failed.
    pub is_failure: bool,
}

impl ReceivedAnswer {
    /// Makes the answer that replaces the answer of a client, a hook or an extension that failed. If this answer
    /// cancels the operation, the user gets the reason `why`.
    pub(super) fn of_failure(on_failure: OnFailure, why: &str) -> Self {
        let cancels = on_failure == OnFailure::Cancel;
        let reason = || why.chars().take(wire::MOST_REASON_CHARACTERS).collect();
        let answer = wire::EventAnswer {
            cancel: cancels.then_some(true),
            reason: cancels.then(reason),
            ..wire::EventAnswer::default()
        };
        Self {
            answer,
            is_failure: true,
        }
    }
}

/// Fails if a member of the answer cannot be stored in an entry: it is nested too deeply, or has a wrong shape.
pub(crate) fn check_stored(answer: &wire::EventAnswer, path: &str) -> Result<()> {
    let raw = |raw: &Option<wire::Raw>| raw.as_ref().map(|raw| raw.get().as_bytes().to_vec());
    let summary = answer.summary.as_ref();
    let summary = summary.map(|given| ("summary", raw(&given.details), raw(&given.usage)));
    let compaction = answer.compaction.as_ref();
    let compaction = compaction.map(|given| ("compaction", raw(&given.details), raw(&given.usage)));
    for (member, details, usage) in summary.into_iter().chain(compaction) {
        let path = format!("{path}{member}");
        validate::summary(&path, details.as_deref(), usage.as_deref())?;
    }
    Ok(())
}
