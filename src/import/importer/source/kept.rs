//! The origins of sources.

use super::facts::Source;
use crate::importer::origin::{OriginWriter, Origins};
use hashbrown::HashSet;
use treelined_core::agent::Tool;
use treelined_core::error::Result;

impl Origins {
    /// Prepares for sources that are read at the same time: sources with the same key get separate origins.
    pub(crate) fn for_sources(mut self, sources: &[Source]) -> Self {
        let mut keys = HashSet::new();
        let all = sources.iter().map(origin_key);
        self.shared_keys = all.filter(|key| !keys.insert(key.clone())).collect();
        self
    }

    /// Begins to keep the bytes of a source.
    pub(crate) fn writer(&self, source: &Source) -> Result<OriginWriter> {
        let (name, key) = (source.name(), origin_key(source));
        let key = match self.shared_keys.contains(&key) {
            true => &name,
            false => &key,
        };
        self.writer_of(source.tool, &name, key)
    }
}

/// The key of a source's origin. For Codex, which moves and compresses its files, it is the name of the file without
/// its folder. For a conversation of an export it is the hash of the bytes, so that the conversation is kept once,
/// whichever export it came in.
fn origin_key(source: &Source) -> String {
    if let (true, Some(part)) = (source.tool.is_export(), &source.part) {
        return format!("{part}#{:016x}", source.status.version);
    }
    let name = source
        .path
        .file_name()
        .filter(|_| source.tool == Tool::Codex);
    match name {
        Some(name) => {
            let name = name.to_string_lossy();
            name.strip_suffix(".zst").unwrap_or(&name).to_owned()
        }
        None => source.name(),
    }
}
