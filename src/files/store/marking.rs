//! Reads and changes the marks of sessions (session-file.md §5.10).

use super::Store;
use super::catalogue::Rows;
use super::marks::{Marks, NAME, OLD_LINES, SessionMarks, append, current, rewrite, text};
use crate::lock::lock;
use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use treelined_core::budget::MARKS_BYTES;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::tags::MOST_TAGS;

impl Store {
    /// The rows together with the marks of their sessions.
    pub(super) fn with_marks(&self, rows: Rows) -> Rows {
        self.marked_rows.of(rows, self.marks())
    }

    /// The marks of all sessions. Their file is read again only if it has changed. If it cannot be read, there are no
    /// marks, and the log says so.
    pub fn marks(&self) -> Arc<Marks> {
        let root = self.root_if_there().ok().flatten();
        let status = root
            .as_ref()
            .and_then(|root| root.status(OsStr::new(NAME)).ok());
        let (Some(root), Some(status)) = (root, status) else {
            return Arc::default();
        };
        let mut read = lock(&self.marks.0);
        if let Some((known, marks)) = &*read
            && *known == status
        {
            return Arc::clone(marks);
        }
        let marks = match text(&root) {
            Ok(text) => Arc::new(Marks::parse(&text)),
            Err(error) => {
                tracing::warn!(%error, "the marks of sessions are not read");
                Arc::default()
            }
        };
        *read = Some((status, Arc::clone(&marks)));
        marks
    }

