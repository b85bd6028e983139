//! The journal: a file with the latest messages, so that nothing is lost if the recorder is killed.
//!
//! The relay writes each message to the file before it sends the message on, and the recorder reads the file. Each
//! run has its own file and holds the lock of the file. A line has a message and its sender, or the number of changes
//! that are recorded. The next run completes every journal whose lock is free. Nothing is synced: the file survives
//! the end of the process, but not a failure of the machine.

use crate::conversation::{Change, Conversation, Side};
use crate::envelope::Envelope;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use uuid::Uuid;

/// The folder of the journals, in the folder of the state.
const FOLDER: &str = "journals";
/// The longest message that is recorded, in bytes. The limit is small in unit tests, so that a short message exceeds
/// it.
pub const MAX_MESSAGE: usize = if cfg!(test) { 48 << 10 } else { 48 << 20 };
/// The most bytes of a journal. While the recorder cannot start a daemon, the journal grows.
const MAX_JOURNAL: u64 = 1 << 30;
/// A journal of at least this many bytes is emptied when everything in it is recorded.
const MAX_IDLE: u64 = 256 << 10;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line<'a> {
    #[serde(borrow)]
    Editor(&'a RawValue),
    #[serde(borrow)]
    Agent(&'a RawValue),
    /// The envelope of a message that is too long.
    LongEditor(Value),
    LongAgent(Value),
    /// The first line: the name of the agent's program, and the number of times that the journal was emptied.
    Start {
        #[serde(borrow)]
        agent: Cow<'a, str>,
        emptied: u64,
    },
    /// The number of changes that are recorded since the line `Start`.
    Done(u64),
    /// Messages are missing here.
    Gap,
}

/// The writing end of the file, which both sides and the recorder share.
struct Tail {
    file: File,
    /// The length of the file, in bytes.
    length: u64,
    /// Messages after the last line of the file could not be written.
    has_gap: bool,
}

struct Shared {
    tail: Mutex<Tail>,
    has_news: Notify,
    has_ended: AtomicBool,
}

/// Wakes a reader that waits in `Journal::news`.
pub struct Alarm(Arc<Shared>);

/// Writes the messages of one side to the journal, as the relay passes them.
pub struct SideWriter {
    side: Side,
    shared: Arc<Shared>,
    /// The beginning of the next line, in the form of the journal.
    line: Vec<u8>,
    /// The envelope of the line, if the line is too long.
    long: Option<Envelope>,
    /// The whole lines that are written next.
    lines: Vec<u8>,
}

/// The reading end of a journal, and the changes that its messages make.
pub struct Journal {
    shared: Arc<Shared>,
    path: PathBuf,
    id: Uuid,
    /// The name of the agent's program.
    agent: String,
    reader: BufReader<File>,
    /// The line that was read last, or its beginning.
    line: Vec<u8>,
    /// The length of the whole lines that were read, in bytes.
    read: u64,
    conversation: Conversation,
    /// Changes that were read and are not recorded yet.
    changes: VecDeque<Change>,
    /// The number of times that the journal was emptied.
    emptied: u64,
    /// The number of changes that are recorded since the journal was last emptied.
    done: u64,
    /// The number of changes that the killed run has recorded and that this reader still has to skip.
    skipped: u64,
}

/// The ids of the session and the entries of a change. A change that is made again has the same ids.
#[derive(Clone, Copy)]
pub struct ChangeIds(Uuid);

impl ChangeIds {
    /// Ids for a change that is not in a journal and therefore is never made again.
    pub fn fresh() -> ChangeIds {
        ChangeIds(Uuid::now_v7())
    }

    /// The id of the session that the change makes.
    pub fn session(self) -> String {
        Uuid::new_v5(&self.0, b"session").to_string()
    }

    /// The id of the entry with this name. Names are unique within a change.
    pub fn entry(self, name: &str) -> String {
        let id = Uuid::new_v5(&self.0, name.as_bytes());
        id.simple().to_string().chars().take(16).collect()
    }
}

/// Makes a folder that only the user can read.
pub fn make_folder(path: &Path) -> anyhow::Result<()> {
    let mut builder = fs::DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(path);
    made.with_context(|| format!("make the folder {}", path.display()))
}

impl Journal {
    /// Makes the journal of this run. `agent` is the name of the agent's program. Returns the journal with the writers
    /// for the editor and the agent.
    pub fn create(
        state: &Path,
        agent: String,
    ) -> anyhow::Result<(Journal, SideWriter, SideWriter)> {
        let folder = state.join(FOLDER);
        make_folder(&folder)?;
        // Later ids sort after earlier ones, so the names of the files sort by time.
        let id = Uuid::now_v7();
        let path = folder.join(format!("{id}.jsonl"));
        let mut options = File::options();
        options.append(true).create_new(true).mode(0o600);
        let journal = options
            .open(&path)
            .and_then(|file| file.lock().map(|()| file))
            .and_then(|file| Journal::open(file, path.clone(), id));
        let mut journal = journal.with_context(|| format!("make {}", path.display()))?;
        journal.agent = agent;
        journal.shared.tail().write(&journal.start())?;
        let writer = |side| SideWriter::new(side, &journal.shared);
        let (editor, agent) = (writer(Side::Editor), writer(Side::Agent));
        Ok((journal, editor, agent))
    }

    /// The journals of runs that were killed, the oldest first.
    pub fn unfinished(state: &Path) -> anyhow::Result<Vec<Journal>> {
        let Ok(entries) = fs::read_dir(state.join(FOLDER)) else {
            return Ok(Vec::new());
        };
        let mut paths = Vec::new();
        for entry in entries {
            let path = entry?.path();
            let name = path
                .file_stem()
                .and_then(|stem| stem.to_str()?.parse().ok());
            paths.extend(name.map(|id: Uuid| (id, path)));
        }
        paths.sort_unstable();
        let mut found = Vec::new();
        for (id, path) in paths {
            let opened = Journal::open_unfinished(path.clone(), id);
            found.extend(opened.with_context(|| format!("read {}", path.display()))?);
        }
        Ok(found)
    }

    /// `None` if another run has locked the journal, or has completed and removed it.
    fn open_unfinished(path: PathBuf, id: Uuid) -> io::Result<Option<Journal>> {
        let file = match File::options().append(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        if !path.try_exists()? {
            return Ok(None);
        }
        let mut journal = Journal::open(file, path, id)?;
        journal.read_notes()?;
        Ok(Some(journal))
    }

    fn open(file: File, path: PathBuf, id: Uuid) -> io::Result<Journal> {
        let reader = BufReader::new(File::open(&path)?);
        let length = file.metadata()?.len();
        let tail = Tail {
            file,
            length,
            has_gap: false,
        };
        let shared = Shared {
            tail: Mutex::new(tail),
            has_news: Notify::new(),
            has_ended: AtomicBool::new(false),
        };
        Ok(Journal {
            shared: Arc::new(shared),
            path,
            id,
            agent: String::new(),
            reader,
            line: Vec::new(),
            read: 0,
            conversation: Conversation::default(),
            changes: VecDeque::new(),
            emptied: 0,
            done: 0,
            skipped: 0,
        })
    }

    /// Reads the name of the agent and the number of changes that the killed run has recorded. Reads all lines, since
    /// the last such number may come after messages of later changes.
    fn read_notes(&mut self) -> io::Result<()> {
        while self.read_line()? {
            match serde_json::from_slice(&self.line) {
                Ok(Line::Start { agent, emptied }) => {
                    self.agent = agent.into_owned();
                    self.emptied = emptied;
                }
                Ok(Line::Done(count)) => self.done = count,
                _ => {}
            }
            self.line.clear();
        }
        self.skipped = self.done;
        self.rewind()
    }

    fn start(&self) -> Line<'_> {
        Line::Start {
            agent: Cow::Borrowed(&self.agent),
            emptied: self.emptied,
        }
    }

    fn rewind(&mut self) -> io::Result<()> {
        self.line.clear();
        self.read = 0;
        self.reader.rewind()
    }

    /// Reads the next line into `line`; false if the file has no whole line yet.
    fn read_line(&mut self) -> io::Result<bool> {
        self.reader.read_until(b'\n', &mut self.line)?;
        let is_whole = self.line.ends_with(b"\n");
        if is_whole {
            self.read += self.line.len() as u64;
        }
        Ok(is_whole)
    }

    /// The next change to record; `None` until more messages are written.
    pub fn next_change(&mut self) -> anyhow::Result<Option<Change>> {
        loop {
            while let Some(change) = self.changes.pop_front() {
                match self.skipped.checked_sub(1) {
                    Some(left) => self.skipped = left,
                    None => return Ok(Some(change)),
                }
            }
            if !self.read_line()? {
                return Ok(None);
            }
            let conversation = &mut self.conversation;
            match serde_json::from_slice(&self.line) {
                Ok(Line::Editor(raw)) => self.changes.extend(see(conversation, Side::Editor, raw)),
                Ok(Line::Agent(raw)) => self.changes.extend(see(conversation, Side::Agent, raw)),
                Ok(Line::LongEditor(envelope)) => {
                    self.changes
                        .extend(conversation.see_envelope(Side::Editor, &envelope));
                }
                Ok(Line::LongAgent(envelope)) => {
                    self.changes
                        .extend(conversation.see_envelope(Side::Agent, &envelope));
                }
                Ok(Line::Gap) => conversation.gap(),
                Ok(Line::Start { .. } | Line::Done(_)) => {}
                Err(_) => self.changes.extend(see_torn(conversation, &self.line)),
            }
            self.line.clear();
        }
    }

    /// Call this when no more messages come. Open turns then end as aborted.
    pub fn end(&mut self) {
        self.changes.extend(self.conversation.abort());
    }

    /// Whether the agent has ended. No more of its messages come then.
    pub fn has_ended(&self) -> bool {
        self.shared.has_ended.load(Ordering::Acquire)
    }

    /// The name of the agent's program.
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// An alarm that wakes the reader of this journal.
    pub fn alarm(&self) -> Alarm {
        Alarm(self.shared.clone())
    }

    /// Waits until a message is written, the agent has ended, or an alarm is rung.
    pub async fn news(&self) {
        self.shared.has_news.notified().await;
    }

    /// Notes that the last change is recorded.
    pub fn note_done(&mut self) -> io::Result<()> {
        self.done += 1;
        self.shared.tail().write(&Line::Done(self.done))
    }

    /// The ids for the next change.
    pub fn change_ids(&self) -> ChangeIds {
        let name = format!("{} {}", self.emptied, self.done);
        ChangeIds(Uuid::new_v5(&self.id, name.as_bytes()))
    }

    /// Empties a journal of at least `MAX_IDLE` bytes if all its changes are recorded, and no turn or request is
    /// open.
    pub fn clear_if_idle(&mut self) -> io::Result<()> {
        let shared = self.shared.clone();
        let mut tail = shared.tail();
        let has_more = tail.length != self.read || !self.changes.is_empty();
        if has_more || tail.length < MAX_IDLE || !self.conversation.is_idle() {
            return Ok(());
        }
        tail.file.set_len(0)?;
        tail.length = 0;
        (self.emptied, self.done) = (self.emptied + 1, 0);
        tail.write(&self.start())?;
        drop(tail);
        self.rewind()
    }

    /// Removes the file, when all its changes are recorded.
    pub fn remove(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

impl Alarm {
    pub fn ring(&self) {
        self.0.has_news.notify_one();
    }
}

impl Shared {
    fn tail(&self) -> MutexGuard<'_, Tail> {
        // A panic leaves at most a torn line, and readers skip torn lines.
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tail {
    fn write(&mut self, line: &Line<'_>) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.append(&text)
    }

    /// Appends whole lines, in one write. After a failed write, reads the length of the file again.
    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let written = self.file.write_all(lines);
        self.length = match &written {
            Ok(()) => self.length + lines.len() as u64,
            Err(_) => self.file.metadata()?.len(),
        };
        written
    }

    /// Appends messages. If earlier messages are missing, a line `Gap` comes first.
    fn append_messages(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.length + lines.len() as u64 > MAX_JOURNAL {
            self.has_gap = true;
            return Ok(());
        }
        if self.has_gap {
            // A failed write may have left a part of a line.
            self.append(b"\n")?;
            self.write(&Line::Gap)?;
        }
        self.has_gap = false;
        self.append(lines)
    }
}

impl SideWriter {
    /// Another writer for the same side. It starts with a new line.
    pub fn another(&self) -> SideWriter {
        SideWriter::new(self.side, &self.shared)
    }

    fn new(side: Side, shared: &Arc<Shared>) -> SideWriter {
        SideWriter {
            side,
            shared: shared.clone(),
            line: Vec::new(),
            long: None,
            lines: Vec::new(),
        }
    }

    /// Writes the lines that these bytes complete. Call this before the bytes are sent on. If a line cannot be
    /// written, for instance because the disk is full, the record has a gap, and the conversation continues.
    pub fn write(&mut self, bytes: &[u8]) {
        self.lines.clear();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.add(piece);
        }
        if self.lines.is_empty() {
            return;
        }
        let mut tail = self.shared.tail();
        if tail.append_messages(&self.lines).is_err() {
            tail.has_gap = true;
        }
        drop(tail);
        self.shared.has_news.notify_one();
    }

    /// Adds bytes to the line that is being read.
    fn add(&mut self, piece: &[u8]) {
        let (text, is_end) = match piece.strip_suffix(b"\n") {
            Some(text) => (text, true),
            None => (piece, false),
        };
        if let Some(envelope) = &mut self.long {
            envelope.read(text);
        } else {
            if self.line.is_empty() {
                self.line.extend_from_slice(self.side.start());
            }
            self.line.extend_from_slice(text);
            if self.line.len() > MAX_MESSAGE {
                let line = std::mem::take(&mut self.line);
                let mut envelope = Envelope::default();
                envelope.read(line.get(self.side.start().len()..).unwrap_or_default());
                self.long = Some(envelope);
            }
        }
        if !is_end {
            return;
        }
        match self.long.take() {
            None => {
                self.lines.append(&mut self.line);
                self.lines.extend_from_slice(b"}\n");
            }
            Some(envelope) => {
                let line = match self.side {
                    Side::Editor => Line::LongEditor(envelope.into_message()),
                    Side::Agent => Line::LongAgent(envelope.into_message()),
                };
                // This cannot fail: the line is a JSON value.
                self.lines
                    .extend(serde_json::to_vec(&line).unwrap_or_default());
                self.lines.push(b'\n');
            }
        }
    }
}

impl Side {
    /// The beginning of a line of the journal.
    fn start(self) -> &'static [u8] {
        match self {
            Side::Editor => b"{\"editor\":",
            Side::Agent => b"{\"agent\":",
        }
    }
}

impl Drop for SideWriter {
    fn drop(&mut self) {
        // The journal ends with the agent's writer, since the editor's thread may still wait for input.
        if self.side == Side::Agent {
            self.shared.has_ended.store(true, Ordering::Release);
            self.shared.has_news.notify_one();
        }
    }
}

/// The changes that a message makes. If the message cannot be read as JSON, because it is nested too deeply or has
/// half of a surrogate pair, only its envelope is read.
fn see(conversation: &mut Conversation, from: Side, raw: &RawValue) -> Vec<Change> {
    match serde_json::from_str::<Value>(raw.get()) {
        Ok(message) => conversation.see(from, &message),
        Err(_) => see_bytes(conversation, from, raw.get().as_bytes()),
    }
}

/// The changes that a line makes if it is not JSON. Such a line is output that is not a message, a message with bytes
/// that are not UTF-8, or the part of a message before a gap.
fn see_torn(conversation: &mut Conversation, line: &[u8]) -> Vec<Change> {
    let sides = [Side::Editor, Side::Agent].into_iter();
    let found = sides.filter_map(|side| Some((side, line.strip_prefix(side.start())?)));
    let changes = found.flat_map(|(side, message)| see_bytes(conversation, side, message));
    changes.collect()
}

fn see_bytes(conversation: &mut Conversation, from: Side, message: &[u8]) -> Vec<Change> {
    let mut envelope = Envelope::default();
    envelope.read(message);
    conversation.see_envelope(from, &envelope.into_message())
}
