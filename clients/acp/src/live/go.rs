//! Moves the conversation: the editor's session continues in another session of the agent.

use super::Live;
use super::commands::{Command, Verb};
use super::left;
use super::params::{Setup, place_params};
use super::placed::Placed;
use super::router;
use super::tree::{MAX_UP, outline, row_above, step, up_to};
use super::view::Outline;
use crate::find::member;
use crate::journal::Journal;
use crate::record::{Place, Recorder};
use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::Duration;
use treelined_client::{Client, ContinueIn, Entry};

/// How long the agent may take to end a turn that is cancelled.
const END_OF_TURN: Duration = Duration::from_secs(30);
/// How often the relay checks whether the turn has ended.
const LOOK: Duration = Duration::from_millis(20);

/// The position to which the conversation goes.
struct Target {
    /// The last entry of the path there. `None`: the empty position.
    entry: Option<String>,
    words: String,
}

/// The session of the agent in which the conversation continues.
pub(super) struct There {
    pub(super) agent: String,
    /// Whether the agent gets the conversation as text.
    pub(super) is_text: bool,
    /// The agent's answer to the request that opened the session.
    pub(super) about: Value,
    words: String,
}

/// Moves the conversation to the target of a command. If this fails, the conversation stays where it is.
pub(super) async fn go(
    live: &Live,
    command: &Command,
    journal: &mut Journal,
    recorder: &mut Recorder,
) -> anyhow::Result<String> {
    live.router().set_moving(&command.session, true);
    let moved = moved(live, command, journal, recorder).await;
    let mut router = live.router();
    router.agents.set_unnamed(None);
    router.set_moving(&command.session, false);
    moved
}

async fn moved(
    live: &Live,
    command: &Command,
    journal: &mut Journal,
    recorder: &mut Recorder,
) -> anyhow::Result<String> {
    let agent = live.router().agents.agent_or_same(&command.session);
    let place = recorder.place(&agent).await?;
    let place = place.context("this conversation is not recorded")?;
    let target = target(&place, command).await?;
    let step = step(&place.client, target.entry.clone()).await?;
    end_turn(live, &agent).await?;
    crate::make_changes(journal, recorder).await?;
    let place = recorder
        .place(&agent)
        .await?
        .context("this conversation is not recorded")?;
    if step == self::step(&place.client, place.leaf.clone()).await? {
        bail!("the conversation is already at this position");
    }
    let setup = live.router().setup(&command.session);
    let setup = setup.context("the editor has not said in which folder the session is")?;
    if let Some(left) = left::at(live, &command.session, &setup, recorder, &place, step).await? {
        place.client.set_leaf(target.entry.as_deref()).await?;
        // The settings may have changed since the conversation left the session.
        live.router().agents.mute(&left, &command.session);
        let mut there = There::of(left, "The agent continues its own session of this branch.");
        let failures = settings(live, &command.session, &mut there).await;
        switch(live, &command.session, &there.agent, recorder);
        return Ok(notice(&target, &format!("{}{failures}", there.words)));
    }
    let entry = target.entry.as_deref();
    let mut there = open(live, &command.session, &setup, recorder, &place, entry).await?;
    let failures = settings(live, &command.session, &mut there).await;
    let entry = target.entry.clone();
    begin(live, recorder, &there, &place, entry).await?;
    switch(live, &command.session, &there.agent, recorder);
    Ok(notice(&target, &format!("{}{failures}", there.words)))
}

fn notice(target: &Target, words: &str) -> String {
    format!("— {} —\n\n{words}", target.words)
}

/// Lets the editor's session continue in the session `agent`. If the session of the agent that the conversation leaves
/// got no prompt, it is deleted.
pub(super) fn switch(live: &Live, editor: &str, agent: &str, recorder: &mut Recorder) {
    let old = live.router().agents.agent_or_same(editor);
    live.router().agents.switch(editor, agent);
    // If the ids differ, the change is written to disk only with the next prompt, because the session `agent` has
    // nothing new until then.
    if editor == agent {
        live.store.remove(editor);
    }
    if old != agent {
        left::take_back(live, &old, recorder);
    }
    left::close(live);
}

async fn target(place: &Place, command: &Command) -> anyhow::Result<Target> {
    let outline = outline(&place.client).await?;
    match command.verb {
        Verb::Back => back(place, &outline, &command.words).await,
        Verb::Undo => back(place, &outline, "").await,
        _ => forward(&place.client, &outline, &command.words).await,
    }
}

