//! Commands of this program that take a while: compactions and forks.

use super::Daemon;
use crate::message::{self, CommandOutput, Target};
use treelined_client::{Client, Error};

/// Compacts the context of the open session.
pub async fn compact(client: &Client, focus: String) -> Result<CommandOutput, Error> {
    let mut call = client.compact();
    if !focus.is_empty() {
        call = call.custom_instructions(focus);
    }
    let ended = call.await?;
    let text = match ended.cancelled {
        true => "Another client refused the compaction.",
        false => "Compacted.",
    };
    Ok(CommandOutput {
        output: Some(text.to_owned()),
        prompt: None,
    })
}

impl Daemon {
    /// Forks the open session at an entry and opens the fork. The text of a user message becomes the draft.
    pub(super) async fn fork(
        &self,
        client: &Client,
        entry: String,
    ) -> Result<CommandOutput, Error> {
        let forked = client.fork_session().entry_id(entry).await?;
        let Some(session) = forked.session else {
            return Ok(CommandOutput {
                output: Some("Another client refused the fork.".to_owned()),
                prompt: None,
            });
        };
        let id = session.session_id;
        let opened = self.open(Target::Id(id.clone())).await;
        // The fork has opened it too.
        client.with_session(&id).close_session().await?;
        self.say(message::Daemon::Opened(opened.map_err(super::failure)));
        Ok(CommandOutput {
            output: Some("This is the fork.".to_owned()),
            prompt: forked.editor_text,
        })
    }
}
