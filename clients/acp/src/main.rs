//! The program `treelined-acp`.

mod conversation;
mod copies;
mod journal;
mod record;
mod relay;
mod turn;

use anyhow::Context;
use clap::Parser;
use conversation::{Change, Conversation};
use copies::{CopyReceiver, Heard};
use etcetera::{AppStrategy, AppStrategyArgs, choose_app_strategy};
use journal::{Journal, Unfinished};
use record::Recorder;
use relay::Relay;
use serde_json::value::RawValue;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tokio::sync::Notify;
use treelined_client::DaemonArgs;

/// How long the recorder may take to write what it has heard once the agent has ended.
const GRACE: Duration = Duration::from_secs(10);

/// Stands between an ACP editor and an ACP agent, and records their conversation as a tree.
///
/// In the editor's settings, put `treelined acp --` before the agent's command. Messages pass untouched; a copy becomes
/// a session.
#[derive(Parser)]
#[command(version)]
struct Args {
    #[command(flatten)]
    daemon: DaemonArgs,
    /// Where journals and positions are kept [default: treelined/acp in the platform's folder for states]
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// The agent and its arguments
    #[arg(last = true, required = true, value_name = "AGENT")]
    agent: Vec<OsString>,
}

fn main() -> ExitCode {
    match run(Args::parse()) {
        Ok(code) => std::process::exit(code),
        Err(error) => {
            say(&error);
            ExitCode::FAILURE
        }
    }
}

/// If stderr is closed, the exit code or the record still says it.
fn say(error: &anyhow::Error) {
    let _written = writeln!(std::io::stderr(), "treelined-acp: {error:#}");
}

fn run(args: Args) -> anyhow::Result<i32> {
    let (editor, agent, copies) = copies::channel();
    let relay = Relay::start(&args.agent, editor, agent)?;
    let pid = relay.pid();
    let (recorded, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let outcome = runtime.context("start the runtime").and_then(|runtime| {
            runtime.block_on(async {
                tokio::select! {
                    recorded = record(&args, copies) => recorded,
                    failed = Relay::pass_signals(pid) => Ok(failed?),
                }
            })
        });
        // The conversation goes on without a record. The journal has what is missing.
        if let Err(error) = outcome {
            say(&error.context("the rest of this conversation is recorded at the next start"));
        }
        let _main_ended = recorded.send(());
    });
    let status = relay.wait().context("wait for the agent")?;
    let _late = ended.recv_timeout(GRACE);
    Ok(relay::exit_code(status))
}

fn state_folder(args: &Args) -> anyhow::Result<PathBuf> {
    if let Some(folder) = &args.state {
        return Ok(folder.clone());
    }
    let strategy = choose_app_strategy(AppStrategyArgs {
        top_level_domain: String::new(),
        author: String::new(),
        app_name: "treelined".to_owned(),
    })?;
    let folder = strategy.state_dir().unwrap_or_else(|| strategy.data_dir());
    Ok(folder.join("acp"))
}

/// Records until the agent has ended, after the journals of runs that were killed.
async fn record(args: &Args, mut copies: CopyReceiver) -> anyhow::Result<()> {
    let state = state_folder(args)?;
    let name = args.agent.first().map(PathBuf::from).unwrap_or_default();
    let name = name
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let daemon = args.daemon.builder();
    let daemon = daemon.client_info(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
    let mut recorder = Recorder::new(daemon, name.unwrap_or_default(), &state)?;
    let recording = Recording::new(Journal::create(&state)?);
    let (listened, written) = tokio::join!(
        recording.listen(&mut copies),
        recording.write(&state, &mut recorder)
    );
    listened.and(written)?;
    recording.journal.into_inner().remove()?;
    recorder.close().await
}

/// The messages that are recorded but not yet written to sessions. Hearing does not wait for the daemon: a message is in the journal at once.
struct Recording {
    journal: RefCell<Journal>,
    conversation: RefCell<Conversation>,
    changes: RefCell<VecDeque<Change>>,
    has_news: Notify,
    has_ended: Cell<bool>,
}

impl Recording {
    fn new(journal: Journal) -> Recording {
        Recording {
            journal: RefCell::new(journal),
            conversation: RefCell::default(),
            changes: RefCell::default(),
            has_news: Notify::new(),
            has_ended: Cell::new(false),
        }
    }

    async fn listen(&self, copies: &mut CopyReceiver) -> anyhow::Result<()> {
        let heard = self.hear_all(copies).await;
        self.changes
            .borrow_mut()
            .extend(self.conversation.borrow_mut().abort());
        self.has_ended.set(true);
        self.has_news.notify_one();
        heard
    }

    async fn hear_all(&self, copies: &mut CopyReceiver) -> anyhow::Result<()> {
        while let Some(heard) = copies.heard().await {
            for heard in heard {
                self.hear(heard)?;
            }
            self.has_news.notify_one();
        }
        Ok(())
    }

    fn hear(&self, heard: Heard) -> anyhow::Result<()> {
        let mut conversation = self.conversation.borrow_mut();
        let mut journal = self.journal.borrow_mut();
        let Heard::Line(from, line) = heard else {
            conversation.gap();
            return journal.gap();
        };
        // Agents log to stdout at times: a line that is no JSON is none of the protocol.
        if let Ok(raw) = serde_json::from_slice::<&RawValue>(&line) {
            journal.message(from, raw)?;
            let changes = journal::see(&mut conversation, from, raw);
            self.changes.borrow_mut().extend(changes);
        }
        Ok(())
    }

    async fn write(&self, state: &Path, recorder: &mut Recorder) -> anyhow::Result<()> {
        finish(state, recorder).await?;
        loop {
            let next = self.changes.borrow_mut().pop_front();
            match next {
                Some(change) => {
                    let ids = self.journal.borrow().entry_ids();
                    recorder.make(change, ids).await?;
                    self.journal.borrow_mut().done()?;
                }
                None if self.has_ended.get() => return Ok(()),
                None => {
                    if self.conversation.borrow().is_idle() {
                        self.journal.borrow_mut().clear()?;
                    }
                    self.has_news.notified().await;
                }
            }
        }
    }
}

/// Completes the records of runs that were killed.
async fn finish(state: &Path, recorder: &mut Recorder) -> anyhow::Result<()> {
    for Unfinished {
        mut journal,
        changes,
    } in Journal::unfinished(state)?
    {
        for change in changes {
            recorder.make(change, journal.entry_ids()).await?;
            journal.done()?;
        }
        journal.remove()?;
    }
    Ok(())
}
