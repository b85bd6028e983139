//! Answers about whole branches: a comparison of two branches, and the reason why a branch was left.

use super::answers::{DEFAULT_TOKENS, answer, budget};
use super::pages::Reading;
use crate::clean::{Cleaner, folded, inert};
use crate::cuts::shortened;
use crate::history::{History, OpenSession, Result};
use crate::text::{Note, Passage, quoted};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use treelined_client::{Entry, EntryBody, TreeFilter, TreeNode};

/// The number of passages from the end of a branch that `why_left` shows.
const LAST_PASSAGES: usize = 6;
/// The number of entries at the end of a branch in which `why_left` looks for these passages.
const LAST_ENTRIES: usize = 200;
/// The most bytes of file paths that an answer lists for a branch.
const FILE_BYTES: usize = 1_200;
/// The most characters of the statistics of a branch.
const MAX_STATS: usize = 800;
/// The label of a fork without a title in an imported session. It is not a reason.
const FORK: &str = "fork";
/// The most rows in one answer of the daemon.
const ROWS: u64 = 500;

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
) -> Result<String> {
    let open = history.open(session).await?;
    let answer = compared(&open, tips, history.cleaner()).await;
    open.close_after(answer).await
}

async fn compared(
    open: &OpenSession<'_>,
    (a, b): (&str, &str),
    mut cleaner: Cleaner<'_>,
) -> Result<String> {
    let compared = open.compare(a, b).await?;
    let ancestor = compared.ancestor_id.as_deref();
    let mut facts = open.facts();
    facts.id("ancestor", ancestor.unwrap_or("none"));
    let mut record = open.title(&mut cleaner);
    for (name, tip, side) in [("a", a, compared.a), ("b", b, compared.b)] {
        facts.id(name, tip);
        facts.add(&format!("{name}Entries"), side.entry_ids.len());
        let reading = side.shown(open, (tip, ancestor), &mut cleaner);
        let (text, next) = reading.await?;
        record += &text;
        if let Some(next) = next {
            facts.id(&format!("{name}NextFrom"), &next);
        }
    }
    Ok(answer(facts, &record, cleaner))
}

impl OpenSession<'_> {
    async fn compare(&self, a: &str, b: &str) -> Result<DaemonComparison> {
        let params = json!({ "sessionId": self.id, "a": a, "b": b });
        Ok(self.client.call("compare_branches", params).await?)
    }
}

impl DaemonSide {
    /// The part of the branch after the ancestor that fits into the answer, and the first entry that does not fit.
    async fn shown(
        self,
        open: &OpenSession<'_>,
        (tip, ancestor): (&str, Option<&str>),
        cleaner: &mut Cleaner<'_>,
    ) -> Result<(String, Option<String>)> {
        let mut text = format!(
            "\nbranch {}: files, messages, tokens and cost\n",
            inert(tip)
        );
        let mut stats = self.stats;
        // The cost is 0 if `costs` says that it is not known.
        if stats.contains_key("costs") {
            stats.remove("cost");
        }
        let stats = cleaner.value(Value::Object(stats)).to_string();
        text += &quoted(&shortened(&stats, MAX_STATS));
        text += &quoted(&self.files.shown(cleaner));
        let mut reading = Reading::new(text, budget(Some(DEFAULT_TOKENS / 2)));
        let page = open.path(tip, ancestor).await?;
        let next = reading.add_pages(open, tip, page, cleaner).await?;
        Ok((reading.text, next))
    }
}

impl DaemonFiles {
    /// One line for each entry, as many as fit.
    fn shown(&self, cleaner: &mut Cleaner<'_>) -> String {
        let (mut lines, mut left_out) = (String::new(), 0);
        // Changed files come first: they say more than read files.
        for (what, paths) in [
            ("changed", &self.modified_files),
            ("read", &self.read_files),
        ] {
            for path in paths {
                let line = format!("{what} {}\n", cleaner.text(&folded(path)));
                match lines.len() + line.len() > FILE_BYTES {
                    true => left_out += 1,
                    false => lines += &line,
                }
            }
        }
        if left_out > 0 {
            lines += &format!("{left_out} more files\n");
        }
        lines
    }
}

/// A summary, label or note about an entry of a branch.
pub(super) struct Remark {
    entry_id: String,
    at: String,
    pub passage: Passage,
}

