//! A table in memory with a log of what it was before, so that a transaction or a part of it can be taken back. Relies on
//! its owner to mark and to forget; promises that what is taken back leaves no trace.

use std::collections::BTreeMap;

/// Rows by number.
#[derive(Clone, Debug)]
pub(super) struct Table<T> {
    rows: BTreeMap<i64, T>,
    /// What each change replaced, oldest first; `None`: there was no such row.
    undo: Vec<(i64, Option<T>)>,
    /// The highest number that was retired. What is taken back may leave it: a row has it again then.
    retired: i64,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self {
            rows: BTreeMap::new(),
            undo: Vec::new(),
            retired: 0,
        }
    }
}

impl<T> Table<T> {
    /// The row with this number.
    pub(super) fn get(&self, id: i64) -> Option<&T> {
        self.rows.get(&id)
    }

    /// All rows, by number.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (i64, &T)> {
        self.rows.iter().map(|(id, row)| (*id, row))
    }

    /// How many rows there are.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Adds a row behind the last one, and returns its number.
    pub(super) fn add(&mut self, row: T) -> i64 {
        let last = self.rows.last_key_value().map_or(0, |(last, _)| *last);
        let id = last.max(self.retired) + 1;
        self.put(id, row);
        id
    }

    /// Stores a row under this number, whether there was one or not.
    pub(super) fn put(&mut self, id: i64, row: T) {
        let before = self.rows.insert(id, row);
        self.undo.push((id, before));
    }

    /// Takes a row away.
    pub(super) fn remove(&mut self, id: i64) {
        if let Some(before) = self.rows.remove(&id) {
            self.undo.push((id, Some(before)));
        }
    }

    /// Takes a row away whose number no other may get.
    pub(super) fn retire(&mut self, id: i64) {
        self.retired = self.retired.max(id);
        self.remove(id);
    }

    /// The present place in the log of changes.
    pub(super) fn mark(&self) -> usize {
        self.undo.len()
    }

    /// Takes back everything after a mark.
    pub(super) fn go_back(&mut self, mark: usize) {
        while self.undo.len() > mark {
            match self.undo.pop() {
                Some((id, Some(before))) => drop(self.rows.insert(id, before)),
                Some((id, None)) => drop(self.rows.remove(&id)),
                None => return,
            }
        }
    }

    /// Makes everything so far final.
    pub(super) fn forget(&mut self) {
        self.undo.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_back_leaves_no_trace() {
        let mut table = Table::default();
        let first = table.add("a");
        table.forget();
        let mark = table.mark();
        let second = table.add("b");
        table.put(first, "changed");
        table.remove(first);
        let inner = table.mark();
        table.put(second, "again");
        table.go_back(inner);
        assert_eq!(table.get(second), Some(&"b"));
        table.go_back(mark);
        assert_eq!(table.iter().collect::<Vec<_>>(), [(first, &"a")]);
        assert_eq!(table.add("c"), second, "its number is free again");
        assert_eq!(table.len(), 2);
    }

    #[test]
    fn a_retired_number_is_given_to_no_other() {
        let mut table = Table::default();
        table.add("a");
        let mark = table.mark();
        let last = table.add("b");
        table.retire(last);
        assert_eq!(table.add("c"), last + 1);
        table.go_back(mark);
        assert_eq!(table.add("d"), last + 1);
    }
}
