//! Makes the open session of a log that was just opened.

use super::state::{Session, SessionState};
use crate::log::OpenedLog;
use crate::log::header::CURRENT_VERSION;
use crate::log::upstream::Upstream;
use crate::os::file::Location;
use crate::os::time;
use crate::session::sync::Syncer;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;
use treelined_core::author::Signature;
use treelined_core::durability::Durability;
use treelined_core::id::SessionId;

impl Session {
    pub fn new(opened: OpenedLog, read_only: bool, durability: Durability) -> Arc<Self> {
        Self::signed(opened, read_only, durability, None)
    }

    /// A session whose new entries name their writer.
    pub fn signed(
        opened: OpenedLog,
        read_only: bool,
        durability: Durability,
        signature: Option<Signature>,
    ) -> Arc<Self> {
        Self::with(opened, read_only, durability, None, signature)
    }

    /// A session whose file is a replica of a team's stream.
    pub fn replicated(
        opened: OpenedLog,
        read_only: bool,
        upstream: Arc<dyn Upstream>,
        signature: Option<Signature>,
    ) -> Arc<Self> {
        let durability = Durability::Replicated;
        Self::with(opened, read_only, durability, Some(upstream), signature)
    }

    fn with(
        mut opened: OpenedLog,
        read_only: bool,
        durability: Durability,
        upstream: Option<Arc<dyn Upstream>>,
        signature: Option<Signature>,
    ) -> Arc<Self> {
        let log = &opened.log;
        let at = log.location().cloned();
        let path = at.as_ref().map(Location::path);
        let ephemeral = path.is_none();
        let is_newer = log.version() > CURRENT_VERSION;
        debug_assert!(log.header().is_some(), "an opened session has a header");
        let header = log.header();
        let id = header.map(|h| h.id.as_str()).unwrap_or_default();
        let end = upstream.as_ref().filter(|_| !read_only && !is_newer);
        let end = end.and_then(|upstream| upstream.own_end());
        let left = end.and_then(|end| opened.tree.left_at(end));
        let left_at = left.map(|left| opened.tree.id(left).to_owned());
        if left.is_some() {
            opened.tree.set_leaf(left);
        }
        let cwd = header.map(|header| header.cwd.clone());
        Arc::new(Self {
            id: SessionId::new(id),
            cwd: cwd.unwrap_or_default(),
            parent: header.and_then(|header| header.parent_session.clone()),
            is_newer,
            ephemeral,
            path,
            nonce: time::random().as_fields().0,
            state: Arc::new(tokio::sync::Mutex::new(SessionState {
                left_at,
                upstream,
                signature,
                ..SessionState::of(opened, read_only || is_newer)
            })),
            activity: Mutex::new(None),
            ended: Notify::new(),
            closed: AtomicBool::new(false),
            syncer: Syncer::new(
                if ephemeral {
                    Durability::None
                } else {
                    durability
                },
                at,
            ),
        })
    }
}
