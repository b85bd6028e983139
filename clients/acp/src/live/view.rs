//! Shows trees as text for people, in Markdown. Pure.

use std::collections::{HashMap, HashSet};
use std::fmt::{self, Write};
use treelined_client::{Branch, TreeNode};

/// The most rows that are shown.
const MAX_ROWS: usize = 200;
/// The number of rows that are shown before the position of the conversation, if not all rows are shown.
const BEFORE: usize = 150;
/// The longest preview, in characters.
const MAX_PREVIEW: usize = 72;

pub(crate) struct Row {
    id: String,
    parent: Option<usize>,
    /// The number of the prompt in the order of time; `None` if the message is not a prompt.
    number: Option<usize>,
    preview: String,
    label: Option<String>,
    prefix: String,
    /// Whether the message has siblings: other messages with the same parent.
    is_beside: bool,
}

/// The messages of a tree, without results of tools.
pub(crate) struct Outline {
    rows: Vec<Row>,
    places: HashMap<String, usize>,
}

impl Outline {
    /// Makes the outline from the rows of `get_tree`, in their order.
    pub(crate) fn of(nodes: &[TreeNode]) -> Outline {
        let places: HashMap<_, _> = nodes
            .iter()
            .enumerate()
            .map(|(place, node)| (node.id.clone(), place))
            .collect();
        let mut children: HashMap<Option<&str>, usize> = HashMap::new();
        for node in nodes {
            *children.entry(node.parent_id.as_deref()).or_default() += 1;
        }
        let mut prompts: Vec<_> = nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| node.role.as_deref() == Some("user"))
            .map(|(place, node)| (node.timestamp.as_str(), place))
            .collect();
        prompts.sort_unstable();
        let numbers = prompts.iter().enumerate();
        let numbers: HashMap<_, _> = numbers
            .map(|(number, (_, place))| (*place, number + 1))
            .collect();
        let rows = nodes.iter().enumerate().map(|(place, node)| {
            let beside = children.get(&node.parent_id.as_deref());
            Row {
                id: node.id.clone(),
                parent: node
                    .parent_id
                    .as_ref()
                    .and_then(|id| places.get(id).copied()),
                number: numbers.get(&place).copied(),
                preview: shortened(&node.preview, MAX_PREVIEW),
                label: node.label.clone(),
                prefix: node.prefix.clone().unwrap_or_default(),
                is_beside: beside.is_some_and(|count| *count > 1),
            }
        });
        Outline {
            rows: rows.collect(),
            places,
        }
    }

    /// Whether the outline has a row for the entry.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.places.contains_key(id)
    }

    /// The rows from an entry up to its root.
    fn up(&self, id: Option<&str>) -> impl Iterator<Item = (usize, &Row)> {
        let first = id.and_then(|id| self.places.get(id).copied());
        let row = |place: usize| self.rows.get(place).map(|row| (place, row));
        std::iter::successors(first.and_then(row), move |(_, above)| {
            above.parent.and_then(row)
        })
    }

    /// The prompts at and above a row, the last one first.
    pub(crate) fn prompts_up(&self, id: Option<&str>) -> impl Iterator<Item = &Row> {
        let up = self.up(id).map(|(_, row)| row);
        up.filter(|row| row.is_prompt())
    }

    /// The prompt with this number.
    pub(crate) fn prompt(&self, number: usize) -> Option<&Row> {
        let mut rows = self.rows.iter();
        rows.find(|row| row.number == Some(number))
    }

    /// The last row with this label.
    pub(crate) fn labelled(&self, label: &str) -> Option<&Row> {
        let mut rows = self.rows.iter();
        rows.rfind(|row| row.label.as_deref() == Some(label))
    }

    /// The last prompt at or above a row.
    fn prompt_above(&self, id: &str) -> Option<&Row> {
        self.prompts_up(Some(id)).next()
    }

    /// The prompts with their numbers, and the position of the conversation. `at` is an entry with a row.
    pub(crate) fn text(&self, at: Option<&str>) -> String {
        let path: HashSet<usize> = self.up(at).map(|(place, _)| place).collect();
        let here = self
            .up(at)
            .find(|(_, row)| row.is_shown())
            .map(|(place, _)| place);
        let shown: Vec<_> = self
            .rows
            .iter()
            .enumerate()
            .filter(|(_, row)| row.is_shown())
            .collect();
        if shown.is_empty() {
            return "There are no prompts yet.".to_owned();
        }
        let place = shown.iter().position(|(place, _)| Some(*place) == here);
        let skipped = match shown.len() {
            0..=MAX_ROWS => 0,
            length => place
                .unwrap_or_default()
                .saturating_sub(BEFORE)
                .min(length - MAX_ROWS),
        };
        let mut text = String::new();
        push_more(&mut text, skipped, "above");
        for (place, row) in shown.iter().skip(skipped).take(MAX_ROWS) {
            let mark = if path.contains(place) { '●' } else { '○' };
            let _infallible = write!(text, "{}{mark} ", row.prefix);
            if let Some(number) = row.number {
                let _infallible = write!(text, "{number} ");
            }
            text.push_str(&row.preview);
            if let Some(label) = &row.label {
                let _infallible = write!(text, " [{label}]");
            }
            if Some(*place) == here {
                text.push_str(" ← here");
            }
            text.push('\n');
        }
        push_more(
            &mut text,
            shown.len().saturating_sub(skipped + MAX_ROWS),
            "below",
        );
        fenced(&text)
    }

    /// The tip of each branch, with its text for a list.
    pub(crate) fn choices(
        &self,
        branches: &[(Branch, Option<String>, bool)],
    ) -> Vec<(String, String)> {
        let choice = |branch: &(Branch, Option<String>, bool)| {
            (branch.0.tip_id.clone(), self.branch(branch))
        };
        branches.iter().rev().take(MAX_ROWS).map(choice).collect()
    }

    fn branch(&self, (branch, at, is_here): &(Branch, Option<String>, bool)) -> String {
        let prompt = at.as_deref().and_then(|at| self.prompt_above(at));
        let messages = match branch.message_count {
            1 => "1 message".to_owned(),
            count => format!("{count} messages"),
        };
        let name = shortened(&branch.name, MAX_PREVIEW);
        let title = match prompt.and_then(|row| Some((row.number?, &row.preview))) {
            Some((number, preview)) if *preview == name => format!("{number} {name}"),
            Some((number, preview)) => format!("{number} {preview} · {name}"),
            None => name,
        };
        let minute = branch.last_activity.get(..16).unwrap_or_default();
        let minute = minute.replace('T', " ");
        let here = if *is_here { " ← here" } else { "" };
        format!("{title} ({messages}, {minute}){here}")
    }

    /// The list of branches. Each has its name, its last prompt and the number of this prompt, which leads to the end
    /// of the prompt's turn. The boolean says whether the conversation is on the branch.
    pub(crate) fn branches(&self, branches: &[(Branch, Option<String>, bool)]) -> String {
        if branches.is_empty() {
            return "There are no branches yet.".to_owned();
        }
        let mut text = String::new();
        for branch in branches.iter().take(MAX_ROWS) {
            let mark = if branch.2 { '●' } else { '○' };
            let _infallible = writeln!(text, "{mark} {}", self.branch(branch));
        }
        push_more(&mut text, branches.len().saturating_sub(MAX_ROWS), "below");
        fenced(&text)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(number) = self.number {
            write!(out, "{number} ")?;
        }
        write!(out, "“{}”", self.preview)
    }
}

