//! Finds the session files: it reads the session directory at each call, or uses the facts that are kept about a large
//! directory (session-file.md §5.4).

use super::file_names::{EXTENSION, is_hidden, is_session_file};
use super::watched::{Remembered, Watched, Watching};
use super::{Store, listing};
use crate::lock::lock;
use crate::log::cold;
use crate::os::file::{FileKind, Folder, Location, Status};
use crate::os::temporary;
use crate::store::catalogue::FolderFiles;
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use treelined_core::error::{Error, Kind, Result};

/// If there are at least this many session files, the facts about them are kept between calls. With fewer files,
/// reading them again takes no longer.
const WORTH_WATCHING: usize = 2048;

impl Store {
    /// The file of the session with this id. If several files have the id, this is the file that was modified last.
    pub fn find(&self, id: &str) -> Result<Location> {
        let not_found = || {
            Error::new(
                Kind::SessionNotFound,
                format!("there is no session {id:?} in {}", self.path.display()),
            )
        };
        let files = match self.known_with_id(id)? {
            Some(known) => known,
            None => self.locations()?,
        };
        let ending = format!("_{id}{EXTENSION}");
        let plain = format!("{id}{EXTENSION}");
        let is_named = |location: &&Location| {
            let name = location.name.to_string_lossy();
            name.ends_with(&ending) || *name == *plain
        };
        let mut found: Vec<(Location, Status)> = self.with_id(files.iter().filter(is_named), id);
        if found.is_empty() {
            // The file may have another name, since users rename and copy files.
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

    /// The id in the header of a file. The header is read again only if the file has changed.
    fn header_id(&self, location: &Location, status: Status) -> Option<String> {
        let path = location.path();
        let known = |headers: &HashMap<PathBuf, (Status, Option<String>)>| {
            let (seen, id) = headers.get(&path)?;
            (*seen == status).then(|| id.clone())
        };
        if let Some(id) = known(&self.headers()) {
            return id;
        }
        let id = listing::header_id(location);
        self.headers().insert(path, (status, id.clone()));
        id
    }

    fn headers(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, (Status, Option<String>)>> {
        lock(&self.headers)
    }

    /// The files that may have changed since the rows were made; `None` if every file may have changed.
    pub(super) fn touched(&self) -> Result<Option<Vec<Location>>> {
        let mut watching = lock(&self.watching);
        Ok(self.current(&mut watching)?.and_then(Watched::take_touched))
    }

    /// The files that have this id in their headers, if facts are kept; `None` if the directory must be read.
    fn known_with_id(&self, id: &str) -> Result<Option<Vec<Location>>> {
        let mut watching = lock(&self.watching);
        Ok(self.current(&mut watching)?.map(|known| known.with_id(id)))
    }

    /// The kept facts, made current; `None` if no facts are kept.
    fn current<'w>(&self, watching: &'w mut Watching) -> Result<Option<&'w mut Watched>> {
        let Some(root) = self.root_if_there()? else {
            return Ok(None);
        };
        if let Some(mut known) = watching.known.take() {
            let is_current = known.catch_up(|name| self.subfolder(&root, name).ok());
            watching.is_refused |= known.is_too_large();
            match is_current && !watching.is_refused {
                true => return Ok(Some(watching.known.insert(known))),
                false if watching.is_refused => {}
                false => watching.remembered = known.remember(),
            }
        }
        if watching.is_refused || self.count.load(Ordering::Relaxed) < WORTH_WATCHING {
            return Ok(None);
        }
        match self.start_watching(&root, &mut watching.remembered) {
            Ok(known) => Ok(Some(watching.known.insert(known))),
            Err(error) => {
                tracing::info!(%error, "the session directory is read at each call");
                watching.is_refused = true;
                Ok(None)
            }
        }
    }

    fn start_watching(
        &self,
        root: &Arc<Folder>,
        remembered: &mut Remembered,
    ) -> io::Result<Watched> {
        let remembered = std::mem::take(remembered);
        let mut remembered = remembered;
        let mut known = Watched::start(root)?;
        let watch = |folder: &Arc<Folder>| known.watch_folder(folder).map(|_| ());
        let files = self.files_watched(watch).map_err(io::Error::other)?;
        for FolderFiles { folder, names } in &files {
            let number = known.watch_folder(folder)?;
            let names = names.iter().map(OsString::as_os_str);
            known.add_files(number, names, &mut remembered)?;
        }
        Ok(known)
    }

    pub(super) fn files(&self) -> Result<Vec<FolderFiles>> {
        self.files_watched(|_| Ok(()))
    }

    /// The session files in the directory and in its folders. `watch` is called with each folder before the folder is
    /// listed, but not with the directory itself.
    fn files_watched(
        &self,
        mut watch: impl FnMut(&Arc<Folder>) -> io::Result<()>,
    ) -> Result<Vec<FolderFiles>> {
        let Some(root) = self.root_if_there()? else {
            return Ok(Vec::new());
        };
        let listed = match root.list() {
            Ok(listed) => listed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.failed("read", &error)),
        };
        let (mut names, mut files) = (Vec::new(), Vec::new());
        let mut has_abandoned = false;
        for (name, kind) in listed {
            has_abandoned |= temporary::is_temporary(&name);
            if is_session_file(&name) {
                names.push(name);
            } else if !is_hidden(&name)
                && kind != FileKind::File
                && let Ok(folder) = self.subfolder(&root, &name)
            {
                watch(&folder).map_err(|error| self.failed("watch", &error))?;
                let mut names = match folder.list() {
                    Ok(names) => names,
                    Err(error) => {
                        let folder = folder.path().display();
                        tracing::warn!(%error, "sessions in {folder} are not listed");
                        continue;
                    }
                };
                if names.iter().any(|(name, _)| temporary::is_temporary(name)) {
                    self.tidy(Arc::clone(&folder));
                }
                names.retain(|(name, _)| is_session_file(name));
                let names = names.into_iter().map(|(name, _)| name).collect();
                files.push(FolderFiles { folder, names });
            }
        }
        if has_abandoned {
            self.tidy(Arc::clone(&root));
        }
        let folder = root;
        files.push(FolderFiles { folder, names });
        let count = files.iter().map(|files| files.names.len()).sum();
        self.count.store(count, Ordering::Relaxed);
        Ok(files)
    }

