//! Finds rows of `get_tree`, page by page.

use super::daemon::ChildDaemon;
use super::drawing::DrawnRow;
use anyhow::Context;
use serde::Deserialize;
use serde_json::{Value, json};

/// The number of rows on a page.
const PAGE: usize = 10_000;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RowPage {
    nodes: Vec<DrawnRow>,
    next_cursor: Option<String>,
}

/// The rows for which `fits` is true, from all pages. `params` are the params of `get_tree` without
/// the page.
pub(super) fn rows(
    daemon: &mut ChildDaemon,
    mut params: Value,
    fits: impl Fn(&DrawnRow) -> bool,
) -> anyhow::Result<Vec<DrawnRow>> {
    let mut found = Vec::new();
    set(&mut params, "limit", json!(PAGE));
    loop {
        let page = page(daemon, &params)?;
        found.extend(page.nodes.into_iter().filter(&fits));
        match page.next_cursor {
            Some(cursor) => set(&mut params, "cursor", json!(cursor)),
            None => return Ok(found),
        }
    }
}

/// The first rows, at most `limit` of them.
pub(super) fn first(
    daemon: &mut ChildDaemon,
    mut params: Value,
    most: usize,
) -> anyhow::Result<Vec<DrawnRow>> {
    set(&mut params, "limit", json!(most));
    Ok(page(daemon, &params)?.nodes)
}

/// The row of an entry, or else the nearest row above it; `None` if there is none.
pub(super) fn nearest(daemon: &mut ChildDaemon, id: &str) -> anyhow::Result<Option<DrawnRow>> {
    let around = json!({ "around": id });
    Ok(first(daemon, around, 1)?.into_iter().next())
}

/// The row of an entry, even if no tree shows the entry.
pub(super) fn entry_row(daemon: &mut ChildDaemon, id: &str) -> anyhow::Result<DrawnRow> {
    let params = json!({ "filter": "all", "archived": true, "around": id });
    let row = first(daemon, params, 1)?.into_iter().next();
    row.context("find the row of the entry")
}

fn set(params: &mut Value, name: &str, value: Value) {
    if let Some(members) = params.as_object_mut() {
        members.insert(name.to_owned(), value);
    }
}

fn page(daemon: &mut ChildDaemon, params: &Value) -> anyhow::Result<RowPage> {
    let answered = daemon.call("get_tree", &params.to_string())?;
    serde_json::from_str(answered.get()).context("read the answer to get_tree")
}
