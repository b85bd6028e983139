//! The search over all sessions, and the search in the tree.

use super::{Answer, Effect, Entry, Fixture, chain};
use treelined_tui::marked::MarkedText;
use treelined_tui::message::{
    CompletionQuery, Failure, Filter, Folds, Hit, HitPage, NearWord, PagePosition, SearchMode,
    SearchQuery, TreeQuery,
};

fn search(generation: u64, query: &str) -> Effect {
    search_by(SearchMode::Words, generation, query)
}

fn search_by(mode: SearchMode, generation: u64, query: &str) -> Effect {
    Effect::Search(SearchQuery {
        generation,
        query: query.into(),
        mode,
        session_id: None,
        here: false,
        cursor: None,
        limit: 200,
    })
}

impl Fixture {
    /// Writes a session with one user message into the session directory.
    fn add_session(&self, id: &str, said: &str) {
        let line = |value: serde_json::Value| format!("{value}\n");
        let time = "2026-11-21T19:00:00.000Z";
        let header = serde_json::json!({"type": "session", "version": 3, "id": id, "timestamp": time, "cwd": "/p"});
        let message = serde_json::json!({
            "type": "message", "id": "m1", "parentId": null, "timestamp": time,
            "message": {"role": "user", "content": said},
        });
        let sessions = self.folder.path().join("sessions");
        let file = sessions.join(format!("{id}.jsonl"));
        std::fs::write(file, line(header) + &line(message)).unwrap();
    }

    /// Returns the hits that arrived before the end of a search, and the result of the search.
    async fn found(&mut self, generation: u64) -> (Vec<Hit>, Result<HitPage, Failure>) {
        let streamed = std::cell::RefCell::new(Vec::new());
        let ended = |message| match message {
            Answer::Hit {
                generation: of,
                hit,
            } if of == generation => {
                streamed.borrow_mut().push(hit);
                None
            }
            Answer::Found {
                generation: of,
                result,
                ..
            } if of == generation => Some(result),
            _ => None,
        };
        let result = self.wait(ended).await;
        (streamed.into_inner(), result)
    }
}

#[tokio::test]
async fn all_sessions_are_searched_and_hits_are_streamed() {
    let entries: Vec<Entry> = chain(None, 0, 2).collect();
    let mut fixture = Fixture::open(&entries).await;
    for at in 0..100 {
        fixture.add_session(&format!("s{at}"), "nothing else");
    }
    fixture.add_session("one", "漢字 cafe\u{301}s and a Build");
    fixture.add_session("two", "the build fails");
    fixture.daemon.run(search(1, "build"));
    let (streamed, result) = fixture.found(1).await;
    let page = result.unwrap();
    assert_eq!((page.total, page.sessions, page.unread), (2, 2, 0));
    assert_eq!(page.hits.len(), 2);
    assert!(!streamed.is_empty());
    assert!(
        streamed.iter().all(|hit| page.hits.contains(hit)),
        "{streamed:?}"
    );
    let one = page
        .hits
        .iter()
        .find(|hit| hit.session_id == "one")
        .unwrap();
    let marked = MarkedText::new("漢字 cafe\u{301}s and a Build", [(16, 21)]);
    assert_eq!((&one.excerpt, &*one.entry_id), (&marked, "m1"));
    assert!(one.on_active_path);
    fixture.daemon.run(search(2, "/f.il(s/"));
    let failure = fixture.found(2).await.1.unwrap_err();
    assert_eq!(failure.kind, "invalidParams");
    let reason = "character 1: is not a regular expression: unclosed group";
    assert_eq!(failure.message, reason);
    fixture.daemon.run(search(3, "/f.ils/"));
    assert_eq!(fixture.found(3).await.1.unwrap().total, 1);
}

/// Only one search runs at a time: the hits of a cancelled search do not get into the next search.
#[tokio::test]
async fn a_new_search_replaces_the_running_one() {
    let entries: Vec<Entry> = chain(None, 0, 2).collect();
    let mut fixture = Fixture::open(&entries).await;
    for at in 0..200 {
        fixture.add_session(&format!("s{at}"), &format!("build number {at}"));
    }
    let queries = ["b", "bu", "bui", "number 17", "number 199"];
    for (at, query) in queries.into_iter().enumerate() {
        fixture.daemon.run(search(at as u64, query));
    }
    let (streamed, result) = fixture.found(4).await;
    assert_eq!(result.unwrap().total, 1);
    assert!(streamed.iter().all(|hit| hit.session_id == "s199"));
    fixture.daemon.run(search(5, "build"));
    fixture.daemon.run(Effect::StopSearch);
    let (_, result) = fixture.found(5).await;
    assert!(result.is_err(), "{result:?}");
}

