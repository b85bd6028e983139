//! Converts the types of `treelined-client` to those of the model, and sanitizes every text.

use super::people;
use crate::marked::MarkedText;
use crate::message::WorkProgress;
use crate::message::{BornSession, Kind, Row, RowStyle};
use crate::message::{
    Draft, End, Event, Filter, Hit, HitPage, Navigation, NearWord, NewerBranch, Session,
    SessionRow, TreePage,
};
use crate::{text, time};
use serde_json::Value;
use treelined_client::{
    self as client, Disconnected, Entry, FlatTree, Notification, OpenSessionResult, Origin,
    RequestId, SearchField, SearchMode, TreeFilter, TreeNode,
};

/// How many of the last lines of its log are shown for a daemon that has ended.
const LAST_WORDS: usize = 4;

pub fn filter(filter: Filter) -> TreeFilter {
    match filter {
        Filter::Default => TreeFilter::Default,
        Filter::NoTools => TreeFilter::NoTools,
        Filter::UserOnly => TreeFilter::UserOnly,
        Filter::Labeled => TreeFilter::LabeledOnly,
        Filter::All => TreeFilter::All,
    }
}

/// Parses the entry. An entry that is nested too deeply to be parsed becomes its text.
pub fn value(entry: &Entry) -> Value {
    let text = || Value::from(entry.json().get());
    entry.json().parse().unwrap_or_else(|_| text())
}

pub fn session(opened: OpenSessionResult) -> Session {
    let session = opened.session;
    let newer = opened.diagnostics.iter().find_map(newer_branch);
    let of_stream = |found: &&client::Diagnostic| found.kind == client::DiagnosticKind::LogRewound;
    let rewound = opened.diagnostics.iter().filter(of_stream).count();
    Session {
        id: session.session_id,
        path: session.path,
        cwd: text::line(&session.cwd),
        name: session.name.as_deref().map(text::line),
        first_message: text::line(&session.first_message),
        read_only: session.read_only,
        damaged: opened.diagnostics.len() - usize::from(newer.is_some()) - rewound,
        rewound: rewound > 0,
        newer,
        open_on: Vec::new(),
        queued: session.queued.unwrap_or_default(),
    }
}

fn newer_branch(found: &client::Diagnostic) -> Option<NewerBranch> {
    Some(NewerBranch {
        tip: found.newest_tip_id.clone()?,
        turns: found.newer_turns.unwrap_or_default(),
    })
}

pub fn session_row(row: client::SessionRow) -> SessionRow {
    SessionRow {
        marks: marks(&row),
        id: row.session_id,
        path: row.path,
        cwd: text::line(&row.cwd),
        name: row.name.as_deref().map(text::line),
        modified: time::seconds(&row.modified),
        messages: row.message_count,
        first_message: text::line(&row.first_message),
        source: row.source.as_deref().map(text::line),
        parent: row.parent_session,
        damage: row.diagnostic.map(|found| text::line(&found.message)),
        host: None,
        open_on: row.log.map(|log| hosts(&log.open_on)).unwrap_or_default(),
        queued: row.queued.unwrap_or_default(),
    }
}

/// Returns the marks of a session: its tags, whether it is pinned or archived, and its git branch.
fn marks(row: &client::SessionRow) -> Vec<String> {
    let tags = row.tags.iter().flatten();
    let mut marks: Vec<String> = tags.map(|tag| format!("#{}", text::line(tag))).collect();
    let set = [(row.pinned, "pinned"), (row.archived, "archived")];
    let set = set.into_iter().filter(|(mark, _)| *mark == Some(true));
    marks.extend(set.map(|(_, name)| name.to_owned()));
    let branch = row.git.as_ref().and_then(|git| git.branch.as_deref());
    marks.extend(branch.map(|branch| format!("on {}", text::line(branch))));
    marks
}

/// The row for a session that has no file on this machine.
pub fn team_row(row: client::TeamSessionRow) -> SessionRow {
    SessionRow {
        id: row.session_id,
        path: String::new(),
        cwd: text::line(row.cwd.as_deref().unwrap_or_default()),
        name: row.name.as_deref().map(text::line),
        modified: row.modified.as_deref().map_or(0, time::seconds),
        messages: row.entries.unwrap_or_default(),
        first_message: String::new(),
        source: None,
        parent: None,
        marks: Vec::new(),
        damage: None,
        host: Some(text::line(row.host.as_deref().unwrap_or_default())),
        open_on: hosts(&row.open_on),
        queued: false,
    }
}

