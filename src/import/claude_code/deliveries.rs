//! Messages that the model got while it worked. Two records say that one message was delivered: an attachment
//! `queued_command` and a `queue-operation` `remove`, in either order. The first one in the file counts.

use super::record::{Fields, boxed, hash};
use crate::message::elements;
use hashbrown::{HashMap, HashSet};
use treelined_core::json;

/// A record that tells of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Teller {
    Attachment,
    Queue,
}

/// The deliveries of a file so far.
#[derive(Debug, Default)]
pub(super) struct Deliveries {
    /// Ids of deliveries and commands.
    named: HashSet<(Teller, Box<str>)>,
    /// The deliveries since the last answer of the model, by their texts, and whether they have ids. Older versions do
    /// not give an id to the `remove`.
    recent: HashMap<(Teller, u64), Vec<bool>>,
}

impl Deliveries {
    /// Takes a record with a message for the model. Returns whether an earlier record of the other kind tells of the
    /// same delivery.
    pub(super) fn is_told_again(&mut self, fields: &Fields<'_>) -> bool {
        let (teller, other, names) = match fields.attachment {
            Some(attachment) => (
                Teller::Attachment,
                Teller::Queue,
                json::get_each(attachment, ["delivery_id", "source_uuid"]),
            ),
            None => (
                Teller::Queue,
                Teller::Attachment,
                [fields.delivery, fields.command],
            ),
        };
        let ids: Vec<Box<str>> = names.into_iter().filter_map(boxed).collect();
        let mut known = ids.iter().map(|id| (other, id.clone()));
        if known.any(|id| self.named.contains(&id)) {
            return true;
        }
        let text = text_hash(fields);
        let of_other = self.recent.get_mut(&(other, text));
        let is_paired = of_other.is_some_and(|waiting| {
            let at = waiting
                .iter()
                .position(|has_ids| !*has_ids || ids.is_empty());
            at.map(|at| waiting.swap_remove(at)).is_some()
        });
        if !is_paired {
            let waiting = self.recent.entry((teller, text)).or_default();
            waiting.push(!ids.is_empty());
        }
        self.named.extend(ids.into_iter().map(|id| (teller, id)));
        is_paired
    }

    /// The model has answered: both records of earlier deliveries were seen.
    pub(super) fn answered(&mut self) {
        self.recent.clear();
    }
}

/// The hash of the text, which one record has as a string and the other may have as a block.
fn text_hash(fields: &Fields<'_>) -> u64 {
    let prompt = fields.attachment.and_then(|raw| json::get(raw, "prompt"));
    let content = prompt.or(fields.content).unwrap_or_default();
    let mut blocks = elements(content);
    match (blocks.next(), blocks.next()) {
        (Some(only), None) => json::get(only, "text").map_or(0, hash),
        _ => hash(content),
    }
}
