//! `tag_session`, `mark_session` and `get_family` (protocol.md §3.21, §3.22).

use crate::daemon::commit::ChangePlace;
use crate::daemon::convert::line::line;
use crate::daemon::session_row::{LONGEST_ESCAPE, session_row, shorten};
use crate::rpc::arrival::Arrival;
use crate::rpc::handler::Remainder;
use crate::rpc::reply::page_bytes;
use std::collections::BTreeSet;
use std::sync::Arc;
use treelined_core::durability::Durability;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::flow::sorting;
use treelined_core::tags::{self, MOST_TAGS};
use treelined_files::blocking::blocking;
use treelined_files::log::header::CURRENT_VERSION;
use treelined_files::session::SessionState;
use treelined_files::store::catalogue::CatalogueRow;
use treelined_files::store::family::{Families, Kinship, Link, Relative};
use treelined_files::store::marks::SessionMarks;
use treelined_files::store::native;
use treelined_wire as wire;

/// The most rows of a page of a family.
const MOST_RELATIVES: usize = 1000;

type Tags = BTreeSet<String>;

/// A change of tags.
struct TagChange {
    add: Tags,
    remove: Tags,
}

impl TagChange {
    fn of(params: &wire::TagSessionParams) -> Result<Self> {
        let change = Self {
            add: given("add", &params.add)?,
            remove: given("remove", &params.remove)?,
        };
        match change.add.intersection(&change.remove).next() {
            Some(tag) => Err(Error::invalid_params(
                "remove",
                format!("names the tag {tag:?}, which add names too"),
            )),
            None => Ok(change),
        }
    }

    /// Returns the part of the change that is new for a session with these tags. Fails with `invalidParams` if the
    /// session would have too many tags.
    fn of_session(&self, tags: &Tags) -> Result<Self> {
        let new = Self {
            add: self.add.difference(tags).cloned().collect(),
            remove: self.remove.intersection(tags).cloned().collect(),
        };
        if tags.len() + new.add.len() > MOST_TAGS + new.remove.len() {
            let why = format!("gives the session more than {MOST_TAGS} tags: remove some");
            return Err(Error::invalid_params("add", &why));
        }
        Ok(new)
    }

    /// The change of a session file with these tags. The marks of this machine become part of the file too. Tags that
    /// another daemon has changed in the meantime stay.
    fn with_marks(&self, marks: &SessionMarks, of_file: &Tags) -> Result<Self> {
        let added = marks.added.difference(&self.remove);
        let removed = marks.removed.difference(&self.add);
        let (add, remove): (Tags, Tags) = (
            self.add.iter().chain(added).cloned().collect(),
            self.remove.iter().chain(removed).cloned().collect(),
        );
        Self { add, remove }.of_session(of_file)
    }

    fn is_empty(&self) -> bool {
        self.add.is_empty() && self.remove.is_empty()
    }

    fn inverse(self) -> Option<wire::TagInverse> {
        (!self.is_empty()).then(|| wire::TagInverse {
            method: wire::TagVerb::TagSession,
            params: wire::TagChange {
                add: self.remove.into_iter().collect(),
                remove: self.add.into_iter().collect(),
            },
        })
    }

    /// Makes the change in the marks of this machine, not in the session file.
    fn mark(&self, marks: &mut SessionMarks, of_file: &Tags) {
        for tag in &self.add {
            marks.removed.remove(tag);
            if !of_file.contains(tag) {
                marks.added.insert(tag.clone());
            }
        }
        for tag in &self.remove {
            marks.added.remove(tag);
            if of_file.contains(tag) {
                marks.removed.insert(tag.clone());
            }
        }
    }
}

fn given(field: &'static str, texts: &[String]) -> Result<Tags> {
    let tag = |text: &String| {
        tags::given(text).ok_or_else(|| {
            let why = format!(
                "{text:?} is not a tag: a tag is one word of at most 64 bytes without '#', ',' and '\"'"
            );
            Error::invalid_params(field, &why)
        })
    };
    texts.iter().map(tag).collect()
}

fn tags_of_file(state: &SessionState) -> Result<Tags> {
    Ok(native::sorting_of(&state.tree, &state.bodies())?.tags)
}

