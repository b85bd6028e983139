//! Sets of hashes, like Bloom filters: a set may seem to have a hash that was never added. Each set is a column of a
//! table, and the table is stored row by row. The rows of a hash say which sets may have it, and the other rows are not
//! read.

use super::damage::damaged;
use std::fs::File;
use std::io::{self, Write};
use treelined_core::bytes::index;
pub(crate) use treelined_files::os::FileAt;

/// Bits of a hash that choose a row.
const ROW_BITS: u32 = 21;

/// The dimensions of the sets of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SetShape {
    /// The bits of a set, a multiple of 64.
    pub rows: u32,
    /// The bits that a hash sets, at most 3.
    pub bits: u32,
}

impl SetShape {
    /// The rows of a hash.
    fn rows_of(self, hash: u64) -> impl Iterator<Item = u64> {
        (0..self.bits).map(move |number| {
            let part = hash >> (number * ROW_BITS) & ((1 << ROW_BITS) - 1);
            (part * u64::from(self.rows)) >> ROW_BITS
        })
    }

    /// Bytes of a row with `columns` columns.
    const fn row_bytes(columns: u64) -> u64 {
        columns.div_ceil(64) * 8
    }

    /// Bytes of a table with `columns` columns.
    pub(super) fn bytes(self, columns: u64) -> u64 {
        u64::from(self.rows).saturating_mul(Self::row_bytes(columns))
    }
}

/// Collects sets, one after the other.
pub(super) struct SetWriter {
    shape: SetShape,
    open: Vec<u64>,
    sets: Vec<Vec<u64>>,
}

impl SetWriter {
    pub(super) fn new(shape: SetShape) -> Self {
        Self {
            shape,
            open: vec![0; (shape.rows / 64) as usize],
            sets: Vec::new(),
        }
    }

    /// Adds a hash to the open set.
    pub(super) fn add(&mut self, hash: u64) {
        for row in self.shape.rows_of(hash) {
            if let Some(word) = self.open.get_mut(index(row / 64)) {
                *word |= 1 << (row % 64);
            }
        }
    }

    /// Ends the open set, and opens the next one.
    pub(super) fn close(&mut self) {
        let empty = vec![0; self.open.len()];
        self.sets.push(std::mem::replace(&mut self.open, empty));
    }

    /// Writes the table: a row for each bit of the sets, with a bit for each set.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let row_bytes = index(SetShape::row_bytes(self.sets.len() as u64));
        let mut rows = vec![0; 64 * row_bytes];
        for word in 0..self.open.len() {
            for (number, sets) in self.sets.chunks(64).enumerate() {
                let mut square = [0; 64];
                for (line, set) in square.iter_mut().zip(sets) {
                    *line = set.get(word).copied().unwrap_or_default();
                }
                transpose(&mut square);
                for (row, line) in rows.chunks_mut(row_bytes).zip(square) {
                    if let Some(place) = row.get_mut(number * 8..number * 8 + 8) {
                        place.copy_from_slice(&line.to_le_bytes());
                    }
                }
            }
            out.write_all(&rows)?;
        }
        Ok(())
    }
}

/// Exchanges rows and columns: bit `c` of line `r` becomes bit `r` of line `c`.
fn transpose(square: &mut [u64; 64]) {
    let (mut step, mut mask) = (32, 0x0000_0000_ffff_ffff_u64);
    while step > 0 {
        let mut at = 0;
        while at < 64 {
            let (upper, lower) = square.split_at_mut(at + step);
            if let (Some(upper), Some(lower)) = (upper.get_mut(at), lower.first_mut()) {
                let changed = (*upper >> step ^ *lower) & mask;
                *upper ^= changed << step;
                *lower ^= changed;
            }
            at = (at + step + 1) & !step;
        }
        step /= 2;
        mask ^= mask << step;
    }
}

/// A table of sets in a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sets {
    pub shape: SetShape,
    /// Bytes from the start of the file.
    pub at: u64,
    pub columns: u64,
}

impl Sets {
    /// The sets that may have all of these hashes.
    pub(super) fn with_all(
        &self,
        file: &File,
        hashes: impl IntoIterator<Item = u64>,
    ) -> io::Result<SetMatches> {
        let len = SetShape::row_bytes(self.columns);
        let mut matches = SetMatches(None);
        let mut row = vec![0; index(len)];
        for hash in hashes {
            for number in self.shape.rows_of(hash) {
                file.read_exact_at(&mut row, self.at + number * len)
                    .map_err(|_| damaged())?;
                match &mut matches.0 {
                    Some(found) => {
                        let both = found.iter_mut().zip(&row);
                        both.for_each(|(found, row)| *found &= row);
                    }
                    None => matches.0 = Some(row.clone()),
                }
            }
        }
        Ok(matches)
    }
}

/// The sets that may have the hashes of a search; `None` if every set may.
#[derive(Debug)]
pub(super) struct SetMatches(Option<Vec<u8>>);

impl SetMatches {
    pub(super) fn has(&self, column: usize) -> bool {
        self.0.as_ref().is_none_or(|found| {
            let byte = found.get(column / 8).copied().unwrap_or_default();
            byte >> (column % 8) & 1 == 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xxhash_rust::xxh3::xxh3_64;

    /// The index must not lose a match: a set has each hash that was added.
    #[test]
    fn a_set_has_what_was_added_and_little_else() {
        let shape = SetShape {
            rows: 1024,
            bits: 3,
        };
        let hash = |set: u64, number: u64| xxh3_64(&(set << 32 | number).to_le_bytes());
        let mut writer = SetWriter::new(shape);
        const SETS: u64 = 150;
        for set in 0..SETS {
            (0..50).for_each(|number| writer.add(hash(set, number)));
            writer.close();
        }
        let mut out = b"before".to_vec();
        writer.write(&mut out).unwrap();
        assert_eq!(out.len() as u64, 6 + shape.bytes(SETS));
        let path = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(path.path(), &out).unwrap();
        let file = File::open(path.path()).unwrap();
        let sets = Sets {
            shape,
            at: 6,
            columns: SETS,
        };
        let mut wrong = 0;
        for set in 0..SETS {
            let found = sets.with_all(&file, [hash(set, 3), hash(set, 40)]).unwrap();
            assert!(found.has(set as usize));
            wrong += (0..SETS as usize).filter(|other| found.has(*other)).count() - 1;
        }
        assert!(wrong < 30, "{wrong}");
        assert!(sets.with_all(&file, []).unwrap().has(SETS as usize - 1));
    }
}
