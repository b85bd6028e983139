use super::*;
use crate::entry::{Kind, Role};
use crate::search::FieldKind;
use std::ops::Range;

fn terms(text: &str) -> Vec<Term> {
    let mut terms = Vec::new();
    Tokenizer::default().each(text, |token| terms.push(token.term));
    terms
}

fn letters(text: &str) -> Vec<(String, Form)> {
    let mut all = Vec::new();
    Tokenizer::default().each(text, |token| {
        all.push((token.letters.to_owned(), token.form))
    });
    all
}

fn stemmed(word: &str) -> String {
    let mut word = word.to_owned();
    stem::stem(&mut word);
    word
}

#[test]
fn words_of_one_stem_are_one_term() {
    for (one, other) in [
        ("configuration", "configure"),
        ("migrations", "migrate"),
        ("running", "run"),
        ("went", "go"),
        ("tries", "try"),
        ("caches", "cache"),
        ("connected", "connection"),
        ("Users'", "user"),
        ("Melanie's", "melanie"),
    ] {
        assert_eq!(terms(one), terms(other), "{one} {other}");
    }
    for (word, stem) in [
        ("caresses", "caress"),
        ("ponies", "poni"),
        ("hopping", "hop"),
        ("falling", "fall"),
        ("relational", "relat"),
        ("adjustable", "adjust"),
        ("sky", "ski"),
        ("as", "as"),
        ("e2e", "e2e"),
    ] {
        assert_eq!(stemmed(word), stem);
    }
    assert_ne!(terms("universe"), terms("separate"));
}

#[test]
fn identifiers_are_terms_whole_and_in_parts() {
    use Form::{Part, Whole, Word};
    let expect = |text: &str, expected: &[(&str, Form)]| {
        let found = letters(text);
        let found: Vec<_> = found
            .iter()
            .map(|(text, form)| (text.as_str(), *form))
            .collect();
        assert_eq!(found, expected, "{text}");
    };
    expect(
        "getTree",
        &[("get", Part), ("tree", Part), ("gettree", Whole)],
    );
    expect(
        "get_tree",
        &[("get", Part), ("tree", Part), ("gettree", Whole)],
    );
    expect(
        "HTTPServer",
        &[("http", Part), ("server", Part), ("httpserver", Whole)],
    );
    // Once a capital letter after a digit did not begin a part.
    expect(
        "sha256Digest",
        &[("sha256", Part), ("digest", Part), ("sha256digest", Whole)],
    );
    expect("H2O v1B", &[("h2o", Word), ("v1b", Word)]);
    expect("race-condition", &[("race", Word), ("condition", Word)]);
    expect(
        "src/find/run_all.rs",
        &[
            ("src", Word),
            ("find", Word),
            ("run", Part),
            ("all", Part),
            ("runall", Whole),
            ("rs", Word),
            ("src/find/runall.rs", Whole),
            ("runall.rs", Whole),
        ],
    );
    expect(
        "The end. It's 3.5",
        &[
            ("the", Word),
            ("end", Word),
            ("it", Word),
            ("3", Word),
            ("5", Word),
            ("3.5", Whole),
        ],
    );
    expect(
        "東京都",
        &[
            ("東", Part),
            ("京", Part),
            ("東京", Word),
            ("都", Part),
            ("京都", Word),
        ],
    );
    expect(&"x".repeat(65), &[]);
}

/// Splitting runs of joined parts once took quadratic time.
#[test]
fn long_runs_are_split_in_linear_time() {
    for text in [
        "a.".repeat(1 << 17),
        "aB".repeat(1 << 17),
        "東".repeat(1 << 17),
    ] {
        let mut count = 0;
        Tokenizer::default().each(&text, |_| count += 1);
        assert!(count >= 1 << 17);
    }
}

#[test]
fn common_words_count_only_if_there_are_no_others() {
    let question = Question::parse("What did we decide about the build cache?").unwrap();
    let words = question.terms().iter().map(|term| question.word(term.word));
    assert_eq!(words.collect::<Vec<_>>(), ["decide", "build", "cache"]);
    let question = Question::parse("to be or not to be").unwrap();
    assert_eq!(question.terms().len(), 4);
    // Each version number has these digits.
    let question = Question::parse("fails since v0.3.2").unwrap();
    let words = question.terms().iter().map(|term| question.word(term.word));
    assert_eq!(words.collect::<Vec<_>>(), ["fails", "since", "v0", "v0"]);
    let question = Question::parse("what is it").unwrap();
    assert_eq!(question.terms().len(), 3);
    assert!(Question::parse(" ?! ").is_none());
}

