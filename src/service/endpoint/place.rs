//! The path of the socket and of the files beside it, and the checks of their folder.
//!
//! Another user must not be able to put a socket into the folder, since a client would send its messages to that user.

use anyhow::{Context, bail};
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use treelined_files::os::file::{make_private, make_private_folder, owner_and_mode};
use treelined_files::os::socket::MAX_PATH_BYTES;
use treelined_files::os::{path, process, program};

/// The environment variable that names the user's folder for sockets.
const RUNTIME_DIR: &str = "XDG_RUNTIME_DIR";

/// The socket of a shared daemon, and the files beside it.
#[derive(Debug, Clone)]
pub struct Place {
    socket: PathBuf,
    /// Whether the path is derived from the session directory. It is then in the run folder.
    is_derived: bool,
}

impl Place {
    /// Returns the given path, or the path that is derived from the session directory.
    pub fn resolve(given: Option<&Path>, session_dir: &Path) -> anyhow::Result<Self> {
        Self::resolve_in(given, session_dir, &|name| std::env::var_os(name))
    }

    pub(super) fn resolve_in(
        given: Option<&Path>,
        session_dir: &Path,
        environment: &dyn Fn(&str) -> Option<OsString>,
    ) -> anyhow::Result<Self> {
        let socket = match given {
            Some(path) => std::path::absolute(path).context("the path of the socket")?,
            None => run_folder(environment).join(name_for(session_dir)),
        };
        let length = socket.as_os_str().len();
        if length > MAX_PATH_BYTES {
            bail!(
                "the path of the socket has {length} bytes, and the system takes at most {MAX_PATH_BYTES}: give a \
                 shorter one with --socket or TREELINED_SOCKET ({})",
                socket.display()
            );
        }
        Ok(Self {
            socket,
            is_derived: given.is_none(),
        })
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Whether the path is derived from the session directory.
    pub fn is_derived(&self) -> bool {
        self.is_derived
    }

    pub fn log_file(&self) -> PathBuf {
        self.beside(".log")
    }

    pub(super) fn lock_file(&self) -> PathBuf {
        self.beside(".lock")
    }

    pub(super) fn runtime_file(&self) -> PathBuf {
        self.beside(".json")
    }

    /// The path of the socket, with another ending in place of `.sock`.
    fn beside(&self, ending: &str) -> PathBuf {
        let name = self.socket.file_name().unwrap_or_default();
        let stem = name.as_encoded_bytes().strip_suffix(b".sock");
        let mut name = stem.and_then(path::from_bytes).unwrap_or(name).to_owned();
        name.push(ending);
        self.socket.with_file_name(name)
    }

    fn folder(&self) -> &Path {
        self.socket.parent().unwrap_or(Path::new("/"))
    }

    /// Makes the run folder (mode 0700) if it is missing, and checks it. If the user gives a path, its folder is not
    /// made.
    pub(crate) fn prepare(&self) -> anyhow::Result<()> {
        let folder = self.folder();
        if self.is_derived {
            let made = make_private_folder(folder);
            match made {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                    return Err(error).with_context(|| {
                        format!(
                            "make the folder {}; {RUNTIME_DIR} or --socket gives another place",
                            folder.display()
                        )
                    });
                }
                _ => {}
            }
        }
        match self.check()? {
            true => Ok(()),
            false => bail!(
                "there is no folder {} for the socket; make it, or give another path with --socket",
                folder.display()
            ),
        }
    }

    /// Fails if another user could put a socket into the folder. Returns whether the folder exists.
    pub fn check(&self) -> anyhow::Result<bool> {
        let folder = self.folder();
        let metadata = match self.is_derived {
            true => folder.symlink_metadata(),
            false => folder.metadata(),
        };
        let metadata = match metadata {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error).with_context(|| folder.display().to_string()),
        };
        let shown = folder.display();
        if metadata.is_symlink() {
            bail!("{shown} is a symbolic link: remove it, or give another path with --socket");
        }
        if !metadata.is_dir() {
            bail!("{shown} is not a folder: remove it, or give another path with --socket");
        }
        let (uid, mode) = owner_and_mode(&metadata).context("ask for the owner of the folder")?;
        let own = process::effective_user();
        // Root has all rights already, and owns /run and /tmp.
        if uid != own && (self.is_derived || uid != 0) {
            bail!(
                "{shown} belongs to another user (uid {uid}; this is uid {own}): set {RUNTIME_DIR} to a folder of \
                 this user, or give another path with --socket"
            );
        }
        if mode & 0o022 != 0 && (self.is_derived || mode & 0o1000 == 0) {
            bail!(
                "{shown} can be written by others; use chmod go-w, or give another path with --socket"
            );
        }
        // A user who can rename a folder of the path could replace the folder of the socket.
        let checked = match mode & 0o1000 {
            0 => folder,
            _ => folder.parent().unwrap_or(folder),
        };
        program::check_file(checked)
            .map_err(|why| anyhow::anyhow!("the folder {shown} is refused: {why}"))?;
        if self.is_derived && mode & 0o077 != 0 {
            make_private(folder).with_context(|| format!("chmod 700 {shown}"))?;
        }
        Ok(true)
    }
}

/// The folder for derived paths: `$XDG_RUNTIME_DIR/treelined`, else `/tmp/treelined-<uid>`.
fn run_folder(environment: &dyn Fn(&str) -> Option<OsString>) -> PathBuf {
    let named = environment(RUNTIME_DIR).map(PathBuf::from);
    match named.filter(|folder| folder.is_absolute()) {
        Some(folder) => folder.join("treelined"),
        None => {
            let uid = process::user();
            PathBuf::from(format!("/tmp/treelined-{uid}"))
        }
    }
}

/// The name of the socket: `<8 hexadecimal digits of the SHA-256 of the canonical path>.sock`.
fn name_for(session_dir: &Path) -> String {
    let canonical = canonical(session_dir);
    let digest = Sha256::digest(canonical.as_os_str().as_encoded_bytes());
    let mut name = String::new();
    for byte in digest.iter().take(4) {
        let _infallible = write!(name, "{byte:02x}");
    }
    name.push_str(".sock");
    name
}

/// Resolves the symbolic links of a path. If the path does not exist, only its existing part is resolved. So the result
/// does not change when the path is created.
pub fn canonical(path: &Path) -> PathBuf {
    for above in path.ancestors() {
        if let Ok(found) = above.canonicalize() {
            let rest = path.strip_prefix(above).unwrap_or(Path::new(""));
            return match rest.as_os_str().is_empty() {
                true => found,
                false => found.join(rest),
            };
        }
    }
    path.to_owned()
}

/// Removes the socket or a file beside it. Logs a failure.
pub(super) fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        tracing::warn!(path = %path.display(), %error, "a file of the socket could not be removed");
    }
}
