//! `treelined doctor` and `treelined migrate`.

use super::*;
use crate::permissions::mode;
use crate::readme::root;

#[test]
fn doctor_reports_damaged_files_and_fails() {
    let home = Home::new();
    let sound = home.file("sound.jsonl", include_bytes!("../../data/v3.jsonl"));
    let output = home
        .run(&["doctor", sound.to_str().unwrap()], &[], "")
        .clean();
    assert!(!output.text().is_empty(), "a summary");

    for (bytes, kind) in [
        (
            &include_bytes!("../../data/torn-tail.jsonl")[..],
            "tornTail",
        ),
        (
            include_bytes!("../../data/invalid-json.jsonl"),
            "invalidJson",
        ),
        (
            include_bytes!("../../data/orphan-parent.jsonl"),
            "orphanParent",
        ),
        (include_bytes!("../../data/cycle.jsonl"), "cycle"),
    ] {
        let path = home.file("sick.jsonl", bytes);
        let output = home.run(&["doctor", path.to_str().unwrap()], &[], "");
        assert_eq!(output.code, Some(1), "{kind}: {output:?}");
        assert!(output.text().contains(kind), "{kind}: {output:?}");
        assert_eq!(
            fs::read(&path).unwrap(),
            bytes,
            "doctor looks and does not touch"
        );
    }
    let path = home.file("empty.jsonl", b"");
    assert_eq!(
        home.run(&["doctor", path.to_str().unwrap()], &[], "").code,
        Some(1)
    );
}

