//! The records of branches whose lines are in the cold file (session-file.md §4.10).

use super::{IdAllocator, leaf};
use crate::defect::breaks;
use crate::entry::{KEEP, LEAF_RECORD, SHED};
use crate::id::Source;
use crate::json;
use crate::tree::{Node, Tree};

/// The facts about a branch in its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShedBranch {
    /// The id of the first entry.
    pub entry_id: String,
    /// The id of the entry above the branch; `None` for a root.
    pub fork_id: Option<String>,
    /// The number of entries.
    pub entries: u64,
    /// The number of bytes of their lines, with line breaks.
    pub bytes: u64,
    /// The name of the branch.
    pub name: Option<String>,
    /// The text of the first message of the user, cut.
    pub first_prompt: Option<String>,
    /// The SHA-256 of the lines, in hexadecimal digits.
    pub sha256: String,
}

impl ShedBranch {
    /// Reads the line of a record.
    pub fn of_record(line: &[u8]) -> Option<Self> {
        let data = json::get(line, "data")?;
        let [entry, fork, entries, bytes, name, prompt, sha256] = json::get_each(
            data,
            [
                "entryId",
                "forkId",
                "entries",
                "bytes",
                "name",
                "firstPrompt",
                "sha256",
            ],
        );
        let text = |raw: Option<&[u8]>| raw.and_then(json::string).map(Into::into);
        let number = |raw: Option<&[u8]>| std::str::from_utf8(raw?).ok()?.parse().ok();
        Some(Self {
            entry_id: json::id(entry?)?.into_owned(),
            fork_id: fork.and_then(json::id).map(Into::into),
            entries: number(entries)?,
            bytes: number(bytes)?,
            name: text(name),
            first_prompt: text(prompt),
            sha256: text(sha256)?,
        })
    }

    fn data(&self) -> Vec<u8> {
        let mut data = b"{\"entryId\":".to_vec();
        json::push_string(&mut data, &self.entry_id);
        data.extend_from_slice(b",\"forkId\":");
        data.extend_from_slice(&json::quoted_or_null(self.fork_id.as_deref()));
        let counts = format!(",\"entries\":{},\"bytes\":{}", self.entries, self.bytes);
        data.extend_from_slice(counts.as_bytes());
        let texts = [("name", &self.name), ("firstPrompt", &self.first_prompt)];
        for (name, text) in texts {
            if let Some(text) = text {
                data.extend_from_slice(format!(",\"{name}\":").as_bytes());
                json::push_string(&mut data, text);
            }
        }
        data.extend_from_slice(b",\"sha256\":");
        json::push_string(&mut data, &self.sha256);
        data.push(b'}');
        data
    }
}

/// The records of these branches, without line breaks.
pub fn records(tree: &Tree, source: &dyn Source, branches: &[ShedBranch]) -> Vec<Vec<u8>> {
    let mut minter = IdAllocator::new(tree, source);
    let at = tree.file_leaf().map(|leaf| tree.id(leaf));
    let missing = breaks("Each branch in the cold file has a record in the session file");
    let lines = branches.iter().skip(usize::from(missing));
    lines
        .map(|branch| leaf::record_line(&mut minter, SHED, at, &branch.data()))
        .collect()
}

/// The line that replaces a record when its branch comes back, if other lines name the record. This line is a leaf
/// record with the same id and position that moves nothing.
pub fn left_record(record: &[u8]) -> Option<Vec<u8>> {
    let [id, parent, timestamp] = json::get_each(record, ["id", "parentId", "timestamp"]);
    let (id, timestamp) = (id?, timestamp?);
    let position = parent.unwrap_or(b"null");
    let start = format!("{{\"type\":\"custom\",\"customType\":\"{LEAF_RECORD}\",\"id\":");
    let end = format!(",\"cause\":\"{KEEP}\"}}}}");
    let parts: [&[u8]; 9] = [
        start.as_bytes(),
        id,
        b",\"parentId\":",
        position,
        b",\"timestamp\":",
        timestamp,
        b",\"data\":{\"from\":",
        position,
        end.as_bytes(),
    ];
    Some(parts.concat())
}

/// The id of the entry above a branch.
pub fn fork_id(tree: &Tree, head: Node) -> Option<String> {
    tree.parent(head).map(|above| tree.id(above).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_says_what_it_was_made_of() {
        for text in [None, Some("left \"one\"".to_owned())] {
            let branch = ShedBranch {
                entry_id: "u\"2".to_owned(),
                fork_id: text.clone(),
                entries: 3,
                bytes: 1 << 40,
                name: text.clone(),
                first_prompt: text,
                sha256: "00".to_owned(),
            };
            let data = String::from_utf8(branch.data()).unwrap();
            let line = format!(r#"{{"type":"custom","data":{data}}}"#);
            assert_eq!(ShedBranch::of_record(line.as_bytes()), Some(branch));
        }
    }
}
