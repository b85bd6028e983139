//! Attempts of another user. A refused connection gets no information.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use super::*;

/// Connects, sends a request, and prints `answer: ` followed by the response.
const CLIENT: &str = r#"
use Socket;
$SIG{PIPE} = "IGNORE";
socket(S, AF_UNIX, SOCK_STREAM, 0) or die "socket: $!";
connect(S, sockaddr_un($ARGV[0])) or die "connect: $!";
syswrite(S, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"list_sessions\"}\n");
my $answer = "";
sysread(S, $answer, 1000);
print "answer: $answer";
"#;

/// Runs the client as this user.
fn try_as(uid: u32, socket: &Path) -> Option<(String, String)> {
    let uid = uid.to_string();
    let output = Command::new("setpriv")
        .args(["--reuid", &uid, "--regid", &uid, "--clear-groups"])
        .args(["perl", "-e", CLIENT])
        .arg(socket)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Some((text(output.stdout), text(output.stderr)))
}

/// Makes a path accessible for all users.
fn open_to_all(path: &Path, home: &Home) {
    let root = home.runtime_dir();
    let root = root.parent().unwrap();
    for path in path.ancestors().take_while(|path| path.starts_with(root)) {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
}

#[test]
fn another_user_is_refused_by_folder_by_socket_and_by_the_daemon() {
    if !rustix::process::geteuid().is_root() {
        return skip(Needs::Faults, "another user: changing the user needs root");
    }
    let home = Home::new();
    home.run(&["connect", "--start"], &[], "").clean();
    let background = Background { home };
    let socket = background.socket();
    let Some((answer, error)) = try_as(65534, &socket) else {
        return skip(Needs::Faults, "setpriv or perl is not installed");
    };
    assert!(
        answer.is_empty() && error.contains("Permission denied"),
        "{answer} {error}"
    );
    let folder = socket.parent().unwrap();
    open_to_all(folder, &background.home);
    let (answer, error) = try_as(65534, &socket).unwrap();
    assert!(
        answer.is_empty() && error.contains("Permission denied"),
        "{answer} {error}"
    );
    open_to_all(&socket, &background.home);
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    let (answer, _) = try_as(65534, &socket).unwrap();
    assert_eq!(answer, "answer: ", "closed without a byte");
    let (answer, error) = try_as(0, &socket).unwrap();
    assert!(
        answer.contains("\"sessions\":[]"),
        "the same user: {answer} {error}"
    );
}

/// In `/tmp`, another user can be the first to listen on the path.
#[test]
fn a_client_does_not_speak_to_the_daemon_of_another_user() {
    if !rustix::process::geteuid().is_root() {
        return skip(Needs::Faults, "another user: changing the user needs root");
    }
    let home = Home::new();
    let folder = home.files().join("sticky");
    fs::create_dir(&folder).unwrap();
    let socket = folder.join("d.sock");
    open_to_all(&folder, &home);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o1777)).unwrap();
    let listen = "use Socket; socket(S, AF_UNIX, SOCK_STREAM, 0); \
                  bind(S, sockaddr_un($ARGV[0])) or die; listen(S, 5); $| = 1; print \"x\"; \
                  accept(C, S); sysread(C, $line, 1000); print $line; sleep 60";
    let listener = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .args(["perl", "-e", listen])
        .arg(&socket)
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut listener) = listener else {
        return skip(Needs::Faults, "setpriv or perl is not installed");
    };
    within("it listens", || socket.exists());
    let named = socket.to_str().unwrap();
    // The file looks as if it belonged to this user. The owner of the process on the other side decides.
    for is_disguised in [false, true] {
        if is_disguised {
            std::os::unix::fs::chown(&socket, Some(0), None).unwrap();
        }
        let args = ["connect", "--start", "--socket", named];
        let output = home.run(&args, &[], introduction());
        fails(&output, 1, &["another user", "65534"]);
    }
    listener.kill().unwrap();
    let heard = listener.wait_with_output().unwrap().stdout;
    assert_eq!(heard, b"x", "not a byte of the client");
}
