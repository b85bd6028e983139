//! Tests the view as a whole, from stored lines to the rows that a client gets.

mod extend;
mod left;
mod preview;
mod rows;
mod shape;

use super::*;
use crate::entry::Line;
use crate::entry::scan::scan_line;
use crate::search::{Matcher, Mode, Query};
use crate::tree::{FilePlace, Flags, Node, Tree};
use serde_json::Value;

/// A tree with its lines.
struct Session {
    tree: Tree,
    lines: Vec<String>,
}

impl Session {
    /// Each line is an entry; the last one is the leaf.
    fn of(lines: impl IntoIterator<Item = String>) -> Self {
        let mut session = Session {
            tree: Tree::new(),
            lines: Vec::new(),
        };
        lines.into_iter().for_each(|line| session.append(line));
        session
    }

    /// Appends an entry and moves the leaf to it.
    fn append(&mut self, text: String) {
        let Ok(Line::Entry(envelope)) = scan_line(text.as_bytes()) else {
            panic!("no entry: {text}");
        };
        let id = envelope.id.clone().unwrap();
        let place = FilePlace {
            offset: self.lines.len() as u64,
            len: text.len() as u32,
        };
        let (line, flags) = (place.offset + 1, Flags::NONE);
        let tree = &mut self.tree;
        let last = tree.insert(&id, &envelope.parent, &envelope, place, flags, line);
        tree.set_leaf(last.map(|last| last.node));
        self.lines.push(text);
    }

    fn node(&self, id: &str) -> Node {
        self.tree.find(id).unwrap()
    }

    fn stored(&self, place: FilePlace) -> &[u8] {
        self.lines[place.offset as usize].as_bytes()
    }

    fn facts(&self, entry: &Entry<'_>) -> RowFacts<'_> {
        self.facts_for(entry.place, entry.subject())
    }

    fn facts_for(&self, place: FilePlace, subject: Subject) -> RowFacts<'_> {
        let stored = self.stored(place);
        let head = stored.get(..FIRST_READ).unwrap_or(stored);
        RowFacts::of_head(head, subject).unwrap_or_else(|| RowFacts::of_line(stored, subject))
    }

    /// The call that a tool result answers.
    fn call(&self, outline: &Outline, item: usize, facts: &RowFacts<'_>) -> Option<ToolCall<'_>> {
        let id = facts.tool_call_id.as_deref()?;
        let mut callers = outline.callers(item);
        callers.find_map(|caller| {
            let facts = self.facts_for(caller.place(), caller.subject());
            facts.calls.into_iter().find(|call| call.id == id)
        })
    }

    /// The whole view, made by the steps in the module's documentation.
    fn view(&self, ask: &Ask<'_>) -> View {
        let outline = Outline::new(&self.tree, ask.scope);
        let query = Query::parse(ask.query, Mode::Words).unwrap();
        let matched = query.map(|query| {
            let snapshot = Snapshot::take(&self.tree, &outline, outline.kept());
            let mut matched = vec![false; outline.items().len()];
            for item in outline.kept() {
                let entry = snapshot.entry(item).unwrap();
                let mut matcher = Matcher::new(&query);
                for text in [entry.label, entry.role.name()].into_iter().flatten() {
                    let _seen = matcher.see(text);
                }
                matcher.see_line(self.stored(entry.place), entry.kind);
                matched[item] = matcher.is_match();
            }
            matched
        });
        let folding = Folding {
            folded: ask.fold.iter().map(|id| self.node(id)).collect(),
            left: ask.left.map(|[expand, each]| Left {
                expand: expand.iter().map(|id| self.node(id)).collect(),
                each: each.iter().map(|id| self.node(id)).collect(),
            }),
            max_depth: ask.max_depth,
        };
        let visible = Visible::new(&outline, matched.as_deref(), &folding);
        let start = match ask.around {
            Some(id) => {
                let item = outline.find(self.node(id)).unwrap();
                Start::Around(visible.row_near(item).unwrap_or(0))
            }
            None => Start::Offset(ask.offset),
        };
        let page = page_range(visible.total(), start, ask.limit);
        let snapshot = Snapshot::take(&self.tree, &outline, visible.items_of(page.clone()));
        let rows = visible.served(&snapshot, page.clone()).map(|served| {
            let mut out = Vec::new();
            let facts = self.facts(&served.entry);
            if let Some(folded) = served.folded {
                let preview = folded.preview(&[facts.preview.to_string()], None);
                served.push_folded(&mut out, &facts, &preview, ask.guides);
                return serde_json::from_slice(&out).unwrap();
            }
            let call = self.call(&outline, served.row.item(), &facts);
            let look = RowLook::default();
            let parts = RowParts {
                call: call.as_ref(),
                ..RowParts::plain(&facts, &look, "")
            };
            served.push_json(&mut out, parts, ask.guides);
            serde_json::from_slice(&out).unwrap()
        });
        let mut root_ids = Vec::new();
        visible.push_root_ids(&mut root_ids, &snapshot);
        View {
            rows: rows.collect(),
            root_ids: serde_json::from_slice(&root_ids).unwrap(),
            total: visible.total(),
            hidden: visible.hidden(),
            offset: page.start,
        }
    }
}

#[derive(Clone, Default)]
struct Ask<'a> {
    scope: Scope,
    query: &'a str,
    fold: &'a [&'a str],
    /// The ids of `expand` and of `each`.
    left: Option<[&'a [&'a str]; 2]>,
    max_depth: Option<u64>,
    guides: Option<Guides>,
    offset: u64,
    around: Option<&'a str>,
    limit: Option<usize>,
}

