//! Tree navigation in an editor (`--live`): the relay answers commands, and passes all other messages.
//!
//! In reading order: `lines` reads a stream, `message` the members of a message, `commands` knows ours, `router` decides
//! what becomes of a message (pure), `view` makes texts of trees (pure), and `answer` answers a command with the recorder.
//! The two threads of the relay pass lines; the recorder's thread answers commands, behind the changes that came before.

mod answer;
mod commands;
mod lines;
mod message;
mod router;
mod view;

pub(crate) use answer::answer;

use crate::journal::{Alarm, SideWriter};
use commands::Command;
use lines::{Lines, Piece};
use router::{FromEditor, Router};
use std::io::{BufReader, Read, Write};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes that are read at a time.
const BLOCK: usize = 64 << 10;
/// The most commands that wait.
const MAX_WAITING: usize = 64;
/// What a command says that cannot be answered.
const BUSY: &str = "Other commands are not answered yet: try again when they are.";

/// What both threads of the relay and the recorder's share.
pub(crate) struct Live {
    router: Mutex<Router>,
    editor: Mutex<Box<dyn Write + Send>>,
    commands: SyncSender<Command>,
    alarm: Alarm,
}

/// The end of the recorder.
pub(crate) struct Answers {
    live: Arc<Live>,
    waiting: Receiver<Command>,
}

impl Live {
    /// `editor`: where the editor reads. `alarm` wakes the recorder.
    pub(crate) fn new(editor: Box<dyn Write + Send>, alarm: Alarm) -> (Arc<Live>, Answers) {
        let (commands, waiting) = sync_channel(MAX_WAITING);
        let live = Arc::new(Live {
            router: Mutex::default(),
            editor: Mutex::new(editor),
            commands,
            alarm,
        });
        let answers = Answers {
            live: live.clone(),
            waiting,
        };
        (live, answers)
    }

    /// Passes the editor's lines, and keeps commands back.
    pub(crate) fn pass_from_editor(
        &self,
        from: impl Read,
        mut to: impl Write,
        mut journal: SideWriter,
    ) {
        let mut lines = Lines::new(BufReader::with_capacity(BLOCK, from));
        while let Ok(Some(piece)) = lines.read() {
            let bytes = lines.bytes();
            let route = match piece {
                Piece::Line => unpoisoned(&self.router).editor_says(bytes),
                Piece::Part { .. } => FromEditor::Passes,
            };
            if let FromEditor::Command(command) = route {
                self.ask(command);
                continue;
            }
            journal.write(bytes);
            if to.write_all(bytes).and_then(|()| to.flush()).is_err() {
                return;
            }
        }
    }

    /// Passes the agent's lines.
    pub(crate) fn pass_from_agent(&self, from: impl Read, mut journal: SideWriter) {
        let mut lines = Lines::new(BufReader::with_capacity(BLOCK, from));
        let mut held = None;
        while let Ok(Some(piece)) = lines.read() {
            let bytes = lines.bytes();
            // Before the bytes, as without commands.
            journal.write(bytes);
            let mut editor = held.take().unwrap_or_else(|| unpoisoned(&self.editor));
            let passed = match piece {
                Piece::Line => {
                    let route = unpoisoned(&self.router).agent_says(bytes);
                    let bytes = route.instead.as_deref().unwrap_or(bytes);
                    let then = route.then.as_deref().unwrap_or_default();
                    editor
                        .write_all(bytes)
                        .and_then(|()| editor.write_all(then))
                }
                Piece::Part { .. } => editor.write_all(bytes),
            };
            if passed.and_then(|()| editor.flush()).is_err() {
                return;
            }
            // Nothing else may come between the parts of a line.
            if piece == (Piece::Part { is_end: false }) {
                held = Some(editor);
            }
        }
    }

    fn ask(&self, command: Command) {
        match self.commands.try_send(command) {
            Ok(()) => self.alarm.ring(),
            // The recorder has ended only if the agent has.
            Err(TrySendError::Full(command) | TrySendError::Disconnected(command)) => {
                self.answer(&command, BUSY);
            }
        }
    }

    fn answer(&self, command: &Command, text: &str) {
        let lines = commands::answer(command, text);
        let mut editor = unpoisoned(&self.editor);
        // An editor that has gone needs no answer.
        let _gone = editor.write_all(&lines).and_then(|()| editor.flush());
    }
}

impl Answers {
    /// The next command that waits.
    pub(crate) fn next(&self) -> Option<(&Answers, Command)> {
        let command = self.waiting.try_recv().ok()?;
        Some((self, command))
    }

    pub(crate) fn answer(&self, command: &Command, text: &str) {
        self.live.answer(command, text);
    }

    /// Answers all commands that come with an error, until the process ends.
    pub(crate) fn refuse(&self, error: &anyhow::Error) {
        let text = format!("This conversation is not recorded any more: {error:#}");
        while let Ok(command) = self.waiting.recv() {
            self.live.answer(&command, &text);
        }
    }
}

fn unpoisoned<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic leaves no partial state.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
