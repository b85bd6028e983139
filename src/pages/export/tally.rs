//! The secrets that an export replaces, by kind.

use serde::Serialize;
use std::collections::BTreeMap;

/// The most ids of entries that are listed for one kind.
const MAX_IDS: usize = 1000;

/// The secrets of one kind that an export replaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Redaction {
    /// The kind of the secret, such as `github-token`.
    pub kind: &'static str,
    /// The number of replaced secrets.
    pub count: u64,
    /// The entries that have them, at most 1,000, in the order of the session.
    pub entry_ids: Vec<String>,
}

/// Counts the replaced secrets by kind.
#[derive(Debug, Default)]
pub(super) struct RedactionTally(BTreeMap<&'static str, KindTally>);

#[derive(Debug, Default)]
struct KindTally {
    count: u64,
    entry_ids: Vec<String>,
}

impl RedactionTally {
    /// Adds the secrets of an entry.
    pub(super) fn add(&mut self, entry_id: &str, kinds: &[&'static str]) {
        for kind in kinds {
            let tally = self.0.entry(kind).or_default();
            tally.count += 1;
            let is_new = tally.entry_ids.last().is_none_or(|last| last != entry_id);
            if is_new && tally.entry_ids.len() < MAX_IDS {
                tally.entry_ids.push(entry_id.to_owned());
            }
        }
    }

    /// Adds the secrets of later entries.
    pub(super) fn append(&mut self, later: Self) {
        for (kind, more) in later.0 {
            let tally = self.0.entry(kind).or_default();
            tally.count += more.count;
            let room = MAX_IDS.saturating_sub(tally.entry_ids.len());
            tally
                .entry_ids
                .extend(more.entry_ids.into_iter().take(room));
        }
    }

    pub(super) fn into_redactions(self) -> Vec<Redaction> {
        let kinds = self.0.into_iter();
        let redaction = |(kind, tally): (&'static str, KindTally)| Redaction {
            kind,
            count: tally.count,
            entry_ids: tally.entry_ids,
        };
        kinds.map(redaction).collect()
    }
}
