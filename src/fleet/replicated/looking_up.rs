//! Compares one line of the file with the copy of the servers.

use super::ReplicatedFile;
use crate::backend::{LogBackend, Position, StoredLine};
use crate::replica::ReplicaRecord;
use treelined_core::error::{Error, Kind, Result};
use treelined_files::log::upstream::{FileLine, LineInStream, LineState};

impl ReplicatedFile {
    /// See [`treelined_files::log::upstream::Upstream::look_up`].
    pub(super) fn line_in_log(&self, line: &FileLine) -> Result<LineInStream> {
        // Lines that are published after this moment may be seen as waiting, but never as lost.
        let known = self.known(line.file);
        let log = self.source.log()?;
        let stream = log.identity(&self.session)?.stream;
        let mut stored = log.line(&self.session, line.number)?;
        let is_equal = |stored: &StoredLine| stored.bytes == line.bytes;
        if !stored.as_ref().is_some_and(is_equal) {
            let status = self.at.status();
            if !status.is_ok_and(|status| status.identity == line.file) {
                let why = "the file was made again in the order of the team's stream meanwhile";
                return Err(Error::new(Kind::SessionReplaced, why));
            }
            let Some(known) = known.filter(|known| line.end <= known.offset) else {
                return Ok(LineInStream {
                    stream,
                    state: LineState::Queued,
                    account: None,
                });
            };
            if stored.is_none() {
                stored = Some(self.line_again(&*log, line.number, &known)?);
            }
        }
        let state = match stored.as_ref().is_some_and(is_equal) {
            true => LineState::Equal,
            false => LineState::Differs,
        };
        let account = stored.and_then(|stored| stored.account);
        Ok(LineInStream {
            stream,
            state,
            account,
        })
    }

    /// Reads again a line that the log had before and seems to lack. A server may lag behind the other servers for a
    /// moment.
    fn line_again(
        &self,
        log: &dyn LogBackend,
        number: u64,
        known: &ReplicaRecord,
    ) -> Result<StoredLine> {
        // This read waits until the server has caught up, and fails if the log has lost lines.
        drop(log.read(&self.session, Position(known.sequence))?);
        let stored = log.line(&self.session, number)?;
        stored.ok_or_else(|| {
            let why = format!(
                "the team's stream has not, of session {:?}, line {number}",
                self.session
            );
            Error::new(Kind::LogRewound, why)
        })
    }
}
