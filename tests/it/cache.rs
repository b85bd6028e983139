//! The files in `.cache` make the daemon faster and change no answer, even if they are damaged or missing. They are
//! the side index (session-file.md §2) and the catalogue (session-file.md §5).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::harness::*;

/// A session of 3 MB in the session directory, with branches and labels.
fn large(home: &Home) -> PathBuf {
    let mut log = Log::new("s1").user("e0", "", "first");
    for n in 1..5000 {
        let parent = if n % 50 == 0 { n / 2 } else { n - 1 };
        let (id, parent) = (format!("e{n}"), format!("e{parent}"));
        log = match n % 100 {
            99 => log.label(&id, &parent, "e7", json!(format!("label {n}"))),
            _ => log.user(&id, &parent, &format!("{n} {}", "text ".repeat(90))),
        };
    }
    let path = home.sessions().join("s1.jsonl");
    fs::write(&path, log.text()).unwrap();
    path
}

/// All answers of a daemon about the session and about the list of sessions.
fn found(home: &Arc<Home>) -> Vec<Json> {
    let mut d = Daemon::quiet_in(home);
    let list = d.ok("list_sessions", json!({}))["sessions"].clone();
    let opened = d.ok("open_session", json!({"sessionId": "s1"}));
    let tree = d.ok("get_tree", json!({"filter": "all"}));
    let found = vec![
        list,
        opened["diagnostics"].clone(),
        opened["session"]["entryCount"].clone(),
        tree["nodes"].clone(),
        tree["leafId"].clone(),
        d.ok("get_tree", json!({"query": "user 777"}))["nodes"].clone(),
        d.ok("get_entries", json!({"since": "e4990"}))["entries"].clone(),
    ];
    // The daemon writes its cache before it ends.
    d.close_stdin();
    assert_eq!(d.exited(), Some(0));
    found
}

