//! The session that the command line names.

use crate::program::daemon;
use treelined_client::Client;
use treelined_tui::choice::{Found, find};
use treelined_tui::message::Target;
use treelined_tui::shell_error::ShellError;

/// A session directory beside other folders.
struct Sessions(tempfile::TempDir);

impl Sessions {
    async fn with(ids_and_names: &[(&str, &str)]) -> Self {
        let sessions = Self(tempfile::tempdir().unwrap());
        let client = sessions.builder().spawn().await.unwrap();
        for (id, name) in ids_and_names {
            let call = client.create_session().session_id(*id).name(*name);
            let call = call.write(treelined_client::FirstWrite::Now);
            call.await.unwrap();
        }
        client.close().await.unwrap();
        sessions
    }

    fn builder(&self) -> treelined_client::Builder {
        let folder = self.0.path().join("sessions");
        Client::builder().program(daemon()).session_dir(folder)
    }

    async fn find(&self, named: &str) -> Result<Found, ShellError> {
        find(&self.builder(), named).await
    }

    /// Returns the id at the end of the name of the file that is found.
    async fn id(&self, named: &str) -> String {
        match self.find(named).await {
            Ok(Found::Session(Target::Path(path))) => {
                let name = path.rsplit('/').next().unwrap();
                name.trim_end_matches(".jsonl")
                    .rsplit('_')
                    .next()
                    .unwrap()
                    .to_owned()
            }
            other => panic!("{named}: {other:?}"),
        }
    }
}

/// Only ids and paths were taken.
#[tokio::test]
async fn a_session_is_found_by_its_path_its_id_its_name_and_the_beginning_of_its_id() {
    let sessions = Sessions::with(&[("abcd1111", "A tour"), ("abcd2222", "other")]).await;
    for (named, id) in [
        ("abcd1111", "abcd1111"),
        ("A tour", "abcd1111"),
        ("abcd2", "abcd2222"),
    ] {
        assert_eq!(sessions.id(named).await, id, "{named}");
    }
    let Ok(Found::Session(Target::Path(file))) = sessions.find("abcd2222").await else {
        panic!("no file")
    };
    assert_eq!(sessions.id(&file).await, "abcd2222");
}

#[tokio::test]
async fn a_folder_is_found_and_other_names_are_errors_with_a_remedy() {
    let sessions = Sessions::with(&[("abcd1111", "A tour"), ("abcd2222", "other")]).await;
    let folder = sessions.0.path().canonicalize().unwrap();
    let folder = folder.to_str().unwrap();
    assert_eq!(
        sessions.find(folder).await,
        Ok(Found::Folder(folder.into()))
    );
    let several = sessions.find("abcd").await.unwrap_err();
    assert_eq!(several.code, 2);
    assert!(
        several
            .message
            .starts_with("2 sessions fit \"abcd\":\n  abcd")
    );
    let missing = sessions.find("nobody").await.unwrap_err();
    assert_eq!(
        missing.to_string(),
        "error: there is no session \"nobody\" (sessionNotFound)\n  try: treelined list --all"
    );
    assert_eq!(missing.code, 3);
    let client = sessions.builder().spawn().await.unwrap();
    client.delete_session("abcd1111").await.unwrap();
    client.close().await.unwrap();
    let deleted = sessions.find("A tour").await.unwrap_err();
    assert_eq!(deleted.code, 3);
    assert!(deleted.message.contains("is in the trash"), "{deleted}");
    assert!(
        deleted.remedy.starts_with("treelined restore \"A tour\""),
        "{deleted}"
    );
}
