//! A search that decodes every field with its own parser.

use regex::RegexBuilder;
use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use treelined_core::entry::{Kind, Role};
use treelined_core::search::FieldKind;
use treelined_core::tree::Node;
use treelined_files::log::Log;
use treelined_files::os::file::Location;

/// An entry with all its text.
pub(super) struct ModelEntry {
    pub session: String,
    pub id: String,
    pub role: String,
    pub is_active: bool,
    pub fields: Vec<(FieldKind, String)>,
    /// The texts of the fields, folded.
    pub folded: Vec<String>,
}

/// The entries of all session files below a folder.
pub(super) fn entries(folder: &Path) -> Vec<ModelEntry> {
    let mut all = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "jsonl") {
            continue;
        }
        let Ok(opened) = Log::open(Location::of_path(&path).unwrap()) else {
            continue;
        };
        let tree = &opened.tree;
        let session = opened.log.header().unwrap().id.clone();
        let path: HashSet<Node> = tree.path(tree.leaf()).into_iter().collect();
        let is_step = |node: &Node| !tree.kind(*node).is_bookkeeping();
        let steps = tree.entries().filter(is_step);
        let on_branches: HashSet<Node> = steps.flat_map(|step| tree.path(Some(step))).collect();
        // Bookkeeping without a step below it is on the same branch as the step above it.
        let is_active = |node: Node| match on_branches.contains(&node) {
            true => path.contains(&node),
            false => {
                let above = tree.path(Some(node)).into_iter().rev().find(is_step);
                path.contains(&node) || above.is_none_or(|step| path.contains(&step))
            }
        };
        let bodies = opened.log.bodies();
        for node in tree
            .entries()
            .filter(|node| tree.kind(*node) != Kind::Label)
        {
            let line = bodies.read(tree.place(node)).unwrap();
            let entry = parse(&String::from_utf8_lossy(&line));
            let mut fields = Vec::new();
            text_of(&entry, tree.kind(node), tree.role(node), &mut fields);
            if let Some(label) = tree.label(node) {
                let line = bodies.read(tree.place(label.entry)).unwrap();
                let label = parse(&String::from_utf8_lossy(&line))["label"].clone();
                fields.push((FieldKind::Labels, label.as_str().unwrap().to_owned()));
            }
            let role = entry["message"]["role"].as_str().unwrap_or_default();
            let folded = fields.iter().map(|(_, text)| fold(text)).collect();
            all.push(ModelEntry {
                folded,
                session: session.clone(),
                id: tree.id(node).to_owned(),
                role: role.to_owned(),
                is_active: is_active(node),
                fields,
            });
        }
    }
    all
}

fn text_of(entry: &Value, kind: Kind, role: Role, fields: &mut Vec<(FieldKind, String)>) {
    let mut add = |kind, value: &Value| content(kind, value, fields);
    let message = &entry["message"];
    match kind {
        Kind::Message => {
            let said = match role {
                Role::ToolResult => FieldKind::ToolResults,
                Role::BranchSummary | Role::CompactionSummary => FieldKind::Summaries,
                _ => FieldKind::Text,
            };
            for member in ["content", "errorMessage", "toolName"] {
                add(said, &message[member]);
            }
            add(FieldKind::Summaries, &message["summary"]);
            add(FieldKind::ToolCalls, &message["command"]);
            add(FieldKind::ToolResults, &message["output"]);
        }
        Kind::Compaction | Kind::BranchSummary => add(FieldKind::Summaries, &entry["summary"]),
        Kind::SessionInfo => add(FieldKind::Labels, &entry["name"]),
        Kind::CustomMessage => add(FieldKind::Text, &entry["content"]),
        Kind::Custom => values(FieldKind::Text, &entry["data"], fields),
        Kind::Note => {
            let mut data = entry["data"].clone();
            data.as_object_mut().unwrap().remove("targetId");
            values(FieldKind::Text, &data, fields);
        }
        Kind::ModelChange => {
            add(FieldKind::Text, &entry["provider"]);
            add(FieldKind::Text, &entry["modelId"]);
        }
        Kind::ThinkingLevelChange => add(FieldKind::Text, &entry["thinkingLevel"]),
        _ => {}
    }
}

fn content(kind: FieldKind, value: &Value, fields: &mut Vec<(FieldKind, String)>) {
    match value {
        Value::String(text) => fields.push((kind, text.clone())),
        Value::Array(blocks) => {
            for block in blocks {
                content(kind, &block["text"], fields);
                content(FieldKind::Thinking, &block["thinking"], fields);
                content(FieldKind::ToolCalls, &block["name"], fields);
                values(FieldKind::ToolCalls, &block["arguments"], fields);
            }
        }
        _ => {}
    }
}

