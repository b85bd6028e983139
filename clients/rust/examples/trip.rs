use treelined_client::{Client, Error, EventAnswer, Message, TreeRender};

#[tokio::main]
async fn main() -> Result<(), Error> {
    // The daemon asks before every navigation: cancel it, give a summary of the entries it leaves, or neither.
    let builder = Client::builder().answer_tree(|event, _question| async move {
        let left = event.preparation.entries_to_summarize.unwrap_or_default();
        let ids: Vec<_> = left.iter().map(|entry| entry.id()).collect();
        match event.preparation.user_wants_summary {
            true => EventAnswer::summary(format!("A flight at noon; see {}.", ids.join(", "))),
            false => EventAnswer::none(),
        }
    });
    let client = builder.spawn().await?;
    client.create_session().name("a trip").await?;
    for (id, message) in [
        ("u1", Message::user("Plan a trip to Rome.")),
        ("a1", Message::assistant("By train?")),
        ("u2", Message::user("By plane.")),
        ("a2", Message::assistant("At noon, then.")),
    ] {
        client.append_message(message).entry_id(id).await?;
    }

    // Go back to before "By plane.", whose text is returned for editing.
    let call = client.navigate_tree("u2").summarize(true);
    let moved = call.label("by plane").await?;
    println!("again: {}", moved.editor_text.unwrap_or_default());
    for row in client.get_tree().render(TreeRender::Unicode).await?.nodes {
        let label = row.label.map(|label| format!("[{label}] "));
        let (prefix, label) = (row.prefix.unwrap_or_default(), label.unwrap_or_default());
        println!("{prefix}{label}{}", row.preview);
    }
    if let Err(error) = client.get_entry("nothing").await {
        println!("{:?}: {error}", error.kind());
    }
    client.close().await
}
