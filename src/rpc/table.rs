//! From the name of a method to its handler, after the table in `wire::methods`.

use super::reply::Reply;
use super::server::Call;
use super::{
    append, compact, events, fork, handshake, list, moves, navigate, pick, read, sessions, tree,
    turns,
};
use crate::error::Result;
use crate::wire::methods::{Scope, scope, with_methods};
use crate::wire::{self, decode};
use serde::de::DeserializeOwned;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;

/// A request on its way to its result.
pub type Handling = Pin<Box<dyn Future<Output = Result<Reply>> + Send>>;

/// A method of this daemon.
pub struct Method {
    pub name: &'static str,
    pub scope: Scope,
    begin: fn(Option<&str>, Arc<Call>) -> Handling,
}

impl Method {
    /// Decodes the params and begins the handler, which runs once it is polled. `None` if this panics.
    pub fn begin(&self, params: Option<&str>, call: Arc<Call>) -> Option<Handling> {
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
        pub fn find(name: &str) -> Option<Method> {
            Some(match name {
                $($($name => Method {
                    name: $name,
                    scope: scope!($scope $(($access))?),
                    begin: |params, call| begin::<wire::$params, _>(params, call, $run),
                },)+)+
                _ => return None,
            })
        }
    };
}
with_methods!(find_method);

fn begin<P, F>(params: Option<&str>, call: Arc<Call>, handler: fn(Arc<Call>, P) -> F) -> Handling
where
    P: DeserializeOwned,
    F: Future<Output = Result<Reply>> + Send + 'static,
{
    match decode(params) {
        Ok(params) => Box::pin(handler(call, params)),
        Err(error) => Box::pin(std::future::ready(Err(error))),
    }
}
