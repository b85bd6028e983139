//! Converts a tree to plain bytes and back, for the side index (`log::index`).
//!
//! The bytes are not trusted. The image is invalid if a number points nowhere, a parent could close a cycle, or a name
//! is not UTF-8. Data that follow from other data (children, roots, the table of ids) are computed again.

use super::born::Born;
use super::flags::Flags;
use super::ids::{IdHash, IdHasher, id_of};
use super::marks::Marks;
use super::moves::{Cause, Move, Moves, Position};
use super::node::{Label, NONE, Node, NodeRow};
use super::state::Tree;
use super::waiting::{Waiters, WaitingNode};
use crate::bytes::{Cursor, Fields};
use crate::entry::{Kind, Role};
use crate::timestamp::Millis;
use hashbrown::{HashMap, HashTable};

/// The length of a row in an image, in bytes.
pub const ROW_BYTES: usize = 28;
/// The bytes that the length of an id takes in an image.
pub const LEN_BYTES: usize = 2;

/// The bytes of a tree.
pub struct Image {
    /// The number of nodes.
    pub count: u32,
    /// The rows, [`ROW_BYTES`] each.
    pub rows: Vec<u8>,
    /// The lengths of the ids, [`LEN_BYTES`] each.
    pub id_lens: Vec<u8>,
    pub ids: Vec<u8>,
    /// Everything else: name, labels, waiting nodes, moves, marks of branches.
    pub rest: Vec<u8>,
}

/// A large table is filled in this number of parts, one part after the other.
const PARTS: usize = 64;
/// The most ids whose table fits into the cache of the processor.
const NEAR: usize = 1 << 17;

const AT_ROOT: u32 = u32::MAX;
const GONE: u32 = u32::MAX - 1;

impl Tree {
    /// The image of the tree. `None` if the tree has links that an image cannot hold: parents later in the file than
    /// their child, or leaf records whose position has not been read.
    pub fn image(&self) -> Option<Image> {
        if !self.forward_links.is_empty() || self.waiting.any_record() {
            return None;
        }
        let mut rows = Vec::with_capacity(self.rows.len() * ROW_BYTES);
        let mut id_lens = Vec::with_capacity(self.rows.len() * LEN_BYTES);
        for (row, number) in self.rows.iter().zip(0..) {
            if row.parent != NONE && row.parent >= number {
                return None;
            }
            rows.extend_from_slice(&row.stored());
            let id = id_of(&self.rows, &self.ids, number)?;
            id_lens.extend_from_slice(&u16::try_from(id.len()).ok()?.to_le_bytes());
        }
        Some(Image {
            count: u32::try_from(self.rows.len()).ok()?,
            rows,
            id_lens,
            ids: self.ids.clone(),
            rest: self.rest(),
        })
    }

    fn rest(&self) -> Vec<u8> {
        let mut out = Fields::default();
        out.optional(self.name.as_deref(), Fields::text);
        out.u32(self.last.map_or(NONE, |node| node.0));
        out.count(self.labels.len());
        for (target, label) in &self.labels {
            out.u32(target.0);
            put_label(&mut out, label);
        }
        out.count(self.waiting_labels.len());
        for (id, label) in &self.waiting_labels {
            out.text(id);
            out.optional(label.as_ref(), put_label);
        }
        out.count(self.waiting_references.len());
        for (id, nodes) in &self.waiting_references {
            out.text(id);
            out.count(nodes.len());
            for node in nodes {
                out.u32(node.0);
            }
        }
        out.count(self.waiting.groups().count());
        for (id, waiting) in self.waiting.groups() {
            let waiting: Vec<&WaitingNode> = waiting.collect();
            out.text(id);
            out.count(waiting.len());
            for WaitingNode { node, line } in waiting {
                out.u32(node.0);
                out.u64(*line);
            }
        }
        out.count(self.moves.log.len());
        for made in &self.moves.log {
            out.u32(made.at.0);
            put_position(&mut out, made.from);
            put_position(&mut out, made.to);
            out.u8(made.cause as u8);
        }
        for stack in [&self.moves.undo, &self.moves.redo] {
            out.count(stack.len());
            for position in stack {
                put_position(&mut out, *position);
            }
        }
        self.marks.put(&mut out);
        self.born.put(&mut out);
        out.0
    }
}

fn put_label(out: &mut Fields, label: &Label) {
    out.u32(label.entry.0);
    out.text(&label.text);
}

