//! EASY's reservation for the head of the queue.

use crate::cluster::WHOLE_GPU;
use crate::workload::TraceJob;

/// What a reservation counts: so many thousandths of one device as the head asks of each of its GPUs. For a head of whole
/// GPUs that is a GPU that is free whole, as in the method's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    gpu_milli: u16,
}

impl Place {
    /// The places that a job asks for, as many as [`TraceJob::gpus`].
    pub(super) fn of(head: &TraceJob) -> Self {
        Self { gpu_milli: head.gpu_milli }
    }

    /// Thousandths of a device.
    pub(super) fn gpu_milli(self) -> u16 {
        self.gpu_milli
    }

    /// The places on a device of which so much is left.
    pub(super) fn on(self, left: u16) -> u64 {
        u64::from(left / self.gpu_milli)
    }

    /// The most places that a job can take, wherever its instances lie: what a share takes of a device is never more than
    /// so many places begun, nor than all of its places.
    pub(super) fn taken_by(self, job: &TraceJob) -> u64 {
        job.gpus() * u64::from(job.gpu_milli.div_ceil(self.gpu_milli)).min(self.on(WHOLE_GPU))
    }
}

/// What the head of a queue is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reservation {
    /// When, by the number of places, it could start.
    at: u64,
    /// Places that it leaves over then.
    spare: u64,
}

impl Reservation {
    /// The earliest instant at which `wanted` places are free, if `free` are now and those of the running jobs come back
    /// in the order of `by_finish`. Without such an instant nothing that is backfilled is in the way.
    ///
    /// What this overlooks, fragmentation, makes the head start later than `at`. An earlier promise admits fewer jobs before
    /// it, so that error is on the side of the head.
    pub(super) fn new(now: u64, free: u64, wanted: u64, by_finish: impl Iterator<Item = (u64, u64)>) -> Self {
        let (mut at, mut free) = (now, free);
        for (finish, places) in by_finish {
            // Everything that leaves at the promised instant is free at it.
            if free >= wanted && finish > at {
                break;
            }
            (at, free) = (finish.max(now), free.saturating_add(places));
        }
        match free.checked_sub(wanted) {
            Some(spare) => Self { at, spare },
            None => Self { at: u64::MAX, spare: u64::MAX },
        }
    }

    /// Whether a job that takes so many places at most and would run up to `finish` leaves the promise as it is.
    pub(super) fn allows(&self, places: u64, finish: u64) -> bool {
        finish <= self.at || places <= self.spare
    }

    /// Such a job starts.
    pub(super) fn take(&mut self, places: u64, finish: u64) {
        if finish > self.at {
            self.spare = self.spare.saturating_sub(places);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anchor::Trigger;
    use crate::cluster::NodeId;
    use crate::simulate::{Discipline, Scenario, Scheduler, SimOptions, simulate};
    use crate::workload::{NodeChange, NodeEvent};

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

    #[test]
    fn what_comes_free_on_a_drained_node_is_promised_to_nobody() {
        // At 10 the drained node is empty, and at 20 the other. Whoever took 4 GPUs of it for long would keep the head.
        let job = |submit_s, duration_s, gpus_per_instance| TraceJob {
            name: format!("{submit_s} {gpus_per_instance}"),
            submit_s,
            duration_s,
            gpus_per_instance,
            ..TraceJob::default()
        };
        let jobs = vec![job(0, 10, 8), job(0, 20, 4), job(2, 5, 8), job(3, 90, 4), job(4, 16, 3)];
        let drain = NodeEvent { at_s: 1, node: NodeId(0), change: NodeChange::Drain };
        let scenario = Scenario::homogeneous(2, 8, jobs).unwrap().with_events(vec![drain]);
        let best_fit = Scheduler::parse("best-fit", (Trigger::EveryEvent, None)).unwrap();
        let options = SimOptions { discipline: Discipline::Easy, ..SimOptions::default() };
        let outcome = simulate(&scenario, best_fit, &options, &mut |_| {}).unwrap();
        let starts: Vec<Option<u64>> = outcome.jobs.iter().map(|job| job.start()).collect();
        assert_eq!(starts, [0, 0, 20, 25, 4].map(Some));
    }

    #[test]
    fn a_share_never_takes_more_places_than_are_said() {
        for each in [1, 7, 250, 333, 400, 500, 501, 999, 1000] {
            let place = Place { gpu_milli: each };
            for gpu_milli in [1, 6, 7, 8, 249, 250, 251, 334, 500, 666, 999, 1000] {
                let job = TraceJob { gpus_per_instance: 1, instances: 3, gpu_milli, ..TraceJob::default() };
                let most = (gpu_milli..=WHOLE_GPU).map(|left| place.on(left) - place.on(left - gpu_milli)).max();
                assert_eq!(Some(place.taken_by(&job)), most.map(|most| 3 * most), "{gpu_milli} of {each}");
            }
        }
        let whole = TraceJob { gpus_per_instance: 8, instances: 2, ..TraceJob::default() };
        assert_eq!([1000, 500, 300].map(|gpu_milli| Place { gpu_milli }.taken_by(&whole)), [16, 32, 48]);
    }
}
