//! A session directory that was named and is not there.

use super::options::Options;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use treelined_core::suggest::nearest;
use treelined_core::terminal;

/// Says on stderr that a command reads a directory that is not there, if somebody has named it: the command finds nothing.
/// The default directory is there from the first session on.
pub(super) fn check(options: &Options) {
    // Wrong settings are the error of the command.
    let Ok(settings) = options.settings() else {
        return;
    };
    let is_named = settings.value("", "session_dir");
    let is_named = is_named.is_some_and(|(_, is_default)| !is_default);
    let folder = settings.session_dir();
    if is_named && !folder.exists() {
        let who = match (
            &options.session_dir,
            std::env::var_os("TREELINED_SESSION_DIR"),
        ) {
            (Some(_), _) => "--session-dir",
            (None, Some(value)) if !value.is_empty() => "TREELINED_SESSION_DIR",
            _ => "the configuration",
        };
        let line = format!("no folder {} ({who}){}", folder.display(), hint(folder));
        // A message that stderr does not take has nowhere else to go.
        let _unsaid = writeln!(io::stderr().lock(), "warning: {}", terminal::line(&line));
    }
}

/// The end of the message: the folder that was meant, or what happens without the name.
fn hint(missing: &Path) -> String {
    match meant(missing) {
        Some(meant) => format!("; did you mean {}?", meant.display()),
        None => "; without the name, the default directory is read".to_owned(),
    }
}

/// The folder with the nearest name in place of the first part of the path that is missing.
fn meant(missing: &Path) -> Option<PathBuf> {
    let parts: Vec<&Path> = missing.ancestors().collect();
    let (first, above) = parts
        .iter()
        .zip(parts.get(1..)?)
        .find(|(_, above)| above.is_dir())?;
    let folders = fs::read_dir(above).ok()?.flatten();
    let folders = folders.filter(|entry| entry.path().is_dir());
    let names: Vec<String> = folders
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    let wrong = first.file_name()?.to_str()?;
    let right = nearest(wrong, names.iter().map(String::as_str))?;
    let meant = above.join(right);
    let rest = missing.strip_prefix(first).ok()?;
    let whole = if rest.as_os_str().is_empty() {
        meant
    } else {
        meant.join(rest)
    };
    whole.is_dir().then_some(whole)
}