/// A pasted stack trace was once refused, since it had more than 64 words.
#[test]
fn of_a_long_question_the_first_and_the_last_words_count() {
    let middle: String = (0..500).map(|number| format!("frame{number} ")).collect();
    let question =
        Question::parse(&format!("panicked overflow {middle} caused by ledger")).unwrap();
    assert_eq!(question.len(), 64);
    let word = |place: usize| question.word(place);
    assert_eq!(
        (word(0), word(1), word(63)),
        ("panicked", "overflow", "ledger")
    );
    assert!(question.terms().len() < 65);
    let humps = Question::parse(&"aBcD ".repeat(10_000)).unwrap();
    assert_eq!((humps.len(), humps.terms().len()), (64, 6));
}

fn passage_of(question: &str, text: &str) -> (Passage, crate::search::Excerpt) {
    let question = Question::parse(question).unwrap();
    let mut reader = Reader::new(&question, vec![1.0; question.terms().len()]);
    let passage = reader.passage(text).expect("a passage");
    let excerpt = reader.excerpt(text, &passage);
    (passage, excerpt)
}

/// Snippets once showed the first occurrence of any word. Half of the snippets lacked one of the two words of the
/// question.
#[test]
fn a_passage_has_the_most_words_nearest_together() {
    let text = format!(
        "The exit was far away. {}And then: exit code 7, which means a code of the shell. {}",
        "Some other text. ".repeat(40),
        "More text, code after code. ".repeat(20)
    );
    let (passage, excerpt) = passage_of("exit code", &text);
    assert_eq!((passage.run, passage.terms, passage.extent), (2, 2, 1));
    let chars: Vec<char> = excerpt.text.chars().collect();
    let marked = excerpt
        .ranges
        .iter()
        .map(|range| chars[range.clone()].iter().collect::<String>());
    assert_eq!(marked.take(3).collect::<Vec<_>>(), ["exit", "code", "code"]);
    assert!(excerpt.text.starts_with('…') && excerpt.text.ends_with('…'));
    assert!(excerpt.text.chars().count() <= 200);
}

#[test]
fn a_word_in_an_identifier_is_cut_and_other_forms_are_marked_whole() {
    let (passage, _) = passage_of("cached tree", "getTree reads the caches");
    assert_eq!((passage.terms, passage.uncut), (2, 1));
    let (passage, _) = passage_of("gettree", "call getTree");
    assert_eq!(
        (passage.terms, passage.uncut, passage.places),
        (1, 1, vec![Range { start: 5, end: 12 }])
    );
}

#[test]
fn a_run_of_words_that_repeat_is_found() {
    let (passage, _) = passage_of("to be or not to be", "whether to be or not to be, that");
    assert_eq!(passage.run, 6);
    let (passage, _) = passage_of("exit exit code", "exit code");
    assert_eq!(passage.run, 2);
}

#[test]
fn rare_terms_in_weighty_fields_and_short_entries_score_more() {
    let corpus = Corpus {
        entries: 1000,
        sessions: 10,
        branches: 20,
        terms: 100_000,
    };
    let count = |entries| TermCount {
        entries,
        branches: 1,
        sessions: 1,
    };
    let counts = |weight, terms| UnitCounts { weight, terms };
    let score =
        |with, weight, terms| TermScorer::new(&corpus, count(with)).entry(counts(weight, terms));
    assert!(score(1, 8, 100) > score(100, 8, 100));
    assert!(score(1, 8, 100) > score(1, 4, 100));
    assert!(score(1, 8, 100) > score(1, 8, 1000));
    assert!(score(1000, 8, 100) > 0.0);
    assert!(
        field_weight(Kind::Label, FieldKind::Labels, Role::None)
            > field_weight(Kind::Message, FieldKind::Text, Role::User)
    );
    assert!(closeness(1.0, 1.0, 1.0) > closeness(0.0, 1.0, 1.0));
    assert!(recency(1000, 1000) > recency(0, 1 << 40) && recency(5, 0) < 1.06);
}

fn near(term: usize, words: &str) -> Taken<'_> {
    let is_inside = false;
    Taken {
        term,
        words,
        is_inside,
    }
}

