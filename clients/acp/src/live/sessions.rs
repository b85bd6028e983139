//! Shows branches as sessions of the editor: adds them to the list of sessions, and opens them.

use super::Live;
use super::commands::{self, List, Load, branch_id};
use super::go::{begin, open, switch};
use super::message::{Message, replaced, span};
use super::replay;
use super::tree::step;
use crate::record::{Place, Recorder};
use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use treelined_client::Branch;

/// The most sessions whose branches are added to the agent's list.
const MAX_TREES: usize = 50;
/// The number of recorded sessions on a page of the relay's own list.
const PAGE: u64 = 20;
/// The largest number of branches listed per session. The newest ones are listed.
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

/// Answers a request for sessions with a page of the recorded sessions of the agent. Each branch has a row.
pub(super) async fn list(live: &Live, list: &List, recorder: &mut Recorder) {
    let line = match listed(live, list, recorder).await {
        Ok(result) => commands::done(&list.id, &result),
        Err(error) => commands::refusal(&list.id, &format!("{error:#}")),
    };
    live.tell(&line);
}

async fn listed(live: &Live, list: &List, recorder: &mut Recorder) -> anyhow::Result<Value> {
    let client = recorder.client().await?;
    let mut page = client.list_sessions().limit(PAGE);
    if let Some(cwd) = &list.cwd {
        page = page.cwd(cwd);
    }
    if let Some(cursor) = &list.cursor {
        page = page.cursor(cursor);
    }
    let page = page.await?;
    let mut rows = Vec::new();
    for row in page.sessions {
        let natives = row.agent_sessions.into_iter().flatten();
        let natives = natives.filter(|native| native.tool.is_none());
        let (mut tree, mut ends) = (None, HashMap::new());
        for native in natives {
            // `place` finds nothing for a session that another agent has recorded, so such a session is left out.
            let place = recorder.place(&native.native_id).await.ok().flatten();
            let place = place.filter(|place| place.session_id == row.session_id);
            if let Some(place) = place {
                let end = step(&place.client, place.leaf.clone()).await?;
                // If the editor session with this id now continues in another agent session, the id does not stand for
                // this branch.
                let on = live.store.find(&native.native_id);
                let is_same = on.is_none_or(|on| on == native.native_id);
                let end = end.filter(|_| is_same);
                ends.extend(end.map(|end| (end, native.native_id)));
                tree = Some(place);
            }
        }
        let Some(tree) = tree else { continue };
        let branches = tree.client.list_branches().await?.branches;
        let mark = if branches.len() > 1 { "⑂ " } else { "" };
        for branch in branches.iter().rev().take(MAX_BRANCHES) {
            let own = || branch_id(&row.session_id, &branch.tip_id);
            let id = ends.get(&branch.tip_id).cloned().unwrap_or_else(own);
            rows.push(row_of(&row.session_id, branch, &id, mark, json!(row.cwd)));
        }
    }
    let mut result = json!({ "sessions": rows });
    if let (Some(cursor), Some(members)) = (page.next_cursor, result.as_object_mut()) {
        members.insert("nextCursor".to_owned(), json!(cursor));
    }
    Ok(result)
}

/// The row of a branch in a list of sessions.
fn row_of(tree: &str, branch: &Branch, id: &str, mark: &str, cwd: Value) -> Value {
    json!({
        "sessionId": id,
        "cwd": cwd,
        "title": format!("{mark}{}", branch.name),
        "updatedAt": branch.last_activity,
        "_meta": { "treelined": { "session": tree, "entry": branch.tip_id } },
    })
}

/// Sends the agent's list of sessions to the editor. If a conversation has several branches, each branch has one row: the row of
/// the agent's session that ends there, or a row that the relay adds. The title is the title of the branch.
pub(super) async fn add(live: &Live, line: &[u8], recorder: &mut Recorder) {
    let more = with_branches(live, line, recorder).await;
    // If the branches cannot be found, the editor gets the agent's list unchanged.
    let more = more.ok().flatten();
    live.tell(more.as_deref().unwrap_or(line));
}

