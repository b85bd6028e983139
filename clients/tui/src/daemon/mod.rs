//! Runs effects through `treelined-client`, and returns the daemon's answers and notifications as messages.
//! Each call runs in its own task, so no function here blocks.

mod aside;
mod branches;
mod changes;
mod compare;
mod convert;
mod failure;
mod figures;
mod handoff;
mod operations;
mod people;
mod presence;
mod search;
mod sorting;

pub use convert::row;
pub use handoff::is_on_path;

use failure::failure;

use crate::message::{self, Effect, Folds, Message, PagePosition, Sort, Target};
use crate::model::document::{self, Document};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use treelined_client::{
    Builder, Client, Error, ErrorKind, Message as ChatMessage, Notification, SessionSort, TreeFold,
    TreeRender,
};

/// The deadline for work on many files. The user can cancel such work with Esc.
const LONG: Duration = Duration::from_secs(24 * 3600);

/// The connection, and the data needed to make it again.
#[derive(Clone)]
pub struct Daemon {
    builder: Arc<Builder>,
    /// The directory whose sessions are listed first.
    cwd: String,
    messages: UnboundedSender<Message>,
    state: Arc<Mutex<State>>,
    /// The running search holds this lock.
    search_turn: Arc<tokio::sync::Mutex<()>>,
}

/// The state that the tasks share. The mutex is from the standard library, since it is never held during
/// I/O.
#[derive(Default)]
struct State {
    client: Option<Client>,
    /// The open session.
    session: Option<String>,
    /// The comparison that was started last.
    comparing: Option<AbortHandle>,
    /// The command that was started last.
    running: Option<AbortHandle>,
    /// The task that asks which machines have the open session open.
    presence: Option<AbortHandle>,
    /// Dropping this sender ends the search that was started last.
    searching: Option<oneshot::Sender<()>>,
    /// Whether the program itself closes the connection.
    closing: bool,
}

impl Daemon {
    pub fn new(builder: Builder, cwd: String, messages: UnboundedSender<Message>) -> Self {
        Self {
            builder: Arc::new(people::with_person(
                builder.summary_deltas().progress().search_hits(),
            )),
            cwd,
            messages,
            state: Arc::default(),
            search_turn: Arc::default(),
        }
    }

    /// Runs `effect`, if the effect is for the daemon.
    pub fn run(&self, effect: Effect) {
        let is_comparison = matches!(effect, Effect::Compare { .. });
        if is_comparison || effect == Effect::StopComparing {
            // Aborting the task also cancels its calls.
            let before = self.state().comparing.take();
            before.inspect(AbortHandle::abort);
        }
        let is_command = matches!(effect, Effect::RunCommand { .. } | Effect::Operate { .. });
        if is_command || effect == Effect::StopCommand {
            let before = self.state().running.take();
            before.inspect(AbortHandle::abort);
        }
        if let Effect::Search(query) = effect {
            self.search(query);
            return;
        }
        if let Effect::CompleteQuery(query) = effect {
            self.complete_query(query);
            return;
        }
        if effect == Effect::StopSearch {
            self.state().searching = None;
            return;
        }
        let daemon = self.clone();
        let task = tokio::spawn(async move {
            if let Some(message) = daemon.carry_out(effect).await {
                daemon.say(message);
            }
        });
        if is_comparison {
            self.state().comparing = Some(task.abort_handle());
        }
        if is_command {
            self.state().running = Some(task.abort_handle());
        }
    }

