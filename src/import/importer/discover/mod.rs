//! Finds the sources of other tools: below the paths that the user names, or in the default locations of the tools.
//!
//! A path names a file or a folder. If the user names a tool, a file is read as a file of that tool. Otherwise the
//! content of the file shows which tool wrote it. If a folder has the layout in which a tool keeps its sessions, the
//! layout shows which files are sources ([`homes`]). In other folders, the content of each file shows whether it is a
//! source ([`content`]). Symbolic links below a path are not followed.

mod content;
mod editors;
mod environment;
mod files;
mod homes;
mod side;
#[cfg(test)]
mod tests;
mod walk;

use super::databases::extraction;
use super::ledger::Ledger;
use super::ledger::rows::DatabaseRow;
use super::native::FaultKind;
use super::source::facts::{Medium, Parts, Source, SourceFailure, SourceStatus};
use super::source::layout::layout;
use crate::importer::report::ImportPlace;
use content::Recognition;
pub(super) use environment::Environment;
use files::{drop_compressed_twins, drop_repeated, is_unknown_log, may_be_source, path_order};
pub(super) use homes::{Home, homes_in, is_container};
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::{fs, io};
use treelined_core::agent::Tool;
use treelined_core::error::{Error, Result};
use treelined_files::os::file::Status;

/// The locations to search for sources.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Only sources of this tool are searched; `None`: of every tool.
    pub from: Option<Tool>,
    /// The paths to search. If empty, the default locations of each tool are searched.
    pub paths: Vec<PathBuf>,
}

/// The sources that were found.
#[derive(Debug, Default)]
pub(crate) struct FoundSources {
    /// The sources, ordered by tool, then by path and part.
    pub(crate) sources: Vec<Source>,
    pub(crate) failures: Vec<SourceFailure>,
    /// The databases that were opened. When all sessions of a database are imported, the ledger gets its row, and
    /// later imports do not open it until it changes.
    pub(crate) databases: Vec<DatabaseRow>,
    /// The folders that were listed, each with its status from before the listing.
    pub(super) folders: Vec<(PathBuf, Status)>,
}

/// Finds the sources of a request. Fails if a named path is missing or inside the session directory.
pub(crate) fn discover(
    request: &Request,
    session_dir: &Path,
    ledger: &Ledger,
) -> Result<FoundSources> {
    discover_in(request, session_dir, ledger, &|name| std::env::var_os(name))
}

fn discover_in(
    request: &Request,
    session_dir: &Path,
    ledger: &Ledger,
    environment: Environment<'_>,
) -> Result<FoundSources> {
    let mut search = Search {
        session_dir: fs::canonicalize(session_dir).unwrap_or_else(|_| session_dir.to_owned()),
        ledger,
        found: FoundSources::default(),
        seen: HashSet::new(),
    };
    let tools = match &request.from {
        Some(tool) => std::slice::from_ref(tool),
        None => &Tool::ALL,
    };
    for path in &request.paths {
        search.path(path, tools)?;
    }
    if request.paths.is_empty() {
        if let Some(tool) = request.from.filter(|tool| tool.is_export()) {
            let message = format!(
                "an export of {} is a file that its user has downloaded: name the file, as it is",
                tool.name()
            );
            return Err(Error::invalid_params("paths", message));
        }
        for tool in tools {
            for place in homes::default_places(*tool, environment) {
                search.default_place(*tool, &place);
            }
        }
    }
    let mut found = search.found;
    drop_repeated(&mut found.sources, ledger);
    let order = |source: &Source| {
        // Sources of exports are ordered by time: if two exports have the same conversation, the later one decides.
        let age = source.tool.is_export().then_some(source.status.modified);
        (
            source.tool,
            age,
            path_order(&source.path),
            source.part.clone(),
        )
    };
    found.sources.sort_by_cached_key(order);
    Ok(found)
}

