//! From the name of a method to its handler, after the table in `wire::methods`.

use super::append::NewAppend;
use super::reply::Reply;
use super::response::Responder;
use super::{
    append, compact, events, fork, handshake, list, moves, navigate, pick, read, sessions, tree,
    turns,
};
use crate::daemon::append::Append;
use crate::daemon::at_once_or_later;
use crate::daemon::call::Call;
use crate::error::Result;
use crate::wire::methods::{Scope, scope, with_methods};
use crate::wire::{self, Mutation, OnSession, decode};
use std::future::Future;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A method of this daemon.
pub(super) struct Method {
    pub name: &'static str,
    pub scope: Scope,
    /// Whether it appends in a group with the appends beside it in the queue.
    pub groups: bool,
    begin: fn(Option<&str>, Responder, bool),
}

impl Method {
    /// Decodes the params and runs the handler until it has to wait. If it `holds`, an append waits for others
    /// until the queues are settled.
    pub(super) fn begin(&self, params: Option<&str>, responder: Responder, holds: bool) {
        let begin = || (self.begin)(params, responder, holds);
        // A handler that panics has dropped its responder, which answers.
        let _logged_by_the_panic_hook = catch_unwind(AssertUnwindSafe(begin));
    }
}

macro_rules! find_method {
    ($($group:ident $about:literal {
        $($name:literal {
            summary: $summary:literal,
            section: $section:literal,
            scope: $scope:ident $(($access:ident))?,
            params: $params:ident,
            result: $result:ty,
            errors: $errors:tt,
            run: $run:path,
        })+
    })+) => {
        /// The method of this name.
        pub(super) fn find(name: &str) -> Option<Method> {
            Some(match name {
                $($($name => Method {
                    name: $name,
                    scope: scope!($scope $(($access))?),
                    groups: groups!($scope $(($access))? $params $run),
                    begin: begin!($scope $(($access))? $params $run),
                },)+)+
                _ => return None,
            })
        }
    };
}
macro_rules! groups {
    (session(append) $params:ident $run:path) => {
        groups::<wire::$params, _, _>($run)
    };
    ($scope:ident $(($access:ident))? $params:ident $run:path) => {
        false
    };
}
/// How a handler begins: what it may do depends on the scope that its row declares.
macro_rules! begin {
    (session(append) $params:ident $run:path) => {
        |params, responder, holds| {
            AppendHandler::<wire::$params, _>::begin($run, decode(params), responder, holds)
        }
    };
    (session($access:ident) $params:ident $run:path) => {
        |params, responder, _| in_session::<wire::$params, _>(decode(params), responder, $run)
    };
    ($scope:ident $params:ident $run:path) => {
        |params, responder, _| begin::<wire::$params, _>(decode(params), responder, $run)
    };
}
with_methods!(find_method);

/// Begins a handler outside the queues.
fn begin<P, F>(params: Result<P>, responder: Responder, handler: fn(Arc<Call>, P) -> F)
where
    F: Future<Output = Result<Reply>> + Send + 'static,
{
    match params {
        Ok(params) => {
            let handling = handler(Arc::clone(responder.call()), params);
            at_once_or_later(async { responder.respond(handling.await) });
        }
        Err(error) => responder.respond(Err(error)),
    }
}

/// Begins a handler whose request has its place in the queue of its session from now on, whenever the handler
/// gets there.
fn in_session<P, F>(params: Result<P>, responder: Responder, handler: fn(Arc<Call>, P) -> F)
where
    P: OnSession,
    F: Future<Output = Result<Reply>> + Send + 'static,
{
    if let Ok(params) = &params {
        responder.call().take_place(params.session_id());
    }
    begin(params, responder, handler);
}

/// A handler of scope `session(append)`: either a function that says which entries are appended, or one that
/// works on the session alone.
trait AppendHandler<P, Form> {
    /// Whether it appends in a group with the appends beside it in the queue.
    const GROUPS: bool;

    fn begin(self, params: Result<P>, responder: Responder, holds: bool);
}

/// The form `fn(&P) -> Result<NewAppend>`.
struct InGroup;

/// The form `async fn(Arc<Call>, P) -> Result<Reply>`.
struct Alone<F>(PhantomData<F>);

fn groups<P, Form, H: AppendHandler<P, Form>>(_: H) -> bool {
    H::GROUPS
}

impl<P, H> AppendHandler<P, InGroup> for H
where
    P: Mutation,
    H: FnOnce(&P) -> Result<NewAppend>,
{
    const GROUPS: bool = true;

    fn begin(self, params: Result<P>, responder: Responder, holds: bool) {
        let new = params.and_then(|params| Ok((self(&params)?, params)));
        let (NewAppend { entries, reply }, params) = match new {
            Ok(new) => new,
            Err(error) => return responder.respond(Err(error)),
        };
        let call = Arc::clone(responder.call());
        let answer = Box::new(move |appended: Result<_>| {
            responder.respond(appended.and_then(reply));
        });
        let append = Append::new(&call, params.expected_leaf().clone(), entries, answer);
        let queues = &call.daemon.queues;
        queues.append(params.session_id(), &call.cancel, append, holds);
    }
}

impl<P, F, H> AppendHandler<P, Alone<F>> for H
where
    P: OnSession,
    F: Future<Output = Result<Reply>> + Send + 'static,
    H: FnOnce(Arc<Call>, P) -> F,
{
    const GROUPS: bool = false;

    fn begin(self, params: Result<P>, responder: Responder, _: bool) {
        let params = match params {
            Ok(params) => params,
            Err(error) => return responder.respond(Err(error)),
        };
        let call = Arc::clone(responder.call());
        call.take_place(params.session_id());
        let handling = self(call, params);
        at_once_or_later(async { responder.respond(handling.await) });
    }
}
