//! The multisets of items that a room can receive.

use super::columns::{MOST_COLUMNS, TooLarge};
use super::layout::{Counts, Item, UNBOUND};

/// Whether `n` instances fit into so many GPUs, so much CPU and memory.
pub(super) fn fits(item: &Item, n: i64, (free, cpu, memory): (u8, i64, i64)) -> bool {
    i64::from(item.gpus) * n <= i64::from(free) && item.cpu * n <= cpu && item.memory * n <= memory
}

/// A search of them, item by item: which may come, with how many of each at most.
pub(super) struct Packings<'a> {
    pub(super) list: &'a [(u16, &'a Item, i64)],
    /// Not the maximal ones only, nothing at all included.
    pub(super) all: bool,
    pub(super) chosen: Counts,
    pub(super) found: Vec<Counts>,
    pub(super) steps: usize,
}

impl Packings<'_> {
    /// All ways to go on with the items from `at` on in what is left.
    pub(super) fn fill(&mut self, at: usize, left: (u8, i64, i64)) -> Result<(), TooLarge> {
        self.steps += 1;
        if self.steps > 20 * MOST_COLUMNS {
            return Err(TooLarge);
        }
        let Some(&(number, item, limit)) = self.list.get(at) else {
            if self.all || !self.chosen.is_empty() && self.is_maximal(left) {
                self.found.push(self.chosen.clone());
            }
            return if self.found.len() > MOST_COLUMNS { Err(TooLarge) } else { Ok(()) };
        };
        let mut n: u16 = 0;
        let mut room = left;
        loop {
            self.fill(at + 1, room)?;
            if i64::from(n) >= limit || n == u16::MAX || !fits(item, 1, room) {
                break;
            }
            if n > 0 {
                self.chosen.pop();
            }
            n += 1;
            room = (room.0 - item.gpus, less(room.1, item.cpu), less(room.2, item.memory));
            self.chosen.push((number, n));
        }
        if n > 0 {
            self.chosen.pop();
        }
        Ok(())
    }

    /// Whether nothing more fits.
    fn is_maximal(&self, left: (u8, i64, i64)) -> bool {
        self.list.iter().all(|&(number, item, limit)| {
            let n = self.chosen.iter().find(|&&(chosen, _)| chosen == number).map_or(0, |&(_, n)| i64::from(n));
            n >= limit || !fits(item, 1, left)
        })
    }
}

fn less(amount: i64, by: i64) -> i64 {
    if amount == UNBOUND { UNBOUND } else { amount - by }
}
