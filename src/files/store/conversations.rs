//! Finds sessions that have the same conversation of an agent: its recording, and its import
//! (protocol.md §3.4).

use crate::store::catalogue::CatalogueRow;
use crate::store::listing::Listing;
use std::collections::HashMap;
use std::sync::Arc;

/// The most other sessions that are named for one session.
const MOST_OTHERS: usize = 64;
/// The longest id, in bytes, of a session that is named.
const MOST_ID_BYTES: usize = 256;

/// The sessions that have each recorded conversation, by the id that the agent gave to it.
#[derive(Debug, Default)]
pub struct Conversations(HashMap<String, Vec<String>>);

impl Conversations {
    pub fn of(rows: &[Arc<CatalogueRow>]) -> Self {
        let recorded = rows.iter().flat_map(|row| &row.listing.recorded);
        let mut sessions: HashMap<String, Vec<String>> = recorded
            .map(|record| (record.native_id.clone(), Vec::new()))
            .collect();
        if sessions.is_empty() {
            return Self::default();
        }
        for row in rows {
            let Some(id) = short_id(&row.listing) else {
                continue;
            };
            for native in natives(&row.listing) {
                if let Some(ids) = sessions.get_mut(native)
                    && ids.last().is_none_or(|last| last != id)
                {
                    ids.push(id.to_owned());
                }
            }
        }
        Self(sessions)
    }

    /// The ids of the other sessions that have the same conversations.
    pub fn others(&self, row: &Listing) -> Vec<String> {
        let own = short_id(row);
        let mut others: Vec<String> = Vec::new();
        for id in natives(row)
            .filter_map(|native| self.0.get(native))
            .flatten()
        {
            if others.len() == MOST_OTHERS {
                break;
            }
            if Some(id.as_str()) != own && !others.contains(id) {
                others.push(id.clone());
            }
        }
        others
    }
}

fn short_id(row: &Listing) -> Option<&str> {
    let id = row.header.as_ref().map(|header| header.id.as_str());
    id.filter(|id| id.len() <= MOST_ID_BYTES)
}

fn natives(row: &Listing) -> impl Iterator<Item = &str> {
    let imported = row.source.iter().flat_map(|source| &source.native_ids);
    let recorded = row.recorded.iter().map(|record| &record.native_id);
    imported.chain(recorded).map(String::as_str)
}
