//! Stories of defects that were found (story.rs).

use std::io::Write;
use treelined_core::durability::Durability;
use treelined_core::error::Kind;
use treelined_files::os::time;
use treelined_simulation::story::Story;
use treelined_simulation::writer::PROJECTS;

const PROJECT: &str = PROJECTS[0];

/// The first sync of a session that another program has made failed. Later appends were answered as durable although the
/// header was not: on Linux a later sync passes over bytes whose sync has failed.
#[test]
fn an_append_is_durable_after_a_failed_sync_of_the_header() {
    let mut story = Story::begin();
    let header =
        r#"{"type":"session","version":3,"id":"old","timestamp":"t","cwd":"/home/ada/project"}"#;
    story.process(Durability::Always, None, async |world, writer| {
        writer.create_in(PROJECT).await.unwrap();
        writer.make("2026-01-01T00-00-00-000Z_old.jsonl", &format!("{header}\n"));
        world.break_syncs(Some(1));
        let session = writer.opened("old").unwrap();
        for _ in 0..2 {
            let failed = writer.append_to(&session).await.unwrap_err();
            assert_eq!(failed.kind, Kind::DurabilityUnknown);
        }
        world.break_syncs(None);
        writer.append_to(&session).await.unwrap();
    });
    story.cut().unwrap();
}

/// A new session, or a fork, had its name before its header was synced. If that sync failed, another process could append
/// and sync, which proved nothing about the header: a power cut took the header, and all entries with it.
#[test]
fn a_session_whose_header_cannot_be_synced_gets_no_name() {
    let mut story = Story::begin();
    story.process(Durability::Interval, None, async |world, writer| {
        for project in PROJECTS {
            writer.create_in(project).await.unwrap();
        }
        let source = writer.last();
        world.break_syncs(Some(1));
        let failed = writer.fork_of(&source).await.unwrap_err();
        assert_eq!(failed.kind, Kind::StorageIo);
        let failed = writer.create_in(PROJECT).await.unwrap_err();
        assert_eq!(failed.kind, Kind::StorageIo);
        let session = writer.last();
        world.break_syncs(None);
        writer.append_to(&session).await.unwrap();
    });
    story.process(Durability::Always, None, async |_, writer| {
        let newest = writer.newest().unwrap();
        writer.append_to(&newest).await.unwrap();
    });
    story.cut().unwrap();
}

/// Without `always` a fork is synced after its answer. If that sync failed, the header was lost with all later entries of
/// other processes, which do not know of the failed sync.
#[test]
fn an_append_to_a_fork_is_durable_after_a_failed_sync_of_the_fork() {
    let mut story = Story::begin();
    story.process(Durability::Interval, None, async |world, writer| {
        for project in PROJECTS {
            writer.create_in(project).await.unwrap();
        }
        let source = writer.last();
        writer.fork_of(&source).await.unwrap();
        world.break_syncs(Some(1));
        writer.pause().await;
    });
    story.process(Durability::Always, None, async |_, writer| {
        let fork = writer.newest().unwrap();
        writer.append_to(&fork).await.unwrap();
    });
    story.cut().unwrap();
}

/// The fragment of a line that a program without a lock had written to the old file of a session was lost if that program
/// was gone: it counted as a line in flight, and at the end of the minute as nothing.
#[test]
fn an_unfinished_late_line_is_in_the_new_file_once() {
    let mut story = Story::begin();
    let header =
        r#"{"type":"session","version":2,"id":"old","timestamp":"t","cwd":"/home/ada/project"}"#;
    let whole = r#"{"type":"custom","id":"late","parentId":null,"timestamp":"t","customType":"c"}"#;
    for (number, last) in [whole, "{\"torn"].into_iter().enumerate() {
        let name = format!("2026-01-01T00-00-00-000Z_old{number}.jsonl");
        story.process(Durability::Always, None, async |_, writer| {
            writer.create_in(PROJECT).await.unwrap();
            let header = header.replace("old", &format!("old{number}"));
            let old = writer.make(&name, &format!("{header}\n"));
            let session = writer.opened(&format!("old{number}")).unwrap();
            writer.append_to(&session).await.unwrap();
            (&old).write_all(last.as_bytes()).unwrap();
            for _ in 0..2 {
                let mut guard = session.guard(time::now(), ()).unwrap();
                guard.end_waiting(|_| true);
                drop(guard);
                writer.append_to(&session).await.unwrap();
            }
            let text = writer.text_of(&name);
            assert_eq!(text.matches(&format!("\n{last}\n")).count(), 1, "{text}");
        });
    }
    story.cut().unwrap();
}