/// The source in a file of a tool; `None` if the file is missing or is a database.
pub(super) fn source_at(tool: Tool, path: &Path, session_dir: &Path) -> Option<Source> {
    if is_container(tool) || !path.is_file() {
        return None;
    }
    let ledger = Ledger::default();
    let mut search = Search {
        session_dir: session_dir.to_owned(),
        ledger: &ledger,
        found: FoundSources::default(),
        seen: HashSet::new(),
    };
    search.add_file(tool, path);
    let mut sources = search.found.sources.into_iter();
    sources.find(|source| source.path == path)
}

/// The default locations of the tools in a request, for the report.
pub(super) fn searched_places(request: &Request) -> Vec<ImportPlace> {
    let tools = match &request.from {
        Some(tool) => std::slice::from_ref(tool),
        None => &Tool::ALL,
    };
    let places = tools.iter().flat_map(|tool| {
        let places = homes::default_places(*tool, &|name| std::env::var_os(name));
        places.into_iter().map(|place| ImportPlace {
            tool: tool.name().to_owned(),
            exists: place.exists(),
            path: place.display().to_string(),
            variables: homes::variables(*tool)
                .iter()
                .map(ToString::to_string)
                .collect(),
        })
    });
    places.collect()
}

/// The homes of a request if every source in them is a file. `None` if a named path is missing, inside the session
/// directory or without a tool's layout, or if a source is a database.
pub(super) fn homes_of_files(request: &Request, session_dir: &Path) -> Option<Vec<Home>> {
    let session_dir = fs::canonicalize(session_dir).ok()?;
    let tools = match &request.from {
        Some(tool) => std::slice::from_ref(tool),
        None => &Tool::ALL,
    };
    let mut found = Vec::new();
    for path in &request.paths {
        let real = fs::canonicalize(path).ok()?;
        let homes = tools.iter().flat_map(|tool| homes::homes(*tool, &real));
        let before = found.len();
        found.extend(homes);
        // Without a tool's layout, only the content of a file shows whether it is a source.
        if found.len() == before || real.starts_with(&session_dir) {
            return None;
        }
    }
    for tool in tools.iter().filter(|_| request.paths.is_empty()) {
        for place in homes::default_places(*tool, &|name| std::env::var_os(name)) {
            match fs::canonicalize(place) {
                Ok(real) if real.is_dir() => found.extend(homes::homes(*tool, &real)),
                Ok(_) => return None,
                Err(_) => {}
            }
        }
    }
    let are_files = !found.iter().any(Home::is_container);
    are_files.then_some(found)
}

/// A folder in which sources may appear or change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedPlace {
    /// The path of the folder, which may be missing.
    pub(crate) path: PathBuf,
    pub(crate) scope: WatchScope,
}

/// The part of a folder that is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WatchScope {
    /// All files in the folder and in the folders below it.
    Tree,
    /// The files in the folder itself.
    Files,
    /// Only the folders in the folder, because a tool may keep its sessions in a new folder.
    Folders,
}

/// The first default location of a tool's sessions, which may be missing. `None` if `HOME` is not set.
pub fn store(tool: Tool, environment: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    homes::default_places(tool, environment).into_iter().next()
}

/// The folders in which a change may affect a request.
pub fn watched_places(request: &Request) -> Vec<WatchedPlace> {
    watched_in(request, &|name| std::env::var_os(name))
}

fn watched_in(request: &Request, environment: Environment<'_>) -> Vec<WatchedPlace> {
    let tools = match &request.from {
        Some(tool) => std::slice::from_ref(tool),
        None => &Tool::ALL,
    };
    let mut places = Vec::new();
    for tool in tools {
        let defaults = match request.paths.is_empty() {
            true => homes::default_places(*tool, environment),
            false => Vec::new(),
        };
        for path in request.paths.iter().chain(&defaults) {
            let path = fs::canonicalize(path).unwrap_or_else(|_| path.clone());
            let parents = homes::parents(*tool, &path).into_iter();
            places.extend(parents.map(|parent| WatchedPlace::of(parent, WatchScope::Folders)));
            let homes = homes::homes(*tool, &path);
            if homes.is_empty() {
                places.push(match path.parent().filter(|_| path.is_file()) {
                    Some(folder) => WatchedPlace::of(folder.to_owned(), WatchScope::Files),
                    // The tool's layout is missing. A default location is then watched only until its folder appears.
                    None if request.paths.is_empty() => WatchedPlace::of(path, WatchScope::Files),
                    None => WatchedPlace::of(path, WatchScope::Tree),
                });
            }
            for home in homes {
                let folder = home.path.parent().filter(|_| home.path.is_file());
                places.push(match folder {
                    Some(folder) => WatchedPlace::of(folder.to_owned(), WatchScope::Files),
                    None => WatchedPlace::of(home.path, WatchScope::Tree),
                });
            }
        }
    }
    places.sort_by(|a, b| (&a.path, a.scope).cmp(&(&b.path, b.scope)));
    places.dedup_by(|later, place| {
        let has_all = place.scope == WatchScope::Tree || place.scope == later.scope;
        later.path == place.path && has_all
    });
    places
}

