//! `web.json` keeps the port and the token, so that an open page can also reach the next daemon.
//!
//! Port and token belong together, since a page gives its token to any program that has the port. So a new port has a
//! new token.

use super::token::Token;
use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use treelined_core::timestamp;
pub(crate) use treelined_files::os::file::{Folder, Location, is_secret};
use treelined_files::os::handle::HandleAccess;
use treelined_files::os::temporary::Temporary;

/// The folder of the files, in the session directory.
const FOLDER: &str = ".web";
const FILE: &str = "web.json";
/// The name of the file that a browser opens.
const OPENED: &str = "open.html";
/// The bytes of the longest file that is read.
const MAX_BYTES: u64 = 4096;
/// How long a port and its token are used, in milliseconds.
const LIFETIME_MS: i64 = 30 * 24 * 60 * 60 * 1000;

#[derive(Serialize, Deserialize)]
struct SavedFile {
    port: u16,
    token: String,
    /// The time of the first start, in ISO 8601.
    created: String,
}

/// The port and the token of an earlier start.
pub(super) struct SavedAddress {
    pub(super) port: u16,
    pub(super) token: Token,
}

/// The folder of `web.json`. No other user can read it.
pub struct WebFolder {
    folder: Arc<Folder>,
}

impl WebFolder {
    /// Opens the folder in a session directory. Makes the folder and the session directory if they are missing.
    pub fn open(session_dir: &Path) -> anyhow::Result<Self> {
        let path = session_dir.join(FOLDER);
        let failed = || format!("open {}", path.display());
        let sessions = Folder::open_or_create(session_dir).with_context(failed)?;
        let folder = Arc::new(sessions).subfolder_or_create(OsStr::new(FOLDER));
        let folder = folder.with_context(failed)?;
        if !folder.is_secret().with_context(failed)? {
            bail!(
                "{} belongs to another user or can be read by others: remove it, or use chmod 700",
                path.display()
            );
        }
        Ok(Self {
            folder: Arc::new(folder),
        })
    }

    /// The saved port and token. `None` if there are none, if they are too old, or if other users could have read them.
    pub(super) fn read(&self, now_ms: i64) -> Option<SavedAddress> {
        let file = self
            .folder
            .file(OsStr::new(FILE), HandleAccess::Read)
            .ok()?;
        if !is_secret(&file).ok()? {
            return None;
        }
        let mut text = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut text).ok()?;
        let saved: SavedFile = serde_json::from_slice(&text).ok()?;
        let age = now_ms.checked_sub(timestamp::parse(&saved.created)?)?;
        let is_valid = (0..LIFETIME_MS).contains(&age) && saved.port != 0;
        Some(SavedAddress {
            port: saved.port,
            token: Token::parse(&saved.token).filter(|_| is_valid)?,
        })
    }

    pub(super) fn write(&self, saved: &SavedAddress, now_ms: i64) -> anyhow::Result<()> {
        let saved = SavedFile {
            port: saved.port,
            token: saved.token.expose().to_owned(),
            created: timestamp::format(now_ms),
        };
        let mut text = serde_json::to_vec(&saved)?;
        text.push(b'\n');
        self.replace(FILE, &text).map(drop)
    }

    /// Writes a file that sends a browser to `url`, and returns its path. The browser opens this file and not `url`,
    /// since `url` has the token and other users can see the arguments of a browser.
    pub fn write_redirect(&self, url: &str) -> anyhow::Result<PathBuf> {
        let text = format!(
            "<!doctype html>\n\
             <meta charset=\"utf-8\">\n\
             <meta name=\"referrer\" content=\"no-referrer\">\n\
             <meta http-equiv=\"refresh\" content=\"0;url={url}\">\n\
             <title>treelined</title>\n\
             <p><a href=\"{url}\">Open the page</a></p>\n"
        );
        self.replace(OPENED, text.as_bytes())
    }

    /// Replaces a file (mode 0600) atomically.
    fn replace(&self, name: &str, text: &[u8]) -> anyhow::Result<PathBuf> {
        let at = Location {
            folder: Arc::clone(&self.folder),
            name: name.into(),
        };
        let path = at.path();
        let failed = || format!("write {}", path.display());
        let temporary = Temporary::for_name(&at.folder, &at.name).with_context(failed)?;
        let mut file = &**temporary.file();
        file.write_all(text).with_context(failed)?;
        temporary.name(&at).with_context(failed)?;
        Ok(path)
    }
}

/// The token in the file of an access (protocol.md §10.7). Makes the file (mode 0600) if it is missing. Fails if other
/// users could have read it, or if it has no token.
pub fn access_token(path: &Path) -> anyhow::Result<Token> {
    let failed = || format!("the token in {}", path.display());
    let at = Location::of_path(path).with_context(failed)?;
    match at.folder.file(&at.name, HandleAccess::Read) {
        Ok(file) => {
            if !is_secret(&file).with_context(failed)? {
                bail!("{} can be read by others: use chmod 600", path.display());
            }
            let mut text = String::new();
            file.take(MAX_BYTES)
                .read_to_string(&mut text)
                .with_context(failed)?;
            let token = Token::parse(text.trim());
            token.with_context(|| format!("{} has no token: remove it", path.display()))
        }
        Err(_)
            if at
                .status()
                .is_err_and(|error| error.kind() == io::ErrorKind::NotFound) =>
        {
            let token = Token::random()?;
            let temporary = Temporary::for_name(&at.folder, &at.name).with_context(failed)?;
            let line = format!("{}\n", token.expose());
            (&**temporary.file())
                .write_all(line.as_bytes())
                .with_context(failed)?;
            // If two daemons start at the same time, both use the token that the first daemon makes.
            match temporary.name_new(&at) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => access_token(path),
                named => named.with_context(failed).map(|()| token),
            }
        }
        Err(error) => Err(anyhow::Error::new(error).context(failed())),
    }
}

