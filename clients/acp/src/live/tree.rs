//! Reads the recorded tree from the daemon.

use super::view::Outline;
use anyhow::bail;
use treelined_client::{Client, Entry, TreeFilter, TreeRender};

/// The number of rows on one page of a tree.
const PAGE: u64 = 5_000;
/// The most entries that are read on the way up to an entry that is looked for.
pub(super) const MAX_UP: usize = 10_000;

pub(super) async fn outline(client: &Client) -> anyhow::Result<Outline> {
    let (mut rows, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let tree = client.get_tree().filter(TreeFilter::NoTools);
        let mut page = tree
            .render(TreeRender::Unicode)
            .prefix_columns(12)
            .limit(PAGE);
        if let Some(cursor) = cursor.take() {
            page = page.cursor(cursor);
        }
        let page = page.await?;
        rows.extend(page.nodes);
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(Outline::of(&rows));
        }
    }
}

/// The nearest entry at or above `entry` that the outline shows.
pub(super) async fn row_above(
    client: &Client,
    outline: &Outline,
    entry: Option<String>,
) -> anyhow::Result<Option<String>> {
    let mut entry = entry;
    for _step in 0..MAX_UP {
        let Some(id) = entry.as_ref().filter(|id| !outline.has(id)) else {
            break;
        };
        let above = client.get_entry(id).await?.entry;
        entry = above.parent_id().map(str::to_owned);
    }
    Ok(entry)
}

/// The nearest step at or above an entry.
pub(super) async fn step(client: &Client, entry: Option<String>) -> anyhow::Result<Option<String>> {
    up_to(client, entry, |entry| {
        !matches!(
            entry.r#type(),
            "custom" | "label" | "session_info" | "usage"
        )
    })
    .await
}

/// The nearest entry at or above an entry for which `is_wanted` is true.
pub(super) async fn up_to(
    client: &Client,
    entry: Option<String>,
    is_wanted: impl Fn(&Entry) -> bool,
) -> anyhow::Result<Option<String>> {
    let mut at = entry;
    for _step in 0..MAX_UP {
        let Some(id) = &at else { return Ok(None) };
        let entry = client.get_entry(id).await?.entry;
        if is_wanted(&entry) {
            return Ok(at);
        }
        at = entry.parent_id().map(str::to_owned);
    }
    bail!("the path up from this position is too long")
}
