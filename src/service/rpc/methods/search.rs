//! `search` (protocol.md §3.16): params, cursors and pages. [`treelined_find`] does the search itself.

use super::search_hits::{fitting, wire_hit, wire_totals};
use super::team_search;
use super::times::time;
use crate::access;
use crate::rpc::arrival::Arrival;
use crate::rpc::caller::Caller;
use crate::rpc::handler::Remainder;
use crate::rpc::reply::page_bytes;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use treelined_core::error::{Error, Kind, Result};
use treelined_core::id::Source;
use treelined_core::name;
use treelined_core::search::ask::Question;
use treelined_core::search::{
    BranchFilter, Fault, FieldKind, Filters, Mode, Query, ShownText, Written, complete,
};
use treelined_core::team::TeamView;
use treelined_core::timestamp::Millis;
use treelined_files::blocking::blocking;
use treelined_files::cancel::Cancel;
use treelined_files::clock::SystemSource;
use treelined_files::os::heap;
use treelined_find::{
    self, AskRequest, AskState, DirectoryTest, EntryFilter, FieldSet, Hit, IndexSettings, Key,
    NearWords, Phrases, Ranking, RankingPage, SearchOutcome, SearchRequest, SearchWatch,
    SearchedStore, UnreadFile, WantedDirectory,
};
use treelined_pages::redact::Redactor;
use treelined_wire as wire;

/// The number of hits of a page if the client gives no limit.
const USUAL_HITS: u64 = 50;
/// The most hits of a page.
const MOST_HITS: u64 = 1000;
/// The pause between two notifications of progress.
const PROGRESS_PAUSE: Duration = Duration::from_millis(100);
/// A cursor that names a ranking begins with this text. The name of the ranking and the number of its next hit follow.
const RANKED: &str = "ask:";
/// Why a limited connection cannot ask.
const RANKS_ALL: &str =
    "`ask` ranks by the words of all sessions: not for a connection with directories";
/// Why a connection that redacts cannot ask.
const RANKS_SECRETS: &str =
    "`ask` ranks by all words, also those of secrets: not with secrets replaced";
const NO_TEAM: &str = "sessions of the team do not exist for a connection with an access";
/// Why a text cannot be asked.
const NO_WORD: &str = "has no word that can be asked for: a word has letters or digits, and at most 64 bytes; \
                       an exact search finds every text";
const EMPTY: &str = "is empty: write a word, or a filter such as type:note";

pub(in crate::rpc) fn search(
    arrival: &Arrival<'_>,
    params: wire::SearchParams,
) -> Result<Remainder<wire::SearchResult>> {
    let (call, earlier) = (Arc::clone(arrival.call()), arrival.earlier_changes());
    let fits = page_bytes(call.connection.client_frame_bytes());
    // This closure also reads the params, since a directory in a query is looked up on the disk.
    let search = move || {
        let rights = call.connection.rights();
        if let Some(id) = &params.session_id
            && rights.is_limited()
        {
            call.daemon.files.find_file_for(id, rights)?;
        }
        let within = rights.directory_test().map(DirectoryTest);
        let is_question = params.mode == Some(wire::SessionSearchMode::Ask);
        let redacts = rights.redacts() || params.redact == Some(true);
        let redactor = || call.daemon.redaction.redactor();
        let redactor: Option<&dyn Fn() -> _> = redacts.then_some(&redactor);
        let shown = shown_text(is_question, within.is_some(), redactor)?;
        rights.check_param("team", params.team && rights.is_limited(), NO_TEAM)?;
        let is_of_team = params.team;
        let wanted = wanted(params, within, shown)?;
        let connection = &call.connection;
        let token = call.id.as_ref().filter(|_| connection.wants_search_hits());
        let mut on_hit = |hit: &Hit| {
            if let Some(token) = token {
                connection.search_hit(token, wire_hit(hit));
            }
        };
        let searched = SearchedStore {
            store: &call.daemon.files.store,
            index: IndexSettings::of_environment(),
        };
        let mut last: Option<Instant> = None;
        let mut on_progress = |bytes: u64, total: u64| {
            let is_due = last.is_none_or(|last| last.elapsed() >= PROGRESS_PAUSE);
            if let Some(token) = call.id.as_ref().filter(|_| is_due) {
                last = Some(Instant::now());
                connection.progress_toward(token, bytes.min(total), Some(total));
            }
        };
        let mut watch = SearchWatch {
            on_hit: &mut on_hit,
            on_progress: &mut on_progress,
        };
        let AskState { rankings, index } = &call.daemon.ask;
        let cancel = &call.cancel;
        if is_of_team {
            let team = call.daemon.files.team();
            return of_team(team.as_deref(), &wanted, call.daemon.source.now_ms(), fits);
        }
        match &wanted {
            Wanted::Exact(request) => {
                let outcome = treelined_find::search(searched, request, cancel, &mut watch)?;
                freed(outcome.totals.scanned_bytes);
                let unknown = match outcome.totals.entries {
                    0 => treelined_find::unknown_values(searched, index, request, true, cancel)?,
                    _ => Vec::new(),
                };
                result(outcome, &unknown, fits)
            }
            Wanted::Answer(request) => {
                let now = call.daemon.source.now_ms();
                let state = &call.daemon.ask;
                answer(searched, state, (request, now), cancel, &mut watch, fits)
            }
            Wanted::Page { name, from, limit } => {
                let ranking = rankings.get(name).ok_or_else(expired)?;
                let page = *from..from.saturating_add(*limit);
                let page = ranking.page(searched.store, page, cancel)?;
                ranked_page(&ranking, page, name, *from, fits)
            }
        }
    };
    Ok(Remainder::of(async move {
        earlier.await?;
        blocking(search).await
    }))
}

