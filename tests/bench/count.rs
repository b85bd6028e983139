//! Runs fixed operations whose instructions are counted (`tests/bench/count`). The server of the daemon runs within
//! this process and answers one request after another. After each operation the program calls [`boundary`], and
//! callgrind writes the count since the previous call.
//!
//! The first argument is a folder for the generated sessions. The names of the operations go to stdout, in order. With
//! a second argument, only the operations with this text in their names run, so that a single operation can be
//! profiled.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use tokio::runtime::Runtime;
use treelined_bench::generate::entry_id;
use treelined_bench::library::{Generated, Library, Shape};
use treelined_core::durability::Durability;
use treelined_files::clock::SystemSource;
use treelined_service::daemon::Daemon;
use treelined_service::daemon::connection::Connection;
use treelined_service::parts::Parts;
use treelined_service::rpc::Dispatcher;
use treelined_service::settings::DaemonSettings;
use treelined_service::stdio::Outbox;

const ENTRIES: u32 = 10_000;
const SESSIONS: u32 = 50;
/// The name of an operation that is not counted.
const SETTING_UP: &str = "-";
/// The beginning of each answer. Of each answer, this number of bytes is kept.
const ANSWER: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":";
const HEAD: usize = 400;
/// The time in which an operation finishes its work in the background.
const PAUSE: Duration = Duration::from_millis(200);

/// Callgrind finds this function by its name (`--dump-before`).
#[inline(never)]
fn boundary(operation: &str) {
    println!("{operation}");
}

/// A name, and requests to an open session, in order.
type Operation = (&'static str, fn(&mut Server) -> Result<()>);

/// Requests to a conversation.
const ON_TALK: [Operation; 12] = [
    ("get_tree, first page of 200", |asked| {
        asked.ask("get_tree", json!({ "limit": 200 }))
    }),
    ("get_tree, first page folded", |asked| {
        asked.ask("get_tree", json!({ "fold": "left", "limit": 200 }))
    }),
    ("get_tree, all rows", |asked| {
        asked.ask("get_tree", json!({ "filter": "all" }))
    }),
    ("get_tree, user-only", |asked| {
        asked.ask("get_tree", json!({ "filter": "user-only" }))
    }),
    ("get_tree, searched", |asked| {
        asked.ask("get_tree", json!({ "query": "naïve parser" }))
    }),
    ("get_context", |asked| asked.ask("get_context", json!({}))),
    ("get_entries", |asked| asked.ask("get_entries", json!({}))),
    ("get_stats", |asked| asked.ask("get_stats", json!({}))),
    ("1k trivial calls", |asked| {
        asked.times(1_000, "get_label", json!({ "entryId": entry_id(3) }))
    }),
    ("append 1k", |asked| {
        let content = "Clear the cache. ".repeat(40);
        let message = json!({ "role": "user", "content": content });
        asked.times(1_000, "append_message", json!({ "message": message }))
    }),
    ("append 1k in the background", |asked| {
        let content = "Clear the cache. ".repeat(40);
        let message = json!({ "role": "user", "content": content });
        let params = json!({ "message": message, "parentId": entry_id(3), "keepLeaf": true });
        asked.times(1_000, "append_message", params)
    }),
    ("fork_session", |asked| {
        asked.ask("fork_session", json!({ "position": "at" }))
    }),
];

/// Requests to a chain. Each answer covers the whole chain.
const ON_CHAIN: [Operation; 2] = [
    ("get_path, chain of 10k", |asked| {
        asked.ask("get_path", json!({}))
    }),
    ("navigate_tree, chain of 10k", |asked| {
        asked.ask("navigate_tree", json!({ "targetId": entry_id(1) }))
    }),
];

/// Requests to a session directory.
const ON_MANY: [Operation; 2] = [
    ("list_sessions, 50 first", |asked| {
        asked.ask("list_sessions", json!({}))
    }),
    ("list_sessions, 50 ten times again", |asked| {
        asked.times(10, "list_sessions", json!({}))
    }),
];

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().context("a folder")?);
    let only = arguments.next().unwrap_or_default();
    let library = Library::new(&folder)?;
    let talk = library.session(Shape::Conversation, ENTRIES)?;
    let chain = library.session(Shape::Chain, ENTRIES)?;

    let world = folder.join("scratch/count");
    let _from_before = std::fs::remove_dir_all(&world);
    for (opened, session, operations) in [
        ("open 10k", talk, ON_TALK.as_slice()),
        ("open a chain of 10k", chain, ON_CHAIN.as_slice()),
    ] {
        let home = world.join(opened);
        let path = put(&home, &session)?;
        let mut asked = Server::new(&home)?;
        done(SETTING_UP);
        asked.ask("open_session", json!({ "path": path }))?;
        done(opened);
        run(&mut asked, operations, &only)?;
    }
    let home = world.join("many");
    for session in library.many(SESSIONS)? {
        put(&home, &session)?;
    }
    let mut asked = Server::new(&home)?;
    done(SETTING_UP);
    run(&mut asked, &ON_MANY, &only)?;
    std::fs::remove_dir_all(&world)?;
    Ok(())
}

