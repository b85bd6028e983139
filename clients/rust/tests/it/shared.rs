//! Clients that share a daemon.

use crate::fixture::{Fixture, program, soon};
use std::process::Command;
use treelined_client::{AskKind, Error, EventAnswer, Notification};

/// Stops the shared daemon at the end.
struct SharedDaemon(Fixture);

impl SharedDaemon {
    fn builder(&self) -> treelined_client::Builder {
        self.0.builder().socket(self.0.folder.path().join("socket"))
    }
}

impl Drop for SharedDaemon {
    fn drop(&mut self) {
        let folder = self.0.folder.path();
        let mut stop = Command::new(program());
        stop.args(["stop", "--socket"]).arg(folder.join("socket"));
        stop.arg("--session-dir").arg(folder.join("sessions"));
        let _ended = stop.output();
    }
}

#[tokio::test]
async fn shared_clients_have_one_daemon_and_the_end_of_one_is_not_that_of_the_other() {
    let shared = SharedDaemon(Fixture::new());
    let one = shared.builder().spawn().await.unwrap();
    let other = shared.builder().spawn().await.unwrap();
    let created = one.create_session().ephemeral(true).await.unwrap();
    let id = created.session.session_id;
    // An ephemeral session is in the memory of one daemon only.
    other.open_session().session_id(&id).await.unwrap();
    one.close().await.unwrap();
    let leaf = other.with_session(&id).get_leaf().await.unwrap();
    assert_eq!(leaf.leaf_id, None);
    other.close().await.unwrap();
}

#[tokio::test]
async fn a_client_with_a_person_is_asked_and_answers() {
    let shared = SharedDaemon(Fixture::new());
    let person = shared.builder().ui([AskKind::Confirm, AskKind::Input]);
    let person = person.opt_out(["user_asked", "event_resolved"]);
    let person = person.spawn().await.unwrap();
    let mut heard = person.notifications();
    let asker = shared.builder().spawn().await.unwrap();
    let refused = asker.ask_user(AskKind::Editor, "Why?").await.unwrap_err();
    assert!(refused.to_string().contains("ask_user"), "{refused}");
    for (kind, answer, value) in [
        (AskKind::Confirm, EventAnswer::value(true), Some("true")),
        (AskKind::Input, EventAnswer::value("x"), Some("\"x\"")),
        (AskKind::Input, EventAnswer::dismissed(), None),
    ] {
        let answering = async {
            loop {
                if let Some(Notification::UserAsked(asked)) = heard.next().await {
                    break person.answer_event(asked.event_id).result(answer).await;
                }
            }
        };
        let asking = async { asker.ask_user(kind, "Go?").await };
        let (asked, answered) = soon(async { tokio::join!(asking, answering) }).await;
        answered.unwrap();
        let given = asked.unwrap().value;
        assert_eq!(given.as_ref().map(|value| value.get()), value);
    }
}

#[tokio::test]
async fn an_option_that_differs_from_the_shared_daemons_is_an_error_with_both_values() {
    let shared = SharedDaemon(Fixture::new());
    let one = shared.builder().spawn().await.unwrap();
    let differing = shared.builder().summarizer("none").spawn().await;
    let Err(Error::Disconnected(why)) = differing else {
        panic!("{differing:?}")
    };
    assert!(
        why.last_words.contains("outline") && why.last_words.contains("none"),
        "{why}"
    );
    one.close().await.unwrap();
}
