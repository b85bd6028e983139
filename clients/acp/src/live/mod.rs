//! Tree navigation in an editor (`--live`): the relay answers commands, and passes all other messages.
//!
//! These modules are pure. `lines` reads a stream. `message` reads the members of a message, and `params` the members
//! of its params. `about` has what both sides promise. `commands` has the relay's commands. `router` decides for each
//! message where it goes; it uses the sessions of `moves`, the questions of `questions`, and the prompts that wait in
//! `held`. `view` shows trees as text, and `replay` makes the history of a path.
//!
//! These modules use the daemon and files. `answer` answers a command, and `tree` reads the recorded tree. `go` moves
//! the conversation. `left` opens, closes and deletes the sessions that it leaves, with the files of `placed`. `undo`
//! takes a prompt back, and `files` restores the files. `sessions` lists branches as sessions and opens them, `fork`
//! makes copies, and `store` remembers where a conversation continued. The relay's two threads pass lines. The
//! recorder's thread answers each command when all messages before it are recorded.

mod about;
mod answer;
mod commands;
mod files;
mod fork;
mod go;
mod held;
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
use std::borrow::Cow;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use store::Store;
use treelined_client::DaemonArgs;

/// The most bytes that are read at a time.
const BLOCK: usize = 64 << 10;
/// The most jobs that wait.
const MAX_WAITING: usize = 64;
/// The answer to a command that comes while too many jobs wait.
const BUSY: &str = "Other commands are not answered yet: try again when they are.";
/// How long the agent may take to answer a request of the relay.
const PATIENCE: Duration = Duration::from_secs(120);

type Out = Mutex<Option<Box<dyn Write + Send>>>;

/// The state that three threads share: the relay's two and the recorder's. A thread that holds the lock of `router`
/// takes no other lock.
pub(crate) struct Live {
    router: Mutex<Router>,
    editor: Out,
    agent: Out,
    /// Writes held prompts to the journal.
    held: Mutex<SideWriter>,
    commands: SyncSender<Job>,
    alarm: Alarm,
    store: Store,
    /// The path of the agent's program, as it was started.
    program: PathBuf,
    files: Files,
}

/// The recorder's end of the queue of jobs.
pub(crate) struct Answers {
    live: Arc<Live>,
    waiting: Receiver<Job>,
}

