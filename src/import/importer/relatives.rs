//! Selects further sources to read because they may belong to the family of a source that was read. Such a source has
//! not changed, or an earlier import has read it and this request does not name it.

use super::ledger::Ledger;
use super::ledger::rows::SourceRow;
use super::reading::ReadSource;
use super::source::facts::Source;
use crate::format;
use crate::member::{Base, Member, Node, Parent};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use treelined_core::agent::Tool;

/// The sources of one tool that this import has not read.
pub(super) struct Relatives<'a> {
    tool: Tool,
    /// The sources that were found and have not changed.
    unread: Vec<Source>,
    /// The names of all sources that were found or taken.
    seen: HashSet<String>,
    added: usize,
    /// Returns the source in a file that was not found.
    find: &'a dyn Fn(&Path) -> Option<Source>,
}

/// Facts about the sources that were read. Another source that matches one of them may be of the same family.
struct Links<'a> {
    /// The sessions to which the sources belong.
    sessions: HashSet<&'a str>,
    /// The native sessions and files that the sources name.
    names: HashSet<&'a str>,
    /// The new native sessions and new parts of the sources.
    new: HashSet<&'a str>,
}

impl<'a> Links<'a> {
    fn words(&self) -> impl Iterator<Item = &'a str> {
        let all = self.sessions.iter().chain(&self.names).chain(&self.new);
        all.copied()
    }

    /// Whether the name of a source contains one of the names.
    fn have_name(&self, name: &str) -> bool {
        self.names.iter().any(|wanted| name.contains(wanted))
    }

    /// Whether the source of an earlier import is linked to the sources that were read.
    fn have(&self, row: &SourceRow) -> bool {
        let mut targets = row.targets.iter();
        let mut natives = row.natives.iter();
        let mut bases = row.bases.iter();
        targets.any(|target| self.sessions.contains(target.as_str()))
            || natives.any(|native| self.names.contains(native.as_str()))
            || bases.any(|base| self.new.contains(base.as_str()))
    }
}

impl<'a> Relatives<'a> {
    /// `found` has all sources of the tool that were found. `unread` has the found sources that have not changed.
    /// `find` returns the source in a file, if the file exists.
    pub(super) fn of(
        tool: Tool,
        found: &[Source],
        unread: Vec<Source>,
        find: &'a dyn Fn(&Path) -> Option<Source>,
    ) -> Self {
        Self {
            tool,
            unread,
            seen: found.iter().map(Source::name).collect(),
            added: 0,
            find,
        }
    }

    /// The number of sources that were taken although they were not found.
    pub(super) fn added(&self) -> usize {
        self.added
    }

    /// The sources that were not taken.
    pub(super) fn rest(self) -> Vec<Source> {
        self.unread
    }

    /// Takes the sources that may belong to a family of the sources in `read`. A source is taken if it is in the same
    /// session, if a read source names it, or if it continues a new native session. If the tool does not record such
    /// links, a source is also taken if it is in the same folder or database as a new native session.
    ///
    /// A source that was not found is taken in two cases only: a link leads to it, or a source in the same folder has
    /// records without their parents. The sources in `anew` count as new. If the ledger does not have a native session,
    /// `homes` may have the session to which it belongs.
    pub(super) fn take(
        &mut self,
        read: &[ReadSource],
        ledger: &Ledger,
        homes: &HashMap<String, String>,
        anew: &HashSet<String>,
    ) -> Vec<Source> {
        let mut sessions: HashSet<&str> = HashSet::new();
        let mut names: HashSet<&str> = HashSet::new();
        let mut folders: HashSet<PathBuf> = HashSet::new();
        let mut lacking: HashSet<PathBuf> = HashSet::new();
        let mut new: HashSet<&str> = HashSet::new();
        for source in read {
            let members = || source.members.iter();
            for member in members() {
                names.extend(named(member));
                let target = ledger.target(self.tool, &member.native_id);
                sessions.extend(target.map(|(session, _)| session));
                sessions.extend(homes.get(&member.native_id).map(String::as_str));
            }
            let is_anew = anew.contains(&source.source.name());
            let is_new =
                |member: &Member| is_anew || ledger.target(self.tool, &member.native_id).is_none();
            let has_no_links =
                format(self.tool).has_shared_keys() || members().any(|it| it.project.is_some());
            let is_new_source = ledger.source(self.tool, &source.source.name()).is_none();
            for member in members().filter(|member| is_new_source || is_new(member)) {
                new.extend([member.native_id.as_str(), member.part_id.as_str()]);
            }
            let lacks_parent = |node: &Node| matches!(node.parent, Parent::Key(_));
            if members().any(|member| is_new(member) && member.nodes.iter().any(lacks_parent)) {
                lacking.extend(scope(&source.source.path, source.source.part.is_some()));
            }
            if has_no_links && members().any(is_new) {
                folders.extend(scope(&source.source.path, source.source.part.is_some()));
            }
        }
        let tool = self.tool;
        let links = Links {
            sessions,
            names,
            new,
        };
        // A source that was not found can be taken only if it is a whole file, and a part of an export is not a whole
        // file. So the relatives of such parts are in this group, and the rows of all groups in the ledger are not
        // searched for each group.
        let is_export = tool.is_export();
        let mentioning = (!is_export).then(|| ledger.mentioning(tool, links.words()));
        let is_linked = |name: &str| {
            let may_be = mentioning.as_ref().is_none_or(|names| names.contains(name));
            let row = || ledger.source(tool, name).filter(|_| may_be);
            links.have_name(name) || row().is_some_and(|row| links.have(row))
        };
        let is_in = |folders: &HashSet<PathBuf>, path: &Path, is_part: bool| {
            !folders.is_empty()
                && scope(path, is_part).is_some_and(|scope| folders.contains(&scope))
        };
        let unread = std::mem::take(&mut self.unread);
        let is_related = |source: &Source| {
            is_linked(&source.name()) || is_in(&folders, &source.path, source.part.is_some())
        };
        let (mut related, unread): (Vec<Source>, Vec<Source>) =
            unread.into_iter().partition(is_related);
        self.unread = unread;
        if !read.is_empty() && !is_export {
            let is_wanted = |name: &&str| {
                !self.seen.contains(*name)
                    && (is_linked(name) || is_in(&lacking, Path::new(name), false))
            };
            let wanted = ledger.files(tool).filter(is_wanted);
            let wanted: Vec<Source> = wanted
                .filter_map(|name| (self.find)(Path::new(name)))
                .collect();
            self.added += wanted.len();
            self.seen.extend(wanted.iter().map(Source::name));
            related.extend(wanted);
        }
        related
    }
}

/// The folder of a file, or the database of a part.
fn scope(path: &Path, is_part: bool) -> Option<PathBuf> {
    match is_part {
        true => Some(path.to_owned()),
        false => path.parent().map(Path::to_owned),
    }
}

/// The native sessions and parts of native sessions that a member names.
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
