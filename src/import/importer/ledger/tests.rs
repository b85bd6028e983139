use super::*;
use crate::importer::report::ImportedSession;
use crate::mapping::Former;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use treelined_files::os::file::Identity;

fn row(number: u64, natives: &[&str], targets: &[&str]) -> SourceRow {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    SourceRow {
        tool: Tool::Codex,
        source: format!("/s/{number}.jsonl"),
        natives: owned(natives),
        targets: owned(targets),
        bases: owned(natives),
        status: SourceStatus {
            size: number,
            modified: (number.cast_signed(), -1),
            identity: Identity {
                device: u64::MAX,
                inode: number,
            },
            version: 0,
        },
        len: number,
        hash: [number as u8; 32],
        origin: format!("{number:x}"),
        held_until: Some(7),
        version: 1,
        former: Former::default().and(0, 4),
    }
}

fn session(id: &str) -> SessionRow {
    let row = ImportedSession {
        session_id: id.to_owned(),
        name: Some("a \"name\"\n".to_owned()),
        ..ImportedSession::default()
    };
    SessionRow::of(Tool::Codex, &row, id == "t")
}

fn path(folder: &Path) -> std::path::PathBuf {
    folder.join(FOLDER).join(NAME)
}

#[test]
fn rows_are_there_again_when_it_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::open(folder.path(), false).unwrap();
    let rows = vec![row(1, &["a", "b"], &["s", "t"]), row(2, &["c"], &["s"])];
    ledger
        .note(rows.clone(), vec![session("s"), session("t")])
        .unwrap();
    ledger.note_trashed("t", true).unwrap();
    ledger.note_trashed("unknown", true).unwrap();
    let grown = SourceRow {
        len: 7,
        ..rows[0].clone()
    };
    ledger.note(vec![grown.clone()], vec![]).unwrap();
    for round in 0..2 {
        assert_eq!(
            ledger.source(Tool::Codex, "/s/1.jsonl"),
            Some(&grown),
            "{round}"
        );
        assert_eq!(ledger.source(Tool::Codex, "/s/2.jsonl"), Some(&rows[1]));
        assert_eq!(ledger.source(Tool::Pi, "/s/2.jsonl"), None);
        assert_eq!(ledger.target(Tool::Codex, "b"), Some(("t", 1)));
        assert_eq!(ledger.target(Tool::Codex, "c"), Some(("s", 2)));
        assert_eq!(ledger.target(Tool::Pi, "c"), None);
        assert!(!ledger.is_trashed("s") && ledger.is_trashed("t"));
        let of = |session| ledger.session(Tool::Codex, session).unwrap();
        assert!(!of("s").is_home && of("t").is_home);
        assert!(ledger.session(Tool::Pi, "s").is_none());
        let shown = of("t").row().unwrap();
        assert_eq!(shown.name.as_deref(), Some("a \"name\"\n"));
        assert!(!ledger.has_noted("unknown") && ledger.rows("unknown").next().is_none());
        drop(ledger);
        ledger = Ledger::open(folder.path(), round == 0).unwrap();
    }
}

#[test]
fn a_native_session_that_was_placed_stays_placed() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::open(folder.path(), false).unwrap();
    ledger.note(vec![row(1, &["a"], &["s"])], vec![]).unwrap();
    ledger.note(vec![row(2, &["a"], &["t"])], vec![]).unwrap();
    assert_eq!(ledger.target(Tool::Codex, "a"), Some(("s", 0)));
}

#[test]
fn a_second_import_is_refused_and_a_reader_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::open(folder.path(), false).unwrap();
    ledger.note(vec![row(1, &["a"], &["s"])], vec![]).unwrap();
    let busy = Ledger::open(folder.path(), false).unwrap_err();
    assert_eq!(busy.kind, Kind::ImportBusy);
    let reader = Ledger::open(folder.path(), true).unwrap();
    assert!(reader.source(Tool::Codex, "/s/1.jsonl").is_some());
    drop(ledger);
    assert!(Ledger::open(folder.path(), false).is_ok());
}