impl WatchedPlace {
    fn of(path: PathBuf, scope: WatchScope) -> Self {
        Self { path, scope }
    }
}

struct Search<'s> {
    session_dir: PathBuf,
    ledger: &'s Ledger,
    found: FoundSources,
    /// The sources that were found so far, so that a source in several paths is listed once.
    seen: HashSet<(Tool, OsString)>,
}

impl Search<'_> {
    /// Searches a path that the user names.
    fn path(&mut self, path: &Path, tools: &[Tool]) -> Result<()> {
        let wrong =
            |reason: &str| Error::invalid_params("paths", format!("{}: {reason}", path.display()));
        let real = match fs::canonicalize(path) {
            Ok(real) => real,
            // The file does not exist any more, but an earlier import held back its end and kept the bytes.
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.has_held(path, tools) => {
                return Ok(());
            }
            Err(error) => return Err(wrong(&error.to_string())),
        };
        if real.starts_with(&self.session_dir) {
            return Err(wrong(
                "this is in the session directory; its sessions need no import",
            ));
        }
        let metadata = fs::metadata(&real).map_err(|error| wrong(&error.to_string()))?;
        if metadata.is_dir() {
            self.folder(&real, tools);
        } else {
            self.file(&real, tools);
        }
        Ok(())
    }

    /// Whether an earlier import held back the end of a source at or below a path, and kept its bytes.
    fn has_held(&self, path: &Path, tools: &[Tool]) -> bool {
        let mut held = tools.iter().flat_map(|tool| self.ledger.held(Some(*tool)));
        held.any(|row| is_below(Path::new(&row.source), path))
    }

    /// Searches a default location of a tool, if it exists.
    fn default_place(&mut self, tool: Tool, place: &Path) {
        let Ok(real) = fs::canonicalize(place) else {
            return;
        };
        if real.starts_with(&self.session_dir) {
            return;
        }
        if real.is_dir() {
            for home in homes::homes(tool, &real) {
                self.home(&home);
            }
        } else {
            self.add_file(tool, &real);
        }
    }

    fn folder(&mut self, folder: &Path, tools: &[Tool]) {
        let homes: Vec<Home> = tools
            .iter()
            .flat_map(|tool| homes::homes(*tool, folder))
            .filter(|home| !home.path.starts_with(&self.session_dir))
            .collect();
        if homes.is_empty() {
            self.by_content(folder, tools);
        }
        for home in &homes {
            self.home(home);
        }
    }

    /// Adds the sources of a home.
    fn home(&mut self, home: &Home) {
        if home.is_container() {
            self.container(home.tool, &home.path);
            return;
        }
        let mut walk = walk::Walk::new(&home.path, &self.session_dir);
        let mut files = Vec::new();
        while let Some(file) = walk.next() {
            if home.has_source(&file) || side::is_side_file(home.tool, &file) {
                files.push(file);
            }
        }
        self.found.folders.append(&mut walk.listed);
        let failures = walk.failures(Some(home.tool));
        self.found.failures.extend(failures);
        self.add_files(home.tool, files, &home.path);
    }

    /// Searches a folder, and adds the files whose content has the format of a tool, whatever their names are.
    fn by_content(&mut self, folder: &Path, tools: &[Tool]) {
        let mut walk = walk::Walk::new(folder, &self.session_dir);
        let mut files = Vec::new();
        while let Some(file) = walk.next() {
            files.push(file);
        }
        let of_opencode = |_: &PathBuf| tools.contains(&Tool::Opencode);
        let trees: Vec<PathBuf> = walk.trees().filter(of_opencode).collect();
        self.found.failures.extend(walk.failures(named(tools)));
        for tree in trees {
            self.container(Tool::Opencode, &tree);
        }
        let mut of_tools: Vec<(Tool, Vec<PathBuf>)> =
            tools.iter().map(|tool| (*tool, Vec::new())).collect();
        for file in files {
            match content::recognize(&file, tools) {
                Ok(Recognition::BadDatabase(kind, message)) => {
                    self.bad_database(&file, kind, message);
                }
                Ok(Recognition::Unknown) if is_unknown_log(&file) => self.unknown(&file),
                Ok(found) => {
                    for (tool, files) in &mut of_tools {
                        let is_its = found == Recognition::Tool(*tool);
                        if is_its || side::is_side_file(*tool, &file) {
                            files.push(file.clone());
                        }
                    }
                }
                Err(error) if may_be_source(&file, &error) => {
                    let failure = SourceFailure::io(named(tools), &file, &error);
                    self.found.failures.push(failure);
                }
                Err(_) => {}
            }
        }
        for (tool, files) in of_tools {
            if is_container(tool) {
                files.iter().for_each(|file| self.container(tool, file));
            } else {
                self.add_files(tool, files, folder);
            }
        }
    }

    fn bad_database(&mut self, path: &Path, kind: FaultKind, message: String) {
        self.found.failures.push(SourceFailure {
            tool: None,
            path: path.to_owned(),
            kind: kind.name(),
            message,
        });
    }

    /// Reports a file that no supported tool writes.
    fn unknown(&mut self, path: &Path) {
        self.unrecognized(
            path,
            "no known tool writes files like this; name the tool with --from",
        );
    }

    fn unrecognized(&mut self, path: &Path, message: &str) {
        self.found.failures.push(SourceFailure {
            tool: None,
            path: path.to_owned(),
            kind: "unrecognized",
            message: message.to_owned(),
        });
    }

    /// Adds a file that the user names.
    fn file(&mut self, path: &Path, tools: &[Tool]) {
        let found = content::recognize(path, tools);
        let found = match (tools, found) {
            // A file of Qwen Code has records like the records of Claude Code, and a name like the names of Gemini
            // CLI.
            ([tool], Ok(Recognition::Tool(Tool::QwenCode))) if *tool != Tool::QwenCode => {
                self.unrecognized(
                    path,
                    "this is a file of Qwen Code: import it with --from qwen-code",
                );
                return;
            }
            // If the user names a tool, that tool is used.
            ([tool], _) => Ok(Recognition::Tool(*tool)),
            (_, found) => found,
        };
        match found {
            Ok(Recognition::Tool(tool)) => self.add_file(tool, path),
            Ok(Recognition::BadDatabase(kind, message)) => self.bad_database(path, kind, message),
            Ok(Recognition::Unknown | Recognition::NoRecords) => self.unknown(path),
            Err(error) => self
                .found
                .failures
                .push(SourceFailure::io(None, path, &error)),
        }
    }

    /// Adds a file, together with the files beside it that belong to its session.
    fn add_file(&mut self, tool: Tool, path: &Path) {
        if is_container(tool) {
            self.container(tool, path);
            return;
        }
        let mut files = vec![path.to_owned()];
        let mut beside = None;
        if tool == Tool::ClaudeCode {
            let mut walk = walk::Walk::new(&path.with_extension(""), &self.session_dir);
            while let Some(file) = walk.next() {
                files.push(file);
            }
            beside = side::spawn_file(path);
        }
        files.extend(beside);
        let above = path.parent().unwrap_or(path);
        files.retain(|file| {
            file.as_path() == path
                || homes::has_source(tool, file)
                || side::is_side_file(tool, file)
        });
        self.add_files(tool, files, above);
    }

    /// Adds each file as a source, and each side file to its source. All files are below `folder`.
    fn add_files(&mut self, tool: Tool, files: Vec<PathBuf>, folder: &Path) {
        let (sides, mut files): (Vec<PathBuf>, Vec<PathBuf>) = files
            .into_iter()
            .partition(|file| side::is_side_file(tool, file));
        if tool == Tool::Codex {
            drop_compressed_twins(&mut files);
        }
        let mut sides = side::SideFiles::of(tool, sides, folder);
        for (file, status) in walk::statuses(&files) {
            let status = match status {
                Ok(Some(status)) => status,
                // The file was removed, or is not a regular file.
                Ok(None) => continue,
                Err(error) => {
                    let failures = &mut self.found.failures;
                    failures.push(SourceFailure::io(Some(tool), file, &error));
                    continue;
                }
            };
            if self.seen.insert((tool, file.as_os_str().to_owned())) {
                self.found.sources.push(Source {
                    tool,
                    path: file.clone(),
                    part: None,
                    status: SourceStatus::of_file(status),
                    medium: medium(tool, file),
                    side_files: sides.of_source(file),
                    kept: None,
                });
            }
        }
    }

    /// Adds the native sessions in a database, an export, or a folder of small files.
    fn container(&mut self, tool: Tool, path: &Path) {
        if path.starts_with(&self.session_dir)
            || !self.seen.insert((tool, path.as_os_str().to_owned()))
        {
            return;
        }
        let status = match SourceStatus::of_database(path) {
            Ok(status) => status,
            Err(error) => {
                let failure = SourceFailure::io(Some(tool), path, &error);
                self.found.failures.push(failure);
                return;
            }
        };
        let name = path.to_string_lossy().into_owned();
        let is_file = !path.is_dir();
        if is_file && self.ledger.has_database(tool, &name, &status) {
            let imported = self.ledger.parts(tool, &name);
            let known = imported.map(|(part, row)| (part.to_owned(), row.status));
            let known = known.filter_map(|(part, status)| part_of(tool, path, part, status));
            self.found.sources.extend(known);
            return;
        }
        match extraction(tool).map(|extraction| extraction.parts(path)) {
            Some(Ok(Parts { parts, failure })) => {
                let is_whole = failure.is_none();
                self.found.failures.extend(failure);
                let parts = parts.into_iter();
                let parts =
                    parts.filter_map(|part| part_of(tool, path, part.native_id, part.status));
                self.found.sources.extend(parts);
                if is_file && is_whole {
                    self.found.databases.push(DatabaseRow {
                        tool,
                        database: name,
                        status,
                    });
                }
            }
            Some(Err(failure)) => self.found.failures.push(failure),
            None => debug_assert!(false, "{tool:?} keeps files"),
        }
    }
}

