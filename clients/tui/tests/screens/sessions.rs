//! The list of sessions.

use crate::harness::{Screen, session};
use treelined_tui::message::{Daemon, Effect, Event, SessionRow, Sort, Target};

fn some() -> Vec<SessionRow> {
    vec![
        session("a", "Fix the build", None, 30),
        session("b", "With the cache cleared", Some("/s/a.jsonl"), 120),
        session("c", "A detour", Some("b"), 7200),
        session("d", "Without the cache", Some("a"), 90_000),
        SessionRow {
            name: None,
            first_message: "What is in this repository?".into(),
            ..session("e", "", None, 400_000)
        },
        SessionRow {
            name: None,
            ..session("f", "", None, 40_000_000)
        },
        SessionRow {
            damage: Some("the file has no header".into()),
            ..session("", "", None, 0)
        },
    ]
}

#[test]
fn sessions_are_threaded() {
    Screen::list(80, 12, some()).check("sessions");
    Screen::list(40, 10, some())
        .keys("down down")
        .check("sessions-tiny");
}

/// The daemon reports that the list has changed. The cursor stays on its session.
#[test]
fn the_list_follows_the_changes_of_the_directory() {
    let mut screen = Screen::list(80, 12, some());
    screen.keys("down down");
    let new = session("new", "Written elsewhere", None, 1);
    screen.sessions.insert(0, new);
    screen.daemon(Daemon::Event(Event::SessionsChanged));
    assert!(screen.text().contains("Written elsewhere"));
    assert!(
        screen.text().contains("›   │  └─ A detour") || screen.text().contains("› │  └─ A detour")
    );
}

#[test]
fn scope_sort_and_named_only_have_a_key_each() {
    let mut screen = Screen::list(100, 10, some());
    screen.silent = true;
    screen.keys("tab");
    screen.silent = false;
    let query = match &*screen.asked {
        [Effect::ListSessions(query)] => query.clone(),
        other => panic!("{other:?}"),
    };
    assert!(!query.here);
    let page = treelined_tui::message::SessionPage {
        rows: some(),
        team: Vec::new(),
        next: None,
    };
    screen.daemon(treelined_tui::message::Daemon::Sessions {
        generation: query.generation,
        result: Ok(page),
    });
    screen.check("sessions-all");
    for sort in [Sort::Recent, Sort::Created, Sort::Name, Sort::Threaded] {
        screen.keys("ctrl+s");
        assert_eq!(screen.model.sessions.sort, sort);
    }
    screen.keys("ctrl+o");
    assert!(screen.model.sessions.named);
}

#[test]
fn typing_searches() {
    let mut screen = Screen::list(80, 8, Vec::new());
    screen.check("sessions-empty");
    screen.typed("/build");
    screen.check("sessions-search");
    screen.keys("esc");
    assert!(screen.model.sessions.search.is_empty());
    // An additional Esc does not quit the program.
    screen.keys("esc");
    assert!(screen.asked.is_empty());
    assert!(screen.text().contains("q quits."));
    screen.keys("q");
    assert_eq!(screen.asked, [Effect::Quit]);
}

/// While the daemon read the files of thousands of sessions for the first time, the screen once did not change. Before
/// the daemon was connected, the list once said that there were no sessions.
#[test]
fn the_first_read_of_all_sessions_shows_progress() {
    let mut screen = Screen::unconnected(80, 8);
    assert!(screen.text().contains("Starting the daemon…"));
    screen.silent = true;
    screen.connect();
    assert!(screen.text().contains("Reading the sessions…"));
    assert!(screen.model.animates());
    screen.tick(3200);
    screen.check("sessions-reading");
    screen.silent = false;
    screen.sessions = some();
    for effect in std::mem::take(&mut screen.asked) {
        screen.ask(effect);
    }
    assert!(!screen.model.animates());
    assert!(!screen.text().contains("eading"));
    screen.silent = true;
    screen.keys("tab");
    assert!(screen.text().contains("1/7+ ↓ · reading…"));
}

