//! The position in git of an imported session.

use super::*;
use std::collections::BTreeMap;
use treelined_core::tags::GitPlace;
use treelined_files::store::Store;

/// The branch and commit of each session, from its row in the list.
fn places(home: &Home) -> Vec<String> {
    let rows = Store::new(home.sessions()).rows().unwrap();
    let of = |place: &GitPlace| {
        let parts = [&place.branch, &place.commit].map(|part| part.as_deref().unwrap_or("-"));
        parts.join(" ")
    };
    let places = rows.iter().map(|row| of(&row.listing.sorting.git));
    places.collect()
}

fn on(branch: &str, records: &str) -> String {
    records.replace("\"cwd\":", &format!("\"gitBranch\":\"{branch}\",\"cwd\":"))
}

/// Once the list of sessions did not show the git branch of an imported conversation.
#[test]
fn branch_and_commit_come_with_the_entries() {
    let home = Home::new(Tool::ClaudeCode);
    let first = on("main", &user("u1", "", "one")) + &on("fix/a", &assistant("a1", "u1", "so"));
    home.write("s.jsonl", &first);
    home.import();
    assert_eq!(places(&home), ["fix/a -"]);
    let files = home.files();
    home.import();
    assert_eq!(home.files(), files);
    // The tool writes `HEAD` for a commit without a branch.
    let second = first + &on("HEAD", &user("u2", "a1", "two"));
    home.write("s.jsonl", &second);
    assert_eq!(home.import().totals.entries_added, 1);
    assert_eq!(places(&home), ["fix/a -"], "the last branch that was known");
    let third = second + &on("main", &user("u3", "u2", "three"));
    home.write("s.jsonl", &third);
    let row = home.import().sessions.remove(0);
    assert_eq!(places(&home), ["main -"]);
    assert_eq!(path_of(&row).len(), 4);
    fs::remove_dir_all(home.sessions().join(".imports")).unwrap();
    let files = home.files();
    assert_eq!(home.import().totals.entries_added, 0);
    assert_eq!(home.files(), files);

    let home = Home::new(Tool::Codex);
    let text = fs::read_to_string(fixture(
        "codex/0.130-rollback/rollout-2026-11-22T02-58-01-01a20130-6fe2-74f2-ab32-1ba913fb223d.jsonl",
    ));
    let git = r#""git":{"commit_hash":"0123abcd","branch":"main","repository_url":"x"}"#;
    let text = text.unwrap().replacen(r#""git":{}"#, git, 1);
    home.write(
        "rollout-2026-11-22T02-58-01-01a20130-6fe2-74f2-ab32-1ba913fb223d.jsonl",
        text,
    );
    home.import();
    assert_eq!(places(&home), ["main 0123abcd"]);
}

/// Once the position in git from a hook was not written if a watch had imported the turn before the hook ran, because
/// the import of the hook had no new entries.
#[test]
fn a_hook_that_comes_after_a_watch_says_where_the_turn_was() {
    let home = Home::new(Tool::ClaudeCode);
    home.write("s.jsonl", on("main", &user("u1", "", "one")));
    home.import();
    let hook = |branch: &str| {
        let place = GitPlace {
            branch: Some(branch.to_owned()),
            ..GitPlace::default()
        };
        let git = BTreeMap::from([("s".to_owned(), place)]);
        let report = home.try_import(|request| request.git = git).unwrap();
        assert_eq!(report.totals.entries_added, 0);
        places(&home)
    };
    assert_eq!(hook("work"), ["work -"]);
    let files = home.files();
    assert_eq!(hook("work"), ["work -"]);
    home.import();
    assert_eq!(home.files(), files, "what is known is not written again");
    assert_eq!(hook("other"), ["other -"]);
}

#[test]
fn what_a_hook_has_seen_counts_more_than_old_words_of_the_tool() {
    let home = Home::new(Tool::ClaudeCode);
    let seen = |text: &str, commit: Option<&str>| {
        home.write("s.jsonl", text);
        let place = commit.map(|commit| GitPlace {
            branch: Some("work".to_owned()),
            commit: Some(commit.to_owned()),
            worktree: Some("/w".to_owned()),
        });
        let git: BTreeMap<String, GitPlace> = place
            .map(|place| ("s".to_owned(), place))
            .into_iter()
            .collect();
        home.try_import(|request| request.git = git).unwrap();
        places(&home).remove(0)
    };
    let mut text = on("main", &user("u1", "", "one"));
    assert_eq!(seen(&text, Some("c1")), "work c1");
    text += &on("main", &user("u2", "u1", "two"));
    assert_eq!(seen(&text, None), "work c1");
    text += &on("main", &user("u3", "u2", "three"));
    assert_eq!(seen(&text, Some("c2")), "work c2");
    text += &on("other", &user("u4", "u3", "four"));
    assert_eq!(seen(&text, None), "other -");
}
