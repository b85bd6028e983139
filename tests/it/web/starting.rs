//! The start of the page: ports, `web.json`, `treelined web`, and `open_web`.

use super::*;
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn saved_file(home: &Home) -> PathBuf {
    home.sessions().join(".web/web.json")
}

#[track_caller]
fn saved(home: &Home) -> Json {
    serde_json::from_slice(&fs::read(saved_file(home)).unwrap()).unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// A folder for `PATH` with an `xdg-open` that records its arguments and the file that it opens, or fails.
fn browser(home: &Home, fails: bool) -> (String, PathBuf) {
    let folder = home.file("bin", b"");
    fs::remove_file(&folder).unwrap();
    fs::create_dir(&folder).unwrap();
    let opened = home.files().join("opened");
    let script = match fails {
        true => "#!/bin/sh\nexit 3\n".to_owned(),
        false => format!(
            "#!/bin/sh\n(echo \"$@\"; cat \"$1\") > {0}.part && mv {0}.part {0}\n",
            opened.display()
        ),
    };
    let program = folder.join("xdg-open");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    (format!("{}:{path}", folder.display()), opened)
}

#[track_caller]
fn wait_for(path: &Path) -> String {
    eventually("the browser is opened", || path.exists());
    fs::read_to_string(path).unwrap()
}

#[test]
fn nothing_listens_unless_asked() {
    let mut d = Daemon::start();
    d.ok("list_sessions", json!({}));
    let listens = |d: &Daemon| {
        let process = format!("/proc/{}", d.pid().as_raw_pid());
        let fds = fs::read_dir(format!("{process}/fd")).unwrap();
        let links = fds.filter_map(|fd| fs::read_link(fd.unwrap().path()).ok());
        let links: Vec<String> = links.map(|link| link.display().to_string()).collect();
        // The fields are local address, remote address, and state. The state 0A means listening.
        let tables = ["tcp", "tcp6"]
            .map(|name| fs::read_to_string(format!("{process}/net/{name}")).unwrap_or_default());
        let lines = tables.iter().flat_map(|table| table.lines());
        let inodes = lines.filter(|line| line.split_whitespace().nth(3) == Some("0A"));
        let inodes: Vec<&str> = inodes
            .filter_map(|line| line.split_whitespace().nth(9))
            .collect();
        inodes
            .iter()
            .filter(|inode| links.contains(&format!("socket:[{inode}]")))
            .count()
    };
    assert_eq!(listens(&d), 0);
    assert!(!saved_file(&d.home).exists());
    // Any client may request the page, for example an editor over stdio.
    let web = d.ok("open_web", json!({}));
    assert_eq!(listens(&d), 1);
    assert_eq!(d.ok("open_web", json!({})), web, "it is open");
    let port = port_of(web["webSocket"].as_str().unwrap());
    assert_eq!(web["address"], format!("http://127.0.0.1:{port}/"));
    assert_eq!(
        (&saved(&d.home)["port"], &saved(&d.home)["token"]),
        (&json!(port), &web["token"])
    );
    let home = d.home.clone();
    let mut page = Daemon::over_web_socket(&home, port, web["token"].as_str().unwrap());
    page.err_kind("open_web", json!({}), "methodNotFound");
    drop(page);
    // Its end is the end of the process, so that nothing listens on the port.
    d.stop();
}

#[test]
fn a_restart_keeps_port_and_token_and_private_files() {
    let home = Home::new();
    // Another program may take the port between the two starts.
    let token = (0..5).find_map(|_| {
        let (port, token) = {
            let daemon = WebDaemon::start_in(&home, &[]);
            assert_eq!(mode(&daemon.shared.socket.with_extension("json")), 0o600);
            (daemon.port, daemon.token.clone())
        };
        assert_eq!(mode(&saved_file(&home)), 0o600);
        assert_eq!(mode(saved_file(&home).parent().unwrap()), 0o700);
        let daemon = WebDaemon::start_in(&home, &[]);
        daemon.check_serves();
        let is_kept = daemon.port == port;
        assert_eq!(daemon.token == token, is_kept, "a port has its own token");
        is_kept.then_some(token)
    });
    let token = token.expect("the port is kept");
    // The token was created more than 30 days ago.
    let mut old = saved(&home);
    old["created"] = json!("2020-01-01T00:00:00.000Z");
    fs::write(saved_file(&home), old.to_string()).unwrap();
    let daemon = WebDaemon::start_in(&home, &[]);
    assert_ne!(daemon.token, token);
    assert_eq!(saved(&home)["token"], daemon.token.as_str());
    drop(daemon);
    fs::set_permissions(saved_file(&home), fs::Permissions::from_mode(0o644)).unwrap();
    let seen = saved(&home);
    let daemon = WebDaemon::start_in(&home, &[]);
    assert_ne!(seen["token"], daemon.token.as_str(), "others have seen it");
    assert_eq!(mode(&saved_file(&home)), 0o600);
}

#[test]
fn status_shows_the_address_and_not_the_token() {
    let home = Home::new();
    let daemon = WebDaemon::start_in(&home, &[]);
    let socket = daemon.shared.socket.to_str().unwrap();
    let url = format!("ws://127.0.0.1:{}/ws", daemon.port);
    for args in [
        &["status", "--socket", socket][..],
        &["status", "--json", "--socket", socket],
    ] {
        let text = home.run(args, &[], "").clean().text();
        assert!(text.contains(&url), "{text}");
        assert!(!text.contains(&daemon.token), "{text}");
        assert!(!text.contains("token"), "{text}");
    }
}

#[test]
fn an_address_that_others_reach_needs_an_option() {
    let home = Home::new();
    for address in ["ws:0.0.0.0:0", "ws:[::]:0", "ws:192.0.2.1:1"] {
        let refused = home.run(&["serve", "--listen", address], &[], "");
        assert_eq!(refused.code, Some(1));
        assert!(
            refused.stderr.contains("--insecure-listen"),
            "{}",
            refused.stderr
        );
    }
    let twice = home.run(&["serve", "--listen", "ws", "--listen", "ws"], &[], "");
    assert!(twice.stderr.contains("only once"), "{}", twice.stderr);
    let args = ["--listen", "ws:0.0.0.0:0", "--insecure-listen"];
    let shared = SharedDaemon::start_in(&home, &args, &[]);
    let (port, token) = address_in(&shared.socket.with_extension("json"));
    let mut page = Daemon::over_web_socket(&home, port, &token);
    page.ok("list_sessions", json!({}));
}

#[test]
fn treelined_web_serves_the_page_until_it_is_interrupted() {
    let home = Home::new();
    let (path, opened) = browser(&home, false);
    let session = home.file("a \"session\".jsonl", b"");
    let args = ["web", session.to_str().unwrap()];
    let mut child = home.command(&args, &[("PATH", &path)]).spawn().unwrap();
    let record = wait_for(&opened);
    let (arguments, page) = record.split_once('\n').unwrap();
    let token = saved(&home)["token"].as_str().unwrap().to_owned();
    let port = saved(&home)["port"].as_u64().unwrap() as u16;
    assert!(!arguments.contains(&token), "other users see arguments");
    assert_eq!(mode(Path::new(arguments)), 0o600);
    let encoded = session
        .to_str()
        .unwrap()
        .replace('/', "%2F")
        .replace(' ', "%20")
        .replace('"', "%22");
    let url = format!("http://127.0.0.1:{port}/#t={token}&p={encoded}");
    assert!(page.contains(&format!("content=\"0;url={url}\"")), "{page}");
    // Scripts and terminals use the same daemon as the page.
    let status = home.run(&["status", "--json"], &[], "").clean().text();
    assert!(
        status.contains(&format!("ws://127.0.0.1:{port}/ws")),
        "{status}"
    );
    let mut client = Daemon::over_web_socket(&home, port, &token);
    client.ok("list_sessions", json!({}));
    drop(client);
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.stdout.take().unwrap(), &mut said).unwrap();
    assert!(
        said.contains("Ctrl+C ends it") && !said.contains(&token),
        "{said}"
    );
    let status = home.run(&["status"], &[], "");
    assert_eq!(status.code, Some(3), "no daemon is left: {status:?}");
}