pub(in crate::rpc) async fn tag_session(
    place: ChangePlace,
    params: wire::TagSessionParams,
) -> Result<wire::TagSessionResult> {
    let asked = TagChange::of(&params)?;
    let mut change = place.reached().await?.caught_up().await?;
    let (daemon, id) = (Arc::clone(&change.daemon), change.open.id.to_string());
    let of_file = tags_of_file(&change.guard)?;
    let marks = daemon.files.store.marks();
    let marks = marks.of(&id).cloned().unwrap_or_default();
    let before: Tags = marks.tags(&of_file).into_iter().collect();
    let new = asked.of_session(&before)?;
    let mut after: Tags = before.difference(&new.remove).cloned().collect();
    after.extend(new.add.iter().cloned());
    let change_of = TagChange {
        add: new.add.clone(),
        remove: new.remove.clone(),
    };
    let is_current = change.guard.log.version() == CURRENT_VERSION;
    let is_writable = change.guard.with().lease.check_writable().is_ok();
    let durability = if new.is_empty() {
        Durability::None
    } else if is_current && is_writable {
        // From here on the file has all tags, also the tags that were only marks of this machine.
        let source = Arc::clone(&daemon.source);
        let in_file = marks.clone();
        let plan = move |state: &SessionState| {
            let new = change_of.with_marks(&in_file, &tags_of_file(state)?)?;
            let (add, remove) = (&new.add, &new.remove);
            Ok(sorting::plan_tags(&state.tree, &*source, add, remove))
        };
        let seen = |state: &SessionState, written| (tags_of_file(state), written);
        let (tags, written) = change.commit(plan, seen).await?.seen;
        after = tags?;
        if !marks.added.is_empty() || !marks.removed.is_empty() {
            let (daemon, id) = (Arc::clone(&daemon), id.clone());
            // Another daemon may have made more marks. These marks stay.
            let clear = move |newest: &mut SessionMarks| {
                newest.added.retain(|tag| !marks.added.contains(tag));
                newest.removed.retain(|tag| !marks.removed.contains(tag));
            };
            blocking(move || daemon.files.store.mark(&id, clear)).await?;
        }
        written.unwrap_or(Durability::None)
    } else {
        let (daemon, id) = (Arc::clone(&daemon), id.clone());
        let mark = move |marks: &mut SessionMarks| change_of.mark(marks, &of_file);
        blocking(move || daemon.files.store.mark(&id, mark)).await?;
        Durability::Always
    };
    daemon.list_watch.changed();
    Ok(wire::TagSessionResult {
        tags: after.into_iter().collect(),
        inverse: new.inverse(),
        durability,
    })
}

pub(in crate::rpc) fn mark_session(
    arrival: &Arrival<'_>,
    params: wire::MarkSessionParams,
) -> Result<Remainder<wire::MarkSessionResult>> {
    let daemon = Arc::clone(&arrival.call().daemon);
    let earlier = arrival.earlier_changes_of_sessions();
    Ok(Remainder::of(async move {
        earlier.await?;
        let marking = Arc::clone(&daemon);
        let marked = blocking(move || {
            match marking.registry.find(&params.session_id) {
                Some(open) if open.session.ephemeral => return Err(no_file_of(&params.session_id)),
                Some(_) => {}
                None => drop(marking.files.store.find(&params.session_id)?),
            }
            let change = |marks: &mut SessionMarks| {
                marks.is_pinned = params.pinned.unwrap_or(marks.is_pinned);
                marks.is_archived = params.archived.unwrap_or(marks.is_archived);
            };
            let (before, after) = marking.files.store.mark(&params.session_id, change)?;
            let was = |before: bool, after: bool| (before != after).then_some(before);
            let changed = wire::MarkChange {
                pinned: was(before.is_pinned, after.is_pinned),
                archived: was(before.is_archived, after.is_archived),
                session_id: params.session_id,
            };
            let is_changed = changed.pinned.is_some() || changed.archived.is_some();
            Ok(wire::MarkSessionResult {
                pinned: after.is_pinned,
                archived: after.is_archived,
                inverse: is_changed.then_some(wire::MarkInverse {
                    method: wire::MarkVerb::MarkSession,
                    params: changed,
                }),
            })
        });
        let marked = marked.await?;
        daemon.list_watch.changed();
        Ok(marked)
    }))
}

