//! Asks at a navigation whether to restore the files too. The question is the answer to `session_before_tree`
//! (protocol.md §5).

use crate::at::Found;
use crate::offer::{Preview, THINKING, blocking, bring_back, preview};
use crate::session::Opened;
use crate::show;
use crate::state::State;
use anyhow::Context;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use treelined_client::{
    AskKind, Client, EventAnswer, NotifyLevel, Question, SessionBeforeTree, SessionTree,
};

const TITLE: &str = "The files differ there. What goes?";
/// The choices. Without an answer, the first one is taken.
const ALONE: &str = "The conversation alone";
const BOTH: &str = "The conversation and the files";
const FILES: &str = "The files alone";
/// The most navigations that are remembered until their files are restored.
const MAX_AGREED: usize = 64;

/// The navigations about which the user was asked.
#[derive(Clone)]
pub struct Navigations(Arc<Shared>);

struct Shared {
    state: State,
    client: OnceLock<Client>,
    /// The restores that must follow navigations, by the ids of the session and of the navigation.
    agreed: Mutex<HashMap<(String, String), Preview>>,
}

impl Navigations {
    pub fn new(state: &State) -> Navigations {
        Navigations(Arc::new(Shared {
            state: state.clone(),
            client: OnceLock::new(),
            agreed: Mutex::default(),
        }))
    }

    /// Sets the client through which the user is asked.
    pub fn set_client(&self, client: &Client) {
        let _only_one = self.0.client.set(client.clone());
    }

    /// Answers before a navigation. If there is nothing to restore, or the user cannot be asked, the answer has no
    /// opinion.
    pub async fn answer(self, event: SessionBeforeTree, question: Question) -> EventAnswer {
        let key = (event.session_id.clone(), event.navigation_id.clone());
        self.take(&key);
        tokio::select! {
            () = question.over() => EventAnswer::none(),
            answer = self.ask(&event, &question, key) => answer.unwrap_or_else(|_| EventAnswer::none()),
        }
    }

    async fn ask(
        &self,
        event: &SessionBeforeTree,
        question: &Question,
        key: (String, String),
    ) -> anyhow::Result<EventAnswer> {
        let client = self.0.client.get().context("not connected yet")?;
        let id = event.session_id.as_str();
        let rows = client.list_sessions().query(id).await?.sessions;
        let row = rows.into_iter().find(|row| row.session_id == id);
        let session = client.with_session(id);
        let opened = Opened {
            client: session.clone(),
            id: id.to_owned(),
            cwd: row.context("the session is not listed")?.cwd,
            leaf: None,
        };
        let target = Some(event.preparation.target_id.as_str());
        let found = Found::of(&self.0.state, &opened, target).await?;
        let preview = blocking(move || preview(found)).await?;
        if preview.is_empty() {
            return Ok(EventAnswer::none());
        }
        question.extend(Duration::from_millis(THINKING)).await?;
        let call = session.ask_user(AskKind::Select, TITLE);
        let call = call.message(preview.text()).options([ALONE, BOTH, FILES]);
        let asked = call.timeout_ms(THINKING).await?;
        let choice = asked
            .value
            .map(|value| value.parse::<String>())
            .transpose()?;
        Ok(match choice.as_deref() {
            Some(BOTH) => {
                self.agree(key, preview);
                EventAnswer::none()
            }
            Some(FILES) => EventAnswer::cancel_because(&match bring_back(preview).await {
                Ok(done) => format!("Only the files went back: {}", one_line(&done)),
                Err(error) => format!("The files stay: {}", show::safe(&format!("{error:#}"))),
            }),
            _ => EventAnswer::none(),
        })
    }

    fn agree(&self, key: (String, String), preview: Preview) {
        let agreed = self.0.agreed.lock();
        let mut agreed = agreed.unwrap_or_else(PoisonError::into_inner);
        if agreed.len() >= MAX_AGREED {
            agreed.clear();
        }
        agreed.insert(key, preview);
    }

    fn take(&self, key: &(String, String)) -> Option<Preview> {
        let agreed = self.0.agreed.lock();
        let mut agreed = agreed.unwrap_or_else(PoisonError::into_inner);
        agreed.remove(key)
    }

    /// Restores the files after a navigation, if the user has chosen so, and reports what was done.
    pub async fn moved(self, tree: SessionTree) {
        let Some(navigation) = tree.navigation_id else {
            return;
        };
        let preview = self.take(&(tree.session_id.clone(), navigation));
        let (Some(preview), Some(client)) = (preview, self.0.client.get()) else {
            return;
        };
        let (text, level) = match bring_back(preview).await {
            Ok(done) => (one_line(&done), NotifyLevel::Info),
            Err(error) => {
                let error = show::safe(&format!("{error:#}"));
                (format!("The files stay: {error}"), NotifyLevel::Error)
            }
        };
        let session = client.with_session(&tree.session_id);
        let _nobody_is_there = session.notify_user(text, level).await;
    }
}

/// Joins lines into one line, because clients show a notice, and the reason of a refusal, on one line.
fn one_line(lines: &str) -> String {
    lines.lines().collect::<Vec<_>>().join("; ")
}
