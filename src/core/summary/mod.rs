//! Summaries of branches and of contexts (semantics.md §2, §3): the request that a summarizer gets, the
//! prompt for a model, the embedded outline, and the text around a finished summary.
//!
//! The module is pure. Navigation decides which entries are summarized; the daemon runs the configured
//! summarizer.

pub mod conversation;
pub mod entries;
pub mod files;
pub mod frame;
pub mod outline;
pub mod prompt;
pub mod request;

use self::entries::SummaryEntries;
use crate::json;

/// The first line of the summary of a branch that the leaf has left. Summarizers that quote a summary
/// leave out this line.
pub const PREAMBLE: &str =
    "This is a summary of a branch that was explored before the conversation returned here.";

/// The first line of the summary of a merged branch.
pub const MERGE_PREAMBLE: &str =
    "This is a summary of another branch of this conversation, merged here.";

/// The summary of a branch without its first line, which is the same in all such summaries.
pub fn without_preamble(summary: &str) -> &str {
    let rest = [PREAMBLE, MERGE_PREAMBLE]
        .iter()
        .find_map(|preamble| summary.strip_prefix(preamble));
    rest.unwrap_or(summary).trim_start()
}

/// The input of a summarizer.
#[derive(Debug, Clone, Default)]
pub struct SummaryRequest {
    pub subject: SummarySubject,
    /// The goal of the branch, in the user's words.
    pub goal: Option<String>,
    /// The conversation as text, oldest first, cut to the token budget; empty if a model would see none of
    /// the entries.
    pub conversation: String,
    /// For a branch: the summary of its nearest compaction, as earlier context. For a context: the summary
    /// to update.
    pub previous_summary: Option<String>,
    pub custom_instructions: Option<String>,
    /// Whether the custom instructions replace the usual structure instead of adding to it.
    pub replace_instructions: bool,
    /// Texts that clients added for the summarizer.
    pub context: Vec<String>,
    /// All entries, not cut to the budget.
    pub entries: SummaryEntries,
    pub files: FileLists,
}

/// The subject of a summary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SummarySubject {
    /// A branch that the leaf leaves.
    #[default]
    Branch,
    /// A branch that is merged.
    Merge,
    /// The older part of a context, at a compaction.
    Context,
    /// The beginning of a turn whose end stays in the context.
    TurnPrefix,
}

impl SummarySubject {
    /// The name of the subject for programs.
    pub const fn name(self) -> &'static str {
        match self {
            SummarySubject::Branch => "branch",
            SummarySubject::Merge => "merge",
            SummarySubject::Context => "context",
            SummarySubject::TurnPrefix => "turnPrefix",
        }
    }
}

/// The files that a conversation touched, sorted, each in one list only.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileLists {
    /// Files read and not modified.
    pub read_files: Vec<String>,
    /// Files written or edited.
    pub modified_files: Vec<String>,
}

/// A finished summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The text of the summarizer, without the text that [`frame::finish`] adds.
    pub text: String,
    /// Its tokens, if known.
    pub usage: Option<Usage>,
}

/// The tokens of a summary, as the provider counted them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Without the tokens read from or written to a cache.
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

/// A model, by the names that conversations use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelName {
    pub provider: String,
    pub model_id: String,
}

impl Usage {
    /// The `usage` of an entry as raw JSON, in the shape of the session format. The cost in money is
    /// unknown, and written as 0.
    pub fn to_json(self) -> Vec<u8> {
        let Self {
            input,
            output,
            cache_read,
            cache_write,
        } = self;
        let total = input + output + cache_read + cache_write;
        format!(
            "{{\"input\":{input},\"output\":{output},\"cacheRead\":{cache_read},\
             \"cacheWrite\":{cache_write},\"totalTokens\":{total},\"cost\":{{\"input\":0,\
             \"output\":0,\"cacheRead\":0,\"cacheWrite\":0,\"total\":0}}}}"
        )
        .into_bytes()
    }
}

impl std::ops::Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
        }
    }
}

impl FileLists {
    /// The `details` of a summary entry: `{"readFiles":[…],"modifiedFiles":[…]}`.
    pub fn to_details(&self) -> Vec<u8> {
        let mut details = b"{\"readFiles\":".to_vec();
        json::push_strings(&mut details, &self.read_files);
        details.extend_from_slice(b",\"modifiedFiles\":");
        json::push_strings(&mut details, &self.modified_files);
        details.push(b'}');
        details
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_are_valid_json_whatever_the_paths() {
        let files = FileLists {
            read_files: vec!["a\"b".into(), "c\n\u{2028}".into()],
            modified_files: Vec::new(),
        };
        let details: serde_json::Value = serde_json::from_slice(&files.to_details()).unwrap();
        let expected =
            serde_json::json!({"readFiles": ["a\"b", "c\n\u{2028}"], "modifiedFiles": []});
        assert_eq!(details, expected);
    }
}