impl Ask<'_> {
    fn filter(filter: Filter) -> Self {
        Ask {
            scope: Scope {
                filter,
                ..Scope::default()
            },
            guides: Some(Guides::new(Render::Unicode, None)),
            ..Ask::default()
        }
    }
}

#[derive(Debug, PartialEq)]
struct View {
    rows: Vec<Value>,
    root_ids: Vec<String>,
    total: usize,
    hidden: usize,
    offset: usize,
}

impl View {
    fn ids(&self) -> String {
        let ids = self.rows.iter().map(|row| row["id"].as_str().unwrap());
        ids.collect::<Vec<_>>().join(" ")
    }

    /// The rows as a terminal shows them.
    fn drawn(&self) -> String {
        let lines = self.rows.iter().map(|row| {
            let prefix = row["prefix"].as_str().unwrap();
            format!("{prefix}{}\n", row["id"].as_str().unwrap())
        });
        lines.collect()
    }

    /// The ids of the rows in which a member is true.
    fn marked(&self, member: &str) -> String {
        let rows = self.rows.iter().filter(|row| row[member] == true);
        let ids = rows.map(|row| row["id"].as_str().unwrap());
        ids.collect::<Vec<_>>().join(" ")
    }
}

fn parent_literal(parent: &str) -> String {
    if parent.is_empty() {
        "null".into()
    } else {
        format!("\"{parent}\"")
    }
}

/// An entry at second `at`; `rest` follows its envelope. Without a parent it is a root.
fn entry(id: &str, parent: &str, at: u32, kind: &str, rest: &str) -> String {
    let parent = parent_literal(parent);
    format!(
        r#"{{"type":"{kind}","id":"{id}","parentId":{parent},"timestamp":"2025-01-01T00:00:{at:02}.000Z"{rest}}}"#
    )
}

fn user(id: &str, parent: &str, at: u32, text: &str) -> String {
    let rest = format!(r#","message":{{"role":"user","content":"{text}"}}"#);
    entry(id, parent, at, "message", &rest)
}

fn message(id: &str, parent: &str, at: u32, message: &str) -> String {
    entry(
        id,
        parent,
        at,
        "message",
        &format!(r#","message":{{{message}}}"#),
    )
}
