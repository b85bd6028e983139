//! The order of hits, and the best ones.

use super::branch::Branch;
use super::weights::weight;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use treelined_core::entry::Role;
use treelined_core::search::{Excerpt, FieldKind};
use treelined_core::timestamp::Millis;
use treelined_files::lock::lock;

/// An entry that a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    pub session_id: String,
    /// The name of the session, else its first message; empty if it has neither.
    pub session_name: String,
    pub entry_id: String,
    pub field: FieldKind,
    pub at: Millis,
    pub excerpt: Excerpt,
    /// The words of a question that the excerpt has only as parts of other words.
    pub inside: Vec<String>,
    /// A number without a unit. Scores of different searches cannot be compared.
    pub score: f64,
    pub branch: Branch,
}

/// The position of a hit in the results: by score, then the newest first, then by file and line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub score: Reverse<u8>,
    pub at: Reverse<Millis>,
    pub path: Arc<str>,
    /// Where the entry is stored, in bytes from the start of the file.
    pub offset: u64,
}

impl Key {
    /// Writes the key as text, for cursors.
    pub fn to_cursor(&self) -> String {
        let Self {
            score: Reverse(score),
            at: Reverse(at),
            path,
            offset,
        } = self;
        format!("{score}:{at}:{offset}:{path}")
    }

    /// `None` if the text is not a key.
    pub fn of_cursor(cursor: &str) -> Option<Self> {
        let mut parts = cursor.splitn(4, ':');
        Some(Self {
            score: Reverse(parts.next()?.parse().ok()?),
            at: Reverse(parts.next()?.parse().ok()?),
            offset: parts.next()?.parse().ok()?,
            path: parts.next()?.into(),
        })
    }
}

/// The best score of a part of a file, and the latest time with this score. No hit in the part is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ceiling {
    pub score: u8,
    pub at: Millis,
}

impl Ceiling {
    /// The ceiling of a part whose hits are unknown.
    pub(super) const NONE: Self = Self {
        score: u8::MAX,
        at: Millis::MAX,
    };

    pub(super) fn is_known(self) -> bool {
        self.score != Self::NONE.score
    }

    /// The ceiling of a labelled entry with this time.
    pub(super) fn of_labelled(at: Millis) -> Self {
        Self {
            score: weight(FieldKind::Labels, Role::None),
            at,
        }
    }

    /// The first key that a hit of a part can have. The part begins at `offset` in the file at `path`.
    pub(super) fn first_key(self, path: &Arc<str>, offset: u64) -> Key {
        Key {
            score: Reverse(self.score),
            at: Reverse(self.at),
            path: Arc::clone(path),
            offset,
        }
    }
}

/// The best hits after a cursor.
pub(super) struct Page {
    limit: usize,
    after: Option<Key>,
    best: BTreeMap<Key, Hit>,
    /// Whether there is a hit after the cursor that is not on the page.
    has_more: bool,
    bound: Bound,
}

/// The key of the worst hit of a full page. The threads that make hits share this key, and leave out hits after it.
#[derive(Debug, Clone, Default)]
pub(super) struct Bound(Arc<Mutex<Option<Key>>>);

impl Bound {
    /// `None` until the page is full.
    pub(super) fn get(&self) -> Option<Key> {
        lock(&self.0).clone()
    }
}

impl Page {
    pub(super) fn new(limit: usize, after: Option<Key>) -> Self {
        Self {
            limit,
            after,
            best: BTreeMap::new(),
            has_more: false,
            bound: Bound::default(),
        }
    }

    pub(super) fn bound(&self) -> Bound {
        self.bound.clone()
    }

    /// Notes that there may be more hits.
    pub(super) fn stop(&mut self) {
        self.has_more = true;
    }

    /// The key of the worst hit that the page would have if entries with these keys were hits too. `None` if that page
    /// would not be full. Keys that are not after the cursor do not count.
    pub(super) fn bound_with(&self, keys: impl Iterator<Item = Key>) -> Option<Key> {
        let is_after = |key: &Key| self.after.as_ref().is_none_or(|after| key > after);
        let is_new = |key: &Key| is_after(key) && !self.best.contains_key(key);
        let mut all: Vec<Key> = self.best.keys().cloned().collect();
        all.extend(keys.filter(is_new));
        let last = self.limit.checked_sub(1).filter(|last| *last < all.len())?;
        Some(all.select_nth_unstable(last).1.clone())
    }

    /// Notes that there are hits with these keys, none of which is among the best.
    pub(super) fn pass(&mut self, keys: impl Iterator<Item = Key>) {
        let after = self.after.as_ref();
        let mut keys = keys.filter(|key| after.is_none_or(|after| key > after));
        self.has_more |= keys.next().is_some();
    }

    /// Adds a hit, which may displace another hit. If `hit` is `None`, the hit is only counted.
    pub(super) fn take(&mut self, key: Key, hit: Option<Hit>, on_hit: &mut dyn FnMut(&Hit)) {
        let is_before = self.after.as_ref().is_some_and(|after| key <= *after);
        // If a file is searched in several parts, the same hit may come again.
        if is_before || self.best.contains_key(&key) {
            return;
        }
        let Some(hit) = hit else {
            self.has_more = true;
            return;
        };
        let last = self.best.last_key_value();
        if self.best.len() >= self.limit && last.is_none_or(|(last, _)| key > *last) {
            self.has_more = true;
            return;
        }
        on_hit(&hit);
        self.best.insert(key, hit);
        if self.best.len() > self.limit {
            self.best.pop_last();
            self.has_more = true;
        }
        if self.best.len() == self.limit {
            let last = self.best.last_key_value().map(|(key, _)| key.clone());
            *lock(&self.bound.0) = last;
        }
    }

    /// The hits in order, and whether more follow.
    pub(super) fn finish(self) -> (Vec<(Key, Hit)>, bool) {
        (self.best.into_iter().collect(), self.has_more)
    }
}