impl Remark {
    /// The label that a row has.
    fn of_row(row: TreeNode, cleaner: &Cleaner<'_>) -> Remark {
        let role = format!("label of {}", inert(&row.id));
        let label = row.label.unwrap_or_default();
        Remark {
            at: row.label_timestamp.unwrap_or(row.timestamp),
            entry_id: row.id,
            passage: Passage::new(role, &label, cleaner),
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
                let role = format!("note about {}", inert(&note.target_id));
                (role, format!("{}: {}", note.outcome, note.reason))
            }
            _ => return None,
        };
        Some(Remark {
            entry_id: entry.id().to_owned(),
            at: entry.timestamp().to_owned(),
            passage: Passage::new(role, &text, cleaner),
        })
    }
}

pub async fn why_left(history: &History, session: Option<&str>, branch: &str) -> Result<String> {
    let open = history.open(session).await?;
    let answer = reasons(&open, branch, history.cleaner()).await;
    open.close_after(answer).await
}

async fn reasons(open: &OpenSession<'_>, branch: &str, mut cleaner: Cleaner<'_>) -> Result<String> {
    let own = open.left_entries(branch).await?;
    let names: HashSet<&str> = own.iter().map(String::as_str).collect();
    let remarks = match names.is_empty() {
        true => Vec::new(),
        false => open.remarks(&names, &cleaner).await?,
    };
    let mut reading = Reading::new(open.title(&mut cleaner), budget(None));
    for remark in &remarks {
        let place = (remark.entry_id.as_str(), remark.at.as_str());
        if !reading.add(place, &remark.passage, &mut cleaner) {
            break;
        }
    }
    let said = reading.count;
    let mut last = Vec::new();
    for id in own.iter().rev().take(LAST_ENTRIES) {
        let entry = open.client.get_entry(id).await?.entry;
        last.extend(Passage::of(&entry, &cleaner).map(|passage| (entry, passage)));
        if last.len() == LAST_PASSAGES {
            break;
        }
    }
    if !last.is_empty() {
        reading.text += "\nThe end of the branch:\n";
    }
    for (entry, passage) in last.iter().rev() {
        if !reading.add((entry.id(), entry.timestamp()), passage, &mut cleaner) {
            break;
        }
    }
    let mut facts = open.facts();
    facts.id("branch", branch);
    facts.add(
        "state",
        match names.is_empty() {
            true => "active: it is on the path to the leaf",
            false => "left",
        },
    );
    facts.add("reasons", said);
    facts.add("entries", reading.count - said);
    Ok(answer(facts, &reading.text, cleaner))
}

impl OpenSession<'_> {
    /// The entries of a branch that are not on the path to the leaf, and the files that these entries changed.
    pub(super) async fn left_side(&self, tip: &str) -> Result<(Vec<String>, Vec<String>)> {
        match &self.leaf {
            Some(leaf) => {
                let side = self.compare(tip, leaf).await?.a;
                Ok((side.entry_ids, side.files.modified_files))
            }
            None => Ok((self.left_entries(tip).await?, Vec::new())),
        }
    }

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
    pub(super) async fn remarks(
        &self,
        branch: &HashSet<&str>,
        cleaner: &Cleaner<'_>,
    ) -> Result<Vec<Remark>> {
        let labelled = self.rows(TreeFilter::LabeledOnly).await?;
        let labelled = labelled.into_iter();
        let labelled = labelled.filter(|row| branch.contains(row.id.as_str()));
        let labelled = labelled.filter(|row| row.label.as_deref() != Some(FORK));
        let mut remarks: Vec<Remark> = labelled.map(|row| Remark::of_row(row, cleaner)).collect();
        let mut entries = self.entries("branch_summary", None).await?;
        entries.extend(self.entries("custom", Some(Note::TYPE)).await?);
        let about = entries.iter();
        remarks.extend(about.filter_map(|entry| Remark::of_entry(entry, branch, cleaner)));
        remarks.retain(|remark| !remark.passage.text.is_empty());
        remarks.sort_by(|one, other| one.at.cmp(&other.at));
        Ok(remarks)
    }

    /// The entries of a type and, if it is given, a custom type.
    async fn entries(&self, kind: &str, custom_type: Option<&str>) -> Result<Vec<Entry>> {
        let (mut entries, mut since) = (Vec::new(), None::<String>);
        loop {
            let mut call = self.client.get_entries().types([kind]).limit(ROWS);
            if let Some(custom_type) = custom_type {
                call = call.custom_type(custom_type);
            }
            if let Some(since) = since.take() {
                call = call.since(since);
            }
            let page = call.await?;
            entries.extend(page.entries);
            since = page.next_cursor;
            if since.is_none() {
                return Ok(entries);
            }
        }
    }

    /// The rows of the tree that a filter shows.
    async fn rows(&self, filter: TreeFilter) -> Result<Vec<TreeNode>> {
        let (mut rows, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let mut call = self.client.get_tree().filter(filter.clone()).limit(ROWS);
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
