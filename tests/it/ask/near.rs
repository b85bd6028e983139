//! Words of a question that no entry has, and the known words that replace them. protocol.md §3.16.

use super::{ask, ids, store};
use crate::harness::*;

#[test]
fn a_word_that_no_entry_has_gets_near_ones() {
    let home = Home::new();
    store(
        &home,
        Log::new("s").user("u1", "", "The configuration of the scheduler"),
        "s",
    );
    let mut d = Daemon::quiet_in(&home);
    let result = ask(&mut d, "shceduler configuration");
    assert_eq!(ids(&result), ["u1"]);
    let near = |word: &str, taken: Option<&str>| {
        let mut near = json!({"word": word, "near": ["scheduler"]});
        if let Some(taken) = taken {
            near["taken"] = json!(taken);
        }
        json!([near])
    };
    assert_eq!(result["didYouMean"], near("shceduler", Some("scheduler")));
    assert!(ask(&mut d, "scheduler").get("didYouMean").is_none());
    // The first letter is seldom wrong.
    let result = ask(&mut d, "ccheduler");
    assert_eq!(result["didYouMean"], near("ccheduler", None));
    assert!(ids(&result).is_empty());
}

/// A user once had to ask a question with one wrong letter again.
#[test]
fn a_near_word_counts_in_place_of_a_mistyped_one() {
    let home = Home::new();
    let log = Log::new("s")
        .user("u1", "", "The scheduler has a race condition")
        .user("u2", "u1", "The queue of the scheduler")
        .user("u3", "u2", "A race between two runners");
    store(&home, log, "s");
    let mut d = Daemon::quiet_in(&home);
    let result = ask(&mut d, "shceduler");
    assert_eq!(ids(&result).len(), 2);
    assert_eq!(result["totals"]["entries"], 2);
    let snippet = result["hits"][0]["snippet"].as_str().unwrap();
    let at = snippet.find("scheduler").unwrap() as u64;
    assert_eq!(result["hits"][0]["ranges"], json!([[at, at + 9]]));
    // The near word counts as a part of the phrase, but weighs less than the exact word.
    assert_eq!(ids(&ask(&mut d, "race conditon"))[0], "u1");
    let score = |result: &Json| result["hits"][0]["score"].as_f64().unwrap();
    assert!(score(&ask(&mut d, "scheduler")) > score(&result));
    // The exact modes stay exact.
    let exact = d.ok("search", json!({"query": "shceduler", "mode": "words"}));
    assert_eq!(exact["hits"], json!([]));
}

/// Words with a letter outside ASCII once were never proposed.
#[test]
fn near_words_are_of_every_alphabet() {
    let home = Home::new();
    let log = Log::new("s")
        .user("u1", "", "Die Überprüfung im Café")
        .user("u2", "u1", "Планировщик задач и очередь")
        .user("u3", "u2", "缓存竞争条件");
    store(&home, log, "s");
    let mut d = Daemon::quiet_in(&home);
    for (word, near, taken) in [
        ("Überprüfng", "überprüfung", Some("u1")),
        ("uberprüfung", "überprüfung", None),
        ("cafe", "café", None),
        ("планировщк", "планировщик", Some("u2")),
        // A word of few letters may have many bytes.
        ("очередт", "очередь", Some("u2")),
        ("задаш", "задач", Some("u2")),
        ("зад", "задач", Some("u2")),
    ] {
        let result = ask(&mut d, word);
        let found = ids(&result);
        assert_eq!(found.first().map(String::as_str), taken, "{word}: {result}");
        if word.chars().count() > 3 {
            assert_eq!(result["didYouMean"][0]["near"], json!([near]), "{word}");
        }
    }
    // Another word is not taken because it has letters of the same alphabet, and pairs of characters are not words.
    for word in ["пора", "缓冲"] {
        assert!(ask(&mut d, word).get("didYouMean").is_none(), "{word}");
    }
}

/// `racecondition` and `raceconditon` once found nothing, although an entry had both words.
#[test]
fn two_words_that_were_typed_as_one_are_found() {
    let home = Home::new();
    let log = Log::new("s")
        .user("u1", "", "The scheduler has a race condition")
        .user("u2", "u1", "The races of the year 2026")
        .user("u3", "u2", "A note about rac and ondition");
    store(&home, log, "s");
    let mut d = Daemon::quiet_in(&home);
    let pair = |word: &str, pair: &str| json!([{"word": word, "near": [pair], "taken": pair}]);
    for (word, words) in [
        ("racecondition", "race condition"),
        ("raceconditon", "race condition"),
        ("shcedulercondition", "scheduler condition"),
    ] {
        let result = ask(&mut d, word);
        assert_eq!(result["didYouMean"], pair(word, words), "{word}");
        assert_eq!(ids(&result)[0], "u1", "{word}");
    }
    let ranges = |result: &Json| result["hits"][0]["ranges"].as_array().unwrap().len();
    assert_eq!(ranges(&ask(&mut d, "racecondition")), 2);
    // A word with a number is not split. Otherwise each part must be a known word, or near to a known word.
    for word in ["2026racecondition", "racerunner"] {
        assert!(ask(&mut d, word).get("didYouMean").is_none(), "{word}");
    }
}

/// `perf` found `perl`, and `rate` found nothing, though sessions had `performance` and `separate`.
#[test]
fn a_part_of_a_word_is_found_last_and_marked() {
    let home = Home::new();
    let log = Log::new("s")
        .user("whole", "", "The limit of all")
        .user("short", "whole", "The performance is bad")
        .user("inside", "short", "Keep them separate")
        .user("other", "inside", "A script in perl");
    store(&home, log, "s");
    let mut d = Daemon::quiet_in(&home);
    let result = ask(&mut d, "perf");
    assert_eq!(ids(&result), ["short"]);
    assert_eq!(result["hits"][0]["inside"], json!(["perf"]));
    assert_eq!(result["hits"][0]["ranges"], json!([[4, 8]]));
    // A word with which others begin is short for them, and not mistyped.
    assert_eq!(
        result["didYouMean"],
        json!([{"word": "perf", "near": ["perl"]}])
    );
    let result = ask(&mut d, "rate limit");
    assert_eq!(ids(&result), ["whole", "inside"]);
    assert!(result["hits"][0].get("inside").is_none());
    assert_eq!(result["hits"][1]["inside"], json!(["rate"]));
    // A word that some entry has is not looked for in others.
    assert_eq!(ids(&ask(&mut d, "perl")), ["other"]);
}

/// A word with a number at its end was not looked into, also as a part of an identifier.
#[test]
fn a_part_of_a_word_with_a_number_is_found() {
    let home = Home::new();
    let log = Log::new("s")
        .user("alone", "", "The frobulator3 broke")
        .user("joined", "alone", "Make an oauth2Client")
        .user("id", "joined", "Commit deadbeef0123456");
    store(&home, log, "s");
    let mut d = Daemon::quiet_in(&home);
    for (word, id) in [
        ("frobulator", "alone"),
        ("oauth", "joined"),
        ("client", "joined"),
    ] {
        assert_eq!(ids(&ask(&mut d, word)), [id], "{word}");
    }
    assert!(ids(&ask(&mut d, "deadbeef")).is_empty());
}
