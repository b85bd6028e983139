//! The runtime file: it describes the daemon and how to reach it.
//!
//! The daemon holds the lock of the file as long as it lives. So a reader can see that a daemon was killed, even if
//! another process has its process id.

use super::place::{Place, remove};
use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{Read, Write};
use std::sync::Arc;
use treelined_files::os::file::{Location, identity_of, is_private, status_of};
use treelined_files::os::handle::HandleAccess;
use treelined_files::os::temporary::{self, Temporary};

/// The most bytes of the file that are read.
const MAX_BYTES: u64 = 1 << 20;

/// The content of the runtime file (protocol.md §10).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DaemonInfo {
    pub pid: u32,
    pub socket: String,
    /// The URL of the WebSocket; null if the daemon has none.
    pub web_socket: Option<String>,
    /// The token for the WebSocket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The version of the program.
    pub version: String,
    pub protocol_version: u32,
    pub session_dir: String,
    /// The time of the start, in ISO 8601.
    pub started_at: String,
    pub environment: EnvironmentOrigin,
    /// The options of the daemon that apply, by their names on the command line.
    pub options: BTreeMap<String, String>,
    /// The sockets of limited connections that the daemon serves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub access: Vec<AccessInfo>,
    /// The extensions that the daemon starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<ExtensionInfo>,
}

/// An extension that the daemon starts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ExtensionInfo {
    pub name: String,
    /// `read`, `append` or `all`.
    pub may: String,
}

/// A socket or a token of limited connections.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AccessInfo {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
    /// The path of the file with the token for the WebSocket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_file: Option<String>,
    /// `read` or `append`.
    pub may: String,
    pub directories: Vec<String>,
    /// Whether secrets are replaced.
    pub redact: bool,
}

/// The user and the process from which the daemon has its environment variables and keys.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentOrigin {
    pub uid: u32,
    /// The variable `USER`.
    pub user: Option<String>,
    pub started_by: Starter,
    /// The process that has started the daemon.
    pub pid: Option<u32>,
    pub cwd: String,
}

/// The way in which a daemon was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Starter {
    /// `treelined connect --start`.
    Connect,
    /// `treelined serve --listen`.
    Serve,
    /// Socket activation by systemd.
    Systemd,
}

/// The runtime file of this process. It is locked.
#[derive(Debug)]
pub(super) struct RuntimeFile {
    file: Arc<File>,
    /// The earlier files of this daemon, with their locks. A process that has read an earlier file checks the lock of
    /// that file to see whether the daemon lives.
    replaced: Vec<Arc<File>>,
}

impl RuntimeFile {
    /// Writes the file. Replaces the file of a dead daemon.
    pub(super) fn write(place: &Place, info: &DaemonInfo) -> anyhow::Result<Self> {
        let path = place.runtime_file();
        let failed = || format!("write {}", path.display());
        let at = Location::of_path(&path)?;
        // Removes unfinished files of daemons that were killed. If this fails, the daemon can still start.
        let _unreadable = temporary::remove_abandoned(&at.folder);
        let mut text = serde_json::to_vec_pretty(info)?;
        text.push(b'\n');
        let temporary = Temporary::for_name(&at.folder, &at.name).with_context(failed)?;
        let file = Arc::clone(temporary.file());
        (&*file).write_all(&text).with_context(failed)?;
        temporary.name_locked(&at).with_context(failed)?;
        // On some systems an unfinished file is not locked, so the file is locked here.
        file.lock().with_context(failed)?;
        Ok(Self {
            file,
            replaced: Vec::new(),
        })
    }

    /// Replaces the content of the file.
    pub(super) fn rewrite(&mut self, place: &Place, info: &DaemonInfo) -> anyhow::Result<()> {
        let Self { file, .. } = Self::write(place, info)?;
        self.replaced.push(std::mem::replace(&mut self.file, file));
        Ok(())
    }

    /// Removes the file, unless another daemon has replaced it.
    pub(super) fn remove(self, place: &Place) {
        let path = place.runtime_file();
        let own = status_of(&self.file).map(|status| status.identity).ok();
        if own.is_some() && identity_of(&path) == own {
            remove(&path);
        }
    }
}

/// A runtime file that was read.
#[derive(Debug)]
pub struct FoundInfo {
    pub info: DaemonInfo,
    file: File,
}

impl FoundInfo {
    /// Whether the daemon lives.
    pub fn is_alive(&self) -> bool {
        matches!(self.file.try_lock_shared(), Err(TryLockError::WouldBlock)) || {
            let _released = self.file.unlock();
            false
        }
    }
}

/// Reads the runtime file of a living or a dead daemon; `None` if there is no file. Fails if another user has written
/// the file.
pub fn read(place: &Place) -> anyhow::Result<Option<FoundInfo>> {
    let path = place.runtime_file();
    if identity_of(&path).is_none() {
        return Ok(None);
    }
    let at = Location::of_path(&path)?;
    let file = at.folder.file(&at.name, HandleAccess::Read)?;
    let failed = || format!("read {}", path.display());
    if !is_private(&file).with_context(failed)? {
        bail!(
            "{} belongs to another user or can be written by others: remove it",
            path.display()
        );
    }
    let mut text = Vec::new();
    (&file)
        .take(MAX_BYTES)
        .read_to_end(&mut text)
        .with_context(failed)?;
    let info = serde_json::from_slice(&text).with_context(|| {
        format!(
            "{} was not written by a daemon of this version: end that daemon, or remove the file",
            path.display()
        )
    })?;
    Ok(Some(FoundInfo { info, file }))
}
