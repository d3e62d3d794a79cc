//! What the commit loop knows of the moment: which jobs run and which wait, for the policies whose table of typical pods
//! follows that; and what a start would cost, for those that choose the moment.

use super::CommitLoop;
use crate::cluster::{Cluster, Job, JobId};
use crate::decide::mix::Mix;
use crate::decide::policy::score::Score;
use crate::decide::policy::{Arithmetic, Method, Policy, ca_fgd};
use crate::fragmentation::fgd::Typical;

impl CommitLoop<'_> {
    /// The same, where nobody waits before [`CommitLoop::arrive`] says so. Otherwise all jobs wait that are registered in
    /// the cluster and do not run, as those of a queue do.
    #[must_use]
    pub fn with_arrivals(mut self) -> Self {
        if let (Some(mix), Some(scorer)) = (&mut self.mix, &mut self.scorer) {
            let cluster = self.state.cluster();
            mix.empty_queue(cluster);
            scorer.set_typical(cluster, mix.table(cluster));
        }
        self
    }

    /// A job has come, and waits until it is placed or removed.
    pub fn arrive(&mut self, job: JobId) {
        if let Some(mix) = &mut self.mix {
            mix.arrived(self.state.cluster(), job);
            self.refresh_table();
        }
    }

    /// By how much the fragment of the cluster would grow if the job were placed now, for what the policy takes for
    /// typical. `None` if it runs or cannot be placed, or the policy is not built on FGD in integers.
    pub fn growth(&mut self, job: JobId) -> Option<i64> {
        let by_gradient = self.options.policy.method() == Method::Scored(Score::Fgd, Arithmetic::Exact);
        if !by_gradient || self.state.cluster().job(job).runs() || self.refused(job).is_some() {
            return None;
        }
        let scorer = self.scorer.as_mut()?;
        let mut transaction = self.state.begin();
        if transaction.start(job) { scorer.growth(&mut transaction, job, &self.needs) } else { None }
    }

    /// Whether the policy would rather have a job wait that could start now. How long it may is for
    /// [`Policy::patience_s`] to say.
    pub fn holds_back(&mut self, job: JobId) -> bool {
        self.options.policy == Policy::CaFgd
            && ca_fgd::is_peak(self.state.free_gpus(), self.gpus)
            && self.growth(job).is_some_and(ca_fgd::hurts)
    }

    /// What is typical, given what is typical in the long run.
    pub(super) fn mixed(&mut self, lasting: Typical) -> Typical {
        let Some(moment) = self.options.policy.moment() else { return lasting };
        let cluster = self.state.cluster();
        let mix = self.mix.get_or_insert_with(|| Mix::new(cluster, moment));
        mix.set_lasting(lasting);
        mix.table(cluster)
    }

    pub(super) fn note_started(&mut self, job: JobId) {
        if let Some(mix) = &mut self.mix {
            mix.started(self.state.cluster(), job);
        }
    }

    pub(super) fn note_left(&mut self, jobs: &[JobId]) {
        if let Some(mix) = &mut self.mix {
            jobs.iter().for_each(|&job| mix.left(self.state.cluster(), job));
        }
    }

    /// Makes the table anew if it is stale.
    pub(super) fn refresh_table(&mut self) {
        if let (Some(mix), Some(scorer)) = (&mut self.mix, &mut self.scorer)
            && mix.is_stale()
        {
            let cluster = self.state.cluster();
            scorer.set_typical(cluster, mix.table(cluster));
        }
    }
}

/// The typical pods of the jobs that do not run, or of all if there are none.
pub(super) fn usual(cluster: &Cluster) -> Typical {
    let waiting = cluster.jobs().iter().filter(|job| !job.runs());
    let jobs: Vec<&Job> =
        if waiting.clone().next().is_some() { waiting.collect() } else { cluster.jobs().iter().collect() };
    Typical::new(cluster, jobs.iter().map(|job| (cluster.request(job.request()), u64::from(job.instances()))))
}
