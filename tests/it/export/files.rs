//! The file that an export writes is complete or does not exist, and errors are typed.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::faults::{Shim, SmallDisk};
use crate::permissions::mode;

/// A session of about 8 MB.
fn large() -> Log {
    let mut log = Log::new("s1").user("u0", "", "begins");
    for number in 1..800 {
        let text = format!("{number} {}", "x y ".repeat(2_500));
        log = log.user(&format!("u{number}"), &format!("u{}", number - 1), &text);
    }
    log
}

#[test]
fn a_file_is_private_and_whole() {
    let home = Home::new();
    let (mut d, source) = opened(&home, &branched());
    let before = fs::read(&source).unwrap();
    for format in ["html", "markdown", "text", "jsonl"] {
        let path = home.files().join(format!("out.{format}"));
        let params = json!({"format": format, "path": path});
        let result = d.ok("export_session", params.clone());
        let bytes = fs::read(&path).unwrap();
        assert_eq!(result["bytes"], bytes.len());
        assert_eq!(result["path"], json!(path));
        assert!(result.get("content").is_none());
        assert_eq!(mode(&path), 0o600);
        d.err_kind("export_session", params.clone(), "fileExists");
        fs::write(&path, "older").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let mut again = params;
        again["overwrite"] = json!(true);
        let result = d.ok("export_session", again);
        assert_eq!(result["bytes"], fs::metadata(&path).unwrap().len());
        assert_eq!(mode(&path), 0o600);
    }
    let hidden: Vec<_> = names_in(&home.files())
        .into_iter()
        .filter(|name| name.starts_with('.'))
        .collect();
    assert_eq!(hidden, [] as [String; 0]);
    assert_eq!(fs::read(&source).unwrap(), before);
}

/// An export with `overwrite` to the session's own file once replaced the conversation by its text.
#[test]
fn files_of_sessions_are_not_replaced() {
    let home = Home::new();
    let (mut d, source) = opened(&home, &branched());
    let made = d.ok("create_session", json!({"sessionId": "listed"}));
    let listed = std::path::PathBuf::from(made["session"]["path"].as_str().unwrap());
    d.ok(
        "append_message",
        json!({"sessionId": "listed", "message": {"role": "user", "content": "stays"}}),
    );
    d.ok("close_session", json!({"sessionId": "listed"}));
    let link = home.files().join("hard.txt");
    fs::hard_link(&source, &link).unwrap();
    let before = (fs::read(&source).unwrap(), fs::read(&listed).unwrap());
    for path in [&source, &listed, &link] {
        for format in ["text", "html", "jsonl"] {
            let params = json!({"format": format, "path": path, "overwrite": true});
            let error = d.err("export_session", params);
            assert_eq!(error.kind, "invalidParams");
            assert_eq!(error.details("field"), &json!("path"), "{path:?}");
        }
    }
    assert_eq!(
        (fs::read(&source).unwrap(), fs::read(&listed).unwrap()),
        before
    );
}

#[test]
fn paths_that_cannot_be_written_are_refused_with_a_typed_error() {
    let home = Home::new();
    let (mut d, source) = opened(&home, &branched());
    let missing = home.files().join("missing/out.html");
    let in_file = source.join("out.html");
    let (link, dangling) = (home.files().join("link"), home.files().join("dangling"));
    symlink("/etc/hostname", &link).unwrap();
    symlink(&missing, &dangling).unwrap();
    let pipe = home.files().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    for path in [
        json!("out.html"),
        json!(home.files()),
        json!("/"),
        json!(missing),
        json!(in_file),
        json!("/dev/null"),
        json!(home.files().join("out.html/")),
        json!(format!("{}/out.html/.", home.files().display())),
        json!(format!("{}/out.html/..", home.files().display())),
        json!(format!("{}/out\0.html", home.files().display())),
        json!(home.files().join("x".repeat(256))),
        json!(format!("/{}out", "x/".repeat(3000))),
        json!(link),
        json!(dangling),
        json!(pipe),
    ] {
        for overwrite in [false, true] {
            let params = json!({"format": "html", "path": path, "overwrite": overwrite});
            let error = d.err("export_session", params);
            assert_eq!(
                (error.kind.as_str(), error.details("field")),
                ("invalidParams", &json!("path")),
                "{path}"
            );
        }
    }
    let params = json!({"format": "text", "path": "/sys/out.txt"});
    d.err_kind("export_session", params, "pathDenied");
    assert!(
        fs::symlink_metadata("/dev/null")
            .unwrap()
            .permissions()
            .mode()
            & 0o170_000
            != 0o100_000
    );
}

