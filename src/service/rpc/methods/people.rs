//! `ask_user` and `notify_user` (protocol.md §13).

use super::peers::{NewQuestion, check_open, takes, tell};
use crate::daemon::MAX_ANSWER;
use crate::daemon::call::Call;
use crate::daemon::connection::Connection;
use crate::peers::PeerOutcome;
use crate::people::{self, FittingAnswers};
use crate::rpc::handler::Remainder;
use std::sync::Arc;
use std::time::Duration;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::id::{ConnectionId, EventId};
use treelined_wire::methods::Notification;
use treelined_wire::{
    self as wire, AskKind, AskingEvent, DismissReason, EventOutcome, EventReply, notification,
};

pub(in crate::rpc) fn ask_user(
    call: &Arc<Call>,
    params: wire::AskUserParams,
) -> Result<Remainder<wire::AskUserResult>> {
    people::check(&params)?;
    check_open(call, params.session_id.as_deref())?;
    let wire::AskUserParams {
        kind,
        title,
        message,
        options,
        placeholder,
        initial,
        timeout_ms,
        session_id,
    } = params;
    let asked = with_person(call, session_id.as_deref(), |connection| {
        has_kind(connection, kind) && takes(connection, notification::UserAsked::NAME)
    });
    if asked.is_empty() {
        return Err(nobody());
    }
    let fitting = FittingAnswers {
        kind,
        options: options.clone().unwrap_or_default(),
    };
    let question = NewQuestion {
        asked,
        session: session_id.as_deref().unwrap_or_default().into(),
        timeout: timeout_ms.map_or(MAX_ANSWER, Duration::from_millis),
        accepts: Box::new(move |reply: &EventReply| fitting.check(reply)),
    };
    let by = call.connection.display_name();
    let about = session_id.clone();
    let sent = question.send(call, |event_id, timeout_ms| notification::UserAsked {
        event_id,
        by,
        kind,
        title,
        message,
        options,
        placeholder,
        initial,
        timeout_ms,
        session_id,
    })?;
    Ok(Box::pin(async move {
        let (outcome, event_id, asked) = sent.outcome().await;
        let resolved = Resolved {
            event_id,
            asked,
            session_id: about,
        };
        resolved.result(outcome)
    }))
}

/// The connections with a person in front of them, except the caller; with a session those that have it open.
fn with_person(
    call: &Call,
    session_id: Option<&str>,
    is_meant: impl Fn(&Connection) -> bool,
) -> Vec<Arc<Connection>> {
    let others = call.daemon.connections.all().into_iter();
    let others = others.filter(|other| other.id != call.connection.id);
    let meant = others
        .filter(|other| session_id.is_none_or(|id| call.daemon.queues.is_open_for(other.id, id)));
    meant.filter(|other| is_meant(other)).collect()
}

fn has_kind(connection: &Connection, kind: AskKind) -> bool {
    let kinds = connection.client().and_then(|client| client.ui.as_ref());
    kinds.is_some_and(|kinds| kinds.contains(&kind))
}

fn nobody() -> Error {
    let message = "no connection can ask a person in this way";
    Error::new(Kind::NoUser, message)
}

/// A question that is over.
struct Resolved {
    event_id: EventId,
    /// The connections that were asked.
    asked: Vec<Arc<Connection>>,
    session_id: Option<String>,
}

impl Resolved {
    /// The result of the request. Those who were asked and have not answered learn of the outcome.
    fn result(self, outcome: PeerOutcome) -> Result<wire::AskUserResult> {
        let dismissed = |reason| wire::AskUserResult {
            dismissed: Some(true),
            reason: Some(reason),
            ..wire::AskUserResult::default()
        };
        match outcome {
            PeerOutcome::Answered(by, EventReply::Answer(answer)) => {
                let value = answer.value;
                let outcome = match value {
                    Some(_) => EventOutcome::Answered,
                    None => EventOutcome::Dismissed,
                };
                self.announce(outcome, Some(by));
                Ok(match value {
                    Some(_) => wire::AskUserResult {
                        value,
                        ..wire::AskUserResult::default()
                    },
                    None => dismissed(DismissReason::Dismissed),
                })
            }
            PeerOutcome::Answered(..) | PeerOutcome::TimedOut => {
                self.announce(EventOutcome::Timeout, None);
                Ok(dismissed(DismissReason::Timeout))
            }
            PeerOutcome::Gone => Err(nobody()),
            PeerOutcome::Cancelled => {
                self.announce(EventOutcome::Aborted, None);
                Err(Error::cancelled())
            }
        }
    }

    fn announce(mut self, outcome: EventOutcome, by: Option<ConnectionId>) {
        let answerer = self.asked.iter().find(|asked| Some(asked.id) == by);
        let resolved = notification::EventResolved {
            session_id: self.session_id,
            seq: None,
            event_id: self.event_id.as_str().to_owned(),
            event: AskingEvent::UserAsked,
            navigation_id: None,
            outcome,
            by: answerer.map(|answerer| answerer.display_name()),
            message: None,
        };
        self.asked
            .retain(|asked| Some(asked.id) != by && asked.wants(notification::EventResolved::NAME));
        tell(&self.asked, &resolved);
    }
}

pub(in crate::rpc) fn notify_user(
    call: &Arc<Call>,
    params: wire::NotifyUserParams,
) -> Result<wire::NotifyUserResult> {
    people::check_message(&params.message)?;
    check_open(call, params.session_id.as_deref())?;
    let notified = with_person(call, params.session_id.as_deref(), |connection| {
        let has_person = connection
            .client()
            .is_some_and(|client| client.ui.is_some());
        has_person && takes(connection, notification::UserNotified::NAME)
    });
    let wire::NotifyUserParams {
        message,
        level,
        session_id,
    } = params;
    let told = notification::UserNotified {
        message,
        level,
        by: call.connection.display_name(),
        session_id,
    };
    tell(&notified, &told);
    Ok(wire::NotifyUserResult {
        delivered: notified.len() as u64,
    })
}
