//! The directories whose sessions an agent may read.

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// A directory and all directories below it, or all directories.
pub struct Scope {
    /// The path that [`resolved`] returns; `None`: all directories.
    path: Option<PathBuf>,
}

impl Scope {
    /// `directory` is resolved; `None`: all directories.
    pub fn new(directory: Option<PathBuf>) -> Scope {
        Scope { path: directory }
    }

    /// The path of the directory; `None`: all directories.
    pub fn path(&self) -> Option<String> {
        self.path.as_ref().map(|path| path.display().to_string())
    }

    /// The path of a file below the directory, without links and `..`; `None` if the file is not below it. If all
    /// directories are in scope, the path is returned as it is written.
    pub fn relative(&self, file: &str) -> Option<String> {
        let Some(directory) = &self.path else {
            return Some(file.to_owned());
        };
        let file = resolved(&directory.join(file))?;
        let file = file.strip_prefix(directory).ok()?;
        Some(file.display().to_string())
    }

    /// A checker of directories, which resolves each directory once.
    pub fn directories(&self) -> Directories<'_> {
        Directories {
            scope: self.path.as_deref(),
            known: HashMap::new(),
        }
    }
}

/// Resolves the directories of sessions, as the file system is now.
pub struct Directories<'s> {
    scope: Option<&'s Path>,
    known: HashMap<String, Option<PathBuf>>,
}

impl Directories<'_> {
    /// Whether the sessions of this directory are in scope.
    pub fn are_with(&mut self, directory: &str) -> bool {
        self.is(directory, |directory, scope| directory.starts_with(scope))
    }

    /// Whether this is the directory of the scope itself.
    pub fn is_own(&mut self, directory: &str) -> bool {
        self.is(directory, |directory, scope| directory == scope)
    }

    /// Whether `path` is the path of `file` in the scope. If all directories are in scope, `path` must end with `file`.
    pub fn have(&mut self, path: &Path, file: &str) -> bool {
        let Some(scope) = self.scope else {
            return path.ends_with(file);
        };
        let known = self.known.entry(path.display().to_string());
        let known = known.or_insert_with(|| resolved(path));
        known.as_ref().is_some_and(|path| *path == scope.join(file))
    }

    fn is(&mut self, directory: &str, compare: impl Fn(&Path, &Path) -> bool) -> bool {
        let Some(scope) = self.scope else {
            return true;
        };
        let resolve = || resolved(Path::new(directory));
        let known = self
            .known
            .entry(directory.to_owned())
            .or_insert_with(resolve);
        known
            .as_ref()
            .is_some_and(|directory| compare(directory, scope))
    }
}

/// The absolute path without links and `..`. A part that does not exist is kept as it is written. `None` if it is not
/// known where the path leads: it is relative, a link leads nowhere, a folder may not be read, or `..` follows a part
/// that does not exist.
fn resolved(path: &Path) -> Option<PathBuf> {
    if !path.is_absolute() {
        return None;
    }
    let mut exists = path;
    let real = loop {
        match fs::canonicalize(exists) {
            Ok(real) => break real,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if fs::symlink_metadata(exists).is_ok() {
                    return None;
                }
                exists = exists.parent()?;
            }
            Err(_) => return None,
        }
    };
    let mut gone = path.strip_prefix(exists).ok()?.components();
    let is_plain = gone.all(|part| matches!(part, Component::Normal(_)));
    is_plain.then(|| real.join(path.strip_prefix(exists).unwrap_or(Path::new(""))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// The path `/proj/../secret` was once in the scope `/proj`, since its text begins with `/proj`. A link in `/proj`
    /// that leads elsewhere was in the scope too.
    #[test]
    fn a_directory_is_where_it_leads() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for folder in ["proj/below", "secret"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        symlink(root.join("secret"), root.join("proj/out")).unwrap();
        symlink(root.join("gone"), root.join("proj/nowhere")).unwrap();
        symlink(root.join("proj"), root.join("link")).unwrap();
        let scope = Scope::new(Some(root.join("proj")));
        let mut directories = scope.directories();
        for inside in [
            "proj",
            "proj/",
            "proj/below",
            "proj/./below",
            "proj/below/..",
            "link",
            "link/below",
            "secret/../proj",
            "proj/gone/deep",
            "link/gone",
        ] {
            let path = format!("{}/{inside}", root.display());
            assert!(directories.are_with(&path), "{path}");
        }
        for outside in [
            "",
            "secret",
            "proj/../secret",
            "proj/../secret/gone",
            "proj/out",
            "proj/out/gone",
            "proj/nowhere",
            "proj/nowhere/x",
            "proj/gone/../../secret",
            "proj/gone/../x",
            "project",
            "link/../secret",
            "proj/out/..",
        ] {
            let path = format!("{}/{outside}", root.display());
            assert!(!directories.are_with(&path), "{path}");
        }
        assert!(!directories.are_with("proj/below"), "it is relative");
        assert!(!directories.are_with(""));
        let mut directories = scope.directories();
        assert!(directories.is_own(&format!("{}/link", root.display())));
        assert!(!directories.is_own(&format!("{}/proj/below", root.display())));
        assert!(Scope::new(None).directories().are_with("anywhere"));
        let relative = |file: &str| scope.relative(file);
        assert_eq!(relative("./below/a.rs").as_deref(), Some("below/a.rs"));
        assert_eq!(relative("below/../gone.rs").as_deref(), Some("gone.rs"));
        let link = format!("{}/link/below/a.rs", root.display());
        assert_eq!(relative(&link).as_deref(), Some("below/a.rs"));
        assert_eq!(relative("../secret/a.rs"), None);
        assert_eq!(relative("out/a.rs"), None);
    }
}
