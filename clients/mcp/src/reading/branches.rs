//! Branches as a whole: two compared, and one that was left.

use super::pages::{PassageLine, Reading};
use super::{Answer, DEFAULT_TOKENS, budget};
use crate::clean::{Cleaner, inert};
use crate::history::{History, OpenSession, Result};
use crate::portable::portable;
use crate::text::{Note, Passage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::fmt::Write;
use treelined_client::{Entry, EntryBody, SearchMode, TreeFilter, TreeNode};

/// The passages at the end of a branch that `why_left` shows.
const LAST_PASSAGES: usize = 6;
/// The entries at the end of a branch among which `why_left` looks for them.
const LAST_ENTRIES: usize = 200;
/// The most bytes of the paths of files of a branch.
const FILE_BYTES: usize = 4_000;
/// The rows of one answer of the daemon.
const ROWS: u64 = 500;

#[derive(Serialize, JsonSchema)]
#[schemars(transform = portable)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// The last entry that both have; absent if they have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ancestor: Option<String>,
    pub a: Side,
    pub b: Side,
}

/// One of two branches, after their common ancestor.
#[derive(Serialize, JsonSchema)]
#[schemars(transform = portable)]
#[serde(rename_all = "camelCase")]
pub struct Side {
    pub tip: String,
    pub entries: usize,
    /// The files that the branch read and changed.
    pub files: Files,
    /// Its messages, tokens, cost and time.
    pub stats: Map<String, Value>,
    pub passages: Vec<PassageLine>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(transform = portable)]
#[serde(rename_all = "camelCase")]
pub struct Files {
    pub read_files: Vec<String>,
    pub modified_files: Vec<String>,
    /// Files that this answer has no room for.
    pub left_out: usize,
}

/// The daemon's answer.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DaemonComparison {
    ancestor_id: Option<String>,
    a: DaemonSide,
    b: DaemonSide,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DaemonSide {
    entry_ids: Vec<String>,
    files: DaemonFiles,
    stats: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DaemonFiles {
    read_files: Vec<String>,
    modified_files: Vec<String>,
}

pub async fn compare_branches(
    history: &History,
    session: Option<&str>,
    tips: (&str, &str),
) -> Result<Answer<Comparison>> {
    let open = history.open(session).await?;
    let answer = compared(&open, tips, history.cleaner()).await;
    open.close_after(answer).await
}

async fn compared(
    open: &OpenSession<'_>,
    (a, b): (&str, &str),
    mut cleaner: Cleaner<'_>,
) -> Result<Answer<Comparison>> {
    let compared = open.compare(a, b).await?;
    let ancestor = compared.ancestor_id.as_deref();
    let mut text = open.heading(&mut cleaner);
    let shown = ancestor.map(inert);
    let _infallible = writeln!(
        text,
        "\nCommon ancestor: {}",
        shown.as_deref().unwrap_or("none")
    );
    let a = compared
        .a
        .shown(open, (a, ancestor), &mut text, &mut cleaner);
    let a = a.await?;
    let b = compared
        .b
        .shown(open, (b, ancestor), &mut text, &mut cleaner);
    let b = b.await?;
    let ancestor = shown;
    let data = Comparison { ancestor, a, b };
    Ok(Answer::new(text, data, cleaner))
}

impl OpenSession<'_> {
    async fn compare(&self, a: &str, b: &str) -> Result<DaemonComparison> {
        let params = json!({ "sessionId": self.id, "a": a, "b": b });
        Ok(self.client.call("compare_branches", params).await?)
    }
}

