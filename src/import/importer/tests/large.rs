//! The limits on one source.

use super::*;
use crate::importer::large::refused;
use crate::importer::limits::Limits;
use crate::importer::run::WAITING;
use crate::importer::source::places::OPENED;
use std::io::Write as _;
use treelined_files::lock::lock;
use treelined_files::parallel::cores;

const ROLLOUT: &str = "rollout-2026-11-22T02-44-44-01a20124-4777-7de2-915b-000000000000.jsonl.zst";

/// The kind of each failure in a report.
fn kinds(report: &ImportReport) -> Vec<&str> {
    let errors = report.files.iter().filter_map(|file| file.error.as_ref());
    errors.map(|error| &*error.kind).collect()
}

/// A file of Codex with a few kB that decompresses to `megabytes`.
fn bomb(megabytes: usize) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    let line = [&vec![b' '; (1 << 20) - 3][..], b"{}\n"].concat();
    for _ in 0..megabytes {
        encoder.write_all(&line).unwrap();
    }
    encoder.finish().unwrap()
}

/// A file with this many subagents, each with one message.
fn sidechains(count: usize) -> String {
    let roots = (0..count).map(|number| {
        user(&format!("x{number}"), "", "do it")
            .replace("\"sessionId\"", "\"isSidechain\":true,\"sessionId\"")
    });
    roots.collect()
}

#[test]
fn each_limit_refuses_a_source_and_imports_the_rest() {
    let limits: [(&str, Limits); 3] = [
        (
            "records",
            Limits {
                records: 5,
                ..Limits::default()
            },
        ),
        (
            "entries",
            Limits {
                entries: 5,
                ..Limits::default()
            },
        ),
        (
            "sessions",
            Limits {
                sessions: 2,
                ..Limits::default()
            },
        ),
    ];
    for (name, limits) in limits {
        let home = Home::new(Tool::ClaudeCode);
        let other = conversation().replace("\"s\"", "\"other\"");
        let other = other
            .replace("\"uuid\":\"", "\"uuid\":\"y")
            .replace("\"parentUuid\":\"", "\"parentUuid\":\"y");
        home.write(
            "other.jsonl",
            other.lines().take(2).collect::<Vec<_>>().join("\n") + "\n",
        );
        home.write("s.jsonl", conversation() + &sidechains(3));
        let report = home.try_import(|request| request.limits = limits).unwrap();
        assert_eq!(kinds(&report), ["importTooLarge"], "{name}");
        let failed = report.files.iter().find(|file| file.error.is_some());
        let message = &failed.unwrap().error.as_ref().unwrap().message;
        assert!(
            message.contains(name) && message.contains("--large"),
            "{message}"
        );
        assert_eq!(
            (report.totals.failed, report.sessions.len()),
            (1, 1),
            "{name}"
        );
        assert_eq!(report.sessions[0].native_id, "other");
    }
}

#[test]
fn nothing_is_kept_of_a_source_that_is_refused() {
    let home = Home::new(Tool::Codex);
    let bomb = bomb(3);
    assert!(bomb.len() < 10 << 10);
    let path = home.write(ROLLOUT, bomb);
    for is_dry_run in [true, false] {
        let report = home.try_import(|request| {
            request.is_dry_run = is_dry_run;
            request.limits.bytes = 2 << 20;
        });
        assert_eq!(kinds(&report.unwrap()), ["importTooLarge"]);
    }
    let origins = fs::read_dir(home.sessions().join(".origins"));
    assert_eq!(origins.unwrap().count(), 0);
    assert!(home.files().is_empty());
    let refused = refused(&home.sessions());
    assert_eq!(refused.len(), 1);
    assert_eq!(Path::new(&refused[0].source), path);
    // A file that does not exist any more is not listed.
    fs::remove_file(path).unwrap();
    assert!(super::large::refused(&home.sessions()).is_empty());
}

