//! `treelined search` and `treelined ask`: find entries in all sessions.
//!
//! The command starts a daemon and is its client. It prints the hits by session (in a pager if stdout is a terminal),
//! or each hit as a line of JSON.

use super::candidates;
use super::daemon::{ChildDaemon, RawJson};
use super::failure::{ErrorResponse, ShellError, USAGE};
use super::listed::rows;
use super::options::Options;
use super::progress::{self, call_with_progress};
use super::screen::{Screen, Style};
use super::search_hit::Hit;
use super::session_choice;
use super::words::count;
use anyhow::Context;
use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{self, PathBuf};
use std::process::ExitCode;
use treelined_core::terminal;

/// The number of hits on a page of the daemon.
const PAGE: u64 = 1000;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  treelined search build cache                 entries that have both words
  treelined search '\"stale cache\" cwd:.'       a phrase, in the sessions of this directory
  treelined search cache role:user since:2w      what you said about it in the last two weeks
  treelined search type:note                     the notes about branches that were left
  treelined search 'cache -redis tool:bash'      without a word; also in: branch: git: tag: source: before:
  treelined search --regex 'fix(ed|es)?' --in text,summaries --since 2026-11-01

Exit codes: 0 found, 1 nothing found, 2 failed.")]
pub(crate) struct SearchArgs {
    /// The words that an entry must have, in any case, and filters such as role:user; "…" within an argument is a phrase
    #[arg(required = true, add = ArgValueCompleter::new(candidates::filters))]
    words: Vec<String>,
    /// WORDS are a regular expression
    #[arg(long)]
    regex: bool,
    /// WORDS are a text that must occur exactly as it is
    #[arg(long, conflicts_with = "regex")]
    literal: bool,
    /// The fields to search [default: all]
    #[arg(long = "in", value_name = "FIELD", value_enum, value_delimiter = ',')]
    fields: Vec<Field>,
    /// Search only sessions of this directory and of the directories below it
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Search the sessions of all directories (the default)
    #[arg(long, conflicts_with = "cwd")]
    all: bool,
    /// Search only entries since then: 2w, yesterday, or 2026-11-22
    #[arg(long, value_name = "DATE")]
    since: Option<String>,
    /// Show at most this many hits
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u64,
    /// Print a line of JSON for each hit, then one with the totals
    #[arg(long)]
    json: bool,
    /// Whether the words are a question.
    #[arg(skip)]
    is_question: bool,
    /// Whether the sessions of the team are searched.
    #[arg(skip)]
    is_of_team: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  treelined ask why did we drop the build cache
  treelined ask rate limit --cwd .              in the sessions of this directory
  treelined ask 'flaky test branch:left'        on branches that were left
  treelined ask getTree --in text,summaries --since 2026-11-01
  treelined ask --team rate limit               in the sessions of all machines

Exit codes: 0 found, 1 nothing found, 2 failed.")]
pub(crate) struct AskArgs {
    /// The question, of which not every word must occur, and filters such as role:user
    #[arg(required = true, add = ArgValueCompleter::new(candidates::filters))]
    words: Vec<String>,
    /// The fields to search [default: all]
    #[arg(long = "in", value_name = "FIELD", value_enum, value_delimiter = ',')]
    fields: Vec<Field>,
    /// Ask only sessions of this directory and of the directories below it
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Ask the sessions of all directories (the default)
    #[arg(long, conflicts_with = "cwd")]
    all: bool,
    /// Ask the sessions of all machines of the team
    #[arg(long)]
    team: bool,
    /// Search only entries since then: 2w, yesterday, or 2026-11-22
    #[arg(long, value_name = "DATE")]
    since: Option<String>,
    /// Show at most this many hits, up to 200
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: u64,
    /// Print a line of JSON for each hit, then one with the totals
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "camelCase")]
enum Field {
    /// Text of messages
    Text,
    /// Thinking of the model
    Thinking,
    /// Names and arguments of called tools
    ToolCalls,
    /// Results of tools
    ToolResults,
    /// Labels, and names of sessions
    Labels,
    /// Summaries of branches, and compactions
    Summaries,
}

