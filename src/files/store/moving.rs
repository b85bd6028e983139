//! Changes the directory of sessions after a person has moved their project (session-file.md §5.11).

use super::Store;
use super::catalogue::CatalogueRow;
use super::family::beside;
use super::file_names::folder_name;
use super::relocating::relocate;
use crate::log::append::locked_elsewhere;
use crate::log::moved::{HeaderChange, change_header};
use crate::log::{self, header::Header};
use crate::os::file::Location;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use treelined_core::error::{Error, Result};

/// A session whose directory was moved.
#[derive(Debug)]
pub struct MovedSession {
    pub id: String,
    /// The name of the session, or its first message.
    pub title: String,
    /// The directory in the header before the move; `cwd` is the directory after it.
    pub from_cwd: String,
    pub cwd: String,
    /// The path of the file before the move; `path` is the path after it.
    pub from_path: PathBuf,
    pub path: PathBuf,
}

/// A session that could not be moved. The session is unchanged.
#[derive(Debug)]
pub struct LeftSession {
    pub path: PathBuf,
    pub error: Error,
}

/// The result of [`Store::move_project`].
#[derive(Debug, Default)]
pub struct ProjectMove {
    pub moved: Vec<MovedSession>,
    pub left: Vec<LeftSession>,
}

impl Store {
    /// Changes the directory of all sessions of `from` and of directories below `from`. The new directory is `to`, or
    /// the same directory below `to`. Changes the headers of these sessions, and moves their files to the folder of the
    /// new directory. Also changes the paths of moved parents in the headers of forks. Both directories are absolute
    /// paths without a separator at the end. Without `writes`, changes nothing and returns the planned moves.
    pub fn move_project(&self, from: &str, to: &str, writes: bool) -> Result<ProjectMove> {
        let root = self.root()?;
        let _lock = match writes {
            true => Some(root.lock()?),
            false => None,
        };
        let rows = self.rows()?;
        let mut result = ProjectMove::default();
        for row in rows.iter() {
            let Some(planned) = self.planned(row, from, to) else {
                continue;
            };
            let done = match writes {
                true => self.move_session(&planned),
                false => Ok(()),
            };
            match done {
                Ok(()) => result.moved.push(planned),
                Err(error) => result.left.push(LeftSession {
                    path: planned.from_path,
                    error,
                }),
            }
        }
        if writes && !result.moved.is_empty() {
            self.name_parents(&rows, &mut result);
        }
        Ok(result)
    }

    /// The plan to move this session; `None` if it has another directory. A session whose header was changed by an
    /// unfinished move is moved too.
    fn planned(&self, row: &CatalogueRow, from: &str, to: &str) -> Option<MovedSession> {
        let listing = &row.listing;
        let header = listing.header.as_ref()?;
        let path = &listing.path;
        let folder = path.parent()?.file_name()?;
        let (from_cwd, cwd) = match below(&header.cwd, from) {
            Some(rest) => (header.cwd.clone(), format!("{to}{rest}")),
            None => {
                let rest = below(&header.cwd, to)?;
                let before = format!("{from}{rest}");
                (folder == folder_name(&before)).then_some((before, header.cwd.clone()))?
            }
        };
        // If the file is in another folder, a person has put it there. So the file stays in that folder.
        let is_in_place = folder == folder_name(&from_cwd);
        let name = path.file_name()?;
        let to = match is_in_place {
            true => self.path().join(folder_name(&cwd)).join(name),
            false => path.clone(),
        };
        let title = listing.name.clone();
        Some(MovedSession {
            id: header.id.clone(),
            title: title.unwrap_or_else(|| listing.first_message.clone()),
            from_cwd,
            cwd,
            from_path: path.clone(),
            path: to,
        })
    }

    /// Changes the header, and then moves the file. The header comes first, since a session is also found if its file
    /// is in the folder of another directory.
    fn move_session(&self, planned: &MovedSession) -> Result<()> {
        let at = Location::of_path(&planned.from_path)?;
        let is_taken = || Location::of_path(&planned.path).is_ok_and(|to| to.status().is_ok());
        if planned.path != planned.from_path && is_taken() {
            return Err(super::exists(&planned.id));
        }
        if let Some(cache) = self.cache() {
            log::remove_cached(&at, &cache);
        }
        change_header(&at, &[("cwd", planned.cwd.clone())])?;
        if planned.path == planned.from_path {
            return Ok(());
        }
        let failed = |error: io::Error| Error::io(&format!("move {}", at.path().display()), &error);
        let place = self.place(&Header::new(&planned.id, 0, &planned.cwd, None))?;
        let to = Location {
            name: at.name.clone(),
            ..place
        };
        match relocate(&at, &to, None) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(super::exists(&planned.id));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(locked_elsewhere());
            }
            Err(error) => return Err(failed(error)),
        }
        // The folder is removed only if it is empty.
        if let (Ok(root), Some(folder)) = (self.root(), at.folder.path().file_name()) {
            let _not_empty = root.remove_subfolder(folder);
        }
        Ok(())
    }

    /// Writes the new paths of moved files into the headers of their forks.
    fn name_parents(&self, rows: &[std::sync::Arc<CatalogueRow>], result: &mut ProjectMove) {
        let moved = result.moved.iter();
        let moved: HashMap<PathBuf, PathBuf> = moved
            .map(|moved| (moved.from_path.clone(), moved.path.clone()))
            .collect();
        for row in rows {
            let listing = &row.listing;
            let named = listing.header.as_ref();
            let named = named.and_then(|header| header.parent_session.as_deref());
            let Some(parent) = named.and_then(|named| moved.get(&beside(listing, named))) else {
                continue;
            };
            let now = moved.get(&listing.path).unwrap_or(&listing.path);
            let is_relative = named.is_some_and(|named| Path::new(named).is_relative());
            if is_relative && now.parent() == parent.parent() {
                continue;
            }
            let change: HeaderChange = ("parentSession", parent.to_string_lossy().into_owned());
            let changed = Location::of_path(now).and_then(|at| change_header(&at, &[change]));
            if let Err(error) = changed {
                result.left.push(LeftSession {
                    path: now.clone(),
                    error,
                });
            }
        }
    }
}

/// The part of `path` after `directory`; `None` if `path` is not that directory or below it.
fn below<'p>(path: &'p str, directory: &str) -> Option<&'p str> {
    let rest = path.strip_prefix(directory)?;
    let rest = rest.trim_end_matches('/');
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_beside_it_is_not_below_it() {
        assert_eq!(below("/a/b", "/a/b"), Some(""));
        assert_eq!(below("/a/b/", "/a/b"), Some(""));
        assert_eq!(below("/a/b/c", "/a/b"), Some("/c"));
        assert_eq!(below("/a/bc", "/a/b"), None);
        assert_eq!(below("/a", "/a/b"), None);
    }
}
