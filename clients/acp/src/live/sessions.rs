//! Branches as sessions of the editor: in the agent's list, and opened.

use super::Live;
use super::commands::{self, Load, branch_id};
use super::go::{open, step, switch};
use super::message::{Message, replaced, span};
use super::replay;
use crate::record::{Place, Recorder};
use anyhow::Context;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};

/// The most sessions of a list whose trees are looked at.
const MAX_TREES: usize = 50;
/// The most branches of a tree that are listed, the last ones.
const MAX_BRANCHES: usize = 20;

#[derive(Deserialize)]
struct Listed<'a> {
    #[serde(borrow)]
    sessions: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    session_id: String,
    #[serde(default)]
    cwd: Value,
}

/// Passes the agent's list of sessions on, with the branches in which none of them ends.
pub(super) async fn list(live: &Live, line: &[u8], recorder: &mut Recorder) {
    let more = with_branches(line, recorder).await;
    // The list of the agent is right without them.
    let more = more.ok().flatten();
    live.tell(more.as_deref().unwrap_or(line));
}

async fn with_branches(line: &[u8], recorder: &mut Recorder) -> anyhow::Result<Option<Vec<u8>>> {
    let listed = Message::read(line).and_then(|message| message.result::<Listed<'_>>());
    let listed = listed.context("no list")?;
    let rows: Vec<Row> = serde_json::from_str(listed.sessions.get())?;
    let mut trees: HashMap<String, (Place, Value)> = HashMap::new();
    let mut ends = HashSet::new();
    for row in rows.into_iter().take(MAX_TREES) {
        // A record may have been deleted.
        if let Ok(Some(place)) = recorder.place(&row.session_id).await {
            ends.extend(step(&place.client, place.leaf.clone()).await?);
            trees.insert(place.session_id.clone(), (place, row.cwd));
        }
    }
    let mut branches = Vec::new();
    for (tree, (place, cwd)) in trees {
        let listed = place.client.list_branches().await?.branches;
        let others = listed
            .iter()
            .filter(|branch| !ends.contains(&branch.tip_id));
        for branch in others.rev().take(MAX_BRANCHES) {
            branches.push(json!({
                "sessionId": branch_id(&tree, &branch.tip_id),
                "cwd": cwd,
                "title": format!("⑂ {}", branch.name),
                "updatedAt": branch.last_activity,
                "_meta": { "treelined": { "session": tree, "entry": branch.tip_id } },
            }));
        }
    }
    let rest = listed.sessions.get().strip_suffix(']');
    let Some(rest) = rest.filter(|_| !branches.is_empty()) else {
        return Ok(None);
    };
    let comma = if rest.trim_end().ends_with('[') {
        ""
    } else {
        ","
    };
    let branches = Value::from(branches).to_string();
    let all = [rest, comma, branches.get(1..).unwrap_or_default()].concat();
    Ok(Some(replaced(
        line,
        span(line, listed.sessions),
        all.as_bytes(),
    )))
}

/// Opens a branch as a session of the editor.
pub(super) async fn load(live: &Live, load: &Load, recorder: &mut Recorder) {
    let opened = opened(live, load, recorder).await;
    live.router().agents.set_unnamed(None);
    match opened {
        Ok(()) => {
            let mut lines = commands::done(&load.id);
            lines.extend(live.router().loaded(load).unwrap_or_default());
            live.tell(&lines);
        }
        Err(error) => live.tell(&commands::refusal(&load.id, &format!("{error:#}"))),
    }
}

async fn opened(live: &Live, load: &Load, recorder: &mut Recorder) -> anyhow::Result<()> {
    let place = recorder.place_in(&load.tree, &load.entry).await?;
    let there = open(live, &load.session, &load.setup, &place, Some(&load.entry)).await?;
    if load.is_told {
        told(live, load, &place).await?;
    }
    let entry = Some(load.entry.clone());
    let begun = recorder
        .begin_at(&there.agent, &place, entry, there.is_text)
        .await;
    if begun.is_err() {
        live.router().agents.give_up(&there.agent);
        return begun;
    }
    switch(live, &load.session, &there.agent);
    Ok(())
}

/// Tells the editor what was said up to the place.
async fn told(live: &Live, load: &Load, place: &Place) -> anyhow::Result<()> {
    let mut since = None::<String>;
    loop {
        let mut page = place.client.get_path().entry_id(&load.entry);
        if let Some(since) = since.take() {
            page = page.since(since);
        }
        let page = page.await?;
        for entry in page.entries {
            let entry: Value = serde_json::from_str(entry.json().get())?;
            for update in replay::updates(&entry) {
                live.tell(&commands::update_line(&load.session, &update));
            }
        }
        since = page.next_cursor;
        if since.is_none() {
            return Ok(());
        }
    }
}
