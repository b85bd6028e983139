//! The program, together with a daemon: a session, its records, and the files.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

mod completions;
mod navigate;
mod scene;

use scene::{Scene, daemon};
use serde_json::json;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use treelined_client::{AskKind, Client, EventAnswer, Notification};

/// The longest wait for something that must happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// A session with two turns. Each turn has changed a file.
fn two_turns() -> Scene {
    let scene = Scene::new();
    scene.create();
    scene.write("own", "of the user");
    scene.write("kept", "1");
    scene.ok(&["on"]);
    for (id, text) in [("u1", "0"), ("a1", "1"), ("u2", "1"), ("a2", "2")] {
        scene.write("file", text);
        if id == "a2" {
            scene.write("new\n\u{1b}[31mname", "2");
        }
        scene.say(&[], id);
        scene.ok(&["save"]);
    }
    scene
}

/// The user can set the limit of free space, because 5 GiB are too many on a small disk.
#[test]
fn a_person_says_how_much_space_must_be_left() {
    let scene = Scene::new();
    let all = u32::MAX.to_string();
    let said = scene.fails(&["--free", &all, "on"]);
    assert!(
        said.contains("4294967295 MiB must be: --free changes that"),
        "{said}"
    );
    scene.ok(&["--free", "0", "on"]);
}

#[test]
fn files_are_off_until_they_are_turned_on() {
    let scene = Scene::new();
    scene.create();
    scene.say(&[], "u1");
    let said = scene.fails(&["save"]);
    assert!(said.contains("treelined files on"), "{said}");
    assert!(scene.records(&[]).is_empty());
    scene.ok(&["on"]);
    scene.ok(&["save"]);
    scene.ok(&["off"]);
    assert!(scene.fails(&["save"]).contains("are not saved"));
    let gone = scene.path("gone");
    fs::create_dir(&gone).unwrap();
    let path = gone.to_str().unwrap();
    scene.ok(&["on", path]);
    fs::remove_dir(&gone).unwrap();
    assert!(scene.ok(&["du"]).contains("gone  0 records"));
    for folder in [".", path] {
        scene.ok(&["off", "--delete", folder]);
    }
    assert_eq!(fs::read_dir(scene.path("state")).unwrap().count(), 0);
}

#[test]
fn a_turn_without_changes_has_no_record() {
    let scene = two_turns();
    let of = |when: &str, entry: &str| (when.to_owned(), entry.to_owned());
    // The files at u2 are the same as at a1.
    assert_eq!(
        scene.records(&[]),
        [of("start", "u1"), of("end", "a1"), of("end", "a2")]
    );
    assert!(scene.ok(&["save"]).contains("nothing has changed"));
}

#[test]
fn a_record_moves_nobody() {
    let scene = two_turns();
    let open = json!({"sessionId": "tour"});
    let results = scene.call(&[], &[("open_session", open), ("list_branches", json!({}))]);
    let branches = results[1]["branches"].as_array().unwrap();
    assert_eq!(branches.len(), 1, "{branches:?}");
    assert_eq!(
        (&branches[0]["tipId"], &branches[0]["isActive"]),
        (&json!("a2"), &json!(true))
    );
}

#[test]
fn the_files_of_an_entry_are_written_elsewhere() {
    let scene = two_turns();
    let into = scene.path("then");
    let into = into.to_str().unwrap();
    scene.ok(&["open", "u2", "--into", into]);
    let text = |name: &str| fs::read_to_string(scene.path("then").join(name)).unwrap();
    assert_eq!(
        (text("file"), text("own")),
        ("1".to_owned(), "of the user".to_owned())
    );
    assert_eq!(scene.read("file"), "2");
    let mode = fs::metadata(into).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "the files may have been private");
    assert!(
        scene
            .fails(&["open", "u2", "--into", into])
            .contains("is not empty")
    );
    assert!(
        scene
            .fails(&["open", "u2", "--into", "inside"])
            .contains("elsewhere")
    );
    assert!(!scene.work().join("inside").exists());
    // This is before the agent has changed anything.
    scene.ok(&[
        "open",
        "u1",
        "--into",
        scene.path("first").to_str().unwrap(),
    ]);
    assert_eq!(fs::read_to_string(scene.path("first/file")).unwrap(), "0");
}

