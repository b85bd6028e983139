//! The files in `.cache` make the daemon quicker and change no answer, whatever happens to them:
//! storage.md §2 (the index and the extracts), storage.md §5 (the rows of lists).

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

/// All that a daemon says of the session, and of the list it stands in.
fn told(home: &Arc<Home>) -> Vec<Json> {
    let mut d = Daemon::quiet_in(home);
    let list = d.ok("list_sessions", json!({}))["sessions"].clone();
    let opened = d.ok("open_session", json!({"sessionId": "s1"}));
    let tree = d.ok("get_tree", json!({"filter": "all"}));
    let told = vec![
        list,
        opened["diagnostics"].clone(),
        opened["session"]["entryCount"].clone(),
        tree["nodes"].clone(),
        tree["leafId"].clone(),
        d.ok("get_tree", json!({"query": "user 777"}))["nodes"].clone(),
        d.ok("get_entries", json!({"since": "e4990"}))["entries"].clone(),
    ];
    // Its end waits for what it keeps.
    d.close_stdin();
    assert_eq!(d.exited(), Some(0));
    told
}

fn cached(home: &Home) -> Vec<PathBuf> {
    let listed = fs::read_dir(home.sessions().join(".cache")).unwrap();
    let mut paths: Vec<PathBuf> = listed.map(|item| item.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn damaged_or_missing_it_changes_no_answer() {
    let home = Home::new();
    large(&home);
    let expected = told(&home);
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
    assert_eq!(told(&home), expected, "with what was kept");
    for path in &kept {
        let whole = fs::read(path).unwrap();
        for at in [0, 20, 40, whole.len() / 2, whole.len() - 1] {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x20;
            fs::write(path, &damaged).unwrap();
            assert_eq!(told(&home), expected, "{path:?} damaged at {at}");
        }
        fs::write(path, &whole[..whole.len() / 2]).unwrap();
        assert_eq!(told(&home), expected, "{path:?} cut short");
        fs::write(path, vec![0xff; 100_000]).unwrap();
        assert_eq!(told(&home), expected, "{path:?} garbage");
    }
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(told(&home), expected, "missing");
    fs::remove_dir_all(&folder).unwrap();
    fs::write(&folder, "no folder").unwrap();
    assert_eq!(told(&home), expected, "a file in its place");
}

#[test]
fn what_was_appended_since_is_read() {
    let home = Home::new();
    let path = large(&home);
    told(&home);
    let before = fs::read(&path).unwrap();
    let more = Log::new("s1").user("more", "e3", "more").line(1).to_owned() + "\n";
    fs::write(&path, [before.as_slice(), more.as_bytes()].concat()).unwrap();
    let grown = told(&home);
    assert_eq!(grown[4], "more");
    fs::remove_dir_all(home.sessions().join(".cache")).unwrap();
    assert_eq!(told(&home), grown);
    // Grown again, and edited in place where nobody looks at its ends or its ids.
    let edited = String::from_utf8(before.clone()).unwrap();
    let edited =
        edited.replace("\"2500 text", "\"edit text") + &more + &more.replace("more", "last");
    fs::write(&path, edited).unwrap();
    let told_of_edited = told(&home);
    let nodes = told_of_edited[3].as_array().unwrap();
    assert!(
        nodes
            .iter()
            .any(|node| node["preview"].as_str().unwrap().starts_with("edit text"))
    );
    fs::remove_dir_all(home.sessions().join(".cache")).unwrap();
    assert_eq!(told(&home), told_of_edited);
    // Another file under the name, and the first one cut short.
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

/// What has been counted is not counted again, and belongs to the file it was counted in.
#[test]
fn stats_are_those_of_all_entries() {
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

/// A later line with a known id gives an entry another body and adds none: the view was extended by
/// nothing, showing what its filter hides, and the sums were those of the former body.
#[test]
fn another_body_is_shown_and_counted_anew() {
    let home = Home::new();
    let mut log = Log::new("s1").user("e0", "", "first");
    for n in 1..3000 {
        log = log.user(&format!("e{n}"), &format!("e{}", n - 1), "text");
    }
    let path = log.save(&home);
    let mut d = Daemon::quiet();
    d.open(&path);
    let told = |d: &mut Daemon| {
        let tree = d.ok("get_tree", json!({"limit": 1}));
        let stats = d.ok("get_stats", json!({}));
        (tree["total"].clone(), stats["messages"].clone())
    };
    assert_eq!(told(&mut d), (json!(3000), json!({"user": 3000})));
    let hidden = entry_line(9, "custom", "e7", "e6", json!({"customType": "x"}));
    foreign_append(&path, &hidden);
    assert_eq!(told(&mut d), (json!(2999), json!({"user": 2999})));
    d.notification("diagnostics");
}

/// Somebody edits a line in place and gives the file its time again: the cache was believed.
#[test]
fn an_edit_with_the_old_time_is_seen() {
    let home = Home::new();
    let path = large(&home);
    let before = told(&home);
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"2500 text", "\"edit text")).unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(modified).unwrap();
    let after = told(&home);
    assert_ne!(after[3], before[3]);
    fs::remove_dir_all(home.sessions().join(".cache")).unwrap();
    assert_eq!(told(&home), after);
}

/// Entries that were given another body later in the file stand away from their neighbours: what was
/// kept of them was not compared with their lines, and a line before its neighbours broke the view.
#[test]
fn other_bodies_are_compared_before_what_is_kept_of_them_is_shown() {
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
    told(&home);
    // Edited and grown: only the lines that what is kept was made of can tell.
    let more = Log::new("s1").user("more", "e3", "more").line(1).to_owned() + "\n";
    fs::write(&path, of("edited") + &more).unwrap();
    let after = told(&home);
    fs::remove_dir_all(home.sessions().join(".cache")).unwrap();
    assert_eq!(told(&home), after);
}
