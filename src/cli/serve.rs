//! `treelined serve`: opens the sockets on which the daemon listens, and starts it without a terminal if requested.

use super::failure::{ShellError, USAGE};
use super::options::Options;
use super::shared::{SharedDaemon, SocketOption, StarterProcess};
use super::stderr_log;
use crate::config::{Config, IdleTime, Settings};
use crate::wiring::accounts::Counter;
use crate::wiring::handoffs::Handoffs;
use crate::wiring::imports::Imports;
use anyhow::Context;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use treelined_files::log::upstream::SharedLog;
pub(crate) use treelined_files::os::socket::Listener;
use treelined_files::os::{process, running};
#[cfg(feature = "team")]
use treelined_fleet::live::LiveLog;
use treelined_service::access::NamedAccess;
use treelined_service::endpoint::place::canonical;
use treelined_service::endpoint::runtime_file::{AccessInfo, Starter};
use treelined_service::endpoint::{Detached, Endpoint, PassedSocket, Place};
use treelined_service::extensions::NAME_VARIABLE;
use treelined_service::parts::Parts;
use treelined_service::serve::{self, AccessToken, Endpoints, LimitedSocket, ListenAddress};
use treelined_service::web::access_token;
use treelined_service::web::{WebAddress, WebListener};
use treelined_usage::Prices;

#[derive(Debug, Default, Args)]
#[command(after_help = "\
Examples:
  treelined serve --listen unix --idle-exit 10m    a daemon for several clients
  treelined serve --listen ws:127.0.0.1:7000       the page, on a port of this machine")]
pub(crate) struct ServeArgs {
    /// Serve this address: unix, unix:PATH, ws, ws:127.0.0.1:PORT or stdio; may be repeated [default: stdio]
    #[arg(long, value_name = "ADDRESS", add = ArgValueCompleter::new(super::candidates::addresses))]
    listen: Vec<ListenAddress>,
    /// Allow ws:ADDRESS:PORT that other machines can reach; others can read what they send
    #[arg(long)]
    insecure_listen: bool,
    /// End after this time without a connection, such as 90s, 10m or 1h; not with stdio alone [default: never]
    #[arg(long, value_name = "TIME")]
    idle_exit: Option<IdleTime>,
    /// Do not start the extensions that the configuration names
    #[arg(long)]
    no_extensions: bool,
    #[command(flatten)]
    socket: SocketOption,
    /// The starter, whose process waits on stdout; stdin is the lock
    #[arg(long, hide = true, value_name = "PID")]
    detached: Option<u32>,
    /// The parent, with which this process dies
    #[arg(long, hide = true, value_name = "PID")]
    parent: Option<u32>,
}

impl ServeArgs {
    /// Whether the daemon starts extensions. If an extension has started a daemon that is not shared, this daemon
    /// starts no extensions. A shared daemon starts extensions even if an extension has started it.
    fn starts_extensions(&self) -> bool {
        let is_shared = self.detached.is_some();
        let is_own = || std::env::var_os(NAME_VARIABLE).is_some();
        !self.no_extensions && (is_shared || !is_own())
    }
}

/// Serves until the daemon ends. Problems of the configuration that do not prevent serving are logged.
pub(super) fn run(options: &Options, args: &ServeArgs) -> anyhow::Result<ExitCode> {
    if let Some(parent) = args.parent {
        running::die_with(parent)?;
    }
    let passed = PassedSocket::take()?;
    let is_stdio = |address: &ListenAddress| *address == ListenAddress::Stdio;
    if passed.is_some() || !args.listen.iter().all(is_stdio) {
        return serve_sockets(options, args, passed, |_| ());
    }
    if args.socket.socket.is_some() {
        let remedy = "treelined serve --listen unix --socket PATH";
        return Err(ShellError::new(USAGE, "--socket needs --listen unix", remedy).into());
    }
    let settings = options.settings()?;
    log_problems(&settings);
    let endpoints = Endpoints {
        stdio: true,
        sockets: Vec::new(),
        limited: Vec::new(),
        tokens: Vec::new(),
        web: None,
        idle_exit: None,
        on_ready: Box::new(|| ()),
        extensions: args.starts_extensions(),
    };
    serve_with(super::options::usable(settings)?, endpoints)
}

/// Serves with the parts that this program has.
fn serve_with(config: Config, endpoints: Endpoints) -> anyhow::Result<ExitCode> {
    let parts = Parts {
        importer: Some(Box::new(Imports::default())),
        handoff: Some(Box::new(Handoffs)),
        accounts: Some(Box::new(Counter(Prices::new(config.prices.clone())))),
        shared_log: shared_log(&config),
        publishes_later: cfg!(feature = "team"),
        author: Some(config.author),
        signs_all: config.signs_all,
    };
    serve::run(config.daemon, parts, endpoints)
}