/// A label that an entry had once was found too, and of two entries with one label the later one without a word.
#[test]
fn an_entry_is_named_by_its_id_its_label_or_the_beginning_of_its_id() {
    let scene = Scene::new();
    scene.create();
    scene.ok(&["on"]);
    for (id, text) in [("u1111111", "0"), ("a1112222", "1"), ("a1113333", "2")] {
        scene.write("file", text);
        scene.say(&[], id);
        scene.ok(&["save"]);
    }
    let label = |entry: &str, text: &str| {
        let open = json!({"sessionId": "tour"});
        let set = json!({"targetId": entry, "label": text});
        scene.call(&[], &[("open_session", open), ("append_label", set)]);
    };
    label("a1112222", "a1113");
    label("a1112222", "it works");
    label("u1111111", "a1112");
    let text = |name: &str| fs::read_to_string(scene.path(name).join("file")).unwrap();
    let opens = |named: &str, into: &str| {
        let to = scene.path(into);
        scene.ok(&["open", named, "--into", to.to_str().unwrap()]);
        text(into)
    };
    let named = [
        ("a1112222", "1"),
        ("it works", "1"),
        (" it works ", "1"),
        ("a11122", "1"),
        ("a11122…", "1"),
        ("a1113", "2"),
        ("a1112", "0"),
    ];
    for (at, (named, expected)) in named.into_iter().enumerate() {
        assert_eq!(opens(named, &format!("then{at}")), expected, "{named}");
    }
    for named in ["a1112222", "it works", "a11122…"] {
        let diff = scene.ok(&["diff", named]);
        assert!(diff.contains(", at a1112222"), "{named}: {diff}");
        scene.write("file", "2");
        scene.ok(&["restore", named, "--yes", "--all"]);
        assert_eq!(scene.read("file"), "1", "{named}");
    }
    label("a1113333", "it works");
    for (named, says) in [
        ("a111", "2 entries have ids that begin with \"a111\""),
        ("it works", "2 entries have the label \"it works\""),
        ("a11", "the beginning of it (4 characters or more)"),
        ("worked", "no entry \"worked\""),
    ] {
        let said = scene.fails(&["diff", named]);
        assert!(said.contains(says), "{named}: {said}");
    }
}

#[test]
fn files_go_back_and_come_again() {
    let scene = two_turns();
    scene.write("own", "changed by the user");
    scene.write("file", "changed by an editor");
    let diff = scene.ok(&["diff", "a1"]);
    assert!(
        diff.contains("replace file  +1 −1  ! changed outside of this session since"),
        "{diff}"
    );
    assert!(diff.contains("remove  new\\x0a\\x1b[31mname"), "{diff}");
    assert!(diff.contains("1 file to write, 1 file to remove"), "{diff}");
    assert!(
        diff.contains("1 file not included: changed by no turn of this session;"),
        "{diff}"
    );
    let said = scene.files(&["restore", "a1"]);
    assert_eq!(said.status.code(), Some(2), "nobody has agreed");
    assert_eq!(scene.read("file"), "changed by an editor");
    scene.ok(&["restore", "a1", "--yes"]);
    assert_eq!(
        (scene.read("file"), scene.read("own")),
        ("1".to_owned(), "changed by the user".to_owned())
    );
    assert!(!scene.work().join("new\n\u{1b}[31mname").exists());
    scene.ok(&["undo", "--yes"]);
    assert_eq!(scene.read("file"), "changed by an editor");
    assert_eq!(scene.read("new\n\u{1b}[31mname"), "2");
    assert!(scene.fails(&["undo", "--yes"]).contains("no restore"));
    scene.ok(&["restore", "a1", "--all", "--yes"]);
    assert_eq!(
        (scene.read("own"), scene.read("kept")),
        ("of the user".to_owned(), "1".to_owned())
    );
    // The safety snapshot is kept, but once no command used it.
    scene.ok(&["off"]);
    scene.ok(&["undo", "--yes"]);
    assert_eq!(scene.read("own"), "changed by the user");
}

/// A file was too large at one record and small enough at the next. A restore to the first record once removed this
/// file in three cases: the record before named the file; no first record was made, since the record before had the
/// same files; or the file was the 101st large file.
#[test]
fn files_that_were_too_large_then_are_not_removed() {
    let scene = Scene::new();
    scene.create();
    scene.ok(&["on"]);
    scene.say(&[], "u1");
    scene.ok(&["save"]);
    let names: Vec<String> = (0..101).map(|number| format!("large{number:03}")).collect();
    for name in &names {
        let file = fs::File::create(scene.work().join(name)).unwrap();
        file.set_len(3 << 20).unwrap();
    }
    for id in ["a1", "u2"] {
        scene.say(&[], id);
        scene.ok(&["save"]);
    }
    assert_eq!(scene.records(&[]).len(), 2);
    for name in &names {
        scene.write(name, "small");
    }
    scene.write("file", "1");
    scene.say(&[], "a2");
    scene.ok(&["save"]);
    let said = scene.ok(&["restore", "u2", "--yes"]);
    assert!(said.contains("keep    large100  (left out then)"), "{said}");
    assert!(said.contains("0 files written, 1 file removed"), "{said}");
    assert_eq!(scene.read("large100"), "small");
}

