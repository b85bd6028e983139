//! Tree navigation in an editor (`--live`): the relay answers commands, and passes all other messages.
//!
//! In reading order: `lines` reads a stream, `message` the members of a message, `params` those of its params, `about` the promises
//! of both sides, `commands` knows ours, and `router` decides what becomes of a message, with the sessions of `moves` and the
//! questions of `questions`. `view` makes texts of trees, and `replay` what was said there. All these are pure.
//!
//! `answer` answers a command with the recorder, and `tree` reads the recorded one. `go` moves the conversation, `left` takes
//! sessions back, opens them again and closes them, with the files of `placed`, `undo` takes a prompt back, with its files by `files`,
//! `sessions` lists and opens branches as sessions, `fork` makes them, and `store` keeps where it went on. The two threads of the relay pass
//! lines; the recorder's thread answers commands, after the changes that came before.

mod about;
mod answer;
mod commands;
mod files;
mod fork;
mod go;
mod left;
mod lines;
mod message;
mod moves;
mod params;
mod placed;
mod questions;
mod replay;
mod router;
mod sessions;
mod store;
mod tree;
mod undo;
mod view;

pub(crate) use answer::answer;

use crate::envelope::Envelope;
use crate::journal::{Alarm, SideWriter};
use anyhow::{Context, bail};
use commands::{Fork, Job, List, Load};
use files::Files;
use lines::{Lines, Piece};
use router::{FromEditor, Passes, Router};
use serde_json::Value;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use store::Store;
use treelined_client::DaemonArgs;

/// Bytes that are read at a time.
const BLOCK: usize = 64 << 10;
/// The most commands that wait.
const MAX_WAITING: usize = 64;
/// The answer to a command that cannot be carried out now.
const BUSY: &str = "Other commands are not answered yet: try again when they are.";
/// How long the agent may take to answer a request of ours.
const PATIENCE: Duration = Duration::from_secs(120);

type Out = Mutex<Option<Box<dyn Write + Send>>>;

/// The state that the relay's two threads and the recorder's share. Nobody waits for another lock with the router's.
pub(crate) struct Live {
    router: Mutex<Router>,
    editor: Out,
    agent: Out,
    commands: SyncSender<Job>,
    alarm: Alarm,
    store: Store,
    /// The agent's program, as it was started.
    program: PathBuf,
    files: Files,
}

/// The end of the recorder.
pub(crate) struct Answers {
    live: Arc<Live>,
    waiting: Receiver<Job>,
}

impl Live {
    /// `editor`: where the editor reads. `alarm` wakes the recorder. `program`: the agent's, and its name. `daemon`: where the
    /// sessions are.
    pub(crate) fn new(
        state: &Path,
        (program, agent): (PathBuf, &str),
        editor: Box<dyn Write + Send>,
        alarm: Alarm,
        daemon: &DaemonArgs,
    ) -> anyhow::Result<(Arc<Live>, Answers)> {
        let (commands, waiting) = sync_channel(MAX_WAITING);
        let store = Store::open(state, agent)?;
        let mut router = Router::default();
        let recalled = store.clone();
        let recall = move |session: &str| recalled.find(session);
        router.agents.set_recall(Box::new(recall));
        let live = Arc::new(Live {
            router: Mutex::new(router),
            editor: Mutex::new(Some(editor)),
            agent: Mutex::default(),
            commands,
            alarm,
            store,
            program,
            files: Files::new(daemon),
        });
        let answers = Answers {
            live: live.clone(),
            waiting,
        };
        Ok((live, answers))
    }

    /// Says where the agent reads.
    pub(crate) fn set_agent(&self, agent: impl Write + Send + 'static) {
        *unpoisoned(&self.agent) = Some(Box::new(agent));
    }

    /// Passes the editor's lines, and keeps commands back. At the end the agent reads its end.
    pub(crate) fn pass_from_editor(&self, from: impl Read, mut journal: SideWriter) {
        let mut lines = Lines::new(BufReader::with_capacity(BLOCK, from));
        let (mut held, mut refused) = (None, None::<Envelope>);
        while let Ok(Some(piece)) = lines.read() {
            let bytes = lines.bytes();
            let route = match piece {
                Piece::Line => self.router().editor_says(bytes),
                Piece::Part { .. } if refused.is_some() || self.may_not_pass(held.is_some()) => {
                    let envelope = refused.get_or_insert_default();
                    envelope.read(bytes);
                    if piece.goes_on() {
                        continue;
                    }
                    router::too_long(&refused.take().unwrap_or_default().into_message())
                }
                Piece::Part { .. } => FromEditor::passes(),
            };
            let (recorded, sent, goes_on) = match route {
                FromEditor::Passes {
                    recorded,
                    sent,
                    goes_on,
                } => (recorded, sent, goes_on),
                FromEditor::Job(job) => {
                    self.ask(job);
                    continue;
                }
                FromEditor::Answered(lines) => {
                    self.tell(&lines);
                    continue;
                }
                FromEditor::Ends => continue,
            };
            if let Some((editor, agent)) = goes_on {
                self.store.keep(&editor, &agent);
            }
            let recorded = recorded.as_deref().unwrap_or(bytes);
            journal.write(recorded);
            let mut agent = held.take().unwrap_or_else(|| unpoisoned(&self.agent));
            if write(&mut agent, sent.as_deref().unwrap_or(recorded)).is_err() {
                break;
            }
            held = piece.goes_on().then_some(agent);
        }
        drop(held);
        *unpoisoned(&self.agent) = None;
    }

