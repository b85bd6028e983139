//! The score of an entry: BM25 over its terms, and over those of its session and branch.
//!
//! The constants follow from the order of fields and from the judged set (tests/data/search/README.md).

use crate::entry::{Kind, Role};
use crate::search::FieldKind;
use crate::timestamp::Millis;

/// How soon more of a term counts less.
const SATURATION: f64 = 1.2;
/// How much the length of an entry counts.
const LENGTH: f64 = 0.6;
/// The weight of the session beside the entry.
const SESSION: f64 = 0.5;
/// The weight of the whole session beside the entry. A session that has all words in several entries comes before a
/// session that has half of the words in one entry.
const TOGETHER: f64 = 1.0;
/// The weight of the branch beside the entry.
const BRANCH: f64 = 0.3;
/// How much a whole phrase adds, how much words that are near, and how much words that are not cut.
const PHRASE: f64 = 1.0;
const NEAR: f64 = 0.4;
const UNCUT: f64 = 0.15;
/// How much an entry that is new adds, and the time in which this is halved.
const RECENT: f64 = 0.05;
const HALVED: f64 = 30.0 * 86_400_000.0;

/// The texts of a whole store, as far as they are known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Corpus {
    pub entries: u64,
    pub sessions: u64,
    pub branches: u64,
    /// Terms in all entries, with repetitions.
    pub terms: u64,
}

/// The counts of a unit (an entry, a branch or a session) that has a term.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct UnitCounts {
    /// The number of times that the unit has the term, each weighted by its field.
    pub weight: u64,
    /// The number of terms of the unit, with repetitions.
    pub terms: u64,
}

/// The number of units that have a term.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TermCount {
    pub entries: u64,
    pub branches: u64,
    pub sessions: u64,
}

/// The weight of a term in a field, in quarters. Half of it, if it is a part of an identifier.
pub fn field_weight(kind: Kind, field: FieldKind, role: Role) -> u8 {
    match (field, role, kind) {
        (FieldKind::Labels, _, _) => 16,
        (FieldKind::Text, _, Kind::Note) => 12,
        (FieldKind::Text, Role::User, _) => 8,
        (FieldKind::Text, Role::Assistant, _) | (FieldKind::Summaries, _, _) => 6,
        (FieldKind::ToolResults | FieldKind::Thinking, _, _) => 2,
        (FieldKind::Text | FieldKind::ToolCalls, _, _) => 4,
    }
}

/// The weight of a term that an entry has only in these kinds of fields (one bit for each kind). Output of programs and
/// thinking of models, and also calls, weigh less than prose that has the term once, however often they repeat it.
pub fn bounded_weight(weight: u8, fields: u8) -> u8 {
    const OUTPUT: u8 = 1 << FieldKind::ToolResults as u8 | 1 << FieldKind::Thinking as u8;
    const CALLS: u8 = 1 << FieldKind::ToolCalls as u8;
    match fields {
        fields if fields & !OUTPUT == 0 => weight.min(3),
        fields if fields & !(OUTPUT | CALLS) == 0 => weight.min(5),
        _ => weight,
    }
}

/// The part of the score that all entries of a session share: the best that any of them has of each term.
pub fn together(best: impl IntoIterator<Item = f64>) -> f64 {
    TOGETHER * best.into_iter().sum::<f64>()
}

/// How rare a term is, if `with` of `all` units have it.
fn rarity(all: u64, with: u64) -> f64 {
    let (all, with) = (all.max(with) as f64, with as f64);
    (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
}

/// The score of a unit for one term: `mean` is the number of terms of the usual unit.
fn bm25(rarity: f64, UnitCounts { weight, terms }: UnitCounts, mean: f64) -> f64 {
    if weight == 0 {
        return 0.0;
    }
    let weight = weight as f64 / 4.0;
    let length = 1.0 - LENGTH + LENGTH * terms as f64 / mean.max(1.0);
    rarity * weight * (SATURATION + 1.0) / (weight + SATURATION * length)
}

/// Scores units for one term. The parts that do not depend on the unit are computed once.
#[derive(Debug, Clone, Copy)]
pub struct TermScorer {
    entry: UnitScorer,
    session: UnitScorer,
    branch: UnitScorer,
}

/// The rarity of a term among units of one kind, and the number of terms of the usual one.
#[derive(Debug, Clone, Copy)]
struct UnitScorer {
    rarity: f64,
    mean: f64,
}

impl UnitScorer {
    fn new(units: u64, with: u64, terms: u64) -> Self {
        Self {
            rarity: rarity(units, with),
            mean: terms as f64 / units.max(1) as f64,
        }
    }

    fn score(self, unit: UnitCounts) -> f64 {
        bm25(self.rarity, unit, self.mean)
    }
}

impl TermScorer {
    pub fn new(corpus: &Corpus, count: TermCount) -> Self {
        let of = |units, with| UnitScorer::new(units, with, corpus.terms);
        Self {
            entry: of(corpus.entries, count.entries),
            session: of(corpus.sessions, count.sessions),
            branch: of(corpus.branches, count.branches),
        }
    }

    /// The score of an entry.
    pub fn entry(&self, entry: UnitCounts) -> f64 {
        self.entry.score(entry)
    }

    /// The score that an entry gets from its session.
    pub fn session(&self, session: UnitCounts) -> f64 {
        SESSION * self.session.score(session)
    }

    /// The score that an entry gets from its branch.
    pub fn branch(&self, branch: UnitCounts) -> f64 {
        BRANCH * self.branch.score(branch)
    }
}

/// The factor for how the words stand in the text: `phrase`, `near` and `uncut` are shares from 0 to 1.
pub fn closeness(phrase: f64, near: f64, uncut: f64) -> f64 {
    1.0 + PHRASE * phrase + NEAR * near + UNCUT * uncut
}

/// The factor for the time of an entry.
pub fn recency(at: Millis, now: Millis) -> f64 {
    let age = now.saturating_sub(at).max(0) as f64;
    1.0 + RECENT * (-age / HALVED).exp2()
}
