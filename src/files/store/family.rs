//! Families of sessions: forks, subagents, and sessions in which an agent continued another session (protocol.md
//! §3.22). They are derived from rows alone; no file is opened. The names in headers are untrusted, so they may form
//! cycles.

use crate::store::catalogue::CatalogueRow;
use crate::store::listing::Listing;
use crate::store::native::ContinuedIn;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a session comes from another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kinship {
    Fork,
    Subagent,
    Continuation,
}

/// A session, and the session from which it comes, by their numbers in the list.
#[derive(Debug, Clone)]
pub struct Link {
    pub parent: usize,
    pub kind: Kinship,
    pub entry_id: Option<String>,
    pub tool_call_id: Option<String>,
}

/// A session of a family.
#[derive(Debug)]
pub struct Relative {
    /// The number of the session's row.
    pub row: usize,
    pub depth: u64,
    pub link: Option<Link>,
    /// Whether the session is in a cycle of parents. The cycle is cut above this session.
    pub is_cut: bool,
}

/// All sessions that come from other sessions.
pub struct Families<'r> {
    rows: &'r [Arc<CatalogueRow>],
    ids: HashMap<&'r str, usize>,
    links: HashMap<usize, Link>,
    children: HashMap<usize, Vec<usize>>,
}

impl<'r> Families<'r> {
    pub fn of(rows: &'r [Arc<CatalogueRow>]) -> Self {
        let mut ids = HashMap::with_capacity(rows.len());
        for (number, row) in rows.iter().enumerate() {
            if let Some(id) = id_of(row) {
                ids.entry(id).or_insert(number);
            }
        }
        let mut families = Self {
            rows,
            ids,
            links: HashMap::new(),
            children: HashMap::new(),
        };
        families.link();
        for (child, link) in &families.links {
            families
                .children
                .entry(link.parent)
                .or_default()
                .push(*child);
        }
        for children in families.children.values_mut() {
            children.sort_by_key(|child| rows.get(*child).map(|row| age(row)));
        }
        families
    }

    fn link(&mut self) {
        let paths = self.paths();
        for (number, row) in self.rows.iter().enumerate() {
            if let Some(link) = self.parent(&row.listing, &paths)
                && link.parent != number
            {
                self.links.insert(number, link);
            }
        }
        let natives = self.natives();
        for (number, row) in self.rows.iter().enumerate() {
            for continued in &row.listing.continued {
                let native = continued.native_id.as_deref();
                let child = native.and_then(|native| natives.get(&(&*continued.tool, native)));
                if let Some(child) = child.filter(|child| **child != number) {
                    self.links.entry(*child).or_insert_with(|| Link {
                        parent: number,
                        kind: Kinship::Continuation,
                        entry_id: Some(continued.entry_id.clone()),
                        tool_call_id: None,
                    });
                }
            }
        }
    }

    /// The sessions by their paths, since a fork may name its parent by path; empty if there are no forks.
    fn paths(&self) -> HashMap<&'r OsStr, usize> {
        let names_a_parent = |row: &Arc<CatalogueRow>| {
            let header = row.listing.header.as_ref();
            header.is_some_and(|header| header.parent_session.is_some())
        };
        if !self.rows.iter().any(names_a_parent) {
            return HashMap::new();
        }
        let paths = self.rows.iter().enumerate();
        paths
            .map(|(number, row)| (row.listing.path.as_os_str(), number))
            .collect()
    }

    fn parent(&self, row: &Listing, paths: &HashMap<&OsStr, usize>) -> Option<Link> {
        let header = row.header.as_ref()?;
        if let Some(spawner) = &header.spawned_by
            && let Some(parent) = self.ids.get(&*spawner.session_id)
        {
            return Some(Link {
                parent: *parent,
                kind: Kinship::Subagent,
                entry_id: spawner.entry_id.clone(),
                tool_call_id: spawner.tool_call_id.clone(),
            });
        }
        let named = header.parent_session.as_deref()?;
        let beside = || paths.get(beside(row, named).as_os_str());
        let parent = self.ids.get(named);
        let parent = parent.or_else(|| paths.get(OsStr::new(named)));
        Some(Link {
            parent: *parent.or_else(beside)?,
            kind: Kinship::Fork,
            entry_id: header.parent_entry_id.clone(),
            tool_call_id: None,
        })
    }

    /// The imported sessions, by the tool and the id that the tool gave to the conversation.
    fn natives(&self) -> HashMap<(&'r str, &'r str), usize> {
        let mut natives = HashMap::new();
        let continued = self
            .rows
            .iter()
            .any(|row| !row.listing.continued.is_empty());
        for (number, row) in self.rows.iter().enumerate().filter(|_| continued) {
            let source = row.listing.source.iter();
            let source = source.filter_map(|of| Some((of.tool.as_deref()?, &of.native_ids)));
            for (tool, id) in source.flat_map(|(tool, ids)| ids.iter().map(move |id| (tool, id))) {
                natives.entry((tool, &**id)).or_insert(number);
            }
        }
        natives
    }

    /// The family of a session. A session comes before the sessions that come from it. `None` if no row has this id.
    pub fn family(&self, id: &str) -> Option<Vec<Relative>> {
        let (root, is_cut) = self.root(*self.ids.get(id)?);
        let (mut family, mut seen) = (Vec::new(), HashSet::from([root]));
        let mut waiting = vec![(root, 0)];
        while let Some((row, depth)) = waiting.pop() {
            let is_root = row == root;
            family.push(Relative {
                row,
                depth,
                link: self.links.get(&row).filter(|_| !is_root).cloned(),
                is_cut: is_cut && is_root,
            });
            let children = self.children.get(&row).into_iter().flatten().rev();
            let new = children.filter(|child| seen.insert(**child));
            waiting.extend(new.map(|child| (*child, depth + 1)));
        }
        Some(family)
    }

    /// The first session of the family, and whether there is a cycle above `from`. In a cycle the newest session counts
    /// as the first.
    fn root(&self, from: usize) -> (usize, bool) {
        let mut above = vec![from];
        let mut seen = HashSet::from([from]);
        let mut at = from;
        while let Some(link) = self.links.get(&at) {
            at = link.parent;
            if !seen.insert(at) {
                let begins = above.iter().position(|row| *row == at).unwrap_or_default();
                let cycle = above.get(begins..).unwrap_or_default();
                let newest = cycle
                    .iter()
                    .max_by_key(|row| self.rows.get(**row).map(|row| age(row)));
                return (newest.copied().unwrap_or(at), true);
            }
            above.push(at);
        }
        (at, false)
    }
}