/// The stream of the team in the settings; `None` without a team.
#[cfg(feature = "team")]
fn shared_log(config: &Config) -> Option<Arc<dyn SharedLog>> {
    let settings = config.team.clone()?;
    let (author, session_dir) = (config.author.clone(), config.daemon.session_dir.clone());
    Some(LiveLog::new(settings, author, session_dir))
}

/// Programs without the feature refuse settings with a team before this call.
#[cfg(not(feature = "team"))]
fn shared_log(_config: &Config) -> Option<Arc<dyn SharedLog>> {
    None
}

/// Serves the socket of the session directory, the page and the WebSocket. `on_ready` receives the address of the
/// page.
pub(super) fn run_with_page(
    options: &Options,
    socket: &SocketOption,
    on_ready: impl FnOnce(&WebAddress) + 'static,
) -> anyhow::Result<ExitCode> {
    let args = ServeArgs {
        listen: vec![ListenAddress::Unix(None), ListenAddress::WebSocket(None)],
        socket: socket.clone(),
        ..ServeArgs::default()
    };
    serve_sockets(options, &args, None, |web| {
        if let Some(address) = web {
            on_ready(address);
        }
    })
}

/// Serves sockets and the page, and also stdio if the options name it. `on_ready` receives the address of the page.
fn serve_sockets(
    options: &Options,
    args: &ServeArgs,
    passed: Option<PassedSocket>,
    on_ready: impl FnOnce(Option<&WebAddress>) + 'static,
) -> anyhow::Result<ExitCode> {
    let mut shared = SharedDaemon::of(options, &args.socket, args.idle_exit)?;
    shared.starts_extensions = args.starts_extensions();
    log_problems(&shared.settings);
    let starter = starter(args, passed.is_some())?;
    let mut detached = match args.detached {
        Some(_) => {
            stderr_log::limit_file();
            Some(Detached::begin(&shared.place)?)
        }
        None => None,
    };
    let listening = listen(&shared, args, &starter, passed, detached.as_mut())
        .and_then(|sockets| Ok((sockets, listen_for_browsers(&shared.settings, args)?)));
    let (mut sockets, web) = match listening {
        Ok(listening) => listening,
        Err(error) => {
            if let Some(detached) = detached {
                detached.failed(&format!("{error:#}"));
            }
            return Err(error);
        }
    };
    let (limited, tokens) = listen_for_limited(&shared, &starter, &mut sockets);
    let address = web.as_ref().map(|web| web.address.clone());
    let on_ready = move || {
        if let Some(detached) = detached {
            detached.ready();
        }
        on_ready(address.as_ref());
    };
    let endpoints = Endpoints {
        stdio: args.listen.contains(&ListenAddress::Stdio),
        sockets,
        limited,
        tokens,
        web,
        idle_exit: shared.idle_exit().map(IdleTime::duration),
        on_ready: Box::new(on_ready),
        extensions: args.starts_extensions(),
    };
    serve_with(super::options::usable(shared.settings)?, endpoints)
}

fn log_problems(settings: &Settings) {
    let (file, problems) = settings.complaints();
    for problem in problems {
        let file = file.map(Path::display);
        tracing::warn!(file = file.map(tracing::field::display), "{problem}");
    }
}

fn starter(args: &ServeArgs, is_passed: bool) -> anyhow::Result<StarterProcess> {
    let cwd = std::env::current_dir().context("the working directory")?;
    let parent = process::parent_id();
    let (kind, pid) = match args.detached {
        Some(starter) => (Starter::Connect, Some(starter)),
        None if is_passed => (Starter::Systemd, parent),
        None => (Starter::Serve, parent),
    };
    Ok(StarterProcess {
        kind,
        pid,
        cwd: cwd.display().to_string(),
    })
}

/// Opens the port for the page and the WebSocket that the options name; `None` if they name none.
fn listen_for_browsers(
    settings: &Settings,
    args: &ServeArgs,
) -> anyhow::Result<Option<WebListener>> {
    let mut addresses = args.listen.iter().filter_map(|address| match address {
        ListenAddress::WebSocket(address) => Some(*address),
        _ => None,
    });
    let Some(address) = addresses.next() else {
        return Ok(None);
    };
    if addresses.next().is_some() {
        let remedy = "one address for the page, and unix:PATH for others";
        return Err(ShellError::new(USAGE, "--listen ws can be given only once", remedy).into());
    }
    if let Some(address) = address.filter(|address| !address.ip().is_loopback())
        && !args.insecure_listen
    {
        return Err(ShellError::failed(
            format!(
                "other machines could reach {address}, and read the token and all messages on the way"
            ),
            "ws:127.0.0.1:PORT, with `ssh -L` from elsewhere, or --insecure-listen",
        ));
    }
    WebListener::bind(settings.session_dir(), address).map(Some)
}

