use super::*;

const MAX: Duration = Duration::from_secs(600);
const CLIENT: Answerer = Answerer::Client(ConnectionId(1));
const HOOK: Answerer = Answerer::Hook(0);

/// Questions for which an answer over 100 decides alone.
fn asks(max: Duration) -> Asks<u8> {
    Asks::new(max, |answer| *answer > 100)
}

fn ask(asks: &Asks<u8>, id: &str, who: &[Answerer], timeout: Duration) -> Question<u8> {
    let accepts = Box::new(|answer: &u8| match answer {
        0 => Err(Error::invalid_params("result", "is not an answer to this")),
        _ => Ok(()),
    });
    asks.ask(asking(id, &Cancel::new()), who.to_vec(), timeout, accepts)
}

fn asking(id: &str, cancel: &Cancel) -> Asking<u8> {
    Asking {
        id: EventId::new(id),
        asker: ConnectionId(9),
        session: Arc::from("s"),
        cancel: cancel.clone(),
        bound: Vec::new(),
        instead: Vec::new(),
        if_gone: Vec::new(),
    }
}

fn in_time(answers: &[(Answerer, u8)]) -> QuestionOutcome<u8> {
    QuestionOutcome::Settled {
        answers: answers.to_vec(),
        missing: Vec::new(),
    }
}

fn run(test: impl Future<Output = ()>) {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().build().unwrap().block_on(test);
}

fn spelled(answer: &str) -> Digest {
    Digest::of(&answer)
}

/// 256 remembered answers once kept their summaries, 540 MB, until the process ended. Now each remembered answer takes
/// the same memory.
#[test]
fn an_answer_is_remembered_by_its_digest() {
    let state = asks(MAX);
    let answered = state.state().answered.as_slices().0.len();
    assert_eq!(answered, 0);
    assert_eq!(size_of::<Digest>(), 16);
    let large = "x".repeat(1 << 10);
    assert_eq!(spelled(&large), spelled(&large.clone()));
    assert_ne!(spelled(&large), spelled(&large[1..]));
    run(async {
        for number in 0..2 * REMEMBERED {
            let id = number.to_string();
            let _question = ask(&state, &id, &[CLIENT], MAX);
            state
                .answer(&id, CLIENT, spelled(&large), 1)
                .unwrap_or_default();
        }
        assert!(state.state().answered.len() <= REMEMBERED);
    });
}

#[track_caller]
fn check_not_pending(result: Result<()>) {
    assert_eq!(result.unwrap_err().kind, Kind::EventNotPending);
}

#[test]
fn one_outcome_and_repeatable_acknowledgement() {
    run(async {
        let asks = asks(MAX);
        let question = ask(&asks, "e", &[CLIENT], MAX);
        assert!(asks.waits_for(CLIENT));
        asks.answer("e", CLIENT, spelled("{}"), 1).unwrap();
        asks.answer("e", CLIENT, spelled("{}"), 1).unwrap();
        check_not_pending(asks.answer("e", CLIENT, spelled("{\"cancel\":true}"), 2));
        assert_eq!(asks.outcome(question).await, in_time(&[(CLIENT, 1)]));
    });
}

#[test]
fn decided_when_all_have_answered_in_the_order_they_did() {
    run(async {
        let asks = asks(MAX);
        let question = ask(&asks, "e", &[CLIENT, HOOK], MAX);
        asks.answer("e", HOOK, spelled(""), 2).unwrap();
        check_not_pending(asks.answer("e", HOOK, spelled("other"), 3));
        assert!(asks.waits_for(CLIENT));
        asks.answer("e", CLIENT, spelled(""), 1).unwrap();
        assert!(!asks.waits_for(CLIENT));
        let expect = in_time(&[(HOOK, 2), (CLIENT, 1)]);
        assert_eq!(asks.outcome(question).await, expect);
    });
}

#[test]
fn decided_at_once_by_an_answer_that_decides_alone() {
    run(async {
        let asks = asks(MAX);
        let question = ask(&asks, "e", &[CLIENT, HOOK], MAX);
        asks.answer("e", HOOK, spelled(""), 200).unwrap();
        check_not_pending(asks.answer("e", CLIENT, spelled(""), 1));
        assert_eq!(asks.outcome(question).await, in_time(&[(HOOK, 200)]));
    });
}

#[test]
fn at_the_deadline_the_answers_so_far_count() {
    run(async {
        let asks = asks(MAX);
        let question = ask(&asks, "e", &[CLIENT, HOOK], Duration::from_millis(5));
        asks.answer("e", HOOK, spelled(""), 2).unwrap();
        let expect = QuestionOutcome::Settled {
            answers: vec![(HOOK, 2)],
            missing: vec![CLIENT],
        };
        assert_eq!(asks.outcome(question).await, expect);
        check_not_pending(asks.answer("e", CLIENT, spelled("{}"), 1));
    });
}

/// An answer of any form was once accepted, and ended the question.
#[test]
fn an_answer_of_another_form_leaves_the_question_open() {
    run(async {
        let asks = asks(MAX);
        let question = ask(&asks, "e", &[CLIENT], MAX);
        let refused = asks.answer("e", CLIENT, spelled("0"), 0).unwrap_err();
        assert_eq!(refused.kind, Kind::InvalidParams);
        check_not_pending(asks.answer("f", CLIENT, spelled("0"), 0));
        asks.answer("e", CLIENT, spelled("1"), 1).unwrap();
        assert_eq!(asks.outcome(question).await, in_time(&[(CLIENT, 1)]));
        check_not_pending(asks.answer("e", CLIENT, spelled("0"), 0));
    });
}