/// Whether a source is at or below a path. If the path is missing, its nearest existing ancestor is resolved.
pub(super) fn is_below(source: &Path, path: &Path) -> bool {
    let above = path.ancestors().find_map(|above| {
        let real = fs::canonicalize(above).ok()?;
        let rest = path.strip_prefix(above).ok()?;
        Some(real.join(rest))
    });
    let real = above.unwrap_or_else(|| path.to_owned());
    let database = format!("{}#", real.display());
    source.starts_with(&real) || source.to_string_lossy().starts_with(&database)
}

/// The source for one native session in a database or folder.
fn part_of(tool: Tool, path: &Path, part: String, status: SourceStatus) -> Option<Source> {
    Some(Source {
        tool,
        path: path.to_owned(),
        part: Some(part),
        status,
        medium: Medium::Extracted(extraction(tool)?),
        side_files: Vec::new(),
        kept: None,
    })
}

/// The form in which a tool stores the records of a file.
pub(super) fn medium(tool: Tool, path: &Path) -> Medium {
    if let Some(extraction) = extraction(tool) {
        return Medium::Extracted(extraction);
    }
    match path.extension().and_then(OsStr::to_str) {
        Some("zst") => Medium::Compressed,
        _ => Medium::Plain(layout(tool)),
    }
}

/// The tool that the user names; `None` if any tool may be meant.
fn named(tools: &[Tool]) -> Option<Tool> {
    match tools {
        [tool] => Some(*tool),
        _ => None,
    }
}
