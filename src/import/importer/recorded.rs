//! Entries that a recorder wrote, compared with the nodes of the native session that it recorded (session-file.md §5.8,
//! "Records").

use crate::neutral::{Said, parts_of};
use std::collections::{HashMap, HashSet, VecDeque};
use treelined_core::entry::{Kind as EntryKind, Role};
use treelined_core::error::Result;
use treelined_core::json;
use treelined_core::timestamp::Millis;
use treelined_core::tree::{Node, Tree};
use treelined_files::log::OpenedLog;
use treelined_files::store::native::recorded_by;

/// The most entries that are looked at for one node.
const MAX_LOOKED: usize = 1_000;
/// For all nodes of a native session together: this number times the entries of its session, and `MAX_LOOKED` more.
const MAX_LOOKED_EACH: usize = 16;
/// How much later than its recorder an agent may say that a message was said, in milliseconds.
const SLACK: Millis = 60_000;

/// A place in a record: the entry that was compared last, and the part of it that comes next. Without an entry, the
/// beginning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct At {
    pub(super) entry: Option<Node>,
    part: usize,
    bytes: usize,
}

impl At {
    /// Behind an entry, all of it.
    pub(super) fn behind(entry: Option<Node>) -> Self {
        Self {
            entry,
            part: usize::MAX,
            bytes: 0,
        }
    }
}

/// The entries at which records of agents' sessions begin, by the agents' ids.
pub(super) fn records_of(opened: &OpenedLog) -> Result<HashMap<String, Vec<Node>>> {
    let mut found: HashMap<String, Vec<Node>> = HashMap::new();
    let (tree, bodies) = (&opened.tree, opened.log.bodies());
    let id = opened.log.header().map(|header| header.id.as_str());
    for node in tree
        .entries()
        .filter(|node| tree.kind(*node) == EntryKind::Custom)
    {
        let line = bodies.entry(&bodies.fetch(tree, node)?)?;
        if let Some(record) = recorded_by(&line, id.unwrap_or_default()) {
            found.entry(record.native_id).or_default().push(node);
        }
    }
    Ok(found)
}

/// The record of one native session, as far as no import has adopted its entries.
pub(super) struct Record<'a> {
    opened: &'a OpenedLog,
    /// The entries on the paths to where it begins.
    path: HashSet<Node>,
    /// The entries that nodes of the native session are, or have adopted.
    taken: HashSet<Node>,
    /// The number of entries that may be looked at still.
    rest: usize,
}

/// Where a walk goes on after an entry.
enum Walk {
    /// Also to the entries below it.
    Below,
    /// Not below it.
    Beside,
    End,
}

/// The texts of an entry.
struct Words {
    /// Without results.
    said: Vec<Said>,
    /// The call of a result.
    call: Option<String>,
    is_imported: bool,
}

impl<'a> Record<'a> {
    /// `begins` are the entries at which it begins.
    pub(super) fn of(opened: &'a OpenedLog, begins: &[Node]) -> Self {
        let tree = &opened.tree;
        let mut path = HashSet::new();
        for begin in begins {
            let above = tree.ancestors(Some(*begin));
            let new: Vec<Node> = above.take_while(|node| !path.contains(node)).collect();
            path.extend(new);
        }
        Self {
            opened,
            path,
            taken: HashSet::new(),
            rest: MAX_LOOKED + MAX_LOOKED_EACH.saturating_mul(tree.node_count()),
        }
    }

    pub(super) fn take(&mut self, entry: Node) {
        self.taken.insert(entry);
    }

