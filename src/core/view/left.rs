//! Folds the branches that the leaf has left (`fold: "left"` of protocol.md §6.8). At each fork, one row stands for all
//! folded branches.
//!
//! The outline has the active path last among siblings ([`super::Scope::active_last`]), so the last child continues the
//! conversation. The time is linear in the rows: a folded branch is skipped, and an ancestor is marked as open once.

use super::layout::Outline;
use super::line::PreviewLine;
use super::prefix::Render;
use super::visible_row::{NONE, Row};
use crate::tree::{Node, number32};
use std::collections::HashSet;
use std::ops::Range;

/// The branches that the leaf has left and that the request does not fold.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// A branch that contains one of these entries is open.
    pub expand: HashSet<Node>,
    /// If one of these entries begins a branch, the fork above it has one row for each branch.
    pub each: HashSet<Node>,
}

/// The most branches that a folded row names.
const NAMES: usize = 8;
/// The most characters of a name in a row that names several branches.
const NAME_CHARS: usize = 40;
/// The most user messages of a branch that are searched for its name.
const PROMPTS: usize = 4;

/// The items from which the name of a branch is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BranchName {
    head: u32,
    prompts: [u32; PROMPTS],
}

impl BranchName {
    /// The item of the first entry of the branch.
    pub fn head(&self) -> usize {
        self.head as usize
    }

    /// The first user messages of the branch, the first one first.
    pub fn prompts(&self) -> impl Iterator<Item = usize> {
        let prompts = self.prompts.into_iter().filter(|item| *item != NONE);
        prompts.map(|item| item as usize)
    }

    fn items(&self) -> impl Iterator<Item = usize> {
        std::iter::once(self.head()).chain(self.prompts())
    }
}

/// A row that stands for several branches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoldedRow {
    row: u32,
    pub(super) branches: u32,
    /// The number of visible entries in these branches.
    pub(super) entries: u32,
    /// The index of the first name of the row.
    names: u32,
    named: u32,
}

impl FoldedRow {
    /// Whether the line to show has no room for a name after these names.
    pub fn is_full(&self, names: &[String]) -> bool {
        let shown = names
            .iter()
            .map(|name| name.chars().take(NAME_CHARS).count());
        shown.sum::<usize>() >= PreviewLine::LIMIT
    }

    /// The line to show: the counts and the names of the branches, at most `PreviewLine::LIMIT` characters.
    pub fn preview(&self, names: &[String], render: Option<Render>) -> String {
        let mut parts = Vec::with_capacity(names.len() + 2);
        if self.branches > 1 {
            parts.push(format!("{} branches", self.branches));
        }
        let entries = if self.entries == 1 {
            "entry"
        } else {
            "entries"
        };
        parts.push(format!("{} {entries}", self.entries));
        let limit = if self.branches > 1 {
            NAME_CHARS
        } else {
            PreviewLine::LIMIT
        };
        parts.extend(names.iter().map(|name| cut(name, limit)));
        let dot = match render {
            Some(Render::Ascii) => " - ",
            Some(Render::Unicode) | None => " · ",
        };
        cut(&parts.join(dot), PreviewLine::LIMIT)
    }
}

/// The first characters of a text, with `…` at the end if there are more.
fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        None => text.to_owned(),
        Some(_) => text.chars().take(chars - 1).chain(['…']).collect(),
    }
}

/// A row that is open because of these ids of the request. Without these ids the row would be folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OpenedRow {
    row: u32,
    first: u32,
    end: u32,
}

/// The rows that were folded, and the rows that were opened, both in the order of rows.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LeftRows {
    folded: Vec<FoldedRow>,
    names: Vec<BranchName>,
    expanded: Vec<OpenedRow>,
    listed: Vec<OpenedRow>,
    /// The items of the ids in the request. `expanded` and `listed` point to them.
    expand: Vec<u32>,
    each: Vec<u32>,
}

