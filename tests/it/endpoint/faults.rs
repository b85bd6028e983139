//! Starts that cannot succeed. Each fails with an error that says what to do, and changes no files of others.

use std::fs::File;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;
use std::time::Duration;

use super::*;
use crate::faults::SmallDisk;

/// The two ways to start a daemon.
const STARTS: [&[&str]; 2] = [&["connect", "--start"], &["serve", "--listen", "unix"]];

/// Checks that both ways to start a daemon fail with these texts.
#[track_caller]
fn no_start(home: &Home, texts: &[&str]) {
    for start in STARTS {
        fails(&home.run(start, &[], ""), 1, texts);
    }
}

/// Makes the folder of the sockets as a daemon does.
fn run_folder(home: &Home) -> PathBuf {
    let folder = home.runtime_dir().join("treelined");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    folder
}

#[test]
fn a_link_in_place_of_the_folder_is_refused() {
    let home = Home::new();
    let folder = home.runtime_dir().join("treelined");
    symlink(home.files(), &folder).unwrap();
    no_start(&home, &["is a symbolic link", "--socket"]);
    fails(&home.run(&["connect"], &[], ""), 1, &["is a symbolic link"]);
    assert_eq!(fs::read_dir(home.files()).unwrap().count(), 0);
}

#[test]
fn a_folder_of_another_user_is_refused() {
    let home = Home::new();
    let folder = run_folder(&home);
    if chown(&folder, Some(65534), None).is_err() {
        return skip(
            Needs::Faults,
            "a foreign folder: changing the owner needs root",
        );
    }
    no_start(
        &home,
        &["belongs to another user", "65534", "XDG_RUNTIME_DIR"],
    );
    // After `su` the variable may still name the folder of the previous user.
    fs::remove_dir(&folder).unwrap();
    chown(home.runtime_dir(), Some(65534), None).unwrap();
    no_start(&home, &["belongs to another user"]);
    let socket = home.runtime_dir().join("mine.sock");
    let args = ["connect", "--start", "--socket", socket.to_str().unwrap()];
    fails(&home.run(&args, &[], ""), 1, &["belongs to another user"]);
}

#[test]
fn a_folder_that_others_can_write_is_refused() {
    let home = Home::new();
    let folder = run_folder(&home);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    no_start(&home, &["can be written by others", "chmod go-w"]);
}

/// A client that connects once checked only the folder and the owner of a socket. But a user who may write to the
/// parent folder can replace the folder.
#[test]
fn a_socket_that_others_can_write_is_refused() {
    let home = Home::new();
    let background = Background { home: home.clone() };
    home.run(&["connect", "--start"], &[], "").clean();
    let socket = background.socket();
    let refuses = |args: &[&str], why: &str| {
        for command in [&["connect"][..], &["connect", "--start"]] {
            let output = home.run(&[command, args].concat(), &[], "");
            fails(&output, 1, &["can be written by others", why]);
        }
    };
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o622)).unwrap();
    refuses(&[], "chmod go-w");
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o600)).unwrap();
    home.run(&["connect"], &[], "").clean();
    let above = home.files().join("above");
    let inner = above.join("inner");
    fs::create_dir_all(&inner).unwrap();
    fs::set_permissions(&above, fs::Permissions::from_mode(0o777)).unwrap();
    let named = inner.join("d.sock");
    refuses(&["--socket", named.to_str().unwrap()], "above");
}

#[test]
fn something_else_in_place_of_the_socket_is_refused_and_kept() {
    let home = Home::new();
    run_folder(&home);
    let socket = socket_of(&home);
    fs::write(&socket, "mine").unwrap();
    no_start(&home, &["is not a socket", "remove it"]);
    assert_eq!(fs::read(&socket).unwrap(), b"mine");
    fs::remove_file(&socket).unwrap();
    let other = home.files().join("other.sock");
    let _listener = UnixListener::bind(&other).unwrap();
    symlink(&other, &socket).unwrap();
    no_start(&home, &["is a symbolic link"]);
    assert!(socket.is_symlink());
}

#[test]
fn a_socket_of_another_user_is_refused() {
    let home = Home::new();
    run_folder(&home);
    let socket = socket_of(&home);
    let _listener = UnixListener::bind(&socket).unwrap();
    if chown(&socket, Some(65534), None).is_err() {
        return skip(
            Needs::Faults,
            "a foreign socket: changing the owner needs root",
        );
    }
    no_start(&home, &["belongs to another user", "65534"]);
}

#[test]
fn links_in_place_of_lock_and_log_are_refused() {
    let home = Home::new();
    run_folder(&home);
    let target = home.file("target", b"precious");
    let socket = socket_of(&home);
    symlink(&target, beside(&socket, "lock")).unwrap();
    no_start(&home, &["is not a regular file"]);
    fs::remove_file(beside(&socket, "lock")).unwrap();
    symlink(&target, beside(&socket, "log")).unwrap();
    let output = home.run(&["connect", "--start"], &[], "");
    fails(&output, 1, &["is not a regular file"]);
    assert_eq!(fs::read(&target).unwrap(), b"precious");
}

