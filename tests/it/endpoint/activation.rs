//! Sockets that systemd has bound, and the units in the packages.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::process::{Child, Command, Stdio};

use super::*;
use crate::readme::root;

/// Starts a daemon as systemd does: the socket is descriptor 3, and the variables contain the id of this process.
fn activated(home: &Home, socket: &Path, args: &[&str]) -> Child {
    let listener = UnixListener::bind(socket).unwrap();
    let daemon = home.command(args, &[]);
    let script = "export LISTEN_FDS=1 LISTEN_PID=$$; exec \"$0\" \"$@\" 3<&0 </dev/null";
    let mut command = through_shell(script, &daemon);
    command
        .stdin(OwnedFd::from(listener))
        .stdout(Stdio::piped());
    command.stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_passed_socket_is_served_and_stays_at_the_end() {
    let home = Home::new();
    let socket = home.runtime_dir().join("unit.sock");
    let named = socket.to_str().unwrap();
    let mut daemon = activated(&home, &socket, &["serve", "--listen", "unix"]);
    let env = [("TREELINED_SOCKET", named)];
    let output = home.run(&["connect"], &env, introduction()).clean();
    assert_eq!(output.responses().len(), 2);
    let status = home.run(&["status", "--json"], &env, "").clean().text();
    let status: Json = serde_json::from_str(&status).unwrap();
    assert_eq!(status["pid"], daemon.id());
    assert_eq!(status["environment"]["startedBy"], "systemd");
    assert_eq!(status["socket"], named);
    let environ = fs::read(format!("/proc/{}/fd/3", daemon.id()));
    assert!(environ.is_err(), "a socket cannot be read as a file");
    home.run(&["stop"], &env, "").clean();
    assert_eq!(wait(&mut daemon, DEADLINE), Some(0));
    assert!(socket.exists(), "systemd listens on it further on");
    assert!(!beside(&socket, "json").exists());
}

#[test]
fn variables_for_another_process_are_ignored() {
    let home = Home::new();
    let env = [("LISTEN_FDS", "1"), ("LISTEN_PID", "1")];
    let list = request(&json!(1), "list_sessions", &json!({}));
    let output = home.run(&["serve"], &env, list).clean();
    assert_eq!(output.responses().len(), 1);
}

#[test]
fn a_passed_socket_that_is_not_the_given_one_is_refused() {
    let home = Home::new();
    let socket = home.runtime_dir().join("unit.sock");
    let other = home.runtime_dir().join("other.sock");
    let args = [
        "serve",
        "--listen",
        "unix",
        "--socket",
        other.to_str().unwrap(),
    ];
    let mut daemon = activated(&home, &socket, &args);
    assert_eq!(wait(&mut daemon, DEADLINE), Some(1));
    let output = daemon.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("unit.sock") && stderr.contains("other.sock"),
        "{stderr}"
    );
}

const UNITS: [&str; 4] = [
    "treelined.socket",
    "treelined.service",
    "treelined-purge.service",
    "treelined-purge.timer",
];

#[test]
fn the_units_are_valid() {
    let folder = root("clients/systemd");
    let unit = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    assert!(unit("treelined.socket").contains("SocketMode=0600"));
    assert!(unit("treelined.socket").contains("DirectoryMode=0700"));
    assert!(unit("treelined.service").contains("treelined serve --listen unix"));
    let purge = unit("treelined-purge.service");
    assert!(purge.contains("treelined purge --expired --yes"));
    let home = Home::new();
    for name in UNITS {
        // On this machine the program need not be installed at the path that the units name.
        let program = binary();
        let text = unit(name).replace("%h/.cargo/bin/treelined", program.to_str().unwrap());
        fs::write(home.files().join(name), text).unwrap();
    }
    let verified = Command::new("systemd-analyze")
        .args(["verify", "--user"])
        .args(UNITS)
        .env("SYSTEMD_UNIT_PATH", format!("{}:", home.files().display()))
        .env("XDG_RUNTIME_DIR", home.runtime_dir())
        .current_dir(home.files())
        .output();
    let Ok(output) = verified else {
        return skip(Needs::Faults, "systemd-analyze is not installed");
    };
    let text = String::from_utf8_lossy(&output.stderr);
    let ours: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("treelined"))
        .collect();
    assert!(output.status.success() && ours.is_empty(), "{text}");
}