/// A page of `search`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    hits: Vec<RawJson>,
    totals: RawJson,
    #[serde(default)]
    did_you_mean: Vec<NearWords>,
    next_cursor: Option<String>,
    /// For each session, the number of its hits that a ranking leaves out.
    #[serde(default)]
    more: Vec<RawJson>,
    /// Whether a larger limit shows more.
    #[serde(skip)]
    has_more: bool,
    #[serde(default)]
    partial: Vec<SkippedFile>,
    /// For each session, the other sessions that have the same conversation.
    #[serde(skip)]
    conversations: HashMap<String, Vec<String>>,
}

/// A word that occurs in no entry, and similar words that occur.
#[derive(Deserialize, Serialize)]
struct NearWords {
    word: String,
    near: Vec<String>,
    /// The word of `near` whose entries are hits in place of the unknown word.
    #[serde(skip_serializing_if = "Option::is_none")]
    taken: Option<String>,
}

impl NearWords {
    /// Says which word replaces the unknown word, and which other words the user may mean.
    fn note(&self) -> String {
        let taken = self.taken.as_deref();
        let others = self.near.iter().map(String::as_str);
        let others: Vec<&str> = others.filter(|near| Some(*near) != taken).collect();
        let mut note = format!("nothing has {}", terminal::line(&self.word));
        if let Some(taken) = taken {
            note += &format!("; {} counts instead", terminal::line(taken));
        }
        if !others.is_empty() {
            note += &format!("; did you mean {}?", terminal::line(&others.join(", ")));
        }
        note
    }
}

