//! Divides the conversations of exports into groups, because together they may need more memory than there is.

use super::source::facts::Source;
use std::collections::HashMap;
use treelined_core::agent::Tool;

/// The most bytes of an export's conversations that are read together.
const MOST_TOGETHER: u64 = if cfg!(test) { 16 << 10 } else { 32 << 20 };
/// The most conversations of an export that are read together. Each needs some 6 KB until its group is imported.
const MOST_CONVERSATIONS: usize = 1_000;

/// Divides the sources into groups that are read together. The conversations of an export do not refer to each other,
/// and together they may need more memory than there is, so they are in several groups. Copies of one conversation in
/// several exports are in the same group.
pub(super) fn groups(tool: Tool, sources: Vec<Source>) -> Vec<Vec<Source>> {
    if !tool.is_export() {
        return vec![sources];
    }
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut conversations: Vec<Vec<Source>> = Vec::new();
    for source in sources {
        let part = source.part.as_deref().unwrap_or_default();
        let id = part.rsplit_once('~').map_or(part, |(id, _)| id);
        let number = *numbers.entry(id.to_owned()).or_insert(conversations.len());
        match conversations.get_mut(number) {
            Some(versions) => versions.push(source),
            None => conversations.push(vec![source]),
        }
    }
    let mut groups: Vec<Vec<Source>> = Vec::new();
    let mut size = u64::MAX;
    for versions in conversations {
        let added: u64 = versions.iter().map(|source| source.status.size).sum();
        size = size.saturating_add(added);
        let has_room =
            |group: &&mut Vec<Source>| size <= MOST_TOGETHER && group.len() < MOST_CONVERSATIONS;
        match groups.last_mut().filter(has_room) {
            Some(group) => group.extend(versions),
            None => {
                size = added;
                groups.push(versions);
            }
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::importer::source::facts::{Medium, SourceStatus};
    use crate::records::Layout;
    use treelined_files::os::file::Identity;

    fn source(part: String) -> Source {
        Source {
            tool: Tool::ChatGpt,
            path: "/home/ada/conversations.json".into(),
            part: Some(part),
            status: SourceStatus {
                size: 1,
                modified: (0, 0),
                identity: Identity {
                    device: 0,
                    inode: 0,
                },
                version: 0,
            },
            medium: Medium::Plain(Layout::Lines),
            side_files: Vec::new(),
            kept: None,
        }
    }

    /// Once the groups of an export had only the limit of 32 MiB. With short conversations, such a group needed more
    /// memory than the rest of the import.
    #[test]
    fn a_group_has_few_conversations_however_short_they_are() {
        let count = 5 * MOST_CONVERSATIONS;
        let sources = (0..count).map(|number| source(format!("c{number}")));
        let groups = groups(Tool::ChatGpt, sources.collect());
        assert_eq!(groups.iter().map(Vec::len).sum::<usize>(), count);
        assert!(groups.iter().all(|group| group.len() <= MOST_CONVERSATIONS));
    }

    #[test]
    fn versions_of_a_conversation_are_in_one_group() {
        let last = MOST_CONVERSATIONS - 1;
        let mut sources: Vec<Source> = (0..=last)
            .map(|number| source(format!("c{number}")))
            .collect();
        sources.extend([source(format!("c{last}~2")), source("other".to_owned())]);
        let groups = groups(Tool::ChatGpt, sources);
        let is_there = |part: &str| {
            let has = |source: &Source| source.part.as_deref() == Some(part);
            groups.iter().position(|group| group.iter().any(has))
        };
        assert_eq!(
            is_there(&format!("c{last}")),
            is_there(&format!("c{last}~2"))
        );
    }
}
