//! From the name of a method to its handler, after the table in `wire::methods`.

use super::append::NewAppend;
use super::call::Call;
use super::reply::Reply;
use super::{
    append, compact, events, fork, handshake, import, list, moves, navigate, pick, read, sessions,
    tree, turns,
};
use crate::daemon::append::submit;
use crate::error::Result;
use crate::wire::methods::{Scope, scope, with_methods};
use crate::wire::{self, Mutation, OnSession, decode};
use std::future::Future;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;

/// A request on its way to its result.
pub(super) type Handling = Pin<Box<dyn Future<Output = Result<Reply>> + Send>>;

/// A method of this daemon.
pub(super) struct Method {
    pub name: &'static str,
    pub scope: Scope,
    begin: fn(Option<&str>, Arc<Call>) -> Handling,
}

impl Method {
    /// Decodes the params and begins the handler, which runs once it is polled. `None` if this panics.
    pub(super) fn begin(&self, params: Option<&str>, call: Arc<Call>) -> Option<Handling> {
        catch_unwind(AssertUnwindSafe(|| (self.begin)(params, call))).ok()
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
                    begin: begin!($scope $(($access))? $params $run),
                },)+)+
                _ => return None,
            })
        }
    };
}
/// How a handler begins: what it may do depends on the scope that its row declares.
macro_rules! begin {
    (session(append) $params:ident $run:path) => {
        |params, call| AppendHandler::<wire::$params, _>::begin($run, decode(params), call)
    };
    (session($access:ident) $params:ident $run:path) => {
        |params, call| in_session::<wire::$params, _>(decode(params), call, $run)
    };
    ($scope:ident $params:ident $run:path) => {
        |params, call| begin::<wire::$params, _>(decode(params), call, $run)
    };
}
with_methods!(find_method);

/// Begins a handler outside the queues.
fn begin<P, F>(params: Result<P>, call: Arc<Call>, handler: fn(Arc<Call>, P) -> F) -> Handling
where
    F: Future<Output = Result<Reply>> + Send + 'static,
{
    match params {
        Ok(params) => Box::pin(handler(call, params)),
        Err(error) => Box::pin(std::future::ready(Err(error))),
    }
}

/// Begins a handler whose request has its place in the queue of its session from now on, whenever the handler
/// gets there.
fn in_session<P, F>(params: Result<P>, call: Arc<Call>, handler: fn(Arc<Call>, P) -> F) -> Handling
where
    P: OnSession,
    F: Future<Output = Result<Reply>> + Send + 'static,
{
    if let Ok(params) = &params {
        call.take_place(params.session_id());
    }
    begin(params, call, handler)
}

/// A handler of scope `session(append)`: either a function that says which entries are appended, or one that
/// works on the session alone.
trait AppendHandler<P, Form> {
    fn begin(self, params: Result<P>, call: Arc<Call>) -> Handling;
}

/// The form `fn(&P) -> Result<NewAppend>`.
struct InGroup;

/// The form `async fn(Arc<Call>, P) -> Result<Reply>`.
struct Alone<F>(PhantomData<F>);

impl<P, H> AppendHandler<P, InGroup> for H
where
    P: Mutation,
    H: FnOnce(&P) -> Result<NewAppend>,
{
    fn begin(self, params: Result<P>, call: Arc<Call>) -> Handling {
        let new = params.and_then(|params| Ok((self(&params)?, params)));
        let (NewAppend { entries, reply }, params) = match new {
            Ok(new) => new,
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        let expected = params.expected_leaf().clone();
        let (daemon, cancel, holds) = (&call.daemon, &call.cancel, call.holds);
        let id = params.session_id();
        let appended = submit(daemon, id, expected, cancel, entries, holds);
        Box::pin(async move { reply(appended.await?) })
    }
}

impl<P, F, H> AppendHandler<P, Alone<F>> for H
where
    P: OnSession,
    F: Future<Output = Result<Reply>> + Send + 'static,
    H: FnOnce(Arc<Call>, P) -> F,
{
    fn begin(self, params: Result<P>, call: Arc<Call>) -> Handling {
        match params {
            Ok(params) => {
                call.take_place(params.session_id());
                Box::pin(self(call, params))
            }
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}
