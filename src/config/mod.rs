//! The settings of the program and their sources: the command line, then the environment, then the
//! configuration file, then the defaults.
//!
//! [`flags`] has the values from the command line, [`sections`] the content of the file. This module checks the file,
//! whose format is TOML; an unknown key is an error that names the key. The file never contains keys of model
//! providers, only the names of environment variables.

mod access;
mod author;
mod file;
mod flags;
mod idle_time;
mod keep_time;
mod lines;
mod paths;
mod prices;
mod programs;
mod redact_words;
mod renderers;
mod sections;
mod summarizer;
mod team;

pub(crate) use file::check;
pub(crate) use flags::{ConfigFlags, EnvironmentLookup, SummarizerName};
pub(crate) use idle_time::IdleTime;
pub(crate) use keep_time::KeepTime;
pub(crate) use team::VARIABLE as LOG_VARIABLE;
pub(crate) use treelined_fleet::settings::TeamSettings;

use self::renderers::renderers;
use anyhow::{Context, anyhow, ensure};
use file::ConfigFile;
use idle_time::idle_exit;
use lines::SettingLines;
use paths::{session_dir, socket};
use prices::prices;
use programs::{extensions, hooks};
use sections::LimitsSection;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use summarizer::{key_variables, summarizer};
use treelined_core::author::Author;
use treelined_core::durability::DurabilityPolicy;
use treelined_files::kept::KEPT_BYTES;
use treelined_service::access::NamedAccess;
use treelined_service::extensions::Extension;
use treelined_service::settings::DaemonSettings;
use treelined_usage::Price;

/// The settings of one daemon and of its team.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub daemon: DaemonSettings,
    /// The team whose servers have the sessions; `None` without a team.
    pub team: Option<TeamSettings>,
    /// The writer that new entries of the team's sessions name.
    pub author: Author,
    /// Whether entries of sessions without a team name their writer too.
    pub signs_all: bool,
    /// The prices of models, by `provider/model` or by the name of the model.
    pub prices: BTreeMap<String, Price>,
    /// How long deleted sessions are kept; `None` if there is no such setting.
    pub trash_keep: Option<KeepTime>,
}

/// The settings in force as JSON.
#[derive(Serialize)]
pub(crate) struct SettingsJson<'s> {
    file: Option<&'s Path>,
    /// The reason why the file must not be used.
    problem: Option<&'s str>,
    settings: &'s SettingLines,
}

/// The settings in force, and the source of each of them.
pub(crate) struct Settings {
    config: Config,
    socket: Option<PathBuf>,
    access: Vec<NamedAccess>,
    idle_exit: Option<IdleTime>,
    lines: SettingLines,
    file: Option<PathBuf>,
    /// The reason why the file must not be used.
    refused: Option<String>,
}

const LIMITS: std::ops::RangeInclusive<u64> = 1024..=1 << 40;
const MAX_FRAME_BYTES: u64 = 64 << 20;
const MAX_QUEUED_BYTES: u64 = 16 << 20;
const MAX_WORKING_BYTES: u64 = 256 << 20;
const MAX_KEPT_BYTES: u64 = KEPT_BYTES as u64;

/// Limits of memory, in bytes.
struct MemoryLimits {
    frame: usize,
    queued: usize,
    working: usize,
    kept: usize,
}

fn limits(
    flags: &ConfigFlags,
    file: &LimitsSection,
    lines: &mut SettingLines,
) -> anyhow::Result<MemoryLimits> {
    let mut bytes = |key: &str, flag: Option<u64>, file: Option<u64>, default: u64| {
        let value = lines.number(("limits", key), flag, file, default);
        ensure!(
            LIMITS.contains(&value),
            "limits.{key}: must be from {} to {}",
            LIMITS.start(),
            LIMITS.end()
        );
        anyhow::Ok(usize::try_from(value)?)
    };
    Ok(MemoryLimits {
        frame: bytes(
            "max_frame_bytes",
            flags.max_frame_bytes,
            file.max_frame_bytes,
            MAX_FRAME_BYTES,
        )?,
        queued: bytes(
            "max_queued_bytes",
            flags.max_queued_bytes,
            file.max_queued_bytes,
            MAX_QUEUED_BYTES,
        )?,
        working: bytes(
            "max_working_bytes",
            None,
            file.max_working_bytes,
            MAX_WORKING_BYTES,
        )?,
        kept: bytes("max_kept_bytes", None, file.max_kept_bytes, MAX_KEPT_BYTES)?,
    })
}

