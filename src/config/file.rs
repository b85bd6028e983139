//! Finds and reads the configuration file. Refuses a file that another user could write.

use super::sections::FileSections;
use anyhow::{Context, anyhow};
use etcetera::BaseStrategy;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use treelined_files::os::file::is_pipe;
use treelined_files::os::program;
use treelined_files::os::stream::DESCRIPTORS;

/// The configuration file, if one was found.
pub(super) struct ConfigFile {
    pub path: Option<PathBuf>,
    pub file: FileSections,
    /// The reason why the file must not be used.
    pub refused: Option<String>,
}

/// Fails if the configuration file exists and must not be used. The file is the given one, or the default one.
pub(crate) fn check(named: Option<&Path>) -> anyhow::Result<()> {
    let path = path_of_file(named)?;
    match path.and_then(|path| refusal(&path)) {
        Some(why) => Err(anyhow!(why)),
        None => Ok(()),
    }
}

/// The reason why the file must not be used. A user who can write the file decides which programs run, and which hosts
/// receive keys.
fn refusal(path: &Path) -> Option<String> {
    // If this process has the file open as a pipe, only the process that has started it can write to the pipe.
    let is_pipe = |metadata: Metadata| is_pipe(metadata.file_type());
    if path.metadata().is_ok_and(is_pipe) && path.starts_with(DESCRIPTORS) {
        return None;
    }
    match program::check_file(path) {
        // `read` reports a file that is missing or cannot be read.
        Ok(()) | Err(program::Failure::NotStarted(_)) => None,
        Err(why) => Some(format!(
            "the configuration file {} is refused: {why}",
            path.display()
        )),
    }
}

fn path_of_file(named: Option<&Path>) -> anyhow::Result<Option<PathBuf>> {
    Ok(match named {
        Some(path) => Some(std::path::absolute(path).context("--config")?),
        None => etcetera::choose_base_strategy()
            .ok()
            .map(|base| base.config_dir().join("treelined").join("config.toml")),
    })
}

/// Reads the given file, which must exist. If no file is given, reads the file in the configuration directory of the
/// platform, if it exists.
pub(super) fn read(named: Option<&Path>) -> anyhow::Result<ConfigFile> {
    let mut found = ConfigFile {
        path: None,
        file: FileSections::default(),
        refused: None,
    };
    let Some(path) = path_of_file(named)? else {
        return Ok(found);
    };
    found.refused = refusal(&path);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && named.is_none() => {
            return Ok(found);
        }
        Err(error) => Err(error.into()),
    };
    match text.and_then(|text| parse(&text)) {
        Ok(file) => found.file = file,
        // The file cannot be parsed, but the reason why it is refused is more useful to the user.
        Err(_) if found.refused.is_some() => {}
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    }
    found.path = Some(path);
    Ok(found)
}

/// Reads the text of the file. Errors name the line number and the key. They never contain the text of the line, which
/// may have a secret.
fn parse(text: &str) -> anyhow::Result<FileSections> {
    let line = |error: &toml::de::Error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        before.unwrap_or_default().matches('\n').count() + 1
    };
    let toml = toml::Deserializer::parse(text)
        .map_err(|error| anyhow!("line {}: {}", line(&error), error.message()))?;
    serde_path_to_error::deserialize(toml).map_err(|error| {
        let key = error.path().to_string();
        let error = error.into_inner();
        anyhow!("line {}: {key}: {}", line(&error), error.message())
    })
}