/// The text that the caller sees of each field; `None` for all text. A question is for callers that may know all words.
fn shown_text(
    is_question: bool,
    is_within: bool,
    redactor: Option<&dyn Fn() -> Result<Arc<Redactor>>>,
) -> Result<Option<ShownText>> {
    let redacts = redactor.is_some();
    if is_question && (is_within || redacts) {
        let why = if redacts { RANKS_SECRETS } else { RANKS_ALL };
        return Err(Error::invalid_params("mode", why));
    }
    let redactor = redactor.map(|redactor| redactor()).transpose()?;
    Ok(redactor.as_ref().map(access::shown_text))
}

/// Reports that the memory of a search is free again: about as many bytes as the search has read.
fn freed(scanned: u64) {
    heap::freed(usize::try_from(scanned).unwrap_or(usize::MAX));
}

/// The first page of a new ranking.
fn answer(
    searched: SearchedStore<'_>,
    AskState { rankings, index }: &AskState,
    (request, now): (&Arc<AskRequest>, Millis),
    cancel: &Cancel,
    watch: &mut SearchWatch<'_>,
    fits: usize,
) -> Result<wire::SearchResult> {
    let mut ranking = treelined_find::ask(searched, index, request, now, cancel, watch)?;
    if ranking.totals.entries == 0 {
        let (filters, reads) = (&request.filters, request.read_time.is_none());
        let unknown = treelined_find::unknown_values(searched, index, filters, reads, cancel)?;
        ranking.near_words.extend(unknown);
    }
    let page = ranking.page(searched.store, 0..request.filters.limit, cancel)?;
    freed(ranking.totals.scanned_bytes);
    let ranking = Arc::new(ranking);
    let name = rankings.keep(Arc::clone(&ranking), searched.store.kept());
    ranked_page(&ranking, page, &name, 0, fits)
}

/// The best hits in the sessions of the whole team.
fn of_team(
    team: Option<&dyn TeamView>,
    wanted: &Wanted,
    now: Millis,
    fits: usize,
) -> Result<wire::SearchResult> {
    let Wanted::Answer(request) = wanted else {
        let why = "needs a question (`ask`) with a word, and no cursor";
        return Err(Error::invalid_params("team", why));
    };
    team_search::answer(team, request, now, fits)
}

pub(in crate::rpc) fn complete_query(
    caller: &Caller<'_>,
    params: wire::CompleteQueryParams,
) -> Result<Remainder<wire::CompleteQueryResult>> {
    let call = caller.call();
    let completed = move || {
        let position = params
            .position
            .map(|position| usize::try_from(position).unwrap_or(usize::MAX));
        let completed = complete(&params.query, position.unwrap_or(usize::MAX));
        let items = completed.items.into_iter();
        let mut items: Vec<wire::QueryCompletion> = items
            .map(|item| wire::QueryCompletion {
                text: item.text,
                about: Some(item.about.to_owned()).filter(|about| !about.is_empty()),
            })
            .collect();
        if let Some((filter, typed)) = &completed.unknown {
            let within = call.connection.rights().directory_test();
            let everything = request(
                wire::SearchParams::default(),
                Some(Filters::default()),
                Mode::Words,
                None,
            );
            let request = SearchRequest {
                within: within.map(DirectoryTest),
                ..everything?
            };
            let searched = SearchedStore {
                store: &call.daemon.files.store,
                index: IndexSettings::of_environment(),
            };
            let (index, value) = (&call.daemon.ask.index, (*filter, typed.as_str()));
            let values =
                treelined_find::known_values(searched, index, &request, value, &call.cancel)?;
            items.extend(
                values
                    .into_iter()
                    .map(|text| wire::QueryCompletion { text, about: None }),
            );
        }
        Ok(wire::CompleteQueryResult {
            start: completed.start as u64,
            end: completed.end as u64,
            items,
        })
    };
    Ok(Remainder::of(blocking(completed)))
}

