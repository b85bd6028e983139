//! The search over all sessions: the query, the hits, the cursor, and the way to a hit and back.

use crate::harness::{NOW, Screen, opened, row, session};
use crate::tree::tour;
use treelined_tui::marked::MarkedText;
use treelined_tui::message::Row;
use treelined_tui::message::{
    CompletionQuery, Daemon, Effect, Failure, Filter, Hit, HitPage, NearWord, PagePosition,
    QueryCompletion, SearchMode, SearchQuery, Target,
};

/// Makes a hit; `word` is marked in `text`.
fn hit(session: &str, entry: &str, text: &str, word: &str) -> Hit {
    let chars = |part: &str| part.chars().count();
    let before = chars(text.split(word).next().unwrap());
    Hit {
        session_id: session.into(),
        session_name: format!("Session {session}"),
        entry_id: entry.into(),
        field: "text",
        at: NOW - 7200,
        excerpt: MarkedText::new(text, [(before, before + chars(word))]),
        on_active_path: true,
        left_at: None,
        reason: None,
        instead: None,
        left_here: None,
    }
}

fn hits() -> Vec<Hit> {
    vec![
        hit("tour", "q1", "Why does the build fail?", "build"),
        Hit {
            field: "result",
            on_active_path: false,
            left_at: Some("a1".into()),
            ..hit(
                "tour",
                "t1",
                "error[E0432]: unresolved import; the build has failed after 12 s, see the log of the build",
                "build",
            )
        },
        Hit {
            session_name: "漢字 in a name, and so long that it does not fit into a narrow terminal"
                .into(),
            field: "summary",
            on_active_path: false,
            ..hit(
                "wide",
                "s1",
                "漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字 cafe\u{301}s build 漢字",
                "cafe\u{301}s",
            )
        },
    ]
}

/// Opens the search and types a text.
fn searching(columns: u16, rows: u16, typed: &str) -> Screen {
    let mut screen = Screen::list(columns, rows, vec![session("a", "Fix the build", None, 30)]);
    screen.keys("ctrl+f").typed(typed);
    screen
}

fn last_query(screen: &Screen) -> SearchQuery {
    let query = screen.asked.iter().rev().find_map(|effect| match effect {
        Effect::Search(query) => Some(query.clone()),
        _ => None,
    });
    query.unwrap()
}

fn find(screen: &mut Screen, page: HitPage) {
    let generation = last_query(screen).generation;
    screen.daemon(Daemon::Found {
        generation,
        result: Ok(page),
        fault: None,
    });
}

fn page(hits: Vec<Hit>) -> HitPage {
    HitPage {
        total: hits.len() as u64,
        sessions: 2,
        hits,
        ..HitPage::default()
    }
}

#[test]
fn hits_are_grouped_by_session_with_marks_and_branch() {
    let mut screen = searching(80, 12, "");
    screen.check("search-begin");
    screen.typed("build");
    find(&mut screen, page(hits()));
    screen.check("search");
    screen.keys("down");
    screen.check_styled("search-styled");
    let mut screen = searching(40, 10, "build");
    find(&mut screen, page(hits()));
    screen.check("search-tiny");
}

/// The daemon ends a search once the page is certain. The true counts may then be higher.
#[test]
fn counts_that_are_only_the_least_are_said_to_be_so() {
    let mut screen = searching(80, 12, "build");
    let page = HitPage {
        at_least: true,
        ..page(hits())
    };
    find(&mut screen, page);
    let text = screen.text();
    assert!(text.contains("1/3+ · 2+ sessions"), "{text}");
}

#[test]
fn every_change_of_the_query_starts_a_new_search() {
    let mut screen = searching(80, 12, "bu");
    let first = last_query(&screen);
    assert_eq!((&*first.query, first.here), ("bu", false));
    let late = hits().remove(0);
    screen.keys("backspace");
    assert_eq!(last_query(&screen).query, "b");
    // The hits and the answer of the first search arrive late.
    let generation = first.generation;
    screen.daemon(Daemon::Hit {
        generation,
        hit: late,
    });
    screen.daemon(Daemon::Found {
        generation,
        result: Ok(page(hits())),
        fault: None,
    });
    assert!(screen.text().contains("Searching…"));
    screen.keys("backspace");
    assert_eq!(screen.asked.last(), Some(&Effect::StopSearch));
    screen.keys("tab");
    screen.typed("x");
    assert!(last_query(&screen).here);
}

#[test]
fn hits_appear_as_they_are_found_and_the_cursor_stays_on_its_hit() {
    let mut screen = searching(80, 12, "build");
    let generation = last_query(&screen).generation;
    let [one, two, three] = hits().try_into().unwrap();
    screen.daemon(Daemon::Hit {
        generation,
        hit: three.clone(),
    });
    screen.daemon(Daemon::Hit {
        generation,
        hit: one.clone(),
    });
    assert!(screen.text().contains("searching…"));
    screen.keys("down");
    assert_eq!(screen.model.search.selected(), Some(&one));
    screen.daemon(Daemon::Hit {
        generation,
        hit: two,
    });
    find(&mut screen, page(hits()));
    assert_eq!(screen.model.search.selected(), Some(&one));
    // The old hits stay until the new search has found something.
    screen.typed("s");
    assert!(screen.text().contains("Why does the build fail?"));
    find(&mut screen, page(vec![three]));
    assert!(!screen.text().contains("Why does the build fail?"));
    assert_eq!(screen.model.search.cursor, 0);
}

