//! `treelined doctor --json`: one line of JSON for each file, and one for a wrong configuration.

use super::doctor_config::Configuration;
use super::doctor_file::{meaning, open};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use treelined_core::terminal;
use treelined_core::tree::branches;
use treelined_files::log::diagnostic::Diagnostic;

/// Prints a line for each file. The exit code is 1 if a file is damaged or cannot be read, or if the configuration is
/// wrong.
pub(super) fn run(files: &[PathBuf], configuration: &Configuration) -> anyhow::Result<ExitCode> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut is_well = configuration.is_sound();
    for path in files {
        let (line, is_sound) = examined(path);
        is_well &= is_sound;
        writeln!(out, "{}", terminal::json(&line.to_string()))?;
    }
    if let Some(line) = configuration.line() {
        writeln!(out, "{}", terminal::json(&line.to_string()))?;
    }
    out.flush()?;
    Ok(match is_well {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// The line for a file, and whether the file is undamaged.
fn examined(path: &Path) -> (Value, bool) {
    let shown = path.display().to_string();
    let (opened, size) = match open(path) {
        Ok(opened) => opened,
        Err(error) => {
            let error = json!({ "kind": error.kind.name(), "message": error.message });
            return (
                json!({ "path": shown, "sound": false, "error": error }),
                false,
            );
        }
    };
    let diagnostics: Vec<Value> = opened.diagnostics.iter().map(described).collect();
    let is_sound = diagnostics.is_empty();
    let tree = &opened.tree;
    let line = json!({
        "path": shown,
        "sound": is_sound,
        "sessionId": opened.log.header().map(|header| &header.id),
        "name": tree.name(),
        "version": opened.log.stated_version(),
        "bytes": size,
        "entries": tree.entry_count(),
        "branches": branches::list(tree).len(),
        "leafId": tree.leaf().map(|leaf| tree.id(leaf)),
        "diagnostics": diagnostics,
    });
    (line, is_sound)
}

fn described(diagnostic: &Diagnostic) -> Value {
    let Diagnostic {
        damage,
        line,
        offset,
        length,
    } = diagnostic;
    json!({
        "kind": damage.name(),
        "line": line,
        "offset": offset,
        "length": length,
        "meaning": meaning(*damage),
    })
}
