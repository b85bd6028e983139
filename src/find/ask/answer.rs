//! Reads the best entries of one session. The entries show how near to each other the words of the question are, and
//! which passage is the best.

use super::counted::Candidate;
use super::filtered;
use super::gather::{Gathered, OrderedScore};
use super::request::AskRequest;
use crate::branch::Branches;
use crate::explain::Explainer;
use crate::labels;
use crate::page::Hit;
use crate::request::SearchRequest;
use crate::session::title;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use treelined_core::entry::{Kind, Role};
use treelined_core::error::Result;
use treelined_core::search::ask::{
    Passage, Reader, TermScorer, UnitCounts, closeness, field_weight,
};
use treelined_core::search::{Excerpt, FieldKind, decoded, each_field_with_kind};
use treelined_core::tree::{Node, Tree};
use treelined_files::cancel::Cancel;
use treelined_files::os::file::Location;
use treelined_files::store::Store;

/// The factor by which an entry scores higher if it is on the path to the leaf.
pub(super) const ACTIVE: f64 = 1.05;
/// The most hits of one session in a ranking.
pub(super) const OF_SESSION: usize = 3;

/// A hit of a ranking.
#[derive(Debug)]
pub(super) struct RankedHit {
    pub hit: Hit,
    /// Whether the entry is a name of the session.
    pub is_name: bool,
}

/// The hits among the candidates of one session that can be in a ranking. All candidates are in this file.
pub(super) fn hits(
    store: &Store,
    request: &AskRequest,
    gathered: &Gathered,
    location: &Location,
    candidates: &[Candidate],
    cancel: &Cancel,
) -> Result<Vec<RankedHit>> {
    let opened = store.open(location.clone(), cancel)?;
    let tree = &opened.tree;
    let scores = scores(tree, candidates);
    let (session_name, started) = (title(&opened)?, labels::started(&opened));
    let session_id = opened.log.header().map(|header| header.id.clone());
    let bodies = opened.log.bodies();
    let (mut reader, mut branches) = (bodies.reader(), Branches::of(tree));
    let mut explainer = Explainer::of(tree, request.filters.archived);
    let mut texts = TextReader::new(request, gathered);
    let mut hits = Vec::new();
    for (node, (own, together)) in scores {
        let at = tree.timestamp(node).unwrap_or(started);
        let label = tree.label(node).map(|label| &*label.text);
        let line = reader.stored(tree.place(node), usize::MAX)?;
        let (kind, role) = (tree.kind(node), tree.role(node));
        let Some(shown) = texts.best(line, kind, role, label) else {
            continue;
        };
        let branch = branches.branch(node);
        let active = if branch.on_active_path { ACTIVE } else { 1.0 };
        let score = own * shown.closeness * active + together + texts.of_phrase(&shown);
        let hit = Hit {
            session_id: session_id.clone().unwrap_or_default(),
            session_name: session_name.clone(),
            entry_id: tree.id(node).to_owned(),
            field: shown.field,
            at,
            excerpt: shown.excerpt,
            inside: shown.inside,
            score,
            branch,
        };
        let is_name = kind == Kind::SessionInfo;
        hits.push((node, RankedHit { hit, is_name }));
    }
    hits.sort_by_key(|(_, RankedHit { hit, .. })| {
        (Reverse(OrderedScore(hit.score)), Reverse(hit.at))
    });
    let mut takes = of_session(&request.filters);
    let mut ranked = Vec::with_capacity(hits.len());
    for (node, mut one) in hits {
        if takes(one.is_name) {
            explainer.explain(node, &mut one.hit.branch, &mut reader)?;
            ranked.push(one);
        }
    }
    Ok(ranked)
}

/// Decides for each hit of a session, the best first, whether the hit can be in a ranking. A few entries and one name
/// of a session can. The name does not count as one of these entries, since an entry says more.
fn of_session(filters: &SearchRequest) -> impl FnMut(bool) -> bool {
    let is_of_all_sessions = filters.session.is_none();
    let (mut names, mut entries) = (0, 0);
    move |is_name| {
        let (count, most) = match is_name {
            true => (&mut names, 1),
            false => (&mut entries, OF_SESSION),
        };
        *count += 1;
        !is_of_all_sessions || *count <= most
    }
}