/// The disk was full before the last byte of a late line, its line break. The line was whole, but was not read from the new
/// file, so a fact did not hold.
#[test]
fn a_late_line_without_room_for_its_line_break_is_in_the_new_file_once() {
    let mut story = Story::begin();
    let header =
        r#"{"type":"session","version":2,"id":"old","timestamp":"t","cwd":"/home/ada/project"}"#;
    let late = r#"{"type":"custom","id":"late","parentId":null,"timestamp":"t","customType":"c"}"#;
    let name = "2026-01-01T00-00-00-000Z_old.jsonl";
    story.process(Durability::Always, None, async |world, writer| {
        writer.create_in(PROJECT).await.unwrap();
        let old = writer.make(name, &format!("{header}\n"));
        let session = writer.opened("old").unwrap();
        writer.append_to(&session).await.unwrap();
        (&old).write_all(format!("{late}\n").as_bytes()).unwrap();
        world.limit_space(Some(late.len() as u64));
        writer.commit_nothing(&session).await.unwrap();
        assert!(writer.text_of(name).ends_with(&format!("\n{late}")));
        world.limit_space(None);
        for _ in 0..2 {
            writer.append_to(&session).await.unwrap();
        }
        let text = writer.text_of(name);
        assert_eq!(text.matches(&format!("\n{late}\n")).count(), 1, "{text}");
    });
    story.cut().unwrap();
}

/// A process was killed between the making of a folder and the sync of the folder above it. The next process took the
/// folder for durable, and its sessions were lost with the folder.
#[test]
fn a_session_is_durable_in_a_folder_whose_maker_was_killed() {
    // The first process makes the session directory too, or finds it.
    for is_there in [false, true] {
        let mut kill_at = 1;
        loop {
            let mut story = Story::begin();
            if is_there {
                story.process(Durability::Always, None, async |_, writer| {
                    writer.create_in("/home/ada/first").await.unwrap();
                });
            }
            let has_ended = story.process(Durability::Os, Some(kill_at), async |_, writer| {
                writer.create_in("/home/ada/second").await.unwrap();
            });
            story.process(Durability::Always, None, async |_, writer| {
                writer.create_in("/home/ada/second").await.unwrap();
            });
            if let Err(error) = story.cut() {
                panic!("killed at call {kill_at}, {is_there}: {error}");
            }
            if has_ended {
                break;
            }
            kill_at += 1;
        }
        assert!(kill_at > 10, "{kill_at}");
    }
}

/// A process was killed, or the power was cut, after the cold file of a session was moved to the trash and before its
/// session file was: the branches in the cold file were lost to the session.
#[test]
fn a_session_moves_with_its_cold_file() {
    let mut kill_at = 1;
    loop {
        let mut story = Story::begin();
        story.process(Durability::Always, None, async |_, writer| {
            writer.create_in(PROJECT).await.unwrap();
            writer.shed_one().await.unwrap();
        });
        let has_ended = story.process(Durability::Always, Some(kill_at), async |_, writer| {
            let id = writer.newest().unwrap().id.as_str().to_owned();
            writer.trash_of(&id).await.unwrap();
            writer.restore_of(&id).unwrap();
        });
        for after in [story.end(), story.cut()] {
            if let Err(error) = after {
                panic!("killed at call {kill_at}: {error}");
            }
        }
        if has_ended {
            break;
        }
        kill_at += 1;
    }
    assert!(kill_at > 20, "{kill_at}");
}
