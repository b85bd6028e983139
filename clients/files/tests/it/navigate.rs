//! Navigations at which the user is asked whether to restore the files too.

use crate::scene::{Scene, daemon};
use crate::{PATIENCE, two_turns};
use std::fs;
use std::time::Instant;
use treelined_client::{AskKind, Client, EventAnswer, Navigation, Notification, UserAsked};

/// A daemon with the extension, and a client that answers as the user.
async fn with_extension(scene: &Scene) -> Client {
    let program = env!("CARGO_BIN_EXE_treelined-files");
    let state = scene.path("state");
    let argv =
        format!("[{program:?}, \"--state\", {state:?}, \"watch\", \"--extension\", \"--offer\"]");
    let section = format!("[[extensions]]\nname = \"files\"\nargv = {argv}\nsessions = \"all\"\n");
    let section = section + "may = \"append\"\n";
    let configuration = scene.path("config.toml");
    fs::write(&configuration, section).unwrap();
    let builder = Client::builder().program(daemon());
    let builder = builder.args(["--config", configuration.to_str().unwrap()]);
    let builder = builder.session_dir(scene.path("sessions"));
    let builder = builder.env("HOME", scene.path("home"));
    let client = builder.ui([AskKind::Select]).spawn().await.unwrap();
    client.open_session().session_id("tour").await.unwrap();
    let begin = Instant::now();
    let is_ready = |name: &str| name == "files-diff";
    while !(client.list_commands().await.unwrap().commands.iter())
        .any(|command| is_ready(&command.name))
    {
        assert!(begin.elapsed() < PATIENCE, "the extension has not begun");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    client
}

/// Moves to an entry, and makes a choice if there is a question. Returns the question too.
async fn go(client: &Client, to: &str, choice: &str) -> (Navigation, Option<UserAsked>) {
    let (mut notifications, answerer) = (client.notifications(), client.clone());
    let choice = choice.to_owned();
    let answering = tokio::spawn(async move {
        let mut question = None;
        while let Some(notification) = notifications.next().await {
            match notification {
                Notification::UserAsked(asked) => {
                    let call = answerer.answer_event(asked.event_id.clone());
                    call.result(EventAnswer::value(choice.as_str()))
                        .await
                        .unwrap();
                    question = Some(asked);
                }
                Notification::EventResolved(resolved) if resolved.navigation_id.is_some() => break,
                _ => {}
            }
        }
        question
    });
    let moved = client.with_session("tour").navigate_tree(to).await.unwrap();
    (moved, answering.await.unwrap())
}

/// Once a navigation never restored the files.
#[test]
fn the_files_go_with_a_navigation_if_the_person_says_so() {
    let scene = two_turns();
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    runtime.block_on(async {
        let client = with_extension(&scene).await;
        let (moved, asked) = go(&client, "a1", "The conversation alone").await;
        let asked = asked.unwrap();
        let shown = asked.message.unwrap();
        assert!(
            shown.contains("1 file to write, 1 file to remove"),
            "{shown}"
        );
        assert_eq!(asked.options.unwrap()[0], "The conversation alone");
        assert_eq!((moved.cancelled, scene.read("file").as_str()), (false, "2"));
        // At this entry the files are the same as now.
        let (moved, asked) = go(&client, "a2", "").await;
        assert!(!moved.cancelled && asked.is_none(), "{asked:?}");

        let (moved, _) = go(&client, "a1", "The files alone").await;
        let said = moved.message.clone().unwrap();
        assert!(
            moved.cancelled && said.contains("1 file written, 1 file removed"),
            "{said}"
        );
        assert_eq!(moved.by.as_deref(), Some("files"));
        assert_eq!(scene.read("file"), "1");
        scene.ok(&["undo", "--yes"]);
        assert_eq!(scene.read("file"), "2");

        let mut notifications = client.notifications();
        let (moved, _) = go(&client, "a1", "The conversation and the files").await;
        assert!(!moved.cancelled, "{moved:?}");
        let told = loop {
            if let Some(Notification::UserNotified(told)) = notifications.next().await {
                break told.message;
            }
        };
        assert!(told.contains("1 file written, 1 file removed"), "{told}");
        assert_eq!(scene.read("file"), "1");
        client.close().await.unwrap();
    });
}
