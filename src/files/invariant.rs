//! The facts on which the crate relies (session-file.md §3.7). Each fact is checked where the code relies on it.
//!
//! A fact that does not hold is a defect of this program: no other program, no damaged file and no failing disk can
//! cause it. Debug builds panic, so tests fail. A release build logs the defect and refuses the operation. A build for
//! `tests/simulation` does so too, and the test fails afterwards.

use treelined_core::error::{Error, Kind, Result};

/// Checks that a fact holds.
macro_rules! always {
    ($fact:literal, $holds:expr) => {
        $crate::invariant::check($fact, $holds)
    };
}

/// Checks a fact by its opposite: `$happens` must be false.
macro_rules! never {
    ($fact:literal, $happens:expr) => {
        $crate::invariant::check($fact, !$happens)
    };
}

pub(crate) use {always, never};

#[inline]
pub(crate) fn check(fact: &'static str, holds: bool) -> Result<()> {
    #[cfg(feature = "simulation")]
    watch::tell(fact, holds);
    if holds {
        return Ok(());
    }
    let refused = refuse(fact);
    let is_release = !cfg!(debug_assertions) || cfg!(feature = "simulation");
    assert!(is_release, "{}", refused.message);
    Err(refused)
}

#[cold]
fn refuse(fact: &'static str) -> Error {
    let message = format!("this fact does not hold, which is a defect: {fact}");
    tracing::error!("{message}");
    Error::new(Kind::InternalError, message)
}

/// Notifies `tests/simulation` of each check.
#[cfg(feature = "simulation")]
pub mod watch {
    use std::cell::RefCell;

    type Watcher = Box<dyn Fn(&'static str, bool)>;

    thread_local! {
        static WATCHER: RefCell<Option<Watcher>> = const { RefCell::new(None) };
    }

    /// Calls `watcher` at each check of this thread, with the fact and whether it holds.
    pub fn with(watcher: impl Fn(&'static str, bool) + 'static) {
        WATCHER.set(Some(Box::new(watcher)));
    }

    pub(super) fn tell(fact: &'static str, holds: bool) {
        WATCHER.with_borrow(|watcher| {
            if let Some(watcher) = watcher {
                watcher(fact, holds);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// Collects the facts that the files of a folder pass to the macros.
    fn facts_in(folder: &Path, facts: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                facts_in(&path, facts);
            } else if path.extension().is_some_and(|ending| ending == "rs")
                && !path.ends_with("invariant.rs")
            {
                let text = std::fs::read_to_string(&path).unwrap();
                for call in ["always!(", "never!("] {
                    let calls = text.split(call).skip(1);
                    let fact = |call: &str| {
                        let literal = call.trim_start().strip_prefix('"');
                        literal.and_then(|rest| Some(rest.split_once('"')?.0.to_owned()))
                    };
                    facts.extend(calls.map(|call| fact(call).unwrap()));
                }
            }
        }
    }

    #[test]
    fn the_contract_lists_each_fact_that_is_checked() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut checked = Vec::new();
        facts_in(folder, &mut checked);
        let contract = std::fs::read_to_string(folder.join("../../schema/session-file.md"));
        let contract = contract.unwrap();
        let (_, section) = contract.split_once("### 3.7 ").unwrap();
        let (section, _) = section.split_once("\n## ").unwrap();
        let listed: BTreeSet<&str> = section
            .lines()
            .filter_map(|line| line.strip_prefix("- ")?.strip_suffix('.'))
            .collect();
        let distinct: BTreeSet<&str> = checked.iter().map(String::as_str).collect();
        assert_eq!(listed, distinct);
        assert_eq!(checked.len(), distinct.len(), "each fact has one place");
        assert!(listed.len() >= 40, "{} facts", listed.len());
    }

    #[test]
    fn a_fact_that_holds_is_passed() {
        always!("Two is more than one", 2 > 1).unwrap();
        never!("Two is more than one", 2 < 1).unwrap();
    }

    #[test]
    #[should_panic(expected = "this fact does not hold, which is a defect: Two is less than one")]
    fn a_fact_that_does_not_hold_ends_a_test() {
        always!("Two is less than one", 2 < 1).unwrap();
    }

    /// A release returns the error.
    #[test]
    fn a_release_refuses_with_an_internal_error() {
        let error = refuse("Two is less than one");
        assert_eq!(error.kind, Kind::InternalError);
        assert!(error.message.ends_with("a defect: Two is less than one"));
    }
}
