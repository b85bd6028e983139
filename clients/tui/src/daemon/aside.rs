//! Side questions: asks a question in a background branch beside the conversation, and keeps its
//! answer (protocol.md §3.23).

use crate::text;
use treelined_client::{Client, Error, Message};

/// The group of the branches with such questions.
const GROUP: &str = "btw";

pub(super) async fn ask(client: &Client, question: String) -> Result<String, Error> {
    let leaf = client.get_leaf().await?.leaf_id;
    let call = client.append_message(Message::user(question));
    let call = call.parent_id(leaf.as_deref()).keep_leaf(true).group(GROUP);
    call.await?;
    Ok(
        "Asked beside the conversation: an agent that has the session open can answer there."
            .to_owned(),
    )
}

pub(super) async fn keep(client: &Client, entry: String) -> Result<String, Error> {
    let kept = client.keep_branch(entry).await?;
    let count = kept.entry_ids.len();
    let messages = text::plural(count, "message");
    Ok(match kept.durability.as_str() {
        "none" => "It is in the conversation already.".to_owned(),
        _ => format!("Kept: {count} {messages} at the leaf."),
    })
}
