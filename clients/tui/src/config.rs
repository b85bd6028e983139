//! The configuration file: keys, colours, how the daemon is started.
//!
//! The file is `treelined/tui.toml` in the configuration folder of the platform, or `--config FILE`. Every setting
//! is optional. An unknown setting is an error, so that mistyped names are noticed.

use crate::keys::{KeySet, Keymap, Remaps};
use crate::message::Filter;
use crate::theme::{Background, Theme, ThemeName};
use etcetera::BaseStrategy;
use std::path::{Path, PathBuf};

/// The settings in the file.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub background: Option<Background>,
    /// The theme of colours. Default: `auto`.
    pub theme: Option<ThemeName>,
    /// Whether the preview is open at the start. Default: true.
    pub preview: Option<bool>,
    /// The filter at the start. Default: `default`.
    pub filter: Option<Filter>,
    /// Whether a navigation summarizes the entries that it leaves. Default: `ask`.
    pub summary: Option<Summary>,
    /// Whether the program handles clicks and the wheel; otherwise the terminal selects text. Default: true.
    pub mouse: Option<bool>,
    /// The daemon's program and its arguments.
    pub daemon: Option<Vec<String>>,
    /// Whether the daemon of the session directory is shared with other clients, as with `--shared`. Default: false.
    pub shared: Option<bool>,
    /// The socket of a daemon to share, as with `--socket`.
    pub socket: Option<PathBuf>,
    /// Whether letters are commands, or begin a search. Default: `letters`.
    #[serde(default, rename = "key-set")]
    pub key_set: KeySet,
    /// The action of pressing Esc twice in the tree if nothing is left to close. Default: `none`.
    #[serde(default, rename = "double-escape")]
    pub double_escape: DoubleEscape,
    #[serde(default)]
    pub keys: Remaps,
}

/// Whether a navigation summarizes the entries that it leaves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Summary {
    /// Ask before each navigation.
    #[default]
    Ask,
    /// Navigate without a summary and without asking.
    Never,
    /// Summarize without asking.
    Always,
}

/// The action of pressing Esc twice in the tree if nothing is left to close.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DoubleEscape {
    #[default]
    None,
    /// Choose a user message at which to fork.
    Fork,
    /// Move the cursor to the leaf.
    Tree,
    /// Show the list of sessions.
    Sessions,
    Quit,
}

/// The settings that the model uses.
#[derive(Debug, Clone)]
pub struct Settings {
    pub keymap: Keymap,
    pub theme: Theme,
    /// Whether the preview is open at the start.
    pub half: bool,
    /// The filter at the start.
    pub filter: Filter,
    pub summary: Summary,
    pub double_escape: DoubleEscape,
    /// The directory whose sessions are listed first.
    pub cwd: String,
    /// The words with which a command of treelined begins.
    pub program: Vec<String>,
}

impl Config {
    /// Reads `file`, or the default file, which need not exist. The error names the file and the line.
    pub fn read(file: Option<&Path>) -> Result<Self, String> {
        let path = match file {
            Some(path) => path.to_owned(),
            None => match usual_path() {
                Some(path) if path.exists() => path,
                _ => return Ok(Self::default()),
            },
        };
        let shown = path.display();
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{shown}: {error}"))?;
        toml::from_str(&text).map_err(|error| format!("{shown}: {error}"))
    }

    /// Returns the keys. The error says what is wrong with the settings.
    pub fn keymap(&self) -> Result<Keymap, String> {
        Keymap::remapped(self.key_set, &self.keys)
    }
}

fn usual_path() -> Option<PathBuf> {
    let strategy = etcetera::choose_base_strategy().ok()?;
    Some(strategy.config_dir().join("treelined").join("tui.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tui.toml");
        for (text, error) in [
            ("backgruond = \"dark\"", "backgruond"),
            ("background = \"blue\"", "blue"),
            ("theme = \"blue\"", "blue"),
            ("filter = \"everything\"", "everything"),
            ("summary = \"sometimes\"", "sometimes"),
            ("shared = \"yes\"", "shared"),
            ("key-set = \"vi\"", "vi"),
            ("double-escape = \"pop\"", "pop"),
            ("[keys.tree]\nundo = 1", "undo"),
        ] {
            std::fs::write(&path, text).unwrap();
            let found = Config::read(Some(&path)).unwrap_err();
            assert!(
                found.contains(error) && found.contains("tui.toml"),
                "{found}"
            );
        }
        assert!(Config::read(Some(&folder.path().join("none"))).is_err());
    }

    #[test]
    fn a_complete_file_is_read() {
        let text = "key-set = \"typing\"\ndouble-escape = \"fork\"\n\
                    background = \"light\"\npreview = false\nmouse = false\n\
                    filter = \"no-tools\"\nsummary = \"never\"\n\
                    daemon = [\"treelined\", \"--summarizer\", \"outline\"]\n\
                    shared = true\nsocket = \"/run/user/1000/tree.sock\"\n\
                    [keys.tree]\nundo = \"U\"\n[keys.sessions]\ntrash = [\"x\"]";
        let config: Config = toml::from_str(text).unwrap();
        assert_eq!(config.background, Some(Background::Light));
        assert_eq!(config.filter, Some(Filter::NoTools));
        assert_eq!(config.summary, Some(Summary::Never));
        assert_eq!(config.shared, Some(true));
        assert_eq!(
            config.socket,
            Some(PathBuf::from("/run/user/1000/tree.sock"))
        );
        assert_eq!(config.double_escape, DoubleEscape::Fork);
        assert!(config.keymap().unwrap().searches_by_letters);
    }
}
