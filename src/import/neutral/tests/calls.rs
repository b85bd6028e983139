//! Many calls with results. The time may grow only with the number of calls.

use super::*;

/// With this many calls, an algorithm that takes quadratic time runs for minutes.
const MANY: usize = 50_000;

fn results_of(path: &NeutralPath) -> &[CallResult] {
    let results = path.messages.iter().find_map(|message| match message {
        Message::Results(results) => Some(results.as_slice()),
        _ => None,
    });
    results.unwrap_or_default()
}

/// Once each result looked for its call among all calls without a result.
#[test]
fn many_results_find_their_calls() {
    let calls: Vec<Value> = (0..MANY)
        .map(|at| call(&format!("c{at}"), "bash", json!({})))
        .collect();
    let mut messages = vec![user("Go."), model(Value::Array(calls))];
    messages.extend((0..MANY).rev().map(|at| result(&format!("c{at}"), "r")));
    let path = clean(&messages);
    let results = results_of(&path);
    assert_eq!(results.len(), MANY);
    let mut ids = results.iter().enumerate();
    assert!(ids.all(|(at, result)| result.call_id == format!("c{at}")));
    assert_eq!(path.losses.count(Loss::ClosedCalls), 0);
}

/// If calls have the same id, their results are in the order of the calls.
#[test]
fn results_of_one_id_go_to_its_calls_in_order() {
    let calls = json!([
        call("x", "bash", json!({})),
        call("y", "bash", json!({})),
        call("x", "bash", json!({}))
    ]);
    let results = [result("x", "one"), result("x", "two"), result("x", "three")];
    let messages = [&[user("Go."), model(calls)], &results[..]].concat();
    let path = clean(&messages);
    let texts: Vec<String> = results_of(&path)
        .iter()
        .map(|result| text_of(&result.parts))
        .collect();
    assert_eq!(texts, ["one", "Not run: the branch ends here.", "two"]);
    assert_eq!(path.losses.count(Loss::OrphanResults), 1);
}

/// Once the search for a free id began with the same number for each call.
#[test]
fn free_ids_are_found_among_hostile_ones() {
    let few = MANY / 5;
    let taken = (2 * few..4 * few).map(|at| call(&format!("call_{at}"), "bash", json!({})));
    let without = (0..few).map(|_| call("", "bash", json!({})));
    let calls: Vec<Value> = taken.chain(without).collect();
    let path = clean(&[user("Go."), model(Value::Array(calls))]);
    let ids: std::collections::HashSet<&str> = results_of(&path)
        .iter()
        .map(|result| result.call_id.as_str())
        .collect();
    assert_eq!(ids.len(), 3 * few);
}

/// Once each empty message sorted the results before it again.
#[test]
fn silent_messages_sort_nothing() {
    let few = MANY / 10;
    let calls: Vec<Value> = (0..few)
        .map(|at| call(&format!("c{at}"), "bash", json!({})))
        .collect();
    let mut messages = vec![user("Go."), model(Value::Array(calls))];
    messages.extend((0..few).rev().map(|at| result(&format!("c{at}"), "r")));
    messages.extend((0..few).map(|_| model(json!([]))));
    assert_eq!(results_of(&clean(&messages)).len(), few);
}