impl LeftRows {
    /// The memory that the rows use, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.folded.capacity() * size_of::<FoldedRow>()
            + self.names.capacity() * size_of::<BranchName>()
            + (self.expanded.capacity() + self.listed.capacity()) * size_of::<OpenedRow>()
            + (self.expand.capacity() + self.each.capacity()) * size_of::<u32>()
    }

    pub(super) fn folded(&self, row: usize) -> Option<&FoldedRow> {
        let at = self
            .folded
            .binary_search_by_key(&row, |folded| folded.row as usize);
        self.folded.get(at.ok()?)
    }

    /// The names of a folded row's first branches.
    pub fn names(&self, folded: &FoldedRow) -> &[BranchName] {
        let first = folded.names as usize;
        self.names
            .get(first..first + folded.named as usize)
            .unwrap_or_default()
    }

    /// The items of the ids in `expand` that keep a row open.
    pub(super) fn expand(&self, row: usize) -> &[u32] {
        ids(&self.expanded, &self.expand, row)
    }

    /// The items of the ids in `each` that keep a row separate from its siblings.
    pub(super) fn each(&self, row: usize) -> &[u32] {
        ids(&self.listed, &self.each, row)
    }

    /// The items that these rows need in addition to their own items.
    pub(super) fn items_of(&self, rows: Range<usize>) -> impl Iterator<Item = usize> {
        let is_before = |row: u32| (row as usize) < rows.start;
        let first = self.folded.partition_point(|folded| is_before(folded.row));
        let folded = self.folded.get(first..).unwrap_or_default().iter();
        let folded = folded.take_while({
            let end = rows.end;
            move |folded| (folded.row as usize) < end
        });
        let names = folded
            .flat_map(|folded| self.names(folded))
            .flat_map(BranchName::items);
        let opened = rows.flat_map(|row| self.expand(row).iter().chain(self.each(row)));
        names.chain(opened.map(|item| *item as usize))
    }
}

fn ids<'a>(opened: &[OpenedRow], items: &'a [u32], row: usize) -> &'a [u32] {
    let at = opened.binary_search_by_key(&row, |opened| opened.row as usize);
    let opened = at.ok().and_then(|at| opened.get(at));
    let range = opened.map_or(0..0, |opened| opened.first as usize..opened.end as usize);
    items.get(range).unwrap_or_default()
}

/// Folds `rows` (which have parent, depth and siblings, but no guides yet), and draws the remaining rows. Returns for
/// each former row its new row, or the new row of its nearest remaining ancestor.
pub(super) fn fold(
    outline: &Outline,
    rows: &mut Vec<Row>,
    nearest: &[u32],
    left: &Left,
    max_depth: Option<u64>,
) -> (Vec<u32>, LeftRows) {
    let asked = Asked::new(outline, rows, nearest, left);
    let mut shown = Shown {
        count: 0,
        moved: vec![NONE; rows.len()],
        groups: vec![NONE; rows.len() + 1],
        last_left: vec![NONE; rows.len() + 1],
        made: LeftRows::default(),
        rows,
    };
    let mut at = 0;
    while let Some(&row) = shown.rows.get(at) {
        let parent = shown.moved(row.parent);
        if max_depth.is_some_and(|max| u64::from(row.depth) > max) {
            let end = asked.end(shown.rows, at);
            shown.move_to(at..end, parent);
            at = end;
        } else if shown.goes_on(&row, parent) {
            shown.push(at, false);
            at += 1;
        } else if asked.is_open(at) {
            let range = asked.expanded(at..asked.end(shown.rows, at));
            let new = shown.push(at, true);
            shown.made.expanded.push(OpenedRow { row: new, ..range });
            shown.note_listed(&asked, row.parent, new);
            at += 1;
        } else {
            let end = asked.end(shown.rows, at);
            shown.fold(outline, at..end, &asked);
            at = end;
        }
    }
    shown.made.expand = asked.expand.iter().map(|(_, item)| *item).collect();
    shown.made.each = asked.each.iter().map(|(_, item)| *item).collect();
    shown.rows.truncate(shown.count);
    shown.rows.shrink_to_fit();
    if !asked.open.is_empty() {
        draw(shown.rows);
    }
    (shown.moved, shown.made)
}

/// The entries that the request names, with their rows before folding.
struct Asked {
    /// For each row, the number of visible entries of its branch, the row itself included; empty if no branch is open.
    sizes: Vec<u32>,
    /// For each row, whether it contains an entry of `expand`; empty if there is none.
    open: Vec<bool>,
    /// The row and the item of each entry in `expand`, in order.
    expand: Vec<(u32, u32)>,
    /// The parent row (`NONE` for roots) and the item of each entry in `each`, in order.
    each: Vec<(u32, u32)>,
}

