//! Searches all sessions. One search runs at a time: a new one cancels the running one and waits for its end, so
//! that all hits that arrive while a search runs are its own.

use super::operations::LONG;
use super::{Daemon, convert, failure};
use crate::message::{self, Failure, SearchQuery};
use std::pin::pin;
use tokio::sync::oneshot;
use treelined_client::{
    Client, Error, InvalidParamsDetails, Notification, SearchResult, SearchSyntax,
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
                // The end of the connection has been reported.
                return;
            };
            let result = daemon.search_with(&client, query, cancelled).await;
            let result = result.map(convert::hit_page).map_err(reason);
            daemon.say(message::Daemon::Found { generation, result });
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
            .syntax(SearchSyntax::Filters)
            .directory(&self.cwd)
            .limit(query.limit as u64)
            .timeout(LONG);
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
            // The sender is only ever dropped.
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

/// Converts an error. That of a bad pattern is shown at the pattern, and is only its reason.
fn reason(error: Error) -> Failure {
    let details = match &error {
        Error::Refused { error, .. } => error.details::<InvalidParamsDetails>(),
        _ => None,
    };
    let failure = failure(error);
    match details {
        Some(details) if details.field == "query" => Failure {
            message: crate::text::line(&details.reason),
            ..failure
        },
        _ => failure,
    }
}

/// The error of a search that was cancelled before it began.
fn superseded() -> Error {
    Error::InvalidCall {
        method: "search".to_owned(),
        message: "a later search has replaced this one".to_owned(),
    }
}
