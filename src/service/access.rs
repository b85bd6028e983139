//! The access of limited connections (protocol.md §10.7): which methods they can call, which sessions exist for them,
//! and which content they get.
//!
//! Every decision about access is made in this file. [`Rights`] belong to a connection. The address, or the token that
//! the connection shows, decides its rights. `initialize` can only reduce the rights. The method table names the right
//! that each method needs, and `rpc` checks [`Rights::allows`] before any handler runs.

use crate::endpoint::place::canonical;
use crate::extensions::ExtensionMay;
use crate::settings::RedactSettings;
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use treelined_core::error::{Error, Kind, Result};
use treelined_core::search::ShownText;
use treelined_files::lock::lock;
use treelined_files::store::catalogue::Rows;
use treelined_pages::redact::{RedactEntry, Redactor};
use treelined_redact::{KnownValues, secret_variables};
use treelined_wire::methods::Right;

/// The most directories that an access can name.
pub const MAX_DIRECTORIES: usize = 64;

/// A limit for connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// Whether the connections can add to sessions. Otherwise they can only read.
    pub appends: bool,
    /// Directories without links. Only sessions in these directories or below exist. `None` for all sessions.
    pub directories: Option<Vec<PathBuf>>,
    /// Whether secrets are replaced in everything that the connections get.
    pub redacts: bool,
}

/// The methods that a connection may call because of what it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Role {
    /// A client of the user: all methods.
    #[default]
    Client,
    /// The page.
    Page,
    /// An extension, with the methods that it may call.
    Extension(ExtensionMay),
}

impl Role {
    fn allows(self, right: Right) -> bool {
        match (self, right) {
            (Self::Client | Self::Extension(ExtensionMay::All), _)
            | (_, Right::Own | Right::Read | Right::Raw | Right::Answer) => true,
            (Self::Page, right) => matches!(right, Right::Append | Right::Person),
            (Self::Extension(may), right) => {
                right == Right::Offer || right == Right::Append && may == ExtensionMay::Append
            }
        }
    }

    /// The rights of the role, by their names.
    pub fn rights(self) -> impl Iterator<Item = &'static str> {
        let allowed = Right::ALL
            .into_iter()
            .filter(move |right| self.allows(*right));
        allowed.map(Right::name)
    }
}

/// The access of the connections that arrive at a socket, or that show a token to the WebSocket.
#[derive(Debug, Clone)]
pub struct NamedAccess {
    pub name: String,
    pub socket: Option<PathBuf>,
    /// The file with the token.
    pub token_file: Option<PathBuf>,
    pub access: Access,
}

impl Access {
    /// The operations that the connections can do: `read` or `append`.
    pub const fn may(&self) -> &'static str {
        match self.appends {
            true => "append",
            false => "read",
        }
    }

    /// The directories, without links. Fails with the reason if a directory is not absolute.
    pub fn resolve<'p>(paths: impl Iterator<Item = &'p Path>) -> Result<Vec<PathBuf>, String> {
        let resolve = |path: &Path| {
            resolved(path).ok_or_else(|| {
                let shown = path.display();
                format!("{shown} is not an absolute directory; write it without `..`")
            })
        };
        let directories = paths.map(resolve).collect::<Result<Vec<_>, String>>()?;
        match directories.len() {
            0 => Err("names no directory, so that no session could be reached".to_owned()),
            1..=MAX_DIRECTORIES => Ok(directories),
            _ => Err(format!("has more than {MAX_DIRECTORIES} directories")),
        }
    }

    /// The access that allows only the operations and directories that both allow.
    fn and(&self, other: &Self) -> Self {
        Self {
            appends: self.appends && other.appends,
            directories: match (&self.directories, &other.directories) {
                (None, one) | (one, None) => one.clone(),
                (Some(one), Some(other)) => Some(common(one, other)),
            },
            redacts: self.redacts || other.redacts,
        }
    }
}

/// The directories that both lists allow. A list allows its directories and all directories below them.
fn common(one: &[PathBuf], other: &[PathBuf]) -> Vec<PathBuf> {
    let below = |lower: &[PathBuf], upper: &[PathBuf]| {
        let is_below = |path: &&PathBuf| upper.iter().any(|above| path.starts_with(above));
        lower.iter().filter(is_below).cloned().collect::<Vec<_>>()
    };
    let mut both = below(one, other);
    both.extend(below(other, one));
    both.sort_unstable();
    both.dedup();
    both
}

