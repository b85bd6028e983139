//! Exports a session as a page, Markdown, text, a session file or data (protocol.md §16).
//!
//! [`ExportSource`] is made while the guard of the session is held. Everything else runs without the guard, on a
//! blocking thread. [`output`] is the file or the text that is written; [`content`] reads entries and replaces their
//! secrets.

mod content;
mod data;
mod head;
mod jsonl;
mod output;
mod page;
mod part;
mod request;
mod review;
mod tally;
mod transcript;

use crate::renderers::Renderers;
use data::DataSource;
use jsonl::SessionFile;
use output::Output;
use page::PageSource;
pub(crate) use request::Progress;
pub use request::{DataFormat, ExportOptions, Exported, Format, Part, Sessions, Target};
pub use review::{ReviewSource, ReviewedSecret};
use std::sync::Arc;
pub use tally::Redaction;
use transcript::TranscriptSource;
use treelined_core::error::Result;
use treelined_core::id::Source;
use treelined_core::stats::Prices;
use treelined_files::cancel::Cancel;
use treelined_files::log::{Standing, append};
use treelined_files::session::SessionState;

/// Fails if the session was deleted, since a deleted conversation must not appear in a new file.
fn check(state: &SessionState, part: Part) -> Result<()> {
    if state.log.standing()? == Standing::Deleted {
        return Err(append::deleted());
    }
    part.check(state)
}

/// Copies the part of the session whose secrets a person reviews before the export.
pub fn review(
    state: &SessionState,
    part: Part,
    options: &ExportOptions,
    minter: &dyn Source,
) -> Result<ReviewSource> {
    check(state, part)?;
    ReviewSource::take(state, part, options, minter)
}

/// The exported part of the session at one point in time.
pub enum ExportSource {
    File(Box<SessionFile>),
    Page(Box<PageSource>),
    Transcript(Box<TranscriptSource>),
    Data(Box<DataSource>),
}

impl ExportSource {
    /// Copies the part of the session that is exported.
    pub fn take(
        state: &SessionState,
        part: Part,
        options: &ExportOptions,
        renderers: Arc<Renderers>,
        minter: &dyn Source,
    ) -> Result<Self> {
        check(state, part)?;
        match options.format {
            Format::Jsonl => {
                let file = SessionFile::take(state, part, minter)?;
                Ok(Self::File(Box::new(file)))
            }
            Format::Html => {
                let page = PageSource::take(state, part, options, renderers, minter.now_ms())?;
                Ok(Self::Page(Box::new(page)))
            }
            Format::Data(format) => {
                let data = DataSource::take(state, part, format, options, renderers, minter)?;
                Ok(Self::Data(Box::new(data)))
            }
            Format::Markdown | Format::Text => {
                let now = minter.now_ms();
                let transcript = TranscriptSource::take(state, part, options, renderers, now)?;
                Ok(Self::Transcript(Box::new(transcript)))
            }
        }
    }

    /// Writes the export. `sessions` has the subagents of trajectories; `prices` estimate the cost in pages. If the
    /// export fails or is cancelled, nothing of it remains.
    pub fn write(
        &self,
        target: &Target,
        sessions: Sessions<'_>,
        prices: &dyn Prices,
        cancel: &Cancel,
        progress: Progress<'_>,
    ) -> Result<Exported> {
        let mut out = Output::begin(target, cancel)?;
        let mut items = None;
        let redactions = match self {
            Self::File(file) => {
                file.write(&mut out, cancel, progress)?;
                Vec::new()
            }
            Self::Page(page) => page.write(&mut out, prices, cancel, progress)?,
            Self::Transcript(transcript) => transcript.write(&mut out, cancel, progress)?,
            Self::Data(data) => {
                let (redactions, written) = data.write(&mut out, sessions, cancel, progress)?;
                items = Some(written);
                redactions
            }
        };
        let exported = out.finish(redactions)?;
        Ok(Exported { items, ..exported })
    }
}
