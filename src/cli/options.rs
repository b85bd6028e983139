//! The options of every command, and the settings that result from them, the environment and the configuration file.

use super::failure::{ShellError, USAGE};
use crate::config::{Config, ConfigFlags, LOG_VARIABLE, Settings, SummarizerName, TeamSettings};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use treelined_core::durability::DurabilityPolicy;

/// The name of the option for servers of a team, without dashes.
const LOG: &str = "log";

/// The daemon's options. The configuration file gives those left out.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Options {
    /// Write long output to the terminal at once, without a pager
    #[arg(long, global = true)]
    pub no_pager: bool,
    /// The configuration file [default: treelined/config.toml in the configuration folder of the platform]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The folder of the sessions [default: treelined/sessions in the data folder of the platform]
    #[arg(long, global = true, value_name = "DIR")]
    pub session_dir: Option<PathBuf>,
    /// The summarizer for summaries that no client writes [default: outline]
    #[arg(long, global = true, value_enum, hide_short_help = true)]
    pub summarizer: Option<SummarizerName>,
    /// The failures that an answered append survives [default: interval]
    #[arg(long, global = true, value_parser = policy(), hide_short_help = true)]
    pub durability: Option<DurabilityPolicy>,
    /// The longest message that is read, in bytes [default: 67108864]
    #[arg(long, global = true, value_name = "BYTES", hide_short_help = true,
          value_parser = clap::value_parser!(u64).range(1024..=1 << 40))]
    pub max_frame_bytes: Option<u64>,
    /// The most bytes of unread output; above it, reading pauses [default: 16777216]
    #[arg(long, global = true, value_name = "BYTES", hide_short_help = true,
          value_parser = clap::value_parser!(u64).range(1024..=1 << 40))]
    pub max_queued_bytes: Option<u64>,
    /// The servers of the team: addresses of NATS with commas between them, or one address of PostgreSQL, or files for
    /// no servers [default: the servers of [team]]
    #[cfg(feature = "team")]
    #[arg(long, global = true, value_name = "URLS", hide_short_help = true)]
    pub log: Option<String>,
}

/// The variable that names the configuration file if `--config` does not. The programs of other packages have no such
/// option for their daemon, so the commands that start them set this variable.
pub(super) const CONFIG_VARIABLE: &str = "TREELINED_CONFIG";

impl Options {
    /// Reads each option that was not given from the environment.
    pub(super) fn with_environment(mut self) -> Self {
        let named = std::env::var_os(CONFIG_VARIABLE).filter(|named| !named.is_empty());
        self.config = self.config.or(named.map(PathBuf::from));
        self
    }

    pub(super) fn config(&self) -> anyhow::Result<Config> {
        usable(self.settings()?)
    }

    pub(super) fn settings(&self) -> anyhow::Result<Settings> {
        self.settings_with(None)
    }

    /// The settings of a command that has the option `--socket`.
    pub(super) fn settings_with(&self, socket: Option<&Path>) -> anyhow::Result<Settings> {
        let flags = ConfigFlags {
            config: self.config.clone(),
            session_dir: self.session_dir.clone(),
            socket: socket.map(Path::to_owned),
            summarizer: self.summarizer,
            durability: self.durability,
            max_frame_bytes: self.max_frame_bytes,
            max_queued_bytes: self.max_queued_bytes,
            log: self.log(),
        };
        Settings::resolve(&flags, &|name| std::env::var_os(name))
            .map_err(|error| in_settings(&error))
    }

    #[cfg(feature = "team")]
    fn log(&self) -> Option<String> {
        self.log.clone()
    }

    #[cfg(not(feature = "team"))]
    #[allow(clippy::unused_self, reason = "as with the feature")]
    fn log(&self) -> Option<String> {
        None
    }

