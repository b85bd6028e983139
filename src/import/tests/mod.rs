//! Reads sources in tests, and draws their nodes as text.

pub(crate) mod cuts;
mod hostile;
pub(crate) mod scanning;
pub(crate) mod testing;

use super::member::{Member, NodeKind, Parent, Record};
use super::reader::Format;
use serde_json::Value;

/// A member with the bodies of its nodes, as JSON.
pub(crate) struct MappedMember {
    pub(crate) member: Member,
    pub(crate) bodies: Vec<Value>,
}

/// The members of a source of lines. Checks the properties of every source's nodes.
pub(crate) fn imported(format: &dyn Format, path: &str, lines: &[u8]) -> Vec<MappedMember> {
    let mut reader = format.reader(path);
    let mut at = 0;
    for (number, line) in (0..).zip(lines.split_inclusive(|byte| *byte == b'\n')) {
        let bytes = line.strip_suffix(b"\n").unwrap_or(line);
        reader.record(Record { at, number, bytes });
        at += line.len() as u64;
    }
    let members = reader.finish().into_iter();
    members
        .map(|member| MappedMember {
            bodies: bodies(format, &member, lines),
            member,
        })
        .collect()
}

fn bodies(format: &dyn Format, member: &Member, lines: &[u8]) -> Vec<Value> {
    let mut keys = std::collections::HashSet::new();
    let nodes = member.nodes.iter().enumerate();
    nodes
        .map(|(index, node)| {
            assert!(keys.insert(&node.key), "two nodes {}", node.key);
            if let Parent::Node(parent) = node.parent {
                assert!((parent as usize) < index, "{} before its parent", node.key);
            }
            if let NodeKind::Compaction {
                first_kept: Some(kept),
            } = node.kind
            {
                assert!((kept as usize) < index, "{} keeps a later node", node.key);
            }
            let bytes = node.places.iter().map(|place| {
                let at = place.at as usize;
                &lines[at..at + place.len as usize]
            });
            let body = format.body(member, node, &bytes.collect::<Vec<_>>());
            let entry = [
                br#"{"type":""#,
                body.kind.as_bytes(),
                b"\"",
                &body.members,
                b"}",
            ]
            .concat();
            assert!(!entry.contains(&b'\n'), "an entry of two lines");
            treelined_core::json::value_span(&entry).expect("JSON");
            if let Some(message) = treelined_core::json::get(&entry, "message") {
                treelined_core::shape::check_message(message).unwrap_or_else(|fault| {
                    panic!(
                        "{} {}: {}",
                        node.key,
                        fault.member,
                        String::from_utf8_lossy(message)
                    )
                });
            }
            let text = String::from_utf8_lossy(&entry).replace("\\ud", "\\\\ud");
            serde_json::from_str(&text).expect("JSON")
        })
        .collect()
}

impl MappedMember {
    /// A line for each node: its index, parent and kind, and its text, calls and errors. `…` marks an open node, `*`
    /// the leaf.
    pub(crate) fn drawn(&self) -> String {
        let nodes = self.member.nodes.iter().zip(&self.bodies).enumerate();
        let lines = nodes.map(|(index, (node, body))| {
            let parent = match &node.parent {
                Parent::Base => "-".into(),
                Parent::Node(parent) => parent.to_string(),
                Parent::Key(key) => key.to_string(),
            };
            let kind = match &node.kind {
                NodeKind::Compaction {
                    first_kept: Some(kept),
                } => format!("compaction from {kept}"),
                NodeKind::Compaction { .. } => "compaction".into(),
                NodeKind::Subagent { native_id } => format!("subagent {native_id}"),
                kind => format!("{kind:?}").to_lowercase(),
            };
            let is_leaf = self.member.leaf == Some(index as u32);
            let marks = format!(
                "{}{}",
                if node.is_open { "…" } else { "" },
                if is_leaf { "*" } else { "" }
            );
            let line = format!("{index} {parent} {kind} {}", said(body));
            format!("{}{marks}", line.trim_end())
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// The texts and calls of an entry.
fn said(entry: &Value) -> String {
    let message = &entry["message"];
    let content = [&message["content"], &entry["content"], &entry["summary"]];
    let mut words: Vec<String> = Vec::new();
    for content in content {
        words.extend(content.as_str().map(str::to_owned));
        for block in content.as_array().into_iter().flatten() {
            let text = |name: &str| block[name].as_str().unwrap_or_default();
            words.push(match text("type") {
                "text" => text("text").to_owned(),
                "thinking" => format!("({})", text("thinking")),
                "image" => format!("[{}]", text("mimeType")),
                "toolCall" => format!("{}{}", text("name"), block["arguments"]),
                other => format!("?{other}"),
            });
        }
    }
    let error = message["errorMessage"]
        .as_str()
        .map(|error| format!("!{error}"));
    words.extend(error);
    words.extend((message["isError"] == true).then(|| "!".to_owned()));
    words.join(" ")
}
