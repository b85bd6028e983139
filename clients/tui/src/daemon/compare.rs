//! What two branches did since they parted, asked entry by entry.
//!
//! Both walk up from their marked entries, the deeper one first, until they meet: what is read is what is
//! compared, however large the session is.

use super::convert;
use crate::model::compare::{Comparison, Said, Side};
use crate::model::document;
use crate::model::rows::Kind;
use crate::text;
use serde_json::Value;
use std::collections::BTreeSet;
use treelined_client::{Client, Entry, Error, TreeFilter};

/// Characters of a message shown at most.
const SHOWN: usize = 400;

/// The lines that open every summary of a branch (semantics.md §3): where each is one line, they would be
/// all that is seen of it.
const PREAMBLES: [&str; 2] = [
    "This is a summary of a branch that was explored before the conversation returned here.",
    "This is a summary of another branch of this conversation, merged here.",
];

pub async fn compare(client: &Client, left: &str, right: &str) -> Result<Comparison, Error> {
    let mut one = Walk::begin(client, left).await?;
    let mut other = Walk::begin(client, right).await?;
    while one.at != other.at {
        if one.depth >= other.depth {
            one.step(client).await?;
        } else {
            other.step(client).await?;
        }
    }
    let ancestor = match &one.at {
        Some(id) => Some(in_one_line(&convert::value(
            &client.get_entry(id).await?.entry,
        ))),
        None => None,
    };
    Ok(Comparison {
        ancestor,
        left: one.side(),
        right: other.side(),
    })
}

/// On its way up from a marked entry.
struct Walk {
    /// The next entry; none above a root.
    at: Option<String>,
    /// Entries above it; -1 above a root.
    depth: i64,
    /// The marked entry, in one line.
    tip: String,
    /// Passed, the deepest first.
    passed: Vec<Entry>,
}

impl Walk {
    async fn begin(client: &Client, id: &str) -> Result<Self, Error> {
        // The daemon knows how deep it is, loops in damaged files notwithstanding.
        let tree = client
            .get_tree()
            .filter(TreeFilter::All)
            .around(id)
            .limit(1)
            .await?;
        let depth = tree.nodes.first().map_or(0, |node| node.depth);
        let tip = client.get_entry(id).await?.entry;
        Ok(Self {
            at: Some(id.to_owned()),
            depth: i64::try_from(depth).unwrap_or(i64::MAX),
            tip: in_one_line(&convert::value(&tip)),
            passed: Vec::new(),
        })
    }

    async fn step(&mut self, client: &Client) -> Result<(), Error> {
        let Some(at) = self.at.take() else {
            return Ok(());
        };
        let entry = client.get_entry(at).await?.entry;
        self.depth -= 1;
        if self.depth >= 0 {
            self.at = entry.parent_id().map(str::to_owned);
        }
        self.passed.push(entry);
        Ok(())
    }

    fn side(self) -> Side {
        let mut said = Vec::new();
        let mut files = Files::default();
        for entry in self.passed.iter().rev() {
            let entry = convert::value(entry);
            files.of_entry(&entry);
            let role = entry.pointer("/message/role").and_then(Value::as_str);
            let kind = convert::kind(str_of(&entry, "type"), role);
            let counts = matches!(
                kind,
                Kind::User | Kind::Assistant | Kind::Bash | Kind::Summary | Kind::Compaction
            );
            if counts && has_text(&entry) {
                let text = in_one_line(&entry);
                said.push(Said { kind, text });
            }
        }
        let (read, modified) = files.sorted();
        Side {
            tip: self.tip,
            said,
            read,
            modified,
        }
    }
}

fn str_of<'a>(value: &'a Value, member: &str) -> &'a str {
    value
        .get(member)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Whether a message says something, rather than only calling tools.
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
    let line = text::line(&words.join(" "));
    match line.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
        None => line,
    }
}

fn without_preamble(summary: &str) -> &str {
    let mut rests = PREAMBLES
        .iter()
        .filter_map(|line| summary.strip_prefix(line));
    rests.next().unwrap_or(summary)
}

/// The files a branch touched, as its tool calls and its summaries say (semantics.md §2).
#[derive(Default)]
struct Files {
    read: BTreeSet<String>,
    modified: BTreeSet<String>,
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
            set.extend(path.map(text::line));
        }
        // A client's own summary says what it likes in its details.
        if entry.get("fromHook").and_then(Value::as_bool) == Some(true) {
            return;
        }
        for (member, set) in [
            ("readFiles", &mut self.read),
            ("modifiedFiles", &mut self.modified),
        ] {
            let files = entry.get("details").and_then(|details| details.get(member));
            let files = files.and_then(Value::as_array).into_iter().flatten();
            set.extend(files.filter_map(Value::as_str).map(text::line));
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
    fn summaries_begin_with_what_they_say() {
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
