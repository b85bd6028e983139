//! Stories of defects that were found (story.rs).

use treelined_core::durability::Durability;
use treelined_core::error::Kind;
use treelined_simulation::story::Story;
use treelined_simulation::writer::PROJECTS;

const PROJECT: &str = PROJECTS[0];

/// The sync of the first write of a session failed. Later appends were answered as durable although the header was not:
/// on Linux a later sync passes over bytes whose sync has failed.
#[test]
fn an_append_is_durable_after_a_failed_sync_of_the_header() {
    let mut story = Story::begin();
    story.process(Durability::Always, None, async |_, writer| {
        writer.create_in(PROJECT).await.unwrap();
    });
    story.process(Durability::Always, None, async |world, writer| {
        world.break_syncs(Some(1));
        let failed = writer.create_in(PROJECT).await.unwrap_err();
        assert_eq!(failed.kind, Kind::DurabilityUnknown);
        let session = writer.last();
        let failed = writer.append_to(&session).await.unwrap_err();
        assert_eq!(failed.kind, Kind::DurabilityUnknown);
        world.break_syncs(None);
        writer.append_to(&session).await.unwrap();
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
        world.break_syncs(Some(1));
        writer.fork_of(&source).await.unwrap();
        writer.pause().await;
    });
    story.process(Durability::Always, None, async |_, writer| {
        let fork = writer.newest().unwrap();
        writer.append_to(&fork).await.unwrap();
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
