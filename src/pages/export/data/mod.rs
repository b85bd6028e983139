//! Exports sessions as data for training and evaluating models (protocol.md §16, "Data").
//!
//! [`steps`] has the part of the tree that an export needs, [`reading`] reads contexts without secrets, [`chat`] writes
//! messages. [`sft`], [`pairs`], [`atif`], [`verifiers`] and [`trace`] write the formats. [`subagents`] finds the
//! sessions that are nested in trajectories.

mod atif;
mod budget;
mod chat;
mod json;
mod pairs;
mod reading;
mod sft;
mod steps;
mod subagents;
#[cfg(test)]
mod tests;
mod trace;
mod usage;
mod verifiers;

use super::content::ContentSource;
use super::jsonl::SessionFile;
use super::output::Output;
use super::request::{DataFormat, ExportOptions, Part, Progress, Sessions};
use super::tally::Redaction;
use crate::renderers::Renderers;
use atif::Take;
use budget::{REPEATED_BYTES, too_large};
use pairs::{Pairs, Remarks};
use reading::DataReader;
use std::sync::Arc;
use steps::Steps;
use subagents::{Nesting, Subagents};
use treelined_core::error::{Error, Kind, Result};
use treelined_core::id::Source;
use treelined_core::tree::{Node, Tree};
use treelined_files::cancel::Cancel;
use treelined_files::session::SessionState;

/// The parts of a session that an export of data needs, at one point in time.
pub struct DataSource {
    steps: Steps,
    content: ContentSource,
    session_id: String,
    lines: Lines,
    /// The most bytes of entries that several lines repeat.
    limit: u64,
}

enum Lines {
    /// One line for each branch that ends with one of these nodes.
    Sft(Vec<Node>),
    Pairs(Remarks),
    /// One trajectory for each branch that ends with one of these nodes.
    Atif(Vec<Node>),
    Graph(Part),
    /// The lines of one branch.
    Trace(Box<SessionFile>),
}

impl DataSource {
    pub(super) fn take(
        state: &SessionState,
        part: Part,
        format: DataFormat,
        options: &ExportOptions,
        renderers: Arc<Renderers>,
        minter: &dyn Source,
    ) -> Result<Self> {
        let content = ContentSource::new(state.bodies(), renderers, options)?;
        let header = state.log.header();
        let session_id = header.map(|header| header.id.clone()).unwrap_or_default();
        if format == DataFormat::Trace {
            let steps = Steps::take(&state.tree, &content.bodies, part)?;
            if steps.tips(part).is_empty() {
                return Err(nothing(NO_MESSAGE));
            }
            let file = SessionFile::take(state, part, minter)?;
            return Ok(Self {
                steps,
                content,
                session_id,
                lines: Lines::Trace(Box::new(file)),
                limit: REPEATED_BYTES,
            });
        }
        Self::of(
            &state.tree,
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
            DataFormat::Sft => Lines::Sft(within(&steps, steps.ends(part), NO_ANSWER, limit)?),
            DataFormat::Dpo => Lines::Pairs(Remarks::take(tree, &content.bodies)?),
            DataFormat::Atif => Lines::Atif(within(&steps, steps.tips(part), NO_MESSAGE, limit)?),
            DataFormat::Verifiers => {
                let bytes = verifiers::repeated_bytes(&steps);
                if bytes > limit {
                    return Err(too_large(
                        "contexts after compactions and edits",
                        bytes,
                        limit,
                    ));
                }
                Lines::Graph(part)
            }
            // [`Self::take`] makes the lines of a trace, from the whole state of the session.
            DataFormat::Trace => return Err(nothing(NO_MESSAGE)),
        };
        Ok(Self {
            steps,
            content,
            session_id,
            lines,
            limit,
        })
    }

