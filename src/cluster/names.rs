//! Interned names: text in one arena, found by hash. Four bytes of index a name, no `String` each.

use std::hash::Hasher;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::{FxHashSet, FxHasher};

/// A set of distinct names, numbered from 0 in the order of insertion.
#[derive(Clone, Debug, Default)]
pub struct Names {
    text: String,
    /// Where each name ends in `text`.
    ends: Vec<u32>,
    table: HashTable<u32>,
    /// The numbers whose names may be given out again; mostly none.
    forgotten: FxHashSet<u32>,
}

/// The names take more than 4 GiB, or there are more than 2^32 − 1 of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many names: at most 4 GiB of text and 4,294,967,294 names")]
pub struct TooManyNames;

impl Names {
    /// The number of names.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if there is no name.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The name at `index`. Panics if there is none.
    pub fn get(&self, index: u32) -> &str {
        slice(&self.text, &self.ends, index)
    }

    /// The index of `name`, if it was inserted. O(length).
    pub fn find(&self, name: &str) -> Option<u32> {
        self.table.find(hash(name), |&index| self.get(index) == name).copied()
    }

    /// Inserts `name`; the flag is false if it was there already.
    ///
    /// # Errors
    /// If the arena is full; nothing has changed then.
    pub fn insert(&mut self, name: &str) -> Result<(u32, bool), TooManyNames> {
        if self.table.len() == self.table.capacity() {
            self.grow();
        }
        let hash = hash(name);
        let Self { text, ends, table, .. } = self;
        // The table has room: it never hashes again by itself, and so never reads names in the order of hashes.
        let entry = table.entry(hash, |&index| slice(text, ends, index) == name, |_| 0);
        let vacant = match entry {
            Entry::Occupied(found) => return Ok((*found.get(), false)),
            Entry::Vacant(vacant) => vacant,
        };
        let end = u32::try_from(text.len() + name.len()).map_err(|_| TooManyNames)?;
        let index = u32::try_from(ends.len()).ok().filter(|&index| index < u32::MAX).ok_or(TooManyNames)?;
        vacant.insert(index);
        text.push_str(name);
        ends.push(end);
        Ok((index, true))
    }

    /// Lets go of the name at `index`: it is found no more, and may be inserted again under another number. Its text stays,
    /// and so does [`Names::get`]. O(length).
    pub fn forget(&mut self, index: u32) {
        let hash = hash(self.get(index));
        if let Ok(entry) = self.table.find_entry(hash, |&other| other == index) {
            entry.remove();
            self.forgotten.insert(index);
        }
    }

    /// Takes [`Names::forget`] back, unless somebody else has the name by now.
    pub fn remember(&mut self, index: u32) {
        if self.forgotten.contains(&index) && self.find(self.get(index)).is_none() {
            if self.table.len() == self.table.capacity() {
                self.grow();
            }
            self.table.insert_unique(hash(self.get(index)), index, |_| 0);
            self.forgotten.remove(&index);
        }
    }

    /// Forgets all names from number `len` on, as if they had never been inserted. O(their lengths).
    pub fn truncate(&mut self, len: usize) {
        for index in len..self.ends.len() {
            self.forget(index as u32);
            self.forgotten.remove(&(index as u32));
        }
        self.ends.truncate(len);
        self.text.truncate(self.ends.last().map_or(0, |&end| end as usize));
    }

    /// A table of twice the size, filled in the order of the text.
    #[cold]
    fn grow(&mut self) {
        // The text says all that the old one knows; it goes first, so that there are never two.
        self.table = HashTable::new();
        let mut table = HashTable::with_capacity((self.ends.len() * 2).max(8));
        for index in (0..self.ends.len() as u32).filter(|index| !self.forgotten.contains(index)) {
            table.insert_unique(hash(self.get(index)), index, |_| 0);
        }
        self.table = table;
    }
}

fn slice<'t>(text: &'t str, ends: &[u32], index: u32) -> &'t str {
    let index = index as usize;
    let start = if index == 0 { 0 } else { ends[index - 1] as usize };
    &text[start..ends[index] as usize]
}

fn hash(name: &str) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(name.as_bytes());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_again_and_keep_their_numbers() {
        let mut names = Names::default();
        for i in 0..1000u32 {
            assert_eq!(names.insert(&format!("n{i}")), Ok((i, true)));
        }
        assert_eq!(names.insert("n7"), Ok((7, false)));
        assert_eq!(names.get(999), "n999");
        assert_eq!(names.find("n1000"), None);
        assert_eq!(names.insert(""), Ok((1000, true)));
        assert_eq!(names.get(1000), "");
    }

    #[test]
    fn names_that_are_forgotten_may_come_again() {
        let mut names = Names::default();
        for round in 0..50u32 {
            assert_eq!(names.insert("job"), Ok((round, true)));
            assert_eq!(names.insert("job"), Ok((round, false)));
            names.forget(round);
            names.forget(round);
            assert_eq!((names.find("job"), names.get(round)), (None, "job"));
        }
        // The table grows past what was forgotten.
        for i in 0..100u32 {
            assert_eq!(names.insert(&format!("n{i}")), Ok((50 + i, true)));
        }
        assert_eq!((names.find("job"), names.find("n99")), (None, Some(149)));
        names.truncate(60);
        assert_eq!((names.len(), names.find("n9"), names.find("n10")), (60, Some(59), None));
        assert_eq!(names.insert("n10"), Ok((60, true)));
        names.remember(3);
        assert_eq!(names.find("job"), Some(3));
        names.remember(4);
        assert_eq!(names.find("job"), Some(3));
        names.truncate(0);
        assert_eq!((names.len(), names.insert("job")), (0, Ok((0, true))));
    }
}
