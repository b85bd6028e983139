//! The settings of the daemon to start or connect to, and the `initialize` request.

use crate::client::{Client, ConnectionOwner, close};
use crate::connection::Connection;
use crate::error::Error;
use crate::generated::{
    AccessParams, AskKind, EventAnswer, InitializeResult, OnFailure, PROTOCOL_VERSION,
    SessionBeforeCompact, SessionBeforeFork, SessionBeforeTree,
};
use crate::json::Json;
use crate::pipe;
use crate::process::{OnLog, supervise, watch_attached};
use crate::question::{Answerers, Question};
use serde_json::{Map, Value, json};
use std::ffi::OsString;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::Command;

/// The deadline of the `initialize` request.
const HANDSHAKE: Duration = Duration::from_secs(30);

/// Starts a daemon. Every setting is optional.
///
/// A builder can be used again: after the daemon has ended, call `spawn` again, and open the sessions again.
#[derive(Clone)]
pub struct Builder {
    program: OsString,
    args: Vec<OsString>,
    session_dir: Option<PathBuf>,
    summarizer: Option<String>,
    is_shared: bool,
    socket: Option<PathBuf>,
    current_dir: Option<PathBuf>,
    env: Vec<(OsString, OsString)>,
    on_log: Option<OnLog>,
    name: Option<String>,
    version: Option<String>,
    access: Option<AccessParams>,
    answerers: Answerers,
    opt_out: Vec<String>,
    capabilities: Map<String, Value>,
    deadline: Option<Duration>,
    grace: Duration,
    capacity: usize,
}

impl Client {
    /// Returns a builder with the default settings.
    pub fn builder() -> Builder {
        Builder::new()
    }
}

impl Builder {
    pub(crate) fn new() -> Builder {
        Builder {
            program: std::env::var_os("TREELINED_BIN")
                .filter(|program| !program.is_empty())
                .unwrap_or_else(|| "treelined".into()),
            args: Vec::new(),
            session_dir: None,
            summarizer: None,
            is_shared: false,
            socket: None,
            current_dir: None,
            env: Vec::new(),
            on_log: None,
            name: None,
            version: None,
            access: None,
            answerers: Answerers::default(),
            opt_out: Vec::new(),
            capabilities: Map::new(),
            deadline: None,
            grace: Duration::from_secs(10),
            capacity: 1024,
        }
    }

    /// Sets the program of the daemon. Default: the program in the environment variable `TREELINED_BIN`, or else
    /// `treelined` on the `PATH`.
    pub fn program(mut self, program: impl Into<OsString>) -> Self {
        self.program = program.into();
        self
    }

