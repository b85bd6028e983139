//! The navigation log of a session, and the undo and redo stacks that follow from it (session-file.md §4).

use super::node::Node;
use super::steps;

/// A position of the leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// The position before the first entry.
    Root,
    At(Node),
    /// An entry that a move names and that the file does not have.
    Gone,
}

impl From<Option<Node>> for Position {
    fn from(node: Option<Node>) -> Self {
        node.map_or(Position::Root, Position::At)
    }
}

impl Position {
    /// The position; the outer `None` means that the file does not have the position.
    pub fn known(self) -> Option<Option<Node>> {
        match self {
            Position::Root => Some(None),
            Position::At(node) => Some(Some(node)),
            Position::Gone => None,
        }
    }
}

/// The reason why the leaf moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    SetLeaf,
    Branch,
    NavigateTree,
    Undo,
    Redo,
}

impl Cause {
    const ALL: [Cause; 5] = [
        Cause::SetLeaf,
        Cause::Branch,
        Cause::NavigateTree,
        Cause::Undo,
        Cause::Redo,
    ];

    /// The cause with this number (`cause as u8`).
    pub(super) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    pub const fn name(self) -> &'static str {
        match self {
            Cause::SetLeaf => "set_leaf",
            Cause::Branch => "branch",
            Cause::NavigateTree => "navigate_tree",
            Cause::Undo => "undo",
            Cause::Redo => "redo",
        }
    }

    /// The cause that a leaf record names. A cause that this version does not know counts as `set_leaf`.
    pub fn parse(name: &str) -> Self {
        match name {
            "branch" => Cause::Branch,
            "navigate_tree" => Cause::NavigateTree,
            "undo" => Cause::Undo,
            "redo" => Cause::Redo,
            _ => Cause::SetLeaf,
        }
    }
}

/// One explicit move of the leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// The leaf record or branch_summary that records the move. Its timestamp is the time of the move.
    pub at: Node,
    pub from: Position,
    pub to: Position,
    pub cause: Cause,
}

/// The moves in file order. After this process has opened the session, moves of other processes are not recorded:
/// [`Moves::pause`] is on while their lines are read.
#[derive(Default)]
pub struct Moves {
    pub(super) log: Vec<Move>,
    pub(super) undo: Vec<Position>,
    pub(super) redo: Vec<Position>,
    paused: bool,
}

impl Moves {
    pub(super) fn of(log: Vec<Move>, undo: Vec<Position>, redo: Vec<Position>) -> Self {
        Self {
            log,
            undo,
            redo,
            paused: false,
        }
    }

    /// The moves, the oldest first.
    pub fn log(&self) -> &[Move] {
        &self.log
    }

    /// While `paused` is true, moves are not recorded.
    pub fn pause(&mut self, paused: bool) {
        self.paused = paused;
    }

    /// Records a move and updates the stacks.
    pub(super) fn note(&mut self, made: Move) {
        if self.paused {
            return;
        }
        match made.cause {
            Cause::Undo => {
                pop_through(&mut self.undo, made.to);
                self.redo.push(made.from);
            }
            Cause::Redo => {
                pop_through(&mut self.redo, made.to);
                self.undo.push(made.from);
            }
            Cause::SetLeaf | Cause::Branch | Cause::NavigateTree => {
                self.undo.push(made.from);
                self.redo.clear();
            }
        }
        self.log.push(made);
    }
}

/// Pops positions up to and including `last`. Each position is popped once, so all moves together take
/// linear time.
fn pop_through(stack: &mut Vec<Position>, last: Position) {
    while let Some(position) = stack.pop() {
        steps::count(1);
        if position == last {
            return;
        }
    }
}
