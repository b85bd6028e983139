//! Warns about a session directory that was named but does not exist.

use super::options::Options;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use treelined_core::suggest::nearest;
use treelined_core::terminal;

/// Warns on stderr if the session directory does not exist although it was named, since the command finds nothing then.
/// The default directory is made with the first session.
pub(super) fn check(options: &Options) {
    // If the settings are wrong, the command reports the fault.
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
        // If stderr does not accept the message, there is nowhere else to write it.
        let _unsaid = writeln!(io::stderr().lock(), "warning: {}", terminal::line(&line));
    }
}

/// The end of the message: a similar folder that exists, or what happens if no directory is named.
fn hint(missing: &Path) -> String {
    match meant(missing) {
        Some(meant) => format!("; did you mean {}?", meant.display()),
        None => "; without the name, the default directory is read".to_owned(),
    }
}

/// The path with the first missing part replaced by the most similar name that exists.
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