    /// The options that were given: their names without dashes, and their values.
    pub(super) fn given(&self) -> Vec<(&'static str, OsString)> {
        let summarizer = self.summarizer.and_then(|name| name.to_possible_value());
        let number = |value: Option<u64>| value.map(|value| value.to_string().into());
        let all: [(&str, Option<OsString>); 7] = [
            ("config", self.config.clone().map(Into::into)),
            ("session-dir", self.session_dir.clone().map(Into::into)),
            ("summarizer", summarizer.map(|name| name.get_name().into())),
            ("durability", self.durability.map(|it| it.name().into())),
            ("max-frame-bytes", number(self.max_frame_bytes)),
            ("max-queued-bytes", number(self.max_queued_bytes)),
            (LOG, self.log().map(Into::into)),
        ];
        let given = all
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        given.collect()
    }

    /// The same options as arguments for a child daemon, without the option in [`Self::as_variable`].
    pub(super) fn as_arguments(&self) -> Vec<OsString> {
        let given = self.given().into_iter();
        given
            .filter(|(name, _)| *name != LOG)
            .flat_map(|(name, value)| [format!("--{name}").into(), value])
            .collect()
    }

    /// The option that may contain a password, as an environment variable for a child daemon, since all users can
    /// see arguments.
    pub(super) fn as_variable(&self) -> Option<(&'static str, String)> {
        self.log().map(|log| (LOG_VARIABLE, log))
    }
}

fn policy() -> impl TypedValueParser<Value = DurabilityPolicy> {
    let names = PossibleValuesParser::new(DurabilityPolicy::ALL.map(DurabilityPolicy::name));
    let named = |name: &str| {
        DurabilityPolicy::ALL
            .into_iter()
            .find(|it| it.name() == name)
    };
    names.try_map(move |name| named(&name).ok_or("not a policy"))
}

/// The settings of a daemon. Fails if they must not be used, or if they name servers that this build cannot use.
pub(super) fn usable(settings: Settings) -> anyhow::Result<Config> {
    let config = settings.into_config()?;
    let (servers, feature) = match &config.team {
        Some(TeamSettings::Nats(_)) if cfg!(not(feature = "nats")) => {
            ("NATS JetStream", "feature nats")
        }
        Some(TeamSettings::Postgres(_)) if cfg!(not(feature = "postgres")) => {
            ("PostgreSQL", "feature postgres")
        }
        _ => return Ok(config),
    };
    let what = "the team of [team] or of its variable";
    let remedy = format!("{WITH_TEAM}; {LOG_VARIABLE}=files keeps sessions in files only");
    Err(ShellError::new(USAGE, built_without(what, servers, feature), remedy).into())
}

/// How a person gets a program that can keep sessions on the servers of a team.
pub(super) const WITH_TEAM: &str =
    "install treelined from a package, or by cargo install --path . --features nats,postgres";

/// The error for something that needs a feature without which this program was built.
pub(super) fn built_without(what: &str, servers: &str, feature: &str) -> String {
    format!("{what} needs {servers}, and this treelined was built without the {feature}")
}

/// An error of the settings. Its message names the file, the variable or the option.
pub(super) fn in_settings(error: &anyhow::Error) -> anyhow::Error {
    let remedy = "correct it there, or name another file with --config FILE";
    ShellError::failed(format!("{error:#}"), remedy)
}

/// Checks that an option has the values of a definition of the protocol. The option has its own list, with the help of
/// each value.
#[cfg(test)]
#[track_caller]
pub(super) fn assert_values<T: ValueEnum>(definition: &str) {
    let mut documents = treelined_wire::schema::documents();
    let (_, text) = documents
        .find(|(name, _)| *name == "treelined.v1.json")
        .unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let values = T::value_variants().iter();
    let names = values.filter_map(|value| Some(value.to_possible_value()?.get_name().to_owned()));
    let names = names.collect::<Vec<_>>();
    assert_eq!(
        document["$defs"][definition]["enum"],
        serde_json::json!(names)
    );
}