/// An absolute path without links. `None` if the path is relative, or if a `..` follows a part that does not exist.
fn resolved(path: &Path) -> Option<PathBuf> {
    let found = path.is_absolute().then(|| canonical(path))?;
    let climbs = found.components().any(|part| part == Component::ParentDir);
    (!climbs).then_some(found)
}

/// Whether a session with this directory exists for a connection. The directory is written as in the header of the
/// session.
pub(crate) type DirectoryTest = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// The rights of a connection.
#[derive(Default)]
pub(crate) struct Rights {
    role: Role,
    /// The limit; `None` if all sessions exist for the connection, with their secrets.
    access: Option<Access>,
    /// Replaces the secrets in everything that the connection gets.
    redactor: Option<Arc<Redactor>>,
}

impl Rights {
    /// The rights of a role.
    pub(crate) fn of(role: Role) -> Arc<Self> {
        Arc::new(Self {
            role,
            ..Self::default()
        })
    }

    /// The rights that remain if the limit `to` applies too. `redactor` is called if secrets must be replaced.
    pub(crate) fn lowered(
        &self,
        to: &Access,
        redactor: impl FnOnce() -> Result<Arc<Redactor>>,
    ) -> Result<Self> {
        let access = match &self.access {
            Some(own) => own.and(to),
            None => to.clone(),
        };
        Ok(Self {
            redactor: match &self.redactor {
                Some(own) => Some(Arc::clone(own)),
                None => access.redacts.then(redactor).transpose()?,
            },
            role: self.role,
            access: Some(access),
        })
    }

    /// The limit; `None` if the connection is not limited.
    pub(crate) fn access(&self) -> Option<&Access> {
        self.access.as_ref()
    }

    pub(crate) fn is_limited(&self) -> bool {
        self.access.is_some()
    }

    /// Whether the connection can call methods that need this right.
    pub(crate) fn allows(&self, right: Right) -> bool {
        let Some(access) = &self.access else {
            return self.role.allows(right);
        };
        let is_within = match right {
            Right::Own | Right::Read => true,
            Right::Raw => !access.redacts,
            Right::Append => access.appends,
            Right::Answer | Right::Offer | Right::Person | Right::All => false,
        };
        is_within && self.role.allows(right)
    }

    /// Fails if the connection cannot call this method.
    pub(crate) fn check_method(&self, name: &str, right: Right) -> Result<()> {
        if self.allows(right) {
            return Ok(());
        }
        let why = match (&self.access, self.role) {
            (Some(access), _) => format!("its access is to {} only", access.may()),
            (None, Role::Extension(may)) => {
                let may = may.name();
                format!("its extension has `may = {may:?}`, and the configuration can give it more")
            }
            (None, _) => "the page has only the methods that it needs".to_owned(),
        };
        let message = format!("this connection has no method {name:?}: {why}");
        Err(Error::new(Kind::MethodNotFound, message))
    }

    /// Whether the connection can call all methods.
    pub(crate) fn are_all(&self) -> bool {
        self.allows(Right::All)
    }

    /// Whether the connection can only read.
    pub(crate) fn only_reads(&self) -> bool {
        !self.allows(Right::Append)
    }

    /// Whether sessions of this directory exist for the connection. The links of the path are followed.
    pub(crate) fn takes(&self, cwd: &str) -> bool {
        let Some(access) = &self.access else {
            return true;
        };
        access
            .directories
            .as_ref()
            .is_none_or(|directories| is_in(directories, cwd))
    }

    /// Like [`Self::takes`], for many sessions: the links of each path are followed only once. `None` if all sessions
    /// exist for the connection.
    pub(crate) fn directory_test(&self) -> Option<DirectoryTest> {
        Some(test_of(self.access.as_ref()?.directories.clone()?))
    }

    /// The rows of sessions that exist for the connection.
    pub(crate) fn rows(&self, rows: Rows) -> Rows {
        let Some(test) = self.directory_test() else {
            return rows;
        };
        let cwd = |header: &treelined_files::log::header::Header| test(&header.cwd);
        let kept = rows
            .iter()
            .filter(|row| row.listing.header.as_ref().is_some_and(cwd));
        Arc::new(kept.cloned().collect())
    }

