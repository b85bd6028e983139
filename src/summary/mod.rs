//! Summaries of branches and of contexts (semantics.md §2, §3): the request that a summarizer gets, the
//! words for a model, the embedded outline, and the frame around a finished summary.
//!
//! Pure. Navigation decides which entries are summarized; [`crate::summarizer`] runs the configured
//! summarizer.

pub mod conversation;
pub mod files;
pub mod frame;
pub mod outline;
pub mod prompt;
pub mod request;

use crate::json;

/// The line that opens every summary of a branch that was left. A summarizer that quotes one leaves
/// it out.
pub const PREAMBLE: &str =
    "This is a summary of a branch that was explored before the conversation returned here.";

/// The line that opens every summary of a branch that was taken in from beside.
pub const MERGE_PREAMBLE: &str =
    "This is a summary of another branch of this conversation, merged here.";

/// What is to be summarized.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SummaryRequest {
    pub subject: Subject,
    /// What the branch was for, in the user's words.
    pub goal: Option<String>,
    /// The conversation as text, oldest first, cut to the token budget; empty if nothing in it can
    /// be seen by a model.
    pub conversation: String,
    /// Of a branch: the summary of the compaction at which collection stopped, earlier context. Of
    /// a context: the summary that is to be updated.
    pub previous_summary: Option<String>,
    pub custom_instructions: Option<String>,
    /// The custom instructions replace the usual structure instead of adding to it.
    pub replace_instructions: bool,
    /// What clients have added to be taken into account.
    pub context: Vec<String>,
    /// Every entry, in file order, one JSON object each, with context edits applied: those left out
    /// are missing, the edits themselves too. Not cut to the budget.
    pub entries: Vec<Vec<u8>>,
    /// How many of those, the first ones, the compaction kept that `previous_summary` is of; `None`
    /// without one.
    pub kept_count: Option<usize>,
    pub files: FileLists,
}

/// What a summary is of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Subject {
    /// A branch that is left.
    #[default]
    Branch,
    /// A branch that is taken in.
    Merge,
    /// The older part of a context, at a compaction.
    Context,
    /// The beginning of a turn whose end stays in the context.
    TurnPrefix,
}

impl Subject {
    /// Its name where programs read it.
    pub const fn name(self) -> &'static str {
        match self {
            Subject::Branch => "branch",
            Subject::Merge => "merge",
            Subject::Context => "context",
            Subject::TurnPrefix => "turnPrefix",
        }
    }
}

/// The files a conversation touched, each in one list only, sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileLists {
    /// Read and not modified.
    pub read_files: Vec<String>,
    /// Written or edited.
    pub modified_files: Vec<String>,
}

/// A finished summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The summarizer's text, without the frame that [`frame::finish`] adds.
    pub text: String,
    /// What it cost, where known.
    pub usage: Option<Usage>,
}

/// Tokens that a summary took, as the provider counted them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Without what was read from or written to a cache.
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

/// The model a conversation uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelName {
    pub provider: String,
    pub model_id: String,
}

impl Usage {
    /// The `usage` of an entry, raw JSON, in the shape of the session format: what it cost in money
    /// is not known and stands as 0.
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
