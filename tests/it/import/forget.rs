//! `treelined import --forget`.

use super::imported;
use crate::harness::*;

/// A mistyped id was once reported as if its sources had been deleted.
#[test]
fn only_a_session_that_an_import_has_made_is_forgotten() {
    let home = Home::new();
    let (d, result) = imported(&home);
    drop(d);
    let id = result["sessions"][0]["sessionId"].as_str().unwrap();
    let unknown = home.run(&["import", "--forget", "nobody"], &[], "");
    assert_eq!(unknown.code, Some(3), "{unknown:?}");
    assert!(unknown.stderr.contains("\"nobody\""), "{unknown:?}");
    assert!(
        home.sessions()
            .join(".origins")
            .read_dir()
            .unwrap()
            .next()
            .is_some()
    );
    let known = home.run(&["import", "--forget", id], &[], "").clean();
    assert!(known.text().contains("1 source"), "{known:?}");
    let again = home.run(&["import", "--forget", id], &[], "").clean();
    assert!(again.text().contains("0 sources"), "{again:?}");
}

/// A mistyped id was once ignored.
#[test]
fn only_a_session_that_an_import_has_made_is_imported_again() {
    let home = Home::new();
    let (d, result) = imported(&home);
    drop(d);
    let id = result["sessions"][0]["sessionId"].as_str().unwrap();
    let unknown = home.run(&["import", "--again", "nobody"], &[], "");
    assert_eq!(unknown.code, Some(3), "{unknown:?}");
    assert!(
        unknown.stderr.contains("\"nobody\"") && unknown.stderr.contains("\n  try: "),
        "{unknown:?}"
    );
    assert!(unknown.stdout.is_empty(), "{unknown:?}");
    home.run(&["import", "--again", id], &[], "").clean();
}

/// People know the id that their tool shows, but a session could once not be found by this id.
#[test]
fn the_id_of_a_tool_names_its_session() {
    let home = Home::new();
    let (d, result) = imported(&home);
    drop(d);
    let id = result["sessions"][0]["sessionId"].as_str().unwrap();
    let report = home.run(&["doctor", "s"], &[], "").clean();
    assert!(
        report.text().contains("imported from claude-code s"),
        "{report:?}"
    );
    let again = home.run(&["import", "--again", "s", "--json"], &[], "");
    let again: Json = serde_json::from_slice(&again.clean().stdout).unwrap();
    assert_eq!(again["sessions"][0]["sessionId"], id);
    let known = home.run(&["import", "--forget", "s"], &[], "").clean();
    assert!(known.text().contains("1 source"), "{known:?}");
    let by_id = home.run(&["import", "--forget", id], &[], "").clean();
    assert!(by_id.text().contains("0 sources"), "{by_id:?}");
}

/// A session in the trash was found by the beginning of its id, but a purged one only by the whole id.
#[test]
fn the_beginning_of_an_id_names_a_purged_session() {
    let home = Home::new();
    let (d, result) = imported(&home);
    drop(d);
    let id = result["sessions"][0]["sessionId"].as_str().unwrap();
    home.run(&["rm", id], &[], "").clean();
    home.run(&["purge", id, "--yes"], &[], "").clean();
    let short = home.run(&["import", "--forget", &id[..3]], &[], "");
    assert_eq!(short.code, Some(3), "{short:?}");
    let known = home.run(&["import", "--forget", &id[..8]], &[], "").clean();
    assert!(known.text().contains("1 source"), "{known:?}");
    let whole = home.run(&["import", "--forget", id], &[], "").clean();
    assert!(whole.text().contains("0 sources"), "{whole:?}");
}

/// Bytes that were deleted on purpose were once reported as a problem of the session, with exit code 1.
#[test]
fn forgotten_sources_are_not_a_problem_and_lost_ones_are() {
    let home = Home::new();
    let (d, result) = imported(&home);
    drop(d);
    let row = &result["sessions"][0];
    let (id, path) = (
        row["sessionId"].as_str().unwrap(),
        row["path"].as_str().unwrap(),
    );
    let doctor = || home.run(&["doctor", "--origin", path], &[], "");
    assert!(doctor().clean().text().contains("in entries"));
    let origins = home.sessions().join(".origins");
    let aside = home.sessions().join("aside");
    std::fs::rename(&origins, &aside).unwrap();
    std::fs::create_dir(&origins).unwrap();
    assert_eq!(doctor().code, Some(1), "lost");
    std::fs::remove_dir(&origins).unwrap();
    std::fs::rename(&aside, &origins).unwrap();
    home.run(&["import", "--forget", id], &[], "").clean();
    let found = doctor().clean().text();
    assert!(
        found.contains("import --forget has deleted them"),
        "{found}"
    );
}