/// Rows once showed only previews, and the preview of a long entry may not have the match.
#[tokio::test]
async fn rows_of_a_search_have_marks() {
    let mut entries: Vec<Entry> = chain(None, 0, 2).collect();
    entries.push(Entry {
        parent: Some(1),
        is_user: true,
    });
    let mut fixture = Fixture::open(&entries).await;
    fixture.daemon.run(Effect::GetTree(TreeQuery {
        generation: 1,
        filter: Filter::Default,
        query: "2 SAYS".into(),
        folds: Folds::default(),
        archived: false,
        sessions: false,
        guide_columns: 13,
        place: PagePosition::Leaf,
        limit: 200,
        reload: true,
        others: None,
    }));
    let page = |message| match message {
        Answer::Tree { result, .. } => Some(result),
        _ => None,
    };
    let page = fixture.wait(page).await.unwrap();
    assert_eq!(page.rows.len(), 1);
    let marked = MarkedText::new("says 2", [(0, 4), (5, 6)]);
    assert_eq!(page.rows[0].found.as_ref(), Some(&marked));
}

/// The search of all sessions once took words and patterns, but no filters.
#[tokio::test]
async fn the_search_of_all_sessions_takes_filters() {
    let entries: Vec<Entry> = chain(None, 0, 2).collect();
    let mut fixture = Fixture::open(&entries).await;
    fixture.add_session("s1", "apples and pears");
    fixture.add_session("s2", "apples");
    fixture
        .daemon
        .run(search(1, "apples role:user cwd:/p -pears"));
    let (_, result) = fixture.found(1).await;
    let hits = result.unwrap().hits;
    let sessions: Vec<_> = hits.iter().map(|hit| hit.session_id.as_str()).collect();
    assert_eq!(sessions, ["s2"]);
    fixture.daemon.run(search(2, "apples rol:user"));
    let (_, result) = fixture.found(2).await;
    let message = result.unwrap_err().message;
    assert!(
        message.starts_with("character 8: `rol:` is not a filter"),
        "{message}"
    );
}

/// The search once found nothing for a question, as a person types it.
#[tokio::test]
async fn a_question_is_answered_and_its_words_are_completed() {
    let entries: Vec<Entry> = chain(None, 0, 2).collect();
    let mut fixture = Fixture::open(&entries).await;
    fixture.add_session("s1", "the build fails since the cache is stale");
    fixture.add_session("s2", "a trip to Rome");
    let ask = |generation, query| search_by(SearchMode::Ask, generation, query);
    fixture
        .daemon
        .run(ask(1, "why did the biuld fail with stale caches?"));
    let (_, result) = fixture.found(1).await;
    let page = result.unwrap();
    assert_eq!(page.hits[0].session_id, "s1");
    let near = NearWord {
        word: "biuld".to_owned(),
        near: Some("build".to_owned()),
        is_taken: true,
    };
    assert_eq!(page.near, [near]);
    fixture.daemon.run(ask(1, "the build role:nobody"));
    let (_, result) = fixture.found(1).await;
    let near = &result.unwrap().near[0];
    assert_eq!(near.word, "role:nobody");
    assert!(
        !near.is_taken && near.near.as_deref() == Some("role:user"),
        "{near:?}"
    );
    for (mode, query) in [
        (SearchMode::Literal, "cache is"),
        (SearchMode::Regex, "ca.he i"),
    ] {
        fixture.daemon.run(search_by(mode, 2, query));
        assert_eq!(fixture.found(2).await.1.unwrap().total, 1, "{query}");
    }
    fixture.daemon.run(Effect::CompleteQuery(CompletionQuery {
        generation: 4,
        query: "cache ro".into(),
        position: 8,
    }));
    let completed = |message| match message {
        Answer::QueryCompleted { completion, .. } => Some(completion),
        _ => None,
    };
    let completion = fixture.wait(completed).await;
    assert_eq!((completion.start, &*completion.items[0].0), (6, "role:"));
}
