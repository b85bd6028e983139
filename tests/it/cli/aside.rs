//! `treelined btw` and `treelined keep`: a side question.

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
    // A second call once copied the question and its answer again.
    for _ in 0..2 {
        let again = run(&home, &["keep", "s1", question]).clean().text();
        assert!(again.starts_with("kept before; now at "), "{again}");
        assert_eq!(context(&home), after);
    }
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

/// When a question below the leaf was kept, the candidate at the leaf was once copied again too.
#[test]
fn a_question_below_a_chosen_candidate_is_kept_without_it() {
    let home = Home::new();
    branched(&home);
    let call = |method: &str, params: Json| {
        let params = params.to_string();
        let output = run(&home, &["call", method, &params, "--open", "s1"]);
        parse(&output.clean().text()).unwrap()
    };
    let message = json!({"role": "user", "content": "a candidate"});
    let leaf = call("get_leaf", json!({}))["leafId"].clone();
    let grown = json!({"message": message, "parentId": leaf, "keepLeaf": true, "group": "why"});
    let tip = call("append_message", grown)["entryId"].clone();
    call("choose", json!({"tipId": tip}));
    let asked = [
        "btw",
        "s1",
        "a first aside",
        "--json",
        "--run",
        "echo heard",
    ];
    let first = parse(&run(&home, &asked).clean().text()).unwrap();
    let below = json!({"message": message, "parentId": first["answerId"], "keepLeaf": true, "group": "btw"});
    call("append_message", below);
    run(&home, &["keep", "s1", first["entryId"].as_str().unwrap()]).clean();
    let after = context(&home);
    assert_eq!(after.matches("a candidate").count(), 1, "{after}");
    assert_eq!(after.matches("a first aside").count(), 1, "{after}");
    assert_eq!(after.matches("heard").count(), 1, "{after}");
}