    /// Passes the agent's lines.
    pub(crate) fn pass_from_agent(self: &Arc<Self>, from: impl Read, mut journal: SideWriter) {
        let mut lines = Lines::new(BufReader::with_capacity(BLOCK, from));
        let mut held = None;
        while let Ok(Some(piece)) = lines.read() {
            let bytes = lines.bytes();
            let mut editor = held.take().unwrap_or_else(|| unpoisoned(&self.editor));
            let route = match piece {
                Piece::Line => self.router().agent_says(bytes),
                Piece::Part { .. } => router::FromAgent::default(),
            };
            // Before the bytes, as without commands.
            if !route.is_unrecorded {
                journal.write(bytes);
            }
            let bytes = match &route.passes {
                Passes::Same => bytes,
                Passes::Changed(line) => line,
                Passes::Not => &[],
            };
            let then = route.then.as_deref().unwrap_or_default();
            if write(&mut editor, bytes)
                .and_then(|()| write(&mut editor, then))
                .is_err()
            {
                break;
            }
            if let Some(made) = route.made {
                self.store.remove(&made);
            }
            if let Some(job) = route.job {
                // The answer may have to be written to the editor, so its lock must be free.
                drop(editor);
                self.ask(job);
                continue;
            }
            if let Some(reply) = route.reply {
                // The agent may read only when it has written.
                let live = self.clone();
                std::thread::spawn(move || live.send(&reply));
            }
            // Nothing else may come between the parts of a line.
            held = piece.goes_on().then_some(editor);
        }
        self.router().agents.end();
    }

    /// Whether the id of a line that is too long might have to be changed. `is_begun`: a part of it has passed.
    fn may_not_pass(&self, is_begun: bool) -> bool {
        !is_begun && self.router().agents.has_moved()
    }

    fn ask(&self, job: Job) {
        match self.commands.try_send(job) {
            Ok(()) => self.alarm.ring(),
            // The recorder has ended only if the agent has.
            Err(TrySendError::Full(job) | TrySendError::Disconnected(job)) => {
                self.refuse(&job, BUSY);
            }
        }
    }

    /// Says that a job cannot be done. The editor then gets the agent's own list of sessions.
    fn refuse(&self, job: &Job, text: &str) {
        match job {
            Job::Command(command) => self.tell(&commands::answer(command, text)),
            Job::Load(Load { id, .. })
            | Job::List(List { id, .. })
            | Job::Fork(Fork { id, .. }) => {
                self.tell(&commands::refusal(id, text));
            }
            Job::Sessions(line) => self.tell(line),
        }
    }

    /// Sends lines to the editor.
    fn tell(&self, lines: &[u8]) {
        // An editor that has gone needs no answer.
        let _gone = write(&mut unpoisoned(&self.editor), lines);
    }

    /// Sends lines to the agent.
    fn send(&self, lines: &[u8]) {
        // An agent that has gone ends the relay.
        let _gone = write(&mut unpoisoned(&self.agent), lines);
    }

    /// The program of this name: the agent's, if that has it.
    fn program_of(&self, name: &str) -> PathBuf {
        match self.program.file_name().is_some_and(|file| file == name) {
            true => self.program.clone(),
            false => name.into(),
        }
    }

    fn router(&self) -> MutexGuard<'_, Router> {
        unpoisoned(&self.router)
    }

    /// Makes a request of our own. Returns the result.
    async fn request(&self, method: &str, params: &str) -> anyhow::Result<Value> {
        let (line, response) = self.router().agents.request(method, params);
        self.send(&line);
        let response = tokio::time::timeout(PATIENCE, response).await;
        let response = response.with_context(|| format!("the agent does not answer {method}"))?;
        let response = response.context("the agent has ended")?;
        match moves::outcome(&response) {
            Ok(result) => Ok(result),
            Err(text) => bail!("the agent answers {method} with: {text}"),
        }
    }
}

impl Answers {
    /// Waits for news of the journal, and closes sessions meanwhile that were left long ago.
    pub(crate) async fn wait(&self, news: impl Future<Output = ()>) {
        if !self.live.router().agents.has_left() {
            return news.await;
        }
        let _no_news = tokio::time::timeout(left::LOOK, news).await;
        left::close(&self.live);
    }

    /// Takes back at the end what was made for moves and got no prompt.
    pub(crate) fn end(&self) {
        left::end(&self.live);
    }

    /// The next job that waits.
    pub(crate) fn next(&self) -> Option<(&Answers, Job)> {
        let job = self.waiting.try_recv().ok()?;
        Some((self, job))
    }

    /// Answers all that comes with an error, until the process ends.
    pub(crate) fn refuse(&self, error: &anyhow::Error) {
        let text = format!("This conversation is not recorded any more: {error:#}");
        while let Ok(job) = self.waiting.recv() {
            self.live.refuse(&job, &text);
        }
    }
}

fn write(to: &mut Option<Box<dyn Write + Send>>, bytes: &[u8]) -> io::Result<()> {
    match to {
        Some(to) if !bytes.is_empty() => to.write_all(bytes).and_then(|()| to.flush()),
        Some(_) => Ok(()),
        None => Err(io::ErrorKind::BrokenPipe.into()),
    }
}

fn unpoisoned<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic leaves no partial state.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
