//! The layout of the folders in which each tool keeps its sessions, and their default locations.

use super::editors;
use super::environment::{Environment, editor_folders, variable};
use super::files::is_folder;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use treelined_core::agent::Tool;
use treelined_files::os::path::APPLICATION_SUPPORT;

/// A folder or database in which a tool keeps its sessions. It has the tool's own layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::importer) struct Home {
    pub(super) tool: Tool,
    pub(super) path: PathBuf,
}

impl Home {
    pub(in crate::importer) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the home has several native sessions together: it is a database, an export, or opencode's folder of
    /// small files.
    pub(in crate::importer) fn is_container(&self) -> bool {
        is_container(self.tool)
    }

    /// Whether the tool keeps conversations in files of this name.
    pub(in crate::importer) fn has_source(&self, path: &Path) -> bool {
        has_source(self.tool, path)
    }
}

/// The homes of a tool in its default locations. Symbolic links above them are resolved.
pub(in crate::importer) fn homes_in(tool: Tool, environment: Environment<'_>) -> Vec<Home> {
    let places = default_places(tool, environment).into_iter();
    let real = places.filter_map(|place| fs::canonicalize(place).ok());
    real.flat_map(|place| homes(tool, &place)).collect()
}

/// Whether the tool keeps conversations in files of this name.
pub(super) fn has_source(tool: Tool, path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let ends = |ending: &str| name.ends_with(ending.as_bytes());
    match tool {
        Tool::ClaudeCode => ends(".jsonl") && !is_below(path, "tool-results"),
        Tool::Codex => name.starts_with(b"rollout-") && (ends(".jsonl") || ends(".jsonl.zst")),
        Tool::Gemini => is_below(path, "chats") && (ends(".jsonl") || ends(".json")),
        Tool::QwenCode => is_below(path, "chats") && ends(".jsonl"),
        Tool::Cline | Tool::RooCode | Tool::KiloCode => editors::has_source(tool, path),
        Tool::CopilotCli => is_events(path),
        Tool::VscodeChat => {
            CHATS.iter().any(|folder| is_in(path, folder)) && (ends(".jsonl") || ends(".json"))
        }
        Tool::Pi => ends(".jsonl") && !name.starts_with(b"rollout-") && !name.starts_with(b"."),
        Tool::Opencode | Tool::Goose => ends(".db"),
        // Exports are recognized by their content, not by their names.
        Tool::ChatGpt | Tool::ClaudeAi => false,
    }
}

/// The folders in which VS Code keeps sessions.
const CHATS: [&str; 2] = ["chatSessions", "emptyWindowChatSessions"];

fn is_in(path: &Path, folder: &str) -> bool {
    path.parent().and_then(Path::file_name) == Some(OsStr::new(folder))
}

/// Whether Copilot CLI keeps a session in this file: `<session>/events.jsonl`, or `<session>.jsonl`.
fn is_events(path: &Path) -> bool {
    const FOLDER: &str = "session-state";
    let name = path.file_name().unwrap_or_default();
    match name == "events.jsonl" {
        true => path.parent().is_some_and(|session| is_in(session, FOLDER)),
        false => is_in(path, FOLDER) && name.as_encoded_bytes().ends_with(b".jsonl"),
    }
}

fn is_below(path: &Path, folder: &str) -> bool {
    let mut above = path.ancestors().skip(1);
    above.any(|above| above.file_name() == Some(OsStr::new(folder)))
}

