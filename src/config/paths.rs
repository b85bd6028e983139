//! The settings that are paths: the session directory and the socket of the shared daemon.

use super::flags::{ConfigFlags, EnvironmentLookup};
use super::lines::{SettingLines, SettingOrigin};
use super::sections::FileSections;
use anyhow::Context;
use etcetera::BaseStrategy;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub(super) fn session_dir(
    flags: &ConfigFlags,
    environment: EnvironmentLookup<'_>,
    file: &FileSections,
    folder: Option<&Path>,
    lines: &mut SettingLines,
) -> anyhow::Result<PathBuf> {
    let named = environment("TREELINED_SESSION_DIR");
    let given = given_path((&flags.session_dir, named, &file.session_dir), folder);
    let (dir, origin) = match given {
        Some(given) => given,
        None => {
            let base = etcetera::choose_base_strategy();
            let base = base.context("no home directory; give --session-dir")?;
            let dir = base.data_dir().join("treelined").join("sessions");
            (dir, SettingOrigin::Default)
        }
    };
    let dir = std::path::absolute(dir).context("the session directory")?;
    let shown = dir.display().to_string();
    lines.push(("", "session_dir"), shown.into(), origin);
    Ok(dir)
}

/// The socket of the shared daemon. `None` stands for the socket that is derived from the session directory.
pub(super) fn socket(
    flags: &ConfigFlags,
    environment: EnvironmentLookup<'_>,
    file: &FileSections,
    folder: Option<&Path>,
    lines: &mut SettingLines,
) -> anyhow::Result<Option<PathBuf>> {
    let named = environment("TREELINED_SOCKET");
    let Some((path, origin)) = given_path((&flags.socket, named, &file.socket), folder) else {
        return Ok(None);
    };
    let path = std::path::absolute(path).context("the path of the socket")?;
    let shown = path.display().to_string();
    lines.push(("", "socket"), shown.into(), origin);
    Ok(Some(path))
}

/// The path from the command line, or from the environment (if it is not empty), or from the file. A path in the
/// file is relative to the folder of the file.
fn given_path(
    (flag, named, file): (&Option<PathBuf>, Option<OsString>, &Option<PathBuf>),
    folder: Option<&Path>,
) -> Option<(PathBuf, SettingOrigin)> {
    if let Some(path) = flag {
        return Some((path.clone(), SettingOrigin::Flag));
    }
    if let Some(path) = named.filter(|path| !path.is_empty()) {
        return Some((PathBuf::from(path), SettingOrigin::Environment));
    }
    let path = folder.unwrap_or(Path::new("")).join(file.as_ref()?);
    Some((path, SettingOrigin::File))
}