impl DaemonSide {
    /// Reads the passages of the branch as far as there is room, and adds its text.
    async fn shown(
        self,
        open: &OpenSession<'_>,
        (tip, ancestor): (&str, Option<&str>),
        text: &mut String,
        cleaner: &mut Cleaner<'_>,
    ) -> Result<Side> {
        let entries = self.entry_ids.len();
        let heading = format!(
            "\nBranch {}: {entries} entries after the ancestor\n",
            inert(tip)
        );
        let mut reading = Reading::new(heading, budget(Some(DEFAULT_TOKENS / 2)));
        let page = open.path(tip, ancestor).await?;
        if let Some(next) = reading.add_pages(open, tip, page, cleaner).await? {
            let _infallible = writeln!(
                reading.text,
                "\nMore: read_branch with tip: {} from: {}",
                inert(tip),
                inert(&next)
            );
        }
        text.push_str(&reading.text);
        let stats = match cleaner.value(Value::Object(self.stats)) {
            Value::Object(stats) => stats,
            _ => Map::new(),
        };
        Ok(Side {
            tip: inert(tip),
            entries,
            files: self.files.shown(cleaner),
            stats,
            passages: reading.passages,
        })
    }
}

impl DaemonFiles {
    fn shown(self, cleaner: &mut Cleaner<'_>) -> Files {
        let (mut room, mut left_out) = (FILE_BYTES, 0);
        // The changed files are the more telling ones.
        let mut lists = [self.modified_files, self.read_files].map(|paths| {
            let mut shown = Vec::new();
            for path in paths {
                match room.checked_sub(path.len()) {
                    Some(left) => {
                        room = left;
                        shown.push(cleaner.text(&path));
                    }
                    None => left_out += 1,
                }
            }
            shown
        });
        let [modified_files, read_files] = &mut lists;
        Files {
            read_files: std::mem::take(read_files),
            modified_files: std::mem::take(modified_files),
            left_out,
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(transform = portable)]
#[serde(rename_all = "camelCase")]
pub struct WhyLeft {
    pub branch: String,
    /// Whether the conversation still goes on there.
    pub active: bool,
    /// Summaries that were written when the branch was left, and notes and labels about its entries.
    pub reasons: Vec<PassageLine>,
    /// Its last passages.
    pub end: Vec<PassageLine>,
}

/// A summary, label or note about an entry of a branch.
struct Remark {
    entry_id: String,
    at: String,
    passage: Passage,
}

impl Remark {
    /// The label that a row has.
    fn of_row(row: TreeNode, cleaner: &Cleaner<'_>) -> Remark {
        let role = format!("label of {}", inert(&row.id));
        let label = row.label.unwrap_or_default();
        Remark {
            at: row.label_timestamp.unwrap_or(row.timestamp),
            entry_id: row.id,
            passage: Passage::new(&role, &label, cleaner),
        }
    }

    /// The summary or note in an entry, if it is about the branch.
    fn of_entry(entry: &Entry, branch: &HashSet<&str>, cleaner: &Cleaner<'_>) -> Option<Remark> {
        let (role, text) = match entry.body().ok()? {
            EntryBody::BranchSummary(body) if branch.contains(body.from_id.as_str()) => {
                ("summary written when it was left".to_owned(), body.summary)
            }
            EntryBody::Custom(body) if body.custom_type == Note::TYPE => {
                let note = Note::parse(body.data.as_ref()?)?;
                if !branch.contains(note.target_id.as_str()) {
                    return None;
                }
                let role = format!("note about {}: {}", note.target_id, note.outcome);
                (role, note.reason)
            }
            _ => return None,
        };
        Some(Remark {
            entry_id: entry.id().to_owned(),
            at: entry.timestamp().to_owned(),
            passage: Passage::new(&role, &text, cleaner),
        })
    }
}

pub async fn why_left(
    history: &History,
    session: Option<&str>,
    branch: &str,
) -> Result<Answer<WhyLeft>> {
    let open = history.open(session).await?;
    let answer = reasons(&open, branch, history.cleaner()).await;
    open.close_after(answer).await
}

async fn reasons(
    open: &OpenSession<'_>,
    branch: &str,
    mut cleaner: Cleaner<'_>,
) -> Result<Answer<WhyLeft>> {
    let own = open.left_entries(branch).await?;
    let names: HashSet<&str> = own.iter().map(String::as_str).collect();
    let remarks = match names.is_empty() {
        true => Vec::new(),
        false => open.remarks(&names, &cleaner).await?,
    };
    let mut reading = Reading::new(open.heading(&mut cleaner), budget(None));
    let heading = match (names.is_empty(), remarks.is_empty()) {
        (true, _) => "This branch was not left: it is on the path to the leaf.",
        (_, true) => "Nobody said why. The branch ends so:",
        (_, false) => "What was said about it:",
    };
    let _infallible = writeln!(reading.text, "\n{heading}");
    for remark in &remarks {
        let place = (remark.entry_id.as_str(), remark.at.as_str());
        if !reading.add(place, &remark.passage, &mut cleaner) {
            break;
        }
    }
    let said = reading.passages.len();
    let mut last = Vec::new();
    for id in own.iter().rev().take(LAST_ENTRIES) {
        let entry = open.client.get_entry(id).await?.entry;
        last.extend(Passage::of(&entry, &cleaner).map(|passage| (entry, passage)));
        if last.len() == LAST_PASSAGES {
            break;
        }
    }
    for (entry, passage) in last.iter().rev() {
        if !reading.add((entry.id(), entry.timestamp()), passage, &mut cleaner) {
            break;
        }
    }
    let end = reading.passages.split_off(said);
    let data = WhyLeft {
        branch: inert(branch),
        active: names.is_empty(),
        reasons: reading.passages,
        end,
    };
    Ok(Answer::new(reading.text, data, cleaner))
}

impl OpenSession<'_> {
    /// The ids of the entries of a branch that are not on the path to the leaf.
    async fn left_entries(&self, tip: &str) -> Result<Vec<String>> {
        if let Some(leaf) = &self.leaf {
            return Ok(self.compare(tip, leaf).await?.a.entry_ids);
        }
        let (mut ids, mut since) = (Vec::new(), None::<String>);
        loop {
            let page = self.path(tip, since.as_deref()).await?;
            ids.extend(page.entries.iter().map(|entry| entry.id().to_owned()));
            since = page.next_cursor;
            if since.is_none() {
                return Ok(ids);
            }
        }
    }

    /// The summaries, labels and notes about these entries, the oldest first.
    async fn remarks(&self, branch: &HashSet<&str>, cleaner: &Cleaner<'_>) -> Result<Vec<Remark>> {
        let labelled = self.rows(TreeFilter::LabeledOnly, None).await?;
        let labelled = labelled.into_iter();
        let labelled = labelled.filter(|row| branch.contains(row.id.as_str()));
        let mut remarks: Vec<Remark> = labelled.map(|row| Remark::of_row(row, cleaner)).collect();
        let query = format!("^branch_summary|^{}$", Note::TYPE);
        for row in self.rows(TreeFilter::All, Some(&query)).await? {
            if matches!(row.r#type.as_str(), "branch_summary" | "custom") {
                let entry = self.client.get_entry(&row.id).await?.entry;
                remarks.extend(Remark::of_entry(&entry, branch, cleaner));
            }
        }
        remarks.retain(|remark| !remark.passage.text.is_empty());
        remarks.sort_by(|one, other| one.at.cmp(&other.at));
        Ok(remarks)
    }

    /// The rows of the tree that a filter shows and a regular expression finds.
    async fn rows(&self, filter: TreeFilter, query: Option<&str>) -> Result<Vec<TreeNode>> {
        let (mut rows, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let mut call = self.client.get_tree().filter(filter.clone()).limit(ROWS);
            if let Some(query) = query {
                call = call.query(query).mode(SearchMode::Regex);
            }
            if let Some(cursor) = cursor.take() {
                call = call.cursor(cursor);
            }
            let page = call.await?;
            rows.extend(page.nodes);
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(rows);
            }
        }
    }
}