/// A session that comes from another one.
#[derive(Debug, PartialEq, Eq)]
pub struct Child<'r> {
    pub session_id: &'r str,
    pub kind: Kinship,
    /// The entry of the parent session from which it comes.
    pub entry_id: Option<&'r str>,
    pub tool_call_id: Option<&'r str>,
}

/// The sessions that come from the session with this id in this file, the oldest first. Gives the same result as
/// [`Families`], with one pass over the rows and without tables.
pub fn children_of<'r>(
    rows: &'r [Arc<CatalogueRow>],
    id: &str,
    path: Option<&Path>,
) -> Vec<Child<'r>> {
    let own = rows
        .iter()
        .find(|row| path == Some(row.listing.path.as_path()));
    let continued = own.map_or(&[][..], |own| &own.listing.continued);
    let mut children = Vec::new();
    for row in rows {
        let listing = &row.listing;
        let Some(header) = listing.header.as_ref().filter(|header| header.id != id) else {
            continue;
        };
        let parent = header.parent_session.as_deref();
        let is_parent = |named: &str| {
            named == id
                || named.ends_with(".jsonl") && Some(beside(listing, named).as_path()) == path
        };
        let spawner = header.spawned_by.as_ref();
        let goes_on = |at: &&ContinuedIn| {
            let source = listing.source.as_ref();
            source.is_some_and(|of| {
                of.tool.as_ref() == Some(&at.tool)
                    && of
                        .native_ids
                        .iter()
                        .any(|id| at.native_id.as_ref() == Some(id))
            })
        };
        let (kind, entry_id, tool_call_id) = match spawner.filter(|by| by.session_id == id) {
            Some(by) => (
                Kinship::Subagent,
                by.entry_id.as_deref(),
                by.tool_call_id.as_deref(),
            ),
            None if spawner.is_none() && parent.is_some_and(is_parent) => {
                (Kinship::Fork, header.parent_entry_id.as_deref(), None)
            }
            None => match continued.iter().find(goes_on) {
                Some(at) => (Kinship::Continuation, Some(&*at.entry_id), None),
                None => continue,
            },
        };
        let child = Child {
            session_id: &header.id,
            kind,
            entry_id,
            tool_call_id,
        };
        children.push((age(row), child));
    }
    children.sort_by_key(|(age, _)| *age);
    children.into_iter().map(|(_, child)| child).collect()
}

/// The number of sessions that name each session as their parent, by its id or its path.
#[derive(Debug, Default)]
pub struct ChildCounts(HashMap<String, u64>);

impl ChildCounts {
    pub fn of(rows: &[Arc<CatalogueRow>]) -> Self {
        let mut counts = HashMap::new();
        for row in rows {
            let Some(header) = &row.listing.header else {
                continue;
            };
            let named = match (&header.spawned_by, &header.parent_session) {
                (Some(spawner), _) => spawner.session_id.clone(),
                (None, Some(parent)) if parent.ends_with(".jsonl") => {
                    beside(&row.listing, parent).to_string_lossy().into_owned()
                }
                (None, Some(parent)) => parent.clone(),
                (None, None) => continue,
            };
            *counts.entry(named).or_default() += 1;
        }
        Self(counts)
    }

    /// The number of sessions that come from this one.
    pub fn of_row(&self, row: &Listing) -> u64 {
        if self.0.is_empty() {
            return 0;
        }
        let id = row
            .header
            .as_ref()
            .and_then(|header| self.0.get(&header.id));
        let path = self.0.get(&*row.path.to_string_lossy());
        id.copied().unwrap_or_default() + path.copied().unwrap_or_default()
    }
}