    /// Fails with `sessionNotFound` if the session does not exist for the connection. The error is the same whether or
    /// not there is such a session.
    pub(crate) fn check_session(&self, id: &str, cwd: Option<&str>) -> Result<()> {
        match cwd.is_some_and(|cwd| self.takes(cwd)) || !self.is_limited() {
            true => Ok(()),
            false => Err(not_found(id)),
        }
    }

    /// Fails if the connection cannot create a session with this directory. A limited connection also cannot choose an
    /// id, since the result would say whether a session with that id exists elsewhere.
    pub(crate) fn check_new(&self, id: (&str, bool), cwd: Option<&str>) -> Result<()> {
        let (field, is_id_chosen) = id;
        if !self.is_limited() {
            return Ok(());
        }
        if is_id_chosen {
            let why = "limited connections cannot choose ids: leave it out";
            return Err(Error::invalid_params(field, why));
        }
        if cwd.is_some_and(|cwd| !self.takes(cwd)) {
            let why = "is outside the directories of this connection's access";
            return Err(Error::invalid_params("cwd", why));
        }
        Ok(())
    }

    /// Fails with `invalidParams` if the connection is limited and gives this param. `why` is the reason.
    pub(crate) fn check_param(&self, field: &str, is_given: bool, why: &str) -> Result<()> {
        match is_given && self.is_limited() {
            true => Err(Error::invalid_params(field, why)),
            false => Ok(()),
        }
    }

    pub(crate) fn redacts(&self) -> bool {
        self.redactor.is_some()
    }

    /// The text that the connection sees. A search must not match any other text.
    pub(crate) fn shown_text(&self) -> Option<ShownText> {
        self.redactor.as_ref().map(shown_text)
    }

    /// JSON in the form that the connection gets.
    pub(crate) fn shown(&self, json: Vec<u8>) -> Vec<u8> {
        match &self.redactor {
            Some(redactor) => redactor.entry(&json, &mut |_, _| ()).into_owned(),
            None => json,
        }
    }

    /// An error in the form that the connection gets.
    pub(crate) fn shown_error(&self, error: Error) -> Error {
        let Some(redactor) = &self.redactor else {
            return error;
        };
        let details = error.details.as_ref().map(|details| {
            let json = serde_json::to_vec(details).unwrap_or_default();
            serde_json::from_slice(&self.shown(json)).unwrap_or_default()
        });
        let message = redactor.text(&error.message, &mut |_, _| ()).into_owned();
        Error {
            message: message.into(),
            details,
            ..error
        }
    }
}

/// A test of whether a session's directory is `directory` or below it. If `directory` is not absolute, no session
/// passes.
pub(crate) fn directory_test(directory: &str) -> DirectoryTest {
    test_of(resolved(Path::new(directory)).into_iter().collect())
}

/// A test of whether a session's directory is one of `directories` or below one. The links of each path are followed
/// only once.
fn test_of(directories: Vec<PathBuf>) -> DirectoryTest {
    let known: Mutex<HashMap<String, bool>> = Mutex::default();
    Arc::new(move |cwd: &str| {
        if let Some(known) = lock(&known).get(cwd) {
            return *known;
        }
        let is_in = is_in(&directories, cwd);
        lock(&known).insert(cwd.to_owned(), is_in);
        is_in
    })
}

fn is_in(directories: &[PathBuf], cwd: &str) -> bool {
    let Some(found) = resolved(Path::new(cwd)) else {
        return false;
    };
    directories
        .iter()
        .any(|directory| found.starts_with(directory))
}

/// The error for a session that the connection must not know. It is the same if there is no such session.
pub(crate) fn not_found(id: &str) -> Error {
    let message = format!("there is no session {id:?} for this connection");
    Error::new(Kind::SessionNotFound, message)
}

/// The text in which secrets are replaced.
pub(crate) fn shown_text(redactor: &Arc<Redactor>) -> ShownText {
    let redactor = Arc::clone(redactor);
    ShownText(Arc::new(move |text| {
        match redactor.text(text, &mut |_, _| ()) {
            Cow::Borrowed(_) => None,
            Cow::Owned(text) => Some(text),
        }
    }))
}