    /// Changes the marks of a session. Returns its marks before and after the change. `change` gets the newest marks.
    /// If `change` changes nothing, nothing is written. After a failure the file is as before.
    pub fn mark(
        &self,
        id: &str,
        change: impl FnOnce(&mut SessionMarks),
    ) -> Result<(SessionMarks, SessionMarks)> {
        let root = self.root()?;
        let _lock = root.lock()?;
        let failed = |error: io::Error| {
            Error::io(
                &format!("write {NAME} in {}", root.path().display()),
                &error,
            )
        };
        let text = text(&root)?;
        let marks = Marks::parse(&text);
        let before = marks.of(id).cloned().unwrap_or_default();
        let mut after = before.clone();
        change(&mut after);
        if after.added.len().max(after.removed.len()) > MOST_TAGS {
            let why = format!("a session has at most {MOST_TAGS} tags");
            return Err(Error::invalid_params("add", &why));
        }
        if after == before {
            return Ok((before, after));
        }
        let line = after.line(id);
        // The 1 is for a line break, which an append may need before the line.
        let is_full = text.len() + 1 + line.len() > MARKS_BYTES;
        if !is_full && marks.lines <= 2 * marks.sessions.len() + OLD_LINES {
            append(&root, &text, &line)?;
            return Ok((before, after));
        }
        let new = current(&marks, id, &after);
        if new.len() > MARKS_BYTES {
            let why = format!(
                "{NAME} has {MARKS_BYTES} bytes, the most that are read: unpin or unarchive sessions"
            );
            return Err(Error::new(Kind::StorageFull, why));
        }
        rewrite(&root, &new).map_err(failed)?;
        Ok((before, after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::catalogue::CatalogueRow;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    fn store(path: &Path) -> Store {
        Store::new(path.to_owned())
    }

    fn pin(store: &Store, id: &str, is_pinned: bool) -> Result<()> {
        store
            .mark(id, |marks| marks.is_pinned = is_pinned)
            .map(drop)
    }

    fn is_pinned(store: &Store, id: &str) -> bool {
        store.marks().of(id).is_some_and(|marks| marks.is_pinned)
    }

    #[test]
    fn damaged_lines_hide_no_marks_and_a_torn_line_is_closed() {
        let made = tempfile::tempdir().unwrap();
        let store = store(made.path());
        pin(&store, "a", true).unwrap();
        let at = made.path().join(NAME);
        let hostile = [
            "{\"sessionId\":\"b\",\"archived\":true,\"tags\":[\"#X\",7,\"two words\"],\"new\":1}\n",
            "not json\n\u{0}\n[]\n{\"sessionId\":7,\"pinned\":true}\n{\"pinned\":true}\n",
            "{\"sessionId\":\"c\",\"pinned\":\"yes\"}\n{\"sessionId\":\"d\",\"pin",
        ];
        let text = fs::read_to_string(&at).unwrap() + &hostile.concat();
        fs::write(&at, text).unwrap();
        pin(&store, "e", true).unwrap();
        let marks = store.marks();
        let of_b = marks.of("b").unwrap();
        assert!(of_b.is_archived && of_b.tags(&BTreeSet::new()) == ["x"]);
        assert!(is_pinned(&store, "a") && is_pinned(&store, "e"));
        assert!(marks.of("c").is_none() && marks.of("d").is_none());
    }

    #[test]
    fn the_file_is_rewritten_when_most_of_its_lines_are_old() {
        let made = tempfile::tempdir().unwrap();
        let store = store(made.path());
        pin(&store, "kept", true).unwrap();
        for number in 0..2 * OLD_LINES {
            pin(&store, "s", number % 2 == 0).unwrap();
        }
        let lines = fs::read_to_string(made.path().join(NAME)).unwrap();
        assert!(lines.lines().count() < OLD_LINES + 9);
        assert!(is_pinned(&store, "kept") && !is_pinned(&store, "s"));
        pin(&store, "kept", false).unwrap();
        assert!(!is_pinned(&store, "kept"));
    }

    #[test]
    fn two_writers_lose_nothing() {
        let made = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for writer in 0..2 {
                let path = made.path();
                scope.spawn(move || {
                    let store = store(path);
                    for number in 0..40 {
                        pin(&store, &format!("s{writer}-{number}"), true).unwrap();
                        let tag = format!("t{writer}-{}", number % 20);
                        let add = |marks: &mut SessionMarks| marks.added.extend([tag]);
                        store.mark("both", add).unwrap();
                    }
                });
            }
        });
        let marks = store(made.path()).marks();
        assert_eq!(marks.sessions.len(), 81);
        assert_eq!(marks.of("both").unwrap().added.len(), 40);
    }

    /// Files of other programs may have longer ids than a client may choose.
    #[test]
    fn marks_of_a_long_id_count() {
        let made = tempfile::tempdir().unwrap();
        let store = store(made.path());
        let long = "é".repeat(300);
        pin(&store, &long, true).unwrap();
        assert!(is_pinned(&store, &long));
    }

    #[test]
    fn a_full_file_can_be_emptied() {
        let made = tempfile::tempdir().unwrap();
        let store = store(made.path());
        let at = made.path().join(NAME);
        let id = |number: usize| format!("{number}{}", "x".repeat(MARKS_BYTES / 16));
        let line = |number: usize| {
            SessionMarks {
                is_pinned: true,
                ..SessionMarks::default()
            }
            .line(&id(number))
        };
        let text: Vec<u8> = (0..15).flat_map(line).collect();
        fs::write(&at, &text).unwrap();
        let kind = |done: Result<()>| done.unwrap_err().kind;
        assert_eq!(kind(pin(&store, &id(15), true)), Kind::StorageFull);
        assert_eq!(fs::read(&at).unwrap(), text);
        pin(&store, &id(14), false).unwrap();
        assert!(is_pinned(&store, &id(0)) && !is_pinned(&store, &id(14)));
        pin(&store, &id(15), true).unwrap();
        assert!(is_pinned(&store, &id(15)));
    }

    #[test]
    fn a_link_in_place_of_the_file_is_not_followed() {
        let made = tempfile::tempdir().unwrap();
        let (sessions, other) = (made.path().join("s"), made.path().join("other"));
        fs::create_dir(&sessions).unwrap();
        fs::write(&other, "mine").unwrap();
        std::os::unix::fs::symlink(&other, sessions.join(NAME)).unwrap();
        let store = store(&sessions);
        assert_eq!(pin(&store, "a", true).unwrap_err().kind, Kind::PathDenied);
        assert!(!is_pinned(&store, "a"));
        assert_eq!(fs::read_to_string(&other).unwrap(), "mine");
    }

    #[test]
    fn a_session_has_a_limited_number_of_tags() {
        let made = tempfile::tempdir().unwrap();
        let store = store(made.path());
        let many = |marks: &mut SessionMarks| {
            marks.added = (0..=MOST_TAGS).map(|number| number.to_string()).collect();
        };
        assert_eq!(store.mark("a", many).unwrap_err().kind, Kind::InvalidParams);
        assert!(!made.path().join(NAME).exists());
    }

    /// A row stays the same as long as its file and its marks stay the same. Watchers of the list compare rows.
    #[test]
    fn marks_change_only_the_rows_of_their_sessions() {
        let made = tempfile::tempdir().unwrap();
        for id in ["a", "b"] {
            let header =
                format!("{{\"type\":\"session\",\"version\":3,\"id\":\"{id}\",\"cwd\":\"/c\"}}\n");
            fs::write(made.path().join(format!("{id}.jsonl")), header).unwrap();
        }
        let store = store(made.path());
        let row = |rows: &Rows, id: &str| {
            let is = |row: &&Arc<CatalogueRow>| row.listing.path.ends_with(format!("{id}.jsonl"));
            Arc::clone(rows.iter().find(is).unwrap())
        };
        let before = store.rows().unwrap();
        pin(&store, "a", true).unwrap();
        let after = store.rows().unwrap();
        assert!(row(&after, "a").marks.is_pinned);
        assert!(Arc::ptr_eq(&row(&before, "b"), &row(&after, "b")));
        pin(&store, "b", true).unwrap();
        let last = store.rows().unwrap();
        assert!(Arc::ptr_eq(&row(&after, "a"), &row(&last, "a")));
        assert!(Arc::ptr_eq(&last, &store.rows().unwrap()));
    }
}
