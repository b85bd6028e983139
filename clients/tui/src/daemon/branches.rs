//! Names branches, archives them, and brings them back (protocol.md §3.20).

use super::failure::refused;
use crate::message::CommandOutput;
use crate::operation::Operation;
use crate::text;
use treelined_client::{Client, Error, NavigationReason};

pub(super) async fn change(client: &Client, operation: Operation) -> Result<CommandOutput, Error> {
    match operation {
        Operation::NameBranch { entry, name } => name_branch(client, entry, name).await,
        Operation::Archive { entry } => archive(client, entry).await,
        Operation::Unarchive { entry } => unarchive(client, entry).await,
        _ => Ok(CommandOutput::default()),
    }
}

fn output(output: String, has_inverse: bool) -> Result<CommandOutput, Error> {
    Ok(CommandOutput {
        output: Some(output),
        has_inverse,
        ..CommandOutput::default()
    })
}

async fn name_branch(client: &Client, entry: String, name: String) -> Result<CommandOutput, Error> {
    let call = client.name_branch(entry);
    let named = match name.is_empty() {
        true => call.await?,
        false => call.name(name).await?,
    };
    let former = named.inverse.as_ref().map(|inverse| &inverse.params.name);
    let was = match former {
        Some(Some(former)) => format!(" It was “{}”.", text::line(former)),
        _ => String::new(),
    };
    let said = match (&named.name, former) {
        (Some(name), Some(_)) => format!("The branch is “{}”.{was}", text::line(name)),
        (None, Some(_)) => format!("The branch has no name.{was}"),
        (Some(_), None) => "The branch has this name already.".to_owned(),
        (None, None) => "The branch has no name.".to_owned(),
    };
    output(said, former.is_some())
}

async fn archive(client: &Client, entry: String) -> Result<CommandOutput, Error> {
    let archived = client.archive_branch(entry).await?;
    if archived.cancelled {
        let failed = archived.reason == Some(NavigationReason::HookFailed);
        let said = refused("archiving", failed, archived.by, archived.message);
        return output(said, false);
    }
    let said = match (
        &archived.inverse,
        archived.old_leaf_id == archived.new_leaf_id,
    ) {
        (None, _) => "The branch is archived already.",
        (Some(_), true) => "Archived.",
        (Some(_), false) => "Archived. The leaf has moved out of it.",
    };
    output(said.to_owned(), archived.inverse.is_some())
}

async fn unarchive(client: &Client, entry: String) -> Result<CommandOutput, Error> {
    let brought = client.unarchive_branch(entry).await?.entry_ids.len();
    let said = match brought {
        0 => "The entry is in no archived branch.".to_owned(),
        1 => "The branch is back.".to_owned(),
        count => format!("{count} branches are back, one in the other."),
    };
    output(said, brought > 0)
}
