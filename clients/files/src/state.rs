//! The folder of states. For each root it has a folder with the shadow repository, the lock and the restores
//! (files.md §1).

use crate::exclude::Limits;
use crate::git::Shadow;
use anyhow::{Context, bail};
use etcetera::{AppStrategy, AppStrategyArgs, choose_app_strategy};
use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a command waits while another command uses the same root. In the tests, processes that one thread starts
/// inherit the locks of the other threads, and may run for long beside a build.
pub const WAIT: Duration = Duration::from_secs(if cfg!(test) { 300 } else { 10 });

/// The folder of all states.
#[derive(Debug, Clone)]
pub struct State {
    folder: PathBuf,
    limits: Limits,
}

/// A root: a folder whose files are saved.
#[derive(Debug, Clone)]
pub struct Root {
    /// The path of the folder, with symbolic links resolved.
    pub path: PathBuf,
    /// The folder of the root's state.
    pub folder: PathBuf,
    pub limits: Limits,
}

/// The first 16 hexadecimal digits of a hash.
fn digits(hash: Sha256) -> String {
    let bytes = hash.finalize();
    bytes
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The content of `root.json`.
#[derive(Debug, Serialize, Deserialize)]
struct About {
    path: PathBuf,
    is_on: bool,
}

impl State {
    /// Uses the folder `named`; without it, the folder of the platform.
    pub fn new(named: Option<&Path>, limits: Limits) -> anyhow::Result<State> {
        if let Some(folder) = named {
            let folder = std::path::absolute(folder)?;
            return Ok(State { folder, limits });
        }
        let strategy = choose_app_strategy(AppStrategyArgs {
            top_level_domain: String::new(),
            author: String::new(),
            app_name: "treelined".to_owned(),
        })?;
        let folder = strategy.state_dir().unwrap_or_else(|| strategy.data_dir());
        let folder = folder.join("files");
        Ok(State { folder, limits })
    }

    /// The root at a path. Its files need not be saved.
    pub fn root(&self, path: &Path) -> anyhow::Result<Root> {
        let shown = path.display();
        let path = path
            .canonicalize()
            .with_context(|| format!("{shown} cannot be read"))?;
        let metadata = fs::metadata(&path).with_context(|| format!("{shown} cannot be read"))?;
        if !metadata.is_dir() {
            bail!("{shown} is not a folder");
        }
        let mut hash = Sha256::new();
        hash.update(path.as_os_str().as_bytes());
        hash.update([0]);
        hash.update(metadata.dev().to_be_bytes());
        hash.update(metadata.ino().to_be_bytes());
        let folder = self.folder.join(digits(hash));
        let limits = self.limits;
        Ok(Root {
            path,
            folder,
            limits,
        })
    }

    /// The nearest root that contains a folder, among the roots that are turned on. A repository inside a root is not
    /// a part of that root.
    pub fn nearest(&self, folder: &Path) -> anyhow::Result<Option<Root>> {
        let Ok(folder) = folder.canonicalize() else {
            return Ok(None);
        };
        for above in folder.ancestors() {
            let root = self.root(above)?;
            if root.is_on()? {
                return Ok(Some(root));
            }
            if above.join(".git").symlink_metadata().is_ok() {
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// Takes the lock for following the sessions of a session directory. `None` if another process has it. Two
    /// followers would record each turn twice.
    pub fn follow(&self, sessions: Option<&Path>) -> anyhow::Result<Option<File>> {
        make_folder(&self.folder)?;
        let mut hash = Sha256::new();
        if let Some(folder) = sessions {
            hash.update(std::path::absolute(folder)?.as_os_str().as_bytes());
        }
        let name = format!("watch-{}.lock", digits(hash));
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true).mode(0o600);
        let file = options.open(self.folder.join(name))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error).context("lock the sessions"),
        }
    }

    /// All roots that have a state. The boolean says whether their files are saved. The folder of a root may not
    /// exist any more.
    pub fn all(&self) -> anyhow::Result<Vec<(Root, bool)>> {
        let folders = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            folders => folders.context("read the folder of states")?,
        };
        let mut all = Vec::new();
        for folder in folders {
            let folder = folder?;
            // The lock files of followers are beside the folders of roots.
            if !folder.file_type()?.is_dir() {
                continue;
            }
            let folder = folder.path();
            if let Some(about) = read::<About>(&folder.join("root.json"))? {
                let path = about.path;
                let limits = self.limits;
                let root = Root {
                    path,
                    folder,
                    limits,
                };
                all.push((root, about.is_on));
            }
        }
        all.sort_by(|(one, _), (other, _)| one.path.cmp(&other.path));
        Ok(all)
    }
}

