//! The search over all sessions: the query, the hits, the cursor, and the way to a hit and back.

use crate::harness::{NOW, Screen, opened, row, session};
use crate::tree::tour;
use treelined_tui::marked::MarkedText;
use treelined_tui::message::{
    Daemon, Effect, Failure, Filter, Hit, HitPage, PagePosition, SearchQuery, Target,
};
use treelined_tui::model::rows::Row;

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

/// Shows the search, with the requests of what was typed.
fn searching(columns: u16, rows: u16, typed: &str) -> Screen {
    let mut screen = Screen::list(columns, rows, vec![session("a", "Fix the build", None, 30)]);
    screen.keys("ctrl+f").typed(typed);
    screen
}

fn last_query(screen: &Screen) -> SearchQuery {
    match screen.asked.last() {
        Some(Effect::Search(query)) => query.clone(),
        other => panic!("{other:?}"),
    }
}

fn find(screen: &mut Screen, page: HitPage) {
    let generation = last_query(screen).generation;
    let result = Ok(page);
    screen.daemon(Daemon::Found { generation, result });
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

/// The daemon ends a search once the page is certain; the counts are then the least ones.
#[test]
fn counts_that_are_only_the_least_are_said_to_be_so() {
    let mut screen = searching(80, 12, "build");
    let page = HitPage {
        at_least: true,
        ..page(hits())
    };
    find(&mut screen, page);
    let text = screen.text();
    assert!(
        text.contains("1 of at least 3 · at least 2 sessions"),
        "{text}"
    );
}

#[test]
fn every_change_of_the_query_starts_a_new_search() {
    let mut screen = searching(80, 12, "bu");
    let first = last_query(&screen);
    assert_eq!((&*first.query, first.here), ("bu", false));
    let late = hits().remove(0);
    screen.keys("backspace");
    assert_eq!(last_query(&screen).query, "b");
    // Hits and the answer of the first search are late.
    let generation = first.generation;
    screen.daemon(Daemon::Hit {
        generation,
        hit: late,
    });
    let result = Ok(page(hits()));
    screen.daemon(Daemon::Found { generation, result });
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
        message: "is no regular expression: unclosed group".into(),
    };
    screen.daemon(Daemon::Found {
        generation,
        result: Err(failure("invalidParams")),
    });
    screen.check("search-bad-pattern");
    screen.keys("backspace");
    find(&mut screen, page(Vec::new()));
    screen.check("search-nothing");
    screen.typed("x");
    let generation = last_query(&screen).generation;
    screen.daemon(Daemon::Found {
        generation,
        result: Err(failure("ioError")),
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
    assert!(screen.text().contains("search: build"));
    assert_eq!((screen.model.search.top, top), (0, 0));
    assert_eq!(screen.model.search.selected().unwrap().entry_id, "t1");
    screen.keys("esc");
    assert!(screen.text().starts_with("Sessions"));
    screen.keys("esc");
    assert!(screen.text().starts_with("A tour"));
}

/// The nearest visible row was selected in place of a hit that the filter hides.
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