#[test]
fn a_known_word_takes_the_place_of_a_mistyped_one() {
    let question = Question::parse("the shceduler queue").unwrap();
    let taken = question.with_taken([near(0, "scheduler")]);
    let right = Question::parse("the scheduler queue").unwrap();
    let term = |question: &Question, number: usize| question.terms()[number].term;
    assert_eq!(term(&taken, 1), term(&right, 0));
    assert_eq!(term(&taken, 0), term(&right, 1));
    assert!(taken.terms()[1].weight < right.terms()[0].weight);
    assert_eq!(taken.places(term(&right, 0)), [1]);
    // A word that the question has already keeps its weight.
    let both = Question::parse("schedulers shceduler").unwrap();
    let both = both.with_taken([near(1, "scheduler")]);
    assert_eq!(both.terms().len(), 1);
    assert_eq!(both.places(term(&both, 0)), [0, 1]);
    assert!((both.terms()[0].weight - 1.0).abs() < f64::EPSILON);
}

/// `rate` is a part of `separate`, but it is not a word of a phrase there.
#[test]
fn a_word_inside_of_another_is_marked_and_weighs_least() {
    let inside = |words| Taken {
        is_inside: true,
        ..near(0, words)
    };
    let question = Question::parse("rate limit").unwrap();
    let taken = question.with_taken([inside("separate"), inside("generate")]);
    let weights = taken.terms().iter().map(|term| term.weight);
    assert!(weights.clone().sum::<f64>() < 2.0 && taken.terms().len() == 3);
    let mut reader = Reader::new(&taken, weights.collect());
    let passage = reader.passage("Separate limits, a house").unwrap();
    assert_eq!(passage.places, [4..8, 9..15]);
    assert_eq!(
        (passage.inside, passage.run, passage.uncut),
        (vec![0], 1, 1)
    );
    // Another form of the known word lacks the part.
    let passage = reader.passage("separating").unwrap();
    assert_eq!(passage.places, vec![0..10]);
}

fn near_words(wrong: &str, known: &str) -> Option<usize> {
    MistypedWord::new(wrong).distance(known)
}

#[test]
fn wrong_words_have_near_ones() {
    assert_eq!(near_words("raceconditon", "racecondition"), Some(1));
    assert_eq!(near_words("cofnig", "config"), Some(1));
    assert_eq!(near_words("cat", "car"), None);
    assert_eq!(near_words("config", "confirm"), None);
    assert_eq!(near_words("configg", "confirm"), Some(2));
    assert_eq!(near_words("uber", "über"), Some(1));
    assert_eq!(near_words("очередт", "очередь"), Some(1));
    // Three letters of six bytes.
    assert_eq!(near_words("кот", "код"), None);
}

/// Words whose letters differ too much are skipped without a comparison. None of the skipped words may be near.
#[test]
fn no_near_word_is_passed_over() {
    let mut state = 7_u64;
    let mut next = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    let mut near = 0;
    for _ in 0..20_000 {
        let len = 4 + next(6);
        let mut word = |len: u64| -> String {
            let letter = |_| ['a', 'b', 'é', 'ж'][usize::try_from(next(4)).unwrap()];
            (0..len).map(letter).collect()
        };
        let (one, other) = (word(len), word(len));
        let most = if one.chars().count() < 7 { 1 } else { 2 };
        let distance = strsim::damerau_levenshtein(&one, &other);
        let expected = (one != other && distance <= most).then_some(distance);
        assert_eq!(near_words(&one, &other), expected, "{one} {other}");
        near += usize::from(expected.is_some());
    }
    assert!(near > 100, "{near}");
}

/// A word has the same term, whatever was read before. This is also true after another word has taken its slot in the
/// cache, and for long words, which have no slot.
#[test]
fn known_words_change_no_term() {
    let mut shared = Tokenizer::default();
    let mut of_shared = |word: &str| {
        let mut terms = Vec::new();
        shared.each(word, |token| terms.push(token.term));
        terms
    };
    for _ in 0..2 {
        for number in 0..20_000 {
            let word = format!("word{number}ing");
            assert_eq!(of_shared(&word), terms(&word));
        }
        for word in [
            "caches",
            "caching",
            "Größe",
            "\0",
            "_",
            &"x".repeat(24),
            &"x".repeat(25),
        ] {
            assert_eq!(of_shared(word), terms(word), "{word}");
        }
    }
}
