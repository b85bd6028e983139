//! Finds the answers to the same prompt. One of them may be better than another.

use crate::export::data::steps::{Step, Steps};
use std::collections::HashMap;
use treelined_core::entry::{Kind, Role};
use treelined_core::error::Result;
use treelined_core::tree::Node;

/// The hash of the content of a user message.
pub(super) type Said = [u8; 32];

/// The answers to one prompt, at least two, in the order of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Alternatives(pub Vec<Node>);

/// The prompt of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Prompt {
    /// The prompt is the path to this step.
    Step(Option<Node>),
    /// The prompt is the path to this step, and then a user message with this content. The user message was written
    /// again for each answer, so each answer has its own copy of it.
    Again(Option<Node>, Said),
}

/// The alternatives in the exported part, in the order of the tree. `said` is called only for user messages that have
/// user messages as siblings.
pub(super) fn find(
    steps: &Steps,
    said: &mut dyn FnMut(&Step) -> Result<Said>,
) -> Result<Vec<Alternatives>> {
    let mut questions: HashMap<Option<Node>, u32> = HashMap::new();
    for step in steps.in_order().filter(|step| is_question(step)) {
        *questions.entry(step.prompt).or_default() += 1;
    }
    let mut known: HashMap<Node, Said> = HashMap::new();
    let mut places: HashMap<Prompt, usize> = HashMap::new();
    let mut groups: Vec<Vec<Node>> = Vec::new();
    for answer in steps.in_order().filter(|step| is_begun_answer(step)) {
        let question = answer.prompt.and_then(|prompt| steps.get(prompt));
        let question = question.filter(|step| is_question(step));
        let prompt = match question {
            Some(question)
                if questions
                    .get(&question.prompt)
                    .is_some_and(|count| *count > 1) =>
            {
                let hash = match known.get(&question.node) {
                    Some(hash) => *hash,
                    None => *known.entry(question.node).or_insert(said(question)?),
                };
                Prompt::Again(question.prompt, hash)
            }
            _ => Prompt::Step(answer.prompt),
        };
        let place = *places.entry(prompt).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(answer.node),
            None => groups.push(vec![answer.node]),
        }
    }
    let several = groups.into_iter().filter(|group| group.len() > 1);
    Ok(several.map(Alternatives).collect())
}

fn is_question(step: &Step) -> bool {
    step.kind == Kind::Message && step.role == Role::User
}

/// Whether the step begins an answer of an assistant. An answer that broke off counts too, since the user may have
/// left it for that reason.
fn is_begun_answer(step: &Step) -> bool {
    step.kind == Kind::Message && step.role == Role::Assistant
}