#[test]
fn a_session_is_renamed_and_trashed_with_confirmation() {
    let mut screen = Screen::list(80, 16, some());
    screen.keys("R");
    screen.check("sessions-rename");
    screen.typed("!").keys("enter");
    assert_eq!(
        screen.asked,
        [Effect::Rename {
            session_id: "a".into(),
            name: "Fix the build!".into()
        }]
    );
    screen.keys("D");
    screen.check("sessions-trash");
    screen.keys("enter");
    assert_eq!(screen.asked.len(), 1, "Enter does not confirm");
    screen.keys("D y");
    assert_eq!(
        screen.asked.last(),
        Some(&Effect::Trash {
            session_id: "a".into()
        })
    );
}

#[test]
fn a_damaged_session_shows_the_reason() {
    let mut screen = Screen::list(80, 12, some());
    screen.keys("end enter");
    assert!(screen.text().lines().last().unwrap().contains("no header"));
    assert!(screen.asked.is_empty());
}

/// The first page is shown before the second is requested.
#[test]
fn thousands_of_sessions_load_page_by_page() {
    let mut screen = Screen::list(80, 12, Vec::new());
    screen.silent = true;
    screen.keys("tab");
    let mut pages = 0;
    while let Some(Effect::ListSessions(query)) = screen.asked.pop() {
        let rows: Vec<SessionRow> = (0..query.limit)
            .map(|at| session(&format!("{pages}-{at}"), "one of many", None, 60))
            .collect();
        pages += 1;
        let next = (pages < 6).then(|| pages.to_string());
        let page = treelined_tui::message::SessionPage {
            rows,
            team: Vec::new(),
            next,
        };
        screen.daemon(treelined_tui::message::Daemon::Sessions {
            generation: query.generation,
            result: Ok(page),
        });
        assert!(screen.text().contains("one of many"));
    }
    assert_eq!(screen.model.sessions.rows().len(), 200 + 5 * 1000);
    screen.keys("end");
    assert!(screen.text().contains("5200/5200"));
}

/// A session without a file here is shown with its machine, and opened by its id.
#[test]
fn sessions_of_other_machines_are_listed_and_opened() {
    let mut screen = Screen::list(80, 10, Vec::new());
    screen.sessions = vec![SessionRow {
        open_on: vec!["build-7".into()],
        queued: false,
        ..session("a", "Fix the build", None, 30)
    }];
    let elsewhere = |id: &str, name: Option<&str>, host: &str| SessionRow {
        path: String::new(),
        name: name.map(str::to_owned),
        host: Some(host.into()),
        ..session(id, "", None, 7200)
    };
    screen.team = vec![
        elsewhere("t", Some("The release"), "build-7"),
        elsewhere("0198c1f0-5e00-7000-8000-000000000002", None, ""),
    ];
    screen.daemon(Daemon::Event(Event::SessionsChanged));
    screen.keys("down");
    screen.check("sessions-team");
    screen.silent = true;
    screen.keys("enter");
    let asked = screen.asked.last();
    assert_eq!(asked, Some(&Effect::OpenSession(Target::Id("t".into()))));
}

/// Columns were cut at widths that did not depend on the screen.
#[test]
fn a_wide_screen_shows_more_of_each_column() {
    let row = SessionRow {
        cwd: "/home/ada/projects/a-shop-for-books/the-front-of-the-shop".into(),
        marks: vec!["on improve-the-command-that-shows-the-status".into()],
        ..session("a", "Fix the build", None, 30)
    };
    let mut screen = Screen::list(200, 10, vec![row.clone()]);
    screen.keys("tab");
    let text = screen.text();
    assert!(
        text.contains(&row.cwd) && text.contains(&row.marks[0]),
        "{text}"
    );
}

#[test]
fn the_status_names_the_machines_that_have_the_session_open() {
    let mut screen = Screen::tree(100, 8, Vec::new());
    for (session, hosts, is_shown) in [
        ("other", vec!["laptop".to_owned()], false),
        (
            "tour",
            vec!["build-7".to_owned(), "laptop".to_owned()],
            true,
        ),
        ("tour", Vec::new(), false),
    ] {
        screen.daemon(Daemon::OpenOn {
            session_id: session.into(),
            hosts,
        });
        let text = screen.text();
        assert_eq!(
            text.contains("also open on build-7, laptop"),
            is_shown,
            "{text}"
        );
        assert_eq!(text.contains("also open"), is_shown, "{text}");
    }
}

