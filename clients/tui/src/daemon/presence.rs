//! Asks repeatedly which other machines have the open session open.

use super::{Daemon, convert};
use crate::message;
use std::time::Duration;
use treelined_client::Client;

/// The time between two requests; an answer is valid for about as long.
const PAUSE: Duration = Duration::from_secs(20);

impl Daemon {
    /// Asks about this session, and no longer about the session before.
    pub(super) fn watch_presence(&self, client: Client, session_id: String) {
        let daemon = self.clone();
        let task = tokio::spawn(async move { daemon.ask_on(&client, &session_id).await });
        let before = self.state().presence.replace(task.abort_handle());
        if let Some(before) = before {
            before.abort();
        }
    }

    /// Asks repeatedly. Returns at once if the daemon keeps no sessions for a team.
    async fn ask_on(&self, client: &Client, session_id: &str) {
        while let Ok(page) = client.list_sessions().query(session_id).await {
            if page.team_count.is_none() {
                return;
            }
            let row = page
                .sessions
                .into_iter()
                .find(|row| row.session_id == session_id);
            let log = row.and_then(|row| row.log);
            self.say(message::Daemon::OpenOn {
                session_id: session_id.to_owned(),
                hosts: log.map_or_else(Vec::new, |log| convert::hosts(&log.open_on)),
            });
            tokio::time::sleep(PAUSE).await;
        }
    }
}