/// The replacer of secrets in messages to limited connections. It is made when the first of these connections needs it.
pub(crate) struct Redaction {
    settings: RedactSettings,
    redactor: OnceLock<Arc<Redactor>>,
}

impl Redaction {
    pub(crate) fn new(settings: RedactSettings) -> Self {
        Self {
            settings,
            redactor: OnceLock::new(),
        }
    }

    /// The rights of connections with this access.
    pub(crate) fn rights_under(&self, access: &Access) -> Result<Arc<Rights>> {
        let rights = Rights::default().lowered(access, || self.redactor());
        rights.map(Arc::new)
    }

    pub(crate) fn redactor(&self) -> Result<Arc<Redactor>> {
        if let Some(known) = self.redactor.get() {
            return Ok(Arc::clone(known));
        }
        let mut values = KnownValues::new(b"of the daemon");
        let variables = secret_variables(std::env::vars_os(), &self.settings.variables);
        values.add_values(variables);
        values.set_words(&self.settings.words);
        let made = Redactor::new(true, None);
        let made = made.map_err(|error| Error::new(Kind::InternalError, error.to_string()))?;
        let made = Arc::new(made.with_values(values));
        Ok(Arc::clone(self.redactor.get_or_init(|| made)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(may: &str, directories: Option<&[&str]>, redacts: bool) -> Access {
        Access {
            appends: may == "append",
            directories: directories.map(|all| all.iter().map(PathBuf::from).collect()),
            redacts,
        }
    }

    #[test]
    fn rights_only_become_less() {
        let redaction = Redaction::new(RedactSettings::default());
        let build = || redaction.redactor();
        let all = Rights::default();
        assert!(!all.is_limited() && Right::ALL.iter().all(|right| all.allows(*right)));
        let one = access("append", Some(&["/nowhere/a", "/nowhere/b/c"]), false);
        let one = all.lowered(&one, build).unwrap();
        assert!(one.allows(Right::Append) && !one.allows(Right::All) && !one.redacts());
        assert!(one.takes("/nowhere/a/x") && !one.takes("/nowhere/ab") && !one.takes("/nowhere"));
        for relative in ["", "a", "/nowhere/a/../c"] {
            assert!(!one.takes(relative), "{relative}");
        }
        let two = access(
            "read",
            Some(&["/nowhere/b", "/nowhere/a", "/nowhere/d"]),
            true,
        );
        let two = one.lowered(&two, build).unwrap();
        assert!(two.allows(Right::Read) && two.only_reads() && two.redacts());
        let left = two.access().and_then(|access| access.directories.clone());
        assert_eq!(left, Some(vec!["/nowhere/a".into(), "/nowhere/b/c".into()]));
        let more = two.lowered(&access("append", None, false), build).unwrap();
        assert_eq!(more.access(), two.access(), "nothing comes back");
        let apart = access("append", Some(&["/nowhere/e"]), false);
        let none = two.lowered(&apart, build).unwrap();
        assert!(!none.takes("/nowhere/e") && !none.takes("/nowhere/a"));
    }

    #[test]
    fn links_are_followed_out_of_a_directory() {
        let root = std::env::temp_dir().join(format!("treelined-access-{}", std::process::id()));
        let (inside, outside) = (root.join("in"), root.join("out"));
        std::fs::create_dir_all(&inside).unwrap();
        std::fs::create_dir_all(&outside).unwrap();
        std::os::unix::fs::symlink(&outside, inside.join("link")).unwrap();
        let directories = Access::resolve([inside.as_path()].into_iter()).unwrap();
        let rights = Rights {
            access: Some(Access {
                directories: Some(directories),
                ..access("read", None, false)
            }),
            ..Rights::default()
        };
        let takes = |path: PathBuf| rights.takes(&path.display().to_string());
        assert!(takes(inside.clone()) && takes(inside.join("new/deep")));
        assert!(!takes(inside.join("link")) && !takes(inside.join("link/x")));
        assert!(!takes(inside.join("../out")) && !takes(inside.join("new/../../out")));
        std::fs::remove_dir_all(&root).unwrap();
    }
}
