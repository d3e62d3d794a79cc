//! Compositions: the multiset of instance sizes that a node holds, as one small number.
//!
//! There are 915 multisets of sizes 1..=16 whose sum is at most 16. They are numbered by sum first, so those of a node
//! of capacity G are the first p(0) + … + p(G) of them (67 for 8) and the numbers mean the same on every capacity.

use std::sync::LazyLock;

use super::capacity::{MAX_GPUS, PerSize};

/// The number of compositions of the largest node.
pub const N_COMPOSITIONS: usize = 915;

/// What a node holds, whoever holds it: a multiset of instance sizes. CPU-only instances are no part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Composition(u16);

/// No such composition.
const NONE: u16 = u16::MAX;

struct Tables {
    counts: Vec<PerSize<u8>>,
    busy: Vec<u8>,
    with: Vec<PerSize<u16>>,
    without: Vec<PerSize<u16>>,
    /// How many compositions have a sum of at most the index.
    up_to: PerSize<usize>,
}

static TABLES: LazyLock<Tables> = LazyLock::new(Tables::generate);

impl Composition {
    /// The composition of an empty node.
    pub const EMPTY: Self = Self(0);

    /// The composition of this number, if there is one.
    pub fn from_number(number: u16) -> Option<Self> {
        (usize::from(number) < N_COMPOSITIONS).then_some(Self(number))
    }

    /// The composition of these instance sizes; `None` if they need more than 16 GPUs or one is 0.
    pub fn from_sizes(sizes: impl IntoIterator<Item = u8>) -> Option<Self> {
        sizes.into_iter().try_fold(Self::EMPTY, Self::with)
    }

    /// Its number, 0..915; below `Composition::number_up_to(capacity)` on a node of that capacity.
    pub const fn number(self) -> u16 {
        self.0
    }

    /// All compositions of nodes of `capacity`, in order of their numbers.
    pub fn all(capacity: u8) -> impl Iterator<Item = Self> {
        (0..Self::number_up_to(capacity) as u16).map(Self)
    }

    /// The number of compositions of a node of `capacity`: 67 for 8, 915 for 16.
    pub fn number_up_to(capacity: u8) -> usize {
        TABLES.up_to[usize::from(capacity)]
    }

    /// GPUs held.
    #[inline]
    pub fn busy(self) -> u8 {
        TABLES.busy[usize::from(self.0)]
    }

    /// How many instances of each size; index 0 is unused.
    pub fn counts(self) -> &'static PerSize<u8> {
        &TABLES.counts[usize::from(self.0)]
    }

    /// The number of instances of `gpus` GPUs.
    pub fn count(self, gpus: u8) -> u8 {
        TABLES.counts[usize::from(self.0)][usize::from(gpus)]
    }

    /// With one instance of `gpus` GPUs more; `None` if that needs more than 16, or for size 0.
    #[inline]
    pub fn with(self, gpus: u8) -> Option<Self> {
        let next = TABLES.with[usize::from(self.0)].get(usize::from(gpus)).copied().unwrap_or(NONE);
        (next != NONE).then_some(Self(next))
    }

    /// With one instance of `gpus` GPUs less; `None` if there is none.
    #[inline]
    pub fn without(self, gpus: u8) -> Option<Self> {
        let next = TABLES.without[usize::from(self.0)].get(usize::from(gpus)).copied().unwrap_or(NONE);
        (next != NONE).then_some(Self(next))
    }
}

impl std::fmt::Display for Composition {
    /// Largest first, as in `{4,2,1,1}`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sizes = (1..=MAX_GPUS as u8).rev().flat_map(|g| std::iter::repeat_n(g, usize::from(self.count(g))));
        write!(f, "{{")?;
        for (i, size) in sizes.enumerate() {
            if i > 0 {
                write!(f, ",")?;
            }
            write!(f, "{size}")?;
        }
        write!(f, "}}")
    }
}

impl Tables {
    fn generate() -> Self {
        let mut counts = Vec::with_capacity(N_COMPOSITIONS);
        let mut up_to = [0; MAX_GPUS + 1];
        for (sum, end) in up_to.iter_mut().enumerate() {
            partitions(sum as u8, MAX_GPUS as u8, &mut [0; MAX_GPUS + 1], &mut counts);
            *end = counts.len();
        }
        let number: std::collections::HashMap<PerSize<u8>, u16> =
            counts.iter().enumerate().map(|(i, c)| (*c, i as u16)).collect();
        let step = |from: &PerSize<u8>, size: usize, delta: i8| {
            let mut to = *from;
            match to[size].checked_add_signed(delta) {
                Some(n) if size > 0 => to[size] = n,
                _ => return NONE,
            }
            number.get(&to).copied().unwrap_or(NONE)
        };
        let steps = |delta| counts.iter().map(|c| std::array::from_fn(|size| step(c, size, delta))).collect();
        let busy = counts.iter().map(|c| c.iter().enumerate().map(|(size, &n)| size as u8 * n).sum()).collect();
        Self { with: steps(1), without: steps(-1), busy, counts, up_to }
    }
}

/// Appends all multisets of sizes at most `largest` with this sum, in descending lexicographic order.
fn partitions(sum: u8, largest: u8, so_far: &mut PerSize<u8>, out: &mut Vec<PerSize<u8>>) {
    if sum == 0 {
        out.push(*so_far);
        return;
    }
    for size in (1..=largest.min(sum)).rev() {
        so_far[usize::from(size)] += 1;
        partitions(sum - size, size, so_far, out);
        so_far[usize::from(size)] -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_as_partitions() {
        assert_eq!(Composition::number_up_to(8), 67);
        assert_eq!(Composition::number_up_to(16), N_COMPOSITIONS);
        assert_eq!(Composition::number_up_to(1), 2);
        assert_eq!(Composition::number_up_to(0), 1);
    }

    #[test]
    fn adding_and_removing_are_inverse() {
        for composition in Composition::all(16) {
            for gpus in 1..=16 {
                match composition.with(gpus) {
                    Some(next) => {
                        assert_eq!(next.without(gpus), Some(composition));
                        assert_eq!(next.busy(), composition.busy() + gpus);
                    }
                    None => assert!(composition.busy() + gpus > 16),
                }
            }
            assert_eq!(composition.with(0), None);
            assert_eq!(composition.without(0), None);
            assert_eq!(composition.with(17), None);
        }
    }

    #[test]
    fn the_text_is_largest_first() {
        assert_eq!(Composition::from_sizes([1, 4, 1, 2]).unwrap().to_string(), "{4,2,1,1}");
        assert_eq!(Composition::EMPTY.to_string(), "{}");
        assert_eq!(Composition::from_sizes([9, 8]), None);
    }
}