#[test]
fn the_status_says_that_entries_wait_for_the_team() {
    let mut screen = Screen::tree(100, 8, Vec::new());
    assert!(!screen.text().contains("waits for the team"));
    for queued in [true, false] {
        screen.daemon(Daemon::Event(Event::Queued { queued, lost: 0 }));
        let text = screen.text();
        assert_eq!(text.contains("waits for the team"), queued, "{text}");
        assert!(!text.contains("deleted"), "{text}");
    }
    let lost = Event::Queued {
        queued: false,
        lost: 2,
    };
    screen.daemon(Daemon::Event(lost));
    let text = screen.text();
    let told = "Another machine has deleted the session: 2 entries are only in the trash";
    assert!(text.contains(told), "{text}");
}

fn of_tools() -> Vec<SessionRow> {
    let of = |row: SessionRow, cwd: &str, source: Option<&str>| SessionRow {
        cwd: cwd.into(),
        source: source.map(Into::into),
        ..row
    };
    vec![
        of(
            session("a", "Fix the build", None, 30),
            "/home/ada/project",
            Some("codex"),
        ),
        of(
            session("b", "Plan a trip", None, 7200),
            "/home/ada/trip",
            None,
        ),
        of(
            session("c", "With the cache cleared", Some("a"), 90_000),
            "/home/ada/project",
            Some("codex"),
        ),
        of(
            session("d", "Pack", Some("b"), 700_000),
            "/home/ada/trip",
            Some("claude-code"),
        ),
        of(
            session("e", "Last year", None, 40_000_000),
            "/home/ada/project",
            None,
        ),
    ]
}

/// A list of a hundred sessions once had no groups, although the sessions belong to several projects and tools.
#[test]
fn sessions_are_grouped_by_project_tool_and_date() {
    let mut screen = Screen::list(80, 14, of_tools());
    screen.keys("down down V");
    screen.check("sessions-by-project");
    assert_eq!(screen.model.sessions.selected().unwrap().id, "c");
    screen.keys("V");
    screen.check("sessions-by-tool");
    screen.keys("V");
    screen.check("sessions-by-date");
    // A click counts the headings as lines: the third line is the first row of the second group.
    screen.keys("V V home");
    let row = screen
        .text()
        .lines()
        .position(|line| line.contains("Plan a trip"))
        .unwrap();
    screen.click(4, u16::try_from(row).unwrap());
    assert_eq!(screen.model.sessions.selected().unwrap().id, "b");
    let mut small = Screen::list(40, 10, of_tools());
    small.keys("V end");
    small.check("sessions-by-project-tiny");
    small.keys("home");
    assert!(
        small.text().contains("/home/ada/project"),
        "{}",
        small.text()
    );
}

#[test]
fn sessions_are_filtered_by_project_tool_and_date() {
    let mut screen = Screen::list(100, 12, of_tools());
    screen.keys("W");
    let text = screen.text();
    assert!(
        text.contains("last 24 hours") && !text.contains("Last year"),
        "{text}"
    );
    assert!(!text.contains("With the cache"), "{text}");
    screen.keys("W W W");
    assert!(screen.text().contains("Last year"));
    screen.silent = true;
    let asked = |screen: &mut Screen| match screen.asked.pop() {
        Some(Effect::ListSessions(query)) => query,
        other => panic!("{other:?}"),
    };
    screen.keys("down P");
    let query = asked(&mut screen);
    assert_eq!(query.project.as_deref(), Some("/home/ada/trip"));
    let page = |ids: &[&str]| treelined_tui::message::SessionPage {
        rows: of_tools()
            .into_iter()
            .filter(|row| ids.contains(&&*row.id))
            .collect(),
        team: Vec::new(),
        next: None,
    };
    screen.daemon(Daemon::Sessions {
        generation: query.generation,
        result: Ok(page(&["b", "d"])),
    });
    assert!(
        screen
            .text()
            .contains("Sessions · /home/ada/trip · threaded"),
        "{}",
        screen.text()
    );
    screen.keys("A");
    let query = asked(&mut screen);
    assert_eq!(query.tool, Some("claude-code"));
    screen.daemon(Daemon::Sessions {
        generation: query.generation,
        result: Ok(page(&[])),
    });
    let text = screen.text();
    assert!(
        text.contains("There is no session (Claude Code) of /home/ada/trip."),
        "{text}"
    );
}
