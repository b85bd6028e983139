//! Publishes the lines that only a file has. Either both the file and the log have new lines, or the log has lost lines
//! and has received other lines.

use super::super::backend::{LogBackend, Position};
use super::super::comparison::{Agreement, Relation, Tail};
use super::super::files::SessionFiles;
use super::super::replica::ReplicaRecord;
use super::super::transfer::{self, Transfer};
use super::ReplicatedFile;
use std::sync::Arc;
use treelined_core::error::{Error, Kind, Result};

/// Like [`transfer::push`]. Also pushes if the file and the log both have new lines. The lines of the file are then
/// appended to the log, as a branch, and the file is written again in the order of the log.
pub fn push_branch(
    files: &SessionFiles<'_>,
    log: &Arc<dyn LogBackend>,
    session: &str,
) -> Result<Transfer> {
    match transfer::push(files, &**log, session) {
        Err(error) if error.kind == Kind::LogDiverged => {}
        pushed => return pushed,
    }
    let at = transfer::found(files, session)?;
    let source = Arc::new(Arc::clone(log));
    let before = ReplicatedFile::new(source, session, at.clone(), false).publish_branch()?;
    let start = agreed_at(&**log, session, before)?;
    let identity = log.identity(session)?;
    let compared = transfer::compare_saved(&**log, session, &at, &identity, Tail::Ignored)?;
    let pushed = transfer::verified(&**log, session, &at, (&start, 0, &compared.at))?;
    Ok(Transfer {
        is_behind: matches!(compared.relation, Relation::LogAhead { .. }),
        is_branch: true,
        ..pushed
    })
}

/// The log up to a position, for a file that has all of it.
fn agreed_at(log: &dyn LogBackend, session: &str, position: Position) -> Result<Agreement> {
    let mut agreed = Agreement::START;
    for part in log.read(session, agreed.position)? {
        let part = part?;
        if part.end > position {
            break;
        }
        agreed.advance(part.end, &part.lines);
    }
    Ok(agreed)
}

impl ReplicatedFile {
    /// Appends to the log the entries that only the file has, and writes the file again in the order of the log. Lines
    /// that are not entries go to the file with the suffix `.foreign`. Returns the end of the log before these entries.
    /// The replica record of the file is used only to refuse a replica of a log with another name.
    fn publish_branch(&self) -> Result<Position> {
        let Some(_locked) = self.locked()? else {
            let why = format!("the file of session {:?} is gone", self.session);
            return Err(Error::new(Kind::SessionNotFound, why));
        };
        let log = self.source.log()?;
        let identity = log.identity(&self.session)?;
        if let Some(record) = ReplicaRecord::load(&self.at)? {
            record.check_name(&identity)?;
        }
        self.rebuild(&*log, &identity, &Agreement::START)
    }
}