#[test]
fn the_end_aborts_what_waits_for_the_client_and_nothing_else() {
    run(async {
        let asks = asks(MAX);
        let cancel = Cancel::new();
        let accepts = Box::new(|_: &u8| Ok(()));
        let question = asks.ask(asking("f", &cancel), vec![CLIENT], MAX, accepts);
        cancel.cancel();
        check_not_pending(asks.answer("f", CLIENT, spelled("{}"), 1));
        assert_eq!(asks.outcome(question).await, QuestionOutcome::Aborted);

        let of_client = ask(&asks, "g", &[HOOK, CLIENT], MAX);
        let of_hook = ask(&asks, "h", &[HOOK], MAX);
        asks.end();
        assert_eq!(asks.outcome(of_client).await, QuestionOutcome::Aborted);
        asks.answer("h", HOOK, spelled(""), 3).unwrap();
        assert_eq!(asks.outcome(of_hook).await, in_time(&[(HOOK, 3)]));
        let later = ask(&asks, "i", &[CLIENT], MAX);
        assert_eq!(asks.outcome(later).await, QuestionOutcome::Aborted);
    });
}

#[test]
fn a_client_that_leaves_has_no_opinion_and_its_own_questions_are_aborted() {
    run(async {
        let asks = asks(MAX);
        let both = ask(&asks, "e", &[CLIENT, HOOK], MAX);
        let alone = ask(&asks, "f", &[CLIENT], MAX);
        asks.leave(ConnectionId(1), Some("another session"));
        assert!(asks.waits_for(CLIENT));
        asks.leave(ConnectionId(1), Some("s"));
        assert!(!asks.waits_for(CLIENT));
        assert_eq!(asks.outcome(alone).await, in_time(&[]));
        check_not_pending(asks.answer("e", CLIENT, spelled("{}"), 1));
        asks.answer("e", HOOK, spelled(""), 2).unwrap();
        assert_eq!(asks.outcome(both).await, in_time(&[(HOOK, 2)]));
        let asker = Answerer::Client(ConnectionId(9));
        let own = ask(&asks, "g", &[asker, HOOK], MAX);
        asks.leave(ConnectionId(9), None);
        assert_eq!(asks.outcome(own).await, QuestionOutcome::Aborted);
    });
}

#[test]
fn an_answer_counts_instead_of_one_that_cannot_come() {
    run(async {
        let asks = asks(MAX);
        let ask = |id: &str, instead: u8, timeout| {
            let asking = Asking {
                instead: vec![(CLIENT, instead)],
                ..asking(id, &Cancel::new())
            };
            asks.ask(asking, vec![CLIENT, HOOK], timeout, Box::new(|_| Ok(())))
        };
        let decided = ask("e", 200, MAX);
        asks.leave(ConnectionId(1), None);
        assert_eq!(asks.outcome(decided).await, in_time(&[(CLIENT, 200)]));
        let undecided = ask("f", 2, MAX);
        asks.leave(ConnectionId(1), None);
        asks.answer("f", HOOK, spelled(""), 3).unwrap();
        let expect = in_time(&[(CLIENT, 2), (HOOK, 3)]);
        assert_eq!(asks.outcome(undecided).await, expect);
        let late = ask("g", 2, Duration::from_millis(5));
        let expect = QuestionOutcome::Settled {
            answers: vec![(CLIENT, 2)],
            missing: vec![HOOK],
        };
        assert_eq!(asks.outcome(late).await, expect);
        let answered = ask("h", 200, MAX);
        asks.answer("h", CLIENT, spelled(""), 1).unwrap();
        asks.leave(ConnectionId(1), None);
        asks.answer("h", HOOK, spelled(""), 3).unwrap();
        let expect = in_time(&[(CLIENT, 1), (HOOK, 3)]);
        assert_eq!(asks.outcome(answered).await, expect);
    });
}

#[test]
fn no_more_time_than_the_asker_gave_for_those_that_are_bound() {
    run(async {
        let asks = asks(Duration::from_secs(100));
        let asking = Asking {
            bound: vec![CLIENT],
            ..asking("e", &Cancel::new())
        };
        let other = Answerer::Client(ConnectionId(2));
        let who = vec![CLIENT, other];
        let given = Duration::from_secs(20);
        let question = asks.ask(asking, who, given, Box::new(|_| Ok(())));
        let hour = Duration::from_secs(3600);
        assert!(asks.extend("e", CLIENT, hour).unwrap() <= given);
        assert!(asks.extend("e", other, hour).unwrap() > given);
        drop(question);
    });
}

#[test]
fn more_time_up_to_the_limit() {
    run(async {
        let asks = asks(Duration::from_secs(2));
        let question = ask(&asks, "e", &[CLIENT], Duration::from_millis(20));
        let left = asks.extend("e", CLIENT, Duration::from_secs(100)).unwrap();
        assert!(left <= Duration::from_secs(2) && left > Duration::from_secs(1));
        tokio::time::sleep(Duration::from_millis(40)).await;
        asks.answer("e", CLIENT, spelled("{}"), 7).unwrap();
        assert_eq!(asks.outcome(question).await, in_time(&[(CLIENT, 7)]));
    });
}