/// The URL of the page. The fragment of the URL has the token and the session to show, since browsers do not send the
/// fragment to any server. `session` is a param of `open_session`, `sessionId` or `path`, with its value.
pub fn page_url(address: &str, token: &str, session: Option<(&str, &str)>) -> String {
    let mut url = format!("{address}#t={token}");
    if let Some((member, value)) = session {
        let name = match member {
            "path" => "p",
            _ => "s",
        };
        url.push_str(&format!("&{name}={}", percent_encoded(value)));
    }
    url
}

/// The text with each byte as `%` and two digits, except for letters, digits and `-._~`.
fn percent_encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let encoded = |byte: u8| match is_plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(encoded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    const NOW: i64 = 1_800_000_000_000;
    const DAY: i64 = 24 * 60 * 60 * 1000;

    struct Sessions(tempfile::TempDir);

    impl Sessions {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn folder(&self) -> WebFolder {
            WebFolder::open(&self.0.path().join("sessions")).unwrap()
        }

        fn path(&self) -> PathBuf {
            self.0.path().join("sessions/.web/web.json")
        }
    }

    fn saved() -> SavedAddress {
        SavedAddress {
            port: 4444,
            token: Token::random().unwrap(),
        }
    }

    #[test]
    fn port_and_token_are_used_for_30_days() {
        let sessions = Sessions::new();
        let folder = sessions.folder();
        assert!(folder.read(NOW).is_none());
        let saved = saved();
        folder.write(&saved, NOW).unwrap();
        for now in [NOW, NOW + 30 * DAY - 1] {
            let found = sessions.folder().read(now).expect("valid");
            assert_eq!(found.port, 4444);
            assert!(found.token.is(saved.token.expose()));
        }
        assert!(folder.read(NOW + 30 * DAY).is_none(), "expired");
        assert!(folder.read(NOW - 1).is_none(), "of the future");
        let mode = fs::metadata(sessions.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_file_that_others_can_read_and_a_broken_one_are_not_used() {
        let sessions = Sessions::new();
        let folder = sessions.folder();
        folder.write(&saved(), NOW).unwrap();
        let text = fs::read_to_string(sessions.path()).unwrap();
        let chmod =
            |mode| fs::set_permissions(sessions.path(), Permissions::from_mode(mode)).unwrap();
        for mode in [0o640, 0o604, 0o620, 0o644] {
            chmod(mode);
            assert!(folder.read(NOW).is_none(), "{mode:o}");
        }
        chmod(0o600);
        assert!(folder.read(NOW).is_some());
        for broken in [
            "",
            "{}",
            "null",
            &text[..40],
            &text.replace("4444", "0"),
            &text.replace("4444", "70000"),
        ] {
            fs::write(sessions.path(), broken).unwrap();
            assert!(folder.read(NOW).is_none(), "{broken}");
        }
        let target = sessions.0.path().join("target");
        fs::write(&target, &text).unwrap();
        fs::set_permissions(&target, Permissions::from_mode(0o600)).unwrap();
        fs::remove_file(sessions.path()).unwrap();
        symlink(&target, sessions.path()).unwrap();
        assert!(folder.read(NOW).is_none(), "a link");
        folder.write(&saved(), NOW).unwrap();
        assert_eq!(
            fs::read_to_string(&target).unwrap(),
            text,
            "a link is replaced, not followed"
        );
    }

    #[test]
    fn a_folder_that_others_can_read_is_refused() {
        let sessions = Sessions::new();
        let folder = sessions.path().parent().unwrap().to_owned();
        drop(sessions.folder());
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        let refused = WebFolder::open(folder.parent().unwrap()).err().unwrap();
        assert!(format!("{refused:#}").contains("chmod 700"), "{refused:#}");
    }

    #[test]
    fn the_url_cannot_leave_its_fragment_or_its_attribute() {
        let token = Token::random().unwrap();
        let page_url = |session| page_url("http://127.0.0.1:4444/", token.expose(), session);
        let start = format!("http://127.0.0.1:4444/#t={}", token.expose());
        assert_eq!(page_url(None), start);
        let url = page_url(Some(("path", "/a b/\"><é&t=x#.jsonl")));
        assert_eq!(
            url,
            format!("{start}&p=%2Fa%20b%2F%22%3E%3C%C3%A9%26t%3Dx%23.jsonl")
        );
        assert_eq!(
            page_url(Some(("sessionId", "a-1"))),
            format!("{start}&s=a-1")
        );
        let sessions = Sessions::new();
        let path = sessions.folder().write_redirect(&url).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(&format!("content=\"0;url={url}\"")));
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
}
