//! Makes copies of sessions, for every agent and up to any message. A copy is a branch of the same tree.

use super::Live;
use super::commands::{self, Fork, branch_of};
use super::go::{There, begin, open, settings};
use crate::record::{Place, Recorder};
use crate::turn::{IDS, PROMPT_ID};
use anyhow::{Context, bail};
use serde_json::{Value, json};

/// Makes a session of the agent that has a conversation up to a message, and answers the editor's request with it.
pub(super) async fn fork(live: &Live, fork: &Fork, recorder: &mut Recorder) {
    let made = forked(live, fork, recorder).await;
    live.router().agents.set_unnamed(None);
    match made {
        Ok(there) => {
            let mut about = there.about;
            if !about.is_object() {
                about = json!({});
            }
            if let Some(members) = about.as_object_mut() {
                members.insert("sessionId".to_owned(), json!(there.agent));
            }
            let mut lines = commands::done(&fork.id, &about);
            let mut router = live.router();
            router.agents.forget(&there.agent);
            router.agents.keep(&there.agent);
            let announced = router.loaded(&there.agent, &fork.setup, Some(&fork.session));
            drop(router);
            lines.extend(announced.unwrap_or_default());
            live.store.remove(&there.agent);
            live.tell(&lines);
        }
        Err(error) => live.tell(&commands::refusal(&fork.id, &format!("{error:#}"))),
    }
}

async fn forked(live: &Live, fork: &Fork, recorder: &mut Recorder) -> anyhow::Result<There> {
    let agent = live.router().agents.agent_or_same(&fork.session);
    let place = match (recorder.place(&agent).await?, branch_of(&fork.session)) {
        (Some(place), _) => place,
        (None, Some((tree, entry))) => recorder.place_in(tree, entry).await?,
        (None, None) => bail!("this conversation is not recorded"),
    };
    let is_running = live.router().agents.is_running(&agent);
    let entry = match (&fork.message, is_running) {
        (None, false) => place.leaf.clone(),
        (at, _) => {
            let path = path(&place).await?;
            match at {
                Some(id) => end_at(&path, id).with_context(|| {
                    format!("no message with the id {id} is recorded in this conversation")
                })?,
                // The turn that runs is not a part of the copy.
                None => path
                    .iter()
                    .rfind(|entry| is(entry, "user"))
                    .and_then(parent),
            }
        }
    };
    let mut there = open(
        live,
        &fork.session,
        &fork.setup,
        recorder,
        &place,
        entry.as_deref(),
    )
    .await?;
    let _of_the_source = settings(live, &fork.session, &mut there).await;
    begin(live, recorder, &there, &place, entry).await?;
    Ok(there)
}

/// The entries from the root to the position.
async fn path(place: &Place) -> anyhow::Result<Vec<Value>> {
    let Some(leaf) = &place.leaf else {
        return Ok(Vec::new());
    };
    let entries = place.client.get_path().entry_id(leaf).await?.entries;
    let entries = entries
        .iter()
        .map(|entry| serde_json::from_str(entry.json().get()));
    Ok(entries.collect::<Result<_, _>>()?)
}

/// The last entry of a copy that ends at the message `id`. If the message is a prompt, this is the entry before it.
/// `None` if no message has the id.
fn end_at(path: &[Value], id: &str) -> Option<Option<String>> {
    let message = |entry: &Value, name: &str| entry.get("message")?.get(name).cloned();
    let has = |entry: &&Value| {
        let ids = message(entry, IDS);
        let mut ids = ids.iter().filter_map(Value::as_array).flatten();
        entry.get("id").and_then(Value::as_str) == Some(id) || ids.any(|of| of == id)
    };
    let of_prompt = |entry: &Value| message(entry, PROMPT_ID) == Some(json!(id));
    let at = path.iter().rposition(|entry| has(&entry));
    let at = at.or_else(|| {
        let answer = path.iter().rposition(of_prompt)?;
        path.get(..answer)?
            .iter()
            .rposition(|entry| is(entry, "user"))
    })?;
    let found = path.get(at)?;
    if is(found, "user") {
        return Some(parent(found));
    }
    // The results of the message's calls, and the notes between them, belong to the copy.
    let rest = path.get(at + 1..).unwrap_or_default();
    let is_other = |entry: &&Value| entry.get("message").is_some() && !is(entry, "toolResult");
    let results = rest.iter().take_while(|entry| !is_other(entry));
    let last = results.filter(|entry| is(entry, "toolResult")).last();
    let end = last.unwrap_or(found).get("id")?.as_str()?;
    Some(Some(end.to_owned()))
}

fn is(entry: &Value, role: &str) -> bool {
    let of = entry.get("message").and_then(|message| message.get("role"));
    of.and_then(Value::as_str) == Some(role)
}

fn parent(entry: &Value) -> Option<String> {
    entry.get("parentId")?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_ends_behind_an_answer_with_its_results_and_before_a_prompt() {
        let entry = |id: &str, parent: Value, message: Value| json!({ "id": id, "parentId": parent, "message": message });
        let note =
            |id: &str, parent: &str| json!({ "id": id, "parentId": parent, "type": "custom" });
        let path = [
            note("n0", ""),
            entry("u1", json!("n0"), json!({ "role": "user" })),
            entry(
                "a1",
                json!("u1"),
                json!({ "role": "assistant", "messageIds": ["m1", "m2"] }),
            ),
            entry("r1", json!("a1"), json!({ "role": "toolResult" })),
            note("n1", "r1"),
            entry("r2", json!("n1"), json!({ "role": "toolResult" })),
            entry(
                "a2",
                json!("r2"),
                json!({ "role": "assistant", "messageIds": ["m3"], "userMessageId": "p1" }),
            ),
            entry(
                "u2",
                json!("a2"),
                json!({ "role": "user", "messageIds": ["p2"] }),
            ),
        ];
        let end = |id: &str| end_at(&path, id).map(|end| end.unwrap_or_default());
        for (id, expected) in [
            ("m1", "r2"),
            ("a1", "r2"),
            ("m2", "r2"),
            ("m3", "a2"),
            ("p1", "n0"),
            ("u1", "n0"),
            ("p2", "a2"),
        ] {
            assert_eq!(end(id).as_deref(), Some(expected), "{id}");
        }
        assert_eq!(end("m4"), None);
        let first = [entry("u", Value::Null, json!({ "role": "user" }))];
        assert_eq!(end_at(&first, "u"), Some(None));
    }
}
