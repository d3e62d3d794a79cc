//! What a plan is asked, and how the answer looks.

use super::choose::Choice;
use super::hitless::NoOrder;
use super::integer::Effort;
use super::layout::Guest;
use super::steps::{Mode, Step};
use super::verdict::{NoPlan, Relaxation};
use super::ways::Way;
use crate::cluster::{Cluster, DisruptionBudget, GpuMask, JobId, NodeId, Within};

/// What room is to be made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// All instances of a job that does not run yet.
    Job(JobId),
    /// So many schedulable nodes on which no GPU is held.
    FreeNodes(u32),
    /// All nodes of one domain or rack schedulable and free.
    FreeRegion(Within),
    /// As few partial nodes as what may be moved allows; with `max_moves`, as so many moves do.
    LeastPartial,
}

/// What a plan is to have the least of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cost {
    /// Moves of an instance; then moved GPUs.
    #[default]
    Moves,
    /// Moved GPUs; then moves.
    Gpus,
    /// Jobs of which an instance moves; then moves, as far as that is easy.
    Jobs,
    /// Seconds that the moves cost, by what is known of each job; then moves.
    Seconds,
}

impl Cost {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Moves, Self::Gpus, Self::Jobs, Self::Seconds];

    /// The word on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Cost::Moves => "moves",
            Cost::Gpus => "gpus",
            Cost::Jobs => "jobs",
            Cost::Seconds => "seconds",
        }
    }
}

/// How to plan.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// How moves are carried out.
    pub mode: Mode,
    /// Whether each job may be moved, by its number.
    pub movable: Vec<bool>,
    /// How many instances of some jobs may be stopped at a time.
    pub budgets: Vec<DisruptionBudget>,
    /// What is to be the least.
    pub cost: Cost,
    /// No plan of more moves.
    pub max_moves: Option<u64>,
    /// No plan that moves instances of more jobs.
    pub max_jobs_disturbed: Option<u64>,
    /// Whether other plans that are as good are wanted for [`choose`](fn@super::choose).
    pub ways: bool,
    /// How much may be tried.
    pub effort: Effort,
}

impl PlanOptions {
    /// Everything that is migratable may be moved, there is no budget, and the fewest moves are wanted.
    pub fn new(cluster: &Cluster, mode: Mode, effort: Effort) -> Self {
        let movable = cluster.job_ids().map(|job| cluster.job(job).migratable()).collect();
        let (cost, budgets) = (Cost::Moves, Vec::new());
        Self { mode, movable, budgets, cost, max_moves: None, max_jobs_disturbed: None, ways: true, effort }
    }
}

/// The answer.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Whether there is a plan; `None` if that was not settled.
    pub feasible: Option<bool>,
    /// Whether it is proved that no plan costs less, or that there is none.
    pub optimal: bool,
    /// Whether it is proved that of the plans of that cost none moves fewer GPUs (for `Cost::Moves`), or has fewer moves.
    pub second_optimal: bool,
    /// Whether it is proved that no such plan disturbs fewer jobs.
    pub jobs_optimal: bool,
    /// Whether it is proved that no plan within `max_moves` leaves fewer partial nodes; only where few are the goal.
    pub fewest_partial: bool,
    /// What the plan costs, by the measure that was asked for.
    pub cost: u64,
    /// No plan costs less; `None` if there is none at all.
    pub lower_bound: Option<u64>,
    /// The moves, in the order to carry them out.
    pub steps: Vec<Step>,
    /// Where the instances of the job come, or which nodes are free.
    pub place: Vec<(NodeId, GpuMask)>,
    /// The cluster afterwards, if there is a plan.
    pub after: Option<Cluster>,
    /// Why there is no plan.
    pub why: Option<NoPlan>,
    /// What proves that there is none, if it is for want of an order of moves.
    pub no_order: Option<NoOrder>,
    /// What little more would allow one.
    pub relax: Vec<Relaxation>,
    /// Whether the clock ended the search.
    pub by_clock: bool,
    /// How it was chosen, if it was; see [`choose`](fn@super::choose).
    pub choice: Option<Choice>,
    /// The plan itself, and others that are as good by all measures.
    pub(super) ways: Vec<Way>,
}

impl Plan {
    /// The GPUs that are moved.
    pub fn moved_gpus(&self) -> u64 {
        self.steps.iter().map(|step| u64::from(step.gpus.count_ones())).sum()
    }

    /// The seconds that the moves cost, if they are known of each job that moves.
    pub fn seconds(&self, cluster: &Cluster) -> Option<u64> {
        self.steps.iter().map(|step| move_seconds(cluster, step.job)).sum()
    }

    /// What it costs by a measure; `u64::MAX` where the seconds are not known.
    pub(super) fn costs(&self, cluster: &Cluster, cost: Cost) -> u64 {
        match cost {
            Cost::Moves => self.steps.len() as u64,
            Cost::Gpus => self.moved_gpus(),
            Cost::Jobs => self.jobs_disturbed(),
            Cost::Seconds => self.seconds(cluster).unwrap_or(u64::MAX),
        }
    }

    /// The jobs of which an instance is moved.
    pub fn jobs_disturbed(&self) -> u64 {
        let mut jobs: Vec<JobId> = self.steps.iter().map(|step| step.job).collect();
        jobs.sort_unstable();
        jobs.dedup();
        jobs.len() as u64
    }
}

/// What moving an instance of a job costs, in seconds, as far as is known: a job that ends before has nothing to lose.
pub(super) fn move_seconds(cluster: &Cluster, job: JobId) -> Option<u64> {
    let times = cluster.job_times(job);
    times.move_cost_s.into_iter().chain(times.remaining_s).min()
}

/// The guest of a goal.
pub(super) fn guest<'a>(cluster: &'a Cluster, goal: Goal) -> Guest<'a> {
    match goal {
        Goal::Job(job) => Guest::Job(cluster.request_of(job)),
        Goal::FreeNodes(_) | Goal::FreeRegion(_) | Goal::LeastPartial => Guest::WholeNode,
    }
}
