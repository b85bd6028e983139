//! Compares the shape of the visible tree with a naive recursive model, on random small trees, and on
//! trees of 1,000,000 entries.

use super::*;
use crate::entry::{Envelope, Facts, Kind, MessageTime, Parent, Role};
use proptest::prelude::*;
use serde_json::json;
use std::borrow::Cow;
use std::convert::Infallible;

/// An entry of the model.
#[derive(Debug, Clone)]
struct Spec {
    /// The index of the parent among the entries before it, from 1; 0 for a root.
    parent: usize,
    second: u32,
    is_user: bool,
    is_odd: bool,
    is_labeled: bool,
}

fn specs() -> impl Strategy<Value = Vec<Spec>> {
    let spec = (
        0..1000usize,
        0..3u32,
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
    );
    prop::collection::vec(spec, 1..24).prop_map(|specs| {
        let specs = specs.into_iter().enumerate();
        specs
            .map(|(at, (parent, second, is_user, is_odd, is_labeled))| Spec {
                // Half of the entries continue the previous one, so that trees are deep as well as wide.
                parent: if parent % 2 == 0 {
                    at
                } else {
                    parent % (at + 1)
                },
                second,
                is_user,
                is_odd,
                is_labeled,
            })
            .collect()
    })
}

/// The naive model: the rules of protocol.md §6, by recursion.
struct Model {
    specs: Vec<Spec>,
    leaf: usize,
    ask: ModelAsk,
    rows: Vec<Value>,
}

#[derive(Debug, Clone)]
struct ModelAsk {
    root: Option<usize>,
    filter: Filter,
    is_odd_only: bool,
    active_first: bool,
    fold: Vec<usize>,
    max_depth: Option<u64>,
}

impl Model {
    /// Entries are numbered from 1.
    fn spec(&self, at: usize) -> &Spec {
        &self.specs[at - 1]
    }

    fn above(&self, at: usize) -> Vec<usize> {
        let mut path = vec![at];
        while self.spec(path[path.len() - 1]).parent != 0 {
            path.push(self.spec(path[path.len() - 1]).parent);
        }
        path
    }

    fn is_visible(&self, at: usize) -> bool {
        let spec = self.spec(at);
        let kept = match self.ask.filter {
            Filter::UserOnly => spec.is_user,
            Filter::LabeledOnly => spec.is_labeled,
            _ => true,
        };
        kept && (spec.is_odd || !self.ask.is_odd_only)
    }

    fn children(&self, at: usize) -> Vec<usize> {
        let all = 1..=self.specs.len();
        let mut children: Vec<usize> = all.filter(|child| self.spec(*child).parent == at).collect();
        children.sort_by_key(|child| self.spec(*child).second);
        if self.ask.active_first {
            let path = self.above(self.leaf);
            children.sort_by_key(|child| !path.contains(child));
        }
        children
    }

    fn visible_below(&self, among: Vec<usize>) -> Vec<usize> {
        let mut found = Vec::new();
        for at in among {
            if self.is_visible(at) {
                found.push(at);
            } else {
                found.extend(self.visible_below(self.children(at)));
            }
        }
        found
    }

    /// `lead` is the prefix of every line of this part.
    fn show(&mut self, siblings: &[usize], parent: Option<usize>, depth: u64, lead: &str) {
        for (number, &at) in siblings.iter().enumerate() {
            if self.ask.max_depth.is_some_and(|max| depth > max) {
                return;
            }
            let (own, below) = match (siblings.len(), number + 1 == siblings.len()) {
                (1, _) => (lead.to_owned(), lead.to_owned()),
                (_, true) => (format!("{lead}└─ "), format!("{lead}   ")),
                (_, false) => (format!("{lead}├─ "), format!("{lead}│  ")),
            };
            let children = self.visible_below(self.children(at));
            let is_active = self.above(self.leaf).contains(&at);
            self.rows.push(json!({
                "id": format!("n{at}"),
                "parentId": parent.map(|parent| format!("n{parent}")),
                "childCount": children.len(),
                "depth": depth,
                "indent": own.chars().count() / 3,
                "onActivePath": is_active,
                "isBranchPoint": children.len() > 1,
                "prefix": own,
            }));
            if !self.ask.fold.contains(&at) {
                self.show(&children, Some(at), depth + 1, &below);
            }
        }
    }

    fn count(&self, at: usize) -> (usize, usize) {
        let (mut all, mut hidden) = (1, usize::from(!self.is_visible(at)));
        for child in self.children(at) {
            let below = self.count(child);
            (all, hidden) = (all + below.0, hidden + below.1);
        }
        (all, hidden)
    }
}

