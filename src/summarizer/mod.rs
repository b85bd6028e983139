//! The configured summarizer: writes the summary that a [`SummaryRequest`] asks for (semantics.md §3).
//!
//! Runs programs and speaks HTTP. The request, the words for a model and the embedded outline are
//! pure: [`crate::summary`].

pub(crate) mod command;
pub(crate) mod llm;

use crate::blocking::blocking;
use crate::error::{Error, Kind};
use crate::os::program::Program;
use crate::summary::conversation::TokenBudget;
use crate::summary::{ModelName, Summary, SummaryRequest, outline};
use std::sync::Arc;

/// Receives the text of a summary piece by piece, as it is written.
pub(crate) type OnPiece<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// A configured summarizer.
#[derive(Debug, Clone)]
pub enum Summarizer {
    /// Embedded, deterministic, offline.
    Outline,
    /// A program of the user's.
    Command {
        program: Program,
        budget: TokenBudget,
    },
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
    pub fn budget(&self, model: Option<&ModelName>) -> TokenBudget {
        match self {
            Self::Outline => TokenBudget::default(),
            Self::Command { budget, .. } => *budget,
            Self::Llm(llm) => llm.budget(model),
        }
    }

    /// Writes the summary. Fails with `summarizerFailed`; the outline never does. Dropping the
    /// future ends the work: it kills the program, closes the connection.
    pub async fn summarize(
        &self,
        request: Arc<SummaryRequest>,
        model: Option<&ModelName>,
        on_piece: OnPiece<'_>,
    ) -> Result<Summary, Error> {
        match self {
            Self::Outline => {
                let text = blocking(move || Ok(outline::outline(&request))).await?;
                on_piece(&text);
                Ok(Summary { text, usage: None })
            }
            Self::Command { program, .. } => command::summarize(program, &request, on_piece).await,
            Self::Llm(llm) => llm.summarize(&request, model, on_piece).await,
        }
    }
}

/// `summarizerFailed` with its cause.
fn failed(cause: &str, message: impl Into<String>) -> Error {
    let details = serde_json::json!({ "cause": cause });
    Error::new(Kind::SummarizerFailed, message.into()).with_details(details)
}
