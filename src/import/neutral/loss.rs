//! The losses when a path is handed over.

use std::collections::BTreeMap;

/// A kind of content that is left out or changed (protocol.md §3.18).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loss {
    Thoughts,
    ClosedCalls,
    OrphanResults,
    ToolNames,
    CallIds,
    Images,
    SystemMessages,
    Scaffolding,
    Beginning,
    Characters,
    Blocks,
    EarlierTurns,
    Compacted,
}

/// The number of losses of each kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Losses(BTreeMap<Loss, u64>);

impl Losses {
    pub fn add(&mut self, loss: Loss, count: u64) {
        if count > 0 {
            *self.0.entry(loss).or_default() += count;
        }
    }

    pub fn count(&self, loss: Loss) -> u64 {
        self.0.get(&loss).copied().unwrap_or_default()
    }

    /// The kinds that have losses, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (Loss, u64)> + '_ {
        self.0.iter().map(|(loss, count)| (*loss, *count))
    }
}

impl Loss {
    /// The text for `count` losses of this kind, in English.
    pub fn text(self, count: u64) -> String {
        let (one, many, what) = match self {
            Self::Thoughts => ("thought", "thoughts", "left out"),
            Self::ClosedCalls => (
                "call",
                "calls",
                "closed, since the branch ends before the result",
            ),
            Self::OrphanResults => ("result", "results", "left out, whose call is not there"),
            Self::ToolNames => (
                "name of a tool",
                "names of tools",
                "kept that the agent does not have",
            ),
            Self::CallIds => ("id of a call", "ids of calls", "replaced"),
            Self::Images => ("image", "images", "described in words"),
            Self::SystemMessages => ("system message", "system messages", "left out"),
            Self::Scaffolding => (
                "message",
                "messages",
                "left out that an agent wrote for itself",
            ),
            Self::Beginning => (
                "message",
                "messages",
                "added at the beginning, which was not the user's",
            ),
            Self::Characters => (
                "text",
                "texts",
                "with characters that are not Unicode, which are replaced",
            ),
            Self::Blocks => ("block", "blocks", "of an unknown type left out"),
            Self::EarlierTurns => ("earlier turn", "earlier turns", "left out"),
            Self::Compacted => ("summary", "summaries", "in place of earlier turns"),
        };
        let noun = if count == 1 { one } else { many };
        format!("{count} {noun} {what}")
    }
}