    /// Writes the lines. Returns the replaced secrets and the number of lines.
    pub(super) fn write(
        &self,
        out: &mut Output,
        sessions: Sessions<'_>,
        cancel: &Cancel,
        progress: Progress<'_>,
    ) -> Result<(Vec<Redaction>, u64)> {
        let mut reader = DataReader::new(&self.steps, &self.content, cancel);
        let mut take = |piece: &[u8]| out.write(piece);
        let items = match &self.lines {
            Lines::Sft(ends) => self.write_sft(&mut reader, ends, &mut take, progress)?,
            Lines::Pairs(remarks) => self.write_pairs(&mut reader, remarks, &mut take, progress)?,
            Lines::Atif(tips) => {
                let rows = sessions()?;
                let all = Subagents::of(rows.iter().map(|row| &**row));
                let bytes = tips.iter().map(|tip| self.path_bytes(*tip)).sum();
                let mut nesting = Nesting::new(&all, &self.content, cancel, bytes, self.limit);
                let lines =
                    self.write_atif(&mut reader, &mut nesting, tips, &mut take, progress)?;
                let mut tally = reader.into_tally();
                tally.append(nesting.tally);
                return Ok((tally.into_redactions(), lines));
            }
            Lines::Graph(part) => {
                match verifiers::write(&mut reader, &self.session_id, *part, &mut take)? {
                    0 => return Err(nothing(NO_MESSAGE)),
                    _ => 1,
                }
            }
            Lines::Trace(file) => {
                let (tally, lines) = trace::each(file, &self.content, cancel, progress, &mut take)?;
                return Ok((tally.into_redactions(), lines));
            }
        };
        Ok((reader.into_tally().into_redactions(), items))
    }

    fn path_bytes(&self, end: Node) -> u64 {
        self.steps.get(end).map_or(0, |step| step.path_bytes)
    }

    fn write_sft(
        &self,
        reader: &mut DataReader<'_>,
        ends: &[Node],
        take: Take<'_>,
        progress: Progress<'_>,
    ) -> Result<u64> {
        let total = ends.iter().map(|end| self.path_bytes(*end)).sum();
        let mut read = 0;
        for end in ends {
            take(&sft::line(reader, &self.session_id, *end)?)?;
            read += self.path_bytes(*end);
            progress(read, total);
        }
        Ok(ends.len() as u64)
    }

    fn write_pairs(
        &self,
        reader: &mut DataReader<'_>,
        remarks: &Remarks,
        take: Take<'_>,
        progress: Progress<'_>,
    ) -> Result<u64> {
        let pairs = Pairs::find(reader, remarks, self.limit)?;
        let (mut read, mut written) = (0, 0);
        pairs.each(reader, &self.session_id, &mut |line, bytes| {
            if let Some(line) = line {
                written += 1;
                take(&line)?;
            }
            read += bytes;
            progress(read, pairs.bytes());
            Ok(())
        })?;
        match written {
            0 => Err(nothing(NO_PAIRS)),
            _ => Ok(written),
        }
    }

    fn write_atif(
        &self,
        reader: &mut DataReader<'_>,
        nesting: &mut Nesting<'_>,
        tips: &[Node],
        take: Take<'_>,
        progress: Progress<'_>,
    ) -> Result<u64> {
        let total = tips.iter().map(|tip| self.path_bytes(*tip)).sum();
        let (mut read, mut written) = (0, 0);
        for tip in tips {
            nesting.begin(&self.session_id);
            let id = format!("{}/{}", self.session_id, reader.id(*tip)?);
            let line = atif::write(reader, nesting, &self.session_id, &id, *tip, &mut *take)?;
            if line.is_some() {
                take(b"\n")?;
                written += 1;
            }
            read += self.path_bytes(*tip);
            progress(read, total);
        }
        match written {
            0 => Err(nothing(NO_MESSAGE)),
            _ => Ok(written),
        }
    }
}

const NO_ANSWER: &str = "no assistant has answered in this part of the session: name an entry after an answer, or export the whole tree";
const NO_MESSAGE: &str = "this part of the session has no message: name an entry after a message, or export the whole tree";
const NO_PAIRS: &str = "no prompt has a better and a worse answer: go back to a prompt and let the agent answer again, then continue after the better answer, choose it, or label one of them \"good\" or \"bad\"";

/// Returns `ends` if their paths together have at most `limit` bytes. Fails with the message `missing` if there are
/// none.
fn within(steps: &Steps, ends: Vec<Node>, missing: &'static str, limit: u64) -> Result<Vec<Node>> {
    if ends.is_empty() {
        return Err(nothing(missing));
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
