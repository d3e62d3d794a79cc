//! What is typical for a policy that also looks at the demand of the moment: a mix of two tables of typical pods.
//!
//! The lasting one is FGD's own. The other is of the jobs that run, or that wait. A table that is made anew costs every
//! score that is kept, so it is made when enough has come or gone, and then at once: a function of the events alone, so
//! that no window, thread or backend can show in it, and of a number that grows with the jobs, so that a large cluster
//! scores no more nodes an event than a small one.

use crate::cluster::{Cluster, JobId, RequestId};
use crate::fragmentation::fgd::Typical;

/// Which jobs the demand of the moment is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// Those that run.
    Running,
    /// Those that wait.
    Waiting,
}

/// So many instances of the moment weigh as much as all that is lasting, and fewer as much less; more weigh no more.
const FULL: u64 = 64;

/// The table is stale when a share of the moment's instances, one in so many, has come or gone since it was made, …
const STALE_SHARE: u64 = 8;

/// … and at least so many.
const STALE_INSTANCES: u64 = 16;

/// The two tables of a policy, one of them in the making.
#[derive(Debug)]
pub(super) struct Mix {
    moment: Moment,
    lasting: Typical,
    /// The instances of the moment, by request.
    instances: Vec<u64>,
    total: u64,
    /// Whether a job is among those of the moment.
    counts: Vec<bool>,
    /// Instances that have come or gone since the table was made.
    changed: u64,
}

impl Mix {
    /// Of what the cluster runs, or of all its jobs that do not run. Nothing is lasting yet.
    pub(super) fn new(cluster: &Cluster, moment: Moment) -> Self {
        let mut mix = Self {
            moment,
            lasting: Typical::default(),
            instances: vec![0; cluster.requests().len()],
            total: 0,
            counts: vec![false; cluster.jobs().len()],
            changed: 0,
        };
        for job in cluster.job_ids().filter(|&job| cluster.job(job).runs() == (moment == Moment::Running)) {
            mix.count(cluster, job, true);
        }
        mix
    }

    /// Says what is lasting.
    pub(super) fn set_lasting(&mut self, lasting: Typical) {
        self.lasting = lasting;
    }

    /// Nobody waits yet.
    pub(super) fn empty_queue(&mut self, cluster: &Cluster) {
        if self.moment == Moment::Waiting {
            cluster.job_ids().for_each(|job| self.count(cluster, job, false));
        }
    }

    /// A job waits from now on.
    pub(super) fn arrived(&mut self, cluster: &Cluster, job: JobId) {
        if self.moment == Moment::Waiting {
            self.count(cluster, job, true);
        }
    }

    /// A job waits no more, and runs.
    pub(super) fn started(&mut self, cluster: &Cluster, job: JobId) {
        self.count(cluster, job, self.moment == Moment::Running);
    }

    /// A job neither waits nor runs any more.
    pub(super) fn left(&mut self, cluster: &Cluster, job: JobId) {
        self.count(cluster, job, false);
    }

    fn count(&mut self, cluster: &Cluster, job: JobId, counts: bool) {
        if std::mem::replace(&mut self.counts[job.index()], counts) == counts {
            return;
        }
        let (request, n) = (cluster.job(job).request(), u64::from(cluster.job(job).instances()));
        let of_request = &mut self.instances[request.index()];
        if counts {
            *of_request += n;
            self.total += n;
        } else {
            *of_request -= n;
            self.total -= n;
        }
        self.changed += n;
    }

    /// Whether the table that was made last is no good any more.
    pub(super) fn is_stale(&self) -> bool {
        self.changed >= STALE_INSTANCES.max(self.total / STALE_SHARE)
    }

