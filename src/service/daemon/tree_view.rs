//! The last view of a session's tree, kept for further pages.

use super::find::{self, QueryResults};
use std::sync::{Arc, Mutex};
use treelined_core::error::Result;
use treelined_core::search::{Mode, Query};
use treelined_core::tree::Tree;
use treelined_core::view::{Folding, Outline, Scope, Snapshot, Visible};
use treelined_files::kept::{Kept, KeptPart};
use treelined_files::lock::lock;
use treelined_files::log::body::Bodies;

/// The last view of a tree. It is kept, so that the cost of a further page does not depend on the size of the tree.
#[derive(Default)]
pub(crate) struct LastView {
    view: Mutex<Option<Arc<View>>>,
    /// The results of the last query.
    found: Mutex<Option<QueryMatches>>,
}

/// The results of a query.
pub(crate) struct QueryMatches {
    /// The origin of the tree ([`Tree::origin`]).
    pub(crate) origin: u64,
    pub(crate) query: AskedQuery,
    known: QueryResults,
}

impl LastView {
    pub(crate) fn get(&self, asked: &ViewOptions) -> Option<Arc<View>> {
        let last = lock(&self.view);
        let found = last.as_ref().filter(|view| view.asked == *asked)?;
        if let Some(part) = &found.part {
            part.used();
        }
        Some(Arc::clone(found))
    }

    /// The last view, extended by the entries that were appended after it; `None` if a new view is cheaper.
    pub(crate) fn extended(&self, tree: &Tree, asked: &ViewOptions) -> Option<Arc<View>> {
        let mut last = lock(&self.view);
        let view = Arc::get_mut(last.as_mut()?)?;
        let Folding {
            folded, max_depth, ..
        } = &asked.folding;
        let is_plain = asked.query.is_none() && folded.is_empty() && max_depth.is_none();
        let is_same = view.origin == tree.origin()
            && view.asked.scope == asked.scope
            && view.asked.query == asked.query
            && view.asked.folding == asked.folding;
        let extended = is_plain
            && is_same
            && view.outline.extend(tree, asked.scope)
            && view.visible.extend(&view.outline);
        if !extended {
            *last = None;
            return None;
        }
        view.asked.revision = asked.revision;
        let bytes = view.outline.bytes() + view.visible.bytes();
        if let Some(part) = &mut view.part {
            part.resize(bytes);
        }
        last.clone()
    }

    /// Drops the view and the results of the query.
    pub(crate) fn forget(&self) {
        *lock(&self.view) = None;
        *lock(&self.found) = None;
    }

    /// Makes a view, and keeps it if the budget allows.
    pub(crate) fn make(
        self: &Arc<Self>,
        room: &ViewRoom<'_>,
        asked: ViewOptions,
        outline: Outline,
        matched: Option<&[bool]>,
    ) -> Arc<View> {
        let visible = Visible::new(&outline, matched, &asked.folding);
        let bytes = outline.bytes() + visible.bytes();
        self.forget();
        let same = Arc::downgrade(self);
        let part = room.kept.take(bytes, move || {
            if let Some(last) = same.upgrade()
                && let Ok(mut view) = last.view.try_lock()
            {
                *view = None;
            }
        });
        let (origin, is_kept) = (room.origin, part.is_some());
        let view = Arc::new(View {
            asked,
            origin,
            outline,
            visible,
            part,
        });
        if is_kept {
            *lock(&self.view) = Some(Arc::clone(&view));
        }
        view
    }

    /// Returns for each item of an outline whether the query matches it.
    pub(crate) fn matches(
        &self,
        asked: &ViewOptions,
        origin: u64,
        query: &Query,
        in_tree: (&Bodies, &Outline, &Snapshot),
    ) -> Result<Vec<bool>> {
        let (bodies, outline, snapshot) = in_tree;
        let last = lock(&self.found).take();
        let is_same = |last: &QueryMatches| {
            last.origin == origin
                && asked
                    .query
                    .as_ref()
                    .is_some_and(|query| *query == last.query)
        };
        let mut known = last
            .filter(is_same)
            .map(|last| last.known)
            .unwrap_or_default();
        let matched = find::matches(bodies, outline, snapshot, query, &mut known)?;
        *lock(&self.found) = asked.query.clone().map(|query| QueryMatches {
            origin,
            query,
            known,
        });
        Ok(matched)
    }
}

/// The mode and the text of a query, and whether secrets are replaced before the text is compared.
pub(crate) type AskedQuery = (Mode, String, bool);

/// The memory for views, and the tree of the view that is made.
pub(crate) struct ViewRoom<'a> {
    pub(crate) kept: &'a Arc<Kept>,
    /// The origin of the tree ([`Tree::origin`]).
    pub(crate) origin: u64,
}

/// The options that decide which rows a view has.
#[derive(PartialEq)]
pub(crate) struct ViewOptions {
    pub(crate) revision: u64,
    pub(crate) scope: Scope,
    pub(crate) query: Option<AskedQuery>,
    pub(crate) folding: Folding,
}

pub(crate) struct View {
    pub(crate) asked: ViewOptions,
    /// The origin of the tree ([`Tree::origin`]).
    pub(crate) origin: u64,
    pub(crate) outline: Outline,
    pub(crate) visible: Visible,
    /// The memory of the view, if the view is kept.
    part: Option<KeptPart>,
}