    /// Ends the daemon after it has answered all calls.
    pub async fn close(&self) {
        let client = {
            let mut state = self.state();
            state.closing = true;
            state.client.take()
        };
        if let Some(client) = client {
            // This program ends too, so a failure of the daemon does not matter any more.
            let _ended = client.close().await;
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn say(&self, message: message::Daemon) {
        // This fails only while the program ends.
        let _sent = self.messages.send(Message::Daemon(message));
    }

    /// Returns a client whose calls are about the open session.
    fn client(&self) -> Option<Client> {
        let state = self.state();
        let client = state.client.as_ref()?;
        Some(match &state.session {
            Some(session) => client.with_session(session),
            None => client.clone(),
        })
    }

    async fn carry_out(&self, effect: Effect) -> Option<message::Daemon> {
        use message::Daemon as Answer;
        if effect == Effect::Connect {
            return Some(self.connect().await);
        }
        let Some(client) = self.client() else {
            // The end of the connection was reported already.
            return None;
        };
        Some(match effect {
            Effect::Quit
            | Effect::Suspend
            | Effect::Run { .. }
            | Effect::Copy(_)
            | Effect::Connect
            | Effect::Search(_)
            | Effect::CompleteQuery(_)
            | Effect::StopSearch
            | Effect::StopComparing
            | Effect::StopCommand => return None,
            Effect::ListCommands | Effect::RunCommand { .. } | Effect::AnswerUser { .. } => {
                let session = self.state().session.clone();
                return people::carry_out(&client, session, effect).await;
            }
            Effect::Operate { id, operation } => {
                let result = self.operate(&client, operation).await.map_err(failure);
                Answer::CommandEnded { id, result }
            }
            Effect::ListItems(kind) => Answer::Listed {
                kind,
                result: self.list_items(&client, kind).await.map_err(failure),
            },
            Effect::ListSessions(query) => Answer::Sessions {
                generation: query.generation,
                result: self.list(&client, query).await.map_err(failure),
            },
            Effect::OpenSession(target) => Answer::Opened(self.open(target).await.map_err(failure)),
            Effect::GetTree(_)
            | Effect::GetEntry { .. }
            | Effect::GetText { .. }
            | Effect::GetTokens { .. }
            | Effect::PreviewHandoff(_)
            | Effect::Prepare { .. } => return read(&client, effect).await,
            Effect::Navigate(_)
            | Effect::AbortNavigation { .. }
            | Effect::Undo
            | Effect::Redo
            | Effect::Label { .. } => return change(&client, effect).await,
            Effect::Rename { session_id, name } => Answer::Renamed(
                self.rename(&client, &session_id, name)
                    .await
                    .map_err(failure),
            ),
            Effect::Trash { session_id } => {
                let result = client.delete_session(&session_id).await;
                let result = result.map(drop).map_err(failure);
                Answer::Trashed { session_id, result }
            }
            Effect::Send(draft) => {
                let call = client.append_message(user_message(&draft));
                let sent = call.expected_leaf_id(draft.expected_leaf.as_deref()).await;
                Answer::Sent(sent.map(drop).map_err(failure))
            }
            Effect::Compare { id, left, right } => {
                let report = |read, most| self.say(Answer::Comparing { id, read, most });
                let compared = compare::compare(&client, &left, &right, report).await;
                let result = compared.map(Box::new).map_err(failure);
                Answer::Compared { id, result }
            }
        })
    }

    async fn connect(&self) -> message::Daemon {
        let client = match self.builder.spawn().await {
            Ok(client) => client,
            Err(Error::Disconnected(end)) => return message::Daemon::Lost(convert::end(&end)),
            Err(error) => {
                return message::Daemon::Lost(message::End {
                    reason: crate::text::line(&reason(&error)),
                    last_words: Vec::new(),
                });
            }
        };
        let server = message::Server {
            version: crate::text::line(&client.server().server_info.version),
            summarizer: client.server().capabilities.summarizer.clone(),
        };
        let listener = self.clone();
        let of = client.clone();
        let mut notifications = client.notifications();
        {
            let mut state = self.state();
            state.client = Some(client);
            state.session = None;
        }
        let watcher = of.clone();
        tokio::spawn(async move {
            // An older daemon may not have this method, and sends no changes. Then the list is read again
            // whenever it is shown.
            let _watching = watcher.watch_sessions().await;
        });
        tokio::spawn(async move {
            while let Some(notification) = notifications.next().await {
                listener.forward(&notification);
            }
            let end = of.closed().await;
            let closing = {
                let mut state = listener.state();
                state.client = None;
                state.closing
            };
            if !closing {
                listener.say(message::Daemon::Lost(convert::end(&end)));
            }
        });
        message::Daemon::Connected(server)
    }

    /// Passes notifications about the open session to the model.
    fn forward(&self, notification: &Notification) {
        let of = match notification {
            // The daemon sends these notifications only to clients that they concern.
            Notification::SessionsChanged(_)
            | Notification::UserAsked(_)
            | Notification::UserNotified(_)
            | Notification::EventResolved(_) => None,
            _ => notification.session_id(),
        };
        if of.is_some() && of != self.state().session.as_deref() {
            return;
        }
        if let Some(event) = convert::event(notification) {
            self.say(message::Daemon::Event(event));
        }
    }

    async fn list(
        &self,
        client: &Client,
        query: message::SessionQuery,
    ) -> Result<message::SessionPage, Error> {
        let sort = match query.sort {
            Sort::Threaded => SessionSort::Threaded,
            Sort::Recent => SessionSort::Recent,
            Sort::Created => SessionSort::Created,
            Sort::Name => SessionSort::Name,
        };
        let mut call = client.list_sessions().sort(sort).limit(query.limit as u64);
        if let Some(project) = &query.project {
            call = call.cwd(project);
        } else if query.here {
            call = call.cwd(&self.cwd);
        }
        if let Some(tool) = query.tool {
            call = call.source(tool);
        }
        if query.named {
            call = call.named(true);
        }
        if !query.query.trim().is_empty() {
            call = call.query(query.query.trim());
        }
        if query.archived {
            call = call.archived(true);
        }
        if let Some(cursor) = query.cursor {
            call = call.cursor(cursor);
        }
        let page = call.await?;
        Ok(message::SessionPage {
            rows: page
                .sessions
                .into_iter()
                .map(convert::session_row)
                .collect(),
            team: page
                .team
                .unwrap_or_default()
                .into_iter()
                .map(convert::team_row)
                .collect(),
            next: page.next_cursor,
        })
    }

    async fn open(&self, target: Target) -> Result<message::Session, Error> {
        let client = self.state().client.clone().ok_or_else(gone)?;
        let call = client.open_session();
        let opened = match target {
            Target::Id(id) => call.session_id(id).await?,
            Target::Path(path) => call.path(path).await?,
            Target::Latest => call.path(self.latest(&client).await?).await?,
        };
        let before = {
            let mut state = self.state();
            state.session.replace(opened.session.session_id.clone())
        };
        if let Some(before) = before.filter(|before| *before != opened.session.session_id) {
            // This fails if the session was closed already, or is in the trash.
            let _closed = client.with_session(&before).close_session().await;
        }
        self.watch_presence(client, opened.session.session_id.clone());
        Ok(convert::session(opened))
    }

    /// Finds the file of the session that was used last. Sessions of this directory are preferred.
    async fn latest(&self, client: &Client) -> Result<String, Error> {
        let here = client.list_sessions().cwd(&self.cwd).limit(1).await?;
        let found = match here.sessions.into_iter().next() {
            Some(row) => Some(row),
            None => client
                .list_sessions()
                .limit(1)
                .await?
                .sessions
                .into_iter()
                .next(),
        };
        found.map(|row| row.path).ok_or_else(|| Error::InvalidCall {
            method: "list_sessions".to_owned(),
            message: "there is no session yet".to_owned(),
        })
    }

    async fn rename(&self, client: &Client, session_id: &str, name: String) -> Result<(), Error> {
        let is_open = self.state().session.as_deref() == Some(session_id);
        if !is_open {
            client.open_session().session_id(session_id).await?;
        }
        let of = client.with_session(session_id);
        let named = of.set_session_name(name).await.map(drop);
        if !is_open {
            of.close_session().await?;
        }
        named
    }
}

/// Returns the text of an error. For a program that cannot be started, the remedy is left out, since it is
/// for authors of clients.
pub fn reason(error: &Error) -> String {
    match error {
        Error::CannotStart { program, source } => format!("cannot start {program}: {source}"),
        other => other.to_string(),
    }
}

/// Runs an effect that moves the leaf or labels an entry.
async fn change(client: &Client, effect: Effect) -> Option<message::Daemon> {
    use message::Daemon as Answer;
    Some(match effect {
        Effect::Navigate(navigate) => {
            let navigation_id = navigate.navigation_id.clone();
            let result = navigate_tree(client, navigate).await.map_err(failure);
            Answer::Navigated {
                navigation_id,
                result,
            }
        }
        Effect::AbortNavigation { navigation_id } => {
            // The answer to the navigation itself reports its end.
            let _aborted = client.abort_navigation().navigation_id(navigation_id).await;
            return None;
        }
        Effect::Undo => Answer::Moved {
            undo: true,
            result: client.undo_navigation().await.map(drop).map_err(failure),
        },
        Effect::Redo => Answer::Moved {
            undo: false,
            result: client.redo_navigation().await.map(drop).map_err(failure),
        },
        Effect::Label { id, label } => {
            let label = Some(&*label).filter(|label| !label.is_empty());
            Answer::Labelled(
                client
                    .append_label(id)
                    .label(label)
                    .await
                    .map(drop)
                    .map_err(failure),
            )
        }
        _ => return None,
    })
}

/// Runs an effect that only reads the open session.
async fn read(client: &Client, effect: Effect) -> Option<message::Daemon> {
    use message::Daemon as Answer;
    Some(match effect {
        Effect::GetTree(query) => {
            let page = get_tree(client, &query).await;
            let result = page.map(Box::new).map_err(failure);
            Answer::Tree { query, result }
        }
        Effect::GetEntry { id } => {
            let result = document(client, &id).await.map_err(failure);
            Answer::Entry { id, result }
        }
        Effect::GetText { id } => {
            let found = client.get_entry(&id).await;
            Answer::Text(
                found
                    .map(|found| document::plain_text(&convert::value(&found.entry)))
                    .map_err(failure),
            )
        }
        Effect::GetTokens { ids } => {
            // The entries are few, and the daemon has just read them, so they are requested one after the
            // other.
            let mut tokens = Vec::with_capacity(ids.len());
            for id in ids {
                let found = client.get_entry(&id).await.ok();
                let read = found.and_then(|it| document::used(&convert::value(&it.entry)));
                tokens.push((id, read.map(|used| used.tokens)));
            }
            Answer::Tokens(tokens)
        }
        Effect::PreviewHandoff(request) => {
            let result = handoff::preview(client, &request).await.map_err(failure);
            Answer::Previewed { request, result }
        }
        Effect::Prepare { target, rewind } => {
            let result = prepare(client, &target, rewind).await.map_err(failure);
            Answer::Prepared { target, result }
        }
        _ => return None,
    })
}

async fn document(client: &Client, id: &str) -> Result<Document, Error> {
    let entry = convert::value(&client.get_entry(id).await?.entry);
    let calls = changes::of(client, &entry).await;
    Ok(Document::with_calls(&entry, &calls))
}

async fn get_tree(client: &Client, query: &message::TreeQuery) -> Result<message::TreePage, Error> {
    let ask = |limit: usize| {
        let mut call = client
            .get_tree()
            .filter(convert::filter(query.filter))
            .render(TreeRender::Unicode)
            .archived(query.archived)
            .sessions(query.sessions)
            .prefix_columns(query.guide_columns as u64)
            .limit(limit as u64);
        if !query.query.is_empty() {
            let (text, mode) = convert::typed(&query.query);
            call = call.query(text).mode(mode);
        }
        if !query.folds.open_all {
            let Folds { expand, each, .. } = &query.folds;
            call = call.fold(TreeFold::LEFT).expand(expand).each(each);
        }
        call
    };
    let (around, tree) = match &query.place {
        PagePosition::Offset(offset) => (None, ask(query.limit).offset(*offset as u64).await?),
        PagePosition::Around(id) => (Some(id.clone()), ask(query.limit).around(id).await?),
        PagePosition::Leaf => match client.get_leaf().await?.leaf_id {
            Some(id) => {
                let tree = ask(query.limit).around(&id).await?;
                (Some(id), tree)
            }
            None => (None, ask(query.limit).await?),
        },
    };
    // A page with one row around an entry contains the nearest visible ancestor of the entry.
    let nearest = async |id: &str| -> Result<_, Error> {
        if let Some(at) = tree.nodes.iter().position(|node| node.id == id) {
            return Ok(Some((tree.offset as usize + at, id.to_owned())));
        }
        let page = ask(1).around(id).await?;
        let row = page.nodes.into_iter().next();
        Ok(row.map(|row| (page.offset as usize, row.id)))
    };
    let at = match &around {
        Some(id) if tree.total > 0 => nearest(id).await?.map(|(at, _)| at),
        None if query.place == PagePosition::Leaf => Some(0),
        _ => None,
    };
    let others = match &query.others {
        Some(id) if tree.total > 0 => match nearest(id).await {
            Ok(row) => row.map(|(_, id)| id),
            // The file was replaced, and the new file does not have the entry.
            Err(error) if error.is(ErrorKind::EntryNotFound) => None,
            Err(error) => return Err(error),
        },
        _ => None,
    };
    Ok(message::TreePage {
        others,
        ..convert::tree_page(tree, at)
    })
}

/// Returns the entries that a navigation would leave; `None` if the target is the leaf itself.
async fn prepare(
    client: &Client,
    target: &str,
    rewind: bool,
) -> Result<Option<message::Prepared>, Error> {
    let call = client.navigate_tree(target).rewind(rewind);
    let dry_run = call.dry_run().await?;
    Ok(dry_run.preparation.map(|preparation| {
        let is_on_path = preparation.common_ancestor_id.as_deref() == Some(target);
        message::Prepared {
            abandoned: preparation.abandoned_count as usize,
            is_on_path,
            can_summarize: dry_run.can_summarize,
        }
    }))
}

async fn navigate_tree(
    client: &Client,
    navigate: message::NavigationRequest,
) -> Result<message::Navigation, Error> {
    let mut call = client
        .navigate_tree(navigate.target)
        .navigation_id(navigate.navigation_id)
        .summarize(navigate.summarize)
        .rewind(navigate.rewind);
    if let Some(focus) = navigate.focus {
        call = call.custom_instructions(focus);
    }
    call.await.map(convert::navigation)
}

fn user_message(draft: &message::Draft) -> ChatMessage {
    if draft.images.is_empty() {
        return ChatMessage::user(draft.text.clone());
    }
    let mut content = vec![serde_json::json!({"type": "text", "text": draft.text})];
    content.extend(draft.images.iter().cloned());
    ChatMessage::new("user", serde_json::Value::from(content))
}

fn gone() -> Error {
    Error::InvalidCall {
        method: "open_session".to_owned(),
        message: "there is no daemon".to_owned(),
    }
}