/// The prompt that `/undo` takes back. If a turn is running, ends it first.
pub(super) async fn last_prompt(
    live: &Live,
    agent: &str,
    journal: &mut Journal,
    recorder: &mut Recorder,
) -> anyhow::Result<(Place, String)> {
    end_turn(live, agent).await?;
    crate::make_changes(journal, recorder).await?;
    let place = recorder.place(agent).await?;
    let place = place.context("this conversation is not recorded")?;
    let outline = outline(&place.client).await?;
    let at = row_above(&place.client, &outline, place.leaf.clone()).await?;
    let prompt = outline.prompts_up(at.as_deref()).next();
    let prompt = prompt.context("there are 0 prompts before this position")?;
    let id = prompt.id().to_owned();
    Ok((place, id))
}

/// The position before a prompt of the path.
async fn back(place: &Place, outline: &Outline, words: &str) -> anyhow::Result<Target> {
    let count = match words {
        "" => 1,
        words => words
            .parse::<usize>()
            .ok()
            .filter(|count| *count > 0)
            .context("give the number of prompts to go back, such as /back 2")?,
    };
    let at = row_above(&place.client, outline, place.leaf.clone()).await?;
    let prompts: Vec<_> = outline.prompts_up(at.as_deref()).collect();
    let Some(prompt) = prompts.get(count - 1) else {
        bail!("there are {} prompts before this position", prompts.len());
    };
    let entry = place.client.get_entry(prompt.id()).await?.entry;
    Ok(Target {
        entry: entry.parent_id().map(str::to_owned),
        words: format!("back before {prompt}"),
    })
}

/// The position after a prompt and its answer, at a label, or at an entry.
async fn forward(client: &Client, outline: &Outline, words: &str) -> anyhow::Result<Target> {
    let row = match words.parse::<usize>() {
        Ok(number) => outline.prompt(number),
        Err(_) => outline.labelled(words),
    };
    if let (None, Ok(found)) = (row, client.get_entry(words).await) {
        let id = found.entry.id().to_owned();
        let above = row_above(client, outline, Some(id.clone())).await?;
        let prompt = outline.prompts_up(above.as_deref()).next();
        let prompt = prompt.context("there is no prompt before this position")?;
        return Ok(Target {
            entry: Some(id),
            words: format!("after {prompt}"),
        });
    }
    let row = row.with_context(|| match words {
        "" => "name a prompt by its number in /tree, or a label, such as /go 3".to_owned(),
        words => format!("there is no {words:?}: name a prompt by its number in /tree, or a label"),
    })?;
    let entry = match row.is_prompt() {
        true => end_of_turn(client, row.id()).await?,
        false => row.id().to_owned(),
    };
    Ok(Target {
        entry: Some(entry),
        words: format!("after {row}"),
    })
}

/// The last entry of the turn that a prompt begins. If an entry has several children, the newest child counts.
async fn end_of_turn(client: &Client, prompt: &str) -> anyhow::Result<String> {
    let mut at = prompt.to_owned();
    for _step in 0..MAX_UP {
        let below = client.get_children(Some(&at)).await?.entries;
        let is_of_turn = |entry: &&Entry| {
            role(entry).is_some_and(|role| role != "user") || (is_note(entry) && !is_record(entry))
        };
        match below.iter().rfind(is_of_turn) {
            Some(next) => next.id().clone_into(&mut at),
            None => break,
        }
    }
    Ok(at)
}

pub(super) fn role(entry: &Entry) -> Option<String> {
    let role = member(entry, "message")?.get("role")?.as_str()?.to_owned();
    Some(role)
}

fn is_note(entry: &Entry) -> bool {
    entry.r#type() == "custom"
}

/// Whether an entry is the beginning of a record. The entries below it belong to another branch.
fn is_record(entry: &Entry) -> bool {
    member(entry, "customType") == Some(json!("acp.session"))
}

/// Begins the record of a session of the agent at a position. If this fails, the session is deleted.
pub(super) async fn begin(
    live: &Live,
    recorder: &mut Recorder,
    there: &There,
    place: &Place,
    entry: Option<String>,
) -> anyhow::Result<()> {
    let begun = recorder
        .begin_at(&there.agent, place, entry, there.is_text)
        .await;
    if begun.is_err() {
        live.router().agents.give_up(&there.agent);
        left::take_back(live, &there.agent, recorder);
    }
    begun.map(|_| ())
}

/// Cancels the turn that runs in a session of the agent, and waits for its end.
async fn end_turn(live: &Live, agent: &str) -> anyhow::Result<()> {
    if !live.router().agents.is_running(agent) {
        return Ok(());
    }
    let lines = live.router().agents.cancel(agent);
    live.send(&lines);
    let ended = async {
        while live.router().agents.is_running(agent) {
            tokio::time::sleep(LOOK).await;
        }
    };
    let ended = tokio::time::timeout(END_OF_TURN, ended).await;
    ended.context("the agent does not end its turn")
}

