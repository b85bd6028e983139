//! The read tools: each returns text for the model, and the same facts as structured content.

use crate::history::{Failure, History, OpenSession, Result};
use crate::portable::portable;
use crate::text::{HEADING, Note, Passage, boundary, cut, one_line, plain, quoted};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::fmt::Write;
use treelined_client::{EntryBody, SearchBranches, SearchMode};

/// The most tokens of an answer, text and structured content together.
pub const MAX_TOKENS: u64 = 25_000;
/// The tokens of a page if the caller names none.
const DEFAULT_TOKENS: u64 = 6_000;
/// Bytes a token, at least. What is said twice, as text and as structured content, is counted twice.
const TOKEN_BYTES: u64 = 3;
/// The most bytes of one passage in a branch; `read_entry` has the rest.
const MAX_PASSAGE: usize = 4_000;
/// The most characters of names and previews.
const MAX_LINE: usize = 160;
/// The passages at the end of a branch that `why_left` shows.
const LAST_PASSAGES: usize = 6;

/// Text and structured content of an answer.
pub struct Answer<T> {
    pub text: String,
    pub data: T,
}

/// The bytes of quoted text in an answer of so many tokens.
fn budget(max_tokens: Option<u64>) -> usize {
    let tokens = max_tokens.unwrap_or(DEFAULT_TOKENS).clamp(200, MAX_TOKENS);
    // Half for the text, half for the structured content, less the words around them.
    usize::try_from(tokens * TOKEN_BYTES / 2).unwrap_or_default() * 9 / 10
}

#[derive(Serialize, JsonSchema)]
#[schemars(transform = portable)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    pub session_id: String,
    pub session_name: String,
    pub entry_id: String,
    /// The end of the entry's branch, for `read_branch` and `why_left`.
    pub branch: String,
    /// Whether the branch was left.
    pub abandoned: bool,
    pub at: String,
    /// The text around the match, on one line.
    pub snippet: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(transform = portable)]
