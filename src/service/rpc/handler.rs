//! Runs handlers. There is one function for each kind of handler. The scope of a method (the table in
//! [`treelined_wire::methods`]) decides what its handler gets, and so which operations the handler can do:
//!
//! - immediate: a [`Caller`], which has no place in any queue.
//! - registry: an [`Arrival`], which takes places in the queues. The handler returns the rest of its work.
//! - session(read): a [`Read`](super::session_read::Read), a session that the handler cannot change.
//! - session(append): a [`ChangePlace`](crate::daemon::commit::ChangePlace), which commits once. The handlers in the
//!   file `append` get only the params, and return the entries to append.
//! - session(release): a place for an operation that asks before it commits, such as
//!   [`Release`](crate::daemon::release::Release).
//!
//! [`super::table`] passes each handler to the function of its scope. The result of a handler has the type that its row
//! in the table declares.

use super::arrival::Arrival;
use super::caller::Caller;
use super::decode::decode;
use super::reply::{Prepared, Reply};
use super::response::Responder;
use crate::daemon::append::{Append, AppendOutcome};
use crate::daemon::at_once::at_once_or_later;
use crate::daemon::call::TakesPlace;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use treelined_core::error::Result;
use treelined_core::flow::append::NewEntry;
use treelined_wire::{Mutation, OnSession};

/// A result of type `R`: the value, or its JSON.
pub(super) trait Answer<R> {
    fn reply(self) -> Result<Reply>;
}

impl<R: Serialize> Answer<R> for R {
    fn reply(self) -> Result<Reply> {
        Reply::of(&self)
    }
}

impl<R> Answer<R> for Prepared<R> {
    fn reply(self) -> Result<Reply> {
        Ok(self.into_reply())
    }
}

/// The rest of a handler's work, which may wait.
pub(super) struct Remainder<O>(Pin<Box<dyn Future<Output = Result<O>> + Send>>);

impl<O> Remainder<O> {
    pub(super) fn of(work: impl Future<Output = Result<O>> + Send + 'static) -> Self {
        Self(Box::pin(work))
    }
}

/// The output of an immediate handler whose result has the type `R`: the result, or the rest of the work.
pub(super) trait Output<R> {
    fn send(self, responder: Responder);
}

impl<R: Serialize> Output<R> for R {
    fn send(self, responder: Responder) {
        responder.respond(self.reply());
    }
}

impl<R> Output<R> for Prepared<R> {
    fn send(self, responder: Responder) {
        responder.respond(self.reply());
    }
}

impl<R, O: Answer<R> + 'static> Output<R> for Remainder<O> {
    fn send(self, responder: Responder) {
        finish::<R, O>(responder, self.0);
    }
}

/// Runs a handler that needs no session.
pub(super) fn immediate<P, R, O>(
    params: Option<&str>,
    responder: Responder,
    handler: impl FnOnce(&Caller<'_>, P) -> Result<O>,
) where
    P: DeserializeOwned,
    O: Output<R>,
{
    let caller = Caller::of(responder.call());
    let output = decode(params).and_then(|params| handler(&caller, params));
    send::<R, O>(output, responder);
}

/// Runs a handler that may change the set of open sessions.
pub(super) fn registry<P, R, O>(
    params: Option<&str>,
    responder: Responder,
    handler: impl FnOnce(&Arrival<'_>, P) -> Result<Remainder<O>>,
) where
    P: DeserializeOwned,
    O: Answer<R> + 'static,
{
    let arrival = Arrival::of(responder.call());
    let output = decode(params).and_then(|params| handler(&arrival, params));
    send::<R, Remainder<O>>(output, responder);
}

fn send<R, O: Output<R>>(output: Result<O>, responder: Responder) {
    match output {
        Ok(output) => output.send(responder),
        Err(error) => responder.respond(Err(error)),
    }
}

/// Runs a handler that changes a session. The handler gets its place in the queue of the session.
pub(super) fn change<L, P, R, O, F>(
    params: Option<&str>,
    responder: Responder,
    handler: impl FnOnce(L, P) -> F,
) where
    L: TakesPlace,
    P: OnSession + DeserializeOwned,
    O: Answer<R>,
    F: Future<Output = Result<O>> + Send + 'static,
{
    match decode::<P>(params) {
        Ok(params) => {
            let place = L::take(responder.call(), params.session_id());
            finish::<R, O>(responder, handler(place, params));
        }
        Err(error) => responder.respond(Err(error)),
    }
}

/// Runs work on this thread until it has to wait, and then on the runtime. Responds at the end.
fn finish<R, O: Answer<R>>(
    responder: Responder,
    work: impl Future<Output = Result<O>> + Send + 'static,
) {
    at_once_or_later(async {
        let result = work.await.and_then(O::reply);
        responder.respond(result);
    });
}

/// The entries that a request appends as one operation. Adjacent appends in the queue are written together.
pub(super) struct NewAppend<R> {
    pub(super) entries: Vec<NewEntry>,
    pub(super) result: fn(AppendOutcome) -> Result<R>,
}

/// Runs a handler that returns the entries to append. Adjacent appends in the queue are written together. If the append
/// `holds`, it waits for more appends until the queues are settled.
pub(super) fn append<P, R>(
    params: Option<&str>,
    responder: Responder,
    handler: impl FnOnce(&P) -> Result<NewAppend<R>>,
    holds: bool,
) where
    P: Mutation + DeserializeOwned,
    R: Serialize + 'static,
{
    let new = decode(params).and_then(|params: P| Ok((handler(&params)?, params)));
    let (NewAppend { entries, result }, params) = match new {
        Ok(new) => new,
        Err(error) => return responder.respond(Err(error)),
    };
    let call = Arc::clone(responder.call());
    let answer = Box::new(move |appended: Result<AppendOutcome>| {
        let result = appended.and_then(|appended| Reply::of(&result(appended)?));
        responder.respond(result);
    });
    let (writer, expected) = (Arc::clone(&call.daemon), params.expected_leaf().clone());
    let append = Append::new(writer, &call.cancel, expected, entries, answer);
    let queues = &call.daemon.registry.queues;
    let by = Some(call.connection.id);
    queues.append(by, params.session_id(), &call.cancel, append, holds);
}
