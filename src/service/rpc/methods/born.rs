//! The sessions that come from the entries of a tree (protocol.md §6.2).

use crate::daemon::convert::line::line;
use crate::daemon::convert::member::push_id_member;
use crate::rpc::methods::sorting::kinship;
use crate::rpc::session_read::Read;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use treelined_core::error::Result;
use treelined_files::store::catalogue::Rows;
use treelined_files::store::family::children_of;
use treelined_wire as wire;

/// The most sessions that a row names.
const MOST: usize = 64;

/// The session of a tree. The rows of the tree name the other sessions that come from the entries of this session.
pub(super) struct Origin {
    rows: Box<dyn Fn() -> Result<Rows> + Send + Sync>,
    id: String,
    path: Option<PathBuf>,
}

/// The sessions that come from each entry, and from each tool call.
#[derive(Default)]
pub(super) struct BornSessions {
    by_entry: HashMap<String, Vec<wire::BornSession>>,
    by_call: HashMap<String, Vec<wire::BornSession>>,
}

impl Origin {
    pub(super) fn of(read: &Read<'_>) -> Self {
        let daemon = Arc::clone(&read.call.daemon);
        let rights = Arc::clone(read.call.connection.rights());
        Self {
            rows: Box::new(move || Ok(rights.rows(daemon.files.store.list()?))),
            id: read.open.session.id.to_string(),
            path: read.open.session.path.clone(),
        }
    }

    /// The sessions of the list that come from entries of this session. May read files.
    pub(super) fn sessions(&self) -> Result<BornSessions> {
        let rows = (self.rows)()?;
        let mut born = BornSessions::default();
        for child in children_of(&rows, &self.id, self.path.as_deref()) {
            let add = |to: &mut HashMap<String, Vec<_>>, key: Option<&str>| {
                let Some(key) = key else { return };
                let of_key = to.entry(key.to_owned()).or_default();
                if of_key.len() < MOST {
                    of_key.push(wire::BornSession {
                        session_id: child.session_id.to_owned(),
                        kind: kinship(child.kind),
                    });
                }
            };
            add(&mut born.by_entry, child.entry_id);
            add(&mut born.by_call, child.tool_call_id);
        }
        Ok(born)
    }
}

/// Adds members to the last row of `out`: the name of the branch that begins with the row, and `sessions`. These are
/// the sessions that come from the row's entry, or from the call that the entry answers.
pub(super) fn push(
    branch: Option<&str>,
    born: Option<&BornSessions>,
    out: &mut Vec<u8>,
    entry: &str,
    result_of: Option<&str>,
) -> Result<()> {
    if branch.is_some() {
        out.pop();
        push_id_member(out, "branchName", branch);
        out.push(b'}');
    }
    let Some(born) = born else {
        return Ok(());
    };
    let sessions = result_of.and_then(|call| born.by_call.get(call));
    if let Some(sessions) = sessions.or_else(|| born.by_entry.get(entry)) {
        let json = line(sessions)?;
        out.pop();
        out.extend_from_slice(b",\"sessions\":");
        out.extend_from_slice(&json);
        out.push(b'}');
    }
    Ok(())
}
