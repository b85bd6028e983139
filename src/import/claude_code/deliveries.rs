//! Finds messages that the model got while it worked. Two records report the delivery of one such message: an
//! attachment `queued_command` and a `queue-operation` `remove`, in either order. The first of the two records counts.

use super::record::{Fields, boxed, hash};
use crate::message::elements;
use hashbrown::{HashMap, HashSet};
use treelined_core::json;

/// The kind of a record that reports a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Teller {
    Attachment,
    Queue,
}

/// The deliveries that were read so far.
#[derive(Debug, Default)]
pub(super) struct Deliveries {
    /// The ids of deliveries and commands, with the kind of the record that has them.
    named: HashSet<(Teller, Box<str>)>,
    /// The records since the model's last answer whose second record was not read yet. The key is the kind and the hash
    /// of the text. The boolean says whether the record has an id: older versions do not write an id into the `remove`.
    recent: HashMap<(Teller, u64), Vec<bool>>,
}

impl Deliveries {
    /// Reads a record with a message for the model. Returns whether an earlier record of the other kind reports the
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

    /// Notes that the model has answered. By then, both records of every earlier delivery have been read.
    pub(super) fn answered(&mut self) {
        self.recent.clear();
    }
}

/// The hash of the message's text. One record has the text as a string, the other may have it in a block.
fn text_hash(fields: &Fields<'_>) -> u64 {
    let prompt = fields.attachment.and_then(|raw| json::get(raw, "prompt"));
    let content = prompt.or(fields.content).unwrap_or_default();
    let mut blocks = elements(content);
    match (blocks.next(), blocks.next()) {
        (Some(only), None) => json::get(only, "text").map_or(0, hash),
        _ => hash(content),
    }
}
