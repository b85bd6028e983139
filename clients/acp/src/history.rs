//! Compares the history that an agent replays with the entries of a session (session-file.md §5.8, "Records"). Pure.

use crate::turn::Item;
use serde_json::Value;

/// The most parts at the end of a path that are compared.
const MAX_TAIL: usize = 64;

/// One part of a message: its kind, and its text without white space. All calls of tools are equal.
type Said = (Kind, String);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    User,
    Agent,
    Call,
}

/// The parts of a message. The result of a tool has none.
pub fn said(message: &Value) -> Vec<Said> {
    let kind = match message.get("role").and_then(Value::as_str) {
        Some("user") => Kind::User,
        Some("assistant") => Kind::Agent,
        _ => return Vec::new(),
    };
    let text = |text: &str| -> Option<Said> {
        let text: String = text.split_whitespace().collect();
        (!text.is_empty()).then_some((kind, text))
    };
    match message.get("content") {
        Some(Value::String(words)) => text(words).into_iter().collect(),
        Some(Value::Array(blocks)) => {
            let parts = blocks.iter().filter_map(|block| {
                match block.get("type").and_then(Value::as_str)? {
                    "text" => text(block.get("text")?.as_str()?),
                    "toolCall" => Some((Kind::Call, String::new())),
                    _ => None,
                }
            });
            parts.collect()
        }
        _ => Vec::new(),
    }
}

/// Removes the texts that stand for calls from a history. Codex does not replay the calls of a session that was
/// handed over to it: the file of that session has the text `ran NAME ARGUMENTS` for each call (`continue_session`).
pub fn without_words_for_calls(items: &mut [Item]) {
    let blocks = |item: &Item| match item {
        Item::Message(message) => message.get("content").and_then(Value::as_array).cloned(),
        Item::Custom(..) => None,
    };
    let is_call = |block: &Value| block.get("type").and_then(Value::as_str) == Some("toolCall");
    if items
        .iter()
        .filter_map(blocks)
        .flatten()
        .any(|block| is_call(&block))
    {
        return;
    }
    let is_agent =
        |message: &Value| message.get("role").and_then(Value::as_str) == Some("assistant");
    for item in items {
        if let Item::Message(message) = item
            && is_agent(message)
            && let Some(Value::Array(blocks)) = message.get_mut("content")
        {
            blocks.retain(|block| {
                let text = block.get("text").and_then(Value::as_str);
                !text.is_some_and(stands_for_call)
            });
        }
    }
}

fn stands_for_call(text: &str) -> bool {
    let called = text
        .strip_prefix("ran ")
        .and_then(|rest| rest.split_once(' '));
    called.is_some_and(|(name, arguments)| !name.is_empty() && arguments.starts_with('{'))
}

/// The messages of a history, as parts, and the position up to which they are found in a session.
#[derive(Clone)]
pub struct History {
    /// The parts, each with the number of its item.
    parts: Vec<(usize, Said)>,
    part: usize,
    bytes: usize,
    /// Whether calls of tools are compared.
    has_calls: bool,
}

impl History {
    /// Makes a history whose position is its beginning. If the history has no calls, the calls of entries are not
    /// compared.
    pub fn of(items: &[Item]) -> History {
        let mut history = History::of_all(items.iter());
        history.has_calls = history
            .parts
            .iter()
            .any(|(_, (kind, _))| *kind == Kind::Call);
        history
    }

    pub fn of_items<T>(items: &[(T, Item)]) -> History {
        History::of_all(items.iter().map(|(_, item)| item))
    }

    /// The parts of an entry that are compared.
    pub fn compared(&self, mut entry: Vec<Said>) -> Vec<Said> {
        entry.retain(|(kind, _)| self.has_calls || *kind != Kind::Call);
        entry
    }

