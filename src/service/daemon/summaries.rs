//! Runs the summarizer, and reports its progress (semantics.md §3).

use super::event_question::Decision;
use crate::memory::{Reservation, WorkingMemory};
use crate::summarizer::Summarizer;
use std::sync::{Arc, Mutex};
use treelined_core::error::Result;
use treelined_core::flow::leaf::BranchSummary;
use treelined_core::id::EntryId;
use treelined_core::summary::request::SummaryOptions;
use treelined_core::summary::{FileLists, ModelName, Summary, SummaryRequest, frame};
use treelined_core::tree::Node;
use treelined_files::blocking::blocking;
use treelined_files::cancel::Cancel;
use treelined_files::lock::lock;
use treelined_files::session::SessionState;
use treelined_wire as wire;

/// The bytes that each entry takes while a summary is made: the steps to read the entry.
const ENTRY_BYTES: u64 = 128;
/// The copies of an entry that are in memory at a time: as stored, with its edit, as a message, and as text.
const COPIES: u64 = 4;
/// The bytes that a token of a conversation takes. A token has four characters, and each is in memory four times: in
/// the parts, in one text, in the prompt, and in the request to a model.
const TOKEN_BYTES: u64 = 16;

/// The entries that a summary is made of.
pub(super) struct Extent {
    pub(super) entries: u64,
    /// The bytes of all entries, and of the longest one.
    pub(super) stored: u64,
    pub(super) longest: u64,
}

impl Extent {
    pub(super) fn of(state: &SessionState, nodes: &[Node]) -> Self {
        Self {
            entries: nodes.len() as u64,
            stored: state.stored_bytes(nodes.iter().copied()),
            longest: state.longest_bytes(nodes.iter().copied()),
        }
    }

    /// Reserves memory for a summary, and for a question to clients that take `limit` bytes of entries. A summarizer
    /// reads the entries from the session file one at a time, so only a question has all entries in memory.
    pub(super) fn reserve(
        &self,
        working: &Arc<WorkingMemory>,
        summarizer: Option<&Summarizer>,
        limit: u64,
    ) -> Result<Reservation> {
        let tokens = summarizer.map_or(0, |summarizer| summarizer.budget(None).tokens());
        let conversation = tokens.saturating_mul(TOKEN_BYTES);
        let conversation = conversation.min(self.stored.saturating_mul(COPIES));
        let one = self.longest.saturating_mul(COPIES);
        let steps = self.entries.saturating_mul(ENTRY_BYTES);
        // A question has the entries, and a copy for the clients.
        let asked = match self.stored <= limit {
            true => self.stored.saturating_mul(2),
            false => 0,
        };
        let sum = [one, steps, conversation, asked];
        working.reserve(sum.into_iter().fold(0, u64::saturating_add))
    }
}

/// The summarizer of a summary, and the receiver of its progress.
pub(crate) struct SummaryJob<'a> {
    pub summarizer: &'a Summarizer,
    /// Receives each piece of the text while it is written.
    pub hear: &'a (dyn Fn(&Piece<'_>) + Sync),
    /// The model of the conversation.
    pub model: Option<&'a ModelName>,
    pub abort: &'a Cancel,
}

/// A piece of a summary.
pub(crate) struct Piece<'a> {
    /// The number of the piece, counted from 0.
    pub index: u64,
    pub text: &'a str,
    /// The characters of this piece.
    pub characters: u64,
    /// The characters of this piece and all earlier pieces.
    pub total: u64,
}

impl SummaryJob<'_> {
    /// Writes the summary for `request`, which runs on a blocking thread. Fails with `summarizerUnavailable`,
    /// `summarizerFailed`, or `cancelled` if aborted.
    pub(crate) async fn write(
        &self,
        request: impl FnOnce(&Summarizer) -> Result<SummaryRequest> + Send + 'static,
    ) -> Result<(Arc<SummaryRequest>, Summary)> {
        let summarizer = self.summarizer.clone();
        let work = async {
            let (summarizer, request) = blocking(move || {
                let request = request(&summarizer)?;
                Ok((summarizer, Arc::new(request)))
            })
            .await?;
            let teller = Teller::new(self, &request);
            let hear = |piece: &str| teller.push(piece);
            let summary = summarizer
                .summarize(Arc::clone(&request), self.model, &hear)
                .await?;
            teller.finish(&request.files);
            Ok((request, summary))
        };
        self.abort.guard(work).await?
    }
}

/// Sends pieces to clients. All pieces together are the text of the entry: the opening line, the text of the summarizer
/// without white space around it, and the lists of files.
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
    /// White space at the end of the last piece. It belongs to the text only if more text follows.
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
        let mut progress = lock(&self.state);
        let piece = match progress.pieces {
            0 => piece.trim_start(),
            _ => piece,
        };
        let text = piece.trim_end();
        let space = piece.get(text.len()..).unwrap_or_default();
        if text.is_empty() {
            progress.space.push_str(space);
            return;
        }
        let mut delta = match progress.pieces {
            0 => self.opening.clone(),
            _ => std::mem::take(&mut progress.space),
        };
        delta.push_str(text);
        progress.space = space.to_owned();
        self.tell(&mut progress, &delta);
    }

    fn finish(&self, files: &FileLists) {
        let mut progress = lock(&self.state);
        let closing = frame::closing(files);
        if !closing.is_empty() {
            self.tell(&mut progress, &closing);
        }
    }

    fn tell(&self, progress: &mut SummaryProgress, delta: &str) {
        let more = delta.chars().count() as u64;
        progress.characters += more;
        (self.writing.hear)(&Piece {
            index: progress.pieces,
            text: delta,
            characters: more,
            total: progress.characters,
        });
        progress.pieces += 1;
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

/// The summary that a client gives, stored unchanged.
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

/// The model that the conversation uses at the leaf.
pub(crate) fn model(state: &SessionState) -> Result<Option<ModelName>> {
    let above = state.tree.ancestors(state.leaf());
    let above = above.map(|node| state.step(node));
    let model = treelined_core::context::current_model(above, &mut |node| state.entry(node))?;
    Ok(model.map(|(provider, model_id)| ModelName { provider, model_id }))
}

pub(crate) fn wire_model(model: &ModelName) -> wire::Model {
    wire::Model {
        provider: model.provider.clone(),
        model_id: model.model_id.clone(),
    }
}
