//! `treelined archive`, `treelined unarchive` and `treelined name-branch`.

use super::*;

fn run(home: &Home, args: &[&str]) -> Output {
    home.run(args, &[], "")
}

#[test]
fn a_branch_is_named_archived_and_brought_back_from_the_shell() {
    let home = Home::new();
    branched(&home);
    let said = run(&home, &["name-branch", "s1", "u2", "the\tleft"])
        .clean()
        .text();
    assert!(said.starts_with("named u2  user"), "{said}");
    let listed = || run(&home, &["branches", "s1"]).clean().text();
    assert!(listed().contains("the left"), "{}", listed());
    let said = run(&home, &["archive", "s1", "the left one"])
        .clean()
        .text();
    assert!(said.starts_with("archived u2  user"), "{said}");
    assert!(!listed().contains("the left"), "{}", listed());
    assert!(listed().contains("1 branch, 1 archived"), "{}", listed());
    let all = run(&home, &["branches", "s1", "--archived"]).clean().text();
    assert!(all.contains("the left (archived)"), "{all}");
    let tree = run(&home, &["tree", "s1", "--all"]).clean().text();
    assert!(
        tree.contains("1 archived branch; --archived shows them"),
        "{tree}"
    );
    assert!(!tree.contains("go left"), "{tree}");
    let tree = run(&home, &["tree", "s1", "--all", "--archived"])
        .clean()
        .text();
    assert!(tree.contains("go left"), "{tree}");
    let said = run(&home, &["unarchive", "s1", "u2"]).clean().text();
    assert!(said.starts_with("brought back u2  user"), "{said}");
    let again = run(&home, &["unarchive", "s1", "u2"]);
    assert_eq!(again.code, Some(3), "{again:?}");
    assert!(again.stderr.contains("try:"), "{again:?}");
    run(&home, &["name-branch", "s1", "u2", "--remove"]).clean();
    assert!(!listed().contains("the left\n"), "{}", listed());
    for wrong in [
        &["name-branch", "s1", "u2", " "][..],
        &["name-branch", "s1", "u2", "x", "--remove"],
        &["archive", "s1"],
    ] {
        let output = run(&home, wrong);
        assert!(output.code != Some(0), "{wrong:?}: {output:?}");
    }
}
