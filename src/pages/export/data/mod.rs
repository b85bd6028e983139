//! Sessions as data: what trainers and evaluations of models read (protocol.md §16, "Data").
//!
//! [`steps`] has what an export needs of the tree, [`reading`] reads contexts without secrets, [`chat`] writes messages.
//! [`sft`] and [`pairs`] write the formats.

mod budget;
mod chat;
mod json;
mod pairs;
mod reading;
mod sft;
mod steps;
#[cfg(test)]
mod tests;

use super::content::ContentSource;
use super::output::Output;
use super::request::{DataFormat, ExportOptions, Part, Progress};
use super::tally::Redaction;
use crate::renderers::Renderers;
use budget::{REPEATED_BYTES, too_large};
use pairs::{Pairs, Remarks};
use reading::DataReader;
use std::sync::Arc;
use steps::Steps;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::tree::{Node, Tree};
use treelined_files::cancel::Cancel;
use treelined_files::session::SessionState;

/// The session at one point in time, as an export of data needs it.
pub struct DataSource {
    steps: Steps,
    content: ContentSource,
    session_id: String,
    lines: Lines,
    /// The most bytes that lines which repeat others may have.
    limit: u64,
}

enum Lines {
    /// A line for each branch that ends with one of these.
    Sft(Vec<Node>),
    Pairs(Remarks),
}

impl DataSource {
    pub(super) fn take(
        core: &SessionState,
        part: Part,
        format: DataFormat,
        options: &ExportOptions,
        renderers: Arc<Renderers>,
    ) -> Result<Self> {
        let home = options.home.as_deref();
        let content = ContentSource::new(core.bodies(), renderers, options.redacts, home)?;
        let header = core.log.header();
        let session_id = header.map(|header| header.id.clone()).unwrap_or_default();
        Self::of(
            &core.tree,
            content,
            session_id,
            part,
            format,
            REPEATED_BYTES,
        )
    }

    fn of(
        tree: &Tree,
        content: ContentSource,
        session_id: String,
        part: Part,
        format: DataFormat,
        limit: u64,
    ) -> Result<Self> {
        let steps = Steps::take(tree, &content.bodies, part)?;
        let lines = match format {
            DataFormat::Sft => Lines::Sft(ends(&steps, part, limit)?),
            DataFormat::Dpo => Lines::Pairs(Remarks::take(tree, &content.bodies)?),
        };
        Ok(Self {
            steps,
            content,
            session_id,
            lines,
            limit,
        })
    }

    /// Writes the lines; returns the replaced secrets, and the number of lines.
    pub(super) fn write(
        &self,
        out: &mut Output,
        cancel: &Cancel,
        progress: Progress<'_>,
    ) -> Result<(Vec<Redaction>, u64)> {
        let mut reader = DataReader::new(&self.steps, &self.content, cancel);
        let items = match &self.lines {
            Lines::Sft(ends) => {
                let bytes = |end: &Node| self.steps.get(*end).map_or(0, |step| step.path_bytes);
                let total = ends.iter().map(bytes).sum();
                let mut read = 0;
                for end in ends {
                    out.write(&sft::line(&mut reader, &self.session_id, *end)?)?;
                    read += bytes(end);
                    progress(read, total);
                }
                ends.len() as u64
            }
            Lines::Pairs(remarks) => {
                let pairs = Pairs::find(&mut reader, remarks, self.limit)?;
                let (mut read, mut written) = (0, 0);
                pairs.each(&mut reader, &self.session_id, &mut |line, bytes| {
                    if let Some(line) = line {
                        written += 1;
                        out.write(&line)?;
                    }
                    read += bytes;
                    progress(read, pairs.bytes());
                    Ok(())
                })?;
                if written == 0 {
                    return Err(nothing(NO_PAIRS));
                }
                written
            }
        };
        Ok((reader.into_tally().into_redactions(), items))
    }
}

const NO_ANSWER: &str = "no assistant has answered in this part of the session: name an entry behind an answer, or export the whole tree";
const NO_PAIRS: &str = "no answer is better than another one to the same prompt: go back to a prompt and let it be answered again, then go on from the better answer, choose it, or label one of them \"good\" or \"bad\"";

/// The answers with which lines end, whose paths are within the budget.
fn ends(steps: &Steps, part: Part, limit: u64) -> Result<Vec<Node>> {
    let ends = steps.ends(part);
    if ends.is_empty() {
        return Err(nothing(NO_ANSWER));
    }
    let bytes = ends.iter().filter_map(|end| steps.get(*end));
    let bytes = bytes.map(|step| step.path_bytes).sum();
    match bytes > limit {
        true => Err(too_large(&format!("{} branches", ends.len()), bytes, limit)),
        false => Ok(ends),
    }
}

fn nothing(message: &'static str) -> Error {
    Error::new(Kind::NothingToExport, message)
}
