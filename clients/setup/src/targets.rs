//! The files into which setup puts its pieces, for each agent.

use crate::agent::Agent;
use crate::pieces::{Piece, Server};
use crate::program::{self, Program};
use rustix::fs::{Access, access};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// The variables that say where agents and treelined keep their sessions. A user unit does not inherit them.
const VARIABLES: [&str; 5] = [
    "GEMINI_CLI_HOME",
    "GOOSE_PATH_ROOT",
    "PI_CODING_AGENT_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
];

/// The environment of this machine.
pub(crate) struct Machine {
    pub(crate) home: PathBuf,
    /// Looks up a variable.
    variable: fn(&str) -> Option<OsString>,
}

/// The pieces of one file.
pub(crate) struct Target {
    pub(crate) agent: Agent,
    pub(crate) path: PathBuf,
    pub(crate) piece: Piece,
}

impl Machine {
    pub(crate) fn this() -> Option<Self> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let home = variable("HOME").map(PathBuf::from)?;
        Some(Self { home, variable })
    }

    fn folder(&self, variable: &str, default: &str) -> PathBuf {
        let named = (self.variable)(variable).map(PathBuf::from);
        named.unwrap_or_else(|| self.home.join(default))
    }

    fn absolute(&self, variable: &str, default: &str) -> PathBuf {
        let named = (self.variable)(variable).map(PathBuf::from);
        let named = named.filter(|path| path.is_absolute());
        named.unwrap_or_else(|| self.home.join(default))
    }

    fn configuration(&self) -> PathBuf {
        self.absolute("XDG_CONFIG_HOME", ".config")
    }

    /// The path of the record of changes.
    pub(crate) fn record(&self) -> PathBuf {
        let state = self.absolute("XDG_STATE_HOME", ".local/state");
        state.join("treelined/setup.json")
    }

    /// The variables that a unit needs and that are set, with their values.
    pub(crate) fn environment(&self) -> Vec<(&'static str, OsString)> {
        let variables = VARIABLES.into_iter();
        variables
            .filter_map(|name| Some((name, (self.variable)(name)?)))
            .collect()
    }

    /// The program of this name on the `PATH`. Relative folders of the `PATH` are skipped: they mean another folder in
    /// each working directory.
    pub(crate) fn find(&self, name: &str) -> Option<PathBuf> {
        let path = (self.variable)("PATH")?;
        let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
        let mut programs = folders.map(|folder| folder.join(name));
        programs.find(|program| program.is_file() && access(program, Access::EXEC_OK).is_ok())
    }
}

impl Agent {
    fn program(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude",
            other => other.name(),
        }
    }

    /// Whether the agent is on this machine: its folder or its program exists.
    pub(crate) fn is_here(self, machine: &Machine) -> bool {
        self.folder(machine).is_dir() || machine.find(self.program()).is_some()
    }

    /// The folder of the agent's configuration.
    fn folder(self, machine: &Machine) -> PathBuf {
        match self {
            Self::ClaudeCode => machine.folder("CLAUDE_CONFIG_DIR", ".claude"),
            Self::Codex => machine.folder("CODEX_HOME", ".codex"),
            Self::Opencode => match (machine.variable)("OPENCODE_CONFIG_DIR") {
                Some(folder) => folder.into(),
                None => machine.configuration().join("opencode"),
            },
            Self::Gemini => machine.folder("GEMINI_CLI_HOME", "").join(".gemini"),
            Self::Goose => match (machine.variable)("GOOSE_PATH_ROOT") {
                Some(root) => PathBuf::from(root).join("config"),
                None => machine.configuration().join("goose"),
            },
            Self::Pi => machine.folder("PI_CODING_AGENT_DIR", ".pi/agent"),
        }
    }

    /// The pieces for the agent, by their files. With `recalls`, the hooks that recall are included.
    pub(crate) fn targets(
        self,
        machine: &Machine,
        program: &Program,
        recalls: bool,
    ) -> Vec<Target> {
        let folder = self.folder(machine);
        let target = |path: PathBuf, piece| Target {
            agent: self,
            path,
            piece,
        };
        let hooks = |recalls| Piece::Hooks {
            agent: self,
            recalls,
        };
        let server = |object, server| Piece::Server { object, server };
        let unit = || {
            let units = machine.configuration().join("systemd/user");
            let name = format!("treelined-import-{}.service", self.name());
            let (wants, link) = program::wants(&units, OsStr::new(&name));
            [
                target(units.join(&name), Piece::Own(program.unit(self.name()))),
                target(wants, Piece::Link(link)),
            ]
        };
        match self {
            Self::ClaudeCode => {
                // The file is beside the default folder, or in the folder that the variable names.
                let own = match (machine.variable)("CLAUDE_CONFIG_DIR") {
                    Some(folder) => PathBuf::from(folder).join(".claude.json"),
                    None => machine.home.join(".claude.json"),
                };
                vec![
                    target(folder.join("settings.json"), hooks(recalls)),
                    target(own, server("mcpServers", Server::Stdio)),
                ]
            }
            Self::Codex => {
                let recall = recalls.then(|| target(folder.join("hooks.json"), hooks(true)));
                let config = target(folder.join("config.toml"), Piece::Codex);
                [config].into_iter().chain(recall).collect()
            }
            Self::Opencode => {
                let names = ["opencode.jsonc", "opencode.json", "config.json"];
                let mut files = names.iter().map(|name| folder.join(name));
                let file = files.find(|file| file.symlink_metadata().is_ok());
                let file = file.unwrap_or_else(|| folder.join("opencode.json"));
                vec![
                    target(
                        folder.join("plugins/treelined.js"),
                        Piece::Plugin { recalls },
                    ),
                    target(file, server("mcp", Server::Local)),
                ]
            }
            Self::Gemini => {
                let pieces = vec![server("mcpServers", Server::Plain), hooks(recalls)];
                let file = target(folder.join("settings.json"), Piece::Several(pieces));
                unit().into_iter().chain([file]).collect()
            }
            Self::Goose => {
                let file = target(folder.join("config.yaml"), Piece::Extension);
                unit().into_iter().chain([file]).collect()
            }
            Self::Pi => {
                let extension = || Piece::Own(program.extension());
                let path = folder.join("extensions/treelined.js");
                let recall = recalls.then(|| target(path, extension()));
                unit().into_iter().chain(recall).collect()
            }
        }
    }
}