    fn of_all<'a>(items: impl Iterator<Item = &'a Item>) -> History {
        let parts = items.enumerate().flat_map(|(number, item)| {
            let said = match item {
                Item::Message(message) => said(message),
                Item::Custom(..) => Vec::new(),
            };
            said.into_iter().map(move |said| (number, said))
        });
        History {
            parts: parts.collect(),
            part: 0,
            bytes: 0,
            has_calls: true,
        }
    }

    /// Whether the beginning of the history was found.
    pub fn is_begun(&self) -> bool {
        self.part > 0
    }

    pub fn is_found(&self) -> bool {
        self.part >= self.parts.len()
    }

    /// Moves the position past the parts of an entry. If other parts come next, returns false and does not move the
    /// position. The last entry of a history may have more text than the history.
    pub fn pass(&mut self, entry: &[Said]) -> bool {
        let (mut part, mut bytes) = (self.part, self.bytes);
        for (kind, words) in entry {
            let mut words = words.as_str();
            loop {
                let Some((_, (told_kind, history))) = self.parts.get(part) else {
                    // Only an answer may have more text than the history: a message of the user is always replayed
                    // whole.
                    let is_begun = part > self.part && *kind != Kind::User;
                    (self.part, self.bytes) = if is_begun {
                        (part, 0)
                    } else {
                        (self.part, self.bytes)
                    };
                    return is_begun;
                };
                let ahead = history.get(bytes..).unwrap_or_default();
                if told_kind != kind {
                    return false;
                }
                if let Some(rest) = ahead.strip_prefix(words) {
                    bytes = history.len() - rest.len();
                    if rest.is_empty() {
                        (part, bytes) = (part + 1, 0);
                    }
                    break;
                }
                let Some(rest) = words.strip_prefix(ahead) else {
                    return false;
                };
                words = rest;
                (part, bytes) = (part + 1, 0);
            }
        }
        if bytes > 0 && entry.last().is_some_and(|(kind, _)| *kind == Kind::User) {
            return false;
        }
        (self.part, self.bytes) = (part, bytes);
        true
    }

    /// Moves the position past a whole path, given as the parts of each entry. If the history has less or differs,
    /// returns false and does not move the position.
    pub fn pass_all(&mut self, path: &[Vec<Said>]) -> bool {
        let mut passed = self.clone();
        let mut entries = path.iter().map(|entry| self.compared(entry.clone()));
        let is_told = entries.all(|entry| entry.is_empty() || passed.pass(&entry));
        if is_told {
            *self = passed;
        }
        is_told
    }

    /// Moves the position to the end of a path that was handed over. Only the last parts of the path are compared,
    /// because the agent may replay its beginning in other words. The longest match counts. False if there is no
    /// match.
    pub fn pass_path(&mut self, path: &[Said]) -> bool {
        let path = joined(self.compared(path.to_vec()).into_iter());
        let history = joined(self.parts.iter().map(|(_, said)| said.clone()));
        let tail = |end: usize| {
            let history = history.iter().take(end).rev();
            let same = path.iter().rev().zip(history).take(MAX_TAIL);
            same.take_while(|((a, _), (b, _))| a == b).count()
        };
        let mut best = (0, 0);
        for end in 1..=history.len() {
            let length = tail(end);
            if length > best.0 {
                best = (length, end);
            }
        }
        let (length, end) = best;
        if length == 0 {
            return false;
        }
        let parts: usize = history.iter().take(end).map(|(_, count)| count).sum();
        (self.part, self.bytes) = (parts, 0);
        true
    }

    /// The items after the position. If only a part of an item was found, its other blocks are returned.
    pub fn rest<T>(&self, items: Vec<(T, Item)>) -> Vec<(T, Item)> {
        let Some(passed) = self
            .part
            .checked_sub(1)
            .and_then(|last| self.parts.get(last))
        else {
            return items;
        };
        let cut = self.parts.get(self.part).filter(|next| next.0 == passed.0);
        let (last, begun) = (passed.0, cut.is_some());
        let found = self.parts.iter().take(self.part);
        let found = found.filter(|part| part.0 == last).count();
        let rest = items
            .into_iter()
            .enumerate()
            .filter_map(|(number, (id, mut item))| {
                if number == last && begun {
                    leave_out(&mut item, found);
                    return Some((id, item));
                }
                let is_custom = matches!(item, Item::Custom(..));
                (number > last || is_custom).then_some((id, item))
            });
        rest.collect()
    }
}

/// Removes the first `parts` parts of a message, and the blocks between them.
fn leave_out(item: &mut Item, parts: usize) {
    if let Item::Message(message) = item
        && let Some(Value::Array(blocks)) = message.get_mut("content")
    {
        let mut left = parts;
        blocks.retain(|block| {
            let is_part = match block.get("type").and_then(Value::as_str) {
                Some("text") => {
                    let text = block.get("text").and_then(Value::as_str);
                    text.is_some_and(|text| !text.trim().is_empty())
                }
                Some("toolCall") => true,
                _ => false,
            };
            let is_left_out = left > 0;
            left -= usize::from(is_part && is_left_out);
            !is_left_out
        });
    }
}

