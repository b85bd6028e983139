//! The hits of a search: first the notes, then one hit of each session.

use super::answers::{Facts, answer, budget};
use crate::clean::{Cleaner, is_plain_id};
use crate::finding::Finding;
use crate::history::{Failure, History, Result};
use crate::request::{Query, SearchRequest};
use crate::text::{Note, quoted};
use std::collections::{BTreeMap, HashSet};
use treelined_client::{SearchField, SearchHit};

/// The most characters of a snippet. The daemon sends fewer.
const MAX_SNIPPET: usize = 240;
/// The most characters of a session's name.
const MAX_NAME: usize = 60;
/// The most notes that are shown before other hits.
const FIRST_NOTES: usize = 3;
/// The number of first hits of a question among which notes are looked for.
const WITH_NOTES: usize = 20;
/// The most characters of the reason why a branch was left, and of what was tried instead.
const MAX_SAID: usize = 160;
/// The most pages of the daemon that one answer uses.
const MOST_PAGES: usize = 5;

pub async fn search_history(history: &History, request: SearchRequest) -> Result<String> {
    let limit = usize::try_from(request.limit.clamp(1, 100)).unwrap_or(1);
    let mut finding = match &request.cursor {
        None => begun(history, &request).await?,
        Some(cursor) => {
            let kept = history.findings.lock().await.of(cursor);
            kept.filter(|kept| kept.query == request.query && kept.exact == request.exact)
                .ok_or_else(|| {
                    Failure(
                        "the cursor is not of this search, or is too old; leave it out".to_owned(),
                    )
                })?
        }
    };
    let hits = taken(history, &mut finding, limit).await?;
    let mut cleaner = history.cleaner();
    let snippets = snippets(history, &hits, &mut cleaner).await?;
    let (mut record, mut shown, room) = (String::new(), 0, budget(None));
    let mut hits = hits.into_iter();
    for (hit, snippet) in hits.by_ref().zip(snippets) {
        let said = finding.line(&hit, &snippet, &mut cleaner);
        if record.len() + said.len() > room && shown > 0 {
            finding.put_back(std::iter::once(hit).chain(hits));
            break;
        }
        record += &said;
        shown += 1;
    }
    let mut facts = Facts::default();
    let about = if finding.at_least { "at least " } else { "" };
    facts.add("hits", format!("{about}{}", finding.total));
    facts.add("shown", shown);
    facts.near_words(&finding.near_words);
    if finding.has_more() {
        let cursor = history.findings.lock().await.keep(finding);
        facts.cursor(Some(&cursor));
    }
    Ok(answer(facts, &record, cleaner))
}

/// Begins a search: its first page, with the notes first.
async fn begun(history: &History, request: &SearchRequest) -> Result<Finding> {
    let readable = history.readable().await?;
    let mut finding = Finding {
        query: request.query.clone(),
        exact: request.exact,
        every: request.every,
        conversations: readable.conversations.clone(),
        ..Finding::default()
    };
    let query = finding.as_query();
    let found = history.find(&query, &readable, None).await?;
    (finding.total, finding.at_least) = (found.total, found.at_least);
    (finding.cursor, finding.near_words) = (found.next_cursor, found.near_words);
    if !found.hits.is_empty() {
        let of_notes = Query {
            entry_type: Some(Note::TYPE),
            ..query
        };
        let mut notes = history.find(&of_notes, &readable, None).await?.hits;
        // A note with only one word of a question may be about anything.
        if !request.exact {
            let best = found.hits.iter().take(WITH_NOTES).map(place);
            let best: HashSet<(String, String)> = best.collect();
            notes.retain(|note| best.contains(&place(note)));
        }
        finding.waiting.extend(notes.into_iter().take(FIRST_NOTES));
        finding.notes = finding.waiting.iter().map(place).collect();
    }
    finding.add(found.hits);
    Ok(finding)
}

/// Takes at most `limit` hits to show.
async fn taken(history: &History, finding: &mut Finding, limit: usize) -> Result<Vec<SearchHit>> {
    let mut taken = Vec::new();
    for _page in 0..MOST_PAGES {
        while taken.len() < limit
            && let Some(hit) = finding.next()
        {
            taken.push(hit);
        }
        let Some(cursor) = finding.cursor.clone().filter(|_| taken.len() < limit) else {
            break;
        };
        let readable = history.readable().await?;
        let query = finding.as_query();
        let found = history.find(&query, &readable, Some(cursor)).await?;
        finding.cursor = found.next_cursor;
        finding.at_least |= found.at_least;
        finding.add(found.hits);
    }
    Ok(taken)
}

fn place(hit: &SearchHit) -> (String, String) {
    (hit.session_id.clone(), hit.entry_id.clone())
}

impl Finding {
    /// Adds hits at the end, without the notes that are shown first.
    fn add(&mut self, hits: Vec<SearchHit>) {
        let notes = &self.notes;
        let others = hits.into_iter().filter(|hit| !notes.contains(&place(hit)));
        self.waiting.extend(others);
    }

