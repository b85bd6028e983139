//! Compares two branches from their common ancestor on.
//!
//! Both branches are read upwards from their marked entries, the deeper branch first, until they meet.
//! The parents come from pages of tree rows. The bodies come from pages of the file, in which the entries
//! of a branch are usually close together. So one request covers some thousand entries, only compared
//! entries are read, and the memory does not grow with the session.

use super::convert;
use super::figures;
use crate::message::Kind;
use crate::message::{BranchMessage, Comparison, Gap, SHOWN_FILES, SHOWN_MESSAGES, Side};
use crate::model::document;
use crate::text;
use serde_json::Value;
use std::collections::{BTreeSet, VecDeque};
use treelined_client::{Client, Entry, Error, FlatTree, TreeFilter};

/// The number of rows in a request, and the most entries in it.
const PAGE: u64 = 2000;

/// The most bytes of the entries in a request.
const PAGE_BYTES: u64 = 2 << 20;

/// The number of entries in the first request, when it is unknown how close together the entries of the
/// branch are in the file.
const FIRST: u64 = 32;

/// The most characters shown of a message, or of the name of a file.
const SHOWN: usize = 400;

/// The first lines of all summaries of branches (semantics.md §2.4). They are removed, since each would
/// fill the one line on which a summary is shown.
const PREAMBLES: [&str; 2] = [
    "This is a summary of a branch that was explored before the conversation returned here.",
    "This is a summary of another branch of this conversation, merged here.",
];

/// Compares the branches that end in these entries. Calls `report` with the number of entries read so
/// far, and an upper bound of this number.
pub async fn compare(
    client: &Client,
    left: &str,
    right: &str,
    report: impl Fn(usize, usize) + Send,
) -> Result<Comparison, Error> {
    let mut one = BranchReader::new(client, left).await?;
    let mut other = BranchReader::new(client, right).await?;
    let most = one.depth() + other.depth();
    while one.next() != other.next() {
        let before = one.passed + other.passed;
        one.look_ahead(client).await?;
        other.look_ahead(client).await?;
        let deeper = one.above.cmp(&other.above);
        let apart = usize::try_from(one.above.abs_diff(other.above)).unwrap_or(usize::MAX);
        match deeper {
            std::cmp::Ordering::Greater => one.read(client, apart).await?,
            std::cmp::Ordering::Less => other.read(client, apart).await?,
            std::cmp::Ordering::Equal => {
                // Both are at the same depth now. They are read together until they reach the same entry.
                let pairs = one.ahead.iter().zip(&other.ahead);
                let apart = pairs.take_while(|(one, other)| one != other).count();
                one.read(client, apart).await?;
                other.read(client, apart).await?;
            }
        }
        let passed = one.passed + other.passed;
        if passed == before {
            return Err(Error::Unexpected {
                method: "get_tree".to_owned(),
                message: "the tree has changed meanwhile".to_owned(),
            });
        }
        report(passed, most);
    }
    let id = one.next().map(str::to_owned);
    let ancestor = match &id {
        Some(id) => Some(in_one_line(&convert::value(
            &client.get_entry(id).await?.entry,
        ))),
        None => None,
    };
    let (mut left_side, mut right_side) = (one.side(), other.side());
    left_side.cost = cost(client, left, id.as_deref()).await?;
    right_side.cost = cost(client, right, id.as_deref()).await?;
    Ok(Comparison {
        ancestor,
        left: left_side,
        right: right_side,
    })
}

/// The cost of a branch below the common ancestor; `None` if none of its answers used tokens.
async fn cost(client: &Client, tip: &str, ancestor: Option<&str>) -> Result<Option<String>, Error> {
    let mut call = client.get_stats().leaf_id(Some(tip));
    if let Some(ancestor) = ancestor {
        call = call.since(ancestor);
    }
    Ok(figures::paid(&call.await?.costs))
}

/// Reads a branch upwards from a marked entry.
struct BranchReader {
    /// The ids of the next entries to read, as many as are known, the deepest first.
    ahead: VecDeque<String>,
    /// The parent of the last entry of `ahead`; `None` above a root.
    beyond: Option<String>,
    /// The number of entries above the next entry; -1 if the walk has passed a root.
    above: i64,
    /// The index of the row that was seen last. The parent is searched first in the rows before this row.
    row: Option<u64>,
    /// The number of entries read.
    passed: usize,
    /// The number of entries in the next request.
    limit: u64,
    tip: String,
    messages: Messages,
    files: Files,
}