#[derive(Deserialize, Serialize)]
struct SkippedFile {
    path: String,
    kind: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Totals {
    sessions: u64,
    entries: u64,
    /// Whether there may be more hits.
    #[serde(default)]
    at_least: bool,
    #[serde(default)]
    shed_sessions: u64,
    /// The sessions that were not searched completely.
    #[serde(default)]
    unread: u64,
}

pub(super) fn run_ask(options: &Options, ask: &AskArgs) -> anyhow::Result<ExitCode> {
    let search = SearchArgs {
        words: ask.words.clone(),
        regex: false,
        literal: false,
        fields: ask.fields.clone(),
        cwd: ask.cwd.clone(),
        all: ask.all,
        since: ask.since.clone(),
        limit: ask.limit,
        json: ask.json,
        is_question: true,
        is_of_team: ask.team,
    };
    run(options, &search)
}

pub(super) fn run(options: &Options, search: &SearchArgs) -> anyhow::Result<ExitCode> {
    let shown = find(options, search).and_then(|page| {
        match search.json {
            true => print_json(&page)?,
            false => print(options, &page)?,
        }
        Ok(match page.hits.is_empty() {
            true => ExitCode::FAILURE,
            false => ExitCode::SUCCESS,
        })
    });
    match shown {
        Err(error) if !super::failure::is_unread(&error) => {
            // The exit code 1 means that nothing was found, so a failure has another code.
            let mut shown = ShellError::of(&error);
            if let Some(message) = pointed(&error, &search.query()) {
                shown.message = message;
            }
            shown.code = USAGE;
            Ok(shown.report())
        }
        shown => shown,
    }
}

impl SearchArgs {
    fn query(&self) -> String {
        self.words.join(" ")
    }
}

/// The reason why the query is refused, followed by the query with a mark below the fault.
fn pointed(error: &anyhow::Error, query: &str) -> Option<String> {
    let details = error.downcast_ref::<ErrorResponse>()?.details()?;
    let position = usize::try_from(details.get("position")?.as_u64()?).ok()?;
    let reason = details.get("reason")?.as_str()?;
    let before: String = query.chars().take(position).collect();
    let (query, before) = (terminal::line(query), terminal::line(&before));
    let columns = terminal::width(&before);
    Some(format!("{reason}\n  {query}\n  {:columns$}^", ""))
}

/// The hits of all pages, up to the limit.
fn find(options: &Options, search: &SearchArgs) -> anyhow::Result<Page> {
    let mut daemon = ChildDaemon::start(options)?;
    if progress::is_wanted() {
        progress::introduce(&mut daemon, "treelined search")?;
    }
    let found = pages(&mut daemon, search);
    let found = found.and_then(|mut page| {
        match page.hits.is_empty() {
            _ if search.json => {}
            true => note_native(&mut daemon, search)?,
            false => {
                let rows = rows(&mut daemon)?.into_iter();
                let known = rows.map(|row| (row.session_id, row.same_conversation));
                page.conversations = known.filter(|(_, others)| !others.is_empty()).collect();
            }
        }
        Ok(page)
    });
    daemon.end()?;
    found
}

/// Adds a note if the word is an id that another tool gave to an imported session, since such ids are not in entries.
fn note_native(daemon: &mut ChildDaemon, search: &SearchArgs) -> anyhow::Result<()> {
    let [word] = search.words.as_slice() else {
        return Ok(());
    };
    if let Ok(row) = session_choice::choose(word, &rows(daemon)?) {
        let id = terminal::line(&row.session_id);
        writeln!(io::stderr(), "a session has this id: treelined tree {id}")?;
    }
    Ok(())
}

fn pages(daemon: &mut ChildDaemon, search: &SearchArgs) -> anyhow::Result<Page> {
    let mut all = page(daemon, search, search.limit.min(PAGE), None)?;
    while let Some(cursor) = &all.next_cursor
        && (all.hits.len() as u64) < search.limit
    {
        let left = search.limit - all.hits.len() as u64;
        let next = page(daemon, search, left.min(PAGE), Some(cursor))?;
        all.hits.extend(next.hits);
        all.next_cursor = next.next_cursor;
        all.more.extend(next.more);
    }
    // A team answers with one page.
    all.has_more = all.next_cursor.is_some() || search.is_of_team;
    Ok(all)
}

fn page(
    daemon: &mut ChildDaemon,
    search: &SearchArgs,
    limit: u64,
    cursor: Option<&str>,
) -> anyhow::Result<Page> {
    let cwd = search.cwd.as_ref().map(path::absolute).transpose();
    let cwd = cwd.context("find the directory")?;
    let here = std::env::current_dir().context("find the directory")?;
    let is_plain = search.regex || search.literal;
    let fields = search.fields.iter().filter_map(Field::to_possible_value);
    let fields: Vec<String> = fields.map(|field| field.get_name().to_owned()).collect();
    let params = json!({
        "query": search.query(),
        "syntax": if is_plain { "plain" } else { "filters" },
        "directory": here.display().to_string(),
        "mode": match (search.regex, search.literal) {
            (true, _) => "regex",
            (_, true) => "literal",
            _ if search.is_question => "ask",
            _ => "words",
        },
        "in": (!fields.is_empty()).then_some(fields),
        "cwd": cwd.map(|cwd| cwd.display().to_string()),
        "since": search.since,
        "limit": limit,
        "cursor": cursor,
        "team": search.is_of_team,
    });
    let answered =
        call_with_progress(daemon, "search", &params.to_string(), progress::is_wanted())?;
    serde_json::from_str(answered.get()).context("read the answer to search")
}

/// The last line of the JSON output: everything except the hits.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rest<'a> {
    totals: &'a RawJson,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    did_you_mean: &'a [NearWords],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    more: &'a [RawJson],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    partial: &'a [SkippedFile],
}

fn print_json(page: &Page) -> anyhow::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for hit in &page.hits {
        writeln!(out, "{}", terminal::json(hit.get()))?;
    }
    let rest = Rest {
        totals: &page.totals,
        did_you_mean: &page.did_you_mean,
        more: &page.more,
        partial: &page.partial,
    };
    writeln!(out, "{}", terminal::json(&serde_json::to_string(&rest)?))?;
    out.flush()?;
    Ok(())
}

