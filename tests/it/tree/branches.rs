//! The rows of `list_branches`. protocol.md §3.8.

use super::*;

/// The name of each branch by its tip.
fn names(d: &mut Daemon) -> Vec<(String, String)> {
    let listed = d.ok("list_branches", json!({}))["branches"].clone();
    let text = |row: &Json, member: &str| row[member].as_str().unwrap().to_owned();
    let rows = listed.as_array().unwrap().iter();
    rows.map(|row| (text(row, "tipId"), text(row, "name")))
        .collect()
}

/// Branches were once named by their last messages, such as `Done.`, which say nothing about what was tried.
#[test]
fn a_branch_is_named_by_its_label_else_by_what_was_said_first_after_the_fork() {
    let caveat = "<system-reminder>Call the tools that you need.</system-reminder>";
    let log = two_branches()
        // Tools and commands have written the first messages of this branch.
        .user("w1", "a1", "<command-name>/clear</command-name>")
        .user("w2", "w1", caveat)
        .user("w3", "w2", "## Try the **third** way\nof `three`")
        .assistant("w4", "w3", "Done.")
        .user("w5", "w4", "And now test it")
        // These two branches have no user message.
        .assistant("x1", "a1", "Left alone")
        .user("y1", "a1", "<command-name>/exit</command-name>")
        // A fork inside a branch: each part is named by the message that follows the fork.
        .user("u4", "a2", "go on left")
        .user("u5", "a2", "go back")
        .assistant("a5", "u5", "Back.")
        .label("l1", "a5", "u5", json!("of the user"))
        .label("l2", "l1", "a5", json!("the best"));
    let mut d = opened(&log);
    let expected = [
        ("a3", "go right"),
        ("w5", "Try the third way of three"),
        ("x1", "Left alone"),
        ("y1", "/exit"),
        ("u4", "go on left"),
        ("a5", "the best"),
    ];
    let owned = |(tip, name): (&str, &str)| (tip.to_owned(), name.to_owned());
    assert_eq!(names(&mut d), expected.map(owned));
    d.ok("append_label", json!({"targetId": "a5", "label": null}));
    assert_eq!(names(&mut d)[5].1, "go back");
}

/// A session without a fork is one branch, which begins at its root.
#[test]
fn a_session_without_forks_is_named_by_its_first_message() {
    let log = Log::new("s1")
        .user("u1", "", "Why does the build fail?")
        .assistant("a1", "u1", "A stale cache.")
        .user("u2", "a1", "Clear it.");
    let mut d = opened(&log);
    let expected = ("u2".to_owned(), "Why does the build fail?".to_owned());
    assert_eq!(names(&mut d), [expected]);
}
