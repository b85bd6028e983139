//! Who writes summaries, and what they are given and give back (semantics.md §3).
//!
//! Owns [`Request`], [`Summary`], the choice of summarizer and what each is told. What goes into a
//! request and the frame around a finished summary are `flow::summarize`'s, which this knows nothing of.

pub mod command;
pub mod conversation;
pub mod llm;
pub mod outline;
pub mod prompt;

use crate::error::{Error, Kind};
use crate::json;
use crate::os::program::Program;
use crate::session::blocking;
use conversation::Budget;
use std::sync::Arc;

/// The line that opens every summary of a branch that was left. A summarizer that quotes one leaves
/// it out.
pub const PREAMBLE: &str =
    "This is a summary of a branch that was explored before the conversation returned here.";

/// The line that opens every summary of a branch that was taken in from beside.
pub const MERGE_PREAMBLE: &str =
    "This is a summary of another branch of this conversation, merged here.";

/// What is to be summarized.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
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
    /// What the summarizer wrote; the frame around it is `flow::summarize::finish`'s.
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

/// Takes the pieces of a summary while it is being written.
pub type Told<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// A configured summarizer.
#[derive(Debug, Clone)]
pub enum Summarizer {
    /// Embedded, deterministic, offline.
    Outline,
    /// A program of the user's.
    Command { program: Program, budget: Budget },
    /// A model over HTTP.
    Llm(llm::Llm),
}

impl Summarizer {
    /// Its name on the command line and in `capabilities.summarizer` (protocol.md §2).
    pub fn name(&self) -> &'static str {
        match self {
            Self::Outline => "outline",
            Self::Command { .. } => "command",
            Self::Llm(_) => "llm",
        }
    }

    /// How much of a conversation it can be given.
    pub fn budget(&self, model: Option<&ModelName>) -> Budget {
        match self {
            Self::Outline => Budget::default(),
            Self::Command { budget, .. } => *budget,
            Self::Llm(llm) => llm.budget(model),
        }
    }

    /// Writes the summary. Fails with `summarizerFailed`; the outline never does. Dropping the
    /// future ends the work: it kills the program, closes the connection.
    pub async fn summarize(
        &self,
        request: Arc<Request>,
        model: Option<&ModelName>,
        told: Told<'_>,
    ) -> Result<Summary, Error> {
        match self {
            Self::Outline => {
                let text = blocking(move || Ok(outline::outline(&request))).await?;
                told(&text);
                Ok(Summary { text, usage: None })
            }
            Self::Command { program, .. } => command::summarize(program, &request, told).await,
            Self::Llm(llm) => llm.summarize(&request, model, told).await,
        }
    }
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
        push_strings(&mut details, &self.read_files);
        details.extend_from_slice(b",\"modifiedFiles\":");
        push_strings(&mut details, &self.modified_files);
        details.push(b'}');
        details
    }
}

/// `summarizerFailed` with its cause.
fn failed(cause: &str, message: impl Into<String>) -> Error {
    let details = serde_json::json!({ "cause": cause });
    Error::new(Kind::SummarizerFailed, message.into()).with_details(details)
}

fn push_strings(out: &mut Vec<u8>, texts: &[String]) {
    out.push(b'[');
    for (at, text) in texts.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        json::push_string(out, text);
    }
    out.push(b']');
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