fn values(kind: FieldKind, value: &Value, fields: &mut Vec<(FieldKind, String)>) {
    match value {
        Value::String(text) => fields.push((kind, text.clone())),
        Value::Number(number) => fields.push((kind, number.to_string())),
        Value::Array(all) => all.iter().for_each(|value| values(kind, value, fields)),
        Value::Object(members) => members
            .values()
            .for_each(|value| values(kind, value, fields)),
        _ => {}
    }
}

/// The needle of a search of the model.
#[derive(Debug, Clone)]
pub(super) enum Needle {
    Words(Vec<String>),
    Literal(String),
    Regex(String),
}

/// The session and entry ids of the entries that have the needle in these fields.
pub(super) fn find(
    entries: &[ModelEntry],
    needle: &Needle,
    takes: impl Fn(&ModelEntry) -> bool,
    has: impl Fn(FieldKind) -> bool,
) -> BTreeSet<(String, String)> {
    let regex = match needle {
        Needle::Regex(pattern) => {
            let regex = RegexBuilder::new(pattern).multi_line(true).build();
            Some(regex.unwrap())
        }
        _ => None,
    };
    let needle = &match needle {
        Needle::Words(words) => Needle::Words(words.iter().map(|word| fold(word)).collect()),
        other => other.clone(),
    };
    let is_found = |entry: &&ModelEntry| {
        let fields = || entry.fields.iter().filter(|(kind, _)| has(*kind));
        takes(entry)
            && match needle {
                Needle::Words(words) => {
                    let folded = entry.fields.iter().zip(&entry.folded);
                    let is_there = |word: &String| {
                        let mut folded = folded.clone().filter(|((kind, _), _)| has(*kind));
                        folded.any(|(_, text)| text.contains(word))
                    };
                    words.iter().all(is_there)
                }
                Needle::Literal(text) => fields().any(|(_, field)| field.contains(text)),
                Needle::Regex(_) => {
                    fields().any(|(_, field)| regex.as_ref().unwrap().is_match(field))
                }
            }
    };
    let found = entries.iter().filter(is_found);
    found
        .map(|entry| (entry.session.clone(), entry.id.clone()))
        .collect()
}

pub(super) fn fold(text: &str) -> String {
    let upper = text
        .chars()
        .flat_map(char::to_lowercase)
        .flat_map(char::to_uppercase);
    upper.flat_map(char::to_lowercase).collect()
}

/// Parses JSON; lone surrogates become U+FFFD.
fn parse(text: &str) -> Value {
    let chars: Vec<char> = text.chars().collect();
    Parser { chars, at: 0 }.value()
}

struct Parser {
    chars: Vec<char>,
    at: usize,
}

impl Parser {
    fn next(&mut self) -> char {
        self.at += 1;
        self.chars[self.at - 1]
    }

    fn space(&mut self) {
        while self
            .chars
            .get(self.at)
            .is_some_and(|char| char.is_ascii_whitespace())
        {
            self.at += 1;
        }
    }

    fn value(&mut self) -> Value {
        self.space();
        let value = match self.chars[self.at] {
            '{' => self.object(),
            '[' => self.array(),
            '"' => Value::String(self.string()),
            _ => {
                let start = self.at;
                while !matches!(self.chars.get(self.at), None | Some(',' | ']' | '}' | ' ')) {
                    self.at += 1;
                }
                let word: String = self.chars[start..self.at].iter().collect();
                serde_json::from_str(&word).unwrap_or_default()
            }
        };
        self.space();
        value
    }

    fn object(&mut self) -> Value {
        let mut members = Map::new();
        self.at += 1;
        self.space();
        while self.chars[self.at] != '}' {
            self.space();
            let key = self.string();
            self.space();
            assert_eq!(self.next(), ':');
            members.insert(key, self.value());
            if self.chars[self.at] == ',' {
                self.at += 1;
            }
        }
        self.at += 1;
        Value::Object(members)
    }

    fn array(&mut self) -> Value {
        let mut values = Vec::new();
        self.at += 1;
        self.space();
        while self.chars[self.at] != ']' {
            values.push(self.value());
            if self.chars[self.at] == ',' {
                self.at += 1;
            }
        }
        self.at += 1;
        Value::Array(values)
    }

    fn string(&mut self) -> String {
        let mut units: Vec<u16> = Vec::new();
        assert_eq!(self.next(), '"');
        loop {
            match self.next() {
                '"' => break,
                '\\' => units.push(self.escape()),
                char => units.extend(char.encode_utf16(&mut [0; 2]).iter()),
            }
        }
        String::from_utf16_lossy(&units)
    }

    fn escape(&mut self) -> u16 {
        match self.next() {
            'u' => {
                let digits: String = self.chars[self.at..self.at + 4].iter().collect();
                self.at += 4;
                u16::from_str_radix(&digits, 16).unwrap()
            }
            'n' => u16::from(b'\n'),
            't' => u16::from(b'\t'),
            'r' => u16::from(b'\r'),
            'b' => 8,
            'f' => 12,
            char => char as u16,
        }
    }
}