impl Asked {
    fn new(outline: &Outline, rows: &[Row], nearest: &[u32], left: &Left) -> Self {
        let mut asked = Self {
            sizes: Vec::new(),
            open: Vec::new(),
            expand: Vec::new(),
            each: Vec::new(),
        };
        if left.expand.is_empty() && left.each.is_empty() {
            return asked;
        }
        asked.sizes = sizes(rows);
        asked.open = vec![false; rows.len()];
        for (item, of) in outline.items().iter().enumerate() {
            let Some(at) = nearest.get(item).copied().filter(|at| *at != NONE) else {
                continue;
            };
            if left.expand.contains(&of.node) {
                asked.expand.push((at, number32(item)));
                asked.open_above(rows, at);
            }
            let row = rows.get(at as usize).filter(|row| row.item() == item);
            if let Some(row) = row.filter(|_| left.each.contains(&of.node)) {
                asked.each.push((row.parent, number32(item)));
            }
        }
        asked.expand.sort_unstable();
        asked.each.sort_unstable();
        asked
    }

    /// Marks a row as open, and the rows above it up to the first one that is marked already.
    fn open_above(&mut self, rows: &[Row], mut at: u32) {
        while let Some(open) = self.open.get_mut(at as usize).filter(|open| !**open) {
            *open = true;
            at = rows.get(at as usize).map_or(NONE, |row| row.parent);
        }
    }

    /// The row after the branch that begins with row `at`. If no branch is open, the rows of the branch are walked to
    /// its end. The branch is then folded, so each row is walked once.
    fn end(&self, rows: &[Row], at: usize) -> usize {
        if let Some(size) = self.sizes.get(at) {
            return at + *size as usize;
        }
        let depth = rows.get(at).map_or(0, |row| row.depth);
        let below = rows.get(at + 1..).unwrap_or_default().iter();
        at + 1 + below.take_while(|row| row.depth > depth).count()
    }

    fn is_open(&self, at: usize) -> bool {
        self.open.get(at).copied().unwrap_or(false)
    }

    /// The entries of `expand` in these rows.
    fn expanded(&self, rows: Range<usize>) -> OpenedRow {
        let before = |end: usize| self.expand.partition_point(|(at, _)| (*at as usize) < end);
        OpenedRow {
            row: NONE,
            first: number32(before(rows.start)),
            end: number32(before(rows.end)),
        }
    }

    /// The entries of `each` that begin branches below `parent`.
    fn listed(&self, parent: u32) -> Option<OpenedRow> {
        let first = self.each.partition_point(|(above, _)| *above < parent);
        let end = self.each.partition_point(|(above, _)| *above <= parent);
        (first < end).then(|| OpenedRow {
            row: NONE,
            first: number32(first),
            end: number32(end),
        })
    }
}

/// For each row, the number of visible entries of its branch, the row itself included.
fn sizes(rows: &[Row]) -> Vec<u32> {
    let mut sizes = vec![1u32; rows.len()];
    for (at, row) in rows.iter().enumerate().rev() {
        let size = sizes.get(at).copied().unwrap_or_default();
        if let Some(above) = sizes.get_mut(row.parent as usize) {
            *above += size;
        }
    }
    sizes
}

/// The rows that remain after folding.
struct Shown<'r> {
    /// The first `count` rows are the rows that remain so far. The rows that the walk has not reached are at their
    /// former indexes.
    rows: &'r mut Vec<Row>,
    count: usize,
    /// The new row of each former row.
    moved: Vec<u32>,
    /// The index of the folded row of each fork, by the former row of the fork. The last element is for the roots.
    groups: Vec<u32>,
    /// For each fork, the new row of its last branch so far, in the order of `groups`.
    last_left: Vec<u32>,
    made: LeftRows,
}

