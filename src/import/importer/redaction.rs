//! Says whether imports into a session directory replace secrets, and replaces them (session-file.md §5.9).
//!
//! Redaction is off until the user turns it on for a session directory. From then on it applies to every import, also
//! to imports that hooks start. Otherwise a hook would write the secrets of the next turn.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use treelined_core::error::{Error, Kind, Result};
use treelined_files::os::file::{Folder, Location};
use treelined_files::os::handle::HandleAccess;
use treelined_files::os::temporary::Temporary;

const FOLDER: &str = ".imports";
const NAME: &str = "redact";
const ON: &[u8] = b"on\n";
const OFF: &[u8] = b"off\n";

/// Replaces secrets.
pub trait Redact: Send + Sync {
    /// Replaces the secrets in the strings of an entry, except ids. The input is the JSON of an entry, or members of
    /// one.
    fn entry<'t>(&self, entry: &'t [u8]) -> Cow<'t, [u8]>;

    fn text<'t>(&self, text: &'t str) -> Cow<'t, str>;
}

/// Makes the function that replaces secrets. Fails if the program cannot replace secrets.
pub type MakeRedact<'a> = &'a (dyn Fn() -> Result<Arc<dyn Redact>> + Sync);

/// For programs that cannot replace secrets: fails with a message.
pub fn no_redaction() -> Result<Arc<dyn Redact>> {
    let message = "this program replaces no secrets, and the session directory asks for it";
    Err(Error::new(Kind::ImportFailed, message))
}

/// The setting of a session directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Policy {
    /// The setting was never turned on.
    Never,
    On,
    /// The setting was on before, and is off now.
    Off,
}

impl Policy {
    /// Reads the setting. If its file cannot be read, the setting counts as on.
    pub(super) fn read(session_dir: &Path) -> Self {
        let there = folder(session_dir).and_then(|folder| {
            folder.status(OsStr::new(NAME))?;
            Ok(folder)
        });
        let folder = match there {
            Ok(folder) => folder,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Self::Never,
            Err(_) => return Self::On,
        };
        let mut text = Vec::new();
        let file = folder.file(OsStr::new(NAME), HandleAccess::Read).ok();
        let read = file.and_then(|file| file.take(16).read_to_end(&mut text).ok());
        match read.is_some() && text == OFF {
            true => Self::Off,
            false => Self::On,
        }
    }

    fn after(self, wanted: Option<bool>) -> Self {
        match (wanted, self) {
            (Some(true), _) => Self::On,
            (Some(false), Self::On) => Self::Off,
            (Some(false) | None, before) => before,
        }
    }

    fn write(self, session_dir: &Path) -> Result<()> {
        let text = if self == Self::On { ON } else { OFF };
        let written = folder(session_dir).and_then(|folder| {
            let new = Temporary::for_name(&folder, OsStr::new(NAME))?;
            (&**new.file()).write_all(text)?;
            new.file().sync_data()?;
            new.name(&Location {
                folder: Arc::clone(&folder),
                name: NAME.into(),
            })?;
            folder.sync()
        });
        written.map_err(|error| Error::io("write whether secrets are replaced", &error))
    }
}

fn folder(session_dir: &Path) -> io::Result<Arc<Folder>> {
    let root = Arc::new(Folder::open(session_dir)?);
    root.subfolder(OsStr::new(FOLDER)).map(Arc::new)
}

/// The redaction of one import.
#[derive(Clone, Default)]
pub(super) struct Redaction {
    /// `None` if the setting was never turned on.
    redact: Option<Arc<dyn Redact>>,
    pub(super) is_on: bool,
}

impl Redaction {
    /// Reads the setting, and sets it to `wanted` if `wanted` is given. The new setting is stored only if `writes` is
    /// true. The caller holds the lock of the ledger.
    pub(super) fn of(
        session_dir: &Path,
        wanted: Option<bool>,
        writes: bool,
        make: MakeRedact<'_>,
    ) -> Result<Self> {
        let before = Policy::read(session_dir);
        let policy = before.after(wanted);
        let redact = match policy {
            Policy::Never => None,
            Policy::On | Policy::Off => Some(make()?),
        };
        if policy != before && writes {
            policy.write(session_dir)?;
        }
        Ok(Self {
            redact,
            is_on: policy == Policy::On,
        })
    }

    fn used(&self) -> Option<&dyn Redact> {
        self.redact.as_deref().filter(|_| self.is_on)
    }

    /// The members of an entry, with secrets replaced if the setting is on.
    pub(super) fn members<'t>(&self, members: &'t [u8]) -> Cow<'t, [u8]> {
        let used = self.used();
        used.map_or(Cow::Borrowed(members), |redact| redact.entry(members))
    }

    /// A name or a label, with secrets replaced if the setting is on.
    pub(super) fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let used = self.used();
        used.map_or(Cow::Borrowed(text), |redact| redact.text(text))
    }

    /// Two lines with secrets replaced, even if the setting is off now. `None` if the setting was never on.
    pub(super) fn both<'t>(&self, lines: [&'t [u8]; 2]) -> Option<[Cow<'t, [u8]>; 2]> {
        let redact = self.redact.as_deref()?;
        Some(lines.map(|line| redact.entry(line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_damaged_file_counts_as_on() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Policy::read(dir.path()), Policy::Never);
        let folder = dir.path().join(FOLDER);
        fs::create_dir(&folder).unwrap();
        assert_eq!(Policy::read(dir.path()), Policy::Never);
        for (text, policy) in [
            ("on\n", Policy::On),
            ("off\n", Policy::Off),
            ("", Policy::On),
            ("of", Policy::On),
            ("off\noff\n", Policy::On),
        ] {
            fs::write(folder.join(NAME), text).unwrap();
            assert_eq!(Policy::read(dir.path()), policy, "{text:?}");
        }
        Policy::Off.write(dir.path()).unwrap();
        assert_eq!(Policy::read(dir.path()), Policy::Off);
    }
}
