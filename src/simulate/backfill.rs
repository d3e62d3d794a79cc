//! EASY's reservation for the head of the queue.

/// What the head of a queue is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reservation {
    /// When, by the number of GPUs, it could start.
    at: u64,
    /// GPUs that it leaves over then.
    spare: u64,
}

impl Reservation {
    /// The earliest instant at which `wanted` GPUs are free, if `free` are now and those of the running jobs come back
    /// in the order of `by_finish`. Without such an instant nothing that is backfilled is in the way.
    ///
    /// Whatever this overlooks (fragmentation, cordoned nodes) makes the head start later than `at`. An earlier promise
    /// admits fewer jobs before it, so all errors are on the side of the head.
    pub(super) fn new(now: u64, free: u64, wanted: u64, by_finish: impl Iterator<Item = (u64, u64)>) -> Self {
        let (mut at, mut free) = (now, free);
        for (finish, gpus) in by_finish {
            // Everything that leaves at the promised instant is free at it.
            if free >= wanted && finish > at {
                break;
            }
            (at, free) = (finish.max(now), free.saturating_add(gpus));
        }
        match free.checked_sub(wanted) {
            Some(spare) => Self { at, spare },
            None => Self { at: u64::MAX, spare: u64::MAX },
        }
    }

    /// Whether a job of so many GPUs that would run up to `finish` leaves the promise as it is.
    pub(super) fn allows(&self, gpus: u64, finish: u64) -> bool {
        finish <= self.at || gpus <= self.spare
    }

    /// Such a job starts.
    pub(super) fn take(&mut self, gpus: u64, finish: u64) {
        if finish > self.at {
            self.spare = self.spare.saturating_sub(gpus);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_promise_is_the_first_instant_with_enough_gpus() {
        let running = [(20, 2), (30, 3), (30, 1), (40, 8)];
        let of = |free, wanted| Reservation::new(10, free, wanted, running.into_iter());
        assert_eq!(of(1, 1), Reservation { at: 10, spare: 0 });
        assert_eq!(of(1, 3), Reservation { at: 20, spare: 0 });
        assert_eq!(of(1, 4), Reservation { at: 30, spare: 3 });
        assert_eq!(of(0, 15), Reservation { at: u64::MAX, spare: u64::MAX });
        let mut promise = of(1, 4);
        assert!(promise.allows(9, 30) && promise.allows(3, 31) && !promise.allows(4, 31));
        promise.take(9, 30);
        promise.take(2, 31);
        assert_eq!(promise, Reservation { at: 30, spare: 1 });
    }
}