#[test]
fn a_reader_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut reader = Ledger::open(folder.path(), true).unwrap();
    reader.note(vec![row(1, &["a"], &["s"])], vec![]).unwrap();
    assert!(reader.source(Tool::Codex, "/s/1.jsonl").is_some());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// A crash can tear the last line. Rows that are written later are not lost with it.
#[test]
fn damaged_lines_cost_only_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::open(folder.path(), false).unwrap();
    ledger.note(vec![row(1, &["a"], &["s"])], vec![]).unwrap();
    ledger.note(vec![row(2, &["b"], &["s"])], vec![]).unwrap();
    drop(ledger);
    let whole = fs::read(path(folder.path())).unwrap();
    for cut in (0..whole.len()).step_by(7) {
        fs::write(path(folder.path()), &whole[..cut]).unwrap();
        let mut ledger = Ledger::open(folder.path(), false).unwrap();
        ledger.note(vec![row(3, &["c"], &["s"])], vec![]).unwrap();
        drop(ledger);
        let ledger = Ledger::open(folder.path(), true).unwrap();
        assert!(ledger.source(Tool::Codex, "/s/3.jsonl").is_some(), "{cut}");
        let has_first = ledger.source(Tool::Codex, "/s/1.jsonl").is_some();
        assert!(has_first || cut < whole.len() / 2);
    }
    fs::write(path(folder.path()), [0xff; 100]).unwrap();
    assert!(Ledger::open(folder.path(), false).is_ok());
    fs::remove_file(path(folder.path())).unwrap();
    assert!(
        Ledger::open(folder.path(), false).is_ok(),
        "a missing ledger is made again"
    );
}

#[test]
fn old_lines_are_dropped_and_the_order_of_placements_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::open(folder.path(), false).unwrap();
    for number in 0..20 {
        let native = format!("n{}", 19 - number);
        ledger
            .note(vec![row(number, &[&native], &["s"])], vec![])
            .unwrap();
    }
    for len in 0..1000 {
        let row = SourceRow {
            len,
            ..row(5, &["n14"], &["s"])
        };
        ledger.note(vec![row], vec![session("s")]).unwrap();
    }
    drop(ledger);
    let before = fs::metadata(path(folder.path())).unwrap().len();
    for _ in 0..2 {
        let ledger = Ledger::open(folder.path(), false).unwrap();
        let after = fs::metadata(path(folder.path())).unwrap();
        assert!(after.len() * 10 < before, "{} of {before}", after.len());
        assert_eq!(after.permissions().mode() & 0o777, 0o600);
        assert_eq!(ledger.source(Tool::Codex, "/s/5.jsonl").unwrap().len, 999);
        assert_eq!(ledger.target(Tool::Codex, "n19"), Some(("s", 0)));
        assert_eq!(ledger.target(Tool::Codex, "n0"), Some(("s", 19)));
    }
}

#[test]
fn the_origins_that_only_one_session_has_are_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::open(folder.path(), false).unwrap();
    let rows = vec![
        row(1, &["a"], &["s"]),
        row(2, &["b", "c"], &["s", "t"]),
        row(3, &["d"], &["t"]),
        row(4, &["e"], &["s"]),
    ];
    ledger.note(rows, vec![]).unwrap();
    assert_eq!(ledger.forget("s").unwrap(), ["1", "4"]);
    assert_eq!(ledger.forget("s").unwrap(), [""; 0]);
    drop(ledger);
    let ledger = Ledger::open(folder.path(), true).unwrap();
    let origin = |number| {
        let name = format!("/s/{number}.jsonl");
        ledger.source(Tool::Codex, &name).unwrap().origin.clone()
    };
    assert_eq!([1, 2, 3, 4].map(origin), ["", "2", "3", ""]);
}

