//! The environment variables that name the folders of tools, and the folders of editors.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use treelined_files::os::path::APPLICATION_SUPPORT;

/// Looks up an environment variable.
pub(in crate::importer) type Environment<'e> = &'e dyn Fn(&str) -> Option<OsString>;

/// VS Code and the editors that are made from it: their folders below the folder of configurations.
const EDITORS: [&str; 6] = [
    "Code",
    "Code - Insiders",
    "Code - OSS",
    "VSCodium",
    "Cursor",
    "Windsurf",
];
/// The folders of editors that run on a server, below `HOME`.
const SERVERS: [&str; 4] = [
    ".local/share/code-server",
    ".vscode-server/data",
    ".vscode-server-insiders/data",
    ".cursor-server/data",
];

/// The path in an environment variable; `None` if the variable is not set or empty.
pub(super) fn variable(environment: Environment<'_>, name: &str) -> Option<PathBuf> {
    let value = environment(name);
    value.filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The folders in which VS Code and the editors that are made from it keep the data of a user. The first folder may be
/// missing, so that a report can name it; the other folders exist.
pub(super) fn editor_folders(home: &Path, environment: Environment<'_>) -> Vec<PathBuf> {
    let configurations = match APPLICATION_SUPPORT {
        Some(folder) => home.join(folder),
        None => variable(environment, "XDG_CONFIG_HOME")
            .filter(|path| path.is_absolute())
            .unwrap_or_else(|| home.join(".config")),
    };
    let portable = variable(environment, "VSCODE_PORTABLE");
    let portable = portable.map(|folder| folder.join("user-data"));
    let editors = EDITORS.map(|editor| configurations.join(editor));
    let servers = SERVERS.map(|server| home.join(server));
    let all = portable.into_iter().chain(editors).chain(servers);
    let mut number = 0..;
    all.filter(|folder| number.next() == Some(0) || folder.is_dir())
        .collect()
}
