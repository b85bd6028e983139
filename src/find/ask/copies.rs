//! Entries that two sessions have because both have the same conversation: its recording, and its import
//! (protocol.md §3.4).

use super::answer::RankedHit;
use std::collections::{HashMap, HashSet};
use treelined_core::error::Result;
use treelined_files::store::Store;
use treelined_files::store::conversations::Conversations;

/// Removes a hit if an earlier hit, in another session with the same conversation, has the same text. Each hit has the
/// number of its file.
pub(super) fn remove(hits: &mut Vec<(usize, RankedHit)>, store: &Store) -> Result<()> {
    let mut first: HashMap<&str, usize> = HashMap::new();
    let mut shared: HashSet<&str> = HashSet::new();
    for (file, RankedHit { hit, .. }) in &*hits {
        let text = hit.excerpt.text.as_str();
        if first.get(text).is_some_and(|first| first != file) {
            shared.insert(text);
        }
        first.entry(text).or_insert(*file);
    }
    // Most rankings end here, without the rows of all sessions.
    if shared.is_empty() {
        return Ok(());
    }
    let with_shared = |(_, one): &&(usize, RankedHit)| shared.contains(&*one.hit.excerpt.text);
    let of_shared = hits.iter().filter(with_shared);
    let sessions: HashSet<&str> = of_shared.map(|(_, one)| &*one.hit.session_id).collect();
    let rows = store.rows()?;
    let conversations = Conversations::of(&rows);
    let others: HashMap<String, Vec<String>> = rows
        .iter()
        .filter_map(|row| {
            let id = &row.listing.header.as_ref()?.id;
            let is_wanted = sessions.contains(id.as_str());
            is_wanted.then(|| (id.clone(), conversations.others(&row.listing)))
        })
        .collect();
    let mut seen: HashMap<String, Vec<String>> = HashMap::new();
    hits.retain(|(_, RankedHit { hit, .. })| {
        let Some(others) = others.get(&hit.session_id) else {
            return true;
        };
        let sessions = seen.entry(hit.excerpt.text.clone()).or_default();
        let is_copy = sessions.iter().any(|session| others.contains(session));
        if !is_copy {
            sessions.push(hit.session_id.clone());
        }
        !is_copy
    });
    Ok(())
}
