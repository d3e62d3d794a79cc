//! Whose turn it may be under a policy that reorders the queue.

use std::collections::BTreeMap;

use crate::decide::Reordering;

/// How often each job that waits was overtaken.
#[derive(Debug)]
pub(super) struct Turns {
    rules: Reordering,
    /// Of the jobs that were; by position in the trace.
    overtaken: BTreeMap<usize, u32>,
}

impl Turns {
    pub(super) fn new(rules: Reordering) -> Self {
        Self { rules, overtaken: BTreeMap::new() }
    }

    /// The jobs whose turn it may be, of a queue in order: no more than the window holds, and nobody behind one that was
    /// overtaken as often as it may be.
    pub(super) fn window(&self, queue: impl Iterator<Item = usize>) -> Vec<usize> {
        let mut window = Vec::with_capacity(self.rules.window);
        for position in queue.take(self.rules.window) {
            window.push(position);
            if self.is_last(position) {
                break;
            }
        }
        window
    }

    /// Whom a job waits behind, of the same queue, if its turn cannot come yet: the one that nobody passes any more, or
    /// else the first.
    pub(super) fn first_before(&self, position: usize, queue: impl Iterator<Item = usize>) -> Option<usize> {
        let window = self.window(queue);
        let last = window.last().copied().filter(|&last| self.is_last(last));
        if window.contains(&position) { None } else { last.or(window.first().copied()) }
    }

    /// A job of a window starts, and overtakes those before it.
    pub(super) fn started(&mut self, position: usize, window: &[usize]) {
        for &before in window.iter().take_while(|&&before| before != position) {
            *self.overtaken.entry(before).or_default() += 1;
        }
        self.overtaken.remove(&position);
    }

    fn is_last(&self, position: usize) -> bool {
        self.overtaken.get(&position).is_some_and(|&n| n >= self.rules.overtakings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_passes_a_job_that_was_overtaken_often_enough() {
        let mut turns = Turns::new(Reordering { window: 3, overtakings: 2 });
        let queue = [4, 2, 9, 7, 8];
        assert_eq!(turns.window(queue.into_iter()), [4, 2, 9]);
        let before = |turns: &Turns, position| turns.first_before(position, queue.into_iter());
        assert_eq!((before(&turns, 9), before(&turns, 7)), (None, Some(4)));
        turns.started(9, &[4, 2, 9]);
        turns.started(2, &[4, 2, 7]);
        assert_eq!(turns.window([4, 7, 8].into_iter()), [4]);
        assert_eq!(turns.first_before(7, [4, 7, 8].into_iter()), Some(4));
        // Its turn has come; the next is passed for the first time.
        turns.started(4, &[4]);
        assert_eq!(turns.window([7, 8].into_iter()), [7, 8]);
        // In the middle of a queue it is the end of the window.
        turns.started(8, &[7, 8]);
        turns.started(5, &[7, 5]);
        assert_eq!(turns.window([3, 7, 6].into_iter()), [3, 7]);
        assert_eq!(turns.first_before(6, [3, 7, 6].into_iter()), Some(7));
    }
}
