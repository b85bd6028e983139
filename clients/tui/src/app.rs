//! The event loop: it passes terminal input and daemon messages to the model, runs the effects that the
//! model returns, and draws a frame.

use crate::args::Args;
use crate::choice::{self, Choice};
use crate::config::{Config, Settings};
use crate::daemon::{self, Daemon};
use crate::message::{Effect, Filter, Message, Target};
use crate::model::Model;
use crate::operation::Agent;
use crate::shell_error::{FAILED, ShellError};
use crate::terminal::{self, Terminal};
use crate::theme::Background;
use crate::view;
use crossterm::event::{Event, EventStream, KeyEventKind};
use futures_util::StreamExt;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use treelined_client::{Builder, Client};

/// The time between ticks while something on the screen is animated.
const TICK: Duration = Duration::from_millis(100);

/// The name of the daemon's program.
const PROGRAM: &str = "treelined";

/// How long the daemon may take to end when the program ends.
const GRACE: Duration = Duration::from_secs(3);

/// Runs until the user quits or a signal arrives. The terminal is restored before an error returns; the
/// text of the error is for the user.
pub async fn run(args: Args) -> Result<ExitCode, ShellError> {
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        return Err(ShellError {
            message: "stdin and stdout must be a terminal".to_owned(),
            remedy: "treelined tree SESSION, which prints a tree into a pipe".to_owned(),
            code: FAILED,
        });
    }
    let config = Config::read(args.config.as_deref()).map_err(in_settings)?;
    let cwd = std::env::current_dir().map_err(|error| format!("the working directory: {error}"))?;
    let mut cwd = cwd.to_string_lossy().into_owned();
    let builder = builder(&args, &config);
    let target = match &args.session {
        _ if args.latest => Some(Target::Latest),
        None => None,
        Some(named) => match choice::find(&builder, named).await? {
            Choice::Session(target) => Some(target),
            Choice::Folder(folder) => {
                cwd = folder;
                None
            }
        },
    };
    let background = args
        .background
        .or(config.background)
        .unwrap_or(Background::Auto);
    let settings = Settings {
        keymap: config.keymap().map_err(in_settings)?,
        theme: terminal::theme(args.theme.or(config.theme).unwrap_or_default(), background),
        half: config.preview.unwrap_or(true),
        filter: config.filter.unwrap_or(Filter::Default),
        summary: config.summary.unwrap_or_default(),
        double_escape: config.double_escape,
        cwd: cwd.clone(),
        program: command_words(&args, &config),
    };
    let (sender, messages) = unbounded_channel();
    let daemon = Daemon::new(builder, cwd, sender);
    let terminal = Terminal::take(config.mouse.unwrap_or(true));
    let mut terminal =
        terminal.map_err(|error| format!("cannot draw on this terminal: {error}"))?;
    let size = terminal.size().map_err(|error| error.to_string())?;
    let started = jiff::Timestamp::now().as_second();
    let model = Model::new(settings, size, started, target);
    let ended = Loop {
        model,
        daemon: daemon.clone(),
        messages,
        began: Instant::now(),
    }
    .run(&mut terminal)
    .await;
    drop(terminal);
    daemon.close().await;
    Ok(ended.map_err(|error| error.to_string())?)
}

/// An error of the configuration file. The message names the file.
fn in_settings(message: String) -> ShellError {
    let remedy = "correct it there, or name another file with --config FILE";
    ShellError::new(FAILED, message.trim_end(), remedy)
}

/// Chooses the program of the daemon: the configured one, else the one beside this program, else the one
/// on the `PATH`.
fn builder(args: &Args, config: &Config) -> Builder {
    let mut builder = Client::builder()
        .client_info("treelined-tui", env!("CARGO_PKG_VERSION"))
        .grace(GRACE);
    match (&args.daemon, config.daemon.as_deref()) {
        (Some(program), _) => builder = builder.program(program),
        (None, Some([program, rest @ ..])) => builder = builder.program(program).args(rest),
        _ => {
            if let Some(program) = beside() {
                builder = builder.program(program);
            }
        }
    }
    if args.shared || config.shared == Some(true) {
        builder = builder.shared();
    }
    if let Some(path) = args.socket.as_ref().or(config.socket.as_ref()) {
        builder = builder.socket(path);
    }
    if let Some(folder) = &args.session_dir {
        builder = builder.session_dir(folder);
    }
    if let Some(summarizer) = &args.summarizer {
        builder = builder.summarizer(summarizer);
    }
    builder
}