/// The homes of a tool in a folder; empty if the folder does not have the tool's layout.
pub(super) fn homes(tool: Tool, folder: &Path) -> Vec<Home> {
    let below = |names: &[&str]| {
        names
            .iter()
            .map(|name| folder.join(name))
            .collect::<Vec<_>>()
    };
    let folders = |paths: Vec<PathBuf>| paths.into_iter().filter(|path| is_folder(path)).collect();
    let paths: Vec<PathBuf> = match tool {
        Tool::ClaudeCode | Tool::QwenCode => folders(below(&["projects"])),
        Tool::Codex => folders(below(&["sessions", "archived_sessions"])),
        Tool::Gemini => below(&["tmp", ".gemini/tmp"])
            .into_iter()
            .filter(|tmp| has_chats(tmp))
            .collect(),
        Tool::Opencode => ["", "opencode"]
            .iter()
            .map(|inner| folder.join(inner))
            .flat_map(|folder| opencode(&folder))
            .collect(),
        Tool::Goose => below(&[
            "sessions.db",
            "sessions/sessions.db",
            "data/sessions/sessions.db",
        ])
        .into_iter()
        .filter(|path| is_file(path))
        .collect(),
        Tool::Pi => folders(below(&["sessions", "agent/sessions"])),
        Tool::Cline | Tool::RooCode | Tool::KiloCode => editors::homes(tool, folder),
        Tool::CopilotCli => folders(below(&["session-state"])),
        Tool::VscodeChat => chats(folder),
        Tool::ChatGpt | Tool::ClaudeAi => Vec::new(),
    };
    // Codex and pi both have a folder `sessions`, and Claude Code and Qwen Code both have a folder `projects`.
    let is_other = |path: &PathBuf| match tool {
        Tool::ClaudeCode => has_chats(path),
        Tool::QwenCode => !has_chats(path),
        Tool::Codex => is_file(&path.join("sessions.db")) || has_only_others(path, tool),
        Tool::Pi => is_file(&path.join("sessions.db")) || has_only_others(path, tool),
        _ => false,
    };
    let home = |path| Home { tool, path };
    paths
        .into_iter()
        .filter(|path| !is_other(path))
        .map(home)
        .collect()
}

/// Whether the first file that is found below a folder belongs to another tool.
fn has_only_others(folder: &Path, tool: Tool) -> bool {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            let (path, kind) = (entry.path(), entry.file_type());
            match kind {
                Ok(kind) if kind.is_dir() => folders.push(path),
                Ok(kind) if kind.is_file() && is_log(&path) => return !has_source(tool, &path),
                _ => {}
            }
        }
    }
    false
}

fn is_log(path: &Path) -> bool {
    has_source(Tool::Pi, path) || has_source(Tool::Codex, path)
}

/// The databases in opencode's folder, and its folder of small files.
fn opencode(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        if name.starts_with(b"opencode") && name.ends_with(b".db") && is_file(&entry.path()) {
            found.push(entry.path());
        }
    }
    found.sort();
    found.extend(Some(folder.join("storage")).filter(|path| is_tree(path)));
    found.extend(Some(folder.to_owned()).filter(|path| is_tree(path)));
    found
}

/// The folders at and below `folder` in which a home of the tool may appear later, if these folders exist.
pub(super) fn parents(tool: Tool, folder: &Path) -> Vec<PathBuf> {
    let mut parents = vec![folder.to_owned()];
    if tool == Tool::VscodeChat {
        let storages = ["workspaceStorage", "User/workspaceStorage"].map(|it| folder.join(it));
        for storage in storages {
            let workspaces = fs::read_dir(&storage).into_iter().flatten().flatten();
            parents.extend(workspaces.map(|workspace| workspace.path()));
            parents.push(storage);
        }
        let others = ["User", "globalStorage", "User/globalStorage"];
        parents.extend(others.map(|name| folder.join(name)));
    }
    parents.retain(|path| is_folder(path));
    parents
}

/// The folders with chats below a folder of VS Code's user data, or below the folder of a workspace.
fn chats(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for storage in ["workspaceStorage", "User/workspaceStorage"] {
        let workspaces = fs::read_dir(folder.join(storage))
            .into_iter()
            .flatten()
            .flatten();
        found.extend(workspaces.map(|workspace| workspace.path().join("chatSessions")));
    }
    for name in [
        "chatSessions",
        "globalStorage/emptyWindowChatSessions",
        "User/globalStorage/emptyWindowChatSessions",
    ] {
        found.push(folder.join(name));
    }
    found.retain(|path| is_folder(path));
    found.sort();
    found
}

/// Whether a folder is opencode's `storage/`.
pub(super) fn is_tree(folder: &Path) -> bool {
    is_folder(&folder.join("session")) && is_folder(&folder.join("message"))
}

/// Whether a project below the folder has chats.
fn has_chats(tmp: &Path) -> bool {
    let projects = fs::read_dir(tmp).into_iter().flatten().flatten();
    projects
        .into_iter()
        .any(|project| is_folder(&project.path().join("chats")))
}

fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file())
}

/// The environment variables that name the tool's locations.
pub(super) fn variables(tool: Tool) -> &'static [&'static str] {
    match tool {
        Tool::ClaudeCode => &["CLAUDE_CONFIG_DIR", "HOME"],
        Tool::Codex => &["CODEX_HOME", "HOME"],
        Tool::Gemini => &["GEMINI_CLI_HOME", "HOME"],
        Tool::Opencode => &["OPENCODE_DB", "XDG_DATA_HOME", "HOME"],
        Tool::Goose if APPLICATION_SUPPORT.is_some() => &["GOOSE_PATH_ROOT", "HOME"],
        Tool::Goose => &["GOOSE_PATH_ROOT", "XDG_DATA_HOME", "HOME"],
        Tool::Pi => &["PI_CODING_AGENT_DIR", "HOME"],
        Tool::QwenCode => &["QWEN_RUNTIME_DIR", "QWEN_HOME", "HOME"],
        Tool::Cline | Tool::RooCode | Tool::KiloCode => editors::variables(tool),
        Tool::CopilotCli => &["COPILOT_HOME", "HOME"],
        Tool::VscodeChat if APPLICATION_SUPPORT.is_some() => &["VSCODE_PORTABLE", "HOME"],
        Tool::VscodeChat => &["VSCODE_PORTABLE", "XDG_CONFIG_HOME", "HOME"],
        Tool::ChatGpt | Tool::ClaudeAi => &[],
    }
}

/// The default locations of a tool: folders, or a database.
pub(super) fn default_places(tool: Tool, environment: Environment<'_>) -> Vec<PathBuf> {
    let variable = |name: &str| variable(environment, name);
    if tool.is_export() {
        return Vec::new();
    }
    let Some(home) = variable("HOME") else {
        return Vec::new();
    };
    let data = || {
        let data = variable("XDG_DATA_HOME").filter(|path| path.is_absolute());
        data.unwrap_or_else(|| home.join(".local/share"))
    };
    match tool {
        Tool::ClaudeCode => {
            vec![variable("CLAUDE_CONFIG_DIR").unwrap_or_else(|| home.join(".claude"))]
        }
        Tool::Codex => vec![variable("CODEX_HOME").unwrap_or_else(|| home.join(".codex"))],
        Tool::Gemini => vec![
            variable("GEMINI_CLI_HOME")
                .unwrap_or(home.clone())
                .join(".gemini"),
        ],
        Tool::Opencode => {
            let folder = data().join("opencode");
            let database = variable("OPENCODE_DB").map(|path| folder.join(path));
            database.into_iter().chain([folder]).collect()
        }
        Tool::Goose => match variable("GOOSE_PATH_ROOT") {
            Some(root) => vec![root],
            None => vec![match APPLICATION_SUPPORT {
                Some(folder) => home.join(folder).join("Block/goose"),
                None => data().join("goose"),
            }],
        },
        Tool::Pi => {
            let agent = variable("PI_CODING_AGENT_DIR");
            vec![agent.unwrap_or_else(|| home.join(".pi/agent"))]
        }
        Tool::QwenCode => {
            let folder = variable("QWEN_RUNTIME_DIR").or_else(|| variable("QWEN_HOME"));
            vec![folder.unwrap_or_else(|| home.join(".qwen"))]
        }
        Tool::Cline | Tool::RooCode | Tool::KiloCode => {
            editors::default_places(tool, &home, environment)
        }
        Tool::CopilotCli => {
            vec![variable("COPILOT_HOME").unwrap_or_else(|| home.join(".copilot"))]
        }
        Tool::VscodeChat => {
            let editors = editor_folders(&home, environment);
            editors.iter().map(|editor| editor.join("User")).collect()
        }
        Tool::ChatGpt | Tool::ClaudeAi => Vec::new(),
    }
}

/// Whether a file of the tool has several native sessions, because it is a database or an export.
pub(in crate::importer) fn is_container(tool: Tool) -> bool {
    is_database(tool) || tool.is_export()
}

/// Whether the tool keeps its sessions in a database.
pub(super) fn is_database(tool: Tool) -> bool {
    matches!(tool, Tool::Opencode | Tool::Goose)
}