#[test]
fn doctor_explains_every_kind_of_damage() {
    let home = Home::new();
    for file in fs::read_dir(root("tests/data")).unwrap() {
        let path = file.unwrap().path();
        if path.is_dir() {
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let output = home.run(&["doctor", path.to_str().unwrap()], &[], "");
        let name = path.file_stem().unwrap().to_str().unwrap();
        let sound = name.starts_with('v');
        assert_eq!(output.code, Some(i32::from(!sound)), "{name}: {output:?}");
        let text = output.text();
        assert_eq!(text.contains("1 file: 1 sound"), sound, "{name}: {text}");
        assert_eq!(text.contains(": line "), !sound, "{name}: {text}");
        assert_eq!(fs::read(&path).unwrap(), bytes, "{name}");
    }
    let several = [
        root("tests/data/v1.jsonl"),
        root("tests/data/torn-tail.jsonl"),
        home.file("e.jsonl", b""),
    ];
    let several = several.each_ref().map(|path| path.to_str().unwrap());
    let text = home
        .run(&[&["doctor"][..], &several].concat(), &[], "")
        .text();
    for said in [
        "version  1 (read as 3",
        "entries  10: 9 message (6 user, 2 assistant, 1 custom), 1 compaction",
        "tornTail: line 4, offset 646, 60 bytes",
        "headerMissing",
        "3 files: 1 sound, 1 with 1 diagnostic, 1 not readable",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[test]
fn migrate_rewrites_the_file_and_keeps_the_original() {
    let home = Home::new();
    for (name, bytes) in [
        ("v1.jsonl", &include_bytes!("../../data/v1.jsonl")[..]),
        ("v2.jsonl", include_bytes!("../../data/v2.jsonl")),
    ] {
        let path = home.file(name, bytes);
        let kept = path.with_file_name(format!("{name}.{}.bak", &name[..2]));
        let drawn = |home: &Home| {
            drawn(
                home,
                &[path.to_str().unwrap(), "--ids", "--filter", "all"],
                "200",
            )
        };
        let before = drawn(&home);
        let text = home
            .run(&["migrate", path.to_str().unwrap()], &[], "")
            .clean()
            .text();
        assert!(text.contains(kept.to_str().unwrap()), "{text}");
        assert_eq!(fs::read(&kept).unwrap(), bytes);
        assert_eq!(file_lines(&path)[0]["version"], 3);
        assert_eq!(drawn(&home), before, "the same tree, the same ids");
        let rewritten = fs::read(&path).unwrap();
        let again = home
            .run(&["migrate", path.to_str().unwrap()], &[], "")
            .clean()
            .text();
        assert!(again.contains("already"), "{again}");
        assert_eq!(fs::read(&path).unwrap(), rewritten);
    }
    let newer = Log::with_header(
        json!({"type": "session", "version": 4, "id": "s", "timestamp": "", "cwd": "/"}),
    );
    let path = newer.save(&home);
    let output = home.run(&["migrate", path.to_str().unwrap()], &[], "");
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("versionUnsupported"), "{output:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), newer.text());
}

#[test]
fn doctor_repairs_only_on_request_and_keeps_removed_lines() {
    let home = Home::new();
    let text = Log::new("s1")
        .user("u1", "", "x")
        .raw("{\"type\":\"mess")
        .user("u2", "u1", "y")
        .text();
    let path = home.file("s.jsonl", text.as_bytes());
    let file = path.to_str().unwrap();
    for args in [
        vec!["doctor", file],
        vec!["doctor", "--repair", "--dry-run", file],
    ] {
        let output = home.run(&args, &[], "");
        assert_eq!(
            (output.code, &*output.stderr),
            (Some(1), ""),
            "{}",
            output.text()
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "{args:?}");
    }
    let output = home.run(&["doctor", "--repair", file], &[], "").clean();
    assert!(
        output.text().contains("repaired: 1 line mended"),
        "{}",
        output.text()
    );
    let lines = file_lines(&path);
    assert_eq!(lines.len(), 3);
    let kept = home.files().join("s.jsonl.quarantine/1.damaged");
    assert_eq!(fs::read_to_string(&kept).unwrap(), "{\"type\":\"mess\n");
    assert_eq!((mode(&kept), mode(kept.parent().unwrap())), (0o600, 0o700));
}

/// Doctor once showed a problem and still ended with the exit code of success. With `--json` it did not look for
/// problems.
#[test]
fn doctor_fails_with_a_wrong_configuration() {
    let home = Home::new();
    let session = home.file("s.jsonl", include_bytes!("../../data/v3.jsonl"));
    let session = session.to_str().unwrap();
    let run = |text: &str, args: &[&str]| {
        let path = crate::config::file(&home, text);
        let doctor = [&["--config", &path, "doctor"], args].concat();
        home.run(&doctor, &[], "")
    };
    let doctor = |text: &str, more: &[&str]| run(text, &[&[session], more].concat());
    let hook = "[[hooks]]\nevents = [\"session_tree\"]\nargv = [\"/nowhere/guard\"]\n";
    for (text, part) in [
        ("durabilty = \"os\"\n", "durabilty"),
        (hook, "the hook guard fails"),
    ] {
        let shown = doctor(text, &[]);
        assert_eq!(shown.code, Some(1), "{}", shown.stderr);
        let shown = shown.text();
        assert!(shown.contains(part), "{shown}");
        assert!(shown.contains("1 sound, a wrong configuration"), "{shown}");

        let listed = doctor(text, &["--json"]);
        assert_eq!(listed.code, Some(1), "{}", listed.stderr);
        let listed = listed.text();
        let lines: Vec<Json> = listed
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 2, "{listed}");
        assert_eq!(lines[0]["sound"], true);
        let problem = lines[1]["configuration"]["problems"][0].as_str().unwrap();
        assert!(problem.contains(part), "{problem}");

        // Without a session, doctor once asked for one.
        let alone = run(text, &[]);
        assert_eq!(alone.code, Some(1), "{}", alone.stderr);
        let alone = alone.text();
        assert!(
            alone.contains(part) && alone.contains(" is wrong"),
            "{alone}"
        );
        let alone = run(text, &["--json"]);
        assert_eq!((alone.code, alone.text().lines().count()), (Some(1), 1));
    }
    let alone = run("durability = \"os\"\n", &[]).clean().text();
    assert!(alone.contains("config.toml is sound"), "{alone}");
    assert_eq!(run("", &["--repair"]).code, Some(2));
    let sound = doctor("durability = \"os\"\n", &["--json"]).clean();
    assert_eq!(sound.text().lines().count(), 1);
}