/// The names of the machines, each once.
pub fn hosts(machines: &[client::OpenOn]) -> Vec<String> {
    let mut hosts: Vec<String> = machines.iter().map(|by| text::line(&by.host)).collect();
    hosts.sort_unstable();
    hosts.dedup();
    hosts
}

pub fn tree_page(tree: FlatTree, at: Option<usize>) -> TreePage {
    TreePage {
        offset: tree.offset as usize,
        rows: tree.nodes.into_iter().map(row).collect(),
        total: tree.total as usize,
        hidden: tree.hidden as usize,
        archived_branches: tree.archived_branches.unwrap_or_default() as usize,
        shed_branches: tree.shed_branches.unwrap_or_default() as usize,
        revision: tree.revision,
        leaf: tree.leaf_id,
        at,
        others: None,
    }
}

/// Splits the end of a connection into the reason and the last lines of the log.
pub fn end(end: &Disconnected) -> End {
    let status = end
        .status
        .map_or_else(String::new, |status| format!(" ({status})"));
    let words: Vec<String> = text::lines(&end.last_words)
        .filter(|line| !line.is_empty())
        .collect();
    End {
        reason: text::line(&format!("{}{status}", end.reason)),
        last_words: words.into_iter().rev().take(LAST_WORDS).rev().collect(),
    }
}

/// Reads a typed search. A text between slashes is a regular expression.
pub fn typed(query: &str) -> (&str, SearchMode) {
    let inner = (query.strip_prefix('/')).and_then(|rest| rest.strip_suffix('/'));
    match inner.filter(|inner| !inner.is_empty()) {
        Some(pattern) => (pattern, SearchMode::Regex),
        None => (query, SearchMode::Words),
    }
}

/// A text with these ranges marked. The ranges are in Unicode code points.
fn marked(snippet: &str, ranges: &[Vec<u64>]) -> MarkedText {
    let ranges = ranges.iter().filter_map(|range| match range[..] {
        [start, end] => Some((start as usize, end as usize)),
        _ => None,
    });
    MarkedText::new(snippet, ranges)
}

pub fn hit(hit: client::SearchHit) -> Hit {
    Hit {
        session_name: text::line(&hit.session_name),
        session_id: hit.session_id,
        entry_id: hit.entry_id,
        field: match hit.field {
            SearchField::Text => "text",
            SearchField::Thinking => "thinking",
            SearchField::ToolCalls => "call",
            SearchField::ToolResults => "result",
            SearchField::Labels => "label",
            SearchField::Summaries => "summary",
            _ => "",
        },
        at: time::seconds(&hit.at),
        excerpt: marked(&hit.snippet, &hit.ranges),
        on_active_path: hit.branch.on_active_path,
        left_at: hit.branch.left_at.as_deref().map(text::line),
        reason: hit.branch.reason.map(|reason| text::line(&reason.text)),
        instead: hit.branch.instead.map(|said| text::line(&said.text)),
        left_here: hit.branch.left_in_turn.map(|left| left_here(&left)),
    }
}

/// The newest of the branches that were left in the turn of a hit. If there are several such branches, the text begins
/// with their number.
fn left_here(left: &client::LeftInTurn) -> String {
    let newest = left.newest.first();
    let reason = newest.and_then(|one| one.reason.as_ref().map(|reason| &reason.text));
    let end = newest.and_then(|one| one.end.as_ref().map(|end| &end.text));
    let said = text::line(reason.or(end).map_or("", String::as_str));
    match left.count {
        1 => said,
        count => format!("{count} branches, {said}"),
    }
}

pub fn hit_page(found: client::SearchResult) -> HitPage {
    HitPage {
        total: found.totals.entries,
        sessions: found.totals.sessions,
        at_least: found.totals.at_least == Some(true),
        unread: found.partial.map_or(0, |files| files.len()),
        more: found
            .more
            .into_iter()
            .flatten()
            .map(|more| (more.session_id, more.count))
            .collect(),
        near: found
            .did_you_mean
            .into_iter()
            .flatten()
            .flat_map(near_words)
            .collect(),
        next: found.next_cursor,
        hits: found.hits.into_iter().map(hit).collect(),
    }
}