/// Returns the words with which a treelined command about the same sessions begins.
fn command_words(args: &Args, config: &Config) -> Vec<String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut words = match (&args.daemon, &config.daemon) {
        (Some(program), _) => vec![text(program)],
        (None, Some(argv)) => argv.clone(),
        (None, None) => vec![match beside() {
            Some(program) if !daemon::is_on_path(PROGRAM) => text(&program),
            _ => PROGRAM.to_owned(),
        }],
    };
    if let Some(folder) = &args.session_dir {
        words.extend(["--session-dir".to_owned(), text(folder)]);
    }
    if let Some(summarizer) = &args.summarizer {
        words.extend(["--summarizer".to_owned(), summarizer.clone()]);
    }
    words
}

/// The daemon's program beside this one; `None` if there is none.
fn beside() -> Option<PathBuf> {
    let here = std::env::current_exe().ok()?.with_file_name(PROGRAM);
    here.is_file().then_some(here)
}

struct Loop {
    model: Model,
    daemon: Daemon,
    messages: UnboundedReceiver<Message>,
    began: Instant,
}

/// The next step of the loop after a message.
enum Next {
    GoOn,
    Quit,
    /// Give the terminal to another program.
    Run {
        agent: Agent,
        argv: Vec<String>,
    },
}

impl Loop {
    async fn run(mut self, terminal: &mut Terminal) -> io::Result<ExitCode> {
        let mut events = EventStream::new();
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hangup = signal(SignalKind::hangup())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        self.daemon.run(Effect::Connect);
        loop {
            terminal.draw(|frame| view::draw(&self.model, frame))?;
            let message = tokio::select! {
                event = events.next() => match event {
                    Some(event) => message_of(event?),
                    // The input has ended: the terminal is closed.
                    None => return Ok(ExitCode::SUCCESS),
                },
                message = self.messages.recv() => message,
                _ = ticks.tick(), if self.model.animates() => Some(Message::Tick(self.began.elapsed())),
                _ = terminate.recv() => return Ok(ExitCode::from(128 + 15)),
                _ = hangup.recv() => return Ok(ExitCode::from(128 + 1)),
                _ = interrupt.recv() => return Ok(ExitCode::from(128 + 2)),
            };
            let mut next = message;
            // All messages that have arrived are handled before the frame is drawn once.
            while let Some(message) = next {
                match self.handle(message, terminal)? {
                    Next::GoOn => {}
                    Next::Quit => return Ok(ExitCode::SUCCESS),
                    Next::Run { agent, argv } => {
                        // The stream is dropped, since it would read keys that are meant for the other program.
                        drop(events);
                        let result = tokio::task::block_in_place(|| terminal.run(&argv))?;
                        events = EventStream::new();
                        // A Ctrl+C that arrived meanwhile was meant for the other program.
                        interrupt = signal(SignalKind::interrupt())?;
                        self.resized(terminal)?;
                        self.handle(Message::Ran { agent, result }, terminal)?;
                    }
                }
                next = self.messages.try_recv().ok();
            }
        }
    }

    /// Handles one message.
    fn handle(&mut self, message: Message, terminal: &mut Terminal) -> io::Result<Next> {
        let mut next = Next::GoOn;
        let mut effects = self.model.update(Message::Tick(self.began.elapsed()));
        effects.extend(self.model.update(message));
        for effect in effects {
            match effect {
                Effect::Quit => return Ok(Next::Quit),
                Effect::Copy(text) => terminal.copy(&text)?,
                Effect::Suspend => {
                    terminal.suspend()?;
                    self.resized(terminal)?;
                }
                Effect::Run { agent, argv } => next = Next::Run { agent, argv },
                effect => self.daemon.run(effect),
            }
        }
        Ok(next)
    }

    /// Reads the size of the terminal, which may have changed while another program had the terminal.
    fn resized(&mut self, terminal: &Terminal) -> io::Result<()> {
        let (columns, rows) = terminal.size()?;
        for effect in self.model.update(Message::Resize(columns, rows)) {
            self.daemon.run(effect);
        }
        Ok(())
    }
}

fn message_of(event: Event) -> Option<Message> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => Some(Message::Key(key)),
        Event::Mouse(mouse) => Some(Message::Mouse(mouse)),
        Event::Paste(text) => Some(Message::Paste(text)),
        Event::Resize(columns, rows) => Some(Message::Resize(columns, rows)),
        _ => None,
    }
}
