//! Writes a summary with the configured summarizer, as a [`SummaryRequest`] describes it (semantics.md §3).
//!
//! This module runs programs and uses HTTP. [`treelined_core::summary`] has the pure parts: the request, the prompts
//! and the built-in outline.

pub(crate) mod command;
pub mod llm;
mod shared;

pub(crate) use shared::OnPiece;
use std::sync::Arc;
use treelined_core::error::Error;
use treelined_core::summary::conversation::TokenBudget;
use treelined_core::summary::{ModelName, Summary, SummaryRequest, outline};
use treelined_files::blocking::blocking;
use treelined_files::os::program::Program;

/// A configured summarizer.
#[derive(Debug, Clone)]
pub enum Summarizer {
    /// The built-in outline. It is deterministic, and needs no network.
    Outline,
    /// A program of the user.
    Command {
        program: Program,
        budget: TokenBudget,
    },
    /// A model over HTTP.
    Llm(llm::Llm),
}

impl Summarizer {
    /// The summarizer's name on the command line and in `capabilities.summarizer` (protocol.md §2).
    pub fn name(&self) -> &'static str {
        match self {
            Self::Outline => "outline",
            Self::Command { .. } => "command",
            Self::Llm(_) => "llm",
        }
    }

    /// The tokens of a conversation that the summarizer can receive. The outline reads the entries, and no
    /// conversation.
    pub fn budget(&self, model: Option<&ModelName>) -> TokenBudget {
        match self {
            Self::Outline => TokenBudget {
                context_window: 0,
                reserve_tokens: 0,
            },
            Self::Command { budget, .. } => *budget,
            Self::Llm(llm) => llm.budget(model),
        }
    }

    /// Writes the summary. Fails with `summarizerFailed`, or with the errors of the entries. Dropping the future ends
    /// the work: the program is killed, or the connection is closed.
    pub async fn summarize(
        &self,
        request: Arc<SummaryRequest>,
        model: Option<&ModelName>,
        on_piece: OnPiece<'_>,
    ) -> Result<Summary, Error> {
        match self {
            Self::Outline => {
                let text = blocking(move || outline::outline(&request)).await?;
                on_piece(&text);
                Ok(Summary { text, usage: None })
            }
            Self::Command { program, .. } => command::summarize(program, request, on_piece).await,
            Self::Llm(llm) => llm.summarize(&request, model, on_piece).await,
        }
    }
}