fn session(specs: &[Spec], leaf: usize) -> Session {
    let mut lines = Vec::new();
    for (number, spec) in specs.iter().enumerate() {
        let parent = match spec.parent {
            0 => String::new(),
            parent => format!("n{parent}"),
        };
        let role = if spec.is_user { "user" } else { "assistant" };
        let text = if spec.is_odd { "An Odd one" } else { "even" };
        let rest = format!(r#""role":"{role}","content":"{text}""#);
        lines.push(message(
            &format!("n{}", number + 1),
            &parent,
            spec.second,
            &rest,
        ));
    }
    let mut session = Session::of(lines);
    let labeled = specs.iter().enumerate().filter(|(_, spec)| spec.is_labeled);
    for (number, _) in labeled {
        // A label is not an entry, so the model needs no change.
        let label = Envelope {
            kind: Kind::LeafRecord,
            id: None,
            parent: Parent::Null,
            timestamp: None,
            facts: Facts::Label {
                target_id: Some(format!("n{}", number + 1).into()),
                label: Some(Cow::Borrowed("here")),
            },
            background: None,
            copied_from: None,
            odd: false,
        };
        let place = FilePlace { offset: 0, len: 0 };
        let id = format!("l{number}");
        let tree = &mut session.tree;
        tree.insert(&id, &Parent::Null, &label, place, Flags::NONE, 0)
            .unwrap();
    }
    let leaf = session.node(&format!("n{leaf}"));
    session.tree.set_leaf(Some(leaf));
    session
}

fn asks() -> impl Strategy<Value = ModelAsk> {
    let filter = prop_oneof![
        Just(Filter::All),
        Just(Filter::Default),
        Just(Filter::UserOnly),
        Just(Filter::LabeledOnly)
    ];
    let root = prop::option::weighted(0.3, 0..1000usize);
    let fold = prop::collection::vec(0..1000usize, 0..3);
    let max_depth = prop::option::weighted(0.3, 0..5u64);
    (root, filter, any::<bool>(), any::<bool>(), fold, max_depth).prop_map(
        |(root, filter, is_odd_only, active_first, fold, max_depth)| ModelAsk {
            root,
            filter,
            is_odd_only,
            active_first,
            fold,
            max_depth,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_the_model(specs in specs(), leaf in 0..1000usize, mut ask in asks()) {
        let count = specs.len();
        let number = |any: usize| any % count + 1;
        let leaf = number(leaf);
        ask.root = ask.root.map(number);
        ask.fold.iter_mut().for_each(|at| *at = number(*at));
        let session = session(&specs, leaf);
        let fold: Vec<String> = ask.fold.iter().map(|at| format!("n{at}")).collect();
        let fold: Vec<&str> = fold.iter().map(String::as_str).collect();
        let got = session.view(&Ask {
            scope: Scope {
                root: ask.root.map(|at| session.node(&format!("n{at}"))),
                filter: ask.filter,
                order: if ask.active_first { Order::ActiveFirst } else { Order::Time },
                active_last: false,
 archived: false,
            },
            query: if ask.is_odd_only { "one  ODD" } else { " " },
            fold: &fold,
            max_depth: ask.max_depth,
            guides: Some(Guides::new(Render::Unicode, None)),
            ..Ask::default()
        });

        let mut model = Model { specs, leaf, ask, rows: Vec::new() };
        let scope = match model.ask.root {
            Some(root) => vec![root],
            None => model.children(0),
        };
        let roots = model.visible_below(scope.clone());
        model.show(&roots, None, 0, "");
        let root_ids: Vec<String> = roots.iter().map(|at| format!("n{at}")).collect();
        prop_assert_eq!(&got.root_ids, &root_ids);
        prop_assert_eq!(got.total, model.rows.len());
        let hidden: usize = scope.iter().map(|at| model.count(*at).1).sum();
        prop_assert_eq!(got.hidden, hidden);
        // The leaf is in scope if the path to it leads through the scope's root.
        let path = model.above(leaf);
        let in_scope = path.iter().position(|at| model.ask.root == Some(*at) );
        let upwards = &path[..in_scope.map_or(path.len(), |at| at + 1)];
        let shown: Vec<String> = upwards.iter().map(|at| format!("n{at}")).collect();
        let leaf_row = shown.iter().find(|id| model.rows.iter().any(|row| row["id"] == **id));
        let leaf_row = leaf_row.filter(|_| model.ask.root.is_none() || in_scope.is_some());
        for (got, expected) in got.rows.iter().zip(&model.rows) {
            for (member, value) in expected.as_object().unwrap() {
                prop_assert_eq!(&got[member], value, "{} of {}", member, expected);
            }
            prop_assert_eq!(got["isLeaf"] == true, got["id"].as_str() == leaf_row.map(String::as_str));
        }
    }
}

const MILLION: usize = 1_000_000;

/// Entries by the number of their parent; the last one is the leaf.
pub(super) fn large(count: usize, parent: impl Fn(usize) -> Option<usize>) -> Tree {
    let mut tree = Tree::new();
    let mut last = None;
    for number in 0..count {
        let parent = parent(number);
        let parent = parent.map_or(Parent::Null, |at| Parent::Id(format!("{at:x}").into()));
        let envelope = Envelope {
            kind: Kind::Message,
            id: None,
            parent: Parent::Null,
            timestamp: None,
            facts: Facts::Message {
                role: Role::User,
                silent: false,
                is_error: false,
                tool_name: None,
                said: MessageTime::Never,
            },
            background: None,
            copied_from: None,
            odd: false,
        };
        let place = FilePlace { offset: 0, len: 0 };
        let id = format!("{number:x}");
        last = tree.insert(&id, &parent, &envelope, place, Flags::NONE, 0);
    }
    tree.set_leaf(last.map(|last| last.node));
    tree
}

/// The last rows of the whole tree.
fn tail(tree: &Tree, count: usize) -> Vec<Value> {
    let outline = Outline::new(tree, Scope::default());
    let visible = Visible::new(&outline, None, &Folding::default());
    let page = visible.total() - count..visible.total();
    let snapshot = Snapshot::take(tree, &outline, visible.items_of(page.clone()));
    let rows = visible.served(&snapshot, page).map(|served| {
        let mut out = Vec::new();
        let (facts, look) = (RowFacts::default(), RowLook::default());
        let parts = RowParts::plain(&facts, &look, "");
        served.push_json(&mut out, parts, Some(Guides::new(Render::Unicode, None)));
        serde_json::from_slice(&out).unwrap()
    });
    rows.collect()
}

#[test]
fn a_chain_of_a_million() {
    let rows = tail(&large(MILLION, |at| at.checked_sub(1)), 2);
    assert_eq!(rows[1]["depth"], MILLION - 1);
    assert_eq!(rows[1]["indent"], 0);
    assert_eq!(rows[1]["prefix"], "");
    assert_eq!(rows[1]["isLeaf"], true);
    assert_eq!(rows[0]["onActivePath"], true);
    assert_eq!(rows[0]["childCount"], 1);
}

#[test]
fn a_million_children() {
    let rows = tail(&large(MILLION, |at| (at > 0).then_some(0)), 2);
    assert_eq!(rows[0]["prefix"], "├─ ");
    assert_eq!(rows[1]["prefix"], "└─ ");
    assert_eq!(rows[1]["parentId"], "0");
    assert_eq!(rows[1]["depth"], 1);
}

/// Every second entry begins a branch, so the indent is 20,000.
#[test]
fn guides_at_any_depth_keep_their_right_end() {
    let rows = tail(
        &large(40_001, |at| (at > 0).then(|| (at - 1) / 2 * 2)),
        40_001,
    );
    for row in &rows {
        let prefix = row["prefix"].as_str().unwrap();
        let columns = prefix.chars().count();
        match row["indent"].as_u64().unwrap() {
            indent @ ..=21 => assert_eq!(columns as u64, indent * 3),
            indent => assert!(
                columns == 63
                    && prefix.starts_with(&format!("…{}", indent - 20 + u64::from(indent > 119)))
            ),
        }
    }
    let deepest = rows
        .iter()
        .max_by_key(|row| row["indent"].as_u64())
        .unwrap();
    assert_eq!(deepest["indent"], 20_000);
    // On the way down each sibling is older, so no guide line continues.
    let last = format!("…19981{}└─ ", "   ".repeat(18));
    assert_eq!(deepest["prefix"], last);
}

#[test]
fn nesting_has_its_limits() {
    let check = |count: usize, max_depth: Option<u64>| {
        let tree = large(count, |at| at.checked_sub(1));
        let outline = Outline::new(&tree, Scope::default());
        let folding = Folding {
            max_depth,
            ..Folding::default()
        };
        nested::check_depth(&Visible::new(&outline, None, &folding), max_depth)
    };
    let too_deep = |depth, limit| Err(nested::TooDeep { depth, limit });
    assert_eq!(check(257, None), Ok(()));
    assert_eq!(check(258, None), too_deep(257, 256));
    assert_eq!(check(258, Some(300)), Ok(()));
    assert_eq!(check(20_000, Some(100)), Ok(()));
    assert_eq!(check(20_000, Some(10_000)), Ok(()));
    assert_eq!(check(20_000, Some(1 << 40)), too_deep(19_999, 10_000));
    assert_eq!(check(0, None), Ok(()));
}

/// The deepest nesting overflows neither the writer nor a parser with a depth limit.
#[test]
fn nested_is_balanced_at_full_depth() {
    let tree = large(10_001, |at| at.checked_sub(1));
    let outline = Outline::new(&tree, Scope::default());
    let visible = Visible::new(&outline, None, &Folding::default());
    let items = visible.items_of(0..visible.total());
    let snapshot = Snapshot::take(&tree, &outline, items);
    let mut out = Vec::new();
    let Ok(()) = nested::push_json(&mut out, &visible, &snapshot, |out, item| {
        out.extend_from_slice(b"\"");
        out.extend_from_slice(snapshot.id(item).unwrap().as_bytes());
        out.push(b'"');
        Ok::<(), Infallible>(())
    });
    assert_eq!(crate::json::value_span(&out), Ok(0..out.len()));
    assert_eq!(crate::json::depth(&out), 2 * 10_001 + 1);
}
