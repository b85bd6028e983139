//! The section `[log]`: the log of sessions beyond this machine (fleet.md).

use super::lines::{SettingLines, SettingOrigin};
use anyhow::ensure;
use serde::Deserialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use treelined_fleet::settings::{NatsSettings, REPLICAS, STREAM};

const SECTION: &str = "log.nats";
/// The environment variable with the value of `--log`. Its password is not in the list of processes.
pub(crate) const VARIABLE: &str = "TREELINED_LOG_SERVERS";
/// The value of `--log` for no log.
const FILES: &str = "files";
const MOST_REPLICAS: u64 = 5;

/// The treatment of appends while no server can be reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OfflineName {
    #[default]
    Refuse,
    Queue,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LogSection {
    nats: Option<NatsSection>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NatsSection {
    servers: Vec<String>,
    credentials: Option<PathBuf>,
    ca: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    #[serde(default)]
    tls: bool,
    stream: Option<String>,
    replicas: Option<u64>,
    offline: Option<OfflineName>,
}

/// The settings of the file. Paths are relative to the file's folder.
pub(super) fn nats(
    section: LogSection,
    folder: Option<&Path>,
    lines: &mut SettingLines,
) -> anyhow::Result<Option<NatsSettings>> {
    let Some(nats) = section.nats else {
        return Ok(None);
    };
    let queues = nats.offline.unwrap_or_default() == OfflineName::Queue;
    if nats.offline.is_some() {
        let shown = if queues { "queue" } else { "refuse" };
        lines.push((SECTION, "offline"), shown.into(), SettingOrigin::File);
    }
    ensure!(!nats.servers.is_empty(), "{SECTION}.servers: name a server");
    ensure!(
        nats.certificate.is_some() == nats.key.is_some(),
        "{SECTION}.certificate and {SECTION}.key: give both or none"
    );
    let shown = nats
        .servers
        .iter()
        .map(|server| without_password(server).into());
    let shown = toml::Value::Array(shown.collect());
    lines.push((SECTION, "servers"), shown, SettingOrigin::File);
    let mut path = |key: &str, path: Option<PathBuf>| {
        let path = folder.unwrap_or(Path::new("")).join(path?);
        let shown = path.display().to_string();
        lines.push((SECTION, key), shown.into(), SettingOrigin::File);
        Some(path)
    };
    let credentials = path("credentials", nats.credentials);
    let ca = path("ca", nats.ca);
    let certificate = path("certificate", nats.certificate).zip(path("key", nats.key));
    if nats.tls {
        lines.push((SECTION, "tls"), true.into(), SettingOrigin::File);
    }
    let stream = nats.stream.clone().unwrap_or_else(|| STREAM.to_owned());
    let is_name = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_');
    ensure!(
        !stream.is_empty() && stream.chars().all(is_name),
        "{SECTION}.stream: must be letters, digits, '-' or '_'"
    );
    let origin = match nats.stream {
        Some(_) => SettingOrigin::File,
        None => SettingOrigin::Default,
    };
    lines.push((SECTION, "stream"), stream.as_str().into(), origin);
    let replicas = lines.number((SECTION, "replicas"), None, nats.replicas, REPLICAS);
    ensure!(
        (1..=MOST_REPLICAS).contains(&replicas),
        "{SECTION}.replicas: must be from 1 to {MOST_REPLICAS}"
    );
    Ok(Some(NatsSettings {
        servers: nats.servers,
        credentials,
        ca,
        certificate,
        needs_tls: nats.tls,
        stream,
        replicas,
        queues,
    }))
}

/// The settings with the option `--log`, or with its environment variable. The value is addresses joined by commas,
/// which replace the addresses in the file, or `files` for no log.
pub(super) fn with_flag(
    file: Option<NatsSettings>,
    flag: Option<&str>,
    environment: &dyn Fn(&str) -> Option<OsString>,
    lines: &mut SettingLines,
) -> anyhow::Result<Option<NatsSettings>> {
    let variable = environment(VARIABLE).filter(|value| !value.is_empty());
    let variable = variable.map(|value| value.to_string_lossy().into_owned());
    let (given, origin, name) = match (flag, &variable) {
        (Some(flag), _) => (flag, SettingOrigin::Flag, "--log"),
        (None, Some(variable)) => (&**variable, SettingOrigin::Environment, VARIABLE),
        (None, None) => return Ok(file),
    };
    if given == FILES {
        lines.remove(SECTION, None);
        return Ok(None);
    }
    let servers: Vec<String> = given
        .split(',')
        .map(|server| server.trim().to_owned())
        .collect();
    ensure!(
        servers.iter().all(|server| !server.is_empty()),
        "{name}: addresses of servers, joined by commas, or {FILES}"
    );
    let shown = servers.iter().map(|server| without_password(server).into());
    let shown = toml::Value::Array(shown.collect());
    lines.remove(SECTION, Some("servers"));
    lines.push((SECTION, "servers"), shown, origin);
    Ok(Some(match file {
        Some(file) => file.at(servers),
        None => NatsSettings::of_servers(servers),
    }))
}

/// An address without the password that it may have.
fn without_password(server: &str) -> String {
    let start = server.find("://").map_or(0, |at| at + 3);
    match server.rfind('@') {
        Some(at) if at >= start => {
            let (scheme, host) = (server.get(..start), server.get(at..));
            format!(
                "{}…{}",
                scheme.unwrap_or_default(),
                host.unwrap_or_default()
            )
        }
        _ => server.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passwords of addresses were shown in errors.
    #[test]
    fn addresses_are_told_from_the_passwords_in_them() {
        let servers = ["nats://a:s@cret@h1:1", "tls://h2", "h3:2"].map(str::to_owned);
        let (plain, user) = NatsSettings::of_servers(servers.to_vec()).addresses();
        assert_eq!(plain, ["nats://h1:1", "tls://h2", "h3:2"]);
        assert_eq!(user, Some(("a".to_owned(), Some("s@cret".to_owned()))));
        assert_eq!(without_password(&servers[0]), "nats://…@h1:1");
        let token = NatsSettings::of_servers(vec!["nats://token@h".to_owned()]);
        let (plain, user) = token.addresses();
        assert_eq!(plain, ["nats://h"]);
        assert_eq!(user, Some(("token".to_owned(), None)));
    }
}
