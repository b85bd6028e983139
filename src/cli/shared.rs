//! The shared daemon, for the commands that use it: its socket, its options, and its start.

use super::failure::{NOT_FOUND, ShellError, warn};
use super::options::Options;
use crate::config::{IdleTime, Settings};
use clap::Args;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use treelined_core::id::Source;
use treelined_core::timestamp;
use treelined_files::clock::SystemSource;
pub(crate) use treelined_files::os::socket::Listener;
use treelined_files::os::{process, program};
use treelined_service::endpoint::place::canonical;
use treelined_service::endpoint::runtime_file::{
    DaemonInfo, EnvironmentOrigin, ExtensionInfo, FoundInfo, Starter,
};
use treelined_service::endpoint::start_lock::StartLock;
use treelined_service::endpoint::{self, Endpoint, PassedSocket, Place, detached, runtime_file};
use treelined_wire::schema::PROTOCOL_VERSION;

/// The option that is in the runtime file of a daemon only if it was given.
const IDLE_EXIT: &str = "idle-exit";

#[derive(Debug, Clone, Default, Args)]
pub(super) struct SocketOption {
    /// The socket of the shared daemon [default: the socket of the session directory]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
}

/// The arguments of the process that leaves the terminal.
#[derive(Debug, Args)]
pub(crate) struct Detach {
    #[arg(last = true)]
    arguments: Vec<OsString>,
}

impl Detach {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        program::detach(&self.arguments)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The process that has started the daemon.
pub(super) struct StarterProcess {
    pub kind: Starter,
    pub pid: Option<u32>,
    pub cwd: String,
}

/// The socket and the settings of the shared daemon.
pub(super) struct SharedDaemon {
    pub place: Place,
    pub settings: Settings,
    /// The value on the command line.
    idle_exit: Option<IdleTime>,
    /// Whether the daemon starts the extensions of the settings.
    pub starts_extensions: bool,
}

impl SharedDaemon {
    pub(super) fn of(
        options: &Options,
        socket: &SocketOption,
        idle_exit: Option<IdleTime>,
    ) -> anyhow::Result<Self> {
        let settings = options.settings_with(socket.socket.as_deref())?;
        let place = Place::resolve(settings.socket(), settings.session_dir())?;
        Ok(Self {
            place,
            settings,
            idle_exit,
            starts_extensions: true,
        })
    }

    /// The time without a connection after which a daemon with these options ends; `None` if it does not end.
    pub(super) fn idle_exit(&self) -> Option<IdleTime> {
        self.idle_exit.or(self.settings.idle_exit())
    }

    /// The running daemon; `None` if none runs.
    pub(super) fn running(&self) -> anyhow::Result<Option<FoundInfo>> {
        if !self.place.check()? {
            return Ok(None);
        }
        let found = runtime_file::read(&self.place)?;
        Ok(found.filter(FoundInfo::is_alive))
    }

    /// Reports that no daemon runs, and how to start one. Returns the exit code.
    pub(super) fn none_runs(&self) -> ExitCode {
        let message = format!(
            "no daemon runs for {} (socket {})",
            self.settings.session_dir().display(),
            self.place.socket().display()
        );
        let remedy = "`treelined connect --start` or `treelined serve --listen unix` starts one";
        ShellError::new(NOT_FOUND, message, remedy).report()
    }

    /// The error for a daemon without a runtime file.
    pub(super) fn has_no_runtime_file(&self) -> anyhow::Error {
        let socket = self.place.socket().display();
        ShellError::failed(
            format!("the daemon on {socket} has no runtime file, so its version is not known"),
            "end that daemon, and start one with `treelined connect --start`",
        )
    }

    /// Opens the socket on which the daemon listens. The socket differs from the socket of the settings if `--listen`
    /// or systemd names another one.
    pub(super) fn listen(
        &self,
        place: &Place,
        starter: &StarterProcess,
        passed: Option<PassedSocket>,
        lock: Option<StartLock>,
    ) -> anyhow::Result<(Endpoint, Listener)> {
        let info = DaemonInfo {
            pid: std::process::id(),
            socket: place.socket().display().to_string(),
            web_socket: None,
            token: None,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            protocol_version: PROTOCOL_VERSION,
            session_dir: canonical(self.settings.session_dir()).display().to_string(),
            started_at: timestamp::format(SystemSource.now_ms()),
            environment: EnvironmentOrigin {
                uid: process::user(),
                user: std::env::var("USER").ok(),
                started_by: starter.kind,
                pid: starter.pid,
                cwd: starter.cwd.clone(),
            },
            options: self.options(),
            access: Vec::new(),
            extensions: self.extensions(),
        };
        endpoint::listen(place, &info, passed, lock)
    }

