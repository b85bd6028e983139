//! Finds the handler of a method by its name, by the table in `wire::methods`.

use super::handler::{self, AppendHandler, ImmediateHandler, ReadHandler, ReleaseHandler};
use super::methods::{
    append, commands, compact, compare, continuation, events, export, fork, handshake, import,
    list, moves, navigate, people, pick, read, render, renderers, search, sessions, tree, turns,
    watch, web,
};
use super::response::Responder;
use std::panic::{AssertUnwindSafe, catch_unwind};
use treelined_wire as wire;
use treelined_wire::methods::{Scope, scope, with_methods};

/// A method of this daemon.
pub(super) struct Method {
    pub name: &'static str,
    pub scope: Scope,
    /// Whether it writes in a group with adjacent appends in the queue.
    pub groups: bool,
    begin: fn(Option<&str>, Responder, bool),
}

impl Method {
    /// Decodes the params and runs the handler until it has to wait. If it `holds`, an append waits for more until the
    /// queues are settled.
    pub(super) fn begin(&self, params: Option<&str>, responder: Responder, holds: bool) {
        let begin = || (self.begin)(params, responder, holds);
        // A handler that panics drops its responder, which answers.
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
            result: $result:ident $(<$lifetime:lifetime>)?,
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
                    groups: groups!($scope $(($access))?, wire::$params, wire::$result $(<$lifetime>)?, $run),
                    begin: begin!($scope $(($access))?, wire::$params, wire::$result $(<$lifetime>)?, $run),
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

macro_rules! groups {
    (session(append), $params:ty, $result:ty, $run:path) => {
        handler::groups::<$params, $result, _, _>($run)
    };
    ($scope:ident $(($access:ident))?, $params:ty, $result:ty, $run:path) => {
        false
    };
}

/// The entry point of a handler: the scope fixes its form, and the row its result.
macro_rules! begin {
    (session(read), $params:ty, $result:ty, $run:path) => {
        |params, responder, _| ReadHandler::<$params, $result, _>::begin($run, params, responder)
    };
    (session(append), $params:ty, $result:ty, $run:path) => {
        |params, responder, holds| {
            AppendHandler::<$params, $result, _>::begin($run, params, responder, holds)
        }
    };
    (session(release), $params:ty, $result:ty, $run:path) => {
        |params, responder, _| ReleaseHandler::<$params, $result, _>::begin($run, params, responder)
    };
    (registry, $params:ty, $result:ty, $run:path) => {
        |params, responder, _| handler::registry::<$params, $result, _>(params, responder, $run)
    };
    (immediate, $params:ty, $result:ty, $run:path) => {
        |params, responder, _| {
            ImmediateHandler::<$params, $result, _>::begin($run, params, responder)
        }
    };
}
with_methods!(find_method);