/// Joins texts of one kind that follow each other. Returns each text with the number of its parts.
fn joined(parts: impl Iterator<Item = Said>) -> Vec<(Said, usize)> {
    let mut joined: Vec<(Said, usize)> = Vec::new();
    for (kind, text) in parts {
        match joined.last_mut() {
            Some(((last, words), count)) if *last == kind && kind != Kind::Call => {
                words.push_str(&text);
                *count += 1;
            }
            _ => joined.push(((kind, text), 1)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn history() -> Vec<(u8, Item)> {
        let agent = json!({ "role": "assistant", "content": [
            { "type": "thinking", "thinking": "Hm." }, { "type": "text", "text": "I look." },
            { "type": "toolCall", "name": "ls" }, { "type": "toolCall", "name": "cat" }] });
        let user = json!({ "role": "user", "content": [{ "type": "text", "text": "one two" }] });
        vec![
            (0, Item::Message(user)),
            (1, Item::Message(agent)),
            (2, Item::Custom("acp.plan", Value::Null)),
        ]
    }

    fn items() -> Vec<Item> {
        history().into_iter().map(|(_, item)| item).collect()
    }

    /// An import brought the first call while the turn was running.
    #[test]
    fn a_message_that_is_there_in_part_has_its_other_blocks() {
        let mut all = History::of(&items());
        assert!(all.pass(&[(Kind::User, "onetwo".to_owned())]));
        assert!(all.pass(&[
            (Kind::Agent, "Ilook.".to_owned()),
            (Kind::Call, String::new())
        ]));
        assert!(!all.is_found());
        let rest = all.rest(history());
        assert_eq!(rest.len(), 2);
        let (1, Item::Message(message)) = &rest[0] else {
            panic!("{rest:?}")
        };
        assert_eq!(
            message["content"],
            json!([{ "type": "toolCall", "name": "cat" }])
        );
        assert!(all.pass(&[(Kind::Call, String::new())]));
        assert!(all.is_found());
    }

    #[test]
    fn a_message_of_the_user_that_says_more_is_another_one() {
        let user = |text: &str| vec![(Kind::User, text.to_owned())];
        for other in ["onetwothree", "one", "two"] {
            assert!(!History::of(&items()).pass(&user(other)), "{other}");
        }
        assert_eq!(History::of(&items()).rest(history()).len(), 3);
    }

    fn agent(blocks: &Value) -> Item {
        Item::Message(json!({ "role": "assistant", "content": blocks }))
    }

    /// When Codex replays a session that was handed over to it, the calls are missing. The next run once took the
    /// replay for another history, and recorded all of it again.
    #[test]
    fn a_history_without_calls_is_found_beside_them() {
        let path = [
            vec![(Kind::User, "onetwo".to_owned())],
            vec![(Kind::Call, String::new())],
            vec![
                (Kind::Agent, "Done.".to_owned()),
                (Kind::Call, String::new()),
            ],
            vec![(Kind::Agent, "Really.".to_owned())],
        ];
        let ran = json!({ "type": "text", "text": "ran exec_command {\"cmd\":\"ls\"}" });
        let text = |text: &str| json!({ "type": "text", "text": text });
        let mut items = vec![
            items().remove(0),
            agent(&json!([ran, text("Done."), ran, text("Really.")])),
        ];
        assert!(!History::of(&items).pass_all(&path));
        without_words_for_calls(&mut items);
        let mut history = History::of(&items);
        assert!(history.pass_all(&path) && history.is_found());
        let mut history = History::of(&items);
        assert!(history.pass_path(&path.concat()) && history.is_found());
        // In a history with calls, such words are the model's own.
        let mut items = [agent(&json!([ran, { "type": "toolCall", "name": "ls" }]))];
        without_words_for_calls(&mut items);
        assert_eq!(History::of(&items).parts.len(), 2);
    }

    #[test]
    fn a_path_that_was_not_told_whole_passes_nothing() {
        let said = |text: &str| vec![(Kind::Agent, text.to_owned())];
        let items = [agent(
            &json!([{ "type": "text", "text": "one" }, { "type": "text", "text": "two" }]),
        )];
        let mut history = History::of(&items);
        assert!(!history.pass_all(&[said("one"), said("three")]));
        assert!(!history.is_begun());
        assert!(history.pass_all(&[said("one")]) && !history.is_found());
    }

    /// The first words of a path that was handed over are a summary, and the words of its second entry come again
    /// later.
    #[test]
    fn the_end_of_a_path_is_found_behind_another_beginning() {
        let path = said(&json!({ "role": "assistant", "content": "I look." }));
        let mut all = History::of(&items());
        assert!(all.pass_path(&path));
        assert!(!all.is_found());
        let other = said(&json!({ "role": "assistant", "content": "Another" }));
        assert!(!History::of(&items()).pass_path(&other));
    }
}
