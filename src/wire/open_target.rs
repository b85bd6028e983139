//! The session that `open_session` names (protocol.md §3.2).

use super::session::OpenSessionParams;
use treelined_core::error::Error;

/// The session that `open_session` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenTarget<'a> {
    Id(&'a str),
    Path(&'a str),
}

impl OpenSessionParams {
    /// Returns the id or the path; fails with `invalidParams` unless exactly one of the two is given.
    pub fn target(&self) -> Result<OpenTarget<'_>, Error> {
        match (self.session_id.as_deref(), self.path.as_deref()) {
            (Some(id), None) => Ok(OpenTarget::Id(id)),
            (None, Some(path)) => Ok(OpenTarget::Path(path)),
            (None, None) => Err(Error::invalid_params(
                "sessionId",
                "sessionId or path is required",
            )),
            (Some(_), Some(_)) => Err(Error::invalid_params(
                "path",
                "excludes sessionId: give one of the two",
            )),
        }
    }
}