    /// Adds an argument of the daemon.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments of the daemon.
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets the session directory.
    pub fn session_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.session_dir = Some(folder.into());
        self
    }

    /// Sets the summarizer that is used when no client provides a summary, such as `outline`.
    pub fn summarizer(mut self, summarizer: impl Into<String>) -> Self {
        self.summarizer = Some(summarizer.into());
        self
    }

    /// Shares the daemon with other clients. Runs `treelined connect --start`, which connects to the daemon of the
    /// session directory. If none runs, it starts a daemon that stays (protocol.md §10.6).
    ///
    /// An option that differs from the option of the running daemon is an error. [`Client::pid`] is then the process of
    /// `connect`, and [`Client::close`] ends only this connection.
    pub fn shared(mut self) -> Self {
        self.is_shared = true;
        self
    }

    /// Shares the daemon of this socket, like [`shared`](Builder::shared) with the daemon of the session directory.
    pub fn socket(mut self, path: impl Into<PathBuf>) -> Self {
        self.socket = Some(path.into());
        self.shared()
    }

    /// Sets the working directory of the daemon, which new sessions have too. Default: the directory of this process.
    pub fn current_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.current_dir = Some(folder.into());
        self
    }

    /// Sets an environment variable of the daemon. The daemon inherits all other variables of this process.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Calls `on_log` with each line that the daemon writes to stderr, without its line break.
    pub fn on_log(mut self, on_log: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_log = Some(Arc::new(on_log));
        self
    }

    /// Sets the name and version that `initialize` sends to the daemon.
    pub fn client_info(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self.version = Some(version.into());
        self
    }

    /// Limits what the daemon lets this client do (protocol.md §10.7). [`Client::server`] has what the daemon granted: an
    /// older daemon does not know limits, and grants everything.
    pub fn access(mut self, access: AccessParams) -> Self {
        self.access = Some(access);
        self
    }

    /// Answers `session_before_tree`: the daemon sends it before a navigation and waits for the answer.
    ///
    /// Each question runs in its own task. If the answerer panics, the answer is [`EventAnswer::none`].
    /// An answer is ignored if the question is over when it arrives ([`Question::over`]).
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), treelined_client::Error> {
    /// use treelined_client::{Client, EventAnswer};
    ///
    /// let client = Client::builder()
    ///     .answer_tree(|event, question| async move {
    ///         tokio::select! {
    ///             () = question.over() => EventAnswer::none(),
    ///             agreed = ask_the_user(event.preparation.target_id) => match agreed {
    ///                 true => EventAnswer::none(),
    ///                 false => EventAnswer::cancel(),
    ///             },
    ///         }
    ///     })
    ///     .spawn()
    ///     .await?;
    /// # Ok(())
    /// # }
    /// # async fn ask_the_user(target: String) -> bool { true }
    /// ```
    pub fn answer_tree<F, A>(mut self, answerer: F) -> Self
    where
        F: Fn(SessionBeforeTree, Question) -> A + Send + Sync + 'static,
        A: Future<Output = EventAnswer> + Send + 'static,
    {
        self.answerers.set("session_before_tree", answerer);
        self
    }

    /// Answers `session_before_fork`, like [`answer_tree`](Builder::answer_tree). The only possible answers are
    /// [`EventAnswer::none`] and [`EventAnswer::cancel`].
    pub fn answer_fork<F, A>(mut self, answerer: F) -> Self
    where
        F: Fn(SessionBeforeFork, Question) -> A + Send + Sync + 'static,
        A: Future<Output = EventAnswer> + Send + 'static,
    {
        self.answerers.set("session_before_fork", answerer);
        self
    }

    /// Answers `session_before_compact`, like [`answer_tree`](Builder::answer_tree).
    pub fn answer_compact<F, A>(mut self, answerer: F) -> Self
    where
        F: Fn(SessionBeforeCompact, Question) -> A + Send + Sync + 'static,
        A: Future<Output = EventAnswer> + Send + 'static,
    {
        self.answerers.set("session_before_compact", answerer);
        self
    }

    /// Sets the answer to a before event for the case that an answerer panics, that its answer is refused, or that this
    /// process dies. Default: [`OnFailure::Cancel`], with the first line of the error.
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.answerers.on_failure = on_failure;
        self
    }

    /// Makes the daemon send `summary_delta` while it writes summaries.
    pub fn summary_deltas(self) -> Self {
        self.capability("summaryDeltas", json!({}))
    }

    /// Makes the daemon send `progress` during long work.
    pub fn progress(self) -> Self {
        self.capability("progress", json!({}))
    }

    /// Makes the daemon send `search_hit` while a search is running.
    pub fn search_hits(self) -> Self {
        self.capability("searchHits", json!({}))
    }

    /// Declares that this client shows messages to a person, and asks the person questions of these kinds (protocol.md
    /// §13). They arrive as [`Notification::UserAsked`](crate::Notification::UserAsked) and
    /// [`Notification::UserNotified`](crate::Notification::UserNotified); [`Client::answer_event`] sends the answer.
    pub fn ui(self, kinds: impl IntoIterator<Item = AskKind>) -> Self {
        let kinds = kinds.into_iter().map(|kind| kind.as_str().to_owned());
        self.capability("ui", Value::from_iter(kinds))
    }

    /// Names the notifications that the daemon must not send. It still sends the events that have an answerer, and with
    /// [`ui`](Builder::ui) the events for a person.
    pub fn opt_out(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.opt_out = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the longest message that the client accepts, in bytes. The daemon splits longer results into
    /// pages.
    pub fn max_frame_bytes(self, bytes: u64) -> Self {
        self.capability("maxFrameBytes", bytes.into())
    }

    /// Sets the deadline of all calls that do not set their own. Default: 30 s, and 11 minutes for calls that wait for
    /// people and models.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.deadline = Some(timeout);
        self
    }

    /// Sets how long the daemon may take to end; after that it is killed. Default: 10 s.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets how many unread notifications a stream keeps. Default: 1024; at most a million. The number is rounded up to
    /// a power of two.
    pub fn capacity(mut self, notifications: usize) -> Self {
        self.capacity = notifications;
        self
    }

    /// Starts the daemon and sends `initialize`.
    ///
    /// The daemon ends when its stdin is closed, when this process dies, and when the last [`Client`] is
    /// dropped.
    pub async fn spawn(&self) -> Result<Client, Error> {
        let cannot_start = |error: std::io::Error| Error::CannotStart {
            program: self.program.to_string_lossy().into_owned(),
            source: Arc::new(error),
        };
        let mut child = self.command().spawn().map_err(cannot_start)?;
        let pid = child.id();
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(cannot_start(std::io::ErrorKind::BrokenPipe.into()));
        };
        let stderr = child.stderr.take();
        let connection = Connection::new(self.answerers.questions(), self.capacity);
        tokio::spawn(supervise(
            child,
            stderr,
            self.on_log.clone(),
            Arc::clone(&connection),
            self.grace,
        ));
        // A daemon of `attach` may run on another machine, where this id belongs to another process.
        let process_id = Some(std::process::id());
        self.connect(connection, stdout, stdin, pid, process_id)
            .await
    }

    /// Connects to a daemon that is already running: `reader` is its output, `writer` its input.
    pub async fn attach<R, W>(&self, reader: R, writer: W) -> Result<Client, Error>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let connection = Connection::new(self.answerers.questions(), self.capacity);
        tokio::spawn(watch_attached(Arc::clone(&connection)));
        self.connect(connection, reader, writer, None, None).await
    }

    async fn connect<R, W>(
        &self,
        connection: Arc<Connection>,
        reader: R,
        writer: W,
        pid: Option<u32>,
        process_id: Option<u32>,
    ) -> Result<Client, Error>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let owner = ConnectionOwner {
            _rpc: pipe::start(&connection, reader, writer).await,
            connection,
            deadline: self.deadline,
            grace: self.grace,
            pid,
        };
        match self.introduce(&owner.connection, process_id).await {
            Ok(server) => Ok(Client::new(owner, server)),
            Err(error) => {
                // If the start fails, the process must not remain.
                let _ = close(&owner.connection, self.grace).await;
                Err(error)
            }
        }
    }

    /// Returns the directory in which the daemon will be started, if its path is UTF-8.
    fn working_directory(&self) -> Option<String> {
        let folder = self.current_dir.as_deref().unwrap_or(Path::new("."));
        folder
            .canonicalize()
            .ok()?
            .into_os_string()
            .into_string()
            .ok()
    }

    async fn introduce(
        &self,
        connection: &Arc<Connection>,
        process_id: Option<u32>,
    ) -> Result<InitializeResult, Error> {
        let answers: Map<String, Value> = self
            .answerers
            .events()
            .map(|event| {
                let declared = json!({"onFailure": self.answerers.on_failure});
                (event.to_owned(), declared)
            })
            .collect();
        let has_person = self.capabilities.contains_key("ui");
        let is_needed = |name: &String| match name.as_str() {
            "event_resolved" => has_person || !answers.is_empty(),
            "user_asked" | "user_notified" => has_person,
            _ => answers.contains_key(name),
        };
        let mut unwanted = self.opt_out.clone();
        unwanted.retain(|name| !is_needed(name));
        let mut capabilities = self.capabilities.clone();
        capabilities.insert("optOut".into(), unwanted.into());
        capabilities.insert("answers".into(), answers.into());
        let mut params = json!({
            "protocolVersion": PROTOCOL_VERSION,
            "processId": process_id,
            "capabilities": capabilities,
        });
        if let (Some(name), Some(params)) = (&self.name, params.as_object_mut()) {
            let info = json!({ "name": name, "version": self.version });
            params.insert("clientInfo".into(), info);
        }
        if let (Some(access), Some(params)) = (&self.access, params.as_object_mut()) {
            params.insert("access".into(), json!(access));
        }
        // A shared daemon may have another working directory.
        if let (Some(folder), Some(params)) = (self.working_directory(), params.as_object_mut()) {
            params.insert("cwd".into(), folder.into());
        }
        let deadline = self.deadline.unwrap_or(HANDSHAKE);
        let answer: Json = connection
            .call("initialize", Json::new(&params), deadline, None)
            .await?;
        // If the result is of another version, only its version can be read.
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct VersionMember {
            protocol_version: u64,
        }
        let unexpected = |error: serde_json::Error| Error::Unexpected {
            method: "initialize".into(),
            message: error.to_string(),
        };
        let spoken = answer
            .parse::<VersionMember>()
            .map_err(unexpected)?
            .protocol_version;
        if spoken != PROTOCOL_VERSION {
            return Err(Error::VersionMismatch {
                expected: PROTOCOL_VERSION,
                spoken,
            });
        }
        answer.parse().map_err(unexpected)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        if self.is_shared {
            command.args(["connect", "--start"]);
        }
        if let Some(path) = &self.socket {
            command.arg("--socket").arg(path);
        }
        if let Some(folder) = &self.session_dir {
            command.arg("--session-dir").arg(folder);
        }
        if let Some(summarizer) = &self.summarizer {
            command.arg("--summarizer").arg(summarizer);
        }
        if let Some(folder) = &self.current_dir {
            command.current_dir(folder);
        }
        command
            .args(&self.args)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A Ctrl+C at the terminal must reach only this program, or a program that it has started.
            .process_group(0)
            // The runtime may end before the client is closed.
            .kill_on_drop(true);
        command
    }

    fn capability(mut self, name: &str, value: Value) -> Self {
        self.capabilities.insert(name.to_owned(), value);
        self
    }
}