    /// The next hit to show.
    fn next(&mut self) -> Option<SearchHit> {
        loop {
            let hit = self.waiting.pop_front()?;
            let conversation = self.conversations.of(&hit.session_id);
            let is_first = self.shown.insert(conversation.to_owned());
            if is_first || self.every {
                return Some(hit);
            }
        }
    }

    /// Puts back the hits that were taken but not shown.
    fn put_back(&mut self, hits: impl Iterator<Item = SearchHit>) {
        let hits: Vec<SearchHit> = hits.collect();
        for hit in hits.into_iter().rev() {
            self.shown.remove(self.conversations.of(&hit.session_id));
            self.waiting.push_front(hit);
        }
    }

    /// Whether there may be hits that were not shown yet.
    fn has_more(&mut self) -> bool {
        let (shown, every) = (&self.shown, self.every);
        let conversations = &self.conversations;
        self.waiting
            .retain(|hit| every || !shown.contains(conversations.of(&hit.session_id)));
        !self.waiting.is_empty() || self.cursor.is_some()
    }

    fn line(&self, hit: &SearchHit, snippet: &str, cleaner: &mut Cleaner<'_>) -> String {
        let left = match hit.branch.on_active_path {
            true => "",
            false => ", a branch that was left",
        };
        let what = match self.notes.contains(&place(hit)) {
            true => "note",
            false => "entry",
        };
        let mut said = String::new();
        if let Some(reason) = &hit.branch.reason {
            let text = cleaner.cut_line(&reason.text, MAX_SAID);
            said += &quoted(&format!("left because: {text}"));
        }
        if let Some(instead) = &hit.branch.instead {
            let text = cleaner.cut_line(&instead.text, MAX_SAID);
            said += &quoted(&format!("instead: {text}"));
        }
        for one in hit.branch.left_in_turn.iter().flat_map(|left| &left.newest) {
            let reason = one.reason.as_ref().map(|reason| ("because", &reason.text));
            let end = one.end.as_ref().map(|end| ("at the end", &end.text));
            if let Some((about, text)) = reason.or(end).filter(|_| is_plain_id(&one.tip_id)) {
                let text = cleaner.cut_line(text, MAX_SAID);
                said += &quoted(&format!(
                    "left in this turn: {}, {about}: {text}",
                    one.tip_id
                ));
            }
        }
        // A hit whose ids are not plain has no branch to read.
        let branch = match is_plain_id(&hit.branch.tip_id) {
            true => format!(", branch {}", hit.branch.tip_id),
            false => String::new(),
        };
        format!(
            "\n{what} {} of session {}{branch}{left}, {}\n{}{said}{}",
            hit.entry_id,
            hit.session_id,
            cleaner.word(&hit.at),
            quoted(snippet),
            quoted(&format!(
                "session: {}",
                cleaner.cut_line(&hit.session_name, MAX_NAME)
            ))
        )
    }
}

/// The snippets of the hits, in the same order, without secrets. Each entry is searched for secrets as a whole, because
/// a snippet may have only a part of a secret.
pub async fn snippets(
    history: &History,
    hits: &[SearchHit],
    cleaner: &mut Cleaner<'_>,
) -> Result<Vec<String>> {
    let mut snippets: Vec<String> = vec![String::new(); hits.len()];
    let mut of_session: BTreeMap<&str, Vec<(&SearchHit, &mut String)>> = BTreeMap::new();
    for (hit, snippet) in hits.iter().zip(&mut snippets) {
        match history.shows_secrets() {
            true => *snippet = cleaner.line(&hit.snippet, MAX_SNIPPET),
            false => {
                let hits = of_session.entry(&hit.session_id).or_default();
                hits.push((hit, snippet));
            }
        }
    }
    for (session, hits) in of_session {
        // A session that cannot be opened has no snippets.
        let Ok(open) = history.open(Some(session)).await else {
            continue;
        };
        for (hit, snippet) in hits {
            // A label is not a part of its entry.
            *snippet = match open.client.get_entry(&hit.entry_id).await {
                Ok(found) if hit.field != SearchField::Labels => {
                    let (whole, matched) = (&hit.snippet, matched(hit));
                    cleaner.excerpt(&found.entry, whole, &matched, MAX_SNIPPET)
                }
                Ok(_) => cleaner.cut_line(&hit.snippet, MAX_SNIPPET),
                Err(_) => String::new(),
            };
        }
        open.close().await?;
    }
    Ok(snippets)
}

/// The first match in the snippet of a hit.
fn matched(hit: &SearchHit) -> String {
    let range = hit.ranges.first().map(Vec::as_slice).unwrap_or_default();
    let place = |at: Option<&u64>| usize::try_from(at.copied().unwrap_or_default());
    let (start, end) = (place(range.first()), place(range.get(1)));
    let (start, end) = (start.unwrap_or_default(), end.unwrap_or_default());
    let chars = hit.snippet.chars().skip(start);
    chars.take(end.saturating_sub(start)).collect()
}
