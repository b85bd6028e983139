//! The session that the command line names.

use crate::program::daemon;
use treelined_client::Client;
use treelined_tui::choice::{Choice, find};
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

    async fn find(&self, named: &str) -> Result<Choice, ShellError> {
        find(&self.builder(), named).await
    }

    /// Returns the id at the end of the name of the found file.
    async fn id(&self, named: &str) -> String {
        match self.find(named).await {
            Ok(Choice::Session(Target::Path(path))) => {
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
    let Ok(Choice::Session(Target::Path(file))) = sessions.find("abcd2222").await else {
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
        Ok(Choice::Folder(folder.into()))
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

#[tokio::test]
async fn a_daemon_that_cannot_be_started_is_an_error_with_the_options_that_name_it() {
    let builder = Client::builder().program("/no/such/program");
    let error = find(&builder, "A tour").await.unwrap_err();
    assert_eq!(error.code, 1);
    assert!(
        error.message.starts_with("cannot start /no/such/program: "),
        "{error}"
    );
    assert!(
        error
            .remedy
            .starts_with("--daemon PROGRAM or TREELINED_BIN"),
        "{error}"
    );
}

/// Once the list showed these sessions, but the command line did not find them.
#[tokio::test]
async fn a_session_that_only_the_log_has_is_found_as_one_with_a_file() {
    let sessions = Sessions::with(&[("abcd1111", "A tour")]).await;
    // This daemon has no team, so the test adds the rows of a team to its lists.
    let row = |id: &str, name: &str| {
        format!(r#"{{"sessionId":"{id}","name":"{name}","host":"build-7","openOn":[]}}"#)
    };
    let team = [row("efgh3333", "The release"), row("abcd4444", "A tour")].join(",");
    let folder = sessions.0.path().join("sessions");
    let with_team = |count: usize| {
        let script = format!(
            r#""$0" "$@" | sed -u 's/"sessions":\[/"team":[{team}],"teamCount":{count},"sessions":[/'"#
        );
        let builder = Client::builder().program("sh").arg("-c").arg(script);
        builder.arg(daemon()).env("TREELINED_SESSION_DIR", &folder)
    };
    for count in [2, 5000] {
        for (named, id) in [
            ("efgh3333", "efgh3333"),
            ("The release", "efgh3333"),
            ("efgh", "efgh3333"),
            ("abcd4", "abcd4444"),
        ] {
            let found = find(&with_team(count), named).await;
            let expected = Choice::Session(Target::Id(id.to_owned()));
            assert_eq!(found, Ok(expected), "{named}");
        }
    }
    for named in ["abcd", "A tour"] {
        let several = find(&with_team(2), named).await.unwrap_err();
        assert_eq!(several.code, 2, "{several}");
    }
    assert!(find(&with_team(2), "build-7").await.is_err());
    let here = find(&with_team(2), "abcd1111").await;
    assert!(
        matches!(here, Ok(Choice::Session(Target::Path(_)))),
        "{here:?}"
    );
}