/// Opens a session of the agent that has the conversation up to an entry.
pub(super) async fn open(
    live: &Live,
    editor: &str,
    setup: &Setup,
    recorder: &mut Recorder,
    place: &Place,
    entry: Option<&str>,
) -> anyhow::Result<There> {
    let is_answer = |entry: &Entry| role(entry).is_some_and(|role| role == "assistant");
    let answered = up_to(&place.client, entry.map(str::to_owned), is_answer).await?;
    let Some(entry) = entry.filter(|_| answered.is_some()) else {
        let (agent, about) = make(live, editor, "session/new", None, setup).await?;
        let words = "The agent begins an empty conversation.".to_owned();
        return Ok(There {
            agent,
            is_text: false,
            about,
            words,
        });
    };
    let tool = tool(live);
    let mut failure = String::new();
    if let Some(tool) = tool {
        match native(live, editor, setup, place, entry, tool).await {
            Ok(there) => return Ok(there),
            Err(error) => {
                failure = format!(" (The agent's own session could not be made: {error:#}.)")
            }
        }
    }
    if let Some(there) = copied(live, editor, setup, recorder, place, entry).await? {
        return Ok(there);
    }
    let mut there = with_text(live, editor, setup, place, entry).await?;
    there.words.push_str(&failure);
    Ok(there)
}

/// Lets the agent copy a session that ends at an entry and is in use, for instance by another session of the editor.
/// `None` if there is no such session, or the agent does not copy it.
async fn copied(
    live: &Live,
    editor: &str,
    setup: &Setup,
    recorder: &mut Recorder,
    place: &Place,
    entry: &str,
) -> anyhow::Result<Option<There>> {
    if !live.router().about().forks {
        return Ok(None);
    }
    let step = step(&place.client, Some(entry.to_owned())).await?;
    for source in recorder.recorded_in(place).await? {
        if !live.router().agents.is_in_use(&source) {
            continue;
        }
        let Some(found) = left::ends_at(recorder, &source, place, &step).await? else {
            continue;
        };
        let Ok((agent, about)) = make(live, editor, "session/fork", Some(&source), setup).await
        else {
            continue;
        };
        return Ok(Some(There {
            agent,
            is_text: found.is_text,
            about,
            words: "The agent has copied its session.".to_owned(),
        }));
    }
    Ok(None)
}

/// Lets the agent make a session. Its first prompt gets the conversation up to an entry as a text.
async fn with_text(
    live: &Live,
    editor: &str,
    setup: &Setup,
    place: &Place,
    entry: &str,
) -> anyhow::Result<There> {
    let handed = place
        .client
        .continue_session(ContinueIn::Text)
        .entry_id(entry);
    let handed = handed.await?;
    let text = handed
        .text
        .context("the daemon returned no text of the conversation")?;
    let (agent, about) = make(live, editor, "session/new", None, setup).await?;
    let uri = format!("treelined:{}/{entry}", place.session_id);
    let block = match live.router().about().embeds {
        true => json!({ "type": "resource", "resource": {
            "uri": uri, "mimeType": "text/markdown", "text": text } }),
        // The marks separate the text from the prompt.
        false => {
            let marked = format!("<context ref=\"{uri}\">\n{text}</context>\n");
            json!({ "type": "text", "text": marked })
        }
    };
    live.router().agents.set_handoff(&agent, block.to_string());
    let losses = lost(handed.losses.iter().map(|loss| loss.text.as_str()));
    Ok(There {
        agent,
        is_text: true,
        about,
        words: format!(
            "The agent gets what was said before as text, with your next prompt.{losses}"
        ),
    })
}

fn lost<'a>(losses: impl Iterator<Item = &'a str>) -> String {
    let losses: Vec<_> = losses.collect();
    match losses.is_empty() {
        true => String::new(),
        false => format!(" It lacks something: {}.", losses.join(", ")),
    }
}

/// Lets the agent make a session by a method: a new one, or a copy of `source`. Returns its id and the agent's answer.
async fn make(
    live: &Live,
    editor: &str,
    method: &str,
    source: Option<&str>,
    setup: &Setup,
) -> anyhow::Result<(String, Value)> {
    live.router().agents.set_unnamed(Some(editor));
    let made = live.request(method, &place_params(source, setup)).await?;
    let agent = made.get("sessionId").and_then(Value::as_str);
    let agent = agent
        .context("the agent returned no id of a new session")?
        .to_owned();
    let mut router = live.router();
    if router.agents.is_known(&agent) {
        bail!("the agent gave the id {agent} to a second session");
    }
    router.agents.mute(&agent, editor);
    router.agents.set_fresh(&agent, Vec::new());
    Ok((agent, made))
}