fn run(asked: &mut Server, operations: &[Operation], only: &str) -> Result<()> {
    for (name, operation) in operations {
        if name.contains(only) {
            operation(asked)?;
            done(name);
        }
    }
    Ok(())
}

/// A copy of a session in this session directory, since some operations write.
fn put(home: &Path, session: &Generated) -> Result<PathBuf> {
    let project = home.join("--bench--");
    std::fs::create_dir_all(&project)?;
    let to = project.join(session.path.file_name().context("no name")?);
    std::fs::copy(&session.path, &to)?;
    Ok(to)
}

fn done(operation: &str) {
    std::thread::sleep(PAUSE);
    boundary(operation);
}

/// A server and its output.
struct Server {
    runtime: Runtime,
    dispatcher: Dispatcher,
    outbox: Arc<Outbox>,
    answers: Receiver<Vec<u8>>,
    next_id: u64,
}

/// The output of the server. It passes the beginning of each answer to the receiver.
struct AnswerHeads {
    answers: Sender<Vec<u8>>,
    /// The beginning of the line that is being written.
    head: Vec<u8>,
}

impl Write for AnswerHeads {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let missing = HEAD.saturating_sub(self.head.len());
        let len = memchr::memchr(b'\n', bytes).map_or(bytes.len(), |end| end + 1);
        let (line, _) = bytes.split_at(len);
        self.head.extend(line.iter().take(missing));
        if line.ends_with(b"\n") {
            let head = std::mem::take(&mut self.head);
            if head.starts_with(ANSWER) {
                // At the end of the program the receiver does not exist any more.
                let _end = self.answers.send(head);
            }
        }
        Ok(len)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Server {
    fn new(session_dir: &Path) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let max_queued_bytes = 1 << 30;
        let outbox = Outbox::new(max_queued_bytes);
        let settings = DaemonSettings {
            session_dir: session_dir.to_owned(),
            durability: Durability::Os,
            summarizer: None,
            max_frame_bytes: 64 << 20,
            max_queued_bytes,
            max_working_bytes: 256 << 20,
            max_kept_bytes: 64 << 20,
            cwd: "/bench".to_owned(),
            hooks: Vec::new(),
            extensions: Vec::new(),
            renderers: Default::default(),
            redact: Default::default(),
        };
        let source = Arc::new(SystemSource);
        let daemon = Daemon::new(settings, Parts::default(), source, runtime.handle());
        let connection = Connection::new(&daemon, Arc::clone(&outbox));
        let dispatcher = Dispatcher::new(daemon, connection, runtime.handle().clone())?;
        let (sender, answers) = channel();
        let writer = Arc::clone(&outbox);
        std::thread::spawn(move || {
            let (answers, head) = (sender, Vec::new());
            writer.run(&mut AnswerHeads { answers, head })
        });
        let mut asked = Self {
            runtime,
            dispatcher,
            outbox,
            answers,
            next_id: 0,
        };
        asked.ask("initialize", json!({ "protocolVersion": 1 }))?;
        Ok(asked)
    }

    /// Sends a request and waits for the answer, which must be a result.
    fn ask(&mut self, method: &str, params: Value) -> Result<()> {
        self.next_id += 1;
        let request =
            json!({ "jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params });
        self.dispatcher.frame(request.to_string().as_bytes(), false);
        self.runtime.block_on(self.dispatcher.drained());
        let answer = self.answers.recv().context("the server has ended")?;
        let expected = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\"", self.next_id);
        let shown = String::from_utf8_lossy(&answer);
        ensure!(shown.starts_with(&expected), "{method}: {shown}");
        Ok(())
    }

    fn times(&mut self, count: u32, method: &str, params: Value) -> Result<()> {
        (0..count).try_for_each(|_| self.ask(method, params.clone()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.outbox.close();
    }
}