/// The kind of search that a request wants.
enum Wanted {
    /// The matches of a query.
    Exact(Box<SearchRequest>),
    /// The best entries for a question.
    Answer(Arc<AskRequest>),
    /// The hits of a kept ranking, from the hit `from` on.
    Page {
        /// The name of the ranking.
        name: String,
        from: usize,
        limit: usize,
    },
}

fn expired() -> Error {
    Error::new(
        Kind::CursorExpired,
        "the ranking of this cursor is not kept any more, or is of a daemon that has ended: ask again without a cursor",
    )
}

fn wanted(
    mut params: wire::SearchParams,
    within: Option<DirectoryTest>,
    shown: Option<ShownText>,
) -> Result<Wanted> {
    use wire::SessionSearchMode::{Ask, Literal, Regex, Words};
    let mode = match params.mode.unwrap_or_default() {
        Words | Ask => Mode::Words,
        Literal => Mode::Literal,
        Regex => Mode::Regex,
    };
    let is_question = params.mode == Some(Ask);
    // If the cursor names a ranking, only the limit counts, and the other params are ignored.
    if let Some(cursor) = params.cursor.as_deref().filter(|_| is_question)
        && let Some(place) = cursor.strip_prefix(RANKED)
    {
        let (name, from) = place.rsplit_once(':').ok_or_else(not_ranked)?;
        return Ok(Wanted::Page {
            name: name.to_owned(),
            from: from.parse().map_err(|_| not_ranked())?,
            limit: limit(params.limit)?,
        });
    }
    let (said, mode) = match params.syntax.unwrap_or_default() {
        wire::SearchSyntax::Plain => (None, mode),
        wire::SearchSyntax::Filters => {
            let said = filters(&mut params, mode)?;
            if said == Filters::default() && !has_filter(&params) {
                return Err(Error::invalid_params("query", EMPTY));
            }
            let mode = said.mode();
            (Some(said), mode)
        }
    };
    let is_filter_alone = said.as_ref().is_some_and(|said| said.text.is_empty());
    if !is_question || mode != Mode::Words || is_filter_alone {
        let request = SearchRequest {
            within,
            explains: is_question,
            ..request(params, said, mode, shown)?
        };
        return Ok(Wanted::Exact(Box::new(request)));
    }
    let question = Question::parse(&params.query);
    let question = question.ok_or_else(|| Error::invalid_params("query", NO_WORD))?;
    let phrases = Phrases::of(&params.query);
    let phrases = phrases.map_err(|reason| Error::invalid_params("query", reason))?;
    if params.cursor.is_some() {
        return Err(not_ranked());
    }
    let everything = said.unwrap_or_else(Filters::default);
    let said = Filters {
        text: String::new(),
        ..everything
    };
    let read_time = params.read_ms.map(Duration::from_millis);
    let filters = request(params, Some(said), Mode::Words, None)?;
    Ok(Wanted::Answer(Arc::new(AskRequest {
        question,
        phrases,
        filters: Arc::new(filters),
        read_time,
    })))
}

fn not_ranked() -> Error {
    Error::invalid_params("cursor", "is not a cursor of the mode ask")
}

fn limit(given: Option<u64>) -> Result<usize> {
    let limit = given.unwrap_or(USUAL_HITS);
    if limit > MOST_HITS {
        let reason = format!("is more than {MOST_HITS}");
        return Err(Error::invalid_params("limit", reason));
    }
    Ok(usize::try_from(limit).unwrap_or(usize::MAX))
}