async fn with_branches(
    live: &Live,
    line: &[u8],
    recorder: &mut Recorder,
) -> anyhow::Result<Option<Vec<u8>>> {
    let listed = Message::read(line).and_then(|message| message.result::<Listed<'_>>());
    let listed = listed.context("no list")?;
    let all: Vec<&RawValue> = serde_json::from_str(listed.sessions.get())?;
    let rows: Vec<ListedRow> = all
        .iter()
        .map(|raw| ListedRow::read(live, raw))
        .collect::<anyhow::Result<_>>()?;
    let continued: HashSet<String> = rows.iter().filter_map(ListedRow::continued).collect();
    // A session that was made for a move and got no prompt is left out, because its branch already has a row. A session
    // is also left out if the editor session of another row continues in it, because the other row opens it.
    let is_shown = |row: &ListedRow| {
        let id = &row.row.session_id;
        !live.router().agents.is_unprompted(id) && !continued.contains(id)
    };
    let mut shown: Vec<ListedRow> = rows.into_iter().filter(is_shown).collect();
    let has_less = shown.len() < all.len();
    let mut trees: HashMap<String, (Place, Value)> = HashMap::new();
    for row in shown.iter_mut().take(MAX_TREES) {
        // The record of a session may be deleted.
        if let Ok(Some(place)) = recorder.place(&row.agent).await {
            let end = step(&place.client, place.leaf.clone()).await?;
            row.end = end.map(|end| (place.session_id.clone(), end));
            trees.insert(place.session_id.clone(), (place, row.row.cwd.clone()));
        }
    }
    let mut branches = Vec::new();
    for (tree, (place, cwd)) in trees {
        let listed = place.client.list_branches().await?.branches;
        let mark = if listed.len() > 1 { "⑂ " } else { continue };
        for branch in listed.iter().rev().take(MAX_BRANCHES) {
            let id = branch_id(&tree, &branch.tip_id);
            let own = row_of(&tree, branch, &id, mark, cwd.clone());
            let end = Some((tree.clone(), branch.tip_id.clone()));
            let mut is_listed = false;
            for row in shown.iter_mut().filter(|row| row.end == end) {
                row.name(&own);
                is_listed = true;
            }
            branches.extend((!is_listed).then_some(own));
        }
    }
    let has_names = shown.iter().any(|row| row.is_named);
    if branches.is_empty() && !has_less && !has_names {
        return Ok(None);
    }
    let shown = shown.into_iter().map(|row| row.raw);
    let shown: Vec<String> = shown.chain(branches.iter().map(Value::to_string)).collect();
    let shown = format!("[{}]", shown.join(","));
    Ok(Some(replaced(
        line,
        span(line, listed.sessions),
        shown.as_bytes(),
    )))
}

/// A row of the agent's list.
struct ListedRow {
    raw: String,
    row: Row,
    /// The session of the agent in which the session of the row continues.
    agent: String,
    /// The tree, and the tip of the branch that the row opens.
    end: Option<(String, String)>,
    is_named: bool,
}

impl ListedRow {
    fn read(live: &Live, raw: &RawValue) -> anyhow::Result<Self> {
        let row: Row = serde_json::from_str(raw.get())?;
        let agent = live.store.find(&row.session_id);
        Ok(Self {
            raw: raw.get().to_owned(),
            agent: agent.unwrap_or_else(|| row.session_id.clone()),
            row,
            end: None,
            is_named: false,
        })
    }

    /// The other session of the agent in which the session of the row continues.
    fn continued(&self) -> Option<String> {
        (self.agent != self.row.session_id).then(|| self.agent.clone())
    }

    /// Gives the row the title of its branch. Agents name all branches of a conversation by its first prompt.
    fn name(&mut self, branch: &Value) {
        let Ok(Value::Object(mut members)) = serde_json::from_str(&self.raw) else {
            return;
        };
        let of = |place: &str| branch.pointer(place).cloned().unwrap_or_default();
        members.insert("title".to_owned(), of("/title"));
        match members.entry("_meta").or_insert_with(|| json!({})) {
            Value::Object(about) => {
                about.insert("treelined".to_owned(), of("/_meta/treelined"));
            }
            about => *about = of("/_meta"),
        }
        self.raw = Value::Object(members).to_string();
        self.is_named = true;
    }
}

/// Opens a branch as an editor session, and answers the editor's request.
pub(super) async fn load(live: &Live, load: &Load, recorder: &mut Recorder) {
    let opened = opened(live, load, recorder).await;
    live.router().agents.set_unnamed(None);
    match opened {
        Ok(mut about) => {
            if let Some(members) = about.as_object_mut() {
                members.remove("sessionId");
            }
            let mut lines = commands::done(&load.id, &about);
            let announced = live.router().loaded(&load.session, &load.setup, None);
            lines.extend(announced.unwrap_or_default());
            live.tell(&lines);
        }
        Err(error) => live.tell(&commands::refusal(&load.id, &format!("{error:#}"))),
    }
    live.opened(&load.session);
}

async fn opened(live: &Live, load: &Load, recorder: &mut Recorder) -> anyhow::Result<Value> {
    let agent = live.router().agents.agent_or_same(&load.session);
    let place = match (recorder.place(&agent).await?, &load.branch) {
        (Some(place), _) => place,
        (None, Some((tree, entry))) => recorder.place_in(tree, entry).await?,
        (None, None) => bail!("this session is not recorded, and the agent loads none"),
    };
    let entry = place.leaf.clone();
    let at = entry.as_deref();
    let there = open(live, &load.session, &load.setup, recorder, &place, at).await?;
    if let Some(entry) = entry.as_ref().filter(|_| load.replays) {
        replay_to(live, &load.session, &place, entry).await?;
    }
    begin(live, recorder, &there, &place, entry).await?;
    switch(live, &load.session, &there.agent, recorder);
    // The agent has perhaps not opened this session in this run, so the session is marked as closed.
    live.router().agents.set_closed(&agent);
    Ok(match there.about {
        about @ Value::Object(_) => about,
        _ => json!({}),
    })
}

/// Sends the history up to an entry to the editor.
async fn replay_to(live: &Live, session: &str, place: &Place, entry: &str) -> anyhow::Result<()> {
    let mut since = None::<String>;
    loop {
        let mut page = place.client.get_path().entry_id(entry);
        if let Some(since) = since.take() {
            page = page.since(since);
        }
        let page = page.await?;
        for entry in page.entries {
            let entry: Value = serde_json::from_str(entry.json().get())?;
            for update in replay::updates(&entry) {
                live.tell(&commands::update_line(session, &update));
            }
        }
        since = page.next_cursor;
        if since.is_none() {
            return Ok(());
        }
    }
}
