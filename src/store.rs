//! The session directory: where sessions are, how they are found, listed, forked into and thrown
//! away (storage.md §1, §5). Knows files and headers, nothing of trees that are open.

use crate::error::{Error, Kind, Result};
use crate::id::{self, SessionId};
use crate::listing::Listing;
use crate::log::file::{Folder, Location, Status};
use crate::log::ingest::Header;
use crate::log::{Log, Opened};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// Where deleted sessions go.
const TRASH: &str = ".trash";
/// How session files end.
const EXTENSION: &str = ".jsonl";

/// The session directory.
pub struct Store {
    path: PathBuf,
    /// Opened once; everything below is reached through it.
    root: OnceLock<Arc<Folder>>,
    /// Folders in use, shared by the sessions in them.
    folders: Mutex<HashMap<OsString, Weak<Folder>>>,
    catalogue: Mutex<HashMap<PathBuf, (Status, Arc<Listing>)>>,
    /// Ids in the headers of files; rebuildable too.
    headers: Mutex<HashMap<PathBuf, (Status, Option<String>)>>,
}

impl Store {
    /// Nothing is made before the first session is written.
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            root: OnceLock::new(),
            folders: Mutex::default(),
            catalogue: Mutex::default(),
            headers: Mutex::default(),
        }
    }

    /// Where a new session will be.
    pub fn place(&self, header: &Header) -> Result<Location> {
        let root = self.root()?;
        let name = folder_name(&header.cwd);
        let made = root.make_subfolder(&name);
        made.map_err(|error| self.failed("create a folder in", &error))?;
        let folder = self
            .subfolder(&root, &name)
            .map_err(|error| self.failed("open a folder in", &error))?;
        let stamp = header.timestamp.as_deref().unwrap_or_default();
        let stamp = stamp.replace([':', '.'], "-");
        Ok(Location {
            folder,
            name: format!("{stamp}_{}{EXTENSION}", header.id).into(),
        })
    }

    /// The file of the session with this id; of several, the most recently modified.
    pub fn find(&self, id: &str) -> Result<Location> {
        let not_found = || {
            Error::new(
                Kind::SessionNotFound,
                format!("there is no session {id:?} in {}", self.path.display()),
            )
        };
        if !id::is_valid(id) {
            return Err(not_found());
        }
        let files = self.files()?;
        let ending = format!("_{id}{EXTENSION}");
        let plain = format!("{id}{EXTENSION}");
        let is_named = |location: &&Location| {
            let name = location.name.to_string_lossy();
            name.ends_with(&ending) || *name == *plain
        };
        let mut found: Vec<(Location, Status)> = self.with_id(files.iter().filter(is_named), id);
        if found.is_empty() {
            // Somebody has renamed it, or put it here under a name of their own.
            found = self.with_id(files.iter().filter(|location| !is_named(location)), id);
        }
        found.sort_by_key(|(_, status)| status.modified);
        found
            .pop()
            .map(|(location, _)| location)
            .ok_or_else(not_found)
    }

    fn with_id<'a>(
        &self,
        files: impl Iterator<Item = &'a Location>,
        id: &str,
    ) -> Vec<(Location, Status)> {
        files
            .filter_map(|location| Some((location, location.status().ok()?)))
            .filter(|(location, status)| self.header_id(location, *status).as_deref() == Some(id))
            .map(|(location, status)| (location.clone(), status))
            .collect()
    }

    /// The id in the file's header, read once and again only when the file has changed.
    fn header_id(&self, location: &Location, status: Status) -> Option<String> {
        let path = location.path();
        let known = |headers: &HashMap<PathBuf, (Status, Option<String>)>| {
            let (seen, id) = headers.get(&path)?;
            (*seen == status).then(|| id.clone())
        };
        if let Some(id) = known(&self.headers()) {
            return id;
        }
        let id = crate::listing::header_id(location);
        self.headers().insert(path, (status, id.clone()));
        id
    }

    fn headers(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, (Status, Option<String>)>> {
        self.headers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session file the user names.
    pub fn open_path(&self, path: &Path) -> Result<Opened> {
        Log::open(Location::of_path(path)?)
    }

    /// Moves a session's file to the trash folder; returns where it is then.
    pub fn trash(&self, location: &Location) -> Result<PathBuf> {
        let failed =
            |error: io::Error| Error::io(&format!("delete {}", location.path().display()), &error);
        let trash = self
            .root()?
            .subfolder_or_create(OsStr::new(TRASH))
            .map_err(failed)?;
        let mut name = location.name.clone();
        let mut number = 1;
        while trash.status(&name).is_ok() {
            number += 1;
            name.clone_from(&location.name);
            name.push(format!(".{number}"));
        }
        match location.folder.rename(&location.name, &trash, &name) {
            Ok(()) => {}
            // A file the user named elsewhere: the trash may be on another file system.
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                let path = trash.path().join(&name);
                std::fs::copy(location.path(), path).map_err(failed)?;
                location.folder.remove(&location.name).map_err(failed)?;
            }
            Err(error) => return Err(failed(error)),
        }
        let synced = trash.sync().and_then(|()| location.folder.sync());
        synced.map_err(failed)?;
        Ok(trash.path().join(name))
    }

    /// A listing of every session, each file read once and again only where it has changed. A file
    /// that is no session has its place too.
    pub fn list(&self) -> Result<Vec<Arc<Listing>>> {
        let mut listings = Vec::new();
        let mut known = std::mem::take(&mut *self.catalogue());
        let mut catalogue = HashMap::with_capacity(known.len());
        for location in self.files()? {
            let Ok(status) = location.status() else {
                continue;
            };
            let path = location.path();
            let listing = match known.remove(&path) {
                Some((seen, listing)) if seen == status => listing,
                _ => match Listing::read(&location) {
                    Ok(listing) => Arc::new(listing),
                    // Gone meanwhile, or no regular file.
                    Err(_) => continue,
                },
            };
            catalogue.insert(path, (status, Arc::clone(&listing)));
            listings.push(listing);
        }
        *self.catalogue() = catalogue;
        Ok(listings)
    }

    /// The session files: those in the directory and those in its folders.
    fn files(&self) -> Result<Vec<Location>> {
        let root = match self.root.get() {
            Some(root) => Arc::clone(root),
            None => match Folder::open_to_stay(&self.path) {
                Ok(root) => self.adopt(root),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
                Err(error) => return Err(self.failed("open", &error)),
            },
        };
        let listed = match root.list() {
            Ok(listed) => listed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.failed("read", &error)),
        };
        let mut files = Vec::new();
        for (name, kind) in listed {
            if is_session_file(&name) {
                let folder = Arc::clone(&root);
                files.push(Location { folder, name });
            } else if !is_hidden(&name)
                && !kind.is_file()
                && let Ok(folder) = self.subfolder(&root, &name)
            {
                for (name, _) in folder.list().unwrap_or_default() {
                    if is_session_file(&name) {
                        let folder = Arc::clone(&folder);
                        files.push(Location { folder, name });
                    }
                }
            }
        }
        Ok(files)
    }

    fn root(&self) -> Result<Arc<Folder>> {
        if let Some(root) = self.root.get() {
            return Ok(Arc::clone(root));
        }
        let root = Folder::open_or_create(&self.path);
        Ok(self.adopt(root.map_err(|error| self.failed("create", &error))?))
    }

    /// Warned about once: permissions of the user's own choice are not changed.
    fn adopt(&self, root: Folder) -> Arc<Folder> {
        Arc::clone(self.root.get_or_init(|| {
            if root.mode().is_ok_and(|mode| mode & 0o077 != 0) {
                tracing::warn!("the session directory can be read or changed by others");
            }
            Arc::new(root)
        }))
    }

    fn subfolder(&self, root: &Arc<Folder>, name: &OsStr) -> io::Result<Arc<Folder>> {
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = folders.get(name).and_then(Weak::upgrade)
            && folder.identity()? == root.status(name)?.identity
        {
            return Ok(folder);
        }
        folders.retain(|_, folder| folder.strong_count() > 0);
        let folder = Arc::new(root.subfolder(name)?);
        folders.insert(name.to_owned(), Arc::downgrade(&folder));
        Ok(folder)
    }

    fn catalogue(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, (Status, Arc<Listing>)>> {
        self.catalogue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, action: &str, error: &io::Error) -> Error {
        Error::io(&format!("{action} {}", self.path.display()), error)
    }
}