    /// The locations of all session files.
    pub(super) fn locations(&self) -> Result<Vec<Location>> {
        let located = |files: FolderFiles| {
            let FolderFiles { folder, names } = files;
            names.into_iter().map(move |name| Location {
                folder: Arc::clone(&folder),
                name,
            })
        };
        Ok(self.files()?.into_iter().flat_map(located).collect())
    }

    /// The locations of the session files with a cold file. A cold file has the lines of shed branches (session-file.md
    /// §4.10).
    pub fn files_with_cold(&self) -> Result<Vec<Location>> {
        let mut found = Vec::new();
        for FolderFiles { folder, names } in self.files()? {
            let is_session: HashSet<&OsString> = names.iter().collect();
            // A missing folder has no files.
            for (name, _) in folder.list().unwrap_or_default() {
                let session = Path::new(&name).file_stem().map(OsStr::to_owned);
                let session = session.filter(|_| cold::is_cold_name(&name));
                if let Some(name) = session.filter(|name| is_session.contains(name)) {
                    let folder = Arc::clone(&folder);
                    found.push(Location { folder, name });
                }
            }
        }
        Ok(found)
    }

    /// The locations of all session files with the status of each. Files that are removed during the call are left out.
    pub fn session_files(&self) -> Result<Vec<(Location, Status)>> {
        let mut found = Vec::new();
        for FolderFiles { folder, names } in self.files()? {
            // A missing folder has no files.
            let _gone = folder.statuses(&names, |name, status| {
                if let Ok(status) = status {
                    let (folder, name) = (Arc::clone(&folder), name.to_owned());
                    found.push((Location { folder, name }, status));
                }
            });
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::listing::Listing;
    use std::fs;

    /// A store that keeps the facts about its files between calls, however few files there are.
    fn watching(path: &Path) -> Store {
        let store = Store::new(path.to_owned());
        store.files().unwrap();
        store.count.store(WORTH_WATCHING, Ordering::Relaxed);
        store
    }

    fn is_watching(store: &Store) -> bool {
        lock(&store.watching).known.is_some()
    }

    fn listed(store: &Store) -> Vec<Listing> {
        let rows = store.rows().unwrap();
        rows.iter().map(|row| row.listing.clone()).collect()
    }

    fn found(store: &Store, id: &str) -> Option<PathBuf> {
        store.find(id).ok().map(|at| at.path())
    }

    fn header(id: usize) -> String {
        format!("{{\"type\":\"session\",\"version\":3,\"id\":\"s{id}\",\"cwd\":\"/c\"}}\n")
    }

    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) as usize % limit
        }
    }

    /// One change by another program.
    fn change(at: &Path, random: &mut Random) {
        let folder = |random: &mut Random| {
            at.join(["a", "b", "--c--", "c.jsonl", ".hidden", ""][random.below(6)])
        };
        let file = |random: &mut Random| {
            let name =
                ["_s1.jsonl", "s2.jsonl", "x_s3.jsonl", "y.jsonl", "note.txt"][random.below(5)];
            folder(random).join(name)
        };
        let (here, there) = (file(random), file(random));
        // Any of these calls may fail. A call that fails changes nothing.
        let _done = match random.below(9) {
            0 => fs::create_dir(folder(random)),
            1 => fs::remove_dir_all(at.join(["a", "b"][random.below(2)])),
            2 => fs::rename(at.join("a"), at.join("b")),
            3 => fs::remove_file(&here),
            4 => fs::rename(&here, &there),
            5 => fs::write(&here, "no session\n"),
            6 => fs::copy(&here, &there).map(|_| ()),
            7 => fs::OpenOptions::new().append(true).open(&here).and_then(|mut file| {
                use std::io::Write;
                let id = random.below(1 << 20);
                writeln!(file, "{{\"type\":\"message\",\"id\":\"m{id}\",\"parentId\":null,\"message\":{{\"role\":\"user\",\"content\":\"q\"}}}}")
            }),
            _ => fs::write(&here, header(random.below(5))),
        };
    }

    #[test]
    fn what_is_known_is_what_a_new_store_reads_after_any_change() {
        let made = tempfile::tempdir().unwrap();
        let store = watching(made.path());
        let mut random = Random(0x5eed);
        for step in 0..400 {
            store.count.store(WORTH_WATCHING, Ordering::Relaxed);
            for _ in 0..random.below(4) {
                change(made.path(), &mut random);
            }
            let fresh = Store::new(made.path().to_owned());
            assert_eq!(listed(&store), listed(&fresh), "step {step}");
            for id in 0..5 {
                let id = format!("s{id}");
                let (known, read) = (found(&store, &id), found(&fresh, &id));
                // If files were modified in one tick of the clock, any of them may count as the last one.
                assert_eq!(known.is_some(), read.is_some(), "step {step}, {id}");
            }
        }
        assert!(is_watching(&store));
    }

    #[test]
    fn a_session_is_found_by_another_name_and_under_its_newest_id() {
        let made = tempfile::tempdir().unwrap();
        let at = |name: &str| made.path().join(name);
        for number in 0..100 {
            fs::write(at(&format!("t_s{number}.jsonl")), header(number)).unwrap();
        }
        let store = watching(made.path());
        assert_eq!(found(&store, "s7"), Some(at("t_s7.jsonl")));
        fs::rename(at("t_s7.jsonl"), at("renamed.jsonl")).unwrap();
        assert_eq!(found(&store, "s7"), Some(at("renamed.jsonl")));
        fs::write(at("renamed.jsonl"), header(700)).unwrap();
        assert_eq!(found(&store, "s7"), None);
        assert_eq!(found(&store, "s700"), Some(at("renamed.jsonl")));
        assert!(store.claim("s700").is_err());
        fs::remove_file(at("renamed.jsonl")).unwrap();
        assert!(store.claim("s700").is_ok());
        assert!(is_watching(&store));
    }

    /// A queue of reports is limited. If reports are lost, the changes are found by reading the directory.
    #[test]
    fn lost_reports_are_made_up_by_reading_the_directory() {
        let made = tempfile::tempdir().unwrap();
        fs::create_dir(made.path().join("a")).unwrap();
        let store = watching(made.path());
        assert_eq!(listed(&store).len(), 0);
        let (one, two) = (made.path().join("a/1.jsonl"), made.path().join("a/2.jsonl"));
        for _ in 0..20_000 {
            fs::write(&one, header(1)).unwrap();
            fs::write(&two, header(2)).unwrap();
        }
        store.count.store(WORTH_WATCHING, Ordering::Relaxed);
        assert_eq!(found(&store, "s2"), Some(two.clone()));
        assert_eq!(listed(&store).len(), 2);
        fs::remove_file(&two).unwrap();
        assert_eq!(listed(&store).len(), 1);
        assert!(is_watching(&store));
    }

    /// The system does not report the removal of a folder that a process has open.
    #[test]
    fn a_directory_that_is_removed_is_as_without_what_is_known() {
        let made = tempfile::tempdir().unwrap();
        let at = made.path().join("sessions");
        fs::create_dir(&at).unwrap();
        fs::write(at.join("1.jsonl"), header(1)).unwrap();
        let (store, plain) = (watching(&at), Store::new(at.clone()));
        assert_eq!(listed(&store), listed(&plain));
        fs::remove_dir_all(&at).unwrap();
        assert_eq!(listed(&store), listed(&plain));
        fs::create_dir(&at).unwrap();
        fs::write(at.join("2.jsonl"), header(2)).unwrap();
        assert_eq!(listed(&store), listed(&plain));
    }
}