impl Settings {
    /// Reads the configuration file and combines all sources. Fails if a setting is wrong; the error names the setting.
    pub(crate) fn resolve(
        flags: &ConfigFlags,
        environment: EnvironmentLookup<'_>,
    ) -> anyhow::Result<Self> {
        let ConfigFile {
            path,
            file,
            refused,
        } = file::read(flags.config.as_deref())?;
        let folder = path.as_deref().and_then(Path::parent);
        let mut lines = SettingLines::default();
        let session_dir = session_dir(flags, environment, &file, folder, &mut lines)?;
        let socket = socket(flags, environment, &file, folder, &mut lines)?;
        let access = access::access(&file.access, folder, &mut lines)?;
        let idle_exit = idle_exit(environment, file.idle_exit, &mut lines)?;
        let durability = lines.pick(
            ("", "durability"),
            flags.durability,
            file.durability,
            DurabilityPolicy::default(),
            |policy| policy.name().into(),
        );
        let limits = limits(flags, &file.limits, &mut lines)?;
        let summarizer = summarizer(flags, environment, &file.summarizer, &mut lines)?;
        let keys = key_variables(&file.summarizer.llm);
        let hooks = hooks(&file.hooks, path.as_deref(), &keys, &mut lines)?;
        let extensions = extensions(&file.extensions, path.as_deref(), &keys, &mut lines)?;
        let renderers = renderers(&file.renderers, &mut lines)?;
        let prices = prices(&file.prices, &mut lines)?;
        let redact = redact_words::redact(file.redact.words, keys, &mut lines)?;
        let trash_keep = keep_time::keep(file.trash.keep, &mut lines);
        let team = team::team(file.team, file.log, folder, &mut lines)?;
        let team = team::with_flag(team, flags.log.as_deref(), environment, &mut lines)?;
        let signs_all = file.author.is_some();
        let author = author::author(file.author, environment, &mut lines)?;
        let cwd = std::env::current_dir().context("the working directory")?;
        Ok(Self {
            config: Config {
                daemon: DaemonSettings {
                    session_dir,
                    durability: durability.into(),
                    summarizer,
                    hooks,
                    extensions,
                    renderers,
                    redact,
                    max_frame_bytes: limits.frame,
                    max_queued_bytes: limits.queued,
                    max_working_bytes: limits.working,
                    max_kept_bytes: limits.kept,
                    cwd: cwd.display().to_string(),
                },
                team,
                author,
                signs_all,
                prices,
                trash_keep,
            },
            socket,
            access,
            idle_exit,
            lines,
            file: path,
            refused,
        })
    }

    /// The value of a setting in force, and whether it is the default. `None` if there is no such setting.
    pub(crate) fn value(&self, section: &str, key: &str) -> Option<(String, bool)> {
        self.lines.value(section, key)
    }

    /// The configuration file that was read.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    pub(crate) fn session_dir(&self) -> &Path {
        &self.config.daemon.session_dir
    }

    /// The socket of the shared daemon, if one was given.
    pub(crate) fn socket(&self) -> Option<&Path> {
        self.socket.as_deref()
    }

    /// The sockets of limited connections.
    pub(crate) fn access(&self) -> &[NamedAccess] {
        &self.access
    }

    /// The clients that the daemon starts.
    pub(crate) fn extensions(&self) -> &[Extension] {
        &self.config.daemon.extensions
    }

    /// The time without a connection after which a daemon with a socket ends.
    pub(crate) fn idle_exit(&self) -> Option<IdleTime> {
        self.idle_exit
    }

    /// The settings for a daemon. Fails if the file must not be used.
    pub(crate) fn into_config(self) -> anyhow::Result<Config> {
        match self.refused {
            Some(why) => Err(anyhow!(why)),
            None => Ok(self.config),
        }
    }

    /// The settings in force, in the form of a configuration file. Each line has its source, and its problem if there
    /// is one.
    pub(crate) fn describe(&self) -> String {
        let mut text = match &self.file {
            Some(path) => format!("configuration file: {}", path.display()),
            None => "no configuration file".to_owned(),
        };
        text = lines::comment(&text);
        if let Some(why) = &self.refused {
            text.push_str(&lines::comment(why));
        }
        self.lines.describe(&mut text);
        text
    }

    /// The same as [`Self::describe`], as JSON for programs.
    pub(crate) fn as_json(&self) -> SettingsJson<'_> {
        SettingsJson {
            file: self.file.as_deref(),
            problem: self.refused.as_deref(),
            settings: &self.lines,
        }
    }

    /// Problems that do not prevent the daemon from running, such as programs that cannot be started.
    pub(crate) fn problems(&self) -> impl Iterator<Item = &str> {
        self.lines.notes()
    }

    /// How settings with old names are written now.
    pub(crate) fn hints(&self) -> impl Iterator<Item = &str> {
        self.lines.hints()
    }

    /// All problems, and the file that they are in.
    pub(crate) fn complaints(&self) -> (Option<&Path>, Vec<&str>) {
        let refused = self.refused.as_deref().into_iter();
        (
            self.file.as_deref(),
            refused.chain(self.problems()).collect(),
        )
    }
}