    /// The table as it should be now.
    pub(super) fn table(&mut self, cluster: &Cluster) -> Typical {
        self.changed = 0;
        let numbered = self.instances.iter().zip(0..).filter(|&(&n, _)| n > 0);
        let moment = Typical::new(cluster, numbered.map(|(&n, request)| (cluster.request(RequestId(request)), n)));
        Typical::mix(&[(&self.lasting, FULL), (&moment, self.total.min(FULL))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{ClusterBuilder, JobSpec, NodeSpec, Seat};
    use crate::fragmentation::fgd::MIX_PARTS;

    /// One node on which a job of two instances of 1 GPU runs, and jobs of 2, 3, … GPUs that wait.
    fn cluster(waiting: &[u32]) -> (Cluster, Vec<JobId>) {
        let mut builder = ClusterBuilder::new();
        let node = builder.add_node(&NodeSpec { name: "n", gpus: 8, ..NodeSpec::default() }).unwrap();
        let job = JobSpec { name: "r", gpus: 1, ..JobSpec::default() };
        builder.add_running(&job, &[Seat { node, gpus: None }, Seat { node, gpus: None }]).unwrap();
        let mut cluster = builder.finish().unwrap();
        let mut jobs = vec![JobId(0)];
        for (&instances, gpus) in waiting.iter().zip(2..) {
            let spec = JobSpec { name: &format!("w{gpus}"), gpus, ..JobSpec::default() };
            jobs.push(cluster.register(&spec, instances).unwrap());
        }
        (cluster, jobs)
    }

    /// GPUs and counts of the table.
    fn table(mix: &mut Mix, cluster: &Cluster) -> Vec<(u32, u64)> {
        mix.table(cluster).pods().iter().map(|pod| (pod.gpus, u64::from(pod.count))).collect()
    }

    /// What a job asks for is lasting.
    fn mix(cluster: &Cluster, moment: Moment, job: JobId) -> Mix {
        let mut mix = Mix::new(cluster, moment);
        mix.set_lasting(Typical::new(cluster, [(cluster.request_of(job), 7)]));
        mix
    }

    #[test]
    fn the_moment_weighs_by_its_instances_up_to_a_half() {
        let (cluster, jobs) = cluster(&[32, 10_000]);
        let mut mix = mix(&cluster, Moment::Running, jobs[1]);
        // 2 against 64.
        assert_eq!(table(&mut mix, &cluster), [(2, MIX_PARTS * 64 / 66), (1, MIX_PARTS * 2 / 66)]);
        mix.started(&cluster, jobs[2]);
        mix.left(&cluster, jobs[0]);
        assert_eq!(table(&mut mix, &cluster), [(3, MIX_PARTS / 2), (2, MIX_PARTS / 2)]);
        mix.left(&cluster, jobs[2]);
        // Nothing runs: what is lasting alone, as it was.
        assert_eq!(table(&mut mix, &cluster), [(2, 7)]);
    }

    #[test]
    fn who_waits_is_whoever_came_and_has_neither_started_nor_left() {
        let (cluster, jobs) = cluster(&[16, 48, 64]);
        let mut mix = mix(&cluster, Moment::Waiting, jobs[0]);
        mix.started(&cluster, jobs[3]);
        mix.left(&cluster, jobs[3]);
        let part = |n| MIX_PARTS * n / 128;
        assert_eq!(table(&mut mix, &cluster), [(1, part(64)), (3, part(48)), (2, part(16))]);
        mix.empty_queue(&cluster);
        assert_eq!(table(&mut mix, &cluster), [(1, 7)]);
        mix.arrived(&cluster, jobs[2]);
        mix.arrived(&cluster, jobs[2]);
        assert_eq!(table(&mut mix, &cluster), [(1, MIX_PARTS * 64 / 112), (3, MIX_PARTS * 48 / 112)]);
    }

    #[test]
    fn a_table_is_stale_after_an_eighth_and_no_fewer_than_sixteen() {
        let (cluster, jobs) = cluster(&[15, 1, 1000, 124, 1]);
        let mut mix = mix(&cluster, Moment::Running, jobs[0]);
        let mut step = |job: usize, starts: bool| {
            if starts {
                mix.started(&cluster, jobs[job])
            } else {
                mix.left(&cluster, jobs[job])
            }
            let stale = mix.is_stale();
            if stale {
                mix.table(&cluster);
            }
            stale
        };
        // The two that ran at first count as well.
        assert_eq!([step(1, true), step(2, true), step(2, false)], [true, false, false]);
        assert_eq!([step(3, true), step(4, true), step(5, true), step(4, false)], [true, false, false, true]);
    }
}
