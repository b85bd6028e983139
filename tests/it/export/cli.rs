//! `treelined export`.

use super::*;

fn stored(home: &Home) -> PathBuf {
    let token = token();
    branched()
        .user("u3", "a2", &format!("use {token}"))
        .store(home, "2025-01-01_s1.jsonl")
}

/// Runs the command with these arguments; returns its exit code, stdout and stderr.
fn run(home: &Home, args: &[&str]) -> (i32, String, String) {
    let output = home.run(&[&["export"], args].concat(), &[], "");
    (output.code.unwrap(), output.text(), output.stderr)
}

#[test]
fn an_export_goes_to_stdout_and_the_report_to_stderr() {
    let home = Home::new();
    let path = stored(&home);
    for (format, start) in [
        ("--html", "<!doctype html>"),
        ("--markdown", "---\n"),
        ("--text", "Why does it fail?"),
    ] {
        let (code, out, err) = run(&home, &["s1", format]);
        assert_eq!(
            (code, err.as_str()),
            (0, "redacted 1 × github-token in 1 entry\n"),
            "{format}"
        );
        assert!(out.starts_with(start), "{out}");
    }
    let (code, out, err) = run(&home, &["s1", "--jsonl"]);
    assert!(
        code == 0 && err.starts_with("warning: keys, tokens and passwords stay"),
        "{err}"
    );
    assert_eq!(out, std::fs::read_to_string(path).unwrap());
    let (code, out, err) = run(&home, &["s1", "--text", "--no-redact"]);
    assert!(code == 0 && out.contains(&token()), "{out}");
    assert_eq!(
        err,
        "warning: keys, tokens and passwords stay in the export\n  try: look at it before you send it; without \
         --no-redact they are replaced\n"
    );
}

/// The command once wrote a file with the name `-`.
#[test]
fn a_dash_as_output_is_stdout() {
    let home = Home::new();
    stored(&home);
    let (code, out, err) = run(&home, &["s1", "--text", "-o", "-"]);
    assert!(code == 0 && out.starts_with("Why does it fail?"), "{out}");
    assert_eq!(err, "redacted 1 × github-token in 1 entry\n");
    let (code, out, err) = run(&home, &["s1", "--text", "-o", "-", "--json"]);
    assert!(
        code == 2 && out.is_empty() && err.contains("--output FILE"),
        "{err}"
    );
    assert!(!home.cwd().join("-").exists());
}

#[test]
fn a_file_is_written_once_and_replaced_only_on_request() {
    let home = Home::new();
    stored(&home);
    let path = home.cwd().join("out.md");
    let (code, out, err) = run(&home, &["s1", "--markdown", "-o", "out.md"]);
    let size = std::fs::metadata(&path).unwrap().len();
    let report = format!("wrote out.md: {size} bytes\nredacted 1 × github-token in 1 entry\n");
    assert_eq!((code, out.as_str(), err), (0, "", report));
    let (code, _, err) = run(&home, &["s1", "--markdown", "-o", "out.md"]);
    assert!(code == 1 && err.contains("fileExists"), "{err}");
    let (code, out, err) = run(
        &home,
        &["s1", "--markdown", "-o", "out.md", "--overwrite", "--json"],
    );
    assert_eq!((code, err.as_str()), (0, ""));
    let result = parse(&out).unwrap();
    assert_eq!(
        (&result["path"], &result["bytes"]),
        (&json!(path), &json!(size))
    );
    assert_eq!(result["redactions"][0]["kind"], "github-token");
    let (code, _, err) = run(&home, &["s1", "--markdown", "-o", "missing/out.md"]);
    assert!(code == 2 && err.contains("does not exist"), "{err}");
}