/// The kind of sessions that can be made for this agent. `None` if no such kind is known, or the agent cannot load
/// sessions.
fn tool(live: &Live) -> Option<ContinueIn> {
    let about = live.router().about();
    let name = about.name.to_lowercase();
    let tools = [
        ("opencode", ContinueIn::Opencode),
        ("goose", ContinueIn::Goose),
        ("claude", ContinueIn::ClaudeCode),
        ("codex", ContinueIn::Codex),
    ];
    let found = tools.into_iter().find(|(part, _)| name.contains(part));
    found.filter(|_| about.loads).map(|(_, tool)| tool)
}

/// Makes a session of the agent's own kind, and lets the agent load it.
async fn native(
    live: &Live,
    editor: &str,
    setup: &Setup,
    place: &Place,
    entry: &str,
    tool: ContinueIn,
) -> anyhow::Result<There> {
    let handed = place
        .client
        .continue_session(tool)
        .entry_id(entry)
        .cwd(&setup.cwd);
    let handed = handed.await?;
    let mut native_id = handed.native_id.clone();
    if let Some((_, before)) = handed.steps.split_last() {
        for step in before {
            let said = run(live, step.clone(), handed.cwd.clone()).await?;
            native_id = id_in(&said).or(native_id);
        }
    }
    let agent = native_id.context("no id of the new session was printed")?;
    if let Some(continuation) = &handed.continuation_id {
        let started = place.client.continuation_started(continuation, &agent);
        started.await?;
    }
    let paths = handed.files.iter().map(|file| file.path.clone());
    let placed = paths.filter_map(Placed::look).collect();
    {
        let mut router = live.router();
        router.agents.mute(&agent, editor);
        router.agents.set_fresh(&agent, placed);
    }
    let loaded = live
        .request("session/load", &place_params(Some(&agent), setup))
        .await;
    let about = match loaded {
        Ok(about) => about,
        Err(error) => {
            live.router().agents.give_up(&agent);
            left::discard(live, &agent);
            return Err(error);
        }
    };
    let losses = lost(handed.losses.iter().map(|loss| loss.text.as_str()));
    Ok(There {
        agent,
        is_text: false,
        about,
        words: format!("The agent has what was said before.{losses}"),
    })
}

/// Runs a program of the agent to its end, and returns what it has written to stdout.
async fn run(live: &Live, mut argv: Vec<String>, cwd: String) -> anyhow::Result<String> {
    let line = argv.join(" ");
    let program = live.program_of(&argv.remove(0));
    let work = move || {
        let mut command = std::process::Command::new(program);
        command
            .args(argv)
            .current_dir(cwd)
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        command.output()
    };
    let done = tokio::task::spawn_blocking(work).await?;
    let done = done.with_context(|| line.clone())?;
    if !done.status.success() {
        bail!("{line}: {}", done.status);
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// The first word that looks like the id of a session: it has a digit, and only letters, digits, `_` and `-`.
fn id_in(output: &str) -> Option<String> {
    let is_id = |word: &&str| {
        let is_allowed = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
        word.len() >= 8
            && word.chars().all(is_allowed)
            && word.contains(|char: char| char.is_ascii_digit())
    };
    let mut words = output
        .split(|char: char| char.is_whitespace() || matches!(char, '(' | ')' | '"' | '\'' | ':'));
    words.find(is_id).map(str::to_owned)
}

/// Repeats the settings of the editor's session in the session `there`. Returns a text about the settings that
/// failed.
pub(super) async fn settings(live: &Live, editor: &str, there: &mut There) -> String {
    let settings = live.router().settings(editor);
    let mut failures = String::new();
    for (method, params) in settings {
        let params = router::with_session_in(params.get(), &there.agent);
        match live.request(&method, &params).await {
            Ok(result) => there.set(&params, result),
            Err(error) => {
                failures.push_str(&format!(" A setting could not be restored: {error:#}."));
            }
        }
    }
    failures
}

impl There {
    /// A session of the agent that is open already.
    fn of(agent: String, words: &str) -> There {
        There {
            agent,
            is_text: false,
            about: Value::Null,
            words: words.to_owned(),
        }
    }

    /// Adds a setting to the answer that the editor gets about the session.
    fn set(&mut self, params: &str, mut result: Value) {
        let params: Value = serde_json::from_str(params).unwrap_or_default();
        let mode = self.about.pointer_mut("/modes/currentModeId");
        if let (Some(mode), Some(set)) = (mode, params.get("modeId")) {
            mode.clone_from(set);
        }
        let options = result.get_mut("configOptions").map(Value::take);
        if let (Some(options), Some(about)) = (options, self.about.as_object_mut()) {
            about.insert("configOptions".to_owned(), options);
        }
    }
}
