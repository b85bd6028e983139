//! Answers commands with the sessions of the recorder.

use super::commands::{self, Command, Job, Verb};
use super::view::Outline;
use super::{Answers, go, sessions};
use crate::journal::Journal;
use crate::record::{Place, Recorder};
use anyhow::{Context, bail};
use std::collections::HashSet;
use treelined_client::{Client, TreeFilter, TreeRender};

/// The rows of one page of a tree.
const PAGE: u64 = 5_000;
/// The most entries from one without a row up to one that has a row.
pub(super) const MAX_UP: usize = 10_000;

/// Does a job. What was said before it must be recorded. A failure is the text of the answer.
pub(crate) async fn answer(
    answers: &Answers,
    job: &Job,
    journal: &mut Journal,
    recorder: &mut Recorder,
) {
    let command = match job {
        Job::Command(command) => command,
        Job::Load(load) => return sessions::load(&answers.live, load, recorder).await,
        Job::Sessions(line) => return sessions::list(&answers.live, line, recorder).await,
    };
    let text = match command.verb {
        Verb::Back | Verb::Go => go::go(&answers.live, command, journal, recorder).await,
        _ => text(answers, command, recorder).await,
    };
    let text = text.unwrap_or_else(|error| format!("It did not work: {error:#}"));
    answers.live.tell(&commands::answer(command, &text));
}

async fn text(
    answers: &Answers,
    command: &Command,
    recorder: &mut Recorder,
) -> anyhow::Result<String> {
    let agent = answers.live.router().agents.agent_or_same(&command.session);
    let place = recorder.place(&agent).await?;
    let Place { client, leaf, .. } = place.context("this conversation is not recorded")?;
    match command.verb {
        Verb::Branches => branches(&client, leaf).await,
        Verb::Label => label(&client, leaf, &command.words).await,
        _ => {
            let outline = outline(&client).await?;
            let at = row_above(&client, &outline, leaf).await?;
            Ok(outline.text(at.as_deref()))
        }
    }
}

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

/// The nearest entry at or above this one that has a row.
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

async fn branches(client: &Client, leaf: Option<String>) -> anyhow::Result<String> {
    let outline = outline(client).await?;
    let listed = client.list_branches().await?.branches;
    let tips: HashSet<_> = listed.iter().map(|branch| branch.tip_id.clone()).collect();
    let here = step_among(client, leaf, &tips).await?;
    let mut rows = Vec::new();
    for branch in listed {
        let tip = branch.tip_id.clone();
        let is_here = here.as_ref() == Some(&tip);
        let row = row_above(client, &outline, Some(tip)).await?;
        rows.push((branch, row, is_here));
    }
    Ok(outline.branches(&rows))
}

/// The tip at or above an entry, with nothing but bookkeeping between.
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