#[serde(rename_all = "camelCase")]
pub struct SearchHistory {
    pub hits: Vec<Found>,
    /// Hits on all pages.
    pub total: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A search as the model asks for it.
pub struct SearchRequest {
    pub query: String,
    pub mode: SearchMode,
    pub branches: SearchBranches,
    pub limit: u64,
    pub cursor: Option<String>,
}

pub async fn search_history(
    history: &History,
    request: SearchRequest,
) -> Result<Answer<SearchHistory>> {
    let mut call = history.client().search(request.query).mode(request.mode);
    call = call
        .branches(request.branches)
        .limit(request.limit.clamp(1, 100));
    if let Some(cwd) = history.scope() {
        call = call.cwd(cwd);
    }
    if let Some(cursor) = request.cursor {
        call = call.cursor(cursor);
    }
    let page = call.await?;
    let mut text = format!("{HEADING}\n{} hits in all.\n", page.totals.entries);
    let mut hits = Vec::new();
    for hit in page.hits {
        let found = Found {
            session_id: plain(&hit.session_id),
            session_name: one_line(&hit.session_name, MAX_LINE),
            entry_id: plain(&hit.entry_id),
            branch: plain(&hit.branch.tip_id),
            abandoned: !hit.branch.on_active_path,
            at: plain(&hit.at),
            snippet: one_line(&hit.snippet, 240),
        };
        let left = if found.abandoned {
            ", a branch that was left"
        } else {
            ""
        };
        let _infallible = writeln!(
            text,
            "\nentry {} of session {} ({}), branch {}{left}, {}\n{}",
            found.entry_id,
            found.session_id,
            found.session_name,
            found.branch,
            found.at,
            quoted(&found.snippet).trim_end()
        );
        hits.push(found);
    }
    say_next(&mut text, page.next_cursor.as_deref());
    let data = SearchHistory {
        hits,
        total: page.totals.entries,
        next_cursor: page.next_cursor,
    };
    Ok(Answer { text, data })
}

#[derive(Serialize, JsonSchema)]
#[schemars(transform = portable)]
#[serde(rename_all = "camelCase")]
pub struct SessionLine {
    pub session_id: String,
    /// The name, else the first message.
    pub title: String,
    pub cwd: String,
    pub modified: String,
    pub messages: u64,
    /// Whether it is the session that a call without `session` is about.
    pub own: bool,
}

#[derive(Serialize, JsonSchema)]
#[schemars(transform = portable)]
#[serde(rename_all = "camelCase")]
pub struct SessionList {
    pub sessions: Vec<SessionLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

pub async fn list_sessions(
    history: &History,
    query: Option<String>,
    limit: u64,
    cursor: Option<String>,
) -> Result<Answer<SessionList>> {
    let own = history.own_session().await.unwrap_or_default();
    let (rows, next_cursor) = history.sessions(query, limit.clamp(1, 200), cursor).await?;
    let mut text = format!("{HEADING}\n");
    let mut sessions = Vec::new();
    for row in rows {
        let title = row.name.unwrap_or(row.first_message);
        let line = SessionLine {
            own: row.session_id == own,
            session_id: plain(&row.session_id),
            title: one_line(&title, MAX_LINE),
            cwd: one_line(&row.cwd, MAX_LINE),
            modified: plain(&row.modified),
            messages: row.message_count,
        };
        let mark = if line.own { " (this session)" } else { "" };
        let _infallible = writeln!(
            text,
            "\nsession {}{mark}, {}, {} messages, {}\n{}",
            line.session_id,
            line.modified,
            line.messages,
            line.cwd,
            quoted(&line.title).trim_end()
        );
        sessions.push(line);
    }
    say_next(&mut text, next_cursor.as_deref());
    let data = SessionList {
        sessions,
        next_cursor,
    };
    Ok(Answer { text, data })
}

#[derive(Serialize, JsonSchema)]
#[schemars(transform = portable)]
#[serde(rename_all = "camelCase")]
pub struct BranchLine {
    /// The last entry of the branch.
    pub tip: String,
    /// The entry at which it leaves the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fork: Option<String>,
    /// Whether the conversation goes on here.
    pub active: bool,
    /// Messages after the fork.
    pub messages: u64,
    pub last_activity: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The last message.
    pub preview: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(transform = portable)]
#[serde(rename_all = "camelCase")]
pub struct BranchList {
    pub session_id: String,
    pub branches: Vec<BranchLine>,
    /// Branches that this answer has no room for.
    pub left_out: usize,
}

pub async fn list_branches(history: &History, session: Option<&str>) -> Result<Answer<BranchList>> {
    let open = history.open(session).await?;
    let branches = open.client.list_branches().await?.branches;
    let mut text = open.heading();
    let (mut lines, mut room) = (Vec::new(), budget(Some(MAX_TOKENS)));
    let all = branches.len();
    for branch in branches.into_iter().rev() {
        let line = BranchLine {
            tip: plain(&branch.tip_id),
            fork: branch.fork_id.as_deref().map(plain),
            active: branch.is_active,
            messages: branch.message_count,
            last_activity: plain(&branch.last_activity),
            label: branch
                .label
                .as_deref()
                .map(|label| one_line(label, MAX_LINE)),
            preview: one_line(&branch.preview, MAX_LINE),
        };
        let state = if line.active { "active" } else { "left" };
        let label = line.label.as_ref().map(|label| format!(" [{label}]"));
        let said = format!(
            "\nbranch {}{}, {state}, {} messages, {}, leaves the others at {}\n{}",
            line.tip,
            label.unwrap_or_default(),
            line.messages,
            line.last_activity,
            line.fork.as_deref().unwrap_or("its root"),
            quoted(&line.preview)
        );
        let Some(left) = room.checked_sub(said.len()) else {
            break;
        };
        room = left;
        text.push_str(&said);
        lines.push(line);
    }
    let data = BranchList {
        session_id: open.id.clone(),
        left_out: all - lines.len(),
        branches: lines,
    };
    open.close().await?;
    Ok(Answer { text, data })
}

#[derive(Serialize, JsonSchema)]
#[schemars(transform = portable)]
#[serde(rename_all = "camelCase")]
pub struct PassageLine {
    pub entry_id: String,
    pub role: String,
    pub at: String,
    pub text: String,
    /// Bytes of the text that are left out; `read_entry` has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_left_out: Option<usize>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(transform = portable)]
#[serde(rename_all = "camelCase")]
pub struct BranchText {
    pub session_id: String,
    pub passages: Vec<PassageLine>,
    /// The `from` of the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_from: Option<String>,
}

/// The passages of entries, as far as there is room, and the id of the first entry without room.
struct Reading {
    text: String,
    passages: Vec<PassageLine>,
    room: usize,
}

impl Reading {
    fn new(text: String, room: usize) -> Reading {
        Reading {
            text,
            passages: Vec::new(),
            room,
        }
    }