impl BranchReader {
    async fn new(client: &Client, id: &str) -> Result<Self, Error> {
        // The depth from the daemon is right even if the parents in a damaged file form loops.
        let tree = rows(client).around(id).limit(1).await?;
        let depth = tree.nodes.first().map_or(0, |node| node.depth);
        let tip = client.get_entry(id).await?.entry;
        Ok(Self {
            ahead: VecDeque::new(),
            beyond: Some(id.to_owned()),
            above: i64::try_from(depth).unwrap_or(i64::MAX),
            row: Some(tree.offset + 1),
            passed: 0,
            limit: FIRST,
            tip: in_one_line(&convert::value(&tip)),
            messages: Messages::default(),
            files: Files::default(),
        })
    }

    /// Returns the number of entries on the path to the root, including the marked entry.
    fn depth(&self) -> usize {
        usize::try_from(self.above).map_or(0, |above| above + 1)
    }

    /// Returns the next entry to read; `None` after a root.
    fn next(&self) -> Option<&str> {
        self.ahead.front().or(self.beyond.as_ref()).map(|id| &**id)
    }

    /// Requests the ids of further entries if none is known.
    async fn look_ahead(&mut self, client: &Client) -> Result<(), Error> {
        let Some(at) = self.beyond.clone().filter(|_| self.ahead.is_empty()) else {
            return Ok(());
        };
        if let Some(end) = self.row.filter(|end| *end > 0) {
            let limit = PAGE.min(end);
            let tree = rows(client).offset(end - limit).limit(limit).await?;
            self.add_ancestors(&tree);
        }
        if self.ahead.is_empty() {
            // The page did not have the parent: other branches are between the entry and its child, or the tree has
            // changed.
            self.add_ancestors(&rows(client).around(&at).limit(PAGE).await?);
        }
        if self.ahead.is_empty() {
            return Err(Error::Unexpected {
                method: "get_tree".to_owned(),
                message: format!("the tree has no row for the entry {at}"),
            });
        }
        Ok(())
    }

    /// Adds the ancestors that are in these rows. Parents come before their children in the rows.
    fn add_ancestors(&mut self, tree: &FlatTree) {
        for (at, node) in tree.nodes.iter().enumerate().rev() {
            if self.beyond.as_deref() == Some(&*node.id) {
                self.beyond.clone_from(&node.parent_id);
                self.ahead.push_back(node.id.clone());
                self.row = Some(tree.offset + at as u64);
            }
        }
    }

    /// Reads the bodies of at most `count` known entries.
    async fn read(&mut self, client: &Client, count: usize) -> Result<(), Error> {
        let mut ids: Vec<String> = self.ahead.drain(..count.min(self.ahead.len())).collect();
        let mut since = self.next().map(str::to_owned);
        let mut messages = Vec::new();
        // The request begins with the parents, since these usually come first in the file.
        while let Some(next) = ids.last() {
            let limit = self.limit.min(ids.len() as u64);
            let mut call = client.get_entries().limit(limit).max_bytes(PAGE_BYTES);
            if let Some(since) = &since {
                call = call.since(since);
            }
            let mut entries = call.await?.entries;
            let seen = entries.len();
            if entries.iter().all(|entry| entry.id() != next) {
                entries = vec![client.get_entry(next).await?.entry];
            }
            let before = ids.len();
            for entry in &entries {
                if let Some(id) = ids.pop_if(|id| id == entry.id()) {
                    messages.extend(self.add(entry));
                    since = Some(id);
                }
            }
            let found = before - ids.len();
            self.limit = if found * 2 >= seen {
                (self.limit * 2).min(PAGE)
            } else {
                (self.limit / 2).max(1)
            };
        }
        messages
            .into_iter()
            .rev()
            .for_each(|message| self.messages.push(message));
        Ok(())
    }

    /// Adds an entry. Returns the message to show, if the entry has text.
    fn add(&mut self, entry: &Entry) -> Option<BranchMessage> {
        self.passed += 1;
        self.above -= 1;
        let entry = convert::value(entry);
        self.files.of_entry(&entry);
        let role = entry.pointer("/message/role").and_then(Value::as_str);
        let kind = convert::kind(str_of(&entry, "type"), role);
        let counts = matches!(
            kind,
            Kind::User | Kind::Assistant | Kind::Bash | Kind::Summary | Kind::Compaction
        );
        (counts && has_text(&entry)).then(|| BranchMessage {
            kind,
            text: in_one_line(&entry),
        })
    }

    fn side(self) -> Side {
        let (messages, gap) = self.messages.in_order();
        let (read, modified) = self.files.sorted();
        Side {
            tip: self.tip,
            messages,
            gap,
            read,
            modified,
            cost: None,
        }
    }
}

/// Requests all rows, without a filter. The daemon caches their order between pages.
fn rows(client: &Client) -> treelined_client::Call<treelined_client::GetTreeParams, FlatTree> {
    client.get_tree().filter(TreeFilter::All)
}

