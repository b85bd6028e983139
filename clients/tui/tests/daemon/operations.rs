//! The operations of the program, with the real daemon.

use crate::{Entry, Fixture};
use treelined_tui::message::{Daemon as Answer, Effect, Event, Failure, Target};
use treelined_tui::model::picker::{PickerItem, PickerKind};
use treelined_tui::operation::{ExportFormat, ImportSource, Operation};

/// A user message, two answers to it, and a further user message below the first answer.
pub async fn forked() -> Fixture {
    let entry = |parent, is_user| Entry { parent, is_user };
    Fixture::open(&[
        entry(None, true),
        entry(Some(0), true),
        entry(Some(0), true),
        entry(Some(1), true),
    ])
    .await
}

pub async fn operate(fixture: &mut Fixture, operation: Operation) -> Result<String, Failure> {
    fixture.daemon.run(Effect::Operate { id: 7, operation });
    let ended = |answer| match answer {
        Answer::CommandEnded { id: 7, result } => Some(result),
        _ => None,
    };
    let output = fixture.wait(ended).await?;
    Ok(output.output.unwrap_or_default())
}

pub async fn list(fixture: &mut Fixture, wanted: PickerKind) -> Vec<PickerItem> {
    fixture.daemon.run(Effect::ListItems(wanted));
    let listed = |answer| match answer {
        Answer::Listed { kind, result } if kind == wanted => Some(result),
        _ => None,
    };
    fixture.wait(listed).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn branches_are_listed_copied_and_left() {
    let mut fixture = forked().await;
    let branches = list(&mut fixture, PickerKind::Branches { archived: false }).await;
    let tips: Vec<(&str, bool)> = branches.iter().map(|it| (&*it.id, it.is_active)).collect();
    assert!(
        tips.contains(&("e2", false)) && tips.contains(&("e3", true)),
        "{tips:?}"
    );
    // Branches were once named by their last messages.
    let named = |tip: &str| branches.iter().find(|it| it.id == tip).unwrap();
    assert_eq!(
        (&*named("e2").text, &*named("e3").text),
        ("says 2", "says 1")
    );
    let messages = list(&mut fixture, PickerKind::Fork).await;
    assert_eq!(messages.len(), 4);
    let earlier = list(&mut fixture, PickerKind::Pop).await;
    let earlier: Vec<&str> = earlier.iter().map(|it| &*it.id).collect();
    assert_eq!(earlier, ["e3", "e1", "e0"]);

    let entries = vec!["e2".to_owned()];
    let output = operate(&mut fixture, Operation::CherryPick { entries }).await;
    assert_eq!(output.unwrap(), "Copied 1 message.");
    operate(&mut fixture, Operation::Root).await.unwrap();
    let moves = operate(&mut fixture, Operation::Moves).await.unwrap();
    assert!(
        moves.contains("set_leaf") && moves.contains("→ the beginning"),
        "{moves}"
    );
    let merge = Operation::Merge {
        tip: "e2".into(),
        focus: "the build".into(),
    };
    let merged = operate(&mut fixture, merge).await.unwrap();
    assert_eq!(merged, "Merged. A summary of the branch is at the leaf.");
    let compact = Operation::Compact {
        focus: String::new(),
    };
    assert!(operate(&mut fixture, compact).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_described_named_and_exported() {
    let mut fixture = forked().await;
    let stats = operate(&mut fixture, Operation::Stats).await.unwrap();
    assert!(stats.starts_with("messages    4 user\n"), "{stats}");
    assert!(stats.contains("cost        unknown\n"), "{stats}");
    let usage = Operation::Usage { by: "tool" };
    let usage = operate(&mut fixture, usage).await.unwrap();
    assert_eq!(
        usage,
        "cost  tokens  cached  tool\n   –       0       0  all"
    );
    let context = operate(&mut fixture, Operation::Context).await.unwrap();
    assert_eq!(
        context,
        "3 messages\n\n── user ──\nsays 0\n\n── user ──\nsays 1\n\n── user ──\nsays 3"
    );
    let name = Operation::Name {
        name: "Plans".into(),
    };
    assert_eq!(operate(&mut fixture, name).await.unwrap(), "Named.");
    let folder = fixture.folder.path().to_owned();
    for format in ExportFormat::ALL {
        let path = folder.join(format!("out.{}", format.extension()));
        let path = path.to_string_lossy().into_owned();
        let export = || Operation::Export {
            format,
            path: path.clone(),
            keep: Vec::new(),
            replace: Vec::new(),
        };
        let output = operate(&mut fixture, export()).await.unwrap();
        assert!(
            output.starts_with("Wrote ") && output.contains(&path),
            "{output}"
        );
        assert!(std::fs::read_to_string(&path).unwrap().contains("says 3"));
        let failure = operate(&mut fixture, export()).await.unwrap_err();
        assert_eq!(failure.kind, "fileExists");
    }
}

/// The title of an imported session was once its id, since few tools name their sessions.
#[tokio::test(flavor = "multi_thread")]
async fn the_title_of_a_session_is_its_name_else_its_first_message_else_its_id() {
    for (entries, named, title) in [(1, false, "says 0"), (1, true, "New"), (0, false, "s")] {
        let entry = |_| Entry {
            parent: None,
            is_user: true,
        };
        let entries: Vec<Entry> = (0..entries).map(entry).collect();
        let mut fixture = Fixture::open(&entries).await;
        if named {
            let name = Operation::Name { name: "New".into() };
            operate(&mut fixture, name).await.unwrap();
        }
        let file = fixture.folder.path().join("s.jsonl");
        let target = Target::Path(file.to_string_lossy().into_owned());
        fixture.daemon.run(Effect::OpenSession(target));
        let opened = |answer| match answer {
            Answer::Opened(session) => Some(session.unwrap()),
            _ => None,
        };
        let session = fixture.wait(opened).await;
        assert_eq!(session.title(), title);
    }
}

/// The list of sessions shows when a session is created, deleted or restored.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_created_deleted_and_restored() {
    let mut fixture = forked().await;
    let create = Operation::Create { name: "New".into() };
    fixture.daemon.run(Effect::Operate {
        id: 7,
        operation: create,
    });
    // They come in any order.
    let (mut session, mut has_changed) = (None, false);
    while session.is_none() || !has_changed {
        let next = |answer| match answer {
            Answer::Opened(session) => Some(Some(session.unwrap())),
            Answer::Event(Event::SessionsChanged) => Some(None),
            _ => None,
        };
        match fixture.wait(next).await {
            Some(opened) => session = Some(opened),
            None => has_changed = true,
        }
    }
    let session = session.unwrap();
    assert_eq!(session.name.as_deref(), Some("New"));

    fixture.daemon.run(Effect::Trash {
        session_id: session.id.clone(),
    });
    let trashed = |answer| match answer {
        Answer::Trashed { result, .. } => Some(result),
        _ => None,
    };
    fixture.wait(trashed).await.unwrap();
    let trash = list(&mut fixture, PickerKind::Trash).await;
    let [item] = &*trash else { panic!("{trash:?}") };
    assert_eq!((&*item.text, &item.id), ("New", &session.id));
    let restore = Operation::Restore {
        session_id: item.id.clone(),
        trashed: item.path.clone(),
    };
    let output = operate(&mut fixture, restore).await.unwrap();
    assert!(output.starts_with("Restored to "), "{output}");
    assert!(list(&mut fixture, PickerKind::Trash).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn conversations_of_other_tools_are_imported_from_a_path() {
    let mut fixture = forked().await;
    let folder = fixture.folder.path().join("claude");
    std::fs::create_dir(&folder).unwrap();
    let id = "5e0f1c2a-0000-4000-8000-000000000001";
    let line = |uuid: &str, parent: &str, role: &str, text: &str| {
        format!(
            r#"{{"type":"{role}","uuid":"{uuid}","parentUuid":{parent},"sessionId":"{id}","cwd":"/p","timestamp":"2026-11-20T10:00:00.000Z","version":"2.0.0","isSidechain":false,"userType":"external","message":{{"role":"{role}","content":[{{"type":"text","text":"{text}"}}]}}}}"#
        )
    };
    let text = [
        line("u1", "null", "user", "Why?"),
        line("u2", "\"u1\"", "assistant", "Since."),
    ];
    std::fs::write(folder.join(format!("{id}.jsonl")), text.join("\n") + "\n").unwrap();
    let path = folder.to_string_lossy().into_owned();
    let source = ImportSource::Path(path);
    let output = operate(&mut fixture, Operation::Import(source))
        .await
        .unwrap();
    assert!(output.starts_with("Imported 1 session: 1 new"), "{output}");
    // The answer has no mark at its end.
    let held = "Held back, since they may still grow: 1 entry.";
    assert!(
        output.contains(held) && output.contains("--final"),
        "{output}"
    );
    let empty = fixture.folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let source = ImportSource::Path(empty.to_string_lossy().into_owned());
    let output = operate(&mut fixture, Operation::Import(source))
        .await
        .unwrap();
    assert!(output.contains("No conversation"), "{output}");
    let reports = operate(&mut fixture, Operation::ImportReport)
        .await
        .unwrap();
    assert_eq!(reports, "No import has changed this session.");
}
