//! Tests that a view that was extended by appended entries equals a new view.

use super::*;
use proptest::prelude::*;

const CALLS: &str =
    r#""role":"assistant","content":[{"type":"toolCall","id":"t","name":"read","arguments":{}}]"#;
const RESULT: &str = r#""role":"toolResult","toolName":"read","content":"x""#;

/// A change of a session between two views.
#[derive(Debug, Clone)]
enum Step {
    /// An entry of this sort below the leaf.
    Append(u8),
    /// An entry below another entry, or a root.
    Elsewhere(usize, u8),
    MoveLeaf(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0..6u8).prop_map(Step::Append),
        1 => (any::<usize>(), 0..6u8).prop_map(|(at, sort)| Step::Elsewhere(at, sort)),
        1 => any::<usize>().prop_map(Step::MoveLeaf),
    ]
}

impl Session {
    fn take(&mut self, step: &Step) {
        let tree = &self.tree;
        let other = |at: usize| tree.node(at % (tree.node_count() + 1));
        let id_of = |node: Option<Node>| node.map_or("", |node| tree.id(node)).to_owned();
        let (parent, sort) = match step {
            Step::Append(sort) => (id_of(tree.leaf()), sort),
            Step::Elsewhere(at, sort) => (id_of(other(*at)), sort),
            Step::MoveLeaf(at) => {
                let leaf = other(*at);
                return self.tree.set_leaf(leaf);
            }
        };
        let number = tree.node_count();
        let (id, second) = (format!("e{number}"), number as u32 % 60);
        self.append(match sort {
            0 => user(&id, &parent, second, "text"),
            1 | 2 => message(&id, &parent, second, CALLS),
            3 => message(&id, &parent, second, RESULT),
            4 => entry(
                &id,
                &parent,
                second,
                "label",
                r#","targetId":"e0","label":"x""#,
            ),
            _ => message(
                &id,
                &parent,
                second,
                r#""role":"assistant","content":"said""#,
            ),
        });
    }
}

fn scopes() -> impl Iterator<Item = Scope> {
    let filters = [
        Filter::Default,
        Filter::NoTools,
        Filter::UserOnly,
        Filter::LabeledOnly,
        Filter::All,
    ];
    filters.into_iter().flat_map(|filter| {
        [Order::Time, Order::ActiveFirst].map(|order| Scope {
            root: None,
            filter,
            order,
            active_last: false,
            archived: false,
        })
    })
}

fn made(session: &Session, scope: Scope) -> (Outline, Visible) {
    let outline = Outline::new(&session.tree, scope);
    let visible = Visible::new(&outline, None, &Folding::default());
    (outline, visible)
}

/// Extends the view where this is possible. Returns how often the view was extended.
fn follow(steps: &[Vec<Step>], scope: Scope) -> usize {
    let mut session = Session::of([]);
    let mut view = made(&session, scope);
    let mut extended = 0;
    for steps in steps {
        steps.iter().for_each(|step| session.take(step));
        let anew = made(&session, scope);
        if view.0.extend(&session.tree, scope) && view.1.extend(&view.0) {
            assert_eq!(view, anew, "{scope:?} after {steps:?}");
            extended += 1;
        }
        view = anew;
    }
    extended
}

proptest! {
    #[test]
    fn extended_is_as_made_anew(
        steps in prop::collection::vec(prop::collection::vec(step(), 0..4), 1..30),
    ) {
        for scope in scopes() {
            follow(&steps, scope);
        }
    }
}

/// Appends during an agent's work extend the view, with any filter.
#[test]
fn a_conversation_that_continues_extends_its_view() {
    let sorts = [0, 1, 3, 1, 3, 5, 4, 0, 5];
    let steps: Vec<Vec<Step>> = sorts.map(|sort| vec![Step::Append(sort)]).into();
    for scope in scopes().filter(|scope| scope.filter != Filter::LabeledOnly) {
        // Before the first entry there is no view to extend.
        assert_eq!(follow(&steps, scope), steps.len() - 1, "{scope:?}");
    }
}