fn cached(home: &Home) -> Vec<PathBuf> {
    let listed = fs::read_dir(home.sessions().join(".cache")).unwrap();
    let mut paths: Vec<PathBuf> = listed.map(|item| item.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn a_damaged_or_missing_cache_changes_no_answer() {
    let home = Home::new();
    large(&home);
    let expected = found(&home);
    let kept = cached(&home);
    assert_eq!(kept.len(), 3, "{kept:?}");
    for path in &kept {
        assert_eq!(
            fs::metadata(path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
    let folder = home.sessions().join(".cache");
    let mode = fs::metadata(&folder).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert_eq!(found(&home), expected, "with what was kept");
    for path in &kept {
        let whole = fs::read(path).unwrap();
        for at in [0, 20, 40, whole.len() / 2, whole.len() - 1] {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x20;
            fs::write(path, &damaged).unwrap();
            assert_eq!(found(&home), expected, "{path:?} damaged at {at}");
        }
        fs::write(path, &whole[..whole.len() / 2]).unwrap();
        assert_eq!(found(&home), expected, "{path:?} cut short");
        fs::write(path, vec![0xff; 100_000]).unwrap();
        assert_eq!(found(&home), expected, "{path:?} garbage");
    }
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(found(&home), expected, "missing");
    fs::remove_dir_all(&folder).unwrap();
    fs::write(&folder, "no folder").unwrap();
    assert_eq!(found(&home), expected, "a file in its place");
}

#[test]
fn entries_appended_after_the_cache_was_written_are_read() {
    let home = Home::new();
    let path = large(&home);
    found(&home);
    let before = fs::read(&path).unwrap();
    let more = Log::new("s1").user("more", "e3", "more").line(1).to_owned() + "\n";
    fs::write(&path, [before.as_slice(), more.as_bytes()].concat()).unwrap();
    let grown = found(&home);
    assert_eq!(grown[4], "more");
    fs::remove_dir_all(home.sessions().join(".cache")).unwrap();
    assert_eq!(found(&home), grown);
    // The file is appended to, and edited in place far from its ends, without a change of ids.
    let edited = String::from_utf8(before.clone()).unwrap();
    let edited =
        edited.replace("\"2500 text", "\"edit text") + &more + &more.replace("more", "last");
    fs::write(&path, edited).unwrap();
    let told_of_edited = found(&home);
    let nodes = told_of_edited[3].as_array().unwrap();
    assert!(
        nodes
            .iter()
            .any(|node| node["preview"].as_str().unwrap().starts_with("edit text"))
    );
    fs::remove_dir_all(home.sessions().join(".cache")).unwrap();
    assert_eq!(found(&home), told_of_edited);
    // The file of another session under the same name, and the first file cut short.
    for text in [
        Log::new("s1").user("other", "", "other").text(),
        String::from_utf8(before[..before.len() - 100].to_vec()).unwrap(),
    ] {
        fs::write(&path, text).unwrap();
        let mut d = Daemon::quiet_in(&home);
        d.ok("open_session", json!({"sessionId": "s1"}));
        let nodes = d.ok("get_tree", json!({"filter": "all"}))["nodes"].clone();
        fs::remove_dir_all(home.sessions().join(".cache")).ok();
        let mut d = Daemon::quiet_in(&home);
        d.ok("open_session", json!({"sessionId": "s1"}));
        assert_eq!(nodes, d.ok("get_tree", json!({"filter": "all"}))["nodes"]);
    }
}

/// Counts are kept with the session and are not used for another file.
#[test]
fn stats_count_all_entries() {
    let home = Home::new();
    let path = large(&home);
    let open = || {
        let mut d = Daemon::quiet_in(&home);
        d.ok("open_session", json!({"sessionId": "s1"}));
        d
    };
    let mut d = open();
    let before = d.ok("get_stats", json!({}));
    assert_eq!(before["messages"], json!({"user": 4950}));
    assert_eq!(d.ok("get_stats", json!({})), before);
    d.ok("append_message", json!({"message": assistant("more")}));
    let after = d.ok("get_stats", json!({}));
    assert_eq!(after["messages"], json!({"user": 4950, "assistant": 1}));
    assert_eq!(
        after["tokens"],
        json!({"input": 1, "output": 2, "cacheRead": 3, "cacheWrite": 4})
    );
    assert_eq!(open().ok("get_stats", json!({})), after);
    fs::write(&path, Log::new("s1").user("other", "", "other").text()).unwrap();
    let of_other = d.ok("get_stats", json!({}));
    assert_eq!(of_other["messages"], json!({"user": 1}));
}

/// A later line with a known id gives the entry another body and adds no entry. The view was once not updated: it
/// showed a row that its filter hides, and it counted the old body.
#[test]
fn a_replaced_body_is_shown_and_counted() {
    let home = Home::new();
    let mut log = Log::new("s1").user("e0", "", "first");
    for n in 1..3000 {
        log = log.user(&format!("e{n}"), &format!("e{}", n - 1), "text");
    }
    let path = log.save(&home);
    let mut d = Daemon::quiet();
    d.open(&path);
    let found = |d: &mut Daemon| {
        let tree = d.ok("get_tree", json!({"limit": 1}));
        let stats = d.ok("get_stats", json!({}));
        (tree["total"].clone(), stats["messages"].clone())
    };
    assert_eq!(found(&mut d), (json!(3000), json!({"user": 3000})));
    let hidden = entry_line(9, "custom", "e7", "e6", json!({"customType": "x"}));
    foreign_append(&path, &hidden);
    assert_eq!(found(&mut d), (json!(2999), json!({"user": 2999})));
    d.notification("diagnostics");
}

/// An edit in place that restored the modification time of the file was once not noticed.
#[test]
fn an_edit_that_keeps_the_modification_time_is_seen() {
    let home = Home::new();
    let path = large(&home);
    let before = found(&home);
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"2500 text", "\"edit text")).unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(modified).unwrap();
    let after = found(&home);
    assert_ne!(after[3], before[3]);
    fs::remove_dir_all(home.sessions().join(".cache")).unwrap();
    assert_eq!(found(&home), after);
}

/// An entry that gets another body later in the file is stored far from its neighbours. Its cached preview was once not
/// compared with its line. If the line was before the lines of its neighbours, the view was once wrong.
#[test]
fn cached_previews_of_replaced_bodies_are_checked_before_use() {
    let home = Home::new();
    let path = large(&home);
    let body = |text: &str| {
        let log = Log::new("s1").user("e1001", "e1000", text);
        let log = log.user("e896", "e895", text);
        log.line(1).to_owned() + "\n" + log.line(2) + "\n"
    };
    let text = fs::read_to_string(&path).unwrap();
    let padding = Log::new("s1").user("pad", "e1", &"x".repeat(100_000));
    let of = |other: &str| {
        let padding = padding.line(1);
        format!(
            "{text}{padding}\n{}{}\n",
            body(other),
            padding.replace("\"pad\"", "\"pad2\"")
        )
    };
    fs::write(&path, of("former")).unwrap();
    found(&home);
    // The file is edited and then appended to. Only the edited line itself shows the edit.
    let more = Log::new("s1").user("more", "e3", "more").line(1).to_owned() + "\n";
    fs::write(&path, of("edited") + &more).unwrap();
    let after = found(&home);
    fs::remove_dir_all(home.sessions().join(".cache")).unwrap();
    assert_eq!(found(&home), after);
}
