//! Jobs whose instances are not all alike, such as a launcher and its workers: groups of like instances that start
//! together or not at all.
//!
//! Each group of a job `NAME` is a job of the ledger, `NAME/1`, `NAME/2` and so on in the order of the input, and these are
//! numbered without a gap. So whatever looks at one job at a time need not know of groups.

use super::builder::{BuildError, ClusterBuilder, JobSpec};
use super::ids::JobId;
use super::ledger::Cluster;
use super::names::Names;

/// A job of several groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupedJob {
    first: JobId,
    groups: u32,
}

impl GroupedJob {
    /// Its groups, in the order of the input.
    pub fn jobs(self) -> impl ExactSizeIterator<Item = JobId> + DoubleEndedIterator + Clone + use<> {
        (self.first.0..self.first.0 + self.groups).map(JobId)
    }

    /// The first of them.
    pub fn first(self) -> JobId {
        self.first
    }
}

/// All jobs of several groups, by the number of their first one.
#[derive(Clone, Debug, Default)]
pub(super) struct GroupedJobs {
    names: Names,
    jobs: Vec<GroupedJob>,
}

impl GroupedJobs {
    /// Whether one of them has this name.
    pub(super) fn has(&self, name: &str) -> bool {
        !self.jobs.is_empty() && self.names.find(name).is_some()
    }

    /// Forgets those whose groups are numbered from `n_jobs` on.
    pub(super) fn truncate(&mut self, n_jobs: usize) {
        let len = self.jobs.partition_point(|grouped| grouped.first.index() < n_jobs);
        self.jobs.truncate(len);
        self.names.truncate(len);
    }

    /// Lets go of the name of the one that a job is the first group of.
    pub(super) fn forget_name(&mut self, first: JobId) {
        if let Some(at) = self.at(first).filter(|&at| self.jobs[at].first == first) {
            self.names.forget(at as u32);
        }
    }

    /// Takes [`GroupedJobs::forget_name`] back, unless another has the name by now.
    pub(super) fn remember_name(&mut self, first: JobId) {
        if let Some(at) = self.at(first).filter(|&at| self.jobs[at].first == first) {
            self.names.remember(at as u32);
        }
    }

    /// The place of the one that a job is a group of.
    fn at(&self, job: JobId) -> Option<usize> {
        let at = self.jobs.partition_point(|grouped| grouped.first <= job).checked_sub(1)?;
        let GroupedJob { first, groups } = self.jobs[at];
        (job.0 - first.0 < groups).then_some(at)
    }
}

impl Cluster {
    /// The job of several groups of this name, whatever its state.
    pub fn find_grouped_job(&self, name: &str) -> Option<GroupedJob> {
        self.grouped.names.find(name).map(|at| self.grouped.jobs[at as usize])
    }

    /// The job of several groups that a job is a group of, if it is one. O(log of their number).
    pub fn grouped_job_of(&self, job: JobId) -> Option<GroupedJob> {
        self.grouped.at(job).map(|at| self.grouped.jobs[at])
    }

    /// The name of the whole job: of the job of several groups that a job is a group of, else its own.
    pub fn whole_job_name(&self, job: JobId) -> &str {
        match self.grouped.at(job) {
            Some(at) => self.grouped.names.get(at as u32),
            None => self.job_name(job),
        }
    }

    /// All groups of the job that a job is a group of; else it alone.
    pub fn whole_job(&self, job: JobId) -> impl ExactSizeIterator<Item = JobId> + Clone + use<> {
        self.grouped_job_of(job).unwrap_or(GroupedJob { first: job, groups: 1 }).jobs()
    }

    /// Whether a job is one instance, and no group of another: it is together wherever it is.
    pub fn stands_alone(&self, job: JobId) -> bool {
        self.job(job).instances() == 1 && self.grouped.at(job).is_none()
    }

