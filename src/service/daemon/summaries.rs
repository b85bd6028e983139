//! Runs the summarizer, and reports its progress (semantics.md §3).

use super::Daemon;
use super::connection::Connection;
use super::open_session::OpenSession;
use super::question::Decision;
use crate::summarizer::Summarizer;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use treelined_core::error::{Error, Kind, Result};
use treelined_core::flow::leaf::BranchSummary;
use treelined_core::id::EntryId;
use treelined_core::summary::request::SummaryOptions;
use treelined_core::summary::{FileLists, ModelName, Summary, SummaryRequest, frame};
use treelined_files::blocking::blocking;
use treelined_files::cancel::Cancel;
use treelined_files::lock::lock;
use treelined_files::session::SessionState;
use treelined_wire::{self as wire, RequestId};

/// The summarizer of a summary, and the receivers of its progress.
pub(crate) struct SummaryJob<'a> {
    pub daemon: &'a Daemon,
    pub connection: &'a Connection,
    pub open: &'a OpenSession,
    pub listener: Listener<'a>,
    /// The model of the conversation.
    pub model: Option<&'a ModelName>,
    pub abort: &'a Cancel,
}

/// The way in which clients receive a summary while it is written.
pub(crate) enum Listener<'a> {
    /// Sends the text in pieces to all connections that have the session open; sends the number of characters to those
    /// that do not want pieces.
    Deltas { navigation_id: &'a str },
    /// Sends the asker the number of characters, summed over the summaries of one request.
    Progress {
        token: Option<&'a RequestId>,
        written: &'a AtomicU64,
    },
}

impl Daemon {
    pub(super) fn summarizer(&self) -> Result<&Summarizer> {
        self.settings.summarizer.as_ref().ok_or_else(|| {
            Error::new(
                Kind::SummarizerUnavailable,
                "no summarizer is configured and nobody answers the event with a summary",
            )
        })
    }
}

impl SummaryJob<'_> {
    /// Writes the summary that `request` asks for, on a blocking thread. Fails with `summarizerUnavailable`,
    /// `summarizerFailed`, or `cancelled` if aborted.
    pub(crate) async fn write(
        &self,
        request: impl FnOnce(&Summarizer) -> SummaryRequest + Send + 'static,
    ) -> Result<(Arc<SummaryRequest>, Summary)> {
        let summarizer = self.daemon.summarizer()?.clone();
        let work = async {
            let (summarizer, request) = blocking(move || {
                let request = request(&summarizer);
                Ok((summarizer, Arc::new(request)))
            })
            .await?;
            let teller = Teller::new(self, &request);
            let told = |piece: &str| teller.push(piece);
            let summary = summarizer
                .summarize(Arc::clone(&request), self.model, &told)
                .await?;
            teller.finish(&request.files);
            Ok((request, summary))
        };
        self.abort.guard(work).await?
    }
}

/// Sends pieces to clients. Together they are the text of the entry: its opening line, the summarizer's text without
/// white space around it, and the file lists.
struct Teller<'a> {
    writing: &'a SummaryJob<'a>,
    opening: String,
    state: Mutex<SummaryProgress>,
}

#[derive(Default)]
struct SummaryProgress {
    /// The number of pieces sent.
    pieces: u64,
    characters: u64,
    /// White space that belongs to the text only if more text follows.
    space: String,
}

impl<'a> Teller<'a> {
    fn new(writing: &'a SummaryJob<'a>, request: &SummaryRequest) -> Self {
        Self {
            writing,
            opening: frame::opening(request.subject),
            state: Mutex::default(),
        }
    }

    fn push(&self, piece: &str) {
        let mut told = lock(&self.state);
        let piece = match told.pieces {
            0 => piece.trim_start(),
            _ => piece,
        };
        let text = piece.trim_end();
        let space = piece.get(text.len()..).unwrap_or_default();
        if text.is_empty() {
            told.space.push_str(space);
            return;
        }
        let mut delta = match told.pieces {
            0 => self.opening.clone(),
            _ => std::mem::take(&mut told.space),
        };
        delta.push_str(text);
        told.space = space.to_owned();
        self.tell(&mut told, &delta);
    }

    fn finish(&self, files: &FileLists) {
        let mut told = lock(&self.state);
        let closing = frame::closing(files);
        if !closing.is_empty() {
            self.tell(&mut told, &closing);
        }
    }

    fn tell(&self, told: &mut SummaryProgress, delta: &str) {
        let SummaryJob {
            connection, open, ..
        } = self.writing;
        let more = delta.chars().count() as u64;
        match self.writing.listener {
            Listener::Deltas { navigation_id } => {
                told.characters += more;
                for listener in open.connections() {
                    if !listener.summary_delta(&open.id, navigation_id, told.pieces, delta) {
                        let token = RequestId::Text(navigation_id.to_owned());
                        listener.progress(&token, told.characters);
                    }
                }
            }
            Listener::Progress { token, written } => {
                let characters = written.fetch_add(more, Ordering::Relaxed) + more;
                if let Some(token) = token {
                    connection.progress(token, characters);
                }
            }
        }
        told.pieces += 1;
    }
}

/// Applies the overrides in the answers of a question.
pub(crate) fn override_options(options: &mut SummaryOptions, decision: &mut Decision) {
    if let Some(instructions) = decision.custom_instructions.take() {
        options.custom_instructions = Some(instructions);
    }
    if let Some(replace) = decision.replace_instructions {
        options.replace_instructions = replace;
    }
}

/// A client's summary, stored unchanged.
pub(crate) fn given(given: &wire::GivenSummary) -> BranchSummary {
    let bytes = |raw: &wire::Raw| raw.get().as_bytes().to_vec();
    BranchSummary {
        text: given.summary.clone(),
        details: given.details.as_ref().map(bytes),
        usage: given.usage.as_ref().map(bytes),
        from_hook: true,
    }
}

pub(crate) fn id_text(id: &Option<EntryId>) -> Option<String> {
    id.as_ref().map(|id| id.as_str().to_owned())
}

/// The model in use at the leaf.
pub(crate) fn model(core: &SessionState) -> Result<Option<ModelName>> {
    let above = core.tree.ancestors(core.leaf());
    let above = above.map(|node| super::reading::step(core, node));
    let model = treelined_core::context::current_model(above, &mut |node| core.entry(node))?;
    Ok(model.map(|(provider, model_id)| ModelName { provider, model_id }))
}

pub(crate) fn wire_model(model: &ModelName) -> wire::Model {
    wire::Model {
        provider: model.provider.clone(),
        model_id: model.model_id.clone(),
    }
}