    fn extensions(&self) -> Vec<ExtensionInfo> {
        let started = self.settings.extensions().iter();
        let started = started.filter(|_| self.starts_extensions);
        let info = started.map(|extension| ExtensionInfo {
            name: extension.name.clone(),
            may: extension.may.name().to_owned(),
        });
        info.collect()
    }

    /// The daemon's options in force.
    fn options(&self) -> BTreeMap<String, String> {
        let settings = [
            ("session-dir", "", "session_dir"),
            ("summarizer", "summarizer", "use"),
            ("durability", "", "durability"),
            ("max-frame-bytes", "limits", "max_frame_bytes"),
            ("max-queued-bytes", "limits", "max_queued_bytes"),
            ("log", "team", "servers"),
            ("log", "team", "url"),
        ];
        let of = |(name, section, key): (&str, &str, &str)| {
            let (value, _) = self.settings.value(section, key)?;
            Some((name.to_owned(), value))
        };
        let mut options: BTreeMap<_, _> = settings.into_iter().filter_map(of).collect();
        if let Some(file) = self.settings.file() {
            options.insert("config".to_owned(), file.display().to_string());
        }
        if let Some(time) = self.idle_exit() {
            options.insert(IDLE_EXIT.to_owned(), time.to_string());
        }
        options
    }

    /// Fails if an option that was given differs from the option of the running daemon, or if that daemon keeps
    /// other sessions.
    pub(super) fn check_options(
        &self,
        options: &Options,
        daemon: &DaemonInfo,
    ) -> anyhow::Result<()> {
        let own = self.options();
        let given = options.given().into_iter().map(|(name, _)| name);
        for name in given.chain(self.idle_exit.map(|_| IDLE_EXIT)) {
            let (own, running) = (own.get(name), daemon.options.get(name));
            let is_same = match name {
                "session-dir" => true,
                _ => own == running,
            };
            if !is_same {
                return Err(differing(daemon, name, running, own));
            }
        }
        // A default directory may differ, since the user has not chosen it. It must not differ if the socket is derived
        // from the directory, since then the socket belongs to this directory.
        let is_default = self
            .settings
            .value("", "session_dir")
            .is_none_or(|(_, is_default)| is_default);
        let own = canonical(self.settings.session_dir()).display().to_string();
        if own != daemon.session_dir && (self.place.is_derived() || !is_default) {
            let running = Some(&daemon.session_dir);
            return Err(differing(daemon, "session-dir", running, Some(&own)));
        }
        Ok(())
    }

    /// Starts a daemon with these options, and waits until it listens.
    pub(super) fn start(&self, options: &Options, lock: StartLock) -> anyhow::Result<()> {
        let mut arguments = options.as_arguments();
        arguments.extend(["serve", "--listen", "unix", "--detached"].map(OsString::from));
        arguments.push(std::process::id().to_string().into());
        if let Some(time) = self.idle_exit {
            arguments.extend(["--idle-exit".into(), time.to_string().into()]);
        }
        if !self.place.is_derived() {
            arguments.push("--socket".into());
            arguments.push(self.place.socket().into());
        }
        detached::start(&self.place, lock, &arguments, options.as_variable())
    }
}

/// The error if an option differs. A value is `None` if the option was not given.
fn differing(
    daemon: &DaemonInfo,
    name: &str,
    running: Option<&String>,
    own: Option<&String>,
) -> anyhow::Error {
    let difference = match running {
        Some(running) => format!("has --{name} {running}"),
        None => format!("was started without --{name}"),
    };
    let own = own.map_or("none", String::as_str);
    let pid = daemon.pid;
    ShellError::failed(
        format!("the running daemon (pid {pid}) {difference}, and this command has {own}"),
        "leave the option out, end the daemon with `treelined stop`, or name another socket in TREELINED_SOCKET",
    )
}

/// Fails if the versions of the protocol differ between this program and the daemon. If only the versions of the
/// programs differ, it warns.
pub(super) fn check_version(daemon: &DaemonInfo) -> anyhow::Result<()> {
    let own = env!("CARGO_PKG_VERSION");
    let DaemonInfo {
        pid,
        version,
        protocol_version,
        ..
    } = daemon;
    if *protocol_version != PROTOCOL_VERSION {
        let message = format!(
            "the running daemon (pid {pid}, treelined {version}) speaks version {protocol_version} of the protocol, and \
             this program (treelined {own}) version {PROTOCOL_VERSION}"
        );
        let remedy =
            "treelined stop, so that the next `treelined connect --start` starts this version";
        return Err(ShellError::failed(message, remedy));
    }
    if version != own {
        warn(
            &format!(
                "the running daemon (pid {pid}) is treelined {version}, and this program {own}; both speak version \
                 {PROTOCOL_VERSION} of the protocol"
            ),
            "treelined stop, so that the next client starts this version",
        );
    }
    Ok(())
}
