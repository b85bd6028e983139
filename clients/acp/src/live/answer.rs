//! Answers commands, with the sessions that the recorder has written.

use super::commands::{self, Command, Job, Verb};
use super::tree::{MAX_UP, outline, row_above};
use super::view::Outline;
use super::{Answers, Live, fork, go, sessions, undo};
use crate::journal::Journal;
use crate::record::{Place, Recorder};
use anyhow::{Context, bail};
use std::collections::HashSet;
use treelined_client::{Branch, Client};

/// Does a job. All messages before the job must be recorded already. A failure becomes the text of the answer. If a
/// command asks the user a question, it is answered only after the user has answered.
pub(crate) async fn answer(
    answers: &Answers,
    job: &Job,
    journal: &mut Journal,
    recorder: &mut Recorder,
) {
    let command = match job {
        Job::Command(command) => command,
        Job::Load(load) => return sessions::load(&answers.live, load, recorder).await,
        Job::Sessions(line) => return sessions::add(&answers.live, line, recorder).await,
        Job::List(list) => return sessions::list(&answers.live, list, recorder).await,
        Job::Fork(fork) => return fork::fork(&answers.live, fork, recorder).await,
    };
    let live = &answers.live;
    let text = match command.verb {
        Verb::Back | Verb::Go => {
            let moved = go::go(live, command, journal, recorder).await;
            moved.map(|said| Some(format!("{said} Files and terminals stay as they are.\n")))
        }
        Verb::Undo => undo::undo(live, command, journal, recorder).await,
        _ => text(live, command, recorder).await,
    };
    let text = text.unwrap_or_else(|error| Some(format!("It did not work: {error:#}")));
    if let Some(text) = text {
        live.tell(&commands::answer(command, &text));
    }
}

async fn text(
    live: &Live,
    command: &Command,
    recorder: &mut Recorder,
) -> anyhow::Result<Option<String>> {
    let agent = live.router().agents.agent_or_same(&command.session);
    let place = recorder.place(&agent).await?;
    let Place { client, leaf, .. } = place.context("this conversation is not recorded")?;
    if command.verb == Verb::Label {
        return label(&client, leaf, &command.words).await.map(Some);
    }
    let outline = outline(&client).await?;
    let branches = branches(&client, &outline, leaf.clone()).await?;
    let text = match command.verb {
        Verb::Branches => outline.branches(&branches),
        _ => {
            let at = row_above(&client, &outline, leaf).await?;
            outline.text(at.as_deref())
        }
    };
    let has_choice = branches.len() > 1 && command.words.is_empty();
    let mut router = live.router();
    if !has_choice || !router.has_forms() {
        return Ok(Some(text));
    }
    let asked = router
        .questions
        .ask_for_branch(command, &outline.choices(&branches));
    drop(router);
    let Some(asked) = asked else {
        return Ok(Some(text));
    };
    live.tell(&commands::said(&command.session, &text));
    live.tell(&asked);
    Ok(None)
}

/// The branches of a session. Each comes with an entry: the tip of the branch, or the nearest entry above the tip
/// that has a row in the outline. The boolean says whether the conversation is on the branch.
async fn branches(
    client: &Client,
    outline: &Outline,
    leaf: Option<String>,
) -> anyhow::Result<Vec<(Branch, Option<String>, bool)>> {
    let listed = client.list_branches().await?.branches;
    let tips: HashSet<_> = listed.iter().map(|branch| branch.tip_id.clone()).collect();
    let here = step_among(client, leaf, &tips).await?;
    let mut rows = Vec::new();
    for branch in listed {
        let tip = branch.tip_id.clone();
        let is_here = here.as_ref() == Some(&tip);
        let row = row_above(client, outline, Some(tip)).await?;
        rows.push((branch, row, is_here));
    }
    Ok(rows)
}

/// Goes up from `entry`, over bookkeeping, to the first tip or the first step of the conversation.
async fn step_among(
    client: &Client,
    entry: Option<String>,
    tips: &HashSet<String>,
) -> anyhow::Result<Option<String>> {
    let mut entry = entry;
    for _step in 0..MAX_UP {
        let Some(id) = entry.as_ref().filter(|id| !tips.contains(*id)) else {
            break;
        };
        let above = client.get_entry(id).await?.entry;
        let is_bookkeeping = above.r#type() == "custom" || above.r#type() == "label";
        entry = above
            .parent_id()
            .filter(|_| is_bookkeeping)
            .map(str::to_owned);
    }
    Ok(entry)
}

async fn label(client: &Client, leaf: Option<String>, words: &str) -> anyhow::Result<String> {
    let mut entry = leaf;
    for _step in 0..MAX_UP {
        let Some(id) = entry else { break };
        let found = client.get_entry(&id).await?.entry;
        if found.r#type() == "message" {
            let mut append = client.append_label(&id);
            if !words.is_empty() {
                append = append.label(Some(words));
            }
            append.await?;
            return Ok(match words.is_empty() {
                true => "This place has no label now.".to_owned(),
                false => format!("This place is labelled “{words}”."),
            });
        }
        entry = found.parent_id().map(str::to_owned);
    }
    bail!("there is nothing to label yet")
}