impl Live {
    /// `editor` writes to the editor. `alarm` wakes the recorder. `program` is the path and the name of the agent's
    /// program. `held` writes held prompts to the journal. `daemon` says which daemon has the sessions.
    pub(crate) fn new(
        state: &Path,
        (program, agent): (PathBuf, &str),
        editor: Box<dyn Write + Send>,
        (alarm, held): (Alarm, SideWriter),
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
            held: Mutex::new(held),
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

    /// Sets the stream that the agent reads.
    pub(crate) fn set_agent(&self, agent: impl Write + Send + 'static) {
        *unpoisoned(&self.agent) = Some(Box::new(agent));
    }

    /// Passes the editor's lines, except commands. When the editor's stream ends, the agent's input is closed.
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
            let Some(sent) = self.routed(route, bytes, &mut journal) else {
                continue;
            };
            let mut agent = held.take().unwrap_or_else(|| unpoisoned(&self.agent));
            if write(&mut agent, &sent).is_err() {
                break;
            }
            held = piece.goes_on().then_some(agent);
        }
        drop(held);
        *unpoisoned(&self.agent) = None;
    }

    /// Records a message of the editor, and returns the bytes for the agent. `None` if the message does not pass.
    fn routed<'a>(
        &self,
        route: FromEditor,
        bytes: &'a [u8],
        journal: &mut SideWriter,
    ) -> Option<Cow<'a, [u8]>> {
        match route {
            FromEditor::Passes {
                recorded,
                sent,
                goes_on,
            } => {
                if let Some((editor, agent)) = goes_on {
                    self.store.keep(&editor, &agent);
                }
                journal.write(recorded.as_deref().unwrap_or(bytes));
                Some(sent.or(recorded).map_or(bytes.into(), Cow::Owned))
            }
            FromEditor::Job(job) => {
                self.ask(job);
                None
            }
            FromEditor::Answered(lines) => {
                self.tell(&lines);
                None
            }
            FromEditor::Ends => None,
        }
    }

    /// Passes the prompt that has waited until the relay opened a session.
    fn opened(&self, session: &str) {
        let prompt = self.router().held.opened(session);
        if let Some(prompt) = prompt {
            self.release(&prompt);
        }
    }

    /// Passes a prompt that was held.
    fn release(&self, line: &[u8]) {
        let route = self.router().editor_says(line);
        let mut journal = unpoisoned(&self.held);
        if let Some(sent) = self.routed(route, line, &mut journal) {
            self.send(&sent);
        }
    }

    /// Passes the agent's lines to the editor.
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
            // The journal is written before the bytes are sent, as without `--live`.
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
                // If the job is refused, the refusal is written to the editor. So the lock of the editor is released
                // first.
                drop(editor);
                self.ask(job);
                continue;
            }
            if let Some(reply) = route.reply {
                // Another thread writes, because the agent may not read its input before this thread has read more of
                // the agent's output.
                let live = self.clone();
                std::thread::spawn(move || live.send(&reply));
            }
            if let Some(prompt) = route.released {
                let live = self.clone();
                std::thread::spawn(move || live.release(&prompt));
            }
            // The lock is kept until the last part of a line, so that nothing comes between the parts.
            held = piece.goes_on().then_some(editor);
        }
        self.router().agents.end();
    }

    /// Whether a line that is too long must not pass, because it may need another session id. The id of such a line
    /// cannot be replaced. `is_begun`: a part of the line has passed already.
    fn may_not_pass(&self, is_begun: bool) -> bool {
        !is_begun && self.router().agents.has_moved()
    }

    fn ask(&self, job: Job) {
        match self.commands.try_send(job) {
            Ok(()) => self.alarm.ring(),
            // The queue is full, or the recorder has ended. The recorder ends only after the agent.
            Err(TrySendError::Full(job) | TrySendError::Disconnected(job)) => {
                self.refuse(&job, BUSY);
            }
        }
    }

    /// Answers a job with an error. If the job adds to the agent's list of sessions, the editor gets that list
    /// unchanged.
    fn refuse(&self, job: &Job, text: &str) {
        match job {
            Job::Command(command) => self.tell(&commands::answer(command, text)),
            Job::Load(Load { id, session, .. }) => {
                self.tell(&commands::refusal(id, text));
                self.opened(session);
            }
            Job::List(List { id, .. }) | Job::Fork(Fork { id, .. }) => {
                self.tell(&commands::refusal(id, text));
            }
            Job::Sessions(line) => self.tell(line),
        }
    }

    /// Sends lines to the editor.
    fn tell(&self, lines: &[u8]) {
        // If the editor has ended, the lines are not needed.
        let _gone = write(&mut unpoisoned(&self.editor), lines);
    }

    /// Sends lines to the agent.
    fn send(&self, lines: &[u8]) {
        // If the agent has ended, the relay ends too.
        let _gone = write(&mut unpoisoned(&self.agent), lines);
    }

    /// The path of a program: the agent's own path if it has this name, else the name.
    fn program_of(&self, name: &str) -> PathBuf {
        match self.program.file_name().is_some_and(|file| file == name) {
            true => self.program.clone(),
            false => name.into(),
        }
    }

    fn router(&self) -> MutexGuard<'_, Router> {
        unpoisoned(&self.router)
    }

    /// Sends a request of the relay to the agent, and returns its result. Fails if the agent answers with an error,
    /// or not within `PATIENCE`.
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
    /// Waits for news of the journal. Meanwhile, closes sessions that the conversation left long ago.
    pub(crate) async fn wait(&self, news: impl Future<Output = ()>) {
        if !self.live.router().agents.has_left() {
            return news.await;
        }
        let _no_news = tokio::time::timeout(left::LOOK, news).await;
        left::close(&self.live);
    }

    /// Removes the files of sessions that got no prompt, when the agent has ended.
    pub(crate) fn end(&self) {
        left::end(&self.live);
    }

    /// The next job, with this queue; `None` if no job waits.
    pub(crate) fn next(&self) -> Option<(&Answers, Job)> {
        let job = self.waiting.try_recv().ok()?;
        Some((self, job))
    }

    /// Answers all further jobs with this error, until the process ends.
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
