//! Facts about files that their names and status show. The files are not opened.

use crate::importer::ledger::Ledger;
use crate::importer::source::facts::Source;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{fs, io};
use treelined_core::agent::Tool;

/// If several exports have the same conversation with the same bytes, keeps only one of these sources. If one of them
/// was imported before, this one is kept.
pub(super) fn drop_repeated(sources: &mut Vec<Source>, ledger: &Ledger) {
    let is_known = |source: &Source| {
        let row = ledger.source(source.tool, &source.name());
        row.is_some_and(|row| row.status == source.status)
    };
    let of_exports = sources.iter().filter(|source| source.tool.is_export());
    let mut first: HashMap<(Tool, String, u64), PathBuf> = HashMap::new();
    for source in of_exports {
        let key = (
            source.tool,
            source.part.clone().unwrap_or_default(),
            source.status.version,
        );
        if is_known(source) || !first.contains_key(&key) {
            first.insert(key, source.path.clone());
        }
    }
    sources.retain(|source| {
        let part = source.part.clone().unwrap_or_default();
        let kept = first.get(&(source.tool, part, source.status.version));
        kept.is_none_or(|kept| *kept == source.path)
    });
}

/// Whether a path is a folder, and not a link to one.
pub(super) fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

/// A sort key for paths. Keys have the same order as paths, but are faster to compare: paths are compared part by part.
pub(super) fn path_order(path: &Path) -> Vec<u8> {
    let bytes = path.as_os_str().as_encoded_bytes().iter();
    let first = |byte: &u8| if *byte == b'/' { 0 } else { *byte };
    bytes.map(first).collect()
}

/// Whether a file that cannot be read may have conversations. Its name decides.
pub(super) fn may_be_source(path: &Path, error: &io::Error) -> bool {
    let ending = path.extension().and_then(OsStr::to_str);
    let is_log = matches!(ending, Some("jsonl" | "json" | "zst" | "db"));
    is_log && error.kind() != io::ErrorKind::NotFound
}

/// Whether a file may have a conversation of an unknown tool. Its name decides. The supported tools keep lists
/// without conversations in `session_index.jsonl` and `history.jsonl`.
pub(super) fn is_unknown_log(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let is_list = matches!(name, "session_index.jsonl" | "history.jsonl");
    name.ends_with(".jsonl") && !name.starts_with('.') && !is_list
}

/// Removes each compressed file if the same file also exists uncompressed.
pub(super) fn drop_compressed_twins(files: &mut Vec<PathBuf>) {
    let plain: HashSet<PathBuf> = files
        .iter()
        .filter(|file| file.extension() != Some(OsStr::new("zst")))
        .cloned()
        .collect();
    files.retain(|file| {
        let is_compressed = file.extension() == Some(OsStr::new("zst"));
        !is_compressed || !plain.contains(&file.with_extension(""))
    });
}
