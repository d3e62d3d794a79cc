//! A job that waits for a place.

use crate::cluster::{BuildError, Cluster, JobSpec, MAX_AMOUNT, TooManyNames, Within};
use crate::workload::{Queue, QueueEntry};

use super::Tally;

/// A job that waits for a place, in the terms of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitingJob {
    /// Its name.
    pub name: String,
    /// Its instances, those that are alike together; at least one group.
    pub groups: Vec<WaitingGroup>,
    /// All instances in one domain or rack.
    pub within: Option<Within>,
}

/// Instances of a waiting job that are alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitingGroup {
    /// How many they are, at least 1.
    pub instances: u32,
    /// GPUs an instance, 0..=16.
    pub gpus: u8,
    /// Milli-cores an instance.
    pub cpu_milli: u64,
    /// MiB an instance.
    pub memory_mib: u64,
    /// Allowed GPU models; empty allows all.
    pub models: Vec<String>,
}

/// Registers the jobs, in order. Those that cannot be are left out and counted.
///
/// # Errors
/// If there are more names than a cluster can hold.
pub(super) fn register(jobs: &[WaitingJob], cluster: &mut Cluster, tally: &mut Tally) -> Result<Queue, TooManyNames> {
    let known = Models::of(cluster);
    let mut queue = Queue::with_capacity(jobs.len());
    for job in jobs {
        let models: Vec<Vec<&str>> =
            job.groups.iter().map(|group| group.models.iter().flat_map(|model| known.under(model)).collect()).collect();
        let amount = |amount: u64| u32::try_from(amount).ok().filter(|&amount| amount <= MAX_AMOUNT);
        let spec = |(group, models)| {
            let (group, models): (&WaitingGroup, &Vec<&str>) = (group, models);
            let spec = JobSpec {
                name: &job.name,
                gpus: group.gpus,
                cpu_milli: amount(group.cpu_milli)?,
                memory_mib: amount(group.memory_mib)?,
                models,
                within: job.within,
                ..JobSpec::default()
            };
            Some((spec, group.instances))
        };
        let Some(specs) = job.groups.iter().zip(&models).map(spec).collect::<Option<Vec<_>>>() else {
            tally.met("waiting jobs that ask for more CPU or memory than can be counted, left out", &job.name);
            continue;
        };
        let registered = match &specs[..] {
            [(spec, instances)] => cluster.register(spec, *instances).map(QueueEntry::Submit),
            several => cluster.register_groups(&job.name, several).map(QueueEntry::SubmitGroups),
        };
        match registered {
            Ok(entry) => queue.push(entry),
            Err(BuildError::TooManyNames(error)) => return Err(error),
            Err(BuildError::DuplicateJob(_)) => {
                tally.met("waiting jobs of a name that runs or waits already, left out", &job.name);
            }
            Err(_) => tally.met("waiting jobs of a size that no job can have, left out", &job.name),
        }
    }
    Ok(queue)
}

/// The models of a cluster.
struct Models(Vec<String>);

impl Models {
    fn of(cluster: &Cluster) -> Self {
        let models = cluster.pools().iter().filter_map(|pool| pool.model);
        Self(models.map(|model| cluster.model_name(model).to_owned()).collect())
    }

    /// The model itself, or where no node has it those that are cut finer: `h100` names `h100/batch` too.
    fn under<'a>(&'a self, model: &'a str) -> impl Iterator<Item = &'a str> {
        let finer = |known: &&String| known.strip_prefix(model).is_some_and(|rest| rest.starts_with('/'));
        let is_there = self.0.iter().any(|known| known == model);
        let finer: Vec<&str> = self.0.iter().filter(|known| !is_there && finer(known)).map(String::as_str).collect();
        let itself = finer.is_empty().then_some(model);
        itself.into_iter().chain(finer)
    }
}
