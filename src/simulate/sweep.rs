//! A sweep: one trace, many runs, a run for each cell of a grid.
//!
//! Cells are numbered in the order days, sizes, costs, seeds, schedulers, the last the fastest, so that the runs that are
//! compared follow each other. A cell depends on nothing but the [`Sweep`] and its number: which machine plays it, on how
//! many threads, and what was played before show nowhere.

use rayon::prelude::*;

use crate::cluster::{BuildError, Cluster};
use crate::workload::{NodeEvent, TraceJob};

use super::discipline::Discipline;
use super::engine::{SimOptions, simulate};
use super::fingerprint::{Fingerprint, Prints};
use super::outcome::Outcome;
use super::quantiles::Summary;
use super::scenario::Scenario;
use super::scheduler::Scheduler;
use super::site::OracleError;
use super::sizing::{Share, Until, nodes_for};

/// Seconds of a day.
pub const DAY_S: u64 = 86_400;

/// How large the cluster of a cell is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// N(η) nodes of one kind, of the jobs of the cell's day.
    Eta(Share),
    /// So many nodes of one kind.
    Nodes(u64),
    /// The cluster that was given.
    Given,
}

/// The lists whose product is the cells of a sweep. None of them may be empty or name anything twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Days of the trace, each with the jobs that are submitted in it; `None` is the whole trace.
    pub days: Vec<Option<u32>>,
    /// Sizes of the cluster.
    pub sizes: Vec<Size>,
    /// What a migration costs, in seconds.
    pub move_costs_s: Vec<u64>,
    /// Seeds of the policies that draw lots.
    pub seeds: Vec<u64>,
    /// Who schedules.
    pub schedulers: Vec<Scheduler>,
}

/// One point of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Its number, from 0.
    pub number: u64,
    /// The day; `None` is the whole trace.
    pub day: Option<u32>,
    /// The size of the cluster.
    pub size: Size,
    /// What a migration costs, in seconds.
    pub move_cost_s: u64,
    /// The seed.
    pub seed: u64,
    /// Who schedules.
    pub scheduler: Scheduler,
}

impl Grid {
    /// The number of its cells.
    pub fn n_cells(&self) -> u64 {
        self.n_scenes().saturating_mul(self.cells_a_scene())
    }

    /// A scene is a day with a size: what cells that share it play on is built once.
    fn n_scenes(&self) -> u64 {
        self.days.len() as u64 * self.sizes.len() as u64
    }

    fn cells_a_scene(&self) -> u64 {
        [self.move_costs_s.len(), self.seeds.len(), self.schedulers.len()]
            .iter()
            .fold(1, |all, &n| all.saturating_mul(n as u64))
    }

    /// The day and the size of a scene.
    fn scene(&self, scene: u64) -> (Option<u32>, Size) {
        let sizes = self.sizes.len() as u64;
        (self.days[(scene / sizes) as usize], self.sizes[(scene % sizes) as usize])
    }

    /// The cell of this number.
    ///
    /// # Panics
    /// If there is none.
    pub fn cell(&self, number: u64) -> Cell {
        let (day, size) = self.scene(number / self.cells_a_scene());
        let mut rest = number;
        let mut one = |n: usize| {
            let at = rest % n as u64;
            rest /= n as u64;
            at as usize
        };
        let scheduler = self.schedulers[one(self.schedulers.len())];
        let seed = self.seeds[one(self.seeds.len())];
        let move_cost_s = self.move_costs_s[one(self.move_costs_s.len())];
        Cell { number, day, size, move_cost_s, seed, scheduler }
    }
}

/// The `index`-th of `of` parts of a sweep, from 1: every `of`-th cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which part, from 1 to `of`.
    pub index: u64,
    /// How many parts there are.
    pub of: u64,
}

impl Shard {
    /// All of it.
    pub const WHOLE: Self = Self { index: 1, of: 1 };

    /// Whether it has a cell. Cells of one scene go to different shards, so that a long day is shared by all of them.
    pub fn has(self, cell: u64) -> bool {
        cell % self.of == self.index - 1
    }
}

