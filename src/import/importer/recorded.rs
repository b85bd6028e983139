//! Compares the entries that a recorder wrote with the nodes of the native session that it recorded (session-file.md
//! §5.8, "Records").

use crate::neutral::{Said, parts_of};
use std::collections::{HashMap, HashSet, VecDeque};
use treelined_core::entry::{Kind as EntryKind, Role};
use treelined_core::error::Result;
use treelined_core::json;
use treelined_core::timestamp::Millis;
use treelined_core::tree::{Node, Tree};
use treelined_files::log::OpenedLog;
use treelined_files::store::native::recorded_by;

/// The most entries that are examined for one node.
const MAX_LOOKED: usize = 1_000;
/// The most entries that are examined for all nodes of a native session: this number for each entry of the session,
/// and `MAX_LOOKED` more.
const MAX_LOOKED_EACH: usize = 16;
/// The most milliseconds by which the agent's time of a message may be later than the recorder's time.
const SLACK: Millis = 60_000;

/// A position in a record: the entry that was compared last, and the next part of this entry. Without an entry, the
/// position is the beginning of the record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct At {
    pub(super) entry: Option<Node>,
    part: usize,
    bytes: usize,
}

impl At {
    /// The position after a whole entry.
    pub(super) fn after(entry: Option<Node>) -> Self {
        Self {
            entry,
            part: usize::MAX,
            bytes: 0,
        }
    }
}

/// For each native id, the entries at which its records begin.
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

/// The record of one native session. Entries that were adopted are marked as taken.
pub(super) struct Record<'a> {
    opened: &'a OpenedLog,
    /// The entries on the paths from the root to the beginnings of the record.
    path: HashSet<Node>,
    /// The entries that stand for a node already.
    taken: HashSet<Node>,
    /// The number of entries that may still be examined.
    rest: usize,
}

/// The way in which a walk continues after an entry.
enum Walk {
    /// The entries below this entry are added to the end of the queue.
    Below,
    /// The entries below this entry are left out.
    Beside,
    End,
}

/// The texts of an entry.
struct Words {
    /// The parts of the message; empty for the result of a call.
    said: Vec<Said>,
    /// The id of the call, if the entry is the result of a call.
    call: Option<String>,
    is_imported: bool,
}

impl<'a> Record<'a> {
    /// `begins` are the entries at which the record begins.
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

    /// Whether a node may adopt an entry that has these texts.
    fn is_free(&self, entry: Node, words: &Words) -> bool {
        !self.taken.contains(&entry) && (!words.is_imported || self.path.contains(&entry))
    }

    /// The children of an entry. Children on the path come first.
    fn below(&self, entry: Option<Node>) -> Vec<Node> {
        let mut below = self.tree().children(entry);
        below.sort_by_key(|node| !self.path.contains(node));
        below
    }

    /// Calls `see` for the entries below `entry`, level by level. In each level, entries on the path come first. Ends
    /// when `see` returns [`Walk::End`], or when too many entries were examined.
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

    /// The nearest entries below `entry` that have texts and may be adopted. Entries without texts are skipped.
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

    /// Whether the record has more texts after a position.
    pub(super) fn goes_on(&mut self, at: At) -> Result<bool> {
        let is_inside = match at.entry {
            Some(entry) if at.part != usize::MAX => self.words(entry)?.said.len() > at.part,
            _ => false,
        };
        Ok(is_inside || !self.next(at.entry)?.is_empty())
    }

    /// The position after these texts; `None` if other texts come next. The entries that are passed become taken.
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
                let (mut after, mut then) = (At::default(), rest);
                if then.pass(&its, &mut after) {
                    after.entry = Some(entry);
                    found = Some((entry, after, then));
                    break;
                }
            }
            let Some((entry, after, then)) = found else {
                return Ok(None);
            };
            passed.push(entry);
            (at, rest) = (after, then);
        }
        // A message of the user must match the whole text of its entry.
        if said.last().is_some_and(|said| said.letter == b'u') && at.bytes > 0 {
            return Ok(None);
        }
        self.taken.extend(passed);
        Ok(Some(at))
    }

    /// The position in an entry after these texts. If the entry begins with other texts, the position after the whole
    /// entry.
    pub(super) fn behind_words(&mut self, entry: Node, said: &[Said]) -> Result<At> {
        let words = self.words(entry)?;
        let (mut rest, mut at) = (Rest { said, bytes: 0 }, At::default());
        let is_same = rest.pass(&words.said, &mut at) && rest.said.is_empty();
        at.entry = Some(entry);
        Ok(match is_same {
            true => at,
            false => At::after(Some(entry)),
        })
    }

    /// Looks for a message of the user anywhere below a position, and returns the position after it. The record may
    /// lack the nodes above the message. A message that was recorded more than `SLACK` before `time` does not count.
    pub(super) fn find(&mut self, at: At, said: &[Said], time: Millis) -> Result<Option<At>> {
        let mut found = None;
        self.walk(at.entry, |record, entry, words| {
            if !words.said.is_empty() && !record.is_free(entry, &words) {
                return Walk::Beside;
            }
            let recorded = record.tree().timestamp(entry).unwrap_or(Millis::MIN);
            let is_users = record.tree().role(entry) == Role::User;
            if is_users && recorded.saturating_add(SLACK) >= time {
                let (mut rest, mut after) = (Rest { said, bytes: 0 }, At::default());
                let is_same = rest.pass(&words.said, &mut after);
                if is_same && rest.said.is_empty() && after.bytes == 0 {
                    after.entry = Some(entry);
                    found = Some(after);
                    return Walk::End;
                }
            }
            Walk::Below
        })?;
        self.taken.extend(found.and_then(|found: At| found.entry));
        Ok(found)
    }

    /// Finds the result of a call below a position: the entry that names the call, else the nearest result.
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

/// Texts that are still to be found.
#[derive(Clone, Copy)]
struct Rest<'a> {
    said: &'a [Said],
    /// The bytes of the first text that were found already.
    bytes: usize,
}

impl Rest<'_> {
    /// Passes the texts that are equal, up to the end of either side. False if a text differs.
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