impl Root {
    /// Whether the files of the root are saved.
    pub fn is_on(&self) -> anyhow::Result<bool> {
        let about: Option<About> = read(&self.folder.join("root.json"))?;
        Ok(about.is_some_and(|about| about.is_on && about.path == self.path))
    }

    pub fn set_on(&self, is_on: bool) -> anyhow::Result<()> {
        make_folder(&self.folder)?;
        let path = self.path.clone();
        write(&self.folder.join("root.json"), &About { path, is_on })
    }

    /// Whether a folder is in the root, and not in a repository inside the root.
    pub fn holds(&self, folder: &Path) -> bool {
        let own =
            |above: &Path| above != self.path && above.join(".git").symlink_metadata().is_ok();
        let mut above = folder.ancestors();
        folder.starts_with(&self.path)
            && !above.any(|above| above.starts_with(&self.path) && own(above))
    }

    pub fn repository(&self) -> PathBuf {
        self.folder.join("repo")
    }

    pub fn restores(&self) -> PathBuf {
        self.folder.join("restores")
    }

    /// The shadow repository. It may be used only under the lock.
    pub fn shadow(&self, _lock: &Lock) -> anyhow::Result<Shadow> {
        Shadow::open(self.repository(), self.path.clone())
    }

    /// Waits for the lock of the root, and removes files that killed calls have left in the shadow repository.
    pub fn lock(&self, wait: Duration) -> anyhow::Result<Lock> {
        make_folder(&self.folder)?;
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true).mode(0o600);
        let file = options.open(self.folder.join("lock"))?;
        let start = Instant::now();
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::WOULDBLOCK | Errno::INTR) if start.elapsed() < wait => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(Errno::WOULDBLOCK) => bail!(
                    "another command uses the saved files of {}; try again",
                    self.path.display()
                ),
                Err(error) => return Err(error).context("lock the saved files"),
            }
        }
        // Calls of git inherit the lock. So if a call outlives this process, the next process waits for it.
        fcntl_setfd(&file, FdFlags::empty()).context("lock the saved files")?;
        remove_leftovers(&self.repository())?;
        Ok(Lock(file))
    }
}

/// The lock of a root, under which its shadow repository may be used. It is released on drop.
#[derive(Debug)]
pub struct Lock(#[allow(dead_code, reason = "closed when it is dropped")] File);

/// Removes locks and temporary files of killed calls. They cannot be in use, because the caller holds the lock of the
/// root.
fn remove_leftovers(repository: &Path) -> anyhow::Result<()> {
    for name in [
        "index.lock",
        "packed-refs.lock",
        "refs/tl-last.lock",
        "open.index.lock",
        "undo.index.lock",
        "config.lock",
        "HEAD.lock",
    ] {
        remove_if_there(&repository.join(name))?;
    }
    let objects = repository.join("objects");
    let Ok(folders) = fs::read_dir(&objects) else {
        return Ok(());
    };
    for folder in folders {
        let folder = folder?.path();
        let name = folder.file_name().unwrap_or_default().as_bytes();
        if name.starts_with(b"tmp_objdir") {
            fs::remove_dir_all(&folder)?;
        } else if name.starts_with(b"tmp_") {
            remove_if_there(&folder)?;
        } else if let Ok(files) = fs::read_dir(&folder) {
            for file in files {
                let file = file?;
                let name = file.file_name();
                if name.as_bytes().starts_with(b"tmp_") || name.as_bytes().starts_with(b".tmp-") {
                    remove_if_there(&file.path())?;
                }
            }
        }
    }
    Ok(())
}

fn remove_if_there(path: &Path) -> anyhow::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

pub fn make_folder(path: &Path) -> anyhow::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .with_context(|| format!("make {}", path.display()))
}

/// Reads a file of the state; `None` if it is missing.
pub fn read<T: serde::de::DeserializeOwned>(path: &Path) -> anyhow::Result<Option<T>> {
    let bytes = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        bytes => bytes.with_context(|| format!("read {}", path.display()))?,
    };
    let read = serde_json::from_slice(&bytes);
    Ok(Some(read.with_context(|| {
        format!("{} is damaged; remove it", path.display())
    })?))
}

/// Writes a file of the state. After a crash it has its old or its new content, never a part.
pub fn write<T: Serialize>(path: &Path, value: &T) -> anyhow::Result<()> {
    let beside = path.with_extension("new");
    let written = (|| -> io::Result<()> {
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&beside)?;
        file.write_all(&serde_json::to_vec(value)?)?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
        match path.parent() {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    })();
    written.with_context(|| format!("write {}", path.display()))
}
