//! Finds the handler of a method by the name of the method. The table is in `wire::methods`.

use super::handler;
use super::methods::{
    append, branches, commands, compact, compare, continuation, entries, events, export, fork,
    handshake, import, list, moves, navigate, people, pick, read, render, renderers, search,
    sessions, shed, sorting, tree, turns, usage, watch, web,
};
use super::response::Responder;
use super::session_read;
use crate::daemon::commit::ChangePlace;
use std::panic::{AssertUnwindSafe, catch_unwind};
use treelined_wire as wire;
use treelined_wire::methods::{Access, Right, Scope, right, scope, with_methods};

/// A method of this daemon.
pub(super) struct Method {
    pub name: &'static str,
    pub scope: Scope,
    pub right: Right,
    /// Whether adjacent requests of this kind in the queue are written together.
    pub groups: bool,
    begin: fn(Option<&str>, Responder, bool),
}

impl Method {
    /// Whether a request of this method may be repeated after it ran and its answer was an error: the first run has not
    /// changed anything.
    pub(super) fn only_reads(&self) -> bool {
        let reads = matches!(self.scope, Scope::Session(Access::Read));
        reads || self.right == Right::Read
    }

    /// Decodes the params, and runs the handler until it has to wait. If the request `holds`, an append waits for more
    /// appends until the queues are settled.
    pub(super) fn begin(&self, params: Option<&str>, responder: Responder, holds: bool) {
        let begin = || (self.begin)(params, responder, holds);
        // A handler that panics drops its responder, and the responder answers.
        let _logged_by_the_panic_hook = catch_unwind(AssertUnwindSafe(begin));
    }
}

macro_rules! find_method {
    ($($group:ident $about:literal {
        $($name:literal {
            summary: $summary:literal,
            section: $section:literal,
            scope: $scope:ident $(($access:ident))?,
            $(right: $right:ident,)?
            params: $params:ident,
            result: $result:ident $(<$lifetime:lifetime>)?,
            errors: $errors:tt,
            run: $file:ident::$handler:ident,
        })+
    })+) => {
        /// The method with this name.
        pub(super) fn find(name: &str) -> Option<Method> {
            Some(match name {
                $($($name => Method {
                    name: $name,
                    scope: scope!($scope $(($access))?),
                    right: right!($($right)?),
                    groups: groups!($scope $(($access))?, $file),
                    begin: begin!($scope $(($access))?, wire::$params, wire::$result $(<$lifetime>)?, $file::$handler),
                },)+)+
                _ => return None,
            })
        }

        /// The names of all methods.
        pub fn names() -> impl Iterator<Item = &'static str> {
            [$($($name,)+)+].into_iter()
        }
    };
}

/// Whether a method is written together with adjacent appends. This holds for the methods in the file `append`.
macro_rules! groups {
    (session(append), append) => {
        true
    };
    ($scope:ident $(($access:ident))?, $file:ident) => {
        false
    };
}

/// The function that runs a handler. The scope decides which function. If a scope has two functions, the file of the
/// handler decides.
macro_rules! begin {
    (session(read), $params:ty, $result:ty, export::$handler:ident) => {
        |params, responder, _| {
            session_read::checked_read::<$params, $result, _, _>(
                params,
                responder,
                export::$handler,
            )
        }
    };
    (session(read), $params:ty, $result:ty, tree::$handler:ident) => {
        |params, responder, _| {
            session_read::checked_read::<$params, $result, _, _>(params, responder, tree::$handler)
        }
    };
    (session(read), $params:ty, $result:ty, $file:ident::$handler:ident) => {
        |params, responder, _| {
            session_read::read::<$params, $result, _>(params, responder, $file::$handler)
        }
    };
    (session(append), $params:ty, $result:ty, append::$handler:ident) => {
        |params, responder, holds| {
            handler::append::<$params, $result>(params, responder, append::$handler, holds)
        }
    };
    (session(append), $params:ty, $result:ty, $file:ident::$handler:ident) => {
        |params, responder, _| {
            let handler = $file::$handler;
            handler::change::<ChangePlace, $params, $result, _, _>(params, responder, handler)
        }
    };
    (session(release), $params:ty, $result:ty, $file:ident::$handler:ident) => {
        |params, responder, _| {
            let handler = $file::$handler;
            handler::change::<_, $params, $result, _, _>(params, responder, handler)
        }
    };
    (registry, $params:ty, $result:ty, $file:ident::$handler:ident) => {
        |params, responder, _| {
            handler::registry::<$params, $result, _>(params, responder, $file::$handler)
        }
    };
    (immediate, $params:ty, $result:ty, $file:ident::$handler:ident) => {
        |params, responder, _| {
            handler::immediate::<$params, $result, _>(params, responder, $file::$handler)
        }
    };
}
with_methods!(find_method);
