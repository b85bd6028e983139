//! `ask_user` and `notify_user` (protocol.md §13).

use super::peers::{Asked, NewQuestion, SentQuestion, others, takes, tell};
use crate::ask::MAX_ANSWER;
use crate::peers::PeerOutcome;
use crate::people::{self, FittingAnswers};
use crate::rpc::caller::Caller;
use crate::rpc::handler::Remainder;
use std::time::Duration;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::id::ConnectionId;
use treelined_wire::methods::Notification;
use treelined_wire::{
    self as wire, AskingEvent, DismissReason, EventOutcome, EventReply, notification,
};

pub(in crate::rpc) fn ask_user(
    caller: &Caller<'_>,
    params: wire::AskUserParams,
) -> Result<Remainder<wire::AskUserResult>> {
    people::check(&params)?;
    let (call, opened) = (
        caller.call(),
        caller.check_open(params.session_id.as_deref()),
    );
    Ok(Remainder::of(async move {
        opened.await?;
        let session_id = params.session_id.clone();
        let sent = ask(&Caller::of(&call), params)?;
        let (outcome, asked) = sent.outcome().await;
        Resolved { asked, session_id }.result(outcome)
    }))
}

/// Asks the people at other connections.
fn ask(caller: &Caller<'_>, params: wire::AskUserParams) -> Result<SentQuestion> {
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
    let asked = others(caller, session_id.as_deref(), |connection| {
        let kinds = connection.client().and_then(|client| client.ui.as_ref());
        kinds.is_some_and(|kinds| kinds.contains(&kind))
            && takes(connection, notification::UserAsked::NAME)
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
    let by = caller.connection().display_name();
    question.send(caller, |event_id, timeout_ms| notification::UserAsked {
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
    })
}

fn nobody() -> Error {
    let message = "no connection can ask a person in this way";
    Error::new(Kind::NoUser, message)
}

/// A question that has ended.
struct Resolved {
    asked: Asked,
    session_id: Option<String>,
}

impl Resolved {
    /// The result of the request. Connections that were asked and have not answered are notified of the outcome.
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
        let connections = &mut self.asked.connections;
        let answerer = connections.iter().find(|asked| Some(asked.id) == by);
        let resolved = notification::EventResolved {
            session_id: self.session_id,
            seq: None,
            event_id: self.asked.event_id.as_str().to_owned(),
            event: AskingEvent::UserAsked,
            navigation_id: None,
            outcome,
            by: answerer.map(|answerer| answerer.display_name()),
            message: None,
        };
        let name = notification::EventResolved::NAME;
        connections.retain(|asked| Some(asked.id) != by && asked.wants(name));
        tell(connections, &resolved);
    }
}

pub(in crate::rpc) fn notify_user(
    caller: &Caller<'_>,
    params: wire::NotifyUserParams,
) -> Result<Remainder<wire::NotifyUserResult>> {
    people::check_message(&params.message)?;
    let (call, opened) = (
        caller.call(),
        caller.check_open(params.session_id.as_deref()),
    );
    Ok(Remainder::of(async move {
        opened.await?;
        Ok(notify(&Caller::of(&call), params))
    }))
}

/// Shows a message to the people at other connections.
fn notify(caller: &Caller<'_>, params: wire::NotifyUserParams) -> wire::NotifyUserResult {
    let notified = others(caller, params.session_id.as_deref(), |connection| {
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
    let notice = notification::UserNotified {
        message,
        level,
        by: caller.connection().display_name(),
        session_id,
    };
    tell(&notified, &notice);
    wire::NotifyUserResult {
        delivered: notified.len() as u64,
    }
}