fn put_position(out: &mut Fields, position: Position) {
    out.u32(match position {
        Position::Root => AT_ROOT,
        Position::Gone => GONE,
        Position::At(node) => node.0,
    });
}

impl NodeRow {
    /// The bytes of the row that do not follow from other rows.
    #[inline]
    fn stored(&self) -> [u8; ROW_BYTES] {
        let low = u128::from(self.offset) | u128::from(self.timestamp.cast_unsigned()) << 64;
        let [len, parent] = [self.len, self.parent].map(u32::to_le_bytes);
        let flags = self.flags.0.to_le_bytes();
        let last = [
            len,
            parent,
            [flags[0], flags[1], self.kind as u8, self.role as u8],
        ];
        let mut out = [0; ROW_BYTES];
        let (first, rest) = out.split_at_mut(16);
        first.copy_from_slice(&low.to_le_bytes());
        rest.copy_from_slice(last.as_flattened());
        out
    }

    /// Reads a row; `None` if the bytes are not a row.
    #[inline]
    fn of_stored(bytes: &[u8; ROW_BYTES], id_at: u32) -> Option<Self> {
        let (offset, rest) = bytes.split_first_chunk::<8>()?;
        let (timestamp, rest) = rest.split_first_chunk::<8>()?;
        let (len, rest) = rest.split_first_chunk::<4>()?;
        let (parent, last) = rest.split_first_chunk::<4>()?;
        let &[low, high, kind, role] = last.first_chunk::<4>()?;
        Some(Self {
            offset: u64::from_le_bytes(*offset),
            timestamp: Millis::from_le_bytes(*timestamp),
            len: u32::from_le_bytes(*len),
            parent: u32::from_le_bytes(*parent),
            flags: Flags(u16::from_le_bytes([low, high])),
            kind: Kind::from_number(kind)?,
            role: Role::from_number(role)?,
            id_at,
        })
    }
}

/// The table of ids. It can be built while another thread reads the rows.
pub struct IdTable {
    by_id: HashTable<u32>,
    hasher: IdHasher,
}

impl IdTable {
    /// `None` if the lengths do not add up to the length of `ids`, or an id is not UTF-8.
    pub fn of(count: u32, id_lens: &[u8], ids: &[u8]) -> Option<Self> {
        let text = simdutf8::basic::from_utf8(ids).ok()?;
        let hasher = IdHasher::default();
        let mut hashes = Vec::with_capacity(count as usize);
        let mut at = 0;
        for len in lens(id_lens) {
            // `get` returns `None` for a length that ends within a character.
            let id = text.get(at..at + usize::from(len))?;
            hashes.push(hasher.hash(id));
            at += id.len();
        }
        if at != ids.len() || hashes.len() != count as usize {
            return None;
        }
        let mut by_id = HashTable::with_capacity(hashes.len());
        let mut insert = |hash: IdHash, number| {
            // The table has enough capacity, so it never grows. Growth would hash all ids again.
            by_id.insert_unique(hash.wide(), number, |_| hash.wide());
        };
        if hashes.len() <= NEAR {
            for (hash, number) in hashes.into_iter().zip(0..) {
                insert(hash, number);
            }
        } else {
            for (hash, number) in by_neighbourhood(&hashes)? {
                insert(hash, number);
            }
        }
        Some(Self { by_id, hasher })
    }
}

/// The hashes with their numbers, sorted roughly by their slots in the table, which uses the low bits of a hash. In
/// this order a million ids are inserted in a third of the time: in file order, each insertion uses a different part of
/// the memory.
fn by_neighbourhood(hashes: &[IdHash]) -> Option<Vec<(IdHash, u32)>> {
    let places = hashes.len().max(PARTS).next_power_of_two();
    let shift = places.trailing_zeros() - PARTS.trailing_zeros();
    // The table also uses the low bits only.
    #[allow(clippy::cast_possible_truncation)]
    let part = |hash: IdHash| (hash.wide() as usize & (places - 1)) >> shift;
    let mut sizes = [0; PARTS];
    for hash in hashes {
        *sizes.get_mut(part(*hash))? += 1;
    }
    let mut next = [0; PARTS];
    let mut sum = 0;
    for (next, size) in next.iter_mut().zip(sizes) {
        *next = sum;
        sum += size;
    }
    let mut ordered = vec![(IdHash(0), 0); hashes.len()];
    for (hash, number) in hashes.iter().zip(0..) {
        let next = next.get_mut(part(*hash))?;
        *ordered.get_mut(*next)? = (*hash, number);
        *next += 1;
    }
    Some(ordered)
}