    fn tree(&self) -> &'a Tree {
        &self.opened.tree
    }

    fn words(&mut self, entry: Node) -> Result<Words> {
        self.rest = self.rest.saturating_sub(1);
        let bodies = self.opened.log.bodies();
        let line = bodies.entry(&bodies.fetch(self.tree(), entry)?)?;
        let message = json::get(&line, "message").unwrap_or_default();
        let is_result = self.tree().role(entry) == Role::ToolResult;
        let call = json::get(message, "toolCallId").and_then(json::string);
        Ok(Words {
            said: match is_result {
                true => Vec::new(),
                false => parts_of(message),
            },
            call: call.filter(|_| is_result).map(|call| call.into_owned()),
            is_imported: json::get(&line, "origin").is_some(),
        })
    }

    /// Whether nodes may adopt an entry with these words.
    fn is_free(&self, entry: Node, words: &Words) -> bool {
        !self.taken.contains(&entry) && (!words.is_imported || self.path.contains(&entry))
    }

    /// The entries below one, those on the path first.
    fn below(&self, entry: Option<Node>) -> Vec<Node> {
        let mut below = self.tree().children(entry);
        below.sort_by_key(|node| !self.path.contains(node));
        below
    }

    /// Walks over the entries below one, the nearest first and of these those on the path, until `see` ends it or too many
    /// have been looked at.
    fn walk(
        &mut self,
        entry: Option<Node>,
        mut see: impl FnMut(&mut Self, Node, Words) -> Walk,
    ) -> Result<()> {
        let mut waiting = VecDeque::from(self.below(entry));
        for _ in 0..MAX_LOOKED {
            let Some(entry) = waiting.pop_front().filter(|_| self.rest > 0) else {
                break;
            };
            let words = self.words(entry)?;
            match see(self, entry, words) {
                Walk::Below => waiting.extend(self.below(Some(entry))),
                Walk::Beside => {}
                Walk::End => break,
            }
        }
        Ok(())
    }

    /// The next entries that say something and may be adopted, past those that say nothing.
    fn next(&mut self, entry: Option<Node>) -> Result<Vec<(Node, Vec<Said>)>> {
        let mut next = Vec::new();
        self.walk(entry, |record, entry, words| {
            if words.said.is_empty() {
                return Walk::Below;
            }
            if record.is_free(entry, &words) {
                next.push((entry, words.said));
            }
            Walk::Beside
        })?;
        Ok(next)
    }

    /// Whether the record says something after a place.
    pub(super) fn goes_on(&mut self, at: At) -> Result<bool> {
        let is_inside = match at.entry {
            Some(entry) if at.part != usize::MAX => self.words(entry)?.said.len() > at.part,
            _ => false,
        };
        Ok(is_inside || !self.next(at.entry)?.is_empty())
    }

    /// The place after these words, if they come next. It takes the entries that it passes.
    pub(super) fn follow(&mut self, mut at: At, said: &[Said]) -> Result<Option<At>> {
        let mut rest = Rest { said, bytes: 0 };
        let mut passed = Vec::new();
        if let Some(entry) = at.entry.filter(|_| at.part != usize::MAX) {
            let words = self.words(entry)?;
            if !rest.pass(&words.said, &mut at) {
                return Ok(None);
            }
        }
        while !rest.said.is_empty() {
            let mut found = None;
            for (entry, its) in self.next(at.entry)? {
                let (mut behind, mut then) = (At::default(), rest);
                if then.pass(&its, &mut behind) {
                    behind.entry = Some(entry);
                    found = Some((entry, behind, then));
                    break;
                }
            }
            let Some((entry, behind, then)) = found else {
                return Ok(None);
            };
            passed.push(entry);
            (at, rest) = (behind, then);
        }
        // The words of a user end with a part of the entry.
        if said.last().is_some_and(|said| said.letter == b'u') && at.bytes > 0 {
            return Ok(None);
        }
        self.taken.extend(passed);
        Ok(Some(at))
    }

    /// The place in an entry after these words, else after all of it.
    pub(super) fn behind_words(&mut self, entry: Node, said: &[Said]) -> Result<At> {
        let words = self.words(entry)?;
        let (mut rest, mut at) = (Rest { said, bytes: 0 }, At::default());
        let is_same = rest.pass(&words.said, &mut at) && rest.said.is_empty();
        at.entry = Some(entry);
        Ok(match is_same {
            true => at,
            false => At::behind(Some(entry)),
        })
    }

    /// The same of a message of the user anywhere below, recorded when it was said or later: of nodes above it the record
    /// has none.
    pub(super) fn find(&mut self, at: At, said: &[Said], time: Millis) -> Result<Option<At>> {
        let mut found = None;
        self.walk(at.entry, |record, entry, words| {
            if !words.said.is_empty() && !record.is_free(entry, &words) {
                return Walk::Beside;
            }
            let recorded = record.tree().timestamp(entry).unwrap_or(Millis::MIN);
            let is_users = record.tree().role(entry) == Role::User;
            if is_users && recorded.saturating_add(SLACK) >= time {
                let (mut rest, mut behind) = (Rest { said, bytes: 0 }, At::default());
                let is_same = rest.pass(&words.said, &mut behind);
                if is_same && rest.said.is_empty() && behind.bytes == 0 {
                    behind.entry = Some(entry);
                    found = Some(behind);
                    return Walk::End;
                }
            }
            Walk::Below
        })?;
        self.taken.extend(found.and_then(|found: At| found.entry));
        Ok(found)
    }

    /// The result of a call at a place: the one that names the call, else the next one.
    pub(super) fn result(&mut self, at: At, call: Option<&str>) -> Result<Option<Node>> {
        let mut found = None;
        self.walk(at.entry, |record, entry, words| {
            if !words.said.is_empty() {
                return Walk::Beside;
            }
            let its = words.call.as_deref();
            if its.is_none() || !record.is_free(entry, &words) {
                return Walk::Below;
            }
            if its == call {
                found = Some(entry);
                return Walk::End;
            }
            found = found.or(Some(entry));
            Walk::Below
        })?;
        self.taken.extend(found);
        Ok(found)
    }
}

/// Words that are still to be found.
#[derive(Clone, Copy)]
struct Rest<'a> {
    said: &'a [Said],
    /// The bytes of the first of them that were found.
    bytes: usize,
}

impl Rest<'_> {
    /// Passes what is the same, up to the end of either; false if something differs.
    fn pass(&mut self, words: &[Said], at: &mut At) -> bool {
        while let (Some((first, others)), Some(word)) =
            (self.said.split_first(), words.get(at.part))
        {
            if first.letter != word.letter {
                return false;
            }
            let wanted = first.text.get(self.bytes..).unwrap_or_default();
            let there = word.text.get(at.bytes..).unwrap_or_default();
            let same = match first.letter {
                b'c' => wanted.len().max(there.len()),
                _ => wanted.len().min(there.len()),
            };
            if first.letter != b'c' && wanted.as_bytes().get(..same) != there.as_bytes().get(..same)
            {
                return false;
            }
            if same >= wanted.len() {
                (self.said, self.bytes) = (others, 0);
            } else {
                self.bytes += same;
            }
            if same >= there.len() {
                (at.part, at.bytes) = (at.part + 1, 0);
            } else {
                at.bytes += same;
            }
        }
        true
    }
}
