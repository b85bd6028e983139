use super::place::canonical;
use super::runtime_file::{EnvironmentOrigin, Starter};
use super::*;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;
use treelined_core::timestamp;

/// A folder for sockets, used as `XDG_RUNTIME_DIR`.
struct RunDir(TempDir);

impl RunDir {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// The derived place of the socket for a session directory.
    fn place(&self) -> Place {
        self.place_of(&self.path().join("sessions"))
    }

    fn place_of(&self, session_dir: &Path) -> Place {
        let run: OsString = self.path().into();
        let environment = |name: &str| (name == "XDG_RUNTIME_DIR").then(|| run.clone());
        Place::resolve_in(None, session_dir, &environment).unwrap()
    }
}

fn info() -> DaemonInfo {
    DaemonInfo {
        pid: std::process::id(),
        socket: String::new(),
        web_socket: None,
        token: None,
        version: "0".into(),
        protocol_version: 1,
        session_dir: "/s".into(),
        started_at: timestamp::format(0),
        environment: EnvironmentOrigin {
            uid: 0,
            user: None,
            started_by: Starter::Serve,
            pid: None,
            cwd: "/".into(),
        },
        options: BTreeMap::new(),
        access: Vec::new(),
        extensions: Vec::new(),
    }
}

fn listen_at(place: &Place) -> anyhow::Result<(Endpoint, Listener)> {
    listen(place, &info(), None, None)
}

/// Leaves a socket on which no process listens.
fn leave_stale_socket(place: &Place) {
    place.prepare().unwrap();
    drop(Listener::bind(place.socket()).unwrap());
    assert!(place.socket().exists());
}

#[track_caller]
fn refused<T>(outcome: anyhow::Result<T>, wanted: &str) {
    let error = outcome.err().expect("refused");
    let error = format!("{error:#}");
    assert!(error.contains(wanted), "{wanted} in {error}");
}

#[test]
fn the_path_is_derived_from_the_canonical_session_directory() {
    let none = |_: &str| None;
    let place = Place::resolve_in(None, Path::new("/"), &none).unwrap();
    let uid = rustix::process::getuid().as_raw();
    // The SHA-256 of "/" begins with 8a5edab2.
    let expected = format!("/tmp/treelined-{uid}/8a5edab2.sock");
    assert_eq!(place.socket(), Path::new(&expected));
    let run = RunDir::new();
    assert!(
        run.place()
            .socket()
            .starts_with(run.path().join("treelined"))
    );
    let relative = |name: &str| (name == "XDG_RUNTIME_DIR").then(|| OsString::from("run"));
    let place = Place::resolve_in(None, Path::new("/"), &relative).unwrap();
    assert_eq!(
        place.socket(),
        Path::new(&expected),
        "a relative folder is ignored"
    );
}

#[test]
fn all_names_of_a_session_directory_have_one_socket() {
    let run = RunDir::new();
    let link = run.path().join("link");
    symlink(run.path(), &link).unwrap();
    let before = run.place_of(&link.join("a/b"));
    assert_eq!(
        before.socket(),
        run.place_of(&run.path().join("a/b")).socket()
    );
    fs::create_dir_all(run.path().join("a/b")).unwrap();
    let after = run.place_of(&run.path().join("a/b"));
    assert_eq!(before.socket(), after.socket(), "also before it is made");
    assert_ne!(after.socket(), run.place().socket());
    assert_eq!(canonical(Path::new("/no/such")), PathBuf::from("/no/such"));
}

#[test]
fn a_path_over_107_bytes_is_refused() {
    let of_length = |length: usize| format!("/{}", "x".repeat(length - 1));
    let resolve = |path: String| Place::resolve(Some(Path::new(&path)), Path::new("/"));
    resolve(of_length(107)).unwrap();
    refused(resolve(of_length(108)), "has 108 bytes");
}