#[test]
fn a_part_is_chosen_by_an_entry() {
    let home = Home::new();
    stored(&home);
    let (_, leaf, _) = run(&home, &["s1", "--text", "--branch"]);
    assert!(
        leaf.contains("use [redacted:github-token]") && !leaf.contains("another"),
        "{leaf}"
    );
    let (_, branch, _) = run(&home, &["s1", "--text", "--branch", "a3"]);
    assert!(
        branch.contains("Yes.") && !branch.contains("3 failed"),
        "{branch}"
    );
    let (_, subtree, _) = run(&home, &["s1", "--text", "--subtree", "u2"]);
    assert!(
        subtree.contains("Yes.") && !subtree.contains("Why does it fail?\n\n──"),
        "{subtree}"
    );
    let (_, tree, _) = run(&home, &["s1", "--text", "--tree"]);
    assert!(tree.contains("Yes.") && tree.contains("3 failed"), "{tree}");
    let (code, out, err) = run(&home, &["s1", "--text", "--branch", "nope"]);
    assert_eq!((code, out.as_str()), (3, ""));
    assert!(err.contains("nope"), "{err}");
    for wrong in [
        &["s1"][..],
        &["s1", "--text", "--html"],
        &["s1", "--latest", "--text"],
        &["s1", "--text", "--branch", "a1", "--subtree", "a1"],
        &["s1", "--text", "--json"],
    ] {
        assert_eq!(run(&home, wrong).0, 2, "{wrong:?}");
    }
    // If no session is named, a session of this directory is meant. This directory has none.
    assert_eq!(run(&home, &["--text"]).0, 3);
}

#[test]
fn a_session_is_named_by_path_id_name_or_the_beginning_of_its_id() {
    let home = Home::new();
    let session = |id: &str, name: &str, day: u32| {
        Log::with_header(json!({"type": "session", "version": 3, "id": id, "timestamp": format!("2025-01-0{day}T00:00:00.000Z"), "cwd": home.cwd()}))
            .user("u1", "", id)
            .entry("session_info", "n1", "u1", json!({"name": name}))
            .store(&home, &format!("2025-01-0{day}_{id}.jsonl"))
    };
    let path = session("abcd1111", "first", 1);
    session("abcd2222", "abcd1111x", 2);
    session("efgh", "abcd2222", 3);
    let shown = |args: &[&str]| {
        let (code, out, err) = run(&home, &[args, &["--text"]].concat());
        let said = out.lines().nth(5).unwrap_or_default().to_owned();
        (code, said, err)
    };
    assert_eq!(shown(&[path.to_str().unwrap()]).1, "abcd1111");
    assert_eq!(shown(&["abcd2222"]).1, "abcd2222", "an id before a name");
    assert_eq!(shown(&["first"]).1, "abcd1111");
    assert_eq!(shown(&["abcd1111x"]).1, "abcd2222");
    assert_eq!(shown(&["abcd11"]).1, "abcd1111");
    let (code, _, err) = shown(&["abcd"]);
    assert_eq!(code, 2);
    assert!(
        err.contains("2 sessions fit")
            && err.contains("abcd1111")
            && err.contains("abcd2222")
            && !err.contains("efgh"),
        "{err}"
    );
    for missing in ["efg", "zzzz", "abc"] {
        let (code, _, err) = shown(&[missing]);
        assert_eq!(code, 3, "{err}");
        assert!(err.contains(missing), "{err}");
    }
    let (code, said, err) = shown(&["--latest"]);
    assert_eq!((code, said.as_str()), (0, "efgh"), "{err}");
    let empty = home.run(
        &["export", "--latest", "--text"],
        &[(
            "TREELINED_SESSION_DIR",
            home.files().join("none").to_str().unwrap(),
        )],
        "",
    );
    assert_eq!(empty.code, Some(3));
}

#[test]
fn an_imported_session_is_exported() {
    let home = Home::new();
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/import/codex");
    home.run(&["import", "--final", data], &[], "");
    let is_it = |path: &PathBuf| {
        std::fs::read_to_string(path)
            .unwrap()
            .contains("asked otherwise")
    };
    let path = home.session_files().into_iter().find(is_it).unwrap();
    let (_, id) = path
        .file_stem()
        .unwrap()
        .to_str()
        .unwrap()
        .split_once('_')
        .unwrap();
    let (code, out, err) = run(&home, &[&id[..12], "--markdown", "--tree"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(
        out.contains("Third question, asked otherwise") && out.contains("## Outline"),
        "{out}"
    );
}
