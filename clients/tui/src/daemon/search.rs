//! Searches all sessions. One search runs at a time. A new search cancels the running one and waits for its end,
//! so that all hits that arrive during a search belong to it.

use super::failure::failure;
use super::{Daemon, LONG, convert};
use crate::message::{self, CompletionQuery, Failure, QueryCompletion, SearchMode, SearchQuery};
use std::pin::pin;
use tokio::sync::oneshot;
use treelined_client::{
    Client, Error, InvalidParamsDetails, Notification, SearchResult, SearchSyntax,
    SessionSearchMode,
};

impl Daemon {
    pub(super) fn search(&self, query: SearchQuery) {
        let (cancel, cancelled) = oneshot::channel();
        // Dropping the old sender cancels the old search.
        self.state().searching = Some(cancel);
        let daemon = self.clone();
        tokio::spawn(async move {
            let turn = daemon.search_turn.clone();
            let _turn = turn.lock_owned().await;
            let generation = query.generation;
            let Some(client) = daemon.client() else {
                // The end of the connection was reported already.
                return;
            };
            let result = daemon.search_with(&client, query, cancelled).await;
            let fault = result.as_ref().err().and_then(fault);
            let result = result.map(convert::hit_page).map_err(reason);
            daemon.say(message::Daemon::Found {
                generation,
                result,
                fault,
            });
        });
    }

    /// Lists the texts that can complete the word at the cursor of a query. If that fails, nothing is listed.
    pub(super) fn complete_query(&self, query: CompletionQuery) {
        let daemon = self.clone();
        tokio::spawn(async move {
            let Some(client) = daemon.client() else {
                return;
            };
            let call = client.complete_query(&query.query);
            let Ok(found) = call.position(query.position as u64).await else {
                return;
            };
            let items = found.items.iter().map(|item| {
                let about = item.about.as_deref().unwrap_or_default();
                (crate::text::line(&item.text), crate::text::line(about))
            });
            daemon.say(message::Daemon::QueryCompleted {
                generation: query.generation,
                completion: QueryCompletion {
                    start: found.start as usize,
                    items: items.collect(),
                },
            });
        });
    }

    async fn search_with(
        &self,
        client: &Client,
        query: SearchQuery,
        mut cancelled: oneshot::Receiver<()>,
    ) -> Result<SearchResult, Error> {
        let mut call = client
            .search(&query.query)
            .mode(match query.mode {
                SearchMode::Ask => SessionSearchMode::Ask,
                SearchMode::Words => SessionSearchMode::Words,
                SearchMode::Literal => SessionSearchMode::Literal,
                SearchMode::Regex => SessionSearchMode::Regex,
            })
            .limit(query.limit as u64)
            .timeout(LONG);
        if query.mode.has_filters() {
            call = call.syntax(SearchSyntax::Filters).directory(&self.cwd);
        }
        if let Some(session_id) = &query.session_id {
            call = call.session_id(session_id);
        }
        if query.here {
            call = call.cwd(&self.cwd);
        }
        if let Some(cursor) = &query.cursor {
            call = call.cursor(cursor);
        }
        if let Err(oneshot::error::TryRecvError::Closed) = cancelled.try_recv() {
            return Err(superseded());
        }
        let mut notifications = client.notifications();
        let call = call.cancel_on(async {
            // The sender never sends; it is only dropped.
            let _dropped = cancelled.await;
        });
        let mut call = pin!(IntoFuture::into_future(call));
        loop {
            tokio::select! {
                biased;
                Some(notification) = notifications.next() => {
                    if let Notification::SearchHit(found) = notification {
                        let hit = convert::hit(found.hit);
                        let generation = query.generation;
                        self.say(message::Daemon::Hit { generation, hit });
                    }
                }
                result = &mut call => return result,
            }
        }
    }
}

/// Returns the details of a fault in the query; `None` for other errors.
fn fault_in_query(error: &Error) -> Option<InvalidParamsDetails> {
    let details = match error {
        Error::Refused { error, .. } => error.details::<InvalidParamsDetails>(),
        _ => None,
    };
    details.filter(|details| details.field == "query")
}

fn fault(error: &Error) -> Option<usize> {
    let position = fault_in_query(error)?.position?;
    usize::try_from(position).ok()
}

/// Converts an error. The error of a wrong pattern becomes its reason alone, since it is shown at the pattern.
fn reason(error: Error) -> Failure {
    let details = fault_in_query(&error);
    let failure = failure(error);
    match details {
        Some(details) => Failure {
            message: crate::text::line(&details.reason),
            ..failure
        },
        None => failure,
    }
}

/// The error of a search that was cancelled before it started.
fn superseded() -> Error {
    Error::InvalidCall {
        method: "search".to_owned(),
        message: "a later search has replaced this one".to_owned(),
    }
}
