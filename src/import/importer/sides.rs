//! Adds facts about conversations from files beside their sources.

use super::source::facts::{SideFile, SideKind, Source};
use super::source::read_side_file;
use crate::codex::thread_names;
use crate::copilot_cli::workspace;
use crate::member::{Member, Record};
use crate::reader::Reader;
use crate::vscode_chat::directory;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use treelined_core::json;
use treelined_files::lock::lock;

/// The most bytes of a side file that are read.
const MAX_BYTES: u64 = 16 << 20;

/// The lists of names that were read, by path. A list has the name of each native session, and is read only once.
type Names = HashMap<PathBuf, Arc<HashMap<String, String>>>;

/// The contents of side files that belong to many sources.
#[derive(Default)]
pub(super) struct Sides {
    names: Mutex<Names>,
}

impl Sides {
    /// Passes the call that spawned a subagent to the reader, as an additional record. Returns the number of such
    /// records.
    pub(super) fn spawner(&self, source: &Source, end: (u64, u64), reader: &mut dyn Reader) -> u64 {
        let mut given = 0;
        let (at, number) = end;
        for side in source
            .side_files
            .iter()
            .filter(|side| side.kind == SideKind::Spawn)
        {
            if let Some(bytes) = read(side).filter(|bytes| json::value_span(bytes).is_ok()) {
                reader.record(Record {
                    at,
                    number,
                    bytes: &bytes,
                });
                given += 1;
            }
        }
        given
    }

    /// Adds names and directories to the members.
    pub(super) fn complete(&self, source: &Source, members: &mut [Member]) {
        for side in &source.side_files {
            match side.kind {
                SideKind::Names => {
                    let names = self.names(side);
                    for member in members.iter_mut() {
                        let name = names.get(&member.native_id).cloned();
                        member.title = name.or(member.title.take());
                    }
                }
                SideKind::Projects | SideKind::ProjectRoot
                    if members.iter().any(|member| member.cwd.is_none()) =>
                {
                    let cwd = match side.kind {
                        SideKind::ProjectRoot => root(side),
                        _ => project(side, &source.path),
                    };
                    for member in members.iter_mut() {
                        member.cwd = member.cwd.take().or_else(|| cwd.clone());
                    }
                }
                SideKind::Workspace => {
                    let (name, cwd) = read(side).map(|it| workspace(&it)).unwrap_or_default();
                    // The file is about the main conversation.
                    if let Some(main) = members.first_mut() {
                        main.title = name.or(main.title.take());
                    }
                    for member in members.iter_mut() {
                        member.cwd = member.cwd.take().or_else(|| cwd.clone());
                    }
                }
                SideKind::Folder => {
                    let cwd = read(side).and_then(|it| directory(&it));
                    for member in members.iter_mut() {
                        member.cwd = member.cwd.take().or_else(|| cwd.clone());
                    }
                }
                _ => {}
            }
        }
    }

    fn names(&self, side: &SideFile) -> Arc<HashMap<String, String>> {
        let mut names = lock(&self.names);
        let of_file = names.entry(side.path.clone());
        let of_file = of_file.or_insert_with(|| {
            Arc::new(read(side).map(|it| thread_names(&it)).unwrap_or_default())
        });
        Arc::clone(of_file)
    }
}

fn read(side: &SideFile) -> Option<Vec<u8>> {
    read_side_file(side, MAX_BYTES).ok().flatten()
}

/// The directory that `.project_root` names.
fn root(side: &SideFile) -> Option<String> {
    let text = String::from_utf8(read(side)?).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// The directory of a project. `projects.json` gives a name to each directory. The directory is found by its name,
/// which is also the name of a folder above the source.
fn project(side: &SideFile, source: &Path) -> Option<String> {
    let bytes = read(side)?;
    let projects = json::get(&bytes, "projects")?;
    let mut members = json::Members::open(projects, 0).ok()?;
    while let Some(member) = members.next_member().ok()? {
        let name = projects.get(member.value.clone()).and_then(json::string);
        let is_above = |name: &str| source.components().any(|part| part.as_os_str() == name);
        if name.as_deref().is_some_and(is_above) {
            return String::from_utf8(member.name(projects).into_owned()).ok();
        }
    }
    None
}