/// Incomplete exports of killed daemons once stayed in the folder, with the text of sessions in them.
#[test]
fn unfinished_exports_of_killed_daemons_are_removed_by_the_next_one() {
    let home = Home::new();
    let (mut d, _) = opened(&home, &branched());
    let abandoned = home
        .files()
        .join(".out.html.0123456789abcdef.treelined.tmp");
    let in_use = home.files().join(".b.html.0123456789abcdef.treelined.tmp");
    fs::write(&abandoned, "half").unwrap();
    let held = fs::File::create(&in_use).unwrap();
    held.lock().unwrap();
    let path = home.files().join("next.html");
    d.ok("export_session", json!({"format": "html", "path": path}));
    assert!(!abandoned.exists());
    assert!(in_use.exists(), "another daemon writes it");
}

/// An export of a deleted session file once succeeded, since the daemon's open file still had the entries.
#[test]
fn a_session_whose_file_is_deleted_is_not_exported() {
    let home = Home::new();
    let (mut d, source) = opened(&home, &branched());
    d.ignore("session_closed");
    fs::remove_file(source).unwrap();
    let path = home.files().join("out");
    for format in ["html", "markdown", "text", "jsonl"] {
        for params in [
            json!({"format": format}),
            json!({"format": format, "path": path}),
        ] {
            d.err_kind("export_session", params, "sessionDeleted");
        }
    }
    assert!(!path.exists());
}

#[test]
fn params_that_do_not_fit_together_are_refused() {
    let home = Home::new();
    let (mut d, _) = opened(&home, &branched());
    let refused = [
        (json!({"format": "pdf"}), "format"),
        (json!({"format": "html", "scope": "subtree"}), "entryId"),
        (json!({"format": "html", "entryId": "a1"}), "entryId"),
        (json!({"format": "jsonl", "redact": true}), "redact"),
        (json!({"format": "jsonl", "home": "shorten"}), "home"),
    ];
    for (params, field) in refused {
        let error = d.err_kind("export_session", params, "invalidParams");
        assert_eq!(error.details("field"), field);
    }
    for scope in ["branch", "subtree"] {
        let path = home.files().join("none.html");
        let params = json!({"format": "html", "scope": scope, "entryId": "nope", "path": path});
        let error = d.err_kind("export_session", params, "entryNotFound");
        assert_eq!(error.details("entryId"), "nope");
        assert!(!path.exists());
    }
    d.err_kind(
        "export_session",
        json!({"sessionId": "s9", "format": "text"}),
        "sessionNotFound",
    );
}

#[test]
fn content_larger_than_the_client_takes_asks_for_a_path() {
    let home = Home::new();
    let mut d = Daemon::start_in(&home, &["--max-frame-bytes", "1000000"], &[]);
    d.init(json!({}));
    d.ignore_bookkeeping();
    d.open(&large().save(&home));
    for format in ["markdown", "text", "jsonl"] {
        let error = d.err_kind(
            "export_session",
            json!({"format": format}),
            "responseTooLarge",
        );
        assert!(error.message.contains("path"), "{}", error.message);
    }
    let path = home.files().join("out.md");
    d.ok(
        "export_session",
        json!({"format": "markdown", "path": path}),
    );
    assert!(fs::metadata(path).unwrap().len() > 1_000_000);
}

