//! Puts records in an order in which parents come before their children. It does not use recursion. It is linear,
//! except that siblings are sorted.

use hashbrown::HashMap;

/// The parent of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Above {
    /// The record names no parent.
    Nothing,
    /// The record names a parent that does not exist.
    Missing,
    /// The index of the parent.
    Record(usize),
}

/// Records with their ids and parents.
#[derive(Debug, Default)]
pub(crate) struct Hanging {
    by_id: HashMap<Box<str>, usize>,
    /// For each record, the id of its parent.
    parents: Vec<Option<Box<str>>>,
    /// For each record, by its id: its position among its siblings.
    ranks: HashMap<Box<str>, usize>,
}

impl Hanging {
    /// Adds a record. If an earlier record has the same id, returns its index; the id then stays with the earlier
    /// record.
    pub(crate) fn add(&mut self, id: &str, parent: Option<&str>) -> Option<usize> {
        let number = self.parents.len();
        self.parents.push(parent.map(Box::from));
        match self.by_id.get(id) {
            Some(first) => Some(*first),
            None => {
                self.by_id.insert(id.into(), number);
                None
            }
        }
    }

    /// Sets the position of a record among its siblings. The first call for an id counts.
    pub(crate) fn rank(&mut self, id: &str, rank: usize) {
        if !self.ranks.contains_key(id) {
            self.ranks.insert(id.into(), rank);
        }
    }

    /// The index of the first record with this id.
    pub(crate) fn find(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    /// All records with their parents, in an order in which a record comes after its parent. The first record of a
    /// cycle gets no parent.
    pub(crate) fn order(&self) -> Vec<(usize, Above)> {
        let count = self.parents.len();
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); count];
        let mut above = Vec::with_capacity(count);
        for (number, parent) in self.parents.iter().enumerate() {
            let found = parent.as_deref().map(|parent| self.find(parent));
            above.push(match found {
                None => Above::Nothing,
                Some(Some(parent)) if parent != number => Above::Record(parent),
                Some(Some(_)) => Above::Nothing,
                Some(None) => Above::Missing,
            });
            if let Some(Some(parent)) = found
                && parent != number
                && let Some(of) = children.get_mut(parent)
            {
                of.push(number);
            }
        }
        self.sort(&mut children);
        let mut ordered = Vec::with_capacity(count);
        let mut is_done = vec![false; count];
        let mut take = |first: usize, at: Above| {
            let mut waiting = vec![(first, at)];
            while let Some((number, at)) = waiting.pop() {
                let Some(done) = is_done.get_mut(number).filter(|done| !**done) else {
                    continue;
                };
                *done = true;
                ordered.push((number, at));
                let below = children.get(number).into_iter().flatten().rev();
                waiting.extend(below.map(|child| (*child, Above::Record(number))));
            }
        };
        for (number, at) in above.iter().enumerate() {
            if !matches!(at, Above::Record(_)) {
                take(number, *at);
            }
        }
        // The remaining records are in cycles, or below cycles.
        for number in 0..count {
            take(number, Above::Nothing);
        }
        ordered
    }

    fn sort(&self, children: &mut [Vec<usize>]) {
        if self.ranks.is_empty() {
            return;
        }
        let mut ranks = vec![usize::MAX; self.parents.len()];
        for (id, rank) in &self.ranks {
            if let Some(slot) = self.find(id).and_then(|number| ranks.get_mut(number)) {
                *slot = *rank;
            }
        }
        for siblings in children.iter_mut().filter(|siblings| siblings.len() > 1) {
            siblings.sort_by_key(|number| (ranks.get(*number).copied(), *number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hanging(records: &[(&str, Option<&str>)]) -> Hanging {
        let mut hanging = Hanging::default();
        for (id, parent) in records {
            hanging.add(id, *parent);
        }
        hanging
    }

    #[test]
    fn parents_come_first_and_siblings_in_their_order() {
        let mut records = hanging(&[
            ("c", Some("b")),
            ("d", Some("b")),
            ("b", Some("a")),
            ("a", None),
            ("lost", Some("nobody")),
        ]);
        records.rank("d", 0);
        records.rank("c", 1);
        let expected = [
            (3, Above::Nothing),
            (2, Above::Record(3)),
            (1, Above::Record(2)),
            (0, Above::Record(2)),
            (4, Above::Missing),
        ];
        assert_eq!(records.order(), expected);
    }

    #[test]
    fn each_record_of_a_circle_is_there_once() {
        let records = hanging(&[
            ("a", Some("c")),
            ("b", Some("a")),
            ("c", Some("b")),
            ("d", Some("c")),
            ("self", Some("self")),
        ]);
        let mut order: Vec<usize> = records.order().iter().map(|(number, _)| *number).collect();
        assert_eq!(records.order()[0], (4, Above::Nothing));
        order.sort_unstable();
        assert_eq!(order, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn the_first_record_with_an_id_has_its_place() {
        let mut records = hanging(&[("a", None)]);
        assert_eq!(records.add("a", Some("x")), Some(0));
        assert_eq!(records.find("a"), Some(0));
        assert_eq!(records.order().len(), 2);
    }

    #[test]
    fn a_chain_and_a_row_of_100_000_records_are_ordered() {
        let names: Vec<String> = (0..100_000).map(|number| number.to_string()).collect();
        let mut chain = Hanging::default();
        let mut row = Hanging::default();
        row.add("root", None);
        for (number, name) in names.iter().enumerate() {
            chain.add(name, number.checked_sub(1).map(|above| &*names[above]));
            row.add(name, Some("root"));
        }
        assert_eq!(chain.order().len(), 100_000);
        assert_eq!(row.order().len(), 100_001);
    }
}
