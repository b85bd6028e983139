//! An agent that keeps its conversation as a tree. It tries one way, goes back, and tries another way.

use std::error::Error;
use treelined_files::embed::{Durability, Sessions};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: embed FOLDER")?;
    let sessions = Sessions::at(folder, Durability::Always);
    let mut session = sessions.create("/home/ada/project")?;
    session.append(&said("user", "Make the test pass.")).await?;
    let first = session.append(&said("user", "Try a retry.")).await?;
    session.append(&said("user", "That hides it.")).await?;
    session.navigate(&first).await?;
    session.append(&said("user", "Find the race.")).await?;
    for message in session.context().await?.messages {
        println!("{}", String::from_utf8(message)?);
    }
    let id = session.id().to_owned();
    session.close().await?;
    let entries = sessions.open(&id).await?.entries().await?;
    println!("{} messages in {id}", entries.len());
    Ok(())
}

fn said(role: &str, text: &str) -> String {
    format!(r#"{{"role": "{role}", "content": "{text}"}}"#)
}