/// `shown` is the text that the reader sees of each field.
fn request(
    params: wire::SearchParams,
    said: Option<Filters>,
    mode: Mode,
    shown: Option<ShownText>,
) -> Result<SearchRequest> {
    let query = match &said {
        Some(said) if said.text.is_empty() => Query::any().map(Some),
        _ => Query::parse(&params.query, mode),
    };
    let query = query.map_err(|reason| Error::invalid_params("query", reason))?;
    let query = query.ok_or_else(|| Error::invalid_params("query", EMPTY))?;
    let query = query.for_reader(shown.clone());
    let said = said.unwrap_or_default();
    let without = match (params.without.as_deref(), said.without.as_str()) {
        (None, "") => None,
        (one, other) => Query::parse(&[one.unwrap_or_default(), other].join(" "), Mode::Words)
            .map_err(|reason| Error::invalid_params("without", reason))?,
    };
    let limit = limit(params.limit)?;
    let after = params.cursor.as_deref().map(|cursor| {
        Key::of_cursor(cursor)
            .ok_or_else(|| Error::invalid_params("cursor", "is not a cursor of search"))
    });
    let (since, until) = (
        time("since", params.since.as_deref())?,
        time("until", params.until.as_deref())?,
    );
    let fields = fields(params.fields, said.fields)?;
    let cwd = said
        .cwd
        .map(|cwd| directory(cwd, params.directory.as_deref()));
    let named_directory = cwd.transpose()?;
    let named_entries = EntryFilter {
        tool: said.tool,
        source: said.source,
        role: said.role,
        entry_type: said.entry_type,
    };
    let entries = [
        EntryFilter {
            tool: params.tool,
            source: params.source,
            role: params.role,
            entry_type: params.entry_type,
        },
        named_entries.clone(),
    ];
    let is_filter = |filter: &EntryFilter| *filter != EntryFilter::default();
    Ok(SearchRequest {
        query,
        without: without.map(|without| without.for_reader(shown)),
        fields,
        directory: params.cwd.as_deref().map(wanted_directory),
        named_directory,
        named_entries,
        within: None,
        tag: said.tag,
        git: said.git,
        session: params.session_id,
        entries: entries.into_iter().filter(is_filter).collect(),
        since: since.max(said.since),
        until: [until, said.before].into_iter().flatten().min(),
        branches: branches(params.branches, said.branches)?,
        explains: false,
        archived: params.archived.unwrap_or_default(),
        limit,
        after: after.transpose()?,
    })
}

/// Whether the params limit which entries are found.
fn has_filter(params: &wire::SearchParams) -> bool {
    let names = [
        &params.cwd,
        &params.session_id,
        &params.tool,
        &params.source,
        &params.role,
        &params.entry_type,
        &params.without,
        &params.since,
        &params.until,
    ];
    names.iter().any(|name| name.is_some()) || params.fields.is_some() || params.branches.is_some()
}

/// Reads the query as filters. The text of the filters replaces the query.
fn filters(params: &mut wire::SearchParams, mode: Mode) -> Result<Filters> {
    if mode != Mode::Words {
        let reason = "is said by the query itself with `syntax: \"filters\"`";
        return Err(Error::invalid_params("mode", reason));
    }
    let now = SystemSource.now_ms();
    let filters = match params.mode == Some(wire::SessionSearchMode::Ask) {
        true => Filters::parse_question(&params.query, now),
        false => Filters::parse(&params.query, now),
    };
    let filters = filters.map_err(fault)?;
    params.query.clone_from(&filters.text);
    Ok(filters)
}

fn fault(Fault { position, reason }: Fault) -> Error {
    let message = format!("character {}: {reason}", position + 1);
    Error::invalid_params("query", message.as_str()).with_details(json!({
        "field": "query", "reason": message, "position": position,
    }))
}

/// The fields that are in both lists.
fn fields(given: Option<Vec<FieldKind>>, said: Option<Vec<FieldKind>>) -> Result<FieldSet> {
    if given.as_ref().is_some_and(Vec::is_empty) {
        return Err(Error::invalid_params("in", "names no field"));
    }
    let set = |kinds: Option<Vec<FieldKind>>| kinds.map_or(FieldSet::ALL, FieldSet::of);
    let both = set(given) & set(said);
    if both.is_empty() {
        let reason = "has no field of `in:` in the query; leave out one of them";
        return Err(Error::invalid_params("in", reason));
    }
    Ok(both)
}