/// The entries of the candidates. Each has two scores: one from its own words, and one from the words of its session. A
/// label adds its score to the entry that it labels. A label that was replaced or removed does not count.
fn scores(tree: &Tree, candidates: &[Candidate]) -> BTreeMap<Node, (f64, f64)> {
    let mut wanted: Vec<&Candidate> = candidates.iter().collect();
    wanted.sort_unstable_by_key(|candidate| candidate.offset);
    let offsets: Vec<u64> = wanted.iter().map(|candidate| candidate.offset).collect();
    let mut scores = BTreeMap::new();
    for (number, about) in filtered::entries_at(tree, &offsets) {
        if let Some(candidate) = wanted.get(number) {
            let score = scores.entry(about).or_insert((0.0, candidate.together));
            score.0 += candidate.own;
        }
    }
    scores
}

/// The field whose passage shows an entry.
pub(super) struct ShownField {
    pub(super) field: FieldKind,
    pub(super) excerpt: Excerpt,
    /// The words of the question that the passage has only as parts of other words.
    pub(super) inside: Vec<String>,
    pub(super) closeness: f64,
    /// Whether the field has the question as a phrase.
    pub(super) is_phrase: bool,
}

pub(super) struct TextReader<'r> {
    request: &'r AskRequest,
    reader: Reader<'r>,
    /// The sum of the weights of all terms.
    all: f64,
    of_phrase: f64,
}

impl<'r> TextReader<'r> {
    pub(super) fn new(request: &'r AskRequest, gathered: &Gathered) -> Self {
        // Rare terms have a higher weight here, as in the score.
        let unit = UnitCounts {
            weight: 4,
            terms: 1,
        };
        let terms = request.question.terms().iter().zip(&gathered.counts);
        let weights: Vec<f64> = terms
            .map(|(term, count)| {
                term.weight * TermScorer::new(&gathered.corpus, *count).entry(unit)
            })
            .collect();
        Self {
            request,
            all: weights.iter().sum(),
            of_phrase: gathered.of_phrase,
            reader: Reader::new(&request.question, weights),
        }
    }

    /// The part of the score of a field that has the question as a phrase.
    pub(super) fn of_phrase(&self, shown: &ShownField) -> f64 {
        if shown.is_phrase { self.of_phrase } else { 0.0 }
    }

    /// The field with the best passage; `None` if no searched field has a word of the question.
    pub(super) fn best(
        &mut self,
        line: &[u8],
        kind: Kind,
        role: Role,
        label: Option<&str>,
    ) -> Option<ShownField> {
        let mut best: Option<(f64, FieldKind, String, Passage)> = None;
        let (reader, fields) = (&mut self.reader, self.request.filters.fields);
        let mut see = |field: FieldKind, text: &str| {
            if !fields.has(field) {
                return;
            }
            let Some(passage) = reader.passage(text) else {
                return;
            };
            let of_field = f64::from(field_weight(kind, field, role));
            let rank = passage.weight * (1.0 + 0.2 * passage.run as f64) * (1.0 + of_field / 64.0);
            let is_better = |(most, .., other): &(f64, _, _, Passage)| {
                (passage.is_phrase, rank) > (other.is_phrase, *most)
            };
            if best.as_ref().is_none_or(is_better) {
                best = Some((rank, field, text.to_owned(), passage));
            }
        };
        if let Some(label) = label {
            see(FieldKind::Labels, label);
        }
        each_field_with_kind(line, kind, role, |field, raw| {
            see(field, &decoded(raw));
            ControlFlow::Continue(())
        });
        let (_, field, text, passage) = best?;
        // The reader marks words only in the text that it has read last, so it reads the best text again.
        let passage = self.reader.passage(&text).unwrap_or(passage);
        Some(ShownField {
            field,
            closeness: self.closeness(&passage),
            is_phrase: passage.is_phrase,
            inside: passage
                .inside
                .iter()
                .map(|word| self.request.question.word(*word).to_owned())
                .collect(),
            excerpt: self.reader.excerpt(&text, &passage),
        })
    }

    fn closeness(&self, passage: &Passage) -> f64 {
        let words = self.request.question.len();
        let phrase = match words {
            0 | 1 => 0.0,
            _ => {
                let share = passage.run.saturating_sub(1) as f64 / (words - 1) as f64;
                share * share
            }
        };
        let share = passage.weight / self.all.max(f64::MIN_POSITIVE);
        let terms = passage.terms.max(1) as f64;
        let spread = (f64::from(passage.extent) + 1.0) / terms;
        let near = match passage.terms {
            0 | 1 if self.request.question.terms().len() > 1 => 0.0,
            _ => share / spread.max(1.0).sqrt(),
        };
        closeness(phrase, near, passage.uncut as f64 / terms)
    }
}
