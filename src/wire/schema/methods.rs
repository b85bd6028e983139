//! The tables of `wire::methods` as lists, from which the documents are made.

use super::generators::Generators;
use crate::methods::*;
use crate::notification;
use schemars::Schema;
use treelined_core::error::Kind;

/// A method, as the documents describe it.
pub(super) struct Method {
    pub(super) name: &'static str,
    /// The name of its [`Group`].
    pub(super) group: &'static str,
    pub(super) summary: &'static str,
    /// The section of protocol.md that describes the method.
    pub(super) section: &'static str,
    pub(super) scope: Scope,
    pub(super) right: Right,
    /// A reference to the definition of its params.
    pub(super) params: Schema,
    /// A reference to the definition of its result.
    pub(super) result: Schema,
    /// The failures that the method can answer in addition to [`ANY`].
    pub(super) errors: Vec<Kind>,
    /// Whether clients usually send it without an id.
    pub(super) notification: bool,
}

/// Methods that belong together.
pub(super) struct Group {
    pub(super) name: &'static str,
    pub(super) summary: &'static str,
}

/// A notification, as the documents describe it.
pub(super) struct Notification {
    pub(super) name: &'static str,
    pub(super) summary: &'static str,
    /// The section of protocol.md that describes the notification.
    pub(super) section: &'static str,
    /// A reference to the definition of its params.
    pub(super) params: Schema,
}

macro_rules! list_methods {
    ($($group:ident $about:literal {
        $($name:literal {
            summary: $summary:literal,
            section: $section:literal,
            scope: $scope:ident $(($access:ident))?,
            $(right: $right:ident,)?
            params: $params:ident,
            result: $result:ident $(<$lifetime:lifetime>)?,
            errors: [$($errors:expr),+],
            run: $run:path,
        })+
    })+) => {
        /// The groups, in the order of the table.
        pub(super) const GROUPS: &[Group] = &[
            $(Group { name: stringify!($group), summary: $about },)+
        ];

        /// The methods, in the order of the table.
        pub(super) fn methods(generators: &mut Generators) -> Vec<Method> {
            vec![$($(Method {
                name: $name,
                group: stringify!($group),
                summary: $summary,
                section: $section,
                scope: scope!($scope $(($access))?),
                right: right!($($right)?),
                params: generators.params::<crate::$params>(),
                result: generators.result::<crate::$result $(<$lifetime>)?>(),
                errors: kinds(&[$($errors),+]),
                notification: $name.starts_with("$/"),
            },)+)+]
        }
    };
}
with_methods!(list_methods);

macro_rules! list_notifications {
    ($($name:literal {
        summary: $summary:literal,
        section: $section:literal,
        params: $params:ident,
    })+) => {
        /// The notifications, in the order of the table.
        pub(super) fn notifications(generators: &mut Generators) -> Vec<Notification> {
            vec![$(Notification {
                name: $name,
                summary: $summary,
                section: $section,
                params: generators.result::<notification::$params>(),
            }),+]
        }
    };
}
with_notifications!(list_notifications);

/// The kinds of all lists, each once, in the order of protocol.md §8.
fn kinds(lists: &[&[Kind]]) -> Vec<Kind> {
    let is_named = |kind: &Kind| lists.iter().any(|list| list.contains(kind));
    Kind::ALL.iter().copied().filter(is_named).collect()
}
