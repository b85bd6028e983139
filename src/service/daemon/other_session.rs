//! Another session from which entries come (protocol.md §3.12). This code reads the session once, at the beginning, and
//! never changes it.

use super::Daemon;
use crate::access::Rights;
use std::sync::Arc;
use std::time::Instant;
use treelined_core::durability::Durability;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::tree::Node;
use treelined_files::blocking::blocking;
use treelined_files::cancel::Cancel;
use treelined_files::session::{Session, SessionGuard};

/// A session with the content that its file had when it was read.
pub(crate) struct OtherSession {
    pub(crate) id: String,
    pub(crate) guard: SessionGuard,
}

impl OtherSession {
    /// Reads the file of a session, which may be open or not. Fails with `sessionNotFound` if the session has no file,
    /// or if it does not exist for the connection.
    pub(crate) async fn read(
        daemon: &Arc<Daemon>,
        rights: &Arc<Rights>,
        id: &str,
        cancel: &Cancel,
    ) -> Result<Self> {
        let (files, id) = (Arc::clone(&daemon.files), id.to_owned());
        let (rights, cancel) = (Arc::clone(rights), cancel.clone());
        blocking(move || {
            let at = files.find_file_for(&id, &rights)?;
            let opened = files.store.open(at, &cancel)?;
            let cwd = opened.log.header().map(|header| header.cwd.as_str());
            rights.check_session(&id, cwd)?;
            let session = Session::new(opened, true, Durability::None);
            let guard = session.guard(Instant::now(), ())?;
            Ok(Self { id, guard })
        })
        .await
    }

    /// The entry with this id. Without an id, the entry at which the session opens.
    pub(crate) fn find(&self, id: Option<&str>) -> Result<Node> {
        match id {
            Some(id) => self.guard.find(id).map_err(|_| {
                let message = format!(
                    "no entry {id:?} in the other session {:?}: name one that its file has",
                    self.id
                );
                let details = serde_json::json!({ "entryId": id });
                Error::new(Kind::EntryNotFound, message).with_details(details)
            }),
            None => self.guard.leaf().ok_or_else(|| {
                let message = "the other session has no entries at its leaf: name an entry of it";
                Error::new(Kind::EntryNotFound, message)
            }),
        }
    }
}