#[test]
fn a_refused_source_is_not_read_again_until_it_changes() {
    let home = Home::new(Tool::ClaudeCode);
    let small = |request: &mut ImportRequest| request.limits.entries = 5;
    home.write("s.jsonl", conversation());
    assert_eq!(kinds(&home.try_import(small).unwrap()), ["importTooLarge"]);
    // The limit has changed, but the file is the same.
    assert_eq!(kinds(&home.import()), ["importTooLarge"]);
    home.write("s.jsonl", conversation() + &user("u3", "a3", "three"));
    let report = home.import();
    assert_eq!(kinds(&report), [""; 0]);
    assert_eq!(report.totals.entries_added, 7);
    assert!(refused(&home.sessions()).is_empty());
}

#[test]
fn what_was_allowed_once_grows_without_asking() {
    let home = Home::new(Tool::ClaudeCode);
    let small = |request: &mut ImportRequest| request.limits.entries = 5;
    home.write("s.jsonl", conversation());
    assert_eq!(kinds(&home.try_import(small).unwrap()), ["importTooLarge"]);
    let large = home.try_import(|request| request.limits = Limits::NONE);
    assert_eq!(large.unwrap().totals.entries_added, 6);
    home.write("s.jsonl", conversation() + &user("u3", "a3", "three"));
    let report = home.try_import(small).unwrap();
    assert_eq!(kinds(&report), [""; 0]);
    assert_eq!(report.totals.entries_added, 1);
    // Another large source is still refused.
    home.write("t.jsonl", conversation().replace("\"s\"", "\"t\""));
    assert_eq!(kinds(&home.try_import(small).unwrap()), ["importTooLarge"]);
}

/// If a session of a database has a value beyond the limit, only this session is refused. SQLite does not read the
/// value.
#[test]
fn a_value_of_a_database_has_a_limit() {
    let home = Home::new(Tool::Goose);
    let path = home.root.path().join("files/sessions.db");
    fs::copy(fixture("goose/sessions.db"), &path).unwrap();
    let database = rusqlite::Connection::open(&path).unwrap();
    let long = "UPDATE messages SET content_json = '[{\"type\":\"text\",\"text\":\"' || printf('%.*c', 70000000, 'x') || '\"}]'
                WHERE rowid = (SELECT max(rowid) FROM messages)";
    assert_eq!(database.execute(long, []).unwrap(), 1);
    drop(database);
    let report = home.import();
    assert_eq!(kinds(&report), ["importTooLarge"]);
    let failed = report
        .files
        .iter()
        .find(|file| file.error.is_some())
        .unwrap();
    assert!(failed.path.contains("sessions.db#"), "{}", failed.path);
    // The other session of the database is imported.
    assert_eq!(report.sessions.len(), 1);
}

/// If the work for each subagent grew with their number, 100,000 would take minutes.
#[test]
fn as_many_subagents_as_the_limit_are_read() {
    let home = Home::new(Tool::ClaudeCode);
    home.write("s.jsonl", conversation() + &sidechains(10_000));
    let dry = |request: &mut ImportRequest| request.is_dry_run = true;
    assert_eq!(kinds(&home.try_import(dry).unwrap()), ["importTooLarge"]);
    home.write("s.jsonl", conversation() + &sidechains(9_999));
    let report = home.try_import(dry).unwrap();
    assert_eq!((kinds(&report), report.sessions.len()), (vec![], 10_000));
}

/// Once each session of a file opened the file again: with 20,000 subagents in a file this took 125 s, and the hash of
/// a compressed or just written file was computed 20,000 times.
#[test]
fn the_sessions_of_a_source_share_its_bytes() {
    let home = Home::new(Tool::ClaudeCode);
    let path = home.write("s.jsonl", conversation() + &sidechains(300));
    assert_eq!(home.import().sessions.len(), 301);
    let opened = lock(&OPENED).get(&path.display().to_string()).copied();
    let threads = cores() + WAITING + 1;
    assert!(
        (1..=threads).contains(&opened.unwrap_or_default()),
        "{opened:?} of {threads}"
    );
}
