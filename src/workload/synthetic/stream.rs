//! A stream of jobs.

use crate::cluster::{BuildError, Cluster, JobSpec, Within};
use crate::workload::{Queue, QueueEntry, TraceEvent, TraceJob, replay};

use super::arrivals::Clock;
use super::{Arrivals, Dice, Mix};

/// What a stream of jobs is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamOptions {
    /// The number of jobs.
    pub jobs: u64,
    /// The same seed makes the same stream.
    pub seed: u64,
    /// How common each instance size is.
    pub mix: Mix,
    /// The GPUs that are to be loaded.
    pub gpus: u64,
    /// The share of them that the running jobs ask for.
    pub load_percent: u32,
    /// When jobs arrive.
    pub arrivals: Arrivals,
    /// Whether jobs leave. Without removals the jobs just follow each other, and fill the cluster once.
    pub removals: bool,
    /// The most instances of a job; also at most a quarter of `gpus`.
    pub largest_gang: u32,
    /// The share of gangs that must lie in one rack.
    pub within_percent: u32,
    /// Milli-cores for each GPU.
    pub cpu_milli_per_gpu: u32,
    /// MiB for each GPU.
    pub memory_mib_per_gpu: u32,
}

impl Default for StreamOptions {
    fn default() -> Self {
        Self {
            jobs: 1000,
            seed: 1,
            mix: Mix::Gfs,
            gpus: 1000,
            load_percent: 95,
            arrivals: Arrivals::default(),
            removals: true,
            largest_gang: 64,
            within_percent: 0,
            cpu_milli_per_gpu: 0,
            memory_mib_per_gpu: 0,
        }
    }
}

/// Instances of a job of 8-GPU instances, and weights: mostly one, with a heavy tail.
const GANGS: [(u32, u64); 9] =
    [(1, 7000), (2, 1400), (4, 850), (8, 400), (16, 200), (32, 90), (64, 40), (128, 15), (256, 5)];
/// Instances of a job of smaller instances.
const SMALL_GANGS: [(u32, u64); 3] = [(1, 970), (2, 25), (4, 5)];

/// Seconds at every 16th of the distribution, straight between; heavy-tailed as real traces are, from seconds to a week.
const DURATIONS: [u64; 17] =
    [5, 20, 40, 70, 110, 160, 230, 330, 480, 700, 1_050, 1_700, 3_000, 6_000, 14_000, 45_000, 604_800];

/// The jobs as a trace. They arrive so fast that on average they ask for `load_percent` of `gpus` GPUs. What the jobs are
/// like does not depend on when they arrive.
pub fn synthetic_trace(options: &StreamOptions) -> Vec<TraceJob> {
    let mut dice = Dice::new(options.seed, 2);
    let most = u64::from(options.largest_gang);
    let gangs = |table: &[(u32, u64)], gpus: u64| -> Vec<(u32, u64)> {
        let most = most.min(options.gpus / 4 / gpus);
        table.iter().copied().filter(|&(n, _)| n == 1 || u64::from(n) <= most).collect()
    };
    let (eights, smalls) = (gangs(&GANGS, 8), gangs(&SMALL_GANGS, 4));
    // The mix counts instances; a size that comes in gangs is drawn less often as a job.
    let mean = |table: &[(u32, u64)]| {
        let weight: u64 = table.iter().map(|&(_, weight)| weight).sum();
        table.iter().map(|&(n, weight)| u64::from(n) * weight).sum::<u64>() * 1000 / weight
    };
    let (eight_mean, small_mean) = (mean(&eights), mean(&smalls));
    let sizes = options
        .mix
        .weights()
        .map(|(gpus, weight)| (gpus, weight * 1_000_000 / if gpus == 8 { eight_mean } else { small_mean }));
    let mut jobs = Vec::new();
    let mut gpu_seconds = 0u128;
    for i in 0..options.jobs {
        let gpus_per_instance = dice.weighted(&sizes).unwrap_or(1);
        let instances = dice.weighted(if gpus_per_instance == 8 { &eights } else { &smalls }).unwrap_or(1);
        let duration_s = duration(&mut dice);
        let name = format!("job-{i}");
        let job = TraceJob { name, duration_s, instances, gpus_per_instance, ..TraceJob::default() };
        gpu_seconds += u128::from(job.gpus()) * u128::from(duration_s);
        jobs.push(job);
    }
    // The mean time between two arrivals, in thousandths of a second, that makes the offered load the wanted one.
    let capacity =
        u128::from(options.gpus.max(1)) * u128::from(options.load_percent.max(1)) * u128::from(options.jobs.max(1));
    let mean_ms = u64::try_from(gpu_seconds * 100_000 / capacity).unwrap_or(u64::MAX).min(1 << 40);
    let mut clock = Clock::new(options.arrivals, options.seed);
    for job in &mut jobs {
        job.submit_s = clock.now() / 1000;
        clock.advance(dice.exponential(mean_ms));
    }
    jobs
}

fn duration(dice: &mut Dice) -> u64 {
    const STEP: u64 = 1 << 20;
    let at = dice.below(16 * STEP);
    let (knot, rest) = ((at / STEP) as usize, at % STEP);
    let (low, high) = (DURATIONS[knot], DURATIONS[knot + 1]);
    // The last sixteenth falls off with the cube, or the week would outweigh all else.
    let rest = if knot == 15 { rest * rest / STEP * rest / STEP } else { rest };
    low + (high - low) * rest / STEP
}

/// The jobs as a queue: they are registered in the cluster and follow each other so that the running demand rises to
/// the load and hovers there (see [`replay`]).
///
/// # Errors
/// If a name `job-N` is taken in the cluster.
pub fn synthetic_queue(cluster: &mut Cluster, options: &StreamOptions) -> Result<Queue, BuildError> {
    let jobs = synthetic_trace(options);
    let events = match options.removals {
        true => replay(&jobs, options.gpus.saturating_mul(TraceJob::WHOLE.into()), options.load_percent),
        false => (0..jobs.len()).map(TraceEvent::Submit).collect(),
    };
    let mut dice = Dice::new(options.seed, 3);
    let mut ids = Vec::with_capacity(jobs.len());
    for job in &jobs {
        let gpus = job.gpus_per_instance;
        let within = (job.instances > 1 && dice.chance(options.within_percent)).then_some(Within::Rack);
        let spec = JobSpec {
            name: &job.name,
            gpus,
            cpu_milli: options.cpu_milli_per_gpu.saturating_mul(u32::from(gpus)),
            memory_mib: options.memory_mib_per_gpu.saturating_mul(u32::from(gpus)),
            within,
            ..JobSpec::default()
        };
        ids.push(cluster.register(&spec, job.instances)?);
    }
    let entry = |event: &TraceEvent| match *event {
        TraceEvent::Submit(job) => QueueEntry::Submit(ids[job]),
        TraceEvent::Remove(job) => QueueEntry::Remove(ids[job]),
    };
    Ok(events.iter().map(entry).collect())
}
