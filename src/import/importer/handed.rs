//! Compares a path that was handed over to a tool with the conversation that the tool returns (session-file.md §4.6).

use crate::neutral::{Message, NeutralPath, Said, parts, parts_of};
use std::sync::Arc;
use treelined_core::json;

/// A path that was handed over to a tool, with the entry at its end.
#[derive(Debug)]
pub(crate) struct Continuation {
    /// The last entry of the path.
    pub(crate) entry_id: String,
    pub(crate) handed: HandedOver,
    /// The messages of the user that were below this entry when the path was handed over. Each has its id, and the
    /// words of all messages from the entry down to it.
    pub(crate) prompts: Vec<(String, Arc<str>)>,
}

/// The texts of parts, joined into one text. The texts have no white space.
pub(crate) fn words_of(parts: &[Said]) -> String {
    parts.iter().map(|said| said.text.as_str()).collect()
}

/// The texts of a path that was handed over, as the tool returns them.
#[derive(Debug, Clone, Default)]
pub(crate) struct HandedOver {
    /// The parts of the texts, each with the number of its step.
    said: Vec<(Said, usize)>,
    steps: Vec<Step>,
}

/// A message, or the result of a call.
#[derive(Debug, Clone)]
struct Step {
    /// The entry that has the beginning of the step. If a step has no entry, it is the last entry before the step.
    first: Option<String>,
    /// The entry that has the end of the step. If a step has no entry, it is the last entry before the step.
    last: Option<String>,
    is_summary: bool,
}

/// A position in the path: the number of the next part, and the number of its bytes that were passed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cursor {
    pub(super) part: usize,
    pub(super) bytes: usize,
}

impl HandedOver {
    pub(crate) fn of(path: &NeutralPath) -> Self {
        let mut handed = Self::default();
        let mut before: Option<String> = None;
        for message in &path.messages {
            let is_summary = matches!(message, Message::User(said) if said.is_summary);
            let entries: Vec<Vec<&str>> = match message {
                Message::Results(results) => {
                    let results = results.iter();
                    results
                        .map(|result| result.entry.as_deref().into_iter().collect())
                        .collect()
                }
                message => vec![message.entries()],
            };
            for (entries, said) in entries.iter().zip(parts(message)) {
                let name = |entry: Option<&&str>| entry.map(|entry| (*entry).to_owned());
                let first = name(entries.first()).or_else(|| before.clone());
                before = name(entries.last()).or(before);
                let step = handed.steps.len();
                handed
                    .said
                    .extend(said.into_iter().map(|said| (said, step)));
                handed.steps.push(Step {
                    first,
                    last: before.clone(),
                    is_summary,
                });
            }
        }
        handed
    }

    /// A path of a single step. All parts belong to the entry `entry`.
    pub(crate) fn all_of(said: Vec<Said>, entry: &str) -> Self {
        let entry = Some(entry.to_owned());
        Self {
            said: said.into_iter().map(|said| (said, 0)).collect(),
            steps: vec![Step {
                first: entry.clone(),
                last: entry,
                is_summary: false,
            }],
        }
    }

    /// The position after these parts; `None` if other parts come next.
    pub(super) fn after(&self, mut at: Cursor, said: &[Said]) -> Option<Cursor> {
        for said in said {
            let mut rest = said.text.as_str();
            while !rest.is_empty() {
                let (next, _) = self.said.get(at.part)?;
                let ahead = next.text.get(at.bytes..)?;
                if next.letter != said.letter {
                    return None;
                }
                if let Some(after) = rest.strip_prefix(ahead) {
                    at = Cursor {
                        part: at.part + 1,
                        bytes: 0,
                    };
                    rest = after;
                } else if ahead.starts_with(rest) {
                    at.bytes += rest.len();
                    rest = "";
                } else {
                    return None;
                }
                let is_whole = at.bytes == 0 && rest.is_empty();
                if !is_whole && !Said::goes_on(said.letter) {
                    return None;
                }
            }
        }
        Some(at)
    }

    /// The position after the summary that comes next; `None` if no summary comes next.
    pub(super) fn behind_summary(&self, at: Cursor) -> Option<Cursor> {
        let (_, step) = self.said.get(at.part)?;
        self.steps.get(*step).filter(|step| step.is_summary)?;
        let rest = self.said.iter().skip(at.part);
        let count = rest.take_while(|(_, its)| its == step).count();
        Some(Cursor {
            part: at.part + count,
            bytes: 0,
        })
    }

    pub(super) fn is_end(&self, at: Cursor) -> bool {
        at.part >= self.said.len()
    }

    /// The entry that stands for the texts before a position.
    pub(super) fn entry(&self, at: Cursor) -> Option<String> {
        let Some((_, step)) = self.said.get(at.part) else {
            return self.steps.last()?.last.clone();
        };
        let before = at.part.checked_sub(1).and_then(|part| self.said.get(part));
        let is_inside = at.bytes > 0 || before.is_some_and(|(_, its)| its == step);
        match is_inside {
            true => self.steps.get(*step)?.first.clone(),
            false => self.steps.get(step.checked_sub(1)?)?.last.clone(),
        }
    }
}

/// The parts of the message in a mapper's entry.
pub(super) fn said(members: &[u8]) -> Vec<Said> {
    let mut object = b"{\"id\":0".to_vec();
    object.extend_from_slice(members);
    object.push(b'}');
    json::get(&object, "message").map_or_else(Vec::new, parts_of)
}