#[test]
fn files_beside_the_socket_have_its_name() {
    let beside = |socket: &str| {
        let place = Place::resolve(Some(Path::new(socket)), Path::new("/")).unwrap();
        [place.lock_file(), place.runtime_file(), place.log_file()]
    };
    let names =
        |stem: &str| ["lock", "json", "log"].map(|end| PathBuf::from(format!("{stem}.{end}")));
    assert_eq!(beside("/r/a.sock"), names("/r/a"));
    assert_eq!(beside("/r/a.b"), names("/r/a.b"));
}

#[test]
fn the_run_folder_is_made_private_and_a_replaced_one_is_refused() {
    let run = RunDir::new();
    let place = run.place();
    let folder = run.path().join("treelined");
    assert!(!place.check().unwrap());
    place.prepare().unwrap();
    let mode = || fs::metadata(&folder).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o700);
    // A folder that systemd makes is readable by all, unless the unit says otherwise.
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    place.prepare().unwrap();
    assert_eq!(mode(), 0o700);
    fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
    refused(place.prepare(), "can be written by others");
    fs::rename(&folder, run.path().join("moved")).unwrap();
    symlink(run.path().join("moved"), &folder).unwrap();
    refused(place.prepare(), "is a symbolic link");
    refused(reach::find(&place), "is a symbolic link");
    fs::remove_file(&folder).unwrap();
    fs::write(&folder, "x").unwrap();
    refused(place.prepare(), "is not a folder");
}

#[test]
fn one_daemon_listens_and_leaves_nothing_but_the_lock() {
    let run = RunDir::new();
    let place = run.place();
    let (endpoint, listener) = listen_at(&place).unwrap();
    let stream = reach::find(&place).unwrap().expect("it listens");
    let (accepted, _) = listener.accept().unwrap();
    assert!(peer_is_same_user(&accepted).unwrap() && peer_is_same_user(&stream).unwrap());
    refused(
        listen_at(&place),
        &format!("(pid {}) listens", std::process::id()),
    );
    let found = runtime_file::read(&place).unwrap().expect("a runtime file");
    assert!(found.is_alive());
    let private = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(private(place.socket()), 0o600);
    assert_eq!(private(&place.runtime_file()), 0o600);
    drop((endpoint, listener));
    assert!(!found.is_alive());
    let left: Vec<_> = fs::read_dir(run.path().join("treelined"))
        .unwrap()
        .collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(place.lock_file().exists());
    assert!(reach::find(&place).unwrap().is_none());
}

#[test]
fn a_stale_socket_is_replaced() {
    let run = RunDir::new();
    let place = run.place();
    leave_stale_socket(&place);
    fs::write(place.runtime_file(), serde_json::to_vec(&info()).unwrap()).unwrap();
    let private = Permissions::from_mode(0o600);
    fs::set_permissions(place.runtime_file(), private).unwrap();
    assert!(reach::find(&place).unwrap().is_none());
    assert!(!runtime_file::read(&place).unwrap().unwrap().is_alive());
    let (_endpoint, _listener) = listen_at(&place).unwrap();
    assert!(reach::find(&place).unwrap().is_some());
    assert!(runtime_file::read(&place).unwrap().unwrap().is_alive());
}

#[test]
fn something_else_in_place_of_the_socket_is_refused_and_kept() {
    let run = RunDir::new();
    let place = run.place();
    place.prepare().unwrap();
    fs::write(place.socket(), "mine").unwrap();
    refused(listen_at(&place), "is not a socket");
    refused(reach::find(&place), "is not a socket");
    assert_eq!(fs::read(place.socket()).unwrap(), b"mine");
    fs::remove_file(place.socket()).unwrap();
    let other = run.path().join("other.sock");
    let _listener = Listener::bind(&other).unwrap();
    symlink(&other, place.socket()).unwrap();
    refused(listen_at(&place), "is a symbolic link");
    refused(reach::find(&place), "is a symbolic link");
    assert!(place.socket().is_symlink());
}

