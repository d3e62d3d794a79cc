//! A set of small numbers that finds its lowest member in a few steps, however large it is.

/// A set of numbers below a fixed bound, as a tree of 64-bit words: each bit of a level says whether the word below it
/// has any bit. Insert, remove and the search for the next member take one word a level, three for 262,144 numbers.
/// No memory is taken before the first insertion.
#[derive(Clone, Debug, Default)]
pub struct NodeSet {
    bound: u32,
    len: u32,
    /// Lowest level first; the last has one word.
    levels: Vec<Box<[u64]>>,
}

impl NodeSet {
    /// An empty set of numbers below `bound`.
    pub const fn new(bound: u32) -> Self {
        Self { bound, len: 0, levels: Vec::new() }
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
    pub fn insert(&mut self, member: u32) {
        debug_assert!(member < self.bound && !self.contains(member));
        if self.levels.is_empty() {
            let mut words = self.bound;
            loop {
                words = words.div_ceil(64);
                self.levels.push(vec![0; words as usize].into_boxed_slice());
                if words <= 1 {
                    break;
                }
            }
        }
        self.len += 1;
        let mut at = member as usize;
        for level in &mut self.levels {
            let word = &mut level[at / 64];
            let was = *word;
            *word |= 1 << (at % 64);
            if was != 0 {
                break;
            }
            at /= 64;
        }
    }

    /// Removes a member that was in it.
    pub fn remove(&mut self, member: u32) {
        debug_assert!(self.contains(member));
        self.len -= 1;
        let mut at = member as usize;
        for level in &mut self.levels {
            let word = &mut level[at / 64];
            *word &= !(1 << (at % 64));
            if *word != 0 {
                break;
            }
            at /= 64;
        }
    }

    /// Whether it is a member.
    pub fn contains(&self, member: u32) -> bool {
        self.levels.first().is_some_and(|level| level[member as usize / 64] >> (member % 64) & 1 == 1)
    }

    /// The lowest member.
    pub fn first(&self) -> Option<u32> {
        self.next(0)
    }

    /// The lowest member that is at least `from`.
    pub fn next(&self, from: u32) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        let mut at = from as usize;
        for (height, level) in self.levels.iter().enumerate() {
            let word = level.get(at / 64)? >> (at % 64);
            if word != 0 {
                let mut found = at + word.trailing_zeros() as usize;
                for below in self.levels[..height].iter().rev() {
                    found = found * 64 + below[found].trailing_zeros() as usize;
                }
                return Some(found as u32);
            }
            at = at / 64 + 1;
        }
        None
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
        }
    }
}
