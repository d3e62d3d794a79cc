//! A set of small numbers that finds its lowest member in a few steps, however large it is.

/// A set of numbers below a fixed bound, as a tree of 64-bit words: each bit of a level says whether the word below it
/// has any bit. Insert, remove and the search for the next member take one word a level, three for 262,144 numbers.
/// No memory is taken before the first insertion.
#[derive(Clone, Debug, Default)]
pub struct NodeSet {
    bound: u32,
    len: u32,
    /// All levels one after another, lowest first; the last has one word.
    words: Vec<u64>,
    /// Where each level starts in `words`; 2^32 numbers take six.
    starts: [u32; 6],
    n_levels: u32,
}

impl NodeSet {
    /// An empty set of numbers below `bound`.
    pub fn new(bound: u32) -> Self {
        let mut set = Self { bound, ..Self::default() };
        let (mut start, mut words) = (0, bound);
        loop {
            words = words.div_ceil(64);
            set.starts[set.n_levels as usize] = start;
            set.n_levels += 1;
            start += words;
            if words <= 1 {
                return set;
            }
        }
    }

    /// The number of members.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// True if it has no member.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a member that was not in it.
    #[inline]
    pub fn insert(&mut self, member: u32) {
        debug_assert!(member < self.bound && !self.contains(member));
        if self.words.is_empty() {
            self.allocate();
        }
        self.len += 1;
        // Mostly the lowest word has other members, and nothing above changes.
        let word = &mut self.words[member as usize / 64];
        let was = *word;
        *word |= 1 << (member % 64);
        if was == 0 {
            self.raise(member / 64);
        }
    }

    /// Removes a member that was in it.
    #[inline]
    pub fn remove(&mut self, member: u32) {
        debug_assert!(self.contains(member));
        self.len -= 1;
        let word = &mut self.words[member as usize / 64];
        *word &= !(1 << (member % 64));
        if *word == 0 {
            self.lower(member / 64);
        }
    }

    #[cold]
    fn allocate(&mut self) {
        let top = self.starts[self.n_levels as usize - 1];
        self.words = vec![0; top as usize + 1];
    }

    /// Says in the levels above the lowest that word `at` has a member now.
    #[inline(never)]
    fn raise(&mut self, mut at: u32) {
        for &start in &self.starts[1..self.n_levels as usize] {
            let word = &mut self.words[(start + at / 64) as usize];
            let was = *word;
            *word |= 1 << (at % 64);
            if was != 0 {
                break;
            }
            at /= 64;
        }
    }

    /// Says in the levels above the lowest that word `at` has no member any more.
    #[inline(never)]
    fn lower(&mut self, mut at: u32) {
        for &start in &self.starts[1..self.n_levels as usize] {
            let word = &mut self.words[(start + at / 64) as usize];
            *word &= !(1 << (at % 64));
            if *word != 0 {
                break;
            }
            at /= 64;
        }
    }

    /// Whether it is a member.
    pub fn contains(&self, member: u32) -> bool {
        member < self.bound && self.words.get(member as usize / 64).is_some_and(|word| word >> (member % 64) & 1 == 1)
    }

    /// The lowest member.
    pub fn first(&self) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        let down = self.starts[..self.n_levels as usize].iter().rev();
        Some(down.fold(0, |found, &start| found * 64 + self.words[(start + found) as usize].trailing_zeros()))
    }

    /// The lowest member that is at least `from`.
    pub fn next(&self, from: u32) -> Option<u32> {
        if self.len == 0 || from >= self.bound {
            return None;
        }
        let n_levels = self.n_levels as usize;
        let mut at = from;
        for level in 0..n_levels {
            let end = if level + 1 < n_levels { self.starts[level + 1] } else { self.words.len() as u32 };
            let index = self.starts[level] + at / 64;
            if index >= end {
                return None;
            }
            let word = self.words[index as usize] >> (at % 64);
            if word != 0 {
                let mut found = at + word.trailing_zeros();
                for &start in self.starts[..level].iter().rev() {
                    found = found * 64 + self.words[(start + found) as usize].trailing_zeros();
                }
                return Some(found);
            }
            at = at / 64 + 1;
        }
        None
    }

    /// The member that has `n` lower ones. Takes a step for every 64 numbers, from the nearer end.
    pub fn nth(&self, n: u32) -> Option<u32> {
        let from_top = self.len.checked_sub(1)?.checked_sub(n)?;
        let end = if self.n_levels > 1 { self.starts[1] as usize } else { self.words.len() };
        let words = self.words[..end].iter().enumerate();
        // Members of the word that are lower than the one that is looked for, or higher.
        let (mut left, upwards) = if n <= from_top { (n, true) } else { (from_top, false) };
        let mut holds = |&(_, word): &(usize, &u64)| {
            // Most words of a sparse set have no member, and counting bits takes a dozen instructions.
            let members = if *word == 0 { 0 } else { word.count_ones() };
            let here = left < members;
            left -= if here { 0 } else { members };
            here
        };
        let found = if upwards { { words }.find(&mut holds) } else { words.rev().find(&mut holds) };
        let (at, &word) = found?;
        let lower = if upwards { left } else { word.count_ones() - 1 - left };
        let rest = (0..lower).fold(word, |word, _| word & (word - 1));
        Some(at as u32 * 64 + rest.trailing_zeros())
    }

    /// All members, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let mut from = 0;
        std::iter::from_fn(move || {
            let member = self.next(from)?;
            from = member + 1;
            Some(member)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_set(bound in 1u32..9000, steps in prop::collection::vec(any::<u32>(), 0..200), from in any::<u32>()) {
            let (mut set, mut model) = (NodeSet::new(bound), BTreeSet::new());
            for step in steps {
                let member = step % bound;
                if model.insert(member) {
                    set.insert(member);
                } else {
                    model.remove(&member);
                    set.remove(member);
                }
                prop_assert_eq!(set.first(), model.first().copied());
            }
            let from = from % (bound + 2);
            prop_assert_eq!(set.next(from), model.range(from..).next().copied());
            prop_assert!(set.iter().eq(model.iter().copied()));
            prop_assert_eq!(set.len() as usize, model.len());
            for n in 0..=model.len() {
                prop_assert_eq!(set.nth(n as u32), model.iter().nth(n).copied());
            }
        }
    }
}
