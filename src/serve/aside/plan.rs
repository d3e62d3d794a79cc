//! The fewest moves that make room, and why a job waits.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Question, unwritten};
use crate::anchor::State;
use crate::cluster::{Cluster, DisruptionBudget, JobId, Within};
use crate::decide::obstacles;
use crate::evaluate::Cpu;
use crate::formats::fields::objects;
use crate::formats::read_queue_from;
use crate::plan::{
    Cost, Effort, Goal, Mode, Plan, PlanOptions, STEPS, STEPS_OF_A_POINT, as_one_group, choose, curve,
    first_without_seconds, pin, plan, selected,
};
use crate::report::{ObstaclesReport, PlanReport};
use crate::serve::fault::ServeError;
use crate::serve::http::{lines, read};
use crate::serve::version::Version;
use crate::workload::QueueEntry;

/// Of the time until the deadline, the part that a search may take; the rest is for the answer.
const SEARCH: (u32, u32) = (9, 10);

/// The only target.
const LEAST_PARTIAL: &str = "sif=0";

/// A question of `/v1/plan`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanQuestion {
    version: Option<Version>,
    job: Option<Box<RawValue>>,
    free_nodes: Option<u32>,
    #[serde(default)]
    free_domain: bool,
    #[serde(default)]
    free_rack: bool,
    target: Option<String>,
    cost: Option<String>,
    max_moves: Option<u64>,
    max_jobs_disturbed: Option<u64>,
    mode: Option<String>,
    #[serde(default)]
    pin: Vec<String>,
    #[serde(default, deserialize_with = "objects")]
    budgets: Vec<Budget>,
    time_limit_s: Option<u64>,
    #[serde(default)]
    curve: bool,
}

impl PlanQuestion {
    /// Reads it.
    ///
    /// # Errors
    /// If it is no such question.
    pub fn read(body: &[u8]) -> Result<Self, ServeError> {
        read(body)
    }

    fn goal(&self, cluster: &mut Cluster) -> Result<Goal, ServeError> {
        let goals = [
            ("job", self.job.is_some()),
            ("free_nodes", self.free_nodes.is_some()),
            ("free_domain", self.free_domain),
            ("free_rack", self.free_rack),
            ("target", self.target.is_some()),
        ];
        let mut asked = goals.iter().filter(|(_, is)| *is).map(|(name, _)| *name);
        let (first, second) = (asked.next(), asked.next());
        if first.is_none() || second.is_some() {
            let found = first.map_or("none".to_owned(), |first| format!("{first} and {}", second.unwrap_or_default()));
            let expected = "expected one of job, free_nodes, free_domain, free_rack and target";
            return Err(ServeError::Input(format!("found {found}, {expected}")));
        }
        let region = |name: &str, within, n: usize| {
            let none = || ServeError::Input(format!("{name}: found no node in one, expected some in the cluster"));
            if n == 0 { Err(none()) } else { Ok(Goal::FreeRegion(within)) }
        };
        match (&self.job, self.free_nodes, &self.target) {
            (Some(job), ..) => waiting_job(job, cluster).map(Goal::Job),
            (_, Some(0), _) => Err(ServeError::Input("free_nodes: found 0, expected at least 1".to_owned())),
            (_, Some(count), _) => Ok(Goal::FreeNodes(count)),
            (.., Some(target)) if target == LEAST_PARTIAL => Ok(Goal::LeastPartial),
            (.., Some(target)) => {
                Err(ServeError::Input(format!("target: found {target:?}, expected {LEAST_PARTIAL:?}")))
            }
            _ if self.free_domain => region("free_domain", Within::Domain, cluster.n_domains()),
            _ => region("free_rack", Within::Rack, cluster.n_racks()),
        }
    }
}

impl Question for PlanQuestion {
    fn version(&self) -> Option<Version> {
        self.version
    }

    fn answer(&self, mut cluster: Cluster, deadline: Option<Instant>) -> Result<Vec<u8>, ServeError> {
        let goal = self.goal(&mut cluster)?;
        let how = How { mode: self.mode.as_deref(), pins: &self.pin, budgets: &self.budgets };
        let end = end(self.time_limit_s, deadline);
        let mut options = how.options(&cluster, end)?;
        options.cost = one_of("cost", self.cost.as_deref(), &Cost::ALL, Cost::name)?;
        options.max_moves = self.max_moves;
        options.max_jobs_disturbed = self.max_jobs_disturbed;
        let unknown = first_without_seconds(&cluster, &options.movable).filter(|_| options.cost == Cost::Seconds);
        if let Some(job) = unknown {
            let (name, expected) = (cluster.job_name(job), "expected one of them on every job that may be moved");
            let found = "found neither move_cost_s nor remaining_s on the running job";
            return Err(ServeError::Input(format!("cost: {found} {name:?}, {expected}")));
        }
        if self.curve && goal != Goal::LeastPartial {
            return Err(ServeError::Input(format!("curve: found another goal, expected target {LEAST_PARTIAL:?}")));
        }
        if self.curve && options.cost != Cost::Moves {
            return Err(ServeError::Input(format!("curve: found cost {:?}, expected moves", options.cost.name())));
        }
        let answer = planned(&cluster, goal, &options)?;
        options.effort = Effort::new(STEPS_OF_A_POINT, end);
        let curve = (self.curve && answer.after.is_some()).then(|| curve(&cluster, &answer, &options));
        let mut out = Vec::new();
        let report = PlanReport { curve: curve.as_ref(), ..PlanReport::new(&cluster, goal, &options, &answer) };
        report.json(&mut out).map_err(unwritten)?;
        Ok(out)
    }
}