/// Why a sweep cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// A job's name is taken, or a number is out of range.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The oracle is among the schedulers of a cluster that it cannot pack.
    #[error(transparent)]
    Oracle(#[from] OracleError),
    /// A day whose jobs need a cluster of more nodes than may be made.
    #[error("found jobs that need {found} nodes, expected at most {most}")]
    TooLarge {
        /// What they need.
        found: u64,
        /// What may be made.
        most: u64,
    },
}

/// What all cells of a sweep share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepOptions {
    /// In which order jobs start.
    pub discipline: Discipline,
    /// Where the time ends that N(η) looks at.
    pub until: Until,
    /// GPUs of a node where no cluster is given.
    pub gpus_per_node: u8,
    /// The most nodes that N(η) may ask for.
    pub most_nodes: u64,
}

/// A trace and the grid of its runs.
#[derive(Clone, Debug)]
pub struct Sweep {
    jobs: Vec<TraceJob>,
    cluster: Option<Cluster>,
    events: Vec<NodeEvent>,
    grid: Grid,
    options: SweepOptions,
    fingerprint: Fingerprint,
}

/// One cell, played.
#[derive(Clone, Debug)]
pub struct Played {
    /// Which.
    pub cell: Cell,
    /// Nodes of its cluster.
    pub nodes: u64,
    /// GPUs of its cluster.
    pub gpus: u64,
    /// What came out.
    pub outcome: Outcome,
    /// What that says about the jobs.
    pub summary: Summary,
}

impl Sweep {
    /// A sweep over these jobs, on `cluster` where the grid says [`Size::Given`].
    pub fn new(mut jobs: Vec<TraceJob>, cluster: Option<Cluster>, grid: Grid, options: SweepOptions) -> Self {
        jobs.sort_by_key(|job| job.submit_s);
        let fingerprint = fingerprint(&jobs, cluster.as_ref(), &[], &grid, &options);
        Self { jobs, cluster, events: Vec::new(), grid, options, fingerprint }
    }

    /// The same with what happens to nodes, in seconds of the trace, in every cell. Each has the node in all its clusters: see
    /// [`Sweep::smallest_cluster`].
    #[must_use]
    pub fn with_events(mut self, mut events: Vec<NodeEvent>) -> Self {
        events.sort_by_key(|event| event.at_s);
        self.fingerprint = fingerprint(&self.jobs, self.cluster.as_ref(), &events, &self.grid, &self.options);
        self.events = events;
        self
    }