/// A working tree is below another working tree. The turns of a session in it were once recorded without its files.
#[test]
fn a_session_in_a_repository_within_a_root_has_no_files() {
    let scene = Scene::new();
    let within = scene.path("work/trees/one");
    fs::create_dir_all(within.join(".git")).unwrap();
    scene.ok(&["on"]);
    let cwd = json!({"sessionId": "within", "cwd": within});
    let message = json!({"role": "user", "content": "x"});
    let append = json!({"entryId": "u1", "message": message});
    scene.call(&[], &[("create_session", cwd), ("append_message", append)]);
    let said = scene.fails(&["save", "--session", "within"]);
    assert!(said.contains("are not saved"), "{said}");
    assert!(
        scene
            .fails(&["off", within.to_str().unwrap()])
            .contains("are not saved")
    );
}

#[test]
fn a_move_offers_the_files() {
    let scene = two_turns();
    let go = |args: &[&str]| {
        scene
            .command(&daemon())
            .arg("go")
            .args(args)
            .output()
            .unwrap()
    };
    let moved = go(&["tour", "a1"]);
    let said = String::from_utf8(moved.stdout).unwrap();
    let offer = "treelined files diff --session=tour -- a1 shows how the files were";
    assert!(said.contains(offer), "{said}");
    // If a user pastes the printed command, the id of an imported entry must not run as a command.
    let mut sessions = vec![scene.path("sessions")];
    while let Some(path) = sessions.pop() {
        match fs::read_dir(&path) {
            Ok(files) => sessions.extend(files.map(|file| file.unwrap().path())),
            Err(_) if path.extension().is_some_and(|end| end == "jsonl") => {
                let text = fs::read_to_string(&path).unwrap();
                fs::write(&path, text.replace("\"u2\"", "\"-u2;touch x\"")).unwrap();
            }
            Err(_) => {}
        }
    }
    let moved = go(&["tour", "--", "-u2;touch x"]);
    let said = String::from_utf8(moved.stdout).unwrap();
    assert!(
        said.contains("--session=tour -- '-u2;touch x' shows"),
        "{said}"
    );
    // There is no terminal at which the user could agree.
    let moved = go(&["tour", "u1", "--files"]);
    let said = String::from_utf8(moved.stdout).unwrap();
    assert!(said.contains("1 file to write, 1 file to remove"), "{said}");
    assert_eq!(
        (moved.status.code(), scene.read("file").as_str()),
        (Some(2), "2")
    );
}

/// Any program can write a record, so a record may name the files of another session.
#[test]
fn a_forged_record_says_nothing() {
    let scene = two_turns();
    let open = json!({"sessionId": "tour"});
    let wanted = json!({"customType": "files"});
    let results = scene.call(
        &[],
        &[("open_session", open.clone()), ("get_entries", wanted)],
    );
    let mut forged = results[1]["entries"][0].clone();
    forged["id"] = json!("forged");
    forged["data"]["entryId"] = json!("a2");
    for name in ["parentId", "timestamp"] {
        forged.as_object_mut().unwrap().remove(name);
    }
    scene.call(
        &[],
        &[
            ("open_session", open),
            ("append_entries", json!({"entries": [forged]})),
        ],
    );
    let said = scene.fails(&["restore", "a2", "--yes"]);
    assert!(said.contains("not on this machine"), "{said}");
    assert_eq!(scene.read("file"), "2");
}

#[test]
fn without_git_nothing_is_saved() {
    let scene = Scene::new();
    let program = Path::new(env!("CARGO_BIN_EXE_treelined-files"));
    let output = scene
        .command(program)
        .arg("on")
        .env("PATH", scene.path("home"))
        .output();
    let output = output.unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("git is not installed"), "{said}");
}

/// While the user commits, git sets variables that name the user's repository.
#[test]
fn the_variables_of_the_user_change_nothing() {
    let scene = two_turns();
    let program = Path::new(env!("CARGO_BIN_EXE_treelined-files"));
    let own = scene.path("own.git");
    let mut command = scene.command(program);
    command
        .env("GIT_DIR", &own)
        .env("GIT_WORK_TREE", scene.path("home"));
    command
        .env("GIT_INDEX_FILE", &own)
        .env("GIT_OBJECT_DIRECTORY", &own);
    let output = command.args(["restore", "a1", "--yes"]).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(scene.read("file"), "1");
    assert!(!own.exists());
}

