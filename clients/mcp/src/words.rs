//! The words of `[redact]` in the configuration file of the daemon.

use anyhow::{Context, anyhow};
use etcetera::BaseStrategy;
use serde::Deserialize;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::PathBuf;

/// The parts of the file that this program reads.
#[derive(Default, Deserialize)]
struct File {
    #[serde(default)]
    redact: Section,
}

#[derive(Default, Deserialize)]
struct Section {
    #[serde(default)]
    words: Vec<String>,
}

/// The words that no answer may show. A file that `TREELINED_CONFIG` names must exist. Fails if the file cannot be
/// read. Otherwise, after a mistake in the file, answers would show the words.
pub fn configured(named: Option<OsString>) -> anyhow::Result<Vec<String>> {
    let named = named.filter(|named| !named.is_empty()).map(PathBuf::from);
    let is_named = named.is_some();
    let usual = || {
        let base = etcetera::choose_base_strategy().ok()?;
        Some(base.config_dir().join("treelined").join("config.toml"))
    };
    let Some(path) = named.or_else(usual) else {
        return Ok(Vec::new());
    };
    let text = match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound && !is_named => return Ok(Vec::new()),
        text => text.with_context(|| path.display().to_string())?,
    };
    // The whole error would show the line of the file, which may contain one of the words.
    let file: File = toml::from_str(&text)
        .map_err(|error| anyhow!("{}: {}", path.display(), error.message()))?;
    Ok(file.redact.words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_named_file_are_read_and_no_mistake_shows_them() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("own.toml");
        let read = |text: &str| {
            std::fs::write(&file, text).unwrap();
            configured(Some(file.clone().into()))
        };
        let other = "session_dir = \"/x\"\n[redact]\nwords = [\"acme corp\", \"zebra\"]\n[llm]\nmodel = \"m\"\n";
        assert_eq!(read(other).unwrap(), ["acme corp", "zebra"]);
        assert_eq!(read("[llm]\nmodel = \"m\"\n").unwrap(), [""; 0]);
        for wrong in [
            "[redact]\nwords = [\"acme corp\", 5]\n",
            "[redact]\nwords = [\"acme corp\" \"zebra\"]\n",
        ] {
            let error = format!("{:#}", read(wrong).unwrap_err());
            assert!(
                error.contains("own.toml") && !error.contains("acme"),
                "{error}"
            );
        }
        let missing = folder.path().join("missing.toml");
        assert!(configured(Some(missing.into())).is_err());
    }
}
