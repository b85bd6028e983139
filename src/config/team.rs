//! The section `[team]`: the servers that several machines share (fleet.md).

use super::keep_time::KeepTime;
use super::lines::{SettingLines, SettingOrigin};
use anyhow::ensure;
use serde::Deserialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use treelined_fleet::settings::{
    NatsSettings, PostgresSettings, REPLICAS, Retention, STREAM, TeamSettings,
};

const SECTION: &str = "team";
/// The values of `engine`.
const NATS: &str = "nats";
const POSTGRES: &str = "postgres";
/// The environment variable with the value of `--log`. Its password is not in the list of processes.
pub(crate) const VARIABLE: &str = "TREELINED_LOG_SERVERS";
/// The value of `--log` for sessions in files only, without a team.
const FILES: &str = "files";
const MOST_REPLICAS: u64 = 5;

/// Whether appends are refused or queued while no server can be reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OfflineName {
    #[default]
    Refuse,
    Queue,
}

/// `[team]`, with the members of its engine.
#[derive(Debug, Deserialize)]
#[serde(tag = "engine", rename_all = "lowercase")]
pub(super) enum TeamSection {
    Nats(NatsSection),
    Postgres(PostgresSection),
}

/// `[log]`: the names that `[team]` had.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LogSection {
    nats: Option<NatsSection>,
    postgres: Option<PostgresSection>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PostgresSection {
    url: String,
    ca: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    offline: Option<OfflineName>,
    keep: Option<KeepTime>,
    erase: Option<KeepTime>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NatsSection {
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
    keep: Option<KeepTime>,
    erase: Option<KeepTime>,
}

/// The settings of the team from the file. Paths are relative to the folder of the file.
pub(super) fn team(
    section: Option<TeamSection>,
    old: LogSection,
    folder: Option<&Path>,
    lines: &mut SettingLines,
) -> anyhow::Result<Option<TeamSettings>> {
    let named = [
        section.map(|section| (section, None)),
        (old.nats).map(|nats| (TeamSection::Nats(nats), Some(NATS))),
        (old.postgres).map(|postgres| (TeamSection::Postgres(postgres), Some(POSTGRES))),
    ];
    let mut named = named.into_iter().flatten();
    let Some((section, old)) = named.next() else {
        return Ok(None);
    };
    ensure!(
        named.next().is_none(),
        "[{SECTION}], [log.{NATS}] and [log.{POSTGRES}]: give one, since a team has one engine"
    );
    let engine = match section {
        TeamSection::Nats(_) => NATS,
        TeamSection::Postgres(_) => POSTGRES,
    };
    lines.push((SECTION, "engine"), engine.into(), SettingOrigin::File);
    if let Some(old) = old {
        lines.hint(format!(
            "[log.{old}] is the old name of this section: write [{SECTION}] with engine = \"{old}\""
        ));
    }
    Ok(Some(match section {
        TeamSection::Nats(nats) => TeamSettings::Nats(self::nats(nats, folder, lines)?),
        TeamSection::Postgres(postgres) => {
            TeamSettings::Postgres(self::postgres(postgres, folder, lines)?)
        }
    }))
}

/// Whether appends wait in files, by the setting of a section.
fn queues(offline: Option<OfflineName>, lines: &mut SettingLines) -> bool {
    let queues = offline.unwrap_or_default() == OfflineName::Queue;
    if offline.is_some() {
        let shown = if queues { "queue" } else { "refuse" };
        lines.push((SECTION, "offline"), shown.into(), SettingOrigin::File);
    }
    queues
}

/// When sessions without activity are closed and erased, by the settings of a section.
fn retention(
    keep: Option<KeepTime>,
    erase: Option<KeepTime>,
    lines: &mut SettingLines,
) -> anyhow::Result<Option<Retention>> {
    for (key, time) in [("keep", keep), ("erase", erase)] {
        if let Some(time) = time {
            let shown = time.to_string().into();
            lines.push((SECTION, key), shown, SettingOrigin::File);
        }
    }
    ensure!(
        keep.is_some() || erase.is_none(),
        "{SECTION}.erase: needs {SECTION}.keep too"
    );
    let time = |of: KeepTime| Duration::from_millis(of.millis().unsigned_abs());
    Ok(keep.map(|keep| Retention {
        keep: time(keep),
        erase: erase.map(time),
    }))
}

fn postgres(
    section: PostgresSection,
    folder: Option<&Path>,
    lines: &mut SettingLines,
) -> anyhow::Result<PostgresSettings> {
    let PostgresSection {
        url,
        ca,
        certificate,
        key,
        offline,
        keep,
        erase,
    } = section;
    let queues = queues(offline, lines);
    let retention = retention(keep, erase, lines)?;
    ensure!(
        PostgresSettings::is_url(&url),
        "{SECTION}.url: begins with postgres://"
    );
    ensure!(
        certificate.is_some() == key.is_some(),
        "{SECTION}.certificate and {SECTION}.key: give both or none"
    );
    let shown = without_password(&url);
    lines.push((SECTION, "url"), shown.into(), SettingOrigin::File);
    let mut path = |key: &str, path: Option<PathBuf>| {
        let path = folder.unwrap_or(Path::new("")).join(path?);
        let shown = path.display().to_string();
        lines.push((SECTION, key), shown.into(), SettingOrigin::File);
        Some(path)
    };
    Ok(PostgresSettings {
        url,
        ca: path("ca", ca),
        certificate: path("certificate", certificate).zip(path("key", key)),
        queues,
        retention,
    })
}

fn nats(
    nats: NatsSection,
    folder: Option<&Path>,
    lines: &mut SettingLines,
) -> anyhow::Result<NatsSettings> {
    let queues = queues(nats.offline, lines);
    ensure!(
        nats.erase.is_none(),
        "{SECTION}.erase: a team on NATS cannot erase, since its streams keep all"
    );
    let retention = retention(nats.keep, nats.erase, lines)?;
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
    Ok(NatsSettings {
        servers: nats.servers,
        credentials,
        ca,
        certificate,
        needs_tls: nats.tls,
        stream,
        replicas,
        queues,
        retention,
    })
}

/// The settings after applying the option `--log` or its environment variable. The value is one of three: addresses
/// of NATS joined by commas, which replace the addresses in the file; an address of PostgreSQL; or `files` for no
/// team.
pub(super) fn with_flag(
    file: Option<TeamSettings>,
    flag: Option<&str>,
    environment: &dyn Fn(&str) -> Option<OsString>,
    lines: &mut SettingLines,
) -> anyhow::Result<Option<TeamSettings>> {
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
    let mut begin = |engine: &str, address: &str, is_of_file: bool| {
        let other = if is_of_file { Some(address) } else { None };
        lines.remove(SECTION, other);
        if !is_of_file {
            lines.push((SECTION, "engine"), engine.into(), origin);
        }
    };
    if PostgresSettings::is_url(given) {
        begin(
            POSTGRES,
            "url",
            matches!(file, Some(TeamSettings::Postgres(_))),
        );
        lines.push((SECTION, "url"), without_password(given).into(), origin);
        let url = given.to_owned();
        return Ok(Some(TeamSettings::Postgres(match file {
            Some(TeamSettings::Postgres(file)) => PostgresSettings { url, ..file },
            _ => PostgresSettings::of_url(url),
        })));
    }
    let servers: Vec<String> = given
        .split(',')
        .map(|server| server.trim().to_owned())
        .collect();
    ensure!(
        servers.iter().all(|server| !server.is_empty()),
        "{name}: addresses of servers joined by commas, an address of PostgreSQL, or {FILES}"
    );
    let shown = servers.iter().map(|server| without_password(server).into());
    let shown = toml::Value::Array(shown.collect());
    begin(NATS, "servers", matches!(file, Some(TeamSettings::Nats(_))));
    lines.push((SECTION, "servers"), shown, origin);
    Ok(Some(TeamSettings::Nats(match file {
        Some(TeamSettings::Nats(file)) => file.at(servers),
        _ => NatsSettings::of_servers(servers),
    })))
}

/// An address without its password, and without its options, since these may contain a password too.
fn without_password(server: &str) -> String {
    let server = server.split('?').next().unwrap_or(server);
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

    /// Passwords of addresses were once shown in errors.
    #[test]
    fn addresses_are_told_from_the_passwords_in_them() {
        let servers = ["nats://a:s@cret@h1:1", "tls://h2", "h3:2"].map(str::to_owned);
        let (plain, user) = NatsSettings::of_servers(servers.to_vec()).addresses();
        assert_eq!(plain, ["nats://h1:1", "tls://h2", "h3:2"]);
        assert_eq!(user, Some(("a".to_owned(), Some("s@cret".to_owned()))));
        assert_eq!(without_password(&servers[0]), "nats://…@h1:1");
        let database = without_password("postgres://a:s@h1,h2/team?password=x");
        assert_eq!(database, "postgres://…@h1,h2/team");
        let token = NatsSettings::of_servers(vec!["nats://token@h".to_owned()]);
        let (plain, user) = token.addresses();
        assert_eq!(plain, ["nats://h"]);
        assert_eq!(user, Some(("token".to_owned(), None)));
    }
}