/// Prints the hits by session. The sessions are in the order of their first hits.
fn print(options: &Options, page: &Page) -> anyhow::Result<()> {
    let mut sessions: Vec<Vec<Hit>> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for hit in &page.hits {
        let hit: Hit = serde_json::from_str(hit.get()).context("read a hit")?;
        let place = *places
            .entry(hit.session_id.clone())
            .or_insert(sessions.len());
        match sessions.get_mut(place) {
            Some(session) => session.push(hit),
            None => sessions.push(vec![hit]),
        }
    }
    let mut screen = Screen::paged(options);
    let mut out = String::new();
    for session in &sessions {
        push_session(&mut out, &screen, session, &page.conversations);
    }
    for near in &page.did_you_mean {
        out.push_str(&screen.style(Style::Dim, &near.note()));
        out.push('\n');
    }
    out.push_str(&screen.style(Style::Dim, &footer(page)?));
    out.push('\n');
    for SkippedFile { path, kind } in &page.partial {
        let note = format!("not searched: {} ({kind})", terminal::line(path));
        out.push_str(&screen.style(Style::Dim, &note));
        out.push('\n');
    }
    screen.write_all(out.as_bytes())?;
    screen.finish()?;
    Ok(())
}

fn push_session(
    out: &mut String,
    screen: &Screen,
    hits: &[Hit],
    conversations: &HashMap<String, Vec<String>>,
) {
    let Some(first) = hits.first() else {
        return;
    };
    let mut id = terminal::line(&first.session_id).into_owned();
    if let Some(others) = conversations.get(&first.session_id) {
        id += &session_choice::others(others, usize::MAX);
    }
    let name = match first.session_name.as_str() {
        // No machine has described the session in the list of the team yet.
        "" if first.author.is_some() => "(no title)",
        "" => "(no messages)",
        name => name,
    };
    let name = terminal::line(name);
    let room = screen.columns.saturating_sub(terminal::width(&id) + 2);
    let name = terminal::cut(&name, room, "…");
    let id = screen.style(Style::Dim, &id);
    out.push_str(&format!("{}  {id}\n", screen.style(Style::Bold, &name)));
    for hit in hits {
        hit.push(out, screen);
    }
    out.push('\n');
}

fn footer(page: &Page) -> anyhow::Result<String> {
    let totals: Totals = serde_json::from_str(page.totals.get()).context("read the totals")?;
    let unread = match totals.unread {
        0 => String::new(),
        unread => format!(
            "; {} not searched yet",
            count(unread, "session", "sessions")
        ),
    };
    let left_out = format!("{unread}{}", shed(totals.shed_sessions));
    if totals.entries == 0 {
        return Ok(format!("nothing found{left_out}"));
    }
    let hits = count(totals.entries, "hit", "hits");
    let sessions = count(totals.sessions, "session", "sessions");
    let least = if totals.at_least { "at least " } else { "" };
    let shown = page.hits.len() as u64;
    let rest = match shown < totals.entries {
        false => String::new(),
        true if page.has_more => format!("; {shown} shown, --limit N shows more"),
        // A ranking has only the best entries of each session.
        true => {
            format!("; {shown} shown, the best of each session, treelined search shows all")
        }
    };
    Ok(format!("{least}{hits} in {sessions}{rest}{left_out}"))
}

/// The end of the footer, if sessions have shed branches.
fn shed(sessions: u64) -> String {
    if sessions == 0 {
        return String::new();
    }
    let sessions = count(sessions, "session", "sessions");
    format!("\nnot searched: the shed branches of {sessions}; treelined unshed brings them back")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_fields_are_those_of_the_protocol() {
        crate::cli::options::assert_values::<super::Field>("SearchField");
    }
}