    /// False if there is no room. The first passage always has some.
    fn add(&mut self, entry_id: &str, at: &str, passage: &Passage) -> bool {
        let (shown, left_out) = cut(&passage.text, MAX_PASSAGE.min(self.room.max(400)));
        let quotation = quoted(shown);
        if quotation.len() > self.room && !self.passages.is_empty() {
            return false;
        }
        self.room = self.room.saturating_sub(quotation.len() + 60);
        let (id, at) = (plain(entry_id), plain(at));
        let _infallible = write!(
            self.text,
            "\nentry {id}, {}, {at}\n{quotation}",
            passage.role
        );
        if left_out > 0 {
            let _infallible = writeln!(self.text, "({left_out} bytes more: read_entry {id})");
        }
        self.passages.push(PassageLine {
            entry_id: id,
            role: passage.role.clone(),
            at,
            text: shown.to_owned(),
            bytes_left_out: (left_out > 0).then_some(left_out),
        });
        true
    }
}

pub async fn read_branch(
    history: &History,
    session: Option<&str>,
    tip: &str,
    from: Option<&str>,
    max_tokens: Option<u64>,
) -> Result<Answer<BranchText>> {
    let open = history.open(session).await?;
    let path = open.path(tip).await?;
    let first = match from {
        Some(from) => path
            .iter()
            .position(|entry| entry.id() == from)
            .ok_or_else(|| {
                Failure(format!(
                    "entry {from} is not on the branch that ends at {tip}"
                ))
            })?,
        None => 0,
    };
    let mut reading = Reading::new(open.heading(), budget(max_tokens));
    let mut next_from = None;
    for entry in path.iter().skip(first) {
        if let Some(passage) = Passage::of(entry)
            && !reading.add(entry.id(), entry.timestamp(), &passage)
        {
            next_from = Some(entry.id().to_owned());
            break;
        }
    }
    if let Some(next) = &next_from {
        let _infallible = writeln!(reading.text, "\nMore: read_branch with from: {next}");
    }
    let data = BranchText {
        session_id: open.id.clone(),
        passages: reading.passages,
        next_from,
    };
    open.close().await?;
    Ok(Answer {
        text: reading.text,
        data,
    })
}

#[derive(Serialize, JsonSchema)]
#[schemars(transform = portable)]
#[serde(rename_all = "camelCase")]
pub struct EntryText {
    pub entry_id: String,
    pub r#type: String,
    pub role: String,
    pub at: String,
    pub text: String,
    /// The `cursor` of the next page: a byte of the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<u64>,
}

pub async fn read_entry(
    history: &History,
    session: Option<&str>,
    entry_id: &str,
    cursor: u64,
) -> Result<Answer<EntryText>> {
    let open = history.open(session).await?;
    let entry = open.client.get_entry(entry_id).await?.entry;
    let (role, whole) = match Passage::of(&entry) {
        Some(passage) => (passage.role, passage.text),
        None => (plain(entry.r#type()), plain(entry.json().get())),
    };
    let start = usize::try_from(cursor)
        .unwrap_or(usize::MAX)
        .min(whole.len());
    let rest = whole.get(boundary(&whole, start)..).unwrap_or_default();
    let (shown, left_out) = cut(rest, budget(Some(MAX_TOKENS)));
    let next_cursor = (left_out > 0).then(|| (whole.len() - left_out) as u64);
    let (id, at) = (plain(entry.id()), plain(entry.timestamp()));
    let mut text = open.heading();
    let _infallible = write!(text, "\nentry {id}, {role}, {at}\n{}", quoted(shown));
    say_next(&mut text, next_cursor.map(|at| at.to_string()).as_deref());
    let data = EntryText {
        entry_id: id,
        r#type: plain(entry.r#type()),
        role,
        at,
        text: shown.to_owned(),
        next_cursor,
    };
    open.close().await?;
    Ok(Answer { text, data })
}

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
    pub files: Map<String, Value>,
    /// Its messages, tokens, cost and time.
    pub stats: Map<String, Value>,
    pub passages: Vec<PassageLine>,
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
    files: Map<String, Value>,
    stats: Map<String, Value>,
}

pub async fn compare_branches(
    history: &History,
    session: Option<&str>,
    (a, b): (&str, &str),
) -> Result<Answer<Comparison>> {
    let open = history.open(session).await?;
    let params = json!({ "sessionId": open.id, "a": a, "b": b });
    let compared: DaemonComparison = open.client.call("compare_branches", params).await?;
    let ancestor = compared.ancestor_id.as_deref().map(plain);
    let mut text = open.heading();
    let _infallible = writeln!(
        text,
        "\nCommon ancestor: {}",
        ancestor.as_deref().unwrap_or("none")
    );
    let a = side(&open, a, compared.a, &mut text).await?;
    let b = side(&open, b, compared.b, &mut text).await?;
    open.close().await?;
    let data = Comparison { ancestor, a, b };
    Ok(Answer { text, data })
}

async fn side(
    open: &OpenSession<'_>,
    tip: &str,
    side: DaemonSide,
    text: &mut String,
) -> Result<Side> {
    let entries = side.entry_ids.len();
    let heading = format!(
        "\nBranch {}: {entries} entries after the ancestor\n",
        plain(tip)
    );
    let mut reading = Reading::new(heading, budget(Some(DEFAULT_TOKENS / 2)));
    for id in &side.entry_ids {
        let entry = open.client.get_entry(id).await?.entry;
        if let Some(passage) = Passage::of(&entry)
            && !reading.add(id, entry.timestamp(), &passage)
        {
            let _infallible = writeln!(
                reading.text,
                "\nMore: read_branch with tip: {} from: {}",
                plain(tip),
                plain(id)
            );
            break;
        }
    }
    text.push_str(&reading.text);
    Ok(Side {
        tip: plain(tip),
        entries,
        files: side.files,
        stats: side.stats,
        passages: reading.passages,
    })
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

/// The summaries, labels and notes about the entries of a branch.
#[derive(Default)]
struct Remarks {
    /// Entry, time and text.
    found: Vec<(String, String, Passage)>,
}

impl Remarks {
    fn look(&mut self, entry: &treelined_client::Entry, branch: &HashSet<&str>) {
        let (role, text) = match entry.body() {
            Ok(EntryBody::BranchSummary(body)) if branch.contains(body.from_id.as_str()) => {
                ("summary written when it was left".to_owned(), body.summary)
            }
            Ok(EntryBody::Label(body)) if branch.contains(body.target_id.as_str()) => {
                let label = body.label.unwrap_or_default();
                (format!("label of {}", plain(&body.target_id)), label)
            }
            Ok(EntryBody::Custom(body)) if body.custom_type == Note::TYPE => {
                match body.data.as_ref().and_then(Note::parse) {
                    Some(note) if branch.contains(note.target_id.as_str()) => {
                        let outcome = one_line(&note.outcome, MAX_LINE);
                        let role = format!("note about {}: {outcome}", plain(&note.target_id));
                        (role, note.reason)
                    }
                    _ => return,
                }
            }
            _ => return,
        };
        if !text.is_empty() {
            let passage = Passage {
                role,
                text: plain(&text),
            };
            let (id, at) = (entry.id().to_owned(), entry.timestamp().to_owned());
            self.found.push((id, at, passage));
        }
    }
}

pub async fn why_left(
    history: &History,
    session: Option<&str>,
    branch: &str,
) -> Result<Answer<WhyLeft>> {
    let open = history.open(session).await?;
    let path = open.path(branch).await?;
    let active: HashSet<String> = match &open.leaf {
        Some(leaf) => ids(open.path(leaf).await?),
        None => HashSet::new(),
    };
    let own: Vec<_> = path
        .iter()
        .filter(|entry| !active.contains(entry.id()))
        .collect();
    let names: HashSet<&str> = own.iter().map(|entry| entry.id()).collect();
    let mut remarks = Remarks::default();
    open.each_entry(|entry| remarks.look(entry, &names)).await?;

    let mut reading = Reading::new(open.heading(), budget(None));
    let _infallible = match names.is_empty() {
        true => writeln!(
            reading.text,
            "\nThis branch was not left: it is on the path to the leaf."
        ),
        false if remarks.found.is_empty() => {
            writeln!(reading.text, "\nNobody said why. The branch ends so:")
        }
        false => writeln!(reading.text, "\nWhat was said about it:"),
    };
    for (id, at, passage) in &remarks.found {
        if !reading.add(id, at, passage) {
            break;
        }
    }
    let said = reading.passages.len();
    let with_text = own
        .iter()
        .filter_map(|entry| Some((*entry, Passage::of(entry)?)));
    let last: Vec<_> = with_text.collect();
    for (entry, passage) in last.iter().skip(last.len().saturating_sub(LAST_PASSAGES)) {
        if !reading.add(entry.id(), entry.timestamp(), passage) {
            break;
        }
    }
    let end = reading.passages.split_off(said);
    let data = WhyLeft {
        branch: plain(branch),
        active: names.is_empty(),
        reasons: reading.passages,
        end,
    };
    let text = reading.text;
    open.close().await?;
    Ok(Answer { text, data })
}

fn ids(path: Vec<treelined_client::Entry>) -> HashSet<String> {
    path.iter().map(|entry| entry.id().to_owned()).collect()
}

fn say_next(text: &mut String, cursor: Option<&str>) {
    if let Some(cursor) = cursor {
        let _infallible = writeln!(text, "\nMore: the same call with cursor: {cursor}");
    }
}

impl OpenSession<'_> {
    fn heading(&self) -> String {
        let name = one_line(&self.name, MAX_LINE);
        match name.is_empty() {
            true => format!("{HEADING}\nSession {}\n", plain(&self.id)),
            false => format!("{HEADING}\nSession {}: {name}\n", plain(&self.id)),
        }
    }
}