#[test]
fn the_space_is_shown() {
    let scene = two_turns();
    scene.ok(&["restore", "a1", "--yes"]);
    let du = scene.ok(&["du"]);
    assert!(du.contains("work  3 records, 1 restore"), "{du}");
    let dropped = scene.ok(&["prune", "--budget", "0"]);
    assert!(dropped.contains("3 records dropped"), "{dropped}");
    assert!(scene.fails(&["diff", "a1"]).contains("were dropped"));
    scene.ok(&["undo", "--yes"]);
    assert_eq!(scene.read("file"), "2");
}

/// A program that is killed when the test ends.
struct Watch(Child);

impl Drop for Watch {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}

#[test]
fn turns_are_followed() {
    let scene = Scene::new();
    scene.create();
    scene.write("file", "0");
    scene.ok(&["on"]);
    let program = Path::new(env!("CARGO_BIN_EXE_treelined-files"));
    let mut watch = Watch(scene.command(program).arg("watch").spawn().unwrap());
    let mut said = BufReader::new(watch.0.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("follows the sessions"), "{line}");
    let said = scene.fails(&["watch"]);
    assert!(said.contains("another `treelined files watch`"), "{said}");
    // Once the lock file of the follower was taken for a root.
    scene.ok(&["du"]);
    let shared = ["connect", "--start"];
    let wait = |number: usize| {
        let start = Instant::now();
        loop {
            let records = scene.records(&shared);
            if records.len() == number {
                return records;
            }
            assert!(start.elapsed() < PATIENCE, "{records:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    scene.say(&shared, "u1");
    wait(1);
    scene.write("file", "1");
    scene.say(&shared, "a1");
    let records = wait(2);
    assert_eq!(records[1], ("end".to_owned(), "a1".to_owned()));
    // Another process writes the session file.
    scene.write("file", "2");
    scene.say(&[], "u2");
    wait(3);
    scene.ok(&["restore", "a1", "--all", "--yes"]);
    assert_eq!(scene.read("file"), "1");
    drop(watch);
    let stopped = scene.command(&daemon()).arg("stop").output().unwrap();
    assert!(stopped.status.success());
}

/// The user changes files while no program follows the session. Such changes once counted as the work of the turn
/// before.
#[test]
fn turns_that_ended_before_are_not_recorded() {
    let scene = two_turns();
    let early = json!({"sessionId": "early", "cwd": scene.work()});
    let message = json!({"role": "assistant", "content": [{"type": "text", "text": "x"}]});
    let append = json!({"entryId": "e1", "message": message});
    scene.call(
        &[],
        &[("create_session", early), ("append_message", append)],
    );
    let program = Path::new(env!("CARGO_BIN_EXE_treelined-files"));
    let mut watch = Watch(scene.command(program).arg("watch").spawn().unwrap());
    let mut said = BufReader::new(watch.0.stderr.take().unwrap());
    said.read_line(&mut String::new()).unwrap();
    scene.write("own", "changed by the person");
    let open = json!({"sessionId": "early"});
    let name = ("set_session_name", json!({"name": "x"}));
    scene.call(&[], &[("open_session", open.clone()), name]);
    scene.say(&[], "u3");
    let start = Instant::now();
    while scene.records(&[]).last().unwrap().1 != "u3" {
        assert!(start.elapsed() < PATIENCE, "no record");
        std::thread::sleep(Duration::from_millis(50));
    }
    // The sessions are checked one after the other.
    let wanted = json!({"customType": "files"});
    let results = scene.call(&[], &[("open_session", open), ("get_entries", wanted)]);
    assert_eq!(results[1]["entries"], json!([]));
    drop(watch);
    scene.command(&daemon()).arg("stop").output().unwrap();
}

/// The daemon starts the program itself. The program of a second daemon waits.
#[test]
fn an_extension_follows_the_turns() {
    let scene = Scene::new();
    scene.create();
    scene.ok(&["on"]);
    let configuration = scene.path("config.toml");
    let program = env!("CARGO_BIN_EXE_treelined-files");
    let text = format!(
        "[[extensions]]\nname = \"files\"\nargv = [{program:?}, \"watch\", \"--extension\"]\nmay = \"append\"\n"
    );
    fs::write(&configuration, text).unwrap();
    let args = ["--config", configuration.to_str().unwrap()];
    let start = |args: &[&str]| {
        let mut child = scene.command(&daemon());
        Watch(child.args(args).stdin(Stdio::piped()).spawn().unwrap())
    };
    let _daemons = [start(&args), start(&args)];
    scene.write("file", "1");
    let begin = Instant::now();
    // The program may not have started when the first turns end.
    for number in 0.. {
        assert!(begin.elapsed() < PATIENCE, "no record");
        scene.write("file", &number.to_string());
        scene.say(&[], &format!("a{number}"));
        std::thread::sleep(Duration::from_millis(200));
        if !scene.records(&[]).is_empty() {
            break;
        }
    }
    let records = scene.records(&[]);
    let entries: std::collections::BTreeSet<_> = records.iter().map(|(_, entry)| entry).collect();
    assert_eq!(entries.len(), records.len(), "{records:?}");
}

/// An editor and the terminal client have a daemon each, and one of the two saves the files. The other one once offered nothing.
#[test]
fn each_of_several_daemons_offers_the_files() {
    let scene = two_turns();
    let program = Path::new(env!("CARGO_BIN_EXE_treelined-files"));
    let mut watch = Watch(scene.command(program).arg("watch").spawn().unwrap());
    let mut said = BufReader::new(watch.0.stderr.take().unwrap());
    said.read_line(&mut String::new()).unwrap();
    let configuration = scene.path("config.toml");
    let text = format!(
        "[[extensions]]\nname = \"files\"\nargv = [{program:?}, \"watch\", \"--extension\"]\nmay = \"append\"\n"
    );
    fs::write(&configuration, text).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    runtime.block_on(async {
        let builder = Client::builder().program(daemon());
        let builder = builder.args([Path::new("--config"), &configuration]);
        let builder = builder.session_dir(scene.path("sessions"));
        let builder = builder
            .env("HOME", scene.path("home"))
            .env("TREELINED_SESSION_DIR", scene.path("sessions"))
            .env("TREELINED_FILES", scene.path("state"))
            .env("TREELINED_FILES_FREE", "0");
        let client = builder.spawn().await.unwrap();
        client.open_session().session_id("tour").await.unwrap();
        let session = client.with_session("tour");
        let begin = Instant::now();
        let output = loop {
            // The program may not have registered its commands yet.
            match session.run_command("files-diff").args("a1").await {
                Ok(ran) => break ran.output.unwrap(),
                Err(error) => assert!(begin.elapsed() < PATIENCE, "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        assert!(
            output.contains("1 file to write, 1 file to remove"),
            "{output}"
        );
        client.close().await.unwrap();
    });
    drop(watch);
    scene.command(&daemon()).arg("stop").output().unwrap();
}

/// The terminal client and the editors list the commands, and ask the user.
#[test]
fn other_clients_run_the_commands() {
    let scene = two_turns();
    let program = Path::new(env!("CARGO_BIN_EXE_treelined-files"));
    let mut watch = Watch(scene.command(program).arg("watch").spawn().unwrap());
    let mut said = BufReader::new(watch.0.stderr.take().unwrap());
    said.read_line(&mut String::new()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    runtime.block_on(async {
        let builder = Client::builder().program(daemon()).shared();
        let builder = builder.session_dir(scene.path("sessions"));
        let builder = builder.env("XDG_RUNTIME_DIR", scene.path("run"));
        let client = builder.ui([AskKind::Confirm]).spawn().await.unwrap();
        client.open_session().session_id("tour").await.unwrap();
        let session = client.with_session("tour");
        let diff = session.run_command("files-diff").args("a1").await.unwrap();
        let output = diff.output.unwrap();
        assert!(
            output.contains("1 file to write, 1 file to remove"),
            "{output}"
        );
        for agrees in [false, true] {
            let (mut notifications, answerer) = (client.notifications(), client.clone());
            let answering = tokio::spawn(async move {
                while let Some(notification) = notifications.next().await {
                    if let Notification::UserAsked(asked) = notification {
                        let call = answerer.answer_event(asked.event_id);
                        call.result(EventAnswer::value(agrees)).await.unwrap();
                        return asked.message;
                    }
                }
                None
            });
            let restored = session.run_command("files-restore").args("a1").await;
            assert_eq!(restored.is_ok(), agrees);
            let asked = answering.await.unwrap().unwrap();
            assert!(asked.contains("replace file"), "{asked}");
            assert_eq!(scene.read("file"), if agrees { "1" } else { "2" });
        }
        client.close().await.unwrap();
    });
    drop(watch);
    scene.command(&daemon()).arg("stop").output().unwrap();
}