#[test]
fn a_path_over_107_bytes_is_refused() {
    let home = Home::new();
    let long = home.files().join(format!("{}.sock", "x".repeat(100)));
    let length = long.as_os_str().len();
    let args = ["connect", "--start", "--socket", long.to_str().unwrap()];
    let texts = [&*format!("has {length} bytes"), "107", "--socket"];
    fails(&home.run(&args, &[], ""), 1, &texts);
    let address = format!("unix:{}", long.display());
    fails(
        &home.run(&["serve", "--listen", &address], &[], ""),
        1,
        &texts,
    );
    let deep = home.files().join("y".repeat(100));
    let env = [("XDG_RUNTIME_DIR", deep.to_str().unwrap())];
    fails(&home.run(&["status"], &env, ""), 1, &["107"]);
    // Without a socket there is no path to refuse.
    home.run(&[], &env, "").clean();
}

#[test]
fn the_folder_of_a_given_path_must_exist() {
    let home = Home::new();
    let socket = home.files().join("missing/daemon.sock");
    let args = ["connect", "--start", "--socket", socket.to_str().unwrap()];
    fails(
        &home.run(&args, &[], ""),
        1,
        &["there is no folder", "make it"],
    );
}

#[test]
fn a_full_disk_is_reported_and_leaves_no_socket() {
    let home = Home::new();
    let folder = run_folder(&home);
    let Some(_disk) = SmallDisk::mount_at(folder.clone(), 64) else {
        return skip(Needs::Faults, "a full disk: mounting a tmpfs needs root");
    };
    let ballast = folder.join("ballast");
    let _full = fs::write(&ballast, vec![0; 128 << 10]);
    no_start(&home, &["No space left on device"]);
    assert!(!socket_of(&home).exists());
    fs::remove_file(&ballast).unwrap();
    drop(Background::start_in(&home, &[]));
}

#[test]
fn a_lock_that_is_let_go_is_waited_for() {
    let home = Home::new();
    run_folder(&home);
    let lock = beside(&socket_of(&home), "lock");
    let holder = File::create(&lock).unwrap();
    holder.lock().unwrap();
    let letting_go = thread::spawn(move || {
        thread::sleep(Duration::from_millis(500));
        drop(holder);
    });
    drop(Background::start_in(&home, &[]));
    letting_go.join().unwrap();
}

#[test]
fn a_lock_that_is_never_let_go_is_reported() {
    let home = Home::new();
    run_folder(&home);
    let lock = beside(&socket_of(&home), "lock");
    let holder = File::create(&lock).unwrap();
    fs::set_permissions(&lock, fs::Permissions::from_mode(0o600)).unwrap();
    holder.lock().unwrap();
    // Searching for a daemon does not take the lock, but waits for the process that holds it.
    let texts = ["has held the lock", lock.to_str().unwrap(), "fuser"];
    thread::scope(|scope| {
        for start in [STARTS[0], STARTS[1], &["connect"]] {
            scope.spawn(|| fails(&home.run(start, &[], ""), 1, &texts));
        }
    });
}

#[test]
fn the_lock_of_a_dead_daemon_is_free() {
    let background = Background::start();
    let lock = beside(&background.socket(), "lock");
    let home = background.kill();
    File::open(&lock).unwrap().try_lock().unwrap();
    drop(Background::start_in(&home, &[]));
}

#[test]
fn a_listener_that_never_answers_is_reported() {
    let home = Home::new();
    run_folder(&home);
    let socket = socket_of(&home);
    let listener = UnixListener::bind(&socket).unwrap();
    let own = format!("process {}", std::process::id());
    let output = home.run(&["connect", "--start"], &[], introduction());
    fails(&output, 1, &["does not answer", &own, "kill -9"]);
    // If more connections waited than fit into the queue of the socket, a new connection would wait too.
    rustix::net::listen(&listener, 0).unwrap();
    let mut waiting = Vec::new();
    loop {
        let stream = rustix::net::socket_with(
            rustix::net::AddressFamily::UNIX,
            rustix::net::SocketType::STREAM,
            rustix::net::SocketFlags::NONBLOCK,
            None,
        )
        .unwrap();
        let address = rustix::net::SocketAddrUnix::new(&socket).unwrap();
        match rustix::net::connect(&stream, &address) {
            Ok(()) => waiting.push(UnixStream::from(stream)),
            Err(_) => break,
        }
    }
    thread::scope(|scope| {
        for start in STARTS {
            scope.spawn(|| {
                fails(
                    &home.run(start, &[], ""),
                    1,
                    &["does not answer", "fuser -k"],
                )
            });
        }
    });
    assert!(socket.exists());
}
