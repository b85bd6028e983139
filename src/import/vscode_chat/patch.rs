//! Reads a line of a session file: a change of the state.

use crate::message::elements;
use crate::value::text;
use std::borrow::Cow;
use treelined_core::json;

/// The most steps of a path that are read. Longer paths lead into values that are not used.
const MOST_STEPS: usize = 6;

/// A step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step<'a> {
    Name(Cow<'a, str>),
    Index(usize),
}

/// A change of the state. All values are raw.
#[derive(Debug)]
pub(super) enum Patch<'a> {
    /// The whole state.
    State(&'a [u8]),
    /// Sets the value at a path. Without a new value, the value at the path is deleted.
    Set(Vec<Step<'a>>, Option<&'a [u8]>),
    /// Cuts an array to `length` elements, and adds the elements of `values`.
    Push {
        path: Vec<Step<'a>>,
        values: Option<&'a [u8]>,
        length: Option<usize>,
    },
    /// The line is not a change.
    Bad,
}

/// The change in a record.
pub(super) fn read(record: &[u8]) -> Patch<'_> {
    let [kind, path, value, length, requests] =
        json::get_each(record, ["kind", "k", "v", "i", "requests"]);
    let path = || path.and_then(steps);
    match (kind, requests) {
        (Some(b"0"), _) => match value.filter(|value| value.starts_with(b"{")) {
            Some(state) => Patch::State(state),
            None => Patch::Bad,
        },
        (Some(b"1"), _) => path().map_or(Patch::Bad, |path| Patch::Set(path, value)),
        (Some(b"3"), _) => path().map_or(Patch::Bad, |path| Patch::Set(path, None)),
        (Some(b"2"), _) => match (path(), length.map(index)) {
            (None, _) | (_, Some(None)) => Patch::Bad,
            (Some(path), length) => Patch::Push {
                path,
                values: value.filter(|value| value.starts_with(b"[")),
                length: length.flatten(),
            },
        },
        (None, Some(requests)) if requests.starts_with(b"[") => Patch::State(record),
        _ => Patch::Bad,
    }
}

/// The steps of a path; `None` if one is neither a name nor an index, or if there are none.
fn steps(path: &[u8]) -> Option<Vec<Step<'_>>> {
    let steps = path.starts_with(b"[").then(|| elements(path))?;
    let steps = steps.take(MOST_STEPS).map(|step| match step.first() {
        Some(b'"') => text(Some(step)).map(Step::Name),
        _ => index(step).map(Step::Index),
    });
    let steps: Option<Vec<Step<'_>>> = steps.collect();
    steps.filter(|steps| !steps.is_empty())
}

/// The value of a raw index.
fn index(raw: &[u8]) -> Option<usize> {
    std::str::from_utf8(raw).ok()?.parse().ok()
}