#[test]
fn a_bad_pattern_is_reported_at_the_input() {
    let mut screen = searching(80, 8, "/(build/");
    assert_eq!(last_query(&screen).query, "/(build/");
    let generation = last_query(&screen).generation;
    let failure = |kind: &str| Failure {
        kind: kind.into(),
        message: "is not a regular expression: unclosed group".into(),
    };
    screen.daemon(Daemon::Found {
        generation,
        result: Err(failure("invalidParams")),
        fault: Some(0),
    });
    screen.check_styled("search-bad-pattern");
    screen.keys("backspace");
    find(&mut screen, page(Vec::new()));
    screen.check("search-nothing");
    screen.typed("x");
    let generation = last_query(&screen).generation;
    screen.daemon(Daemon::Found {
        generation,
        result: Err(failure("ioError")),
        fault: None,
    });
    assert!(screen.text().contains("The sessions cannot be searched"));
}

#[test]
fn further_hits_are_requested_close_to_the_last_one() {
    let mut screen = searching(80, 8, "build");
    let many = |first: usize| -> Vec<Hit> {
        let hits = first..first + 20;
        hits.map(|at| hit("tour", &format!("e{at}"), &format!("build {at}"), "build"))
            .collect()
    };
    let first = HitPage {
        total: 40,
        next: Some("more".into()),
        ..page(many(0))
    };
    find(&mut screen, first);
    assert_eq!(last_query(&screen).cursor, None);
    screen.keys("pagedown pagedown pagedown pagedown");
    assert_eq!(last_query(&screen).cursor.as_deref(), Some("more"));
    let selected = screen.model.search.selected().cloned();
    find(
        &mut screen,
        HitPage {
            total: 40,
            ..page(many(20))
        },
    );
    assert_eq!(screen.model.search.selected().cloned(), selected);
    assert_eq!(screen.model.search.count(), 40);
    screen.keys(&"pagedown ".repeat(10));
    assert!(screen.text().contains("40/40"));
}

#[test]
fn a_hit_opens_its_session_at_its_entry_and_back() {
    let mut screen = searching(80, 16, "build");
    find(&mut screen, page(hits()));
    screen.rows = tour();
    screen.keys("down");
    screen.silent = true;
    screen.keys("enter");
    let open = screen.asked.pop().unwrap();
    assert_eq!(open, Effect::OpenSession(Target::Id("tour".into())));
    screen.silent = false;
    screen.ask(open);
    screen.check_styled("search-opened");
    assert_eq!(screen.model.tree.selected().unwrap().id, "t1");
    // Back to the hits, to the list, and to the tree.
    let top = screen.model.search.top;
    screen.keys("esc");
    assert!(screen.text().contains("ask: build"));
    assert_eq!((screen.model.search.top, top), (0, 0));
    assert_eq!(screen.model.search.selected().unwrap().entry_id, "t1");
    screen.keys("esc");
    assert!(screen.text().starts_with("Sessions"));
    screen.keys("esc");
    assert!(screen.text().starts_with("A tour"));
}

/// If the filter hides a hit, the nearest visible row was once selected instead.
#[test]
fn a_hit_that_the_filter_hides_is_shown_with_all_entries() {
    let mut screen = searching(80, 16, "build");
    screen.model.settings.filter = Filter::UserOnly;
    find(&mut screen, page(hits()));
    screen.silent = true;
    screen.keys("down enter");
    screen.daemon(Daemon::Opened(Ok(opened("tour"))));
    let users = vec![row("q1", "", "Why does the build fail?")];
    for (filter, rows) in [(Filter::UserOnly, users), (Filter::All, tour())] {
        screen.rows = rows;
        let tree = screen.asked.iter().rev().find_map(|effect| match effect {
            Effect::GetTree(query) => Some(query.clone()),
            _ => None,
        });
        let query = tree.unwrap();
        let place = PagePosition::Around("t1".into());
        assert_eq!((query.filter, &query.place), (filter, &place));
        let answer = screen.tree_answer(&query);
        screen.daemon(answer);
    }
    assert_eq!(screen.model.tree.selected().unwrap().id, "t1");
}

#[test]
fn a_search_in_the_list_goes_on_in_all_sessions() {
    let mut screen = Screen::list(80, 12, Vec::new());
    screen.typed("/cache").keys("ctrl+f");
    assert_eq!(last_query(&screen).query, "cache");
}