    /// The cluster that was given; or the smallest that a cell makes, whose nodes all others have too, by the same numbers
    /// and names. Days without a job, on which nothing happens to anybody, are passed over where they would size it.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn smallest_cluster(&self) -> Result<Cluster, SweepError> {
        if let Some(cluster) = &self.cluster {
            return Ok(cluster.clone());
        }
        let sizes = (0..self.grid.n_scenes()).filter_map(|scene| {
            let (day, size) = self.grid.scene(scene);
            let jobs = self.jobs_of(day);
            (!jobs.is_empty() || !matches!(size, Size::Eta(_))).then(|| self.n_nodes(size, jobs))
        });
        let nodes = sizes.min().unwrap_or(1).min(self.options.most_nodes);
        Ok(Scenario::homogeneous(nodes, self.options.gpus_per_node, Vec::new())?.cluster().clone())
    }

    /// Its grid.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Tells sweeps apart: by the content of the trace, of the cluster and of the events of nodes, the grid, the options, and
    /// the version of this program.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Plays the cells of these numbers, which ascend, on the threads of the current pool, and shows each to `each` as soon
    /// as it is done, in no order.
    ///
    /// # Errors
    /// What `each` returns, or why a cell cannot be played; the other cells are then given up.
    pub fn play<E: From<SweepError> + Send>(
        &self,
        cells: &[u64],
        each: &(dyn Fn(Played) -> Result<(), E> + Sync),
    ) -> Result<(), E> {
        let a_scene = self.grid.cells_a_scene();
        let scenes: Vec<&[u64]> = cells.chunk_by(|one, other| one / a_scene == other / a_scene).collect();
        scenes.par_iter().try_for_each(|&cells| {
            let scenario = self.scenario(cells[0] / a_scene)?;
            cells.par_iter().try_for_each(|&number| each(self.play_cell(&scenario, number)?))
        })
    }

    fn play_cell(&self, scenario: &Scenario, number: u64) -> Result<Played, SweepError> {
        let cell = self.grid.cell(number);
        let discipline = self.options.discipline;
        let settings = SimOptions { discipline, move_cost_s: cell.move_cost_s, seed: cell.seed };
        let outcome = simulate(scenario, cell.scheduler, &settings, &mut |_| {})?;
        let summary = Summary::of(scenario, &outcome);
        let cluster = scenario.cluster();
        Ok(Played { cell, nodes: cluster.nodes().len() as u64, gpus: cluster.gpus(), outcome, summary })
    }

    /// The jobs of a day.
    fn jobs_of(&self, day: Option<u32>) -> &[TraceJob] {
        let Some(day) = day else { return &self.jobs };
        let before = |s: u64| self.jobs.partition_point(|job| job.submit_s < s);
        let from = u64::from(day) * DAY_S;
        &self.jobs[before(from)..before(from + DAY_S)]
    }

    /// How many nodes a cluster of this size has that is made for these jobs.
    fn n_nodes(&self, size: Size, jobs: &[TraceJob]) -> u64 {
        match size {
            Size::Given => 0,
            Size::Nodes(nodes) => nodes,
            Size::Eta(eta) => nodes_for(jobs, eta, self.options.until, self.options.gpus_per_node),
        }
    }

    fn scenario(&self, scene: u64) -> Result<Scenario, SweepError> {
        let scenario = self.quiet_scenario(scene)?;
        Ok(if self.events.is_empty() { scenario } else { scenario.with_events(self.events.clone()) })
    }

    /// The same without events of nodes.
    fn quiet_scenario(&self, scene: u64) -> Result<Scenario, SweepError> {
        let (day, size) = self.grid.scene(scene);
        let jobs = self.jobs_of(day);
        if let (Size::Given, Some(cluster)) = (size, &self.cluster) {
            return Ok(Scenario::new(cluster.clone(), jobs.to_vec())?);
        }
        let nodes = self.n_nodes(size, jobs);
        let most = self.options.most_nodes;
        if nodes > most {
            return Err(SweepError::TooLarge { found: nodes, most });
        }
        Ok(Scenario::homogeneous(nodes, self.options.gpus_per_node, jobs.to_vec())?)
    }
}

fn fingerprint(
    jobs: &[TraceJob],
    cluster: Option<&Cluster>,
    events: &[NodeEvent],
    grid: &Grid,
    options: &SweepOptions,
) -> Fingerprint {
    let mut prints = Prints::new(&format!("slotwise {} sweep", env!("CARGO_PKG_VERSION")));
    prints.jobs(jobs);
    prints.cluster(cluster);
    let Grid { days, sizes, move_costs_s, seeds, schedulers } = grid;
    prints.list(days.iter().map(|day| day.map_or("whole".to_owned(), |day| day.to_string())));
    prints.list(sizes.iter().map(|size| match size {
        Size::Eta(eta) => format!("eta {eta}"),
        Size::Nodes(nodes) => format!("nodes {nodes}"),
        Size::Given => "given".to_owned(),
    }));
    prints.list(move_costs_s.iter().map(ToString::to_string));
    prints.list(seeds.iter().map(ToString::to_string));
    prints.list(schedulers.iter().map(ToString::to_string));
    let &SweepOptions { discipline, until, gpus_per_node, most_nodes: _ } = options;
    let until = if until == Until::LastEnd { "last-end" } else { "last-submit" };
    prints.list([discipline.name(), until, &gpus_per_node.to_string()]);
    if !events.is_empty() {
        prints.node_events(events);
    }
    prints.finish()
}

#[cfg(test)]
mod tests;
