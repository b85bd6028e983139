//! Selects unchanged sources to read again because a changed one may belong to their family.

use super::ledger::Ledger;
use super::reading::ReadSource;
use super::source::Source;
use crate::import::member::{Base, Member};
use crate::import::{Tool, format};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The unchanged sources of one tool that have not been read.
pub(super) struct Relatives {
    tool: Tool,
    unread: Vec<Source>,
}

impl Relatives {
    pub(super) fn of(tool: Tool, unchanged: Vec<Source>) -> Self {
        let unread = unchanged;
        Self { tool, unread }
    }

    /// The sources that were not taken.
    pub(super) fn rest(self) -> Vec<Source> {
        self.unread
    }

    /// Takes the sources that may be of one family with these: they are in the same sessions, these name them, they
    /// continue new ones, or, if a tool keeps no links, they are in the same folder or database as a new session.
    pub(super) fn take(&mut self, read: &[ReadSource], ledger: &Ledger) -> Vec<Source> {
        if self.unread.is_empty() {
            return Vec::new();
        }
        let mut sessions: HashSet<&str> = HashSet::new();
        let mut names: HashSet<&str> = HashSet::new();
        let mut folders: HashSet<PathBuf> = HashSet::new();
        let mut new: HashSet<&str> = HashSet::new();
        for source in read {
            let members = || source.members.iter();
            for member in members() {
                names.extend(named(member));
                let target = ledger.target(self.tool, &member.native_id);
                sessions.extend(target.map(|(session, _)| session));
            }
            let is_new = |member: &Member| ledger.target(self.tool, &member.native_id).is_none();
            let has_no_links =
                format(self.tool).has_shared_keys() || members().any(|it| it.project.is_some());
            let is_new_source = ledger.source(self.tool, &source.source.name()).is_none();
            for member in members().filter(|member| is_new_source || is_new(member)) {
                new.extend([member.native_id.as_str(), member.part_id.as_str()]);
            }
            if has_no_links && members().any(is_new) {
                folders.extend(scope(source.source.path.as_path(), &source.source));
            }
        }
        let tool = self.tool;
        let is_related = |source: &Source| {
            let row = ledger.source(tool, &source.name());
            let mut targets = row.into_iter().flat_map(|row| &row.targets);
            let mut bases = row.into_iter().flat_map(|row| &row.bases);
            let file = source.name();
            targets.any(|target| sessions.contains(target.as_str()))
                || bases.any(|base| new.contains(base.as_str()))
                || names.iter().any(|name| file.contains(name))
                || scope(&source.path, source).is_some_and(|scope| folders.contains(&scope))
        };
        let unread = std::mem::take(&mut self.unread);
        let (related, unread) = unread.into_iter().partition(is_related);
        self.unread = unread;
        related
    }
}

/// The folder of a file, or the database of a part.
fn scope(path: &Path, source: &Source) -> Option<PathBuf> {
    match source.part {
        Some(_) => Some(path.to_owned()),
        None => path.parent().map(Path::to_owned),
    }
}

/// The native sessions and parts that a member names.
fn named(member: &Member) -> impl Iterator<Item = &str> {
    let spawner = member.spawned_by.as_ref();
    let spawner = spawner.map(|spawner| spawner.native_id.as_str());
    let names = base(member).into_iter().chain(spawner);
    names.filter(|name| !name.is_empty())
}

/// The native session, or the part of one, that a member continues.
pub(super) fn base(member: &Member) -> Option<&str> {
    match &member.base {
        Base::None => None,
        Base::Before { part_id, .. } => Some(part_id.as_str()),
        Base::CopyOf { native_id } => Some(native_id.as_str()),
    }
}
