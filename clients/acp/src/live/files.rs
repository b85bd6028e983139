//! The files of a conversation, if `treelined files` saves them.

use anyhow::{Context, bail};
use std::ffi::OsString;
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use treelined_client::DaemonArgs;

/// The exit code of a restore that waits for the user's agreement.
const NOT_AGREED: i32 = 2;
/// The most bytes of a preview that are shown.
const MAX_SHOWN: usize = 16 << 10;
/// How often and how long the relay waits until `treelined files watch` has saved the files. It saves them a moment
/// after the end of a turn.
const WAITS: [Duration; 3] = [
    Duration::ZERO,
    Duration::from_millis(300),
    Duration::from_millis(900),
];

pub(super) struct Files {
    /// The program of the daemon, which starts the program for files.
    daemon: OsString,
    arguments: Vec<OsString>,
}

impl Files {
    pub(super) fn new(daemon: &DaemonArgs) -> Files {
        let mut arguments = Vec::new();
        if let Some(folder) = &daemon.session_dir {
            arguments.extend(["--session-dir".into(), folder.into()]);
        }
        if daemon.shared {
            arguments.push("--shared".into());
        }
        Files {
            daemon: daemon.daemon.clone().into(),
            arguments,
        }
    }

    /// The changes that a restore to an entry would make. `None` if there are none, or if the files are not saved.
    pub(super) async fn preview(&self, session: &str, entry: &str) -> Option<String> {
        for wait in WAITS {
            tokio::time::sleep(wait).await;
            let shown = self.restore(session, entry, &[]).await.ok()?;
            if !shown.status.success() {
                let text = String::from_utf8_lossy(&shown.stdout);
                let text: String = text.chars().take(MAX_SHOWN).collect();
                let is_asked = shown.status.code() == Some(NOT_AGREED) && !text.is_empty();
                return is_asked.then_some(text);
            }
        }
        None
    }

    /// Restores the files to an entry. Returns the report of the restore.
    pub(super) async fn bring_back(&self, session: &str, entry: &str) -> anyhow::Result<String> {
        let done = self.restore(session, entry, &["--yes".into()]).await?;
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        // If files have changed since the preview, the restore fails, and its report names them.
        if done.status.success() || !said.is_empty() {
            return Ok(said);
        }
        bail!("{}", String::from_utf8_lossy(&done.stderr).trim())
    }

    async fn restore(
        &self,
        session: &str,
        entry: &str,
        options: &[OsString],
    ) -> anyhow::Result<Output> {
        let mut command = Command::new(&self.daemon);
        command
            .arg("files")
            .args(&self.arguments)
            .args(["restore", "--session", session, entry])
            .args(options)
            .stdin(Stdio::null());
        let done = tokio::task::spawn_blocking(move || command.output()).await?;
        done.context("run `treelined files`")
    }
}
