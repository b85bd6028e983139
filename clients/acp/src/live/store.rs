//! Remembers in which agent session a moved conversation continues, for later runs.

use crate::journal::make_folder;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// The folder of these files, in the folder of the state.
const FOLDER: &str = "live";

#[derive(Clone)]
pub(crate) struct Store {
    folder: PathBuf,
    /// The name of the agent's program.
    agent: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    agent_session: String,
}

impl Store {
    pub(crate) fn open(state: &Path, agent: &str) -> anyhow::Result<Store> {
        let folder = state.join(FOLDER);
        make_folder(&folder)?;
        Ok(Store {
            folder,
            agent: agent.to_owned(),
        })
    }

    /// The agent session in which an editor session continues, if both ids differ.
    pub(crate) fn find(&self, editor: &str) -> Option<String> {
        let bytes = fs::read(self.file(editor)).ok()?;
        let kept: Kept = serde_json::from_slice(&bytes).ok()?;
        Some(kept.agent_session)
    }

    /// Writes in which agent session an editor session continues. If this fails, the next run continues where the
    /// conversation was before the move.
    pub(crate) fn keep(&self, editor: &str, agent: &str) {
        let file = self.file(editor);
        if self.find(editor).as_deref() == Some(agent) {
            return;
        }
        let kept = Kept {
            agent_session: agent.to_owned(),
        };
        let temporary = file.with_extension(format!("{}.tmp", std::process::id()));
        let text = serde_json::to_vec(&kept).unwrap_or_default();
        let _lost = fs::write(&temporary, text).and_then(|()| fs::rename(&temporary, &file));
    }

    /// Notes that an editor session continues in the agent session of the same id.
    pub(crate) fn remove(&self, editor: &str) {
        let _missing = fs::remove_file(self.file(editor));
    }

    fn file(&self, editor: &str) -> PathBuf {
        let name = format!("{}\0{editor}", self.agent);
        let id = Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes());
        self.folder.join(format!("{id}.json"))
    }
}
