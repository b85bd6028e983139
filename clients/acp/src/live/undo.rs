//! `/undo` takes the last prompt back. If the files are saved, it asks whether they are restored too.

use super::commands::Command;
use super::questions::{CONVERSATION, FILES};
use super::{Live, go};
use crate::journal::Journal;
use crate::record::Recorder;
use anyhow::bail;

/// Returns the text of the answer, or `None` if a question to the user comes first.
pub(super) async fn undo(
    live: &Live,
    command: &Command,
    journal: &mut Journal,
    recorder: &mut Recorder,
) -> anyhow::Result<Option<String>> {
    if !matches!(command.words.as_str(), "" | CONVERSATION | FILES) {
        bail!("say /undo, /undo files or /undo conversation");
    }
    let agent = live.router().agents.agent_or_same(&command.session);
    let (place, prompt) = go::last_prompt(live, &agent, journal, recorder).await?;
    let asked = command.asked.as_ref();
    if asked.is_some_and(|asked| asked.about != prompt) {
        bail!("the conversation has gone on since the question: send /undo again");
    }
    let preview = match command.words.as_str() {
        CONVERSATION => None,
        _ => live.files.preview(&place.session_id, &prompt).await,
    };
    let is_agreed = command.words == FILES;
    if let (Some(preview), false) = (&preview, is_agreed) {
        let mut router = live.router();
        let question = router.questions.ask_for_files(command, &prompt, preview);
        drop(router);
        if let Some(question) = question {
            live.tell(&question);
            return Ok(None);
        }
    }
    if is_agreed && asked.is_some_and(|asked| Some(&asked.preview) != preview.as_ref()) {
        bail!("the files have changed since the question: send /undo again");
    }
    let mut said = go::go(live, command, journal, recorder).await?;
    said.push_str(&match (is_agreed, preview) {
        (true, Some(_)) => match live.files.bring_back(&place.session_id, &prompt).await {
            Ok(done) => format!(
                " The files went back too:\n\n```text\n{}\n```\n",
                done.trim_end()
            ),
            Err(error) => format!(" The files stay as they are: {error:#}\n"),
        },
        (true, None) => " There is nothing to bring back in the files.\n".to_owned(),
        (false, _) => " Files and terminals stay as they are.\n".to_owned(),
    });
    Ok(Some(said))
}