fn lens(id_lens: &[u8]) -> impl Iterator<Item = u16> {
    let (pairs, _) = id_lens.as_chunks::<LEN_BYTES>();
    pairs.iter().map(|pair| u16::from_le_bytes(*pair))
}

/// Reads the rows of an image, in parts.
pub struct ImageRows {
    rows: Vec<NodeRow>,
    roots: Vec<u32>,
    leaf_records: u32,
    id_at: u32,
}

impl ImageRows {
    /// Makes room for `count` rows and some more, so that the rows need not be moved when entries are appended.
    pub fn with_capacity(count: u32) -> Self {
        let count = count as usize;
        Self {
            rows: Vec::with_capacity(count + count / 8 + 64),
            roots: Vec::new(),
            leaf_records: 0,
            id_at: 0,
        }
    }

    /// Adds whole rows. `id_lens` has the lengths of all ids. `None` if a line ends after `end`.
    pub fn take(&mut self, bytes: &[u8], id_lens: &[u8], end: u64) -> Option<()> {
        let (chunks, _) = bytes.as_chunks::<ROW_BYTES>();
        let rest = id_lens.get(self.rows.len() * LEN_BYTES..)?;
        for (chunk, id_len) in chunks.iter().zip(lens(rest)) {
            let number = u32::try_from(self.rows.len()).ok()?;
            let row = NodeRow::of_stored(chunk, self.id_at)?;
            if row.offset.checked_add(u64::from(row.len))? > end {
                return None;
            }
            self.id_at = self.id_at.checked_add(u32::from(id_len))?;
            if row.parent != NONE {
                // The parent must come before its child, and must not be a leaf record.
                let parent = self.rows.get(row.parent as usize)?;
                if parent.kind == Kind::LeafRecord {
                    return None;
                }
            }
            if row.kind == Kind::LeafRecord {
                self.leaf_records += 1;
            } else if row.parent == NONE {
                self.roots.push(number);
            }
            self.rows.push(row);
        }
        Some(())
    }

    /// The tree; `None` if the parts do not belong together.
    pub fn finish(self, count: u32, ids: Vec<u8>, table: IdTable, rest: &[u8]) -> Option<Tree> {
        if self.rows.len() != count as usize || self.id_at as usize != ids.len() {
            return None;
        }
        let mut fields = RestReader {
            fields: Cursor::new(rest),
            count,
        };
        let (name, last) = fields.name_and_last()?;
        let labels = fields.labels()?;
        let waiting_labels = fields.waiting_labels()?;
        let waiting_references = fields.waiting_references()?;
        let waiting = fields.waiting()?;
        let moves = fields.moves()?;
        let marks = Marks::read(&mut fields.fields, count)?;
        let born = Born::read(&mut fields.fields, count)?;
        if !fields.fields.is_at_end() {
            return None;
        }
        let orphans = waiting.iter().flat_map(|(_, waiting)| waiting);
        for WaitingNode { node, .. } in orphans {
            let row = self.rows.get(node.number())?;
            if row.parent != NONE || row.kind == Kind::LeafRecord {
                return None;
            }
        }
        let label_entry = |(target, label): &(Node, Label)| (label.entry, *target);
        let awaited = waiting_labels
            .iter()
            .filter_map(|(id, label)| Some((label.as_ref()?.entry, id.clone())));
        Some(Tree {
            revision: u64::from(count),
            rows: self.rows,
            ids,
            by_id: table.by_id,
            hasher: table.hasher,
            roots: self.roots,
            waiting: Waiters::of(waiting),
            labelled: labels.iter().map(label_entry).collect(),
            labels: HashMap::from_iter(labels),
            awaited_targets: awaited.collect(),
            waiting_labels: HashMap::from_iter(waiting_labels),
            waiting_references: HashMap::from_iter(waiting_references),
            name,
            marks,
            born,
            leaf_records: self.leaf_records,
            last,
            moves,
            ..Tree::default()
        })
    }
}

/// Reads [`Image::rest`], in the order in which [`Tree::rest`] writes it.
struct RestReader<'a> {
    fields: Cursor<'a>,
    /// The number of nodes.
    count: u32,
}

