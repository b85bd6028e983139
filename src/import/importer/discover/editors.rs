//! Where Cline, Roo Code and Kilo Code keep their tasks: below the storage of an extension of an editor, and Cline
//! also below `~/.cline/data`.

use super::environment::{Environment, editor_folders, variable};
use super::files::is_folder;
use crate::importer::task_files::{HISTORY, MESSAGES};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use treelined_core::agent::Tool;
use treelined_files::os::path::APPLICATION_SUPPORT;

/// Where extensions keep their files, below the folder of an editor.
const STORAGE: &str = "User/globalStorage";
/// The folders of a storage that have conversations.
const KEPT: [&str; 2] = ["tasks", "sessions"];

/// The id of the tool's extension; `None` for another tool.
pub(super) fn extension(tool: Tool) -> Option<&'static str> {
    match tool {
        Tool::Cline => Some("saoudrizwan.claude-dev"),
        Tool::RooCode => Some("rooveterinaryinc.roo-cline"),
        Tool::KiloCode => Some("kilocode.kilo-code"),
        _ => None,
    }
}

/// The environment variables that name the tool's locations.
pub(super) fn variables(tool: Tool) -> &'static [&'static str] {
    match (tool, APPLICATION_SUPPORT.is_some()) {
        (Tool::Cline, true) => &["CLINE_DATA_DIR", "CLINE_DIR", "VSCODE_PORTABLE", "HOME"],
        (Tool::Cline, false) => &[
            "CLINE_DATA_DIR",
            "CLINE_DIR",
            "VSCODE_PORTABLE",
            "XDG_CONFIG_HOME",
            "HOME",
        ],
        (_, true) => &["VSCODE_PORTABLE", "HOME"],
        (_, false) => &["VSCODE_PORTABLE", "XDG_CONFIG_HOME", "HOME"],
    }
}

/// The default locations of a tool: the location of Cline's program, the location in VS Code, and the locations in
/// other editors that exist.
pub(super) fn default_places(
    tool: Tool,
    home: &Path,
    environment: Environment<'_>,
) -> Vec<PathBuf> {
    let Some(extension) = extension(tool) else {
        return Vec::new();
    };
    let mut places = Vec::new();
    if tool == Tool::Cline {
        let data = || {
            variable(environment, "CLINE_DIR")
                .unwrap_or_else(|| home.join(".cline"))
                .join("data")
        };
        places.push(variable(environment, "CLINE_DATA_DIR").unwrap_or_else(data));
    }
    let editors = editor_folders(home, environment);
    places.extend(
        editors
            .iter()
            .map(|editor| editor.join(STORAGE).join(extension)),
    );
    places
}

/// The folders with conversations of a tool in a folder: the storage of the extension, a folder above or below it, or
/// Cline's folder of data.
pub(super) fn homes(tool: Tool, folder: &Path) -> Vec<PathBuf> {
    let Some(extension) = extension(tool) else {
        return Vec::new();
    };
    let mut above = folder.ancestors().skip(1);
    if above.any(|above| above.file_name() == Some(OsStr::new(extension))) {
        return vec![folder.to_owned()];
    }
    let below = ["", "globalStorage", STORAGE].map(|inner| folder.join(inner).join(extension));
    let mut storages: Vec<PathBuf> = below.into_iter().collect();
    if folder.file_name() == Some(OsStr::new(extension)) {
        storages.push(folder.to_owned());
    }
    if tool == Tool::Cline {
        let data = ["", "data", ".cline/data"].map(|inner| folder.join(inner));
        storages.extend(data.into_iter().filter(|data| is_data_of_cline(data)));
    }
    let kept = storages
        .iter()
        .flat_map(|storage| KEPT.map(|name| storage.join(name)));
    kept.filter(|kept| is_folder(kept)).collect()
}

/// Whether a folder has sessions of Cline's program, or its tasks.
fn is_data_of_cline(folder: &Path) -> bool {
    let is_named = folder.ends_with(".cline/data");
    let mut sessions = fs::read_dir(folder.join("sessions"))
        .into_iter()
        .flatten()
        .flatten();
    is_named
        || sessions.any(|session| {
            let mut name = session.file_name();
            name.push(MESSAGES);
            session.path().join(name).is_file()
        })
}

/// Whether a tool of this kind keeps conversations in files of this name.
pub(super) fn has_source(tool: Tool, path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let is_session = tool == Tool::Cline && name.ends_with(MESSAGES.as_bytes());
    name == HISTORY.as_bytes() || is_session
}

/// The tool that has written a file of this name. It is the tool whose extension has the file in its storage. Without
/// such a tool, it is the tool in `tools` if there is only one. Otherwise it is Roo Code if the task has a separate
/// file for its facts, else Cline.
pub(super) fn writer(path: &Path, tools: &[Tool]) -> Option<Tool> {
    if !has_source(Tool::Cline, path) {
        return None;
    }
    let all = [Tool::Cline, Tool::RooCode, Tool::KiloCode];
    let is_in_storage = |tool: &&Tool| {
        let extension = extension(**tool).map(OsStr::new);
        path.ancestors().any(|above| above.file_name() == extension)
    };
    if let Some(tool) = all.iter().find(is_in_storage) {
        return Some(*tool);
    }
    if let [tool] = tools
        && has_source(*tool, path)
        && all.contains(tool)
    {
        return Some(*tool);
    }
    let facts = path.with_file_name("history_item.json");
    Some(match facts.is_file() {
        true => Tool::RooCode,
        false => Tool::Cline,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn put(root: &Path, path: &str) -> PathBuf {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "[]").unwrap();
        path
    }

    #[test]
    fn tasks_are_found_in_each_editor_and_told_apart_by_extension() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path();
        let environment = |_: &str| None;
        let roo = |editor: &str| format!("{editor}/User/globalStorage/rooveterinaryinc.roo-cline");
        let places = || default_places(Tool::RooCode, home, &environment);
        assert_eq!(places().len(), 1, "the place of VS Code alone");
        let cursor = put(
            home,
            &format!("{}/tasks/1/{HISTORY}", roo(".vscode-server/data")),
        );
        assert_eq!(places()[1], home.join(roo(".vscode-server/data")));
        let named = |name: &str| (name == "CLINE_DIR").then(|| OsString::from("/x"));
        let places = default_places(Tool::Cline, home, &named);
        assert_eq!(places[0], Path::new("/x/data"));
        let tasks = cursor.ancestors().nth(2).unwrap().to_owned();
        for path in [".vscode-server/data", &roo(".vscode-server/data")] {
            assert_eq!(
                homes(Tool::RooCode, &home.join(path)),
                std::slice::from_ref(&tasks),
                "{path}"
            );
            assert_eq!(
                homes(Tool::KiloCode, &home.join(path)),
                [""; 0].map(PathBuf::from)
            );
        }
        let all = [Tool::Cline, Tool::RooCode, Tool::KiloCode];
        assert_eq!(writer(&cursor, &all), Some(Tool::RooCode));
        let other = put(home, &format!("other/{HISTORY}"));
        assert_eq!(writer(&other, &all), Some(Tool::Cline));
        assert_eq!(writer(&other, &[Tool::KiloCode]), Some(Tool::KiloCode));
        put(home, "other/history_item.json");
        assert_eq!(writer(&other, &all), Some(Tool::RooCode));
        put(home, "data/sessions/s/s.messages.json");
        assert_eq!(homes(Tool::Cline, home), [home.join("data/sessions")]);
    }
}
