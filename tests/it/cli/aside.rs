//! `treelined btw` and `treelined keep`: a question beside the conversation.

use super::*;

fn run(home: &Home, args: &[&str]) -> Output {
    home.run(args, &[], "")
}

fn context(home: &Home) -> String {
    run(home, &["call", "get_context", "--open", "s1"])
        .clean()
        .text()
}

#[test]
fn a_side_question_never_enters_the_context_until_it_is_kept() {
    let home = Home::new();
    branched(&home);
    let before = context(&home);
    let asked = [
        "btw",
        "s1",
        "and the weather?",
        "--json",
        "--run",
        "tr a-z A-Z",
    ];
    let said = parse(&run(&home, &asked).clean().text()).unwrap();
    let answer = said["answer"].as_str().unwrap();
    assert!(answer.ends_with("AND THE WEATHER?"), "{said}");
    assert!(
        answer.contains("THE FIRST QUESTION"),
        "it has heard the conversation: {said}"
    );
    assert_eq!(context(&home), before);
    let tree = run(&home, &["tree", "s1", "--all"]).clean().text();
    assert!(!tree.contains("weather"), "{tree}");
    let tree = run(&home, &["tree", "s1", "--all", "--archived"])
        .clean()
        .text();
    assert!(tree.contains("and the weather?"), "{tree}");
    let question = said["entryId"].as_str().unwrap();
    let kept = run(&home, &["keep", "s1", question]).clean().text();
    assert!(kept.starts_with("now at "), "{kept}");
    let after = context(&home);
    assert!(
        after.contains("and the weather?") && after.contains("AND THE WEATHER?"),
        "{after}"
    );
    let other = run(&home, &["keep", "s1", "u2"]);
    assert_eq!(other.code, Some(3), "{other:?}");
}

#[test]
fn a_side_question_may_wait_for_a_client() {
    let home = Home::new();
    branched(&home);
    let before = context(&home);
    let said = run(&home, &["btw", "s1", "who knows?"]).clean().text();
    assert!(
        said.starts_with("asked ") && said.contains("treelined keep"),
        "{said}"
    );
    assert_eq!(context(&home), before);
    for wrong in [
        &["btw", "s1", "  "][..],
        &["btw", "s1", "x", "--run", "exit 3"],
        &["btw", "s1", "x", "--run", "true"],
    ] {
        let output = run(&home, wrong);
        assert!(output.code != Some(0), "{wrong:?}: {output:?}");
        assert!(output.stderr.contains("try:"), "{output:?}");
    }
    assert_eq!(context(&home), before);
}
