//! Tags, marks and families, with the real daemon.

use crate::operations::{forked, list, operate};
use crate::{Answer, Effect};
use treelined_tui::message::{SessionQuery, SessionRow, Sort};
use treelined_tui::model::picker::PickerKind;
use treelined_tui::operation::Operation;

/// The sessions that the list shows.
async fn rows(fixture: &mut crate::Fixture, archived: bool) -> Vec<SessionRow> {
    fixture.daemon.run(Effect::ListSessions(SessionQuery {
        generation: 1,
        here: false,
        named: false,
        archived,
        project: None,
        tool: None,
        query: String::new(),
        sort: Sort::Recent,
        cursor: None,
        limit: 10,
    }));
    let page = |answer| match answer {
        Answer::Sessions { result, .. } => Some(result),
        _ => None,
    };
    fixture.wait(page).await.unwrap().rows
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_tagged_pinned_and_put_away() {
    let mut fixture = forked().await;
    let new = Operation::Create {
        name: "A tour".into(),
    };
    operate(&mut fixture, new).await.unwrap();
    let session_id = rows(&mut fixture, false).await[0].id.clone();
    let tag = |tags: &str| Operation::Tag {
        session_id: session_id.clone(),
        tags: tags.into(),
    };
    let said = operate(&mut fixture, tag("#Build, ui")).await.unwrap();
    assert_eq!(said, "Tags: #build #ui");
    let said = operate(&mut fixture, tag("-ui later")).await.unwrap();
    assert_eq!(said, "Tags: #build #later");
    let pin = || Operation::Pin {
        session_id: session_id.clone(),
    };
    let said = operate(&mut fixture, pin()).await.unwrap();
    assert_eq!(said, "The session is pinned.");
    let shown = rows(&mut fixture, false).await.remove(0);
    assert_eq!(shown.marks, ["#build", "#later", "pinned"]);
    let said = operate(&mut fixture, pin()).await.unwrap();
    assert_eq!(said, "The session is not pinned.");
    let archive = || Operation::ArchiveSession {
        session_id: session_id.clone(),
    };
    let said = operate(&mut fixture, archive()).await.unwrap();
    assert_eq!(said, "The session is archived; the list leaves it out.");
    assert!(rows(&mut fixture, false).await.is_empty());
    let away = rows(&mut fixture, true).await.remove(0);
    assert_eq!(away.marks, ["#build", "#later", "archived"]);
    let said = operate(&mut fixture, archive()).await.unwrap();
    assert_eq!(said, "The session is in the list again.");
    let family = list(&mut fixture, PickerKind::Family).await;
    let family: Vec<(&str, bool)> = family.iter().map(|it| (&*it.text, it.is_active)).collect();
    assert_eq!(family, [("A tour", true)]);
    assert!(list(&mut fixture, PickerKind::Candidates).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_side_question_is_asked_and_kept_once() {
    let mut fixture = forked().await;
    let question = "is it documented?".to_owned();
    let said = operate(&mut fixture, Operation::Aside { question })
        .await
        .unwrap();
    assert!(said.starts_with("Asked beside the conversation"), "{said}");
    let branches = list(&mut fixture, PickerKind::Branches { archived: false }).await;
    let asked = branches.iter().find(|it| it.text.contains("documented"));
    let entry = asked.expect("the question has a branch").id.clone();
    let keep = || Operation::Keep {
        entry: entry.clone(),
    };
    let said = operate(&mut fixture, keep()).await.unwrap();
    assert_eq!(said, "Kept: 1 message at the leaf.");
    let said = operate(&mut fixture, keep()).await.unwrap();
    assert_eq!(said, "It is in the conversation already.");
}