#[test]
fn links_in_place_of_the_files_beside_the_socket_are_refused() {
    for name in ["lock", "json", "log"] {
        let run = RunDir::new();
        let place = run.place();
        place.prepare().unwrap();
        let target = run.path().join("target");
        fs::write(&target, "precious").unwrap();
        let path = place.socket().with_extension(name);
        symlink(&target, &path).unwrap();
        match name {
            "lock" => refused(listen_at(&place), "is not a regular file"),
            "log" => refused(log_file::open(&place), "is not a regular file"),
            // The link is replaced, and the file that it names does not change.
            _ => {
                refused(runtime_file::read(&place), "is not a regular file");
                drop(listen_at(&place).unwrap());
            }
        }
        assert_eq!(fs::read(&target).unwrap(), b"precious", "{name}");
    }
}

#[test]
fn the_end_leaves_the_socket_and_the_runtime_file_of_another_daemon() {
    let run = RunDir::new();
    let place = run.place();
    let (endpoint, listener) = listen_at(&place).unwrap();
    fs::remove_file(place.socket()).unwrap();
    let (_second, _listener) = listen_at(&place).unwrap();
    drop((endpoint, listener));
    assert!(reach::find(&place).unwrap().is_some());
    assert!(runtime_file::read(&place).unwrap().unwrap().is_alive());
}

#[test]
fn a_withdrawn_endpoint_makes_room_while_its_connections_last() {
    let run = RunDir::new();
    let place = run.place();
    let (mut endpoint, listener) = listen_at(&place).unwrap();
    let client = UnixStream::connect(place.socket()).unwrap();
    let (mut served, _) = listener.accept().unwrap();
    endpoint.withdraw();
    let (_second, _listener) = listen_at(&place).unwrap();
    served.write_all(b"x").unwrap();
    drop((client, endpoint));
    assert!(reach::find(&place).unwrap().is_some());
}

#[test]
fn the_lock_excludes_others_until_its_holder_lets_go() {
    let run = RunDir::new();
    let place = run.place();
    place.prepare().unwrap();
    let lock = StartLock::try_take(&place).unwrap().expect("free");
    assert!(StartLock::is_taken(&place));
    assert!(StartLock::try_take(&place).unwrap().is_none());
    let patience = Duration::from_millis(1);
    refused(StartLock::take(&place, patience), "has held the lock");
    drop(lock);
    assert!(!StartLock::is_taken(&place));
    drop(StartLock::take(&place, patience).unwrap());
}

/// A starter passes the lock on, so the lock is held without a gap until the daemon listens.
#[test]
fn a_lock_that_was_passed_on_is_held_until_the_daemon_listens() {
    let run = RunDir::new();
    let place = run.place();
    place.prepare().unwrap();
    let stream = start_lock::open_private(&place.lock_file()).unwrap();
    stream.try_lock().unwrap();
    let lock = StartLock::passed_on(&place, stream.try_clone().unwrap())
        .unwrap()
        .expect("the lock");
    drop(stream);
    assert!(StartLock::is_taken(&place), "the daemon holds it");
    let (_endpoint, _listener) = listen(&place, &info(), None, Some(lock)).unwrap();
    assert!(!StartLock::is_taken(&place));
    let other = File::open("/dev/null").unwrap();
    assert!(StartLock::passed_on(&place, other).unwrap().is_none());
}

#[test]
fn a_long_log_keeps_the_whole_lines_at_its_end() {
    let run = RunDir::new();
    let place = run.place();
    place.prepare().unwrap();
    let mut log = log_file::open(&place).unwrap();
    let line = |number: usize| format!("line {number:020}\n");
    for number in 0..60_000 {
        log.write_all(line(number).as_bytes()).unwrap();
        if number % 1000 == 0 {
            log_file::keep_small(&log).unwrap();
        }
    }
    log.seek(SeekFrom::Start(0)).unwrap();
    let text = fs::read_to_string(place.log_file()).unwrap();
    assert!(text.len() < (1 << 20) + 26 * 1001, "{}", text.len());
    assert!(text.starts_with("line ") && text.ends_with(&line(59_999)));
    assert!(log_file::tail(&place).contains(line(59_999).trim_end()));
}