/// The branches that both choices allow.
fn branches(given: Option<BranchFilter>, said: Option<BranchFilter>) -> Result<BranchFilter> {
    use BranchFilter::{Abandoned, Active, All};
    Ok(
        match (given.unwrap_or_default(), said.unwrap_or_default()) {
            (one, All) => one,
            (All, other) => other,
            (one, other) if one == other => one,
            (Active, _) | (Abandoned, _) => {
                let reason = "is not the choice of branches in the query; leave out one of them";
                return Err(Error::invalid_params("branches", reason));
            }
        },
    )
}

/// A directory with a test of sessions. Links and `..` are resolved in the current file system.
fn wanted_directory(path: &str) -> WantedDirectory {
    let written = name::directory(path);
    WantedDirectory {
        has: DirectoryTest(access::directory_test(&written)),
        written,
    }
}

/// The directory of a filter, in the form in which sessions are compared with it.
fn directory(cwd: Written, base: Option<&str>) -> Result<WantedDirectory> {
    let Written { value, position } = cwd;
    let refused = |reason: &str| {
        Err(fault(Fault {
            position,
            reason: reason.to_owned(),
        }))
    };
    let path = match (value.strip_prefix('~'), base) {
        (Some(rest), _) if rest.is_empty() || rest.starts_with('/') => match std::env::home_dir() {
            Some(home) => format!("{}{rest}", home.display()),
            None => return refused("`~` has no meaning here: no home directory is known"),
        },
        _ if value.starts_with('/') => value,
        (_, Some(base)) => format!("{base}/{value}"),
        (_, None) => {
            return refused(
                "is a relative directory, and this client has none: write an absolute one, such as cwd:/home/ada",
            );
        }
    };
    if !path.split('/').any(|part| part == "..") {
        return Ok(wanted_directory(&path));
    }
    match std::fs::canonicalize(&path) {
        Ok(real) => Ok(wanted_directory(&real.to_string_lossy())),
        Err(error) => refused(&format!("is a directory that cannot be found: {error}")),
    }
}

/// A page of a ranking from the hit `start` on. It has as many hits as fit into `fits` bytes, but at least one.
fn ranked_page(
    ranking: &Ranking,
    found: RankingPage,
    name: &str,
    start: usize,
    fits: usize,
) -> Result<wire::SearchResult> {
    let page = fitting(found.hits.iter().map(wire_hit), fits)?;
    let end = start + page.len();
    // A limit of 0 asks only for the totals.
    let has_more = (found.has_more || page.len() < found.hits.len()) && !page.is_empty();
    let is_on_page = |id: &str| {
        page.iter()
            .any(|hit: &wire::SearchHit| hit.session_id == id)
    };
    let more = found
        .more
        .iter()
        .filter(|more| is_on_page(&more.session_id));
    Ok(wire::SearchResult {
        more: more
            .map(|more| wire::MoreHits {
                session_id: more.session_id.clone(),
                count: more.count,
            })
            .collect(),
        did_you_mean: wire_near(&ranking.near_words),
        hits: page,
        totals: wire_totals(ranking.totals),
        next_cursor: has_more.then(|| format!("{RANKED}{name}:{end}")),
        partial: unsearched(&found.partial),
    })
}

fn wire_near(words: &[NearWords]) -> Vec<wire::NearWords> {
    let words = words.iter().map(|near| wire::NearWords {
        word: near.word.clone(),
        near: near.near.clone(),
        taken: near.taken.clone(),
    });
    words.collect()
}

fn unsearched(files: &[UnreadFile]) -> Vec<wire::UnsearchedFile> {
    let unsearched = files.iter().map(|file| wire::UnsearchedFile {
        path: file.path.display().to_string(),
        kind: file.kind.name().to_owned(),
    });
    unsearched.collect()
}

/// The result of a search. The page ends before the first hit that does not fit into `fits` bytes, but has at least one
/// hit.
fn result(
    outcome: SearchOutcome,
    unknown: &[NearWords],
    fits: usize,
) -> Result<wire::SearchResult> {
    let SearchOutcome {
        hits,
        totals,
        has_more,
        partial,
    } = outcome;
    let page = fitting(hits.iter().map(|(_, hit)| wire_hit(hit)), fits)?;
    let is_whole = !has_more && page.len() == hits.len();
    let last = page.len().checked_sub(1).and_then(|last| hits.get(last));
    Ok(wire::SearchResult {
        hits: page,
        more: Vec::new(),
        did_you_mean: wire_near(unknown),
        totals: wire_totals(totals),
        next_cursor: last.filter(|_| !is_whole).map(|(key, _)| key.to_cursor()),
        partial: unsearched(&partial),
    })
}