#[test]
fn a_long_export_reports_its_progress() {
    let home = Home::new();
    let mut d = Daemon::start_in(&home, &[], &[]);
    d.init(json!({"progress": {}}));
    d.ignore_bookkeeping();
    let mut log = large();
    for number in 0..6000 {
        log = log.user(&format!("v{number}"), "u9", &"z ".repeat(1000));
    }
    d.open(&log.save(&home));
    let path = home.files().join("out.html");
    let id = d.send("export_session", json!({"format": "html", "path": path}));
    d.response(&id).unwrap();
    let told = d.received("progress");
    assert!(!told.is_empty());
    let mut last = 0.0;
    for progress in &told {
        assert_eq!(progress["token"], id);
        let at = progress["progress"].as_f64().unwrap();
        assert!(
            last <= at && at <= progress["total"].as_f64().unwrap(),
            "{told:?}"
        );
        last = at;
    }
}

#[test]
fn a_full_disk_leaves_nothing_and_the_export_succeeds_later() {
    let home = Home::new();
    let (mut d, _) = opened(&home, &large());
    let folder = home.files().join("disk");
    fs::create_dir(&folder).unwrap();
    let Some(_disk) = SmallDisk::mount_at(folder.clone(), 20 << 10) else {
        return skip(Needs::Faults, "a full disk: mounting a tmpfs needs root");
    };
    let ballast = folder.join("ballast");
    fs::write(&ballast, vec![0; (20 << 20) - (600 << 10)]).unwrap();
    for format in ["jsonl", "markdown", "html"] {
        // The text repeats, so a page compresses well and may fit on the disk: only the other formats must fail.
        let path = folder.join("out");
        let error = d.call("export_session", json!({"format": format, "path": path}));
        if format != "html" {
            assert_eq!(error.unwrap_err().kind, "storageFull");
        }
        let _ = fs::remove_file(&path);
        assert_eq!(names_in(&folder), ["ballast"], "{format}");
    }
    fs::remove_file(ballast).unwrap();
    let path = folder.join("out");
    d.ok("export_session", json!({"format": "jsonl", "path": path}));
    assert_eq!(fs::read_to_string(path).unwrap(), large().text());
}

/// An export that waits in a write holds neither the queue of the session nor its lock.
#[test]
fn later_requests_do_not_wait_for_an_export() {
    let home = Home::new();
    let Some(shim) = Shim::new(&home) else {
        return skip(
            Needs::Faults,
            "a pause between two writes: there is no C compiler",
        );
    };
    let source = large().save(&home);
    let mut d = shim.start(&home, &[]);
    d.ignore_bookkeeping();
    d.open(&source);
    shim.act("write pause 3000\n");
    let path = home.files().join("out.jsonl");
    let id = d.send("export_session", json!({"format": "jsonl", "path": path}));
    eventually("the export waits", || shim.has_acted());
    d.ok("append_message", json!({"message": user("meanwhile")}));
    assert!(!path.exists());
    d.response(&id).unwrap();
    assert_eq!(
        fs::read_to_string(path).unwrap(),
        large().text(),
        "as it was when the export began"
    );
}

#[test]
fn a_cancelled_export_leaves_nothing() {
    let home = Home::new();
    let Some(shim) = Shim::new(&home) else {
        return skip(
            Needs::Faults,
            "a pause between two writes: there is no C compiler",
        );
    };
    let mut d = shim.start(&home, &[]);
    d.ignore_bookkeeping();
    d.open(&large().save(&home));
    let folder = home.files();
    for format in ["jsonl", "markdown", "html"] {
        shim.act("write pause 1500\n");
        let path = folder.join("out");
        let id = d.send("export_session", json!({"format": format, "path": path}));
        eventually("the export has begun", || {
            names_in(&folder)
                .iter()
                .any(|name| name.starts_with(".out"))
        });
        d.notify("$/cancel_request", json!({"requestId": id}));
        assert_eq!(d.response(&id).unwrap_err().kind, "cancelled", "{format}");
        eventually("nothing is left", || {
            !names_in(&folder).iter().any(|name| name.contains("out"))
        });
    }
}
