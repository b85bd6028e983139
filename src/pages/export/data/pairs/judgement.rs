//! Finds the judgements and moves that show that one answer is better than another.

use super::alternatives::Alternatives;
use crate::export::data::json::text_of;
use crate::export::data::steps::Steps;
use std::collections::HashMap;
use treelined_core::json;
use treelined_core::tree::Node;

/// The words that judge a branch as good, in a label or in the outcome of a note. Their case does not
/// matter.
const GOOD: &[&str] = &["chosen", "good"];
const BAD: &[&str] = &["rejected", "bad", "abandoned", "dead end"];
/// The outcome of a candidate that was not chosen (protocol.md §3.23).
const NOT_CHOSEN: &str = "notChosen";

/// Where a judgement comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// `choose` selected another candidate.
    Choice,
    Label,
    Note,
    /// The branch is archived.
    Archived,
    /// The path to the leaf continues with another answer.
    Left,
}

impl Origin {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Choice => "choice",
            Self::Label => "label",
            Self::Note => "note",
            Self::Archived => "archived",
            Self::Left => "left",
        }
    }
}

/// A judgement in the form for the export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Judgement {
    pub origin: Origin,
    /// The id of the label or note.
    pub entry_id: Option<String>,
    /// The label, or the reason of the note.
    pub reason: Option<String>,
    /// The client that made the choice.
    pub by: Option<String>,
}

impl Judgement {
    fn unsaid(origin: Origin) -> Self {
        Self {
            origin,
            entry_id: None,
            reason: None,
            by: None,
        }
    }
}

/// A label or a note that judges, and the step that it judges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Remark {
    /// The label or note entry. Of two remarks about one answer, the later entry counts.
    pub entry: Node,
    /// The step that the remark is about.
    pub about: Node,
    pub is_good: bool,
    /// The answer that was chosen instead.
    pub chosen: Option<Node>,
    pub judgement: Judgement,
}

/// A better and a worse answer to the same prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pair {
    pub chosen: Node,
    pub rejected: Node,
    pub judgement: Judgement,
}

/// Whether a label or an outcome means good or bad; `None` for other texts.
pub(super) fn verdict(text: &str) -> Option<bool> {
    let text = text.trim();
    let is_in = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    match (is_in(GOOD), is_in(BAD)) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

/// The remark of a note that judges; `place` is the step at or above the note.
pub(super) fn of_note(
    steps: &Steps,
    alternatives: &Judged<'_>,
    entry: Node,
    note: &[u8],
    place: Option<Node>,
) -> Option<Remark> {
    let data = json::get(note, "data")?;
    let outcome = text_of(data, "outcome")?;
    let target = steps.find(&json::get(data, "targetId").and_then(json::id)?)?;
    let text = |name| text_of(data, name).map(std::borrow::Cow::into_owned);
    let mut judgement = Judgement {
        origin: Origin::Note,
        entry_id: json::get(note, "id")
            .and_then(json::id)
            .map(|id| id.into_owned()),
        reason: text("reason"),
        by: text("by"),
    };
    if outcome != NOT_CHOSEN {
        return Some(Remark {
            entry,
            about: target.node,
            is_good: verdict(&outcome)?,
            chosen: None,
            judgement,
        });
    }
    judgement.origin = Origin::Choice;
    // The note names the end of the candidate. Later forks may come before this end.
    let about = target.group.unwrap_or(target.node);
    let rejected = alternatives.of(steps, about)?;
    let chosen = alternatives.beside(steps, rejected, place?)?;
    Some(Remark {
        entry,
        about,
        is_good: false,
        chosen: Some(chosen),
        judgement,
    })
}

/// The groups of alternatives, and the stretch of each alternative.
pub(super) struct Judged<'a> {
    groups: &'a [Alternatives],
    /// For each stretch, by its first step: the answer in the stretch, and the number of the answer's group.
    by_head: HashMap<Node, (Node, usize)>,
}

