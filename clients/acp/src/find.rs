//! Finds, among the entries of a tree, the history that an agent has replayed.

use crate::history::{History, Kind, said};
use crate::turn::Item;
use anyhow::bail;
use serde_json::{Value, json};
use treelined_client::{Client, Entry};

/// The most entries without text that may be between two entries of a history.
const MAX_BETWEEN: usize = 1_000;

/// The entries with which a history is compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Among {
    All,
    Imported,
}

/// Follows a history down from the entry `at`. Returns the last entry that matches the history, or `at` if no entry
/// matches.
pub async fn find(
    client: &Client,
    at: Option<&str>,
    history: &mut History,
    among: Among,
) -> anyhow::Result<Option<String>> {
    let mut at = at.map(str::to_owned);
    while !history.is_found() {
        let Some(next) = child(client, at.as_deref(), history, among).await? else {
            break;
        };
        at = Some(next);
    }
    Ok(at)
}

/// Finds a whole history in a tree. Returns the last entry that matches. The path to `leaf`, where the record ends, is
/// compared first, because other branches may begin with the same words. Then all branches are compared from their
/// roots. If no branch matches, only the end of the path to `leaf` is compared, because an agent may replay the
/// beginning of a path in other words.
pub async fn found(
    client: &Client,
    leaf: Option<&str>,
    history: &mut History,
) -> anyhow::Result<Option<String>> {
    let mut path = Vec::new();
    if let Some(leaf) = leaf {
        let entries = client.get_path().entry_id(leaf).await?.entries;
        path = entries.iter().map(words).collect();
        if history.pass_all(&path) {
            return find(client, Some(leaf), history, Among::All).await;
        }
    }
    let at = find(client, None, history, Among::All).await?;
    if !history.is_begun() && history.pass_path(&path.concat()) {
        return find(client, leaf, history, Among::All).await;
    }
    Ok(at)
}

/// The entry below `at` that has the next words of the history. Entries without words are skipped.
async fn child(
    client: &Client,
    at: Option<&str>,
    history: &mut History,
    among: Among,
) -> anyhow::Result<Option<String>> {
    let mut above: Vec<Option<String>> = vec![at.map(str::to_owned)];
    let mut looked = 0;
    while let Some(parent) = above.pop() {
        looked += 1;
        if looked > MAX_BETWEEN {
            bail!("too many entries without a message follow each other");
        }
        for entry in client.get_children(parent.as_deref()).await?.entries {
            let said = history.compared(words(&entry));
            if said.is_empty() {
                above.push(Some(entry.id().to_owned()));
            } else if (among == Among::All || is_imported(&entry)) && history.pass(&said) {
                return Ok(Some(entry.id().to_owned()));
            }
        }
    }
    Ok(None)
}

/// Goes down through the tool results that an import has written below `at`, and removes the same number of results
/// from `items`. Returns the last of these entries.
pub async fn pass_results(
    client: &Client,
    at: Option<String>,
    items: &mut Vec<(String, Item)>,
) -> anyhow::Result<Option<String>> {
    let is_result = |(_, item): &(String, Item)| matches!(item, Item::Message(message) if message.get("role") == Some(&json!("toolResult")));
    let mut at = at;
    for _step in 0..MAX_BETWEEN {
        let below = client.get_children(at.as_deref()).await?.entries;
        let mut results = below.iter().filter(|entry| is_imported(entry));
        let Some(result) = results.find(|entry| words(entry).is_empty()) else {
            break;
        };
        at = Some(result.id().to_owned());
        if let Some(first) = items.iter().position(is_result) {
            items.remove(first);
        }
    }
    Ok(at)
}

/// Follows the entries that imports have written below `at`, and returns the last one. Stops at an entry that has no
/// such child, or several.
pub async fn imported_tip(client: &Client, at: Option<String>) -> anyhow::Result<Option<String>> {
    let mut at = at;
    loop {
        let below = client.get_children(at.as_deref()).await?.entries;
        match &below
            .iter()
            .filter(|entry| is_imported(entry))
            .collect::<Vec<_>>()[..]
        {
            [only] => at = Some(only.id().to_owned()),
            _ => break,
        }
    }
    Ok(at)
}

/// Whether `leaf` is `at`, or is below it without a message between them.
pub async fn follows(client: &Client, leaf: &str, at: &str) -> anyhow::Result<bool> {
    let mut place = leaf.to_owned();
    for _step in 0..MAX_BETWEEN {
        if place == at {
            return Ok(true);
        }
        let entry = client.get_entry(&place).await?.entry;
        match entry.parent_id() {
            Some(parent) if words(&entry).is_empty() => place = parent.to_owned(),
            _ => return Ok(false),
        }
    }
    Ok(false)
}

pub fn member(entry: &Entry, name: &str) -> Option<Value> {
    let entry: Value = serde_json::from_str(entry.json().get()).ok()?;
    entry.get(name).cloned()
}

/// The parts of an entry's message that are compared; none if the entry is not a message.
pub fn words(entry: &Entry) -> Vec<(Kind, String)> {
    member(entry, "message").map_or_else(Vec::new, |message| said(&message))
}

fn is_imported(entry: &Entry) -> bool {
    member(entry, "origin").is_some()
}