#[test]
fn a_database_counts_as_imported_until_its_status_changes() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::open(folder.path(), false).unwrap();
    let status = row(1, &[], &[]).status;
    let database = DatabaseRow {
        tool: Tool::Goose,
        database: "/d.db".to_owned(),
        status,
    };
    let parts = ["/d.db#1", "/d.db#2", "/d.db2#3"].map(|source| SourceRow {
        tool: Tool::Goose,
        source: source.to_owned(),
        ..row(1, &[], &[])
    });
    ledger.note(parts.to_vec(), vec![]).unwrap();
    ledger
        .note_databases(vec![database.clone()], &HashSet::default())
        .unwrap();
    ledger
        .note_databases(vec![database], &HashSet::default())
        .unwrap();
    assert_eq!(ledger.lines, 4);
    drop(ledger);
    let ledger = Ledger::open(folder.path(), true).unwrap();
    assert!(ledger.has_database(Tool::Goose, "/d.db", &status));
    let changed = SourceStatus { size: 2, ..status };
    assert!(!ledger.has_database(Tool::Goose, "/d.db", &changed));
    let mut parts: Vec<&str> = ledger
        .parts(Tool::Goose, "/d.db")
        .map(|(part, _)| part)
        .collect();
    parts.sort_unstable();
    assert_eq!(parts, ["1", "2"]);
}

#[test]
fn the_folders_of_imports_hold_no_sessions() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::open(folder.path(), false).unwrap();
    ledger.note(vec![row(1, &["a"], &["s"])], vec![]).unwrap();
    let origins = crate::importer::origin::Origins::of(folder.path()).unwrap();
    let mut writer = origins.side_writer(Tool::Codex, Path::new("/a")).unwrap();
    writer.push(b"{}\n").unwrap();
    assert!(writer.settle().unwrap());
    writer.finish().unwrap();
    assert!(path(folder.path()).exists());
    let store = treelined_files::store::Store::new(folder.path().to_owned());
    assert!(store.list().unwrap().is_empty());
}

/// An import after a hook once decoded the rows of all sources: up to ten thousand rows.
#[test]
fn rows_are_read_when_they_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::open(folder.path(), false).unwrap();
    let rows = (0..9).map(|number| row(number, &[&format!("n\"{number}")], &["s"]));
    let rows = rows.map(|row| SourceRow {
        held_until: (row.len == 3).then_some(7),
        ..row
    });
    ledger.note(rows.collect(), vec![session("s")]).unwrap();
    let read = |ledger: &Ledger| {
        let sources = ledger.sources.values();
        sources.filter(|stored| stored.is_read()).count()
    };
    let named = |ledger: &Ledger, words: &[&str]| {
        let found = ledger.mentioning(Tool::Codex, words.iter().copied());
        let mut found: Vec<String> = found.into_iter().map(str::to_owned).collect();
        found.sort();
        found
    };
    assert_eq!(ledger.target(Tool::Codex, "n\"4"), Some(("s", 4)));
    assert_eq!(
        named(&ledger, &["n\"4", "/s/7"]),
        ["/s/4.jsonl", "/s/7.jsonl"]
    );
    assert_eq!(named(&ledger, &[]), [""; 0]);
    assert!(ledger.mentioning(Tool::Pi, ["s"].into_iter()).is_empty());
    assert_eq!(ledger.files(Tool::Codex).count(), 9);
    assert_eq!(read(&ledger), 0);
    assert_eq!(ledger.held(None).count(), 1);
    assert_eq!(ledger.source(Tool::Codex, "/s/5.jsonl").unwrap().len, 5);
    assert_eq!(read(&ledger), 2);
}

/// The user may name a session by the id that its tool has given to it.
#[test]
fn a_session_is_named_by_its_id_or_that_of_its_tool() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::open(folder.path(), false).unwrap();
    let other = SourceRow {
        tool: Tool::Pi,
        ..row(2, &["a", "c"], &["t", "t"])
    };
    ledger
        .note(
            vec![row(1, &["a", "b"], &["s", "s"]), other],
            vec![session("s")],
        )
        .unwrap();
    for (name, sessions) in [
        ("s", &["s"][..]),
        ("t", &["t"]),
        ("b", &["s"]),
        ("c", &["t"]),
        ("a", &["s", "t"]),
        ("d", &[]),
    ] {
        assert_eq!(ledger.named(name), sessions, "{name}");
    }
    for (start, sessions) in [("", &["s", "t"][..]), ("s", &["s"]), ("a", &[])] {
        assert_eq!(ledger.beginning_with(start), sessions, "{start}");
    }
}
