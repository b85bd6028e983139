//! Ranks lines that are not from session files, such as lines that the database of a team has found.

use super::answer::{OF_SESSION, TextReader};
use super::bound;
use super::counted::{Candidate, CountedFile};
use super::counts::{Counter, Counts, labels, role_of, scanned};
use super::gather::{self, OrderedScore};
use super::ranked::MoreHits;
use super::request::{AskRequest, Phrases};
use crate::branch::Branch;
use crate::outcome::Totals;
use crate::page::Hit;
use hashbrown::HashSet;
use std::cmp::Reverse;
use std::collections::HashMap;
use treelined_core::entry::{Kind, Line};
use treelined_core::json;
use treelined_core::search::ask::Term;
use treelined_core::team::{FoundLine, FoundSession, TeamFound};
use treelined_core::timestamp::{self, Millis};

/// The answer to a question.
#[derive(Debug, Default)]
pub struct RankedLines {
    /// The best first, each with the user who wrote the line.
    pub hits: Vec<(Hit, String)>,
    /// The sessions of these hits that have more entries with words of the question.
    pub more: Vec<MoreHits>,
    pub totals: Totals,
}

/// Ranks lines by a question, as [`super::ask`] ranks the lines of files. The branches of the hits are not known.
pub fn rank_lines(request: &AskRequest, found: &TeamFound, now: Millis) -> RankedLines {
    let counted = count(request, found);
    let (mut corpus, mut counts) = gather::sums(request, &counted);
    // The lines are only a selection of all lines, so they do not show how rare a word is.
    let (known, all) = (corpus.entries.max(1), corpus.entries.max(found.entries));
    corpus.terms = corpus.terms.saturating_mul(all) / known;
    corpus.entries = all;
    corpus.sessions = corpus.sessions.max(found.all_sessions);
    for (count, share) in counts.iter_mut().zip(&found.shares) {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "an estimate"
        )]
        let with = (share.clamp(0.0, 1.0) * all as f64) as u64;
        count.entries = count.entries.max(with);
    }
    let files = found.sessions.len();
    let mut gathered = gather::best_in(request, &counted, files, now, (corpus, counts));
    gathered.of_phrase = bound::apart(request, &gathered.candidates);
    let mut texts = TextReader::new(request, &gathered);
    let hits = gathered.candidates.iter().filter_map(|candidate| {
        let session = found.sessions.get(candidate.file)?;
        hit(&mut texts, session, candidate).map(|hit| (candidate.file, hit))
    });
    let mut hits: Vec<(usize, (Hit, String))> = hits.collect();
    hits.sort_by_key(|(_, (hit, _))| (Reverse(OrderedScore(hit.score)), Reverse(hit.at)));
    let most = match request.filters.session {
        Some(_) => usize::MAX,
        None => OF_SESSION,
    };
    let mut shown: HashMap<usize, u64> = HashMap::new();
    hits.retain(|(file, _)| {
        let shown = shown.entry(*file).or_default();
        *shown += 1;
        *shown <= most as u64
    });
    hits.truncate(request.filters.limit);
    let mut shown: HashMap<usize, u64> = HashMap::new();
    for (file, _) in &hits {
        *shown.entry(*file).or_default() += 1;
    }
    let more = shown.iter().filter_map(|(file, shown)| {
        let count = gathered.of_file.get(*file)?.checked_sub(*shown)?;
        let session_id = found.sessions.get(*file)?.session_id.clone();
        (count > 0).then_some(MoreHits { session_id, count })
    });
    RankedLines {
        more: more.collect(),
        hits: hits.into_iter().map(|(_, hit)| hit).collect(),
        totals: Totals {
            sessions: gathered.sessions,
            entries: gathered.entries,
            scanned_bytes: 0,
            are_least: true,
            unread: found.unread,
            shed: 0,
        },
    }
}

/// Counts the terms of the question in the lines of each session.
fn count(request: &AskRequest, found: &TeamFound) -> Vec<CountedFile> {
    let (terms, facts) = (request.terms(), request.facts());
    let labels = labels();
    let only: HashSet<Term> = terms
        .iter()
        .chain(&facts)
        .chain([&labels])
        .copied()
        .collect();
    let count = |(number, session): (usize, &FoundSession)| {
        let mut counter = Counter::new(Some(&only), Counts::default());
        for line in session
            .lines
            .iter()
            .filter(|one| has_phrases(request, &one.line))
        {
            counter.line(&line.line, line.number);
        }
        let counts = counter.end();
        CountedFile::of(number, &counts.of_terms(&terms, &facts), &request.filters)
    };
    found.sessions.iter().enumerate().map(count).collect()
}

/// Whether a line has the phrases of the question.
fn has_phrases(request: &AskRequest, line: &[u8]) -> bool {
    let has = |phrases: &Phrases| match scanned(line) {
        Some(Line::Entry(envelope)) => {
            let kind = (envelope.kind, role_of(&envelope));
            phrases.are_in(line, kind, None, &request.filters)
        }
        _ => false,
    };
    request.phrases.as_ref().is_none_or(has)
}

fn hit(
    texts: &mut TextReader<'_>,
    session: &FoundSession,
    candidate: &Candidate,
) -> Option<(Hit, String)> {
    let is_it = |line: &FoundLine| line.number.cmp(&candidate.offset);
    let line = session.lines.binary_search_by(is_it).ok()?;
    let FoundLine { line, author, .. } = session.lines.get(line)?;
    let Some(Line::Entry(envelope)) = scanned(line) else {
        return None;
    };
    let shown = texts.best(line, envelope.kind, role_of(&envelope), None)?;
    // A label is about another entry.
    let about = match envelope.kind {
        Kind::Label => json::get(line, "targetId").and_then(json::string),
        _ => None,
    };
    let entry_id = about.or(envelope.id).unwrap_or_default().into_owned();
    let at = envelope.timestamp.as_deref().and_then(timestamp::parse);
    let of_phrase = texts.of_phrase(&shown);
    let hit = Hit {
        session_id: session.session_id.clone(),
        session_name: session.name.clone().unwrap_or_default(),
        branch: Branch {
            tip_id: entry_id.clone(),
            on_active_path: true,
            left_at: None,
            left: None,
            in_turn: None,
        },
        entry_id,
        field: shown.field,
        at: at.unwrap_or_default(),
        excerpt: shown.excerpt,
        inside: shown.inside,
        score: candidate.own * shown.closeness + candidate.together + of_phrase,
    };
    Some((hit, author.clone()))
}
