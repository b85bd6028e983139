//! Sessions of the agent that the conversation has left: they are opened again, closed, or deleted.

use super::Live;
use super::params::{Setup, place_params};
use super::placed::Placed;
use super::tree::step;
use crate::find::words;
use crate::history::{History, without_words_for_calls};
use crate::record::{Place, Recorder};
use anyhow::bail;
use serde_json::json;
use std::time::{Duration, Instant};

/// How long a session stays open after the conversation has left it.
const AGE: Duration = Duration::from_secs(300);
/// The most sessions that stay open after the conversation has left them.
const MOST: usize = 3;
/// How often the relay looks for sessions to close.
pub(super) const LOOK: Duration = Duration::from_secs(30);

/// Finds a session of the agent whose last step is `step`, and opens it if needed. The conversation has left this
/// session in this run, or the session is from an earlier run and the agent replays exactly the recorded messages.
pub(super) async fn at(
    live: &Live,
    editor: &str,
    setup: &Setup,
    recorder: &mut Recorder,
    place: &Place,
    step: Option<String>,
) -> anyhow::Result<Option<String>> {
    let left = live.router().agents.left();
    let mut closed = Vec::new();
    for (agent, is_open) in left {
        let Some(found) = ends_at(recorder, &agent, place, &step).await? else {
            continue;
        };
        if is_open {
            return Ok(Some(agent));
        }
        closed.push((agent, found));
    }
    if step.is_some() {
        for agent in recorder.recorded_in(place).await? {
            let is_known = live.router().agents.is_known(&agent);
            if !is_known && let Some(found) = ends_at(recorder, &agent, place, &step).await? {
                closed.push((agent, found));
            }
        }
    }
    for (agent, found) in closed {
        // If this fails, the caller moves the conversation in another way.
        if open_again(live, editor, setup, &agent, &found)
            .await
            .is_ok()
        {
            return Ok(Some(agent));
        }
        live.router().agents.give_up(&agent);
    }
    Ok(None)
}

/// The position up to which a session of the agent is recorded, if its last step is `step`.
pub(super) async fn ends_at(
    recorder: &mut Recorder,
    agent: &str,
    place: &Place,
    step: &Option<String>,
) -> anyhow::Result<Option<Place>> {
    let Some(found) = recorder.place(agent).await? else {
        return Ok(None);
    };
    let ends = found.session_id == place.session_id
        && self::step(&found.client, found.leaf.clone()).await? == *step;
    Ok(ends.then_some(found))
}

/// Loads a session of the agent that is not open. Fails if the history that the agent replays differs from the
/// record, because the session has then continued without the recorder.
async fn open_again(
    live: &Live,
    editor: &str,
    setup: &Setup,
    agent: &str,
    found: &Place,
) -> anyhow::Result<()> {
    let about = live.router().about();
    // If a history begins with the text of a handoff, it cannot be compared with its record.
    if !about.loads || found.is_text {
        bail!("the agent does not tell the session as it is recorded");
    }
    {
        let mut router = live.router();
        router.agents.mute(agent, editor);
        router.agents.hear(agent);
    }
    let params = place_params(Some(agent), setup);
    live.request("session/load", &params).await?;
    let mut heard = live.router().agents.take_heard(agent);
    without_words_for_calls(&mut heard);
    let mut path = Vec::new();
    if let Some(leaf) = &found.leaf {
        let entries = found.client.get_path().entry_id(leaf).await?.entries;
        path = entries.iter().flat_map(words).collect();
    }
    let mut history = History::of(&heard);
    if history.is_found() || !history.pass_path(&path) || !history.is_found() {
        bail!("the session has gone on elsewhere");
    }
    Ok(())
}

/// Closes sessions that the conversation has left, if the agent can load them again. It closes the sessions that were
/// left long ago. If many remain, it closes the oldest of them too.
pub(super) fn close(live: &Live) {
    let mut router = live.router();
    let about = router.about();
    if !about.closes || !about.loads {
        return;
    }
    let due = router.agents.due_to_close(Instant::now(), AGE, MOST);
    let requests: Vec<_> = due
        .iter()
        .map(|agent| {
            let params = json!({ "sessionId": agent }).to_string();
            // The answer to this request is not needed.
            router.agents.request("session/close", &params).0
        })
        .collect();
    drop(router);
    for request in requests {
        live.send(&request);
    }
}

/// Deletes a session that was made for a move, and its record, if it got no prompt.
pub(super) fn take_back(live: &Live, agent: &str, recorder: &mut Recorder) {
    if discard(live, agent) {
        recorder.forget(agent);
    }
}

/// Deletes a session that was made for a move and got no prompt. If the agent cannot delete it, the files that were
/// made for it are removed. False if the session was not made for a move, or got a prompt.
pub(super) fn discard(live: &Live, agent: &str) -> bool {
    let mut router = live.router();
    let Some(files) = router.agents.take_fresh(agent) else {
        return false;
    };
    if router.about().deletes {
        let params = json!({ "sessionId": agent }).to_string();
        let (request, _) = router.agents.request("session/delete", &params);
        drop(router);
        live.send(&request);
    } else {
        drop(router);
        files.iter().for_each(Placed::remove);
    }
    true
}

/// Removes the files of all sessions that got no prompt, when the agent ends.
pub(super) fn end(live: &Live) {
    let fresh = live.router().agents.all_fresh();
    for agent in fresh {
        let files = live.router().agents.take_fresh(&agent);
        files.iter().flatten().for_each(Placed::remove);
    }
}
