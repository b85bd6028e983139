//! The activities that keep a session busy.

use crate::cancel::Cancel;
use serde_json::json;
use treelined_core::error::{Error, Kind};

/// The activity that keeps a session busy (protocol.md §4.1).
#[derive(Debug, Clone)]
pub enum Activity {
    Navigation { id: String, abort: Cancel },
    Compaction { abort: Cancel },
    AgentTurn,
}

impl Activity {
    pub(super) fn busy(&self) -> Error {
        let (by, id) = match self {
            Activity::Navigation { id, .. } => ("navigation", Some(id)),
            Activity::Compaction { .. } => ("compaction", None),
            Activity::AgentTurn => ("turn", None),
        };
        let details = match id {
            Some(id) => json!({ "by": by, "navigationId": id }),
            None => json!({ "by": by }),
        };
        Error::new(Kind::SessionBusy, format!("a {by} is running")).with_details(details)
    }
}