/// The first and the last messages of a branch. They are added in reverse order.
#[derive(Default)]
struct Messages {
    last: Vec<BranchMessage>,
    first: VecDeque<BranchMessage>,
    left_out: usize,
}

impl Messages {
    fn push(&mut self, message: BranchMessage) {
        if self.last.len() < SHOWN_MESSAGES {
            self.last.push(message);
            return;
        }
        self.first.push_back(message);
        if self.first.len() > SHOWN_MESSAGES {
            self.first.pop_front();
            self.left_out += 1;
        }
    }

    fn in_order(self) -> (Vec<BranchMessage>, Option<Gap>) {
        let gap = (self.left_out > 0).then_some(Gap {
            after: self.first.len(),
            messages: self.left_out,
        });
        let first = self.first.into_iter().rev();
        (first.chain(self.last.into_iter().rev()).collect(), gap)
    }
}

fn str_of<'a>(value: &'a Value, member: &str) -> &'a str {
    value
        .get(member)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Returns whether a message has text, and not only tool calls.
fn has_text(entry: &Value) -> bool {
    match entry.pointer("/message/content") {
        Some(Value::Array(blocks)) => blocks
            .iter()
            .any(|block| !str_of(block, "text").trim().is_empty()),
        Some(Value::String(text)) => !text.trim().is_empty(),
        _ => true,
    }
}

fn in_one_line(entry: &Value) -> String {
    let text = document::plain_text(entry);
    let text = match str_of(entry, "type") {
        "branch_summary" => without_preamble(&text),
        _ => &text,
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    shortened(&text::line(&words.join(" ")))
}

fn shortened(line: &str) -> String {
    match line.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
        None => line.to_owned(),
    }
}

fn without_preamble(summary: &str) -> &str {
    let mut rests = PREAMBLES
        .iter()
        .filter_map(|line| summary.strip_prefix(line));
    rests.next().unwrap_or(summary)
}

/// The files that a branch touched, according to its tool calls and summaries (semantics.md §2.4).
#[derive(Default)]
struct Files {
    read: BTreeSet<String>,
    modified: BTreeSet<String>,
}

fn note(files: &mut BTreeSet<String>, file: Option<&str>) {
    if files.len() < SHOWN_FILES {
        files.extend(file.map(|file| shortened(&text::line(file))));
    }
}

impl Files {
    fn of_entry(&mut self, entry: &Value) {
        let blocks = entry.pointer("/message/content").and_then(Value::as_array);
        for block in blocks.into_iter().flatten() {
            let path = block.pointer("/arguments/path").and_then(Value::as_str);
            let set = match str_of(block, "name") {
                "read" => &mut self.read,
                "write" | "edit" => &mut self.modified,
                _ => continue,
            };
            note(set, path);
        }
        // If a client wrote the summary, its details can have any form.
        if entry.get("fromHook").and_then(Value::as_bool) == Some(true) {
            return;
        }
        for (member, set) in [
            ("readFiles", &mut self.read),
            ("modifiedFiles", &mut self.modified),
        ] {
            let files = entry.get("details").and_then(|details| details.get(member));
            let files = files.and_then(Value::as_array).into_iter().flatten();
            for file in files {
                note(set, file.as_str());
            }
        }
    }

    fn sorted(self) -> (Vec<String>, Vec<String>) {
        let read = self.read.difference(&self.modified).cloned().collect();
        (read, self.modified.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn summaries_are_shown_without_their_preamble() {
        #[track_caller]
        fn check(kind: &str, summary: String, expect: &str) {
            let entry = json!({"type": kind, "summary": summary});
            assert_eq!(in_one_line(&entry), expect);
        }
        for line in PREAMBLES {
            check(
                "branch_summary",
                format!("{line}\n\n## Goal\nBuild"),
                "## Goal Build",
            );
            check(
                "compaction",
                format!("{line} Built"),
                &format!("{line} Built"),
            );
        }
        check("branch_summary", "Of my own".into(), "Of my own");
    }

    #[test]
    fn files_come_from_calls_and_summaries() {
        let mut files = Files::default();
        let call = |name: &str, path: &str| json!({"type": "toolCall", "name": name, "arguments": {"path": path}});
        files.of_entry(&json!({"message": {"content": [call("read", "b"), call("edit", "b"), call("bash", "c"), call("read", "a\u{1b}")]}}));
        files.of_entry(&json!({"details": {"readFiles": ["d"], "modifiedFiles": ["e"]}}));
        files.of_entry(&json!({"fromHook": true, "details": {"readFiles": ["f"]}}));
        let (read, modified) = files.sorted();
        assert_eq!(
            (read, modified),
            (vec!["a␛".into(), "d".into()], vec!["b".into(), "e".into()])
        );
    }
}