type NameAndLast = (Option<Box<str>>, Option<Node>);
/// Values, each with an id.
type ById<T> = Vec<(Box<str>, T)>;

impl RestReader<'_> {
    fn name_and_last(&mut self) -> Option<NameAndLast> {
        let name = self.fields.optional(|fields| Some(fields.text()?.into()))?;
        let last = match self.fields.u32()? {
            NONE => None,
            number => Some(Node::checked(number, self.count)?),
        };
        Some((name, last))
    }

    fn labels(&mut self) -> Option<Vec<(Node, Label)>> {
        let count = self.count;
        let labelled = |fields: &mut Cursor<'_>| {
            Some((Node::checked(fields.u32()?, count)?, label(fields, count)?))
        };
        self.fields.list(labelled)
    }

    fn waiting_labels(&mut self) -> Option<ById<Option<Label>>> {
        let count = self.count;
        let labelled = |fields: &mut Cursor<'_>| {
            let id = fields.text()?.into();
            Some((id, fields.optional(|fields| label(fields, count))?))
        };
        self.fields.list(labelled)
    }

    fn waiting_references(&mut self) -> Option<ById<Vec<Node>>> {
        let count = self.count;
        self.fields.list(|fields| {
            let id = fields.text()?.into();
            Some((
                id,
                fields.list(|fields| Node::checked(fields.u32()?, count))?,
            ))
        })
    }

    fn waiting(&mut self) -> Option<ById<Vec<WaitingNode>>> {
        let count = self.count;
        let waiting = |fields: &mut Cursor<'_>| {
            Some(WaitingNode {
                node: Node::checked(fields.u32()?, count)?,
                line: fields.u64()?,
            })
        };
        self.fields.list(|fields| {
            let id = fields.text()?.into();
            Some((id, fields.list(waiting)?))
        })
    }

    fn moves(&mut self) -> Option<Moves> {
        let count = self.count;
        let position = |fields: &mut Cursor<'_>| position(fields, count);
        let log = self.fields.list(|fields| {
            Some(Move {
                at: Node::checked(fields.u32()?, count)?,
                from: position(fields)?,
                to: position(fields)?,
                cause: Cause::from_number(fields.u8()?)?,
            })
        })?;
        let undo = self.fields.list(position)?;
        let redo = self.fields.list(position)?;
        Some(Moves::of(log, undo, redo))
    }
}

fn label(fields: &mut Cursor<'_>, count: u32) -> Option<Label> {
    Some(Label {
        entry: Node::checked(fields.u32()?, count)?,
        text: fields.text()?.into(),
    })
}

fn position(fields: &mut Cursor<'_>, count: u32) -> Option<Position> {
    Some(match fields.u32()? {
        AT_ROOT => Position::Root,
        GONE => Position::Gone,
        number => Position::At(Node::checked(number, count)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each id is found once. Small tables are filled in file order, and large tables in parts.
    #[test]
    fn every_id_is_in_the_table() {
        for count in [0, 1, 70, NEAR + 12_345] {
            let (mut id_lens, mut ids) = (Vec::new(), Vec::new());
            let id = |number: usize| format!("{number:x}é");
            for number in 0..count {
                id_lens.extend_from_slice(&(id(number).len() as u16).to_le_bytes());
                ids.extend_from_slice(id(number).as_bytes());
            }
            let table = IdTable::of(count as u32, &id_lens, &ids).unwrap();
            assert_eq!(table.by_id.len(), count);
            for number in 0..count {
                let hash = table.hasher.hash(&id(number)).wide();
                let found = table.by_id.find(hash, |&found| found == number as u32);
                assert!(found.is_some(), "{number} of {count}");
            }
            let other = table.hasher.hash("not there").wide();
            let mut found = table.by_id.iter_hash(other);
            assert!(found.all(|&number| table.hasher.hash(&id(number as usize)).wide() != other));
            assert!(IdTable::of(count as u32 + 1, &id_lens, &ids).is_none());
            assert!(IdTable::of(count as u32, &id_lens, &[&ids, &b"x"[..]].concat()).is_none());
        }
        // The first id ends between the two bytes of a character.
        assert!(IdTable::of(2, &[1, 0, 1, 0], "é".as_bytes()).is_none());
        assert!(IdTable::of(1, &[1, 0], b"\xff").is_none());
    }
}
