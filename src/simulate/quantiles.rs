//! Quantiles of waits and completion times, and the averages of the method.

use super::outcome::Outcome;
use super::scenario::Scenario;
use crate::workload::TraceJob;

/// Quantiles of integers, mostly times in seconds, by nearest rank: the least value that at least the share of all values does not exceed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quantiles {
    /// How many values.
    pub n: u64,
    /// Their sum.
    pub sum: u128,
    /// The median.
    pub p50: u64,
    /// 90 %.
    pub p90: u64,
    /// 99 %.
    pub p99: u64,
    /// The largest.
    pub max: u64,
}

impl Quantiles {
    /// Of these values, which are sorted for it.
    pub fn of(values: &mut [u64]) -> Self {
        values.sort_unstable();
        let n = values.len();
        let rank = |percent: usize| (n * percent).div_ceil(100).saturating_sub(1);
        let at = |percent| values.get(rank(percent)).copied().unwrap_or(0);
        let sum = values.iter().map(|&value| u128::from(value)).sum();
        Self { n: n as u64, sum, p50: at(50), p90: at(90), p99: at(99), max: at(100) }
    }

    /// The mean; `None` of nothing.
    pub fn mean(&self) -> Option<f64> {
        (self.n > 0).then(|| self.sum as f64 / self.n as f64)
    }
}

/// Classes of jobs by all the GPUs that they ask for, shares summed: a name, and the most GPUs of the class.
pub const SIZE_CLASSES: [(&str, u64); 5] = [("0", 0), ("1", 1), ("2-4", 4), ("5-8", 8), (">8", u64::MAX)];

/// The jobs of one class that finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeClass {
    /// From submission to finish.
    pub jct: Quantiles,
    /// From submission to start.
    pub wait: Quantiles,
}

/// What an [`Outcome`] says about its jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Jobs of the trace.
    pub jobs: u64,
    /// Jobs that not even the empty cluster could take; they count for nothing else.
    pub rejected: u64,
    /// Jobs that still wait when nothing happens any more; neither they nor the rejected ones have times.
    pub waiting: u64,
    /// Jobs that still run then, since they stay forever; they have no times either.
    pub running: u64,
    /// From submission to finish, migrations included, of all jobs that finished.
    pub jct: Quantiles,
    /// From submission to start, of the same.
    pub wait: Quantiles,
    /// The same by [`SIZE_CLASSES`].
    pub classes: [SizeClass; SIZE_CLASSES.len()],
    /// How often a job of the trace that ran was paused because an event moved it.
    pub pauses: Quantiles,
}

/// The times of some jobs that finished.
#[derive(Default)]
struct Times {
    jct: Vec<u64>,
    wait: Vec<u64>,
}

impl Summary {
    /// Of the run `outcome` of a scenario.
    pub fn of(scenario: &Scenario, outcome: &Outcome) -> Self {
        let mut running = 0;
        let mut classes: [Times; SIZE_CLASSES.len()] = Default::default();
        for (job, became) in scenario.jobs().iter().zip(&outcome.jobs) {
            if let (Some(start), Some(finish)) = (became.start(), became.finish()) {
                let gpus = job.demand_milli().div_ceil(u64::from(TraceJob::WHOLE));
                let class = SIZE_CLASSES.iter().position(|&(_, most)| gpus <= most).unwrap_or(0);
                classes[class].jct.push(finish - job.submit_s);
                classes[class].wait.push(start - job.submit_s);
            } else if became.start().is_some() {
                running += 1;
            }
        }
        let mut all = Times::default();
        for class in &classes {
            all.jct.extend_from_slice(&class.jct);
            all.wait.extend_from_slice(&class.wait);
        }
        let jobs = scenario.jobs().len() as u64;
        let rejected = scenario.n_rejected();
        Self {
            jobs,
            rejected,
            waiting: jobs - rejected - running - all.jct.len() as u64,
            running,
            jct: Quantiles::of(&mut all.jct),
            wait: Quantiles::of(&mut all.wait),
            classes: classes.map(|Times { mut jct, mut wait }| SizeClass {
                jct: Quantiles::of(&mut jct),
                wait: Quantiles::of(&mut wait),
            }),
            pauses: {
                let ran = outcome.jobs.iter().filter(|job| job.start().is_some());
                Quantiles::of(&mut ran.map(|job| job.pauses.into()).collect::<Vec<u64>>())
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_the_nearest() {
        let of = |n: u64| {
            let mut values: Vec<u64> = (1..=n).rev().collect();
            let quantiles = Quantiles::of(&mut values);
            (quantiles.p50, quantiles.p90, quantiles.p99, quantiles.max)
        };
        assert_eq!(of(0), (0, 0, 0, 0));
        assert_eq!(of(1), (1, 1, 1, 1));
        assert_eq!(of(2), (1, 2, 2, 2));
        assert_eq!(of(10), (5, 9, 10, 10));
        assert_eq!(of(200), (100, 180, 198, 200));
        assert_eq!(Quantiles::of(&mut [3, 4]).mean(), Some(3.5));
        assert_eq!(Quantiles::of(&mut []).mean(), None);
    }
}