/// A path in a header. It may be relative to the folder of the session file.
pub(super) fn beside(row: &Listing, named: &str) -> PathBuf {
    row.path.with_file_name(named)
}

fn id_of(row: &CatalogueRow) -> Option<&str> {
    row.listing.header.as_ref().map(|header| header.id.as_str())
}

fn age(row: &CatalogueRow) -> (i64, &OsStr) {
    (row.listing.created, row.listing.path.as_os_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::header::Header;
    use crate::os::file::{Identity, Status};
    use crate::store::native::ImportSource;
    use treelined_core::entry::SpawnedBy;
    use treelined_core::tags::Sorting;

    fn listing(id: &str, created: i64, parent: Option<&str>) -> Listing {
        Listing {
            path: format!("/s/{id}.jsonl").into(),
            header: Some(Header::new(id, created, "/c", parent)),
            name: None,
            created,
            modified: created,
            message_count: 0,
            first_message: String::new(),
            source: None,
            recorded: Vec::new(),
            continued: Vec::new(),
            sorting: Sorting::default(),
            problem: None,
        }
    }

    fn row(listing: Listing) -> Arc<CatalogueRow> {
        let status = Status {
            identity: Identity {
                device: 1,
                inode: 1,
            },
            size: 1,
            modified: (1, 1),
            changed: (1, 1),
        };
        Arc::new(CatalogueRow::new(status, listing))
    }

    fn family(rows: &[Arc<CatalogueRow>], of: &str) -> Vec<(String, u64, Option<Kinship>, bool)> {
        let family = Families::of(rows).family(of).unwrap();
        let shown = |it: &Relative| {
            let id = id_of(&rows[it.row]).unwrap().to_owned();
            (
                id,
                it.depth,
                it.link.as_ref().map(|link| link.kind),
                it.is_cut,
            )
        };
        family.iter().map(shown).collect()
    }

    #[test]
    fn a_family_has_forks_subagents_and_continuations() {
        let mut root = listing("root", 1, None);
        root.continued.push(ContinuedIn {
            tool: "codex".to_owned(),
            native_id: Some("n1".to_owned()),
            entry_id: "e9".to_owned(),
        });
        let mut agent = listing("agent", 4, Some("root"));
        agent.header.as_mut().unwrap().spawned_by = Some(SpawnedBy {
            session_id: "fork".to_owned(),
            entry_id: Some("e2".to_owned()),
            tool_call_id: None,
        });
        let mut codex = listing("codex", 2, None);
        codex.source = Some(ImportSource {
            tool: Some("codex".to_owned()),
            native_ids: vec!["n1".to_owned()],
        });
        let rows = [
            row(listing("other", 9, Some("gone"))),
            row(agent),
            row(listing("beside", 5, Some("root.jsonl"))),
            row(codex),
            row(listing("fork", 3, Some("/s/root.jsonl"))),
            row(root),
        ];
        let (fork, agent) = (Some(Kinship::Fork), Some(Kinship::Subagent));
        let whole = [
            ("root", 0, None),
            ("codex", 1, Some(Kinship::Continuation)),
            ("fork", 1, fork),
            ("agent", 2, agent),
            ("beside", 1, fork),
        ];
        let whole = whole.map(|(id, depth, kind)| (id.to_owned(), depth, kind, false));
        for id in ["root", "agent", "codex", "beside"] {
            assert_eq!(family(&rows, id), whole, "{id}");
        }
        assert_eq!(family(&rows, "other").len(), 1);
        assert!(Families::of(&rows).family("gone").is_none());
        let counts = ChildCounts::of(&rows);
        let count = |number: usize| counts.of_row(&rows[number].listing);
        assert_eq!((count(5), count(4), count(1)), (2, 1, 0));
        let children = |id: &str| {
            let path = format!("/s/{id}.jsonl");
            let children = children_of(&rows, id, Some(Path::new(&path)));
            let shown = children.iter().map(|child| {
                let entry = child.entry_id.unwrap_or("-");
                format!("{} {:?} {entry}", child.session_id, child.kind)
            });
            shown.collect::<Vec<_>>()
        };
        let of_root = ["codex Continuation e9", "fork Fork -", "beside Fork -"];
        assert_eq!(children("root"), of_root);
        assert_eq!(children("fork"), ["agent Subagent e2"]);
        assert_eq!(children("other"), [""; 0]);
    }

    #[test]
    fn a_cycle_is_cut_at_its_newest_session() {
        let rows = [
            row(listing("a", 1, Some("c"))),
            row(listing("b", 2, Some("a"))),
            row(listing("c", 3, Some("b"))),
            row(listing("tail", 9, Some("a"))),
            row(listing("self", 5, Some("self"))),
        ];
        let fork = Some(Kinship::Fork);
        let whole = [
            ("c".to_owned(), 0, None, true),
            ("a".to_owned(), 1, fork, false),
            ("b".to_owned(), 2, fork, false),
            ("tail".to_owned(), 2, fork, false),
        ];
        for id in ["a", "b", "c", "tail"] {
            assert_eq!(family(&rows, id), whole, "{id}");
        }
        assert_eq!(family(&rows, "self").len(), 1);
    }
}