/// The choices for a word that no entry has. If there are none, the word is returned alone.
fn near_words(one: client::NearWords) -> Vec<NearWord> {
    let (word, taken) = (text::line(&one.word), one.taken);
    let choice = |near: Option<String>| NearWord {
        word: word.clone(),
        is_taken: near.is_some() && taken == near,
        near: near.map(|near| text::line(&near)),
    };
    match one.near.is_empty() {
        true => vec![choice(None)],
        false => one
            .near
            .into_iter()
            .map(|near| choice(Some(near)))
            .collect(),
    }
}

fn row_style(style: client::RowStyle) -> Option<RowStyle> {
    Some(match style {
        client::RowStyle::Accent => RowStyle::Accent,
        client::RowStyle::Success => RowStyle::Success,
        client::RowStyle::Warning => RowStyle::Warning,
        client::RowStyle::Error => RowStyle::Error,
        client::RowStyle::Dim => RowStyle::Dim,
        _ => return None,
    })
}

/// Converts a row of the tree.
pub fn row(node: TreeNode) -> Row {
    let opened = node.opened.map(|by| (by.expand, by.each));
    let (expand, each) = opened.unwrap_or_default();
    let (expand, each) = (expand.unwrap_or_default(), each.unwrap_or_default());
    Row {
        kind: kind(&node.r#type, node.role.as_deref()),
        id: node.id,
        parent: node.parent_id,
        preview: text::line(&node.preview),
        found: node
            .r#match
            .map(|found| marked(&found.snippet, &found.ranges)),
        label: node.label.as_deref().map(text::line),
        label_time: node.label_timestamp.as_deref().map(time::local),
        time: time::local_short(&node.timestamp),
        children: node.child_count,
        on_active_path: node.on_active_path,
        is_leaf: node.is_leaf,
        is_branch_point: node.is_branch_point,
        is_archived: node.archived.unwrap_or_default(),
        tokens: node.tokens,
        tool: node.tool_name.as_deref().map(text::line),
        is_call: node.tool_call.is_some(),
        is_error: node.is_error.unwrap_or_default(),
        prefix: node.prefix.as_deref().map(text::line).unwrap_or_default(),
        icon: node.icon.as_deref().map(text::line),
        style: node.style.and_then(row_style),
        indent: node.indent,
        branches: node.folded.map_or(0, |folded| folded.branches),
        branch_name: node.branch_name.as_deref().map(text::line),
        sessions: node
            .sessions
            .into_iter()
            .flatten()
            .map(|born| BornSession {
                kind: text::line(born.kind.as_str()),
                id: born.session_id,
            })
            .collect(),
        expanded_by: expand,
        listed_by: each,
        flags: node
            .flags
            .iter()
            .flatten()
            .map(|flag| text::line(flag))
            .collect(),
    }
}

/// Returns the kind of an entry according to its type and role.
pub fn kind(entry_type: &str, role: Option<&str>) -> Kind {
    match (entry_type, role) {
        ("message", Some("user")) => Kind::User,
        ("message", Some("assistant")) => Kind::Assistant,
        ("message", Some("toolResult")) => Kind::Tool,
        ("message", Some("bashExecution")) => Kind::Bash,
        ("compaction", _) | ("message", Some("compactionSummary")) => Kind::Compaction,
        ("branch_summary", _) | ("message", Some("branchSummary")) => Kind::Summary,
        ("custom_message", _) => Kind::Plugin,
        ("message", Some(role)) => Kind::Other(text::line(role)),
        ("thinking_level_change", _) => Kind::Other("thinking".to_owned()),
        ("model_change", _) => Kind::Other("model".to_owned()),
        ("mode_change", _) => Kind::Other("mode".to_owned()),
        ("session_info", _) => Kind::Other("name".to_owned()),
        ("context_edit", _) => Kind::Other("edit".to_owned()),
        (other, _) => Kind::Other(text::line(other)),
    }
}

pub fn navigation(ended: client::Navigation) -> Navigation {
    let images = ended.editor_images.into_iter().flatten();
    let images = images.filter_map(|image| image.parse().ok());
    Navigation {
        cancelled: ended.cancelled,
        reason: ended.reason.map(|reason| text::line(reason.as_str())),
        by: ended.by.as_deref().map(text::line),
        message: ended.message.as_deref().map(text::line),
        draft: ended.editor_text.map(|text| Draft {
            text,
            images: images.collect(),
            expected_leaf: None,
        }),
        new_leaf: ended.new_leaf_id,
        summarized: ended.summary_entry.is_some(),
    }
}

/// Converts a notification; `None` if the model does not use it.
pub fn event(notification: &Notification) -> Option<Event> {
    Some(match notification {
        Notification::EntriesAppended(params) => Event::Appended {
            by_others: params.origin == Origin::Other,
            count: params.entry_ids.len(),
            others_at: params
                .file_leaf_id
                .clone()
                .filter(|id| Some(id) != params.leaf_id.as_ref()),
            first_message: params.first_message.as_deref().map(text::line),
        },
        Notification::SessionTree(_)
        | Notification::SessionCompact(_)
        | Notification::BranchesChanged(_)
        | Notification::SessionReordered(_) => Event::Moved,
        Notification::SessionInfoChanged(params) => {
            Event::Named(params.name.as_deref().map(text::line))
        }
        Notification::SessionLogChanged(params) => Event::Queued {
            queued: params.queued,
            lost: params.lost.as_ref().map_or(0, Vec::len),
        },
        Notification::SessionsChanged(_) => Event::SessionsChanged,
        Notification::SessionClosed(_) => Event::Closed,
        Notification::SummaryDelta(params) => Event::Delta {
            navigation_id: params.navigation_id.clone(),
            text: params.delta.clone(),
        },
        Notification::Progress(params) => match (&params.token, &params.message) {
            (RequestId::Text(token), Some(message)) => Event::Progress {
                navigation_id: token.clone(),
                message: text::line(message),
            },
            (RequestId::Number(_), _) => Event::Worked(WorkProgress {
                done: params.progress as u64,
                total: params.total.map(|total| total as u64),
            }),
            _ => return None,
        },
        Notification::UserAsked(asked) => people::question(asked.clone())?,
        Notification::UserNotified(notified) => people::notice(notified),
        Notification::EventResolved(resolved) => people::resolved(resolved)?,
        Notification::EventsLost(_) | Notification::Missed { .. } => Event::Missed,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The terminal once had its own words: `[branch summary]`, `▪` and `[model change: …]`.
    #[test]
    fn the_words_of_rows_are_those_of_all_clients() {
        let contract = include_str!("../../../../schema/protocol.md");
        let (_, table) = contract.split_once("### 6.9 ").unwrap();
        let (table, _) = table.split_once("\n## ").unwrap();
        let mut checked = 0;
        for row in table.lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let bare = |cell: &str| cell.trim_matches('`').to_owned();
            let (kinds, word) = (cells[1], bare(cells[2]));
            for name in kinds.split(", ").map(bare) {
                let kind = match name.contains('_') || name == "compaction" {
                    true => kind(&name, None),
                    false => kind("message", Some(&name)),
                };
                assert_eq!(kind.word(), word, "{name}");
                checked += 1;
            }
        }
        assert!(checked >= 14, "{checked}");
    }

    /// The last line of the log was once shown after the reason, as if it were the cause.
    #[test]
    fn the_end_of_the_log_is_separate_from_the_reason() {
        // Only a daemon that ends produces this type.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let script = "for at in 1 2 3 4 5 6; do printf 'WARN \\033[%d\\n' $at >&2; done; exit 3";
        let spawned = async {
            let builder = client::Client::builder().program("sh");
            builder.args(["-c", script]).spawn().await
        };
        let error = runtime.block_on(spawned).err().unwrap();
        let client::Error::Disconnected(ended) = &error else {
            panic!("{error}");
        };
        let told = end(ended);
        assert!(!told.reason.contains("WARN"), "{told:?}");
        assert!(told.reason.contains("exit status: 3"), "{told:?}");
        assert_eq!(
            told.last_words,
            ["WARN ␛[3", "WARN ␛[4", "WARN ␛[5", "WARN ␛[6"]
        );
    }
}