impl Row {
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn is_prompt(&self) -> bool {
        self.number.is_some()
    }

    /// An answer is shown only if it has a label or siblings.
    fn is_shown(&self) -> bool {
        self.number.is_some() || self.label.is_some() || self.is_beside
    }
}

fn push_more(text: &mut String, count: usize, place: &str) {
    if count > 0 {
        let _infallible = writeln!(text, "… {count} more {place}");
    }
}

fn shortened(text: &str, length: usize) -> String {
    match text.char_indices().nth(length) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// A block of code. Its fence is longer than each fence in the text.
fn fenced(text: &str) -> String {
    let runs = text.split(|char| char != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or_default().max(2) + 1);
    format!("{fence}text\n{text}{fence}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn node(id: &str, parent: Value, role: &str, prefix: &str, more: Value) -> TreeNode {
        let mut node = json!({
            "id": id, "parentId": parent, "type": "message", "role": role, "preview": format!("{role} {id}"),
            "timestamp": format!("2026-03-01T09:5{}:00.000Z", &id[1..]), "childCount": 0, "depth": 0, "indent": 0,
            "onActivePath": false, "isLeaf": false, "isBranchPoint": false, "prefix": prefix,
        });
        if let (Value::Object(node), Value::Object(more)) = (&mut node, more) {
            node.extend(more);
        }
        serde_json::from_value(node).unwrap()
    }

    #[test]
    fn prompts_have_numbers_in_the_order_of_time() {
        let nodes = [
            node("u1", Value::Null, "user", "", json!({})),
            node("a2", json!("u1"), "assistant", "", json!({})),
            node(
                "u5",
                json!("a2"),
                "user",
                "├─ ",
                json!({ "preview": "x".repeat(99) }),
            ),
            node(
                "a6",
                json!("u5"),
                "assistant",
                "│  ",
                json!({ "label": "ok" }),
            ),
            node(
                "u3",
                json!("a2"),
                "user",
                "└─ ",
                json!({ "preview": "a ``` b" }),
            ),
            node("a4", json!("u3"), "assistant", "   ", json!({})),
        ];
        let outline = Outline::of(&nodes);
        let long = format!("{}…", "x".repeat(72));
        assert_eq!(
            outline.text(Some("a4")),
            format!(
                "````text\n● 1 user u1\n├─ ○ 3 {long}\n│  ○ assistant a6 [ok]\n└─ ● 2 a ``` b ← here\n````\n"
            )
        );
        let above = outline.prompt_above("a6");
        assert_eq!(above.and_then(|row| row.number), Some(3));
        assert_eq!(Outline::of(&[]).text(None), "There are no prompts yet.");
    }

    #[test]
    fn a_long_tree_is_shown_around_the_place_where_the_conversation_is() {
        let parent = |number: usize| match number {
            0 => Value::Null,
            _ => json!(format!("u{:04}", number - 1)),
        };
        let nodes: Vec<_> = (0..1_000)
            .map(|number| {
                node(
                    &format!("u{number:04}"),
                    parent(number),
                    "user",
                    "",
                    json!({}),
                )
            })
            .collect();
        let outline = Outline::of(&nodes);
        for (at, above, below) in [(0, 0, 800), (500, 350, 450), (999, 800, 0)] {
            let text = outline.text(Some(&format!("u{at:04}")));
            assert_eq!(text.contains(&format!("… {above} more above")), above > 0);
            assert_eq!(text.contains(&format!("… {below} more below")), below > 0);
            assert!(text.contains(&format!("user u{at:04} ← here")), "{text}");
        }
    }
}