impl Shown<'_> {
    /// The new row of a former row.
    fn moved(&self, former: u32) -> u32 {
        self.moved.get(former as usize).copied().unwrap_or(NONE)
    }

    /// Whether a row continues the branch of its new parent. Below the leaf, no row continues a branch.
    fn goes_on(&self, row: &Row, parent: u32) -> bool {
        let parent = self.rows.get(parent as usize);
        let is_below_leaf =
            parent.is_some_and(|parent| parent.on_active_path) && !row.on_active_path;
        !row.has_later_sibling && !is_below_leaf
    }

    fn move_to(&mut self, former: Range<usize>, new: u32) {
        if let Some(moved) = self.moved.get_mut(former) {
            moved.fill(new);
        }
    }

    /// Keeps the row at `at`, and gives it its guides. The guides are final, except in an open branch, where a later
    /// sibling changes the guides of the rows. `is_left` says whether the row begins a branch that the leaf has left.
    fn push(&mut self, at: usize, is_left: bool) -> u32 {
        let new = number32(self.count);
        let Some(mut row) = self.rows.get(at).copied() else {
            return new;
        };
        if is_left {
            let elder = slot(&mut self.last_left, row.parent);
            let elder = elder.map(|last| std::mem::replace(last, new));
            if let Some(elder) = elder.and_then(|elder| self.rows.get_mut(elder as usize)) {
                elder.has_later_sibling = true;
                elder.guides |= 1;
            }
        }
        row.parent = self.moved(row.parent);
        let above = self.rows.get(row.parent as usize);
        let (indent, guides) = above.map_or((0, 0), |above| (above.indent, above.guides));
        row.indent = indent + u32::from(is_left);
        row.guides = guides << u32::from(is_left);
        row.heads_branch = is_left;
        row.has_later_sibling = false;
        if let (Some(place), Some(moved)) = (self.rows.get_mut(self.count), self.moved.get_mut(at))
        {
            *place = row;
            *moved = new;
            self.count += 1;
        }
        new
    }

    /// Adds a branch to the folded row of its fork. Makes the folded row if there is none.
    fn fold(&mut self, outline: &Outline, branch: Range<usize>, asked: &Asked) {
        let Some(&row) = self.rows.get(branch.start) else {
            return;
        };
        let is_listed = asked.listed(row.parent).is_some();
        let group = slot(&mut self.groups, row.parent).map(|group| *group as usize);
        let group = group.filter(|_| !is_listed);
        let index = match group.filter(|group| *group < self.made.folded.len()) {
            Some(index) => index,
            None => {
                let new = self.push(branch.start, true);
                self.note_listed(asked, row.parent, new);
                let index = self.made.folded.len();
                self.made.folded.push(FoldedRow {
                    row: new,
                    branches: 0,
                    entries: 0,
                    names: number32(self.made.names.len()),
                    named: 0,
                });
                if let Some(group) = slot(&mut self.groups, row.parent) {
                    *group = number32(index);
                }
                index
            }
        };
        let names_end = self.made.names.len();
        let Some(folded) = self.made.folded.get_mut(index) else {
            return;
        };
        folded.branches += 1;
        folded.entries += number32(branch.len());
        let new = folded.row;
        // The names of a folded row must be consecutive. An open branch between two folded branches may have added
        // names after them.
        let is_next = (folded.names + folded.named) as usize == names_end;
        if is_next && (folded.named as usize) < NAMES {
            folded.named += 1;
            self.made
                .names
                .push(name(outline, self.rows, branch.clone()));
        }
        self.move_to(branch, new);
    }

    fn note_listed(&mut self, asked: &Asked, parent: u32, new: u32) {
        if let Some(range) = asked.listed(parent) {
            self.made.listed.push(OpenedRow { row: new, ..range });
        }
    }
}

/// The slot of the fork at `parent`. The last slot is for the roots.
fn slot(places: &mut [u32], parent: u32) -> Option<&mut u32> {
    let at = (parent as usize).min(places.len().saturating_sub(1));
    places.get_mut(at)
}

fn name(outline: &Outline, rows: &[Row], branch: Range<usize>) -> BranchName {
    let items = rows.get(branch).unwrap_or_default().iter().map(Row::item);
    let is_prompt = |item: &usize| {
        outline
            .items()
            .get(*item)
            .is_some_and(|item| item.is_prompt)
    };
    let mut name = BranchName {
        head: items.clone().next().map_or(NONE, number32),
        prompts: [NONE; PROMPTS],
    };
    for (place, item) in name.prompts.iter_mut().zip(items.filter(is_prompt)) {
        *place = number32(item);
    }
    name
}

/// Computes indent and guides again: only a branch that the leaf has left is indented.
fn draw(rows: &mut [Row]) {
    for at in 0..rows.len() {
        let Some(&row) = rows.get(at) else { break };
        let above = rows.get(row.parent as usize);
        let (indent, guides) = above.map_or((0, 0), |above| (above.indent, above.guides));
        let Some(row) = rows.get_mut(at) else { break };
        row.indent = indent + u32::from(row.heads_branch);
        row.guides = match row.heads_branch {
            true => guides << 1 | u32::from(row.has_later_sibling),
            false => guides,
        };
    }
}
