//! Commands that other clients list and run (protocol.md §12). With these commands, the terminal client and the
//! editors can restore files.

use crate::at::{At, Found};
use crate::git;
use crate::restore::{self, Plan, Target};
use crate::session;
use crate::show;
use crate::state::{Root, State, WAIT};
use anyhow::{Context, bail};
use std::path::Path;
use treelined_client::{AskKind, Client, CommandInvoked, Error, ErrorKind, EventAnswer, OpenMode};

const DIFF: &str = "files-diff";
const RESTORE: &str = "files-restore";
/// The names of the commands, with their descriptions.
const COMMANDS: [(&str, &str); 2] = [
    (DIFF, "Show which files a restore would change"),
    (RESTORE, "Bring the files back to an entry; asks first"),
];
/// How long the user may take to answer, in milliseconds.
pub const THINKING: u64 = 600_000;
/// The most bytes of a preview in a question.
const MAX_SHOWN: usize = 16 << 10;

/// Registers the commands. If another client has registered a name, that command is left out.
pub async fn register(client: &Client) -> Result<(), Error> {
    for (name, description) in COMMANDS {
        let call = client.register_command(name).description(description);
        match call.argument_hint("[ENTRY]").await {
            Err(error) if error.is(ErrorKind::CommandExists) => {}
            registered => {
                registered?;
            }
        }
    }
    Ok(())
}

/// Runs a command that a client has called, and sends the answer.
pub async fn run(client: Client, state: State, invoked: CommandInvoked) {
    let call = client.answer_event(&invoked.event_id).extend_ms(THINKING);
    let _is_over = call.await;
    let said = answer(&client, &state, &invoked).await;
    let call = client.answer_event(&invoked.event_id);
    let call = match said {
        Ok(output) => call.result(EventAnswer::output(output)),
        Err(error) => call.error(show::safe(&format!("{error:#}"))),
    };
    let _is_over = call.await;
}

async fn answer(
    client: &Client,
    state: &State,
    invoked: &CommandInvoked,
) -> anyhow::Result<String> {
    git::check()?;
    let session = invoked.session_id.as_deref();
    let session = session.context("this command needs a session; open one")?;
    let opened = session::open(client, Some(session), Path::new("/"), OpenMode::Read).await?;
    let entry = Some(invoked.args.trim()).filter(|entry| !entry.is_empty());
    let found = Found::of(state, &opened, entry).await;
    let preview = match found {
        Ok(found) => blocking(move || preview(found)).await,
        Err(error) => Err(error),
    };
    let ended = match (preview, invoked.name.as_str()) {
        (Ok(preview), RESTORE) if !preview.is_empty() => restore(&opened.client, preview).await,
        (preview, _) => preview.map(|preview| preview.text),
    };
    opened.client.close_session().await?;
    ended
}

pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.context("look at the files")?
}

/// A restore about which the user is asked.
pub struct Preview {
    root: Root,
    target: Target,
    plan: Plan,
    text: String,
}

impl Preview {
    /// Whether the restore would change nothing.
    pub fn is_empty(&self) -> bool {
        self.plan.changes.is_empty()
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Compares the present files with the files at an entry.
pub fn preview(found: Found) -> anyhow::Result<Preview> {
    let at = At::open(found)?;
    let target = at.target(false)?;
    let plan = at.plan(&target)?;
    let mut text = Vec::new();
    at.preview(&mut text, &plan)?;
    let mut text = String::from_utf8(text)?;
    if text.len() > MAX_SHOWN {
        let ends = (0..=MAX_SHOWN).rev();
        let end = ends.into_iter().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
        text.push_str("\n…\n");
    }
    // The lock is released, because the user may take long to answer.
    let (root, _lock) = at.into_root();
    Ok(Preview {
        root,
        target,
        plan,
        text,
    })
}

/// Asks the user, in a client that has the session open, and restores the files.
async fn restore(client: &Client, preview: Preview) -> anyhow::Result<String> {
    let call = client.ask_user(AskKind::Confirm, "Bring these files back?");
    let asked = call.message(&preview.text).timeout_ms(THINKING).await?;
    let value = asked.value.map(|value| value.parse::<bool>()).transpose()?;
    if value != Some(true) {
        bail!("nothing was changed");
    }
    bring_back(preview).await
}

/// Restores the files after the user has agreed. Returns a text about what was done.
pub async fn bring_back(preview: Preview) -> anyhow::Result<String> {
    blocking(move || {
        let lock = preview.root.lock(WAIT)?;
        let root = (&preview.root, &lock);
        let done = restore::run(
            root,
            &preview.target,
            &preview.plan,
            preview.root.limits,
            &mut || {},
        );
        let (_, outcome) = done?;
        let mut text = Vec::new();
        show::outcome(&mut text, &outcome)?;
        text.extend(b"`treelined files undo` takes it back");
        Ok(String::from_utf8(text)?)
    })
    .await
}
