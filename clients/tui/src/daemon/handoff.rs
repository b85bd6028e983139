//! Previews a handoff to another agent, and lists the agents that this machine has.

use crate::message::{HandoffPreview, HandoffRequest};
use crate::model::picker::PickerItem;
use crate::operation::Agent;
use crate::text;
use std::os::unix::fs::PermissionsExt;
use treelined_client::{Client, ContinueIn, Error};

/// The agents. A note says which of them this machine has.
pub(super) fn agents() -> Vec<PickerItem> {
    let item = |agent: Agent| PickerItem {
        id: agent.tool.to_owned(),
        text: agent.name.to_owned(),
        note: match agent.program {
            Some(program) if is_on_path(program) => "installed".to_owned(),
            Some(_) => "not installed".to_owned(),
            None => String::new(),
        },
        ..PickerItem::default()
    };
    Agent::ALL.map(item).into()
}

/// Returns whether a program is on the `PATH` of this process.
pub fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found = std::env::split_paths(&path).map(|folder| folder.join(program).metadata());
    found.any(|metadata| {
        metadata.is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    })
}

/// Requests the preview of a handoff, which makes nothing.
pub(super) async fn preview(
    client: &Client,
    request: &HandoffRequest,
) -> Result<HandoffPreview, Error> {
    let call = client
        .continue_session(ContinueIn::from(request.agent.tool))
        .entry_id(&request.entry)
        .learned(request.learned)
        .dry_run(true);
    let answered = match request.unlimited {
        true => call.limit(0).await?,
        false => call.await?,
    };
    let losses = answered.losses.iter();
    let missing = answered.missing.iter().flatten();
    Ok(HandoffPreview {
        messages: answered.messages,
        tokens: answered.tokens,
        losses: losses.map(|loss| text::line(&loss.text)).collect(),
        missing: missing.map(|program| text::line(program)).collect(),
        text: answered.text,
    })
}
