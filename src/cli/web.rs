//! `treelined web`: shows the page in a browser. If a shared daemon runs, it serves the page; otherwise this process
//! serves the page until it is interrupted.

use super::failure::{INTERRUPTED, ShellError};
use super::options::Options;
use super::serve;
use super::session_choice::SessionQuery;
use super::shared::{self, SharedDaemon, SocketOption};
use anyhow::{Context, bail};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Deserialize;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use treelined_core::error::Kind;
use treelined_files::os::file::Location;
use treelined_files::os::process::{self, OPENER};
use treelined_files::os::signal::EndSignal;
pub(crate) use treelined_files::os::socket::Stream;
use treelined_files::store::listing::header_id;
use treelined_service::endpoint::{START_TIMEOUT, reach};
use treelined_service::web::{WebFolder, page_url};

/// How long to wait for a failure of the program that opens a browser. Some such programs run as long as the browser.
const BROWSER_START: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  treelined web                  the list of sessions
  treelined web --latest         the newest session of this directory
  treelined web --no-open        prints the URL, with its secret token

Exit codes: 0 a shared daemon serves the page, or this program was told to end (SIGTERM),
130 Ctrl+C has ended it.")]
pub(crate) struct Web {
    /// The session to show: its file, its id, its name, or the beginning of its id [default: the list of sessions]
    #[arg(value_name = "SESSION", add = ArgValueCompleter::new(super::candidates::sessions))]
    session: Option<String>,
    /// Show the session of this directory with the last activity
    #[arg(long, conflicts_with = "session")]
    latest: bool,
    /// Print the URL with the secret token, and open no browser
    #[arg(long)]
    no_open: bool,
    #[command(flatten)]
    socket: SocketOption,
}

/// The response to a request `open_web`.
#[derive(Deserialize)]
struct WebResponse {
    result: Option<WebResult>,
    error: Option<WebError>,
}

#[derive(Deserialize)]
struct WebResult {
    address: String,
    token: String,
}

#[derive(Deserialize)]
struct WebError {
    code: i32,
    message: String,
}

/// The session to show: a member of the params of `open_session`, and its value.
type ShownSession = Option<(&'static str, String)>;

pub(super) fn run(options: &Options, arguments: &Web) -> anyhow::Result<ExitCode> {
    let query = SessionQuery::of(arguments.session.as_ref(), arguments.latest);
    let session = shown_session(options, query.as_ref())?;
    let shared = SharedDaemon::of(options, &arguments.socket, None)?;
    let browser = BrowserStart {
        session,
        session_dir: shared.settings.session_dir().to_owned(),
        is_wanted: !arguments.no_open,
    };
    let Some(stream) = reach::find(&shared.place)? else {
        return serve_page(options, arguments, browser);
    };
    let Some(daemon) = shared.running()? else {
        return Err(shared.has_no_runtime_file());
    };
    shared::check_version(&daemon.info)?;
    shared.check_options(options, &daemon.info)?;
    let pid = daemon.info.pid;
    let web = ask(stream).with_context(|| format!("ask the daemon (pid {pid}) for the page"))?;
    let note = format!("of the shared daemon, pid {pid}; `treelined stop` ends both");
    browser.show(&web.address, &web.token, &note)?;
    Ok(ExitCode::SUCCESS)
}

/// Serves the page until a signal ends this process.
fn serve_page(options: &Options, web: &Web, browser: BrowserStart) -> anyhow::Result<ExitCode> {
    let runtime = super::runtime::small_runtime()?;
    let mut interrupt = runtime.block_on(async { EndSignal::interrupt() })?;
    let ended = serve::run_with_page(options, &web.socket, move |web| {
        let shown = browser.show(&web.page(), web.token.expose(), "Ctrl+C ends it");
        if let Err(error) = shown {
            ShellError::of(&error).report();
        }
    })?;
    // If an interrupt ended the daemon, the interrupt can be received without waiting.
    let interrupted = async { tokio::time::timeout(Duration::ZERO, interrupt.recv()).await };
    Ok(match runtime.block_on(interrupted) {
        Ok(true) => ExitCode::from(INTERRUPTED),
        _ => ended,
    })
}

fn shown_session(options: &Options, query: Option<&SessionQuery>) -> anyhow::Result<ShownSession> {
    let Some(query) = query else {
        return Ok(None);
    };
    let path = query.find_alone(options)?;
    // A file outside of the session directory can be named only by its path.
    let is_path = matches!(query, SessionQuery::Named(text) if Path::new(text).exists());
    if !is_path && let Some(id) = header_id(&Location::of_path(&path)?) {
        return Ok(Some(("sessionId", id)));
    }
    let path = path
        .canonicalize()
        .with_context(|| path.display().to_string())?;
    let text = path.to_str();
    let text = text.with_context(|| format!("{} is not UTF-8", path.display()))?;
    Ok(Some(("path", text.to_owned())))
}

/// Asks the shared daemon to serve the page.
fn ask(mut stream: Stream) -> anyhow::Result<WebResult> {
    stream.set_read_timeout(Some(START_TIMEOUT))?;
    stream.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"open_web\"}\n")?;
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line)?;
    let response: WebResponse = serde_json::from_str(&line).context("read its answer")?;
    match (response.result, response.error) {
        (Some(result), _) => Ok(result),
        (None, Some(error)) if error.code == Kind::MethodNotFound.code() => {
            let remedy = "treelined stop, so that this version serves the page";
            Err(ShellError::failed(
                "the running daemon is of an older version, which has no page",
                remedy,
            ))
        }
        (None, Some(error)) => bail!(error.message),
        (None, None) => bail!("its answer has no result"),
    }
}

/// How the page is opened in a browser.
struct BrowserStart {
    session: ShownSession,
    session_dir: PathBuf,
    is_wanted: bool,
}

impl BrowserStart {
    /// Opens a browser, or prints the URL. `note` says which process serves the page.
    fn show(&self, address: &str, token: &str, note: &str) -> anyhow::Result<()> {
        let session = self.session.as_ref();
        let session = session.map(|(member, value)| (*member, value.as_str()));
        let url = page_url(address, token, session);
        let mut stdout = io::stdout();
        if !self.is_wanted {
            writeln!(stdout, "{url}")?;
            return Ok(());
        }
        let file = WebFolder::open(&self.session_dir)?.write_redirect(&url)?;
        writeln!(
            stdout,
            "The page is at {address} ({note}). If the browser may not read its file, use --no-open."
        )?;
        open_in_browser(&file).with_context(|| {
            format!(
                "no browser could be opened; open {} in one, or use --no-open for a URL",
                file.display()
            )
        })
    }
}

/// Opens a file in the browser of the user.
fn open_in_browser(file: &Path) -> anyhow::Result<()> {
    let mut command = Command::new(OPENER);
    command
        .arg(file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // Ctrl+C in this terminal must not end the browser.
    process::lead_group(&mut command);
    let mut opener = command.spawn().context(OPENER)?;
    let until = Instant::now() + BROWSER_START;
    while Instant::now() < until {
        match opener.try_wait().context(OPENER)? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => bail!("{OPENER}: {status}"),
            None => thread::sleep(PAUSE),
        }
    }
    Ok(())
}
