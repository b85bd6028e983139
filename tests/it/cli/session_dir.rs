//! A session directory that the user names but that does not exist.

use std::path::Path;

use super::*;

/// A mistyped directory once looked like a directory without sessions.
#[test]
fn a_session_directory_that_is_not_there_is_said_with_the_one_that_was_meant() {
    let home = Home::new();
    let right = home.files().join("project/sessions");
    fs::create_dir_all(&right).unwrap();
    let wrong = right.with_file_name("sesions");
    let run = |folder: &Path, args: &[&str], env: &[(&str, &str)]| {
        let option = ["--session-dir", folder.to_str().unwrap()];
        let args = if env.is_empty() {
            [&option, args].concat()
        } else {
            args.to_vec()
        };
        home.run(&args, env, "").stderr
    };
    let said = format!(
        "warning: no folder {} (--session-dir); did you mean {}?",
        wrong.display(),
        right.display()
    );
    for args in [
        &["list"][..],
        &["show", "--latest"],
        &["tree", "--latest"],
        &["search", "word"],
        &["export", "--latest", "--text", "-o", "-"],
        &["restore"],
        &["doctor", "some"],
        &["label", "--latest", "x", "y"],
    ] {
        let stderr = run(&wrong, args, &[]);
        assert_eq!(stderr.lines().next(), Some(&*said), "{args:?}: {stderr}");
        assert!(!run(&right, args, &[]).contains("no folder"), "{args:?}");
    }
    let inner = home.files().join("projct/sessions");
    let stderr = run(&inner, &["list"], &[]);
    assert!(
        stderr.contains(&format!("did you mean {}?", right.display())),
        "{stderr}"
    );
    let stderr = run(&right.join("other/quite"), &["list"], &[]);
    assert!(
        stderr.contains("without the name, the default directory is read"),
        "{stderr}"
    );
    let variable = [("TREELINED_SESSION_DIR", wrong.to_str().unwrap())];
    let stderr = run(&right, &["list"], &variable);
    assert!(
        stderr.contains("(TREELINED_SESSION_DIR); did you mean"),
        "{stderr}"
    );
}