#[test]
fn the_search_of_a_tree_marks_what_it_has_found() {
    let found = |text: &str, start, end| Some(MarkedText::new(text, [(start, end)]));
    let rows = vec![
        Row {
            found: found("Why does the build fail?", 13, 18),
            ..row("q1", "", "Why does the build fail?")
        },
        Row {
            found: found("漢字 cafe\u{301}s \u{200b}build", 3, 8),
            ..row("q2", "", "not shown")
        },
    ];
    let mut screen = Screen::tree(60, 8, rows);
    screen.keys("/").typed("x");
    screen.check_styled("tree-found");
}

/// A question once found nothing, since every word had to occur.
#[test]
fn a_question_is_asked_and_exact_modes_are_a_key_away() {
    let mut screen = searching(80, 12, "why does it fail");
    assert_eq!(last_query(&screen).mode, SearchMode::Ask);
    let modes = [SearchMode::Words, SearchMode::Literal, SearchMode::Regex];
    for mode in modes.into_iter().chain([SearchMode::Ask]) {
        screen.keys("ctrl+o");
        assert_eq!(last_query(&screen).mode, mode);
        let prompt = format!("{}: why does it fail", mode.name());
        assert!(screen.text().contains(&prompt), "{prompt}");
    }
}

/// The answer to a question, with a misspelled word and more entries of a session than are shown.
fn answered(columns: u16, rows: u16) -> Screen {
    let mut screen = searching(columns, rows, "biuld cache");
    let mut hits = hits();
    hits[1].reason = Some("the cache was not stale".into());
    hits[1].instead = Some("Add the import.".into());
    let page = HitPage {
        more: vec![("tour".into(), 12)],
        near: vec![NearWord {
            word: "biuld".into(),
            near: Some("build".into()),
            is_taken: true,
        }],
        at_least: true,
        ..page(hits)
    };
    find(&mut screen, page);
    screen
}

#[test]
fn a_hit_says_why_its_branch_was_left_and_what_was_tried_instead() {
    let screen = answered(80, 14);
    screen.check("search-asked");
    answered(40, 10).check("search-asked-tiny");
    answered(200, 14).check("search-asked-wide");
    // Enter opens a hit. A similar word is used only if the user moves the cursor to it.
    assert_eq!(screen.model.search.selected().unwrap().entry_id, "q1");
}

#[test]
fn more_of_a_session_is_searched_in_it_alone_and_esc_goes_back() {
    let mut screen = answered(80, 14);
    screen.keys("down down enter");
    let query = last_query(&screen);
    assert_eq!(query.session_id.as_deref(), Some("tour"));
    assert!(
        screen
            .text()
            .starts_with("Search in one session · Session tour")
    );
    screen.keys("esc");
    assert_eq!(last_query(&screen).session_id, None);
    assert!(screen.text().starts_with("Search · all directories"));
}

#[test]
fn a_near_word_takes_the_place_of_one_that_no_entry_has() {
    let mut screen = answered(80, 14);
    screen.keys("up enter");
    assert_eq!(last_query(&screen).query, "build cache");
}

#[test]
fn a_filter_is_completed_by_tab() {
    let mut screen = searching(80, 12, "cache ro");
    let Some(Effect::CompleteQuery(asked)) = screen.asked.pop() else {
        panic!("nothing is completed")
    };
    let CompletionQuery {
        generation,
        query,
        position,
    } = asked;
    assert_eq!((&*query, position), ("cache ro", 8));
    let completion = QueryCompletion {
        start: 6,
        items: vec![("role:".into(), "messages of this role".into())],
    };
    screen.daemon(Daemon::QueryCompleted {
        generation,
        completion: completion.clone(),
    });
    screen.check("search-completion");
    screen.keys("tab");
    assert_eq!(last_query(&screen).query, "cache role:");
    // A late answer is ignored, and Tab has its usual action.
    screen.daemon(Daemon::QueryCompleted {
        generation,
        completion,
    });
    assert!(!last_query(&screen).here);
    screen.keys("tab");
    assert!(last_query(&screen).here);
}

#[test]
fn the_word_with_a_fault_is_marked() {
    let mut screen = searching(80, 8, " apples rol:user pears");
    let generation = last_query(&screen).generation;
    screen.daemon(Daemon::Found {
        generation,
        result: Err(Failure {
            kind: "invalidParams".into(),
            message: "character 8: `rol:` is not a filter".into(),
        }),
        fault: Some(7),
    });
    screen.check_styled("search-fault");
}

/// The daemon keeps a ranking for some minutes.
#[test]
fn a_ranking_that_is_forgotten_is_asked_for_again() {
    let mut screen = searching(80, 8, "build");
    let first = HitPage {
        total: 40,
        next: Some("more".into()),
        ..page(hits())
    };
    find(&mut screen, first);
    let query = last_query(&screen);
    assert_eq!(query.cursor.as_deref(), Some("more"));
    screen.daemon(Daemon::Found {
        generation: query.generation,
        result: Err(Failure {
            kind: "cursorExpired".into(),
            message: "the ranking is gone".into(),
        }),
        fault: None,
    });
    assert_eq!(last_query(&screen).cursor, None);
    assert!(screen.text().contains("Why does the build fail?"));
}