/// Ends the shared daemon of a home.
struct Background(Arc<Home>);

impl Drop for Background {
    fn drop(&mut self) {
        self.0.run(&["stop"], &[], "");
    }
}

#[test]
fn treelined_web_asks_the_shared_daemon_for_the_page() {
    let home = Home::new();
    Log::new("some-id")
        .user("u1", "", "hello")
        .store(&home, "x_some-id.jsonl");
    home.run(&["connect", "--start"], &[], "").clean();
    let _background = Background(home.clone());
    let status = || {
        let text = home.run(&["status", "--json"], &[], "").clean().text();
        serde_json::from_str::<Json>(&text).unwrap()
    };
    assert_eq!(status()["webSocket"], Json::Null);
    let url = home
        .run(&["web", "--no-open", "some-id"], &[], "")
        .clean()
        .text();
    let web_socket = status()["webSocket"].as_str().unwrap().to_owned();
    let port = port_of(&web_socket);
    let token = saved(&home)["token"].as_str().unwrap().to_owned();
    assert_eq!(
        url,
        format!("http://127.0.0.1:{port}/#t={token}&s=some-id\n")
    );
    let (path, opened) = browser(&home, false);
    let said = home.run(&["web"], &[("PATH", &path)], "").clean().text();
    assert!(
        said.contains("shared daemon") && !said.contains(&token),
        "{said}"
    );
    assert!(wait_for(&opened).contains(&format!("http://127.0.0.1:{port}/#t={token}\"")));
    let mut page = Daemon::over_web_socket(&home, port, &token);
    page.ok("list_sessions", json!({}));
}

#[test]
fn a_browser_that_cannot_be_opened_is_reported_with_a_way_out() {
    let home = Home::new();
    home.run(&["connect", "--start"], &[], "").clean();
    let _background = Background(home.clone());
    let (path, _) = browser(&home, true);
    let failed = home.run(&["web"], &[("PATH", &path)], "");
    assert_eq!(failed.code, Some(1));
    assert!(
        failed.stderr.contains("open.html") && failed.stderr.contains("--no-open"),
        "{}",
        failed.stderr
    );
    let missing = home.run(&["web", "no/such.jsonl"], &[], "");
    assert!(
        missing.stderr.contains("no/such.jsonl"),
        "{}",
        missing.stderr
    );
}