    /// Registers a job of several groups that does not run yet: what the instances of each ask for, and how many they
    /// are. The names in `groups` do not count.
    ///
    /// # Errors
    /// If the name, or that of a group, is taken by a job in whatever state, a number is out of range, or there is no
    /// group. Nothing has changed then, but that model names may have been interned.
    pub fn register_groups(&mut self, name: &str, groups: &[(JobSpec<'_>, u32)]) -> Result<GroupedJob, BuildError> {
        if groups.is_empty() {
            return Err(BuildError::NoGroups(name.to_owned()));
        }
        let names: Vec<String> = (1..=groups.len()).map(|number| format!("{name}/{number}")).collect();
        let named = || names.iter().zip(groups).map(|(name, (spec, n))| (JobSpec { name, ..spec.clone() }, *n));
        for (spec, instances) in named() {
            spec.check(instances)?;
        }
        let taken = |name: &&String| self.find_job(name).is_some() || self.grouped.has(name);
        if let Some(name) = [&name.to_owned()].into_iter().chain(&names).find(taken) {
            return Err(BuildError::DuplicateJob(name.clone()));
        }
        let mut first = None;
        for (spec, instances) in named() {
            let job = self.register(&spec, instances)?;
            first.get_or_insert(job);
        }
        self.grouped.names.insert(name)?;
        let first = first.ok_or_else(|| BuildError::NoGroups(name.to_owned()))?;
        let grouped = GroupedJob { first, groups: groups.len() as u32 };
        self.grouped.jobs.push(grouped);
        Ok(grouped)
    }
}

impl ClusterBuilder {
    /// Makes the job that was just added the next group of the job `whole`: its groups are added one after another, and
    /// are called `whole/1`, `whole/2` and so on.
    ///
    /// # Errors
    /// If it is called otherwise, the name `whole` is taken, or the groups are not bound to one domain or rack alike; the
    /// builder must then be given up.
    pub fn join_group(&mut self, job: JobId, whole: &str) -> Result<(), BuildError> {
        let cluster = &mut self.cluster;
        let known = cluster.grouped.names.find(whole).map(|at| at as usize);
        let next = known.map_or(1, |at| cluster.grouped.jobs[at].groups + 1);
        let follows = known.is_none_or(|at| {
            let GroupedJob { first, groups } = cluster.grouped.jobs[at];
            first.0 + groups == job.0 && cluster.request_of(first).within == cluster.request_of(job).within
        });
        if !follows || cluster.job_name(job) != format!("{whole}/{next}") {
            return Err(BuildError::NotAGroup(cluster.job_name(job).to_owned(), whole.to_owned(), next));
        }
        match known {
            Some(at) => cluster.grouped.jobs[at].groups = next,
            None if cluster.find_job(whole).is_some() => return Err(BuildError::DuplicateJob(whole.to_owned())),
            None => {
                cluster.grouped.names.insert(whole)?;
                cluster.grouped.jobs.push(GroupedJob { first: job, groups: 1 });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(gpus: u8) -> JobSpec<'static> {
        JobSpec { gpus, ..JobSpec::default() }
    }

    #[test]
    fn groups_are_jobs_in_a_row_that_know_whose_they_are() {
        let mut cluster = Cluster::default();
        let alone = cluster.register(&JobSpec { name: "a", ..spec(1) }, 1).unwrap();
        let grouped = cluster.register_groups("b", &[(spec(0), 1), (spec(8), 4), (spec(2), 3)]).unwrap();
        let after = cluster.register(&JobSpec { name: "c", ..spec(1) }, 1).unwrap();
        let last = cluster.register_groups("d", &[(spec(1), 2), (spec(2), 2)]).unwrap();
        let jobs: Vec<JobId> = grouped.jobs().collect();
        let names: Vec<&str> = jobs.iter().map(|&job| cluster.job_name(job)).collect();
        assert_eq!(names, ["b/1", "b/2", "b/3"]);
        assert_eq!(jobs.iter().map(|&job| cluster.request_of(job).gpus).collect::<Vec<_>>(), [0, 8, 2]);
        assert!(jobs.iter().all(|&job| cluster.grouped_job_of(job) == Some(grouped)));
        assert_eq!([alone, after].map(|job| cluster.grouped_job_of(job)), [None, None]);
        assert!(last.jobs().all(|job| cluster.grouped_job_of(job) == Some(last)));
        assert_eq!((cluster.find_grouped_job("b"), cluster.find_job("b")), (Some(grouped), None));
        assert_eq!([alone, jobs[0], jobs[2], after].map(|job| cluster.whole_job_name(job)), ["a", "b", "b", "c"]);
    }

    #[test]
    fn a_name_is_there_once_whichever_kind_of_job_has_it() {
        let mut cluster = Cluster::default();
        cluster.register(&JobSpec { name: "a", ..spec(1) }, 1).unwrap();
        cluster.register(&JobSpec { name: "c/2", ..spec(1) }, 1).unwrap();
        cluster.register_groups("b", &[(spec(1), 1), (spec(2), 1)]).unwrap();
        let duplicate = |name: &str| Err(BuildError::DuplicateJob(name.to_owned()));
        let two = [(spec(1), 1), (spec(2), 1)];
        for (name, found) in [("a", "a"), ("b", "b"), ("c", "c/2")] {
            assert_eq!(cluster.clone().register_groups(name, &two), duplicate(found));
        }
        for name in ["b", "b/1", "b/2"] {
            let job = cluster.clone().register(&JobSpec { name, ..spec(1) }, 1);
            assert_eq!(job.map(drop), duplicate(name).map(|_: GroupedJob| ()));
        }
        // What was refused left nothing.
        assert_eq!(cluster.jobs().len(), 4);
        let wrong = cluster.register_groups("e", &[(spec(1), 1), (spec(17), 1)]);
        assert_eq!(wrong, Err(BuildError::InstanceSize("e/2".to_owned(), 17)));
        assert_eq!(cluster.register_groups("e", &[]), Err(BuildError::NoGroups("e".to_owned())));
        assert_eq!((cluster.find_job("e/1"), cluster.jobs().len()), (None, 4));
    }
}
