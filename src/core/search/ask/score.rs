//! The score of an entry: BM25 over its own terms, and over the terms of its session and branch.
//!
//! The constants follow from the order of the fields, and from a set of judged questions (tests/data/search/README.md).

use crate::entry::{Kind, Role};
use crate::search::FieldKind;
use crate::timestamp::Millis;

/// The saturation of BM25: the smaller it is, the sooner repetitions of a term stop counting.
const SATURATION: f64 = 1.2;
/// The influence of an entry's length on its score, from 0 to 1.
const LENGTH: f64 = 0.6;
/// The weight of an entry's session. The weight of the entry itself is 1.
const SESSION: f64 = 0.5;
/// The weight of the session's best entry for each term. A session that has all words, spread over several entries,
/// comes before a session that has half of the words in one entry.
const TOGETHER: f64 = 1.0;
/// The weight of an entry's branch. The weight of the entry itself is 1.
const BRANCH: f64 = 0.3;
/// The largest bonus for a whole phrase, for words that are near each other, and for words that are not cut.
const PHRASE: f64 = 1.0;
const NEAR: f64 = 0.4;
const UNCUT: f64 = 0.15;
/// The largest bonus for a new entry, and the time in which it halves.
const RECENT: f64 = 0.05;
const HALVED: f64 = 30.0 * 86_400_000.0;

/// The sizes of a whole session directory, as far as they are known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Corpus {
    pub entries: u64,
    pub sessions: u64,
    pub branches: u64,
    /// The number of terms in all entries, with repetitions.
    pub terms: u64,
}

/// The counts of a unit (an entry, a branch or a session) that has a term.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct UnitCounts {
    /// The number of occurrences of the term in the unit, each multiplied by the weight of its field.
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

/// The weight of a term in a field, in quarters. The caller halves it for a part of an identifier.
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

/// Limits the weight of a term that an entry has only in these kinds of fields (one bit for each kind). The output of
/// programs, the thinking of models, and calls may repeat a term often. With this limit they weigh less than prose that
/// has the term once.
pub fn bounded_weight(weight: u8, fields: u8) -> u8 {
    const OUTPUT: u8 = 1 << FieldKind::ToolResults as u8 | 1 << FieldKind::Thinking as u8;
    const CALLS: u8 = 1 << FieldKind::ToolCalls as u8;
    match fields {
        fields if fields & !OUTPUT == 0 => weight.min(3),
        fields if fields & !(OUTPUT | CALLS) == 0 => weight.min(5),
        _ => weight,
    }
}

/// The part of the score that all entries of a session share. `best` has, for each term, the best score of any entry of
/// the session.
pub fn together(best: impl IntoIterator<Item = f64>) -> f64 {
    TOGETHER * best.into_iter().sum::<f64>()
}

/// The rarity of a term that `with` of `all` units have.
fn rarity(all: u64, with: u64) -> f64 {
    let (all, with) = (all.max(with) as f64, with as f64);
    (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
}

/// The score of a unit for one term. `mean` is the average number of terms in a unit.
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

/// The rarity of a term among units of one kind, and their average number of terms.
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

/// The factor for the nearness of the words to each other in the text. `phrase`, `near` and `uncut` are shares from 0
/// to 1.
pub fn closeness(phrase: f64, near: f64, uncut: f64) -> f64 {
    1.0 + PHRASE * phrase + NEAR * near + UNCUT * uncut
}

/// The factor for the age of an entry.
pub fn recency(at: Millis, now: Millis) -> f64 {
    let age = now.saturating_sub(at).max(0) as f64;
    1.0 + RECENT * (-age / HALVED).exp2()
}
