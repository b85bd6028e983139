//! The position in git of an imported session (session-file.md §5.8): from the tool's records, and from a hook.

use crate::family::forest::SessionTree;
use crate::member::Member;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use treelined_core::json;
use treelined_core::tags::GitPlace;

/// The positions in git that an import knows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct InGit {
    /// The position in the tool's records.
    said: GitPlace,
    /// The position that a hook has seen. It is empty if no hook has requested the import.
    seen: GitPlace,
}

impl InGit {
    /// `places` has the positions that hooks have seen, by native session.
    pub(super) fn of(
        tree: &SessionTree,
        members: &[Member],
        places: &BTreeMap<String, GitPlace>,
    ) -> Self {
        let members = tree.members.iter().filter_map(|at| members.get(*at));
        let seen =
            members.filter_map(|member| Some((member.ended, places.get(&member.native_id)?)));
        let newest = seen.max_by_key(|(ended, _)| *ended);
        Self {
            said: tree.git.clone(),
            seen: newest.map(|(_, place)| place.clone()).unwrap_or_default(),
        }
    }

    /// Whether a hook has seen another position since `before`. A position in the tool's records does not count,
    /// because it comes together with entries.
    pub(super) fn has_seen_more(&self, before: &Self) -> bool {
        !self.seen.is_empty() && self.seen != before.seen
    }

    /// Reads the positions from the leaf record of an import.
    pub(super) fn kept(record: &[u8]) -> Self {
        let of = |name| json::get_path(record, &["data", "import", "git", name]);
        let place = |name| GitPlace::of_data(of(name).unwrap_or_default());
        Self {
            said: place("said"),
            seen: place("seen"),
        }
    }

    /// The position for a new record of git in the session. `None` if both positions are the same as in `before`. Then
    /// the file may already have this record, or a newer record that a client has written.
    pub(super) fn news(&self, before: &Self) -> Option<&GitPlace> {
        let is_new = |now: &GitPlace, before: &GitPlace| !now.is_empty() && now != before;
        if !is_new(&self.seen, &before.seen) && !is_new(&self.said, &before.said) {
            return None;
        }
        // The hook's position is preferred, because a tool may record only the position where the conversation began.
        match self.seen.is_empty() {
            true => Some(&self.said),
            false => Some(&self.seen),
        }
    }

    /// The positions for the leaf record of this import. A position that is not known is taken from `before`.
    pub(super) fn to_json(&self, before: &Self) -> Option<Value> {
        let newest = |now: &GitPlace, before: &GitPlace| {
            let place = if now.is_empty() { before } else { now };
            let data = serde_json::from_slice(&place.data()).ok();
            data.filter(|_: &Value| !place.is_empty())
        };
        let said = newest(&self.said, &before.said);
        let seen = newest(&self.seen, &before.seen);
        let members = [("said", said), ("seen", seen)].into_iter();
        let members = members.filter_map(|(name, place)| Some((name.to_owned(), place?)));
        let kept: Map<String, Value> = members.collect();
        (!kept.is_empty()).then_some(Value::Object(kept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn place(branch: &str) -> GitPlace {
        GitPlace {
            branch: Some(branch.to_owned()).filter(|branch| !branch.is_empty()),
            ..GitPlace::default()
        }
    }

    fn known(said: &str, seen: &str) -> InGit {
        InGit {
            said: place(said),
            seen: place(seen),
        }
    }

    #[test]
    fn what_is_new_is_written_and_a_hook_knows_best() {
        for (now, before, news) in [
            (known("", ""), known("", ""), None),
            (known("main", ""), known("", ""), Some("main")),
            (known("main", ""), known("main", ""), None),
            (known("main", "fix"), known("main", ""), Some("fix")),
            // The tool still records the position where the conversation began.
            (known("main", ""), known("main", "fix"), None),
            (known("new", ""), known("main", "fix"), Some("new")),
            (known("new", "fix"), known("main", "fix"), Some("fix")),
            (known("", ""), known("main", "fix"), None),
        ] {
            let found = now.news(&before).map(|place| place.branch.as_deref());
            assert_eq!(found, news.map(Some), "{now:?} {before:?}");
        }
    }

    #[test]
    fn an_import_keeps_what_earlier_ones_knew() {
        let kept = known("", "fix").to_json(&known("main", "old")).unwrap();
        assert_eq!(
            kept,
            json!({"said": {"branch": "main"}, "seen": {"branch": "fix"}})
        );
        let record = json!({"data": {"import": {"git": kept}}}).to_string();
        assert_eq!(InGit::kept(record.as_bytes()), known("main", "fix"));
        assert_eq!(known("", "").to_json(&known("", "")), None);
        assert_eq!(
            InGit::kept(br#"{"data":{"import":{"git":[1]}}}"#),
            known("", "")
        );
    }
}