/// How many instances of some jobs may be stopped at a time: the budgets of Kubernetes, which no snapshot has.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that is a disruption budget")]
struct Budget {
    #[serde(default)]
    name: String,
    allowed: u64,
    /// As pins name them; a budget for jobs that do not run binds nobody.
    jobs: Vec<String>,
}

impl Budget {
    fn of(&self, cluster: &Cluster) -> DisruptionBudget {
        let jobs: BTreeSet<JobId> = self.jobs.iter().flat_map(|selector| selected(cluster, selector)).collect();
        DisruptionBudget { name: self.name.clone(), allowed: self.allowed, jobs: jobs.into_iter().collect() }
    }
}

/// A question of `/v1/explain`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExplainQuestion {
    version: Option<Version>,
    job: Box<RawValue>,
    mode: Option<String>,
    #[serde(default)]
    pin: Vec<String>,
    #[serde(default, deserialize_with = "objects")]
    budgets: Vec<Budget>,
    time_limit_s: Option<u64>,
}

impl ExplainQuestion {
    /// Reads it.
    ///
    /// # Errors
    /// If it is no such question.
    pub fn read(body: &[u8]) -> Result<Self, ServeError> {
        read(body)
    }
}

impl Question for ExplainQuestion {
    fn version(&self) -> Option<Version> {
        self.version
    }

    fn answer(&self, mut cluster: Cluster, deadline: Option<Instant>) -> Result<Vec<u8>, ServeError> {
        let job = waiting_job(&self.job, &mut cluster)?;
        let how = How { mode: self.mode.as_deref(), pins: &self.pin, budgets: &self.budgets };
        let options = how.options(&cluster, end(self.time_limit_s, deadline))?;
        let state = State::new(cluster);
        let obstacles = obstacles(&state, job);
        let answer = planned(state.cluster(), Goal::Job(job), &options)?;
        let plan = PlanReport::new(state.cluster(), Goal::Job(job), &options, &answer);
        let mut out = Vec::new();
        ObstaclesReport { state: &state, job, obstacles: &obstacles, plan }.json(&mut out).map_err(unwritten)?;
        Ok(out)
    }
}

/// The plan, of those that cost the same the one that leaves the best cluster. It is chosen on the processor: the device is
/// the other thread's, and every backend chooses the same.
fn planned(cluster: &Cluster, goal: Goal, options: &PlanOptions) -> Result<Plan, ServeError> {
    let mut answer = plan(cluster, goal, options);
    choose(cluster, goal, options.mode, &mut answer, &mut Cpu::new(1)?)?;
    Ok(answer)
}

/// The job of a line of a queue, registered.
fn waiting_job(line: &RawValue, cluster: &mut Cluster) -> Result<JobId, ServeError> {
    let (queue, _) = read_queue_from("job", &lines(&[line])[..], cluster)?;
    match queue[..] {
        [QueueEntry::Submit(job)] => Ok(job),
        [QueueEntry::SubmitGroups(job)] => {
            let together = as_one_group(cluster, job).map_err(|error| ServeError::Input(format!("job: {error}")))?;
            let unlike =
                "job: found groups that ask for unlike GPUs, for which no moves are planned, expected one group";
            together.ok_or_else(|| ServeError::Input(unlike.to_owned()))
        }
        _ => Err(ServeError::Input("job: found a removal, expected a job that waits".to_owned())),
    }
}

/// What plans and explanations are asked alike.
struct How<'a> {
    mode: Option<&'a str>,
    pins: &'a [String],
    budgets: &'a [Budget],
}

impl How<'_> {
    fn options(&self, cluster: &Cluster, end: Option<Instant>) -> Result<PlanOptions, ServeError> {
        let mode = one_of("mode", self.mode, &Mode::ALL, Mode::name)?;
        let mut options = PlanOptions::new(cluster, mode, Effort::new(STEPS, end));
        for (at, selector) in self.pins.iter().enumerate() {
            if !pin(cluster, selector, &mut options.movable) {
                let expected = "expected the name of a running job, * and ?";
                return Err(ServeError::Input(format!("pin[{at}]: found {selector:?}, {expected}")));
            }
        }
        options.budgets = self.budgets.iter().map(|budget| budget.of(cluster)).collect();
        Ok(options)
    }
}

/// When a search ends.
fn end(time_limit_s: Option<u64>, deadline: Option<Instant>) -> Option<Instant> {
    let now = Instant::now();
    let left = deadline.map(|deadline| deadline.saturating_duration_since(now) * SEARCH.0 / SEARCH.1);
    let limit = time_limit_s.map(Duration::from_secs).into_iter().chain(left).min();
    limit.and_then(|limit| now.checked_add(limit))
}

/// The value of a word; the default where there is none.
fn one_of<T: Copy + Default>(
    what: &str,
    word: Option<&str>,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<T, ServeError> {
    let Some(word) = word else { return Ok(T::default()) };
    all.iter().copied().find(|&one| name(one) == word).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|&one| name(one)).collect();
        ServeError::Input(format!("{what}: found {word:?}, expected one of {}", names.join(", ")))
    })
}
