//! `treelined status`: shows the shared daemon, as described by its runtime file.

use super::failure::NOT_FOUND;
use super::options::Options;
use super::shared::{SharedDaemon, SocketOption};
use clap::Args;
use serde::Serialize;
use serde_json::json;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use treelined_core::terminal;
use treelined_files::os::socket;
use treelined_service::access::Role;
use treelined_service::endpoint::reach;
use treelined_service::endpoint::runtime_file::{DaemonInfo, Starter};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  treelined status --json | jq .pid

Exit codes: 0 it answers, 1 it does not, 3 none runs.")]
pub(crate) struct Status {
    /// Print the runtime file without the token, with the number of connections and the log, as JSON;
    /// without a daemon `{"running": false, …}`
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    socket: SocketOption,
}

/// The members of `--json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StatusJson<'a> {
    running: bool,
    #[serde(flatten)]
    info: &'a DaemonInfo,
    /// Absent if the system does not provide the number.
    #[serde(skip_serializing_if = "Option::is_none")]
    connections: Option<usize>,
    /// The path of the log file; absent if the daemon logs to its stderr.
    #[serde(skip_serializing_if = "Option::is_none")]
    log: Option<String>,
    /// The reason why the daemon does not answer; null if it answers.
    problem: Option<String>,
}

pub(super) fn run(options: &Options, arguments: &Status) -> anyhow::Result<ExitCode> {
    let shared = SharedDaemon::of(options, &arguments.socket, None)?;
    let Some(mut daemon) = shared.running()? else {
        if !arguments.json {
            return Ok(shared.none_runs());
        }
        let none = json!({
            "running": false,
            "socket": shared.place.socket().display().to_string(),
            "sessionDir": shared.settings.session_dir().display().to_string(),
        });
        writeln!(io::stdout().lock(), "{none:#}")?;
        return Ok(ExitCode::from(NOT_FOUND));
    };
    // The token is left out, since people copy such output into chats and reports.
    daemon.info.token = None;
    let info = &daemon.info;
    let log = shared.place.log_file();
    let is_logged = info.environment.started_by == Starter::Connect;
    let status = StatusJson {
        running: true,
        info,
        connections: socket::connections(Path::new(&info.socket)),
        log: is_logged.then(|| log.display().to_string()),
        problem: reach::probe(&shared.place)
            .err()
            .map(|error| format!("{error:#}")),
    };
    let mut text = match arguments.json {
        true => serde_json::to_string_pretty(&status)?,
        false => described(&status),
    };
    text.push('\n');
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(match status.problem {
        Some(_) => ExitCode::FAILURE,
        None => ExitCode::SUCCESS,
    })
}

/// The status as text, with one line for each fact.
fn described(status: &StatusJson<'_>) -> String {
    let info = status.info;
    let environment = &info.environment;
    let user = match &environment.user {
        Some(user) => format!("{user} (uid {})", environment.uid),
        None => format!("uid {}", environment.uid),
    };
    let starter = match environment.started_by {
        Starter::Connect => "treelined connect",
        Starter::Serve => "treelined serve",
        Starter::Systemd => "systemd",
    };
    let starter = match environment.pid {
        Some(pid) => format!("{starter}, started by process {pid}"),
        None => starter.to_owned(),
    };
    let options: Vec<String> = info
        .options
        .iter()
        .map(|(name, value)| format!("--{name} {value}"))
        .collect();
    let mut lines = vec![
        (
            "daemon",
            format!(
                "treelined {}, protocol {}",
                info.version, info.protocol_version
            ),
        ),
        ("pid", info.pid.to_string()),
        ("since", info.started_at.clone()),
        ("socket", info.socket.clone()),
    ];
    if let Some(url) = info.web_socket.clone() {
        lines.push(("webSocket", url));
        let rights: Vec<&str> = Role::Page.rights().collect();
        lines.push(("page", format!("may {}", rights.join(", "))));
    }
    lines.extend([
        ("sessions", info.session_dir.clone()),
        (
            "environment",
            format!("of {user}, from {starter} in {}", environment.cwd),
        ),
        ("options", options.join(" ")),
    ]);
    lines.extend(limited(info));
    lines.extend(
        status
            .connections
            .map(|count| ("connections", count.to_string())),
    );
    lines.extend(status.log.clone().map(|log| ("log", log)));
    lines.extend(status.problem.clone().map(|problem| ("problem", problem)));
    let mut text = String::new();
    for (name, value) in lines {
        let _infallible = writeln!(text, "{name:<12} {}", terminal::line(&value));
    }
    text.truncate(text.trim_end().len());
    text
}

/// The lines about connections that may not do everything.
fn limited(info: &DaemonInfo) -> impl Iterator<Item = (&'static str, String)> {
    let accesses = info.access.iter().map(|access| {
        let secrets = match access.redact {
            true => "without secrets",
            false => "with secrets",
        };
        let (name, may) = (&access.name, &access.may);
        let places = access.directories.join(", ");
        let mut text = format!("{name}: {may} in {places}, {secrets}");
        for (by, path) in [
            ("on", &access.socket),
            ("with the token in", &access.token_file),
        ] {
            if let Some(path) = path {
                let _infallible = write!(text, ", {by} {path}");
            }
        }
        ("access", text)
    });
    let extensions = info.extensions.iter().map(|extension| {
        let (name, may) = (&extension.name, &extension.may);
        ("extension", format!("{name}: {may}"))
    });
    accesses.chain(extensions)
}
