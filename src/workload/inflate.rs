//! Inflation: the jobs of a trace in random order, repeated until they ask for a given share of a cluster.

use rustc_hash::FxHashSet;

use super::TraceJob;
use super::synthetic::Dice;

/// What an inflated workload is to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inflation {
    /// The GPUs of the cluster.
    pub gpus: u64,
    /// The share of them that all jobs together are to ask for, shares of a GPU counted as such.
    pub percent: u32,
    /// The same seed makes the same workload.
    pub seed: u64,
}

/// All jobs, shuffled, then jobs drawn from them with repetition, under new names, until the next would exceed the share
/// (FGD, USENIX ATC 2023, §6: the trace's load is a sample's, so it is inflated until the cluster is full). Where the jobs
/// ask for more than the share at once, those that come after it is reached are left out. Times do not matter.
pub fn inflate(jobs: &[TraceJob], inflation: &Inflation) -> Vec<TraceJob> {
    let mut dice = Dice::new(inflation.seed, 5);
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, dice.below(last as u64 + 1) as usize);
    }
    let milli = |job: &TraceJob| u128::from(job.demand_milli());
    let most = u128::from(inflation.gpus) * u128::from(TraceJob::WHOLE) * u128::from(inflation.percent) / 100;
    let mut demand = 0;
    let mut inflated = Vec::with_capacity(jobs.len());
    for &at in &order {
        if demand + milli(&jobs[at]) > most {
            return inflated;
        }
        demand += milli(&jobs[at]);
        inflated.push(jobs[at].clone());
    }
    if demand == 0 {
        // Nothing that is repeated would ever ask for a GPU.
        return inflated;
    }
    let mut names: FxHashSet<String> = jobs.iter().map(|job| job.name.clone()).collect();
    let mut copies = vec![0u64; jobs.len()];
    loop {
        let at = dice.below(jobs.len() as u64) as usize;
        demand += milli(&jobs[at]);
        if demand > most {
            return inflated;
        }
        let name = loop {
            copies[at] += 1;
            let name = format!("{}+{}", jobs[at].name, copies[at]);
            if names.insert(name.clone()) {
                break name;
            }
        };
        inflated.push(TraceJob { name, ..jobs[at].clone() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs() -> Vec<TraceJob> {
        let job = |i: u16| TraceJob {
            name: format!("j{}", i % 9),
            gpus_per_instance: [0, 1, 1, 4][usize::from(i % 4)],
            gpu_milli: if i % 4 == 1 { 100 + i } else { TraceJob::WHOLE },
            ..TraceJob::default()
        };
        // The last has a name that the first repetition of another would have.
        let mut jobs: Vec<TraceJob> = (0..9).map(job).collect();
        jobs.push(TraceJob { name: "j3+1".to_owned(), ..job(2) });
        jobs
    }

    fn milli(jobs: &[TraceJob]) -> u64 {
        jobs.iter().map(TraceJob::demand_milli).sum()
    }

    #[test]
    fn the_share_is_all_but_reached_and_the_seed_decides() {
        let of = |gpus, percent, seed| inflate(&jobs(), &Inflation { gpus, percent, seed });
        for seed in 0..50 {
            let inflated = of(100, 130, seed);
            // The largest job asks for 4 GPUs.
            assert!((126_001..=130_000).contains(&milli(&inflated)), "{}", milli(&inflated));
            assert_eq!(inflated, of(100, 130, seed));
            let names: FxHashSet<&str> = inflated.iter().map(|job| &*job.name).collect();
            assert_eq!(names.len(), inflated.len());
            assert!(jobs().iter().all(|job| inflated[..10].contains(job)));
            let few = of(5, 100, seed);
            assert!(few.len() < 10 && milli(&few) <= 5000);
        }
        assert_ne!(of(100, 130, 1), of(100, 130, 2));
    }

    #[test]
    fn jobs_without_gpus_are_not_repeated_for_ever() {
        let bare = TraceJob { name: "a".to_owned(), ..TraceJob::default() };
        let inflation = Inflation { gpus: 8, percent: 100, seed: 1 };
        assert_eq!(inflate(std::slice::from_ref(&bare), &inflation), [bare]);
        assert_eq!(inflate(&[], &inflation), []);
    }
}