/// `--<cwd without its leading separator, / \ : as ->--`.
fn folder_name(cwd: &str) -> OsString {
    let inner = cwd.strip_prefix(['/', '\\']).unwrap_or(cwd);
    // Longer than a file name may be: the end tells folders apart better than the start.
    let safe: String = inner
        .chars()
        .map(|c| {
            if matches!(c, '/' | '\\' | ':' | '\0') {
                '-'
            } else {
                c
            }
        })
        .collect();
    let mut start = safe.len().saturating_sub(240);
    while !safe.is_char_boundary(start) {
        start += 1;
    }
    format!("--{}--", safe.get(start..).unwrap_or_default()).into()
}

fn is_session_file(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.ends_with(EXTENSION.as_bytes()) && !name.starts_with(b".")
}

fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

/// A session id for a new session: the client's, if it is well formed.
pub fn choose_id(chosen: Option<&str>) -> Result<SessionId> {
    match chosen {
        None => Ok(id::new_session_id()),
        Some(id) if id::is_valid(id) => Ok(SessionId::new(id)),
        Some(_) => Err(Error::invalid_params(
            "sessionId",
            "must be letters, digits, '.', '_' or '-', at most 128 bytes, beginning and ending with a letter or digit",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_named_after_the_working_directory() {
        for (cwd, name) in [
            ("/tmp/pr oj:x\\y/z", "--tmp-pr oj-x-y-z--"),
            ("/", "----"),
            ("C:\\work", "--C--work--"),
            ("../../etc", "--..-..-etc--"),
        ] {
            assert_eq!(folder_name(cwd), OsStr::new(name), "{cwd}");
        }
        assert!(folder_name(&"ä/".repeat(500)).len() <= 255);
    }
}