impl<'a> Judged<'a> {
    pub(super) fn new(steps: &Steps, groups: &'a [Alternatives]) -> Self {
        let mut by_head = HashMap::new();
        for (number, group) in groups.iter().enumerate() {
            for answer in &group.0 {
                if let Some(step) = steps.get(*answer) {
                    by_head.entry(step.head).or_insert((*answer, number));
                }
            }
        }
        Self { groups, by_head }
    }

    /// The answer that a remark about the step `about` judges: the answer in the same stretch of a branch.
    fn of(&self, steps: &Steps, about: Node) -> Option<Node> {
        let head = steps.get(about)?.head;
        self.by_head.get(&head).map(|(answer, _)| *answer)
    }

    /// The alternative to `answer` that is on the path to the step `place`.
    fn beside(&self, steps: &Steps, answer: Node, place: Node) -> Option<Node> {
        let (_, number) = self.by_head.get(&steps.get(answer)?.head)?;
        let group = &self.groups.get(*number)?.0;
        let at = steps.get(place)?.at;
        let is_before = |node: &Node| steps.get(*node).is_some_and(|step| step.at <= at);
        let nearest = group.partition_point(is_before).checked_sub(1)?;
        let found = group.get(nearest).filter(|node| **node != answer)?;
        let end = steps.get(*found)?.end;
        (at < end).then_some(*found)
    }

    /// The pairs: each answer that is worse than another answer, with the better answer. `remarks` may be in any order.
    pub(super) fn pairs(&self, steps: &Steps, mut remarks: Vec<Remark>) -> Vec<Pair> {
        remarks.sort_by_key(|remark| remark.entry);
        let mut verdicts: HashMap<Node, Remark> = HashMap::new();
        for remark in remarks {
            if let Some(answer) = self.of(steps, remark.about) {
                // A choice cancels earlier remarks against the chosen candidate.
                if let Some(chosen) = remark.chosen
                    && verdicts.get(&chosen).is_some_and(|of| !of.is_good)
                {
                    verdicts.remove(&chosen);
                }
                verdicts.insert(answer, remark);
            }
        }
        for step in steps.in_order().filter(|step| step.begins_archived) {
            if let Some(answer) = self.of(steps, step.node) {
                verdicts.entry(answer).or_insert(Remark {
                    entry: step.node,
                    about: step.node,
                    is_good: false,
                    chosen: None,
                    judgement: Judgement::unsaid(Origin::Archived),
                });
            }
        }
        let groups = self.groups.iter();
        groups
            .flat_map(|group| pairs_of(steps, group, &verdicts))
            .collect()
    }
}

fn pairs_of(steps: &Steps, group: &Alternatives, verdicts: &HashMap<Node, Remark>) -> Vec<Pair> {
    let is_bad = |node: &Node| verdicts.get(node).is_some_and(|of| !of.is_good);
    let good = |node: &&Node| verdicts.get(node).is_some_and(|of| of.is_good);
    let best = group
        .0
        .iter()
        .filter(good)
        .max_by_key(|node| verdicts.get(node).map(|of| of.entry));
    let is_active = |node: &&Node| steps.get(**node).is_some_and(|step| step.is_active);
    let active = group.0.iter().find(is_active).filter(|node| !is_bad(node));
    let mut pairs = Vec::new();
    for rejected in group.0.iter().copied() {
        let verdict = verdicts.get(&rejected);
        let is_background = steps.get(rejected).is_some_and(|step| step.is_background);
        let found = match verdict {
            Some(of) if of.is_good => None,
            Some(of) => {
                let chosen = of.chosen.filter(|node| !is_bad(node));
                let chosen = chosen.or(best.copied()).or(active.copied());
                chosen.map(|chosen| (chosen, of.judgement.clone()))
            }
            None => match (best, active) {
                (Some(best), _) => verdicts.get(best).map(|of| (*best, of.judgement.clone())),
                // An answer that grew in the background may never have been seen, so it counts as worse only
                // if it was judged.
                (None, Some(active)) if !is_background => {
                    Some((*active, Judgement::unsaid(Origin::Left)))
                }
                _ => None,
            },
        };
        if let Some((chosen, judgement)) = found.filter(|(chosen, _)| *chosen != rejected) {
            pairs.push(Pair {
                chosen,
                rejected,
                judgement,
            });
        }
    }
    pairs
}