pub(in crate::rpc) fn get_family(
    arrival: &Arrival<'_>,
    params: wire::GetFamilyParams,
) -> Result<Remainder<wire::GetFamilyResult>> {
    let daemon = Arc::clone(&arrival.call().daemon);
    let earlier = arrival.earlier_changes_of_sessions();
    let fits = page_bytes(arrival.call().connection.client_frame_bytes());
    let rights = Arc::clone(arrival.call().connection.rights());
    Ok(Remainder::of(async move {
        earlier.await?;
        blocking(move || {
            let rows = rights.rows(daemon.files.store.list()?);
            let family = Families::of(&rows).family(&params.session_id);
            let family = family.ok_or_else(|| no_file_of(&params.session_id))?;
            page(&rows, &family, &params, fits)
        })
        .await
    }))
}

/// The error for an id that no file of the session directory has.
fn no_file_of(session_id: &str) -> Error {
    let message = format!(
        "there is no session {session_id:?} with a file: list_sessions with archived lists those that have one"
    );
    Error::new(Kind::SessionNotFound, message)
}

/// A page of a family. It ends at `limit` rows, or before a row that does not fit into `fits` bytes.
fn page(
    rows: &[Arc<CatalogueRow>],
    family: &[Relative],
    params: &wire::GetFamilyParams,
    fits: usize,
) -> Result<wire::GetFamilyResult> {
    let row = |relative: &Relative| rows.get(relative.row);
    let path =
        |relative: &Relative| row(relative).map(|row| row.listing.path.display().to_string());
    let start = match &params.cursor {
        Some(cursor) => {
            let last = family
                .iter()
                .position(|it| path(it).as_ref() == Some(cursor));
            let gone =
                || Error::invalid_params("cursor", "names no session of this family any more");
            last.ok_or_else(gone)? + 1
        }
        None => 0,
    };
    let limit = params.limit.map_or(MOST_RELATIVES, |limit| limit as usize);
    let end = family
        .len()
        .min(start.saturating_add(limit.min(MOST_RELATIVES)));
    let shown = family.get(start..end).unwrap_or_default();
    let relative = |relative: &Relative| {
        Some(wire::FamilyRow {
            row: session_row(row(relative)?),
            depth: relative.depth,
            comes_from: relative
                .link
                .as_ref()
                .and_then(|link| comes_from(rows, link)),
            cut: relative.is_cut.then_some(true),
        })
    };
    let (mut sessions, mut taken, mut last) = (Vec::new(), 0, None);
    for member in shown {
        let Some(mut made) = relative(member) else {
            continue;
        };
        // If the page ends at this row, the cursor needs space too.
        let cursor = made.row.path.len() * LONGEST_ESCAPE;
        let left = fits.saturating_sub(taken + cursor);
        let mut size = line(&made)?.len();
        if last.is_some() && size > left {
            break;
        }
        if size > left {
            let others = size - line(&made.row)?.len().min(size);
            shorten(&mut made.row, left.saturating_sub(others))?;
            size = line(&made)?.len();
        }
        taken += size + 1;
        sessions.push(made);
        last = Some(member);
    }
    let is_whole = end == family.len() && last.map(|it| it.row) == shown.last().map(|it| it.row);
    Ok(wire::GetFamilyResult {
        sessions,
        next_cursor: last.filter(|_| !is_whole).and_then(path),
    })
}

fn comes_from(rows: &[Arc<CatalogueRow>], link: &Link) -> Option<wire::ComesFrom> {
    let parent = rows.get(link.parent)?.listing.header.as_ref()?;
    Some(wire::ComesFrom {
        session_id: parent.id.clone(),
        kind: kinship(link.kind),
        entry_id: link.entry_id.clone(),
        tool_call_id: link.tool_call_id.clone(),
    })
}

pub(super) fn kinship(kind: Kinship) -> wire::Kinship {
    match kind {
        Kinship::Fork => wire::Kinship::Fork,
        Kinship::Subagent => wire::Kinship::Subagent,
        Kinship::Continuation => wire::Kinship::Continuation,
    }
}
