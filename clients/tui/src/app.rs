//! The event loop: terminal input and daemon messages update the model; its effects are run; a frame is
//! drawn.

use crate::args::Args;
use crate::choice::{self, Found};
use crate::config::{Config, Settings};
use crate::daemon::Daemon;
use crate::message::{Effect, Filter, Message, Target};
use crate::model::Model;
use crate::shell_error::{FAILED, ShellError};
use crate::terminal::{self, Terminal};
use crate::theme::Background;
use crate::view;
use crossterm::event::{Event, EventStream, KeyEventKind};
use futures_util::StreamExt;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use treelined_client::{Builder, Client};

/// Interval of ticks while something on the screen is animated.
const TICK: Duration = Duration::from_millis(100);

/// How long the daemon may take to end when the program ends.
const GRACE: Duration = Duration::from_secs(3);

/// Runs until the user quits or a signal arrives. The terminal is restored before an error returns; its
/// text is for the user.
pub async fn run(args: Args) -> Result<ExitCode, ShellError> {
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        return Err(ShellError {
            message: "stdin and stdout must be a terminal".to_owned(),
            remedy: "treelined tree SESSION, which prints a tree into a pipe".to_owned(),
            code: FAILED,
        });
    }
    let config = Config::read(args.config.as_deref())?;
    let cwd = std::env::current_dir().map_err(|error| format!("the working directory: {error}"))?;
    let mut cwd = cwd.to_string_lossy().into_owned();
    let builder = builder(&args, &config);
    let target = match &args.session {
        _ if args.latest => Some(Target::Latest),
        None => None,
        Some(named) => match choice::find(&builder, named).await? {
            Found::Session(target) => Some(target),
            Found::Folder(folder) => {
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
        keymap: config.keymap()?,
        theme: terminal::theme(args.theme.or(config.theme).unwrap_or_default(), background),
        half: config.preview.unwrap_or(true),
        filter: config.filter.unwrap_or(Filter::Default),
        summary: config.summary.unwrap_or_default(),
        double_escape: config.double_escape,
        cwd: cwd.clone(),
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

/// Chooses the daemon: the configured one, else the one beside this program, else the one on the `PATH`.
fn builder(args: &Args, config: &Config) -> Builder {
    let mut builder = Client::builder()
        .client_info("treelined-tui", env!("CARGO_PKG_VERSION"))
        .grace(GRACE);
    let beside = || {
        let here = std::env::current_exe().ok()?.with_file_name("treelined");
        here.is_file().then_some(here)
    };
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

struct Loop {
    model: Model,
    daemon: Daemon,
    messages: UnboundedReceiver<Message>,
    began: Instant,
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
                    // The terminal is closed.
                    None => return Ok(ExitCode::SUCCESS),
                },
                message = self.messages.recv() => message,
                _ = ticks.tick(), if self.model.animates() => Some(Message::Tick(self.began.elapsed())),
                _ = terminate.recv() => return Ok(ExitCode::from(128 + 15)),
                _ = hangup.recv() => return Ok(ExitCode::from(128 + 1)),
                _ = interrupt.recv() => return Ok(ExitCode::from(128 + 2)),
            };
            let mut next = message;
            // Handle everything that has arrived before drawing once.
            while let Some(message) = next {
                if self.handle(message, terminal)? {
                    return Ok(ExitCode::SUCCESS);
                }
                next = self.messages.try_recv().ok();
            }
        }
    }

    /// Handles one message. Returns whether the user has quit.
    fn handle(&mut self, message: Message, terminal: &mut Terminal) -> io::Result<bool> {
        let mut effects = self.model.update(Message::Tick(self.began.elapsed()));
        effects.extend(self.model.update(message));
        for effect in effects {
            match effect {
                Effect::Quit => return Ok(true),
                Effect::Copy(text) => terminal.copy(&text)?,
                Effect::Suspend => {
                    terminal.suspend()?;
                    let (columns, rows) = terminal.size()?;
                    for effect in self.model.update(Message::Resize(columns, rows)) {
                        self.daemon.run(effect);
                    }
                }
                effect => self.daemon.run(effect),
            }
        }
        Ok(false)
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
