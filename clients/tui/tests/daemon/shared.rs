//! Several clients of one shared daemon.

use crate::PATIENCE;
use crate::program::daemon;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use treelined_client::{AskKind, Builder, Client, EventAnswer, Notification, NotifyLevel};
use treelined_tui::config::{Settings, Summary};
use treelined_tui::daemon::Daemon;
use treelined_tui::keys::{Key, Keymap};
use treelined_tui::message::{Effect, Filter, Level, Message, Target};
use treelined_tui::model::Model;
use treelined_tui::model::dialog::Dialog;
use treelined_tui::theme::Theme;

/// A move of one client must be on the screen of another client within this time.
const DELAY: Duration = Duration::from_millis(20);

/// A session directory, a session in it, and the socket of its daemon, which is stopped at the end.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sessions = folder.path().join("sessions");
        let mut builder = std::fs::DirBuilder::new();
        builder.mode(0o700).create(sessions).unwrap();
        let text = r#"{"type":"session","version":3,"id":"s","timestamp":"2026-11-21T19:00:00.000Z","cwd":"/p"}
{"type":"message","id":"q1","parentId":null,"timestamp":"2026-11-21T19:00:00.000Z","message":{"role":"user","content":"one"}}
{"type":"message","id":"a1","parentId":"q1","timestamp":"2026-11-21T19:00:00.000Z","message":{"role":"assistant","content":"two"}}
{"type":"message","id":"a2","parentId":"a1","timestamp":"2026-11-21T19:00:00.000Z","message":{"role":"assistant","content":"three"}}
"#;
        std::fs::write(folder.path().join("s.jsonl"), text).unwrap();
        Self { folder }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    fn builder(&self) -> Builder {
        let builder = Client::builder().program(daemon()).socket(self.socket());
        builder.session_dir(self.folder.path().join("sessions"))
    }

    /// Connects a client that is not a TUI.
    async fn client(&self, name: &str) -> Client {
        let builder = self.builder().client_info(name, "1");
        builder.spawn().await.unwrap()
    }

    /// Connects a program whose requests are logged.
    async fn logged_tui(&self) -> Tui {
        let folder = self.folder.path().display();
        let script = format!("tee -a {folder}/asked | exec \"$0\" \"$@\"");
        let builder = Client::builder().program("sh").arg("-c").arg(script);
        let builder = builder.arg(daemon());
        let builder = builder.args(["connect", "--start", "--socket"]);
        let builder = builder.arg(self.socket()).arg("--session-dir");
        self.tui_of(builder.arg(self.folder.path().join("sessions")))
            .await
    }

    async fn tui(&self) -> Tui {
        self.tui_of(self.builder()).await
    }

    async fn tui_of(&self, builder: Builder) -> Tui {
        let (sender, messages) = unbounded_channel();
        let target = Target::Path(self.folder.path().join("s.jsonl").display().to_string());
        let settings = Settings {
            keymap: Keymap::default(),
            theme: Theme::dark(),
            half: true,
            filter: Filter::Default,
            summary: Summary::Never,
            double_escape: Default::default(),
            cwd: "/p".into(),
            program: vec!["treelined".into()],
        };
        let mut tui = Tui {
            model: Model::new(settings, (80, 24), 0, Some(target)),
            daemon: Daemon::new(builder, "/p".into(), sender),
            messages,
        };
        tui.daemon.run(Effect::Connect);
        tui.until("the tree", |model| {
            model.tree.leaf.is_some() && !model.tree.reloading
        })
        .await;
        tui
    }

    fn stop(&self) {
        let mut stop = Command::new(daemon());
        stop.args(["stop", "--socket"]).arg(self.socket());
        stop.arg("--session-dir")
            .arg(self.folder.path().join("sessions"));
        let _ended = stop.output();
    }

    fn asked(&self) -> usize {
        let text = std::fs::read_to_string(self.folder.path().join("asked")).unwrap();
        text.lines().count()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The program without its terminal.
struct Tui {
    model: Model,
    daemon: Daemon,
    messages: UnboundedReceiver<Message>,
}

impl Tui {
    fn update(&mut self, message: Message) {
        for effect in self.model.update(message) {
            self.daemon.run(effect);
        }
    }

    fn keys(&mut self, names: &str) {
        for name in names.split(' ') {
            let key = Key::parse(name).unwrap();
            let event = crossterm::event::KeyEvent::new(key.code(), key.modifiers());
            self.update(Message::Key(event));
        }
    }

    /// Handles messages until the condition holds.
    async fn until(&mut self, what: &str, condition: impl Fn(&Model) -> bool) {
        let met = async {
            while !condition(&self.model) {
                let message = self.messages.recv().await.unwrap();
                self.update(message);
            }
        };
        let met = tokio::time::timeout(PATIENCE, met).await;
        assert!(met.is_ok(), "no {what}: {:?}", self.model.notice);
    }

    /// Waits until the tree is loaded and this entry is its leaf.
    async fn is_at(&mut self, leaf: &str) {
        let is_leaf = |model: &Model| {
            let row = model.tree.rows.find(|row| row.is_leaf);
            let row = row.and_then(|at| model.tree.rows.get(at));
            row.is_some_and(|row| row.id == leaf) && !model.tree.reloading
        };
        self.until(leaf, is_leaf).await;
    }
}

/// A move of one program is on the screen of the other without a key. The faster moves of several count, since other
/// programs may use the machine meanwhile: at a load of 11 half of the moves took longer.
#[tokio::test(flavor = "multi_thread")]
async fn two_programs_on_one_session_see_each_others_moves_at_once() {
    let place = Place::new();
    let (mut one, mut other) = (place.logged_tui().await, place.logged_tui().await);
    for tui in [&mut one, &mut other] {
        tui.keys("*");
        tui.until("all rows", |model| !model.tree.reloading).await;
    }
    let mut delays = Vec::new();
    for turn in 0..10 {
        let (mover, follower) = match turn % 2 {
            0 => (&mut one, &mut other),
            _ => (&mut other, &mut one),
        };
        let target = if turn % 2 == 0 { "a1" } else { "a2" };
        let keys = if turn % 2 == 0 {
            "home down enter"
        } else {
            "end enter"
        };
        mover.keys(keys);
        let began = Instant::now();
        follower.is_at(target).await;
        delays.push(began.elapsed());
        mover.is_at(target).await;
    }
    delays.sort();
    println!("moves are shown by the other program within {delays:?}");
    assert!(delays[delays.len() / 4] <= DELAY, "{delays:?}");

    // An idle client polls nothing. First wait until the requests of the last move have ended.
    let quiet = async {
        loop {
            let before = place.asked();
            tokio::time::sleep(Duration::from_secs(1)).await;
            if place.asked() == before {
                break;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), quiet)
        .await
        .expect("a second without a request");
    for tui in [one, other] {
        tui.daemon.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_is_opened_and_its_message_is_in_the_draft() {
    let place = Place::new();
    let mut tui = place.tui().await;
    tui.keys("home f");
    let is_listed = |model: &Model| match &model.dialog {
        Some(Dialog::Picker(picker)) => !picker.is_loading(),
        _ => false,
    };
    tui.until("the user messages", is_listed).await;
    tui.keys("enter");
    let is_forked = |model: &Model| model.editor.is_some() && model.running.is_none();
    tui.until("the draft", is_forked).await;
    let session = tui.model.session.as_ref().unwrap();
    assert_ne!(session.id, "s");
    tui.daemon.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_and_messages_of_other_clients_reach_the_user() {
    let place = Place::new();
    let mut tui = place.tui().await;
    let guard = place.client("guard").await;
    let asking = {
        let guard = guard.clone();
        let ask = guard.ask_user(AskKind::Select, "Where to go?");
        let ask = ask.options(["Stay", "Leave"]);
        tokio::spawn(ask.into_future())
    };
    let is_asked = |model: &Model| matches!(model.dialog, Some(Dialog::Question(_)));
    tui.until("a question", is_asked).await;
    tui.update(Message::Tick(Duration::from_secs(60)));
    tui.keys("down enter");
    let answer = asking.await.unwrap().unwrap();
    assert_eq!(answer.value.unwrap().parse::<String>().unwrap(), "Leave");

    // If the asker withdraws a question, it closes.
    tui.update(Message::Tick(Duration::from_secs(120)));
    let ask = guard.ask_user(AskKind::Confirm, "Leave?");
    let asking = tokio::spawn(ask.into_future());
    tui.until("a question", is_asked).await;
    asking.abort();
    tui.until("no question", |model| model.dialog.is_none())
        .await;
    let notice = tui.model.notice.as_ref().unwrap();
    assert_eq!(notice.text, "The question was taken back.");

    let notified = guard
        .notify_user("The build is red.", NotifyLevel::Error)
        .await;
    assert_eq!(notified.unwrap().delivered, 1);
    let is_said = |model: &Model| {
        let notice = model.notice.as_ref();
        notice.is_some_and(|it| it.level == Level::Error && it.text == "guard: The build is red.")
    };
    tui.until("a message", is_said).await;
    tui.daemon.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_other_clients_are_listed_run_and_cancelled() {
    let place = Place::new();
    let mut tui = place.tui().await;
    let owner = place.client("todo-list").await;
    let offer = owner.register_command("todo").argument_hint("TEXT");
    offer.await.unwrap();
    let mut heard = owner.notifications();
    let mut invoked = async || loop {
        match heard.next().await.unwrap() {
            Notification::CommandInvoked(invoked) => return invoked,
            _ => continue,
        }
    };
    let is_listed = |model: &Model| {
        let line = model.command_line.as_ref();
        line.is_some_and(|line| !line.listing)
    };
    tui.keys(":");
    tui.until("the commands", is_listed).await;
    tui.keys("t o d o space S h i p enter");
    let command = invoked().await;
    assert_eq!(
        (&*command.args, command.session_id.as_deref()),
        ("Ship", Some("s"))
    );
    let mut answer = EventAnswer::none();
    answer.output = Some("Added: Ship".into());
    answer.prompt = Some("Do it.".into());
    let answered = owner.answer_event(command.event_id).result(answer);
    answered.await.unwrap();
    tui.until("the end", |model| model.running.is_none()).await;
    assert_eq!(tui.model.notice.as_ref().unwrap().text, "Added: Ship");
    assert_eq!(tui.model.editor.as_ref().unwrap().input.text(), "Do it.");

    tui.keys("esc :");
    tui.until("the commands", is_listed).await;
    tui.keys("t o d o enter");
    let command = invoked().await;
    tui.keys("esc");
    let late = async || {
        let late = owner.answer_event(&command.event_id).extend_ms(1000).await;
        late.is_err_and(|error| error.is(treelined_client::ErrorKind::EventNotPending))
    };
    let began = Instant::now();
    while !late().await {
        assert!(began.elapsed() < PATIENCE, "the command still runs");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tui.daemon.close().await;
}

/// The daemon ends. The program reports this, and continues with another daemon at the same address.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_goes_on_with_the_next_shared_daemon() {
    let place = Place::new();
    let mut tui = place.tui().await;
    tui.keys("home I k e p t");
    place.stop();
    let is_down =
        |model: &Model| matches!(model.link, treelined_tui::model::Connection::Down { .. });
    tui.until("the end of the daemon", is_down).await;
    tui.keys("R");
    let is_up = |model: &Model| {
        let is_up = matches!(model.link, treelined_tui::model::Connection::Up(_));
        is_up && model.session.is_some() && !model.tree.reloading
    };
    tui.until("another daemon", is_up).await;
    assert_eq!(tui.model.tree.cursor, 0);
    assert_eq!(tui.model.editor.as_ref().unwrap().input.text(), "kept");
    tui.is_at("a2").await;
    tui.daemon.close().await;
}