/// Opens the sockets that the options name. If systemd has passed a socket, it replaces the first one.
fn listen(
    shared: &SharedDaemon,
    args: &ServeArgs,
    starter: &StarterProcess,
    passed: Option<PassedSocket>,
    detached: Option<&mut Detached>,
) -> anyhow::Result<Vec<(Endpoint, Listener)>> {
    let mut lock = detached.and_then(Detached::take_lock);
    let mut places = Vec::new();
    for address in &args.listen {
        match address {
            ListenAddress::Stdio | ListenAddress::WebSocket(_) => {}
            ListenAddress::Unix(None) => {
                places.push((shared.place.clone(), shared.settings.socket()))
            }
            ListenAddress::Unix(Some(path)) => {
                let place = Place::resolve(Some(path), shared.settings.session_dir())?;
                places.push((place, Some(path)));
            }
        }
    }
    for (place, _) in &places {
        refuse_limited(shared, place.socket())?;
    }
    let mut sockets = Vec::new();
    let mut places = places.into_iter();
    if let Some(passed) = passed {
        refuse_limited(shared, &passed.path)?;
        passed.check(places.next().and_then(|(_, given)| given))?;
        let place = Place::resolve(Some(&passed.path), shared.settings.session_dir())?;
        sockets.push(shared.listen(&place, starter, Some(passed), None)?);
    }
    for (place, _) in places {
        sockets.push(shared.listen(&place, starter, None, lock.take())?);
    }
    Ok(sockets)
}

/// Fails if this is the socket of an access, since connections on such a socket must be limited.
fn refuse_limited(shared: &SharedDaemon, socket: &Path) -> anyhow::Result<()> {
    let is_same = |access: &&NamedAccess| {
        let own = access.socket.as_deref().map(canonical);
        own == Some(canonical(socket))
    };
    match shared.settings.access().iter().find(is_same) {
        Some(access) => Err(ShellError::failed(
            format!(
                "{} is the socket of [access.{}], for limited connections only",
                socket.display(),
                access.name
            ),
            "treelined serve --listen unix, which serves that socket too",
        )),
        None => Ok(()),
    }
}

/// Listens on the sockets of limited connections, reads their tokens, and writes both into the runtime files. An access
/// that cannot be served is only logged, since another daemon with the same configuration may serve it.
fn listen_for_limited(
    shared: &SharedDaemon,
    starter: &StarterProcess,
    sockets: &mut [(Endpoint, Listener)],
) -> (Vec<LimitedSocket>, Vec<AccessToken>) {
    let (mut limited, mut tokens, mut served) = (Vec::new(), Vec::new(), Vec::new());
    for NamedAccess {
        name,
        socket,
        token_file,
        access,
    } in shared.settings.access()
    {
        let failed = |error: anyhow::Error| {
            tracing::warn!("[access.{name}] is not served: {error:#}");
        };
        let listening = socket.as_ref().and_then(|socket| {
            let place = Place::resolve(Some(socket), shared.settings.session_dir());
            let listening = place.and_then(|place| shared.listen(&place, starter, None, None));
            listening.map_err(failed).ok()
        });
        let token = token_file
            .as_ref()
            .and_then(|path| access_token(path).map_err(failed).ok());
        if listening.is_none() && token.is_none() {
            continue;
        }
        let shown = |path: &PathBuf| path.display().to_string();
        served.push(AccessInfo {
            name: name.clone(),
            socket: socket.as_ref().filter(|_| listening.is_some()).map(shown),
            token_file: token_file.as_ref().filter(|_| token.is_some()).map(shown),
            may: access.may().to_owned(),
            directories: access.directories.iter().flatten().map(shown).collect(),
            redact: access.redacts,
        });
        let with_access = |(endpoint, listener)| (endpoint, listener, access.clone());
        limited.extend(listening.map(with_access));
        tokens.extend(token.map(|token| (token, access.clone())));
    }
    for (endpoint, _) in sockets.iter_mut().filter(|_| !served.is_empty()) {
        if let Err(error) = endpoint.announce_access(served.clone()) {
            tracing::warn!("`status` does not show who has which access: {error:#}");
        }
    }
    (limited, tokens)
}
