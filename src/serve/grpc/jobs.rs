//! Jobs, seats and moves, from columns.

use std::ops::Range;

use super::columns::{Column, Taker, bad, check, full};
use super::generated as wire;
use crate::cluster::{
    Cluster, GpuMask, InstanceId, JobId, JobSpec, JobTimes, MAX_AMOUNT, MAX_GPUS, NodeId, WHOLE_GPU, Within,
    gpu_indices,
};
use crate::formats::{FormatError, MoveSpec, SeatSpec, StartSpec, WithinSpec};

/// The most instances of one job: what can be numbered.
const MAX_INSTANCES: u32 = u32::MAX - 1;

/// The most that a time in seconds may be, as in every other format.
const MAX_SECONDS: i64 = (1 << 53) - 1;

/// The rows of `Jobs`, checked.
pub(super) struct JobRows<'a> {
    jobs: &'a wire::Jobs,
    instances: Column<'a, u32>,
    gpu_milli: Column<'a, u32>,
    cpu_milli: Column<'a, u32>,
    memory_mib: Column<'a, u32>,
    pinned: Column<'a, bool>,
    within: Column<'a, i32>,
    /// By row: which of `models` are its.
    models: Vec<Range<usize>>,
}

/// A column of what jobs or gangs must be within.
pub(super) fn within_column<'a>(at: &str, values: &'a [i32], rows: usize) -> Result<Column<'a, i32>, FormatError> {
    let expected = "0 for anywhere, 1 for a domain or 2 for a rack";
    Column::new(at, "within", values, rows, 0)?.check(at, "within", |n| wire::Within::try_from(n).is_ok(), expected)
}

/// What an element of it means.
pub(super) fn within_of(element: i32) -> Option<Within> {
    match wire::Within::try_from(element) {
        Ok(wire::Within::Domain) => Some(Within::Domain),
        Ok(wire::Within::Rack) => Some(Within::Rack),
        Ok(wire::Within::Anywhere) | Err(_) => None,
    }
}

impl<'a> JobRows<'a> {
    /// Checks the columns; `at` stands before their names in errors.
    pub(super) fn new(at: &str, jobs: &'a wire::Jobs) -> Result<Self, FormatError> {
        let rows = jobs.name.len();
        full(at, "gpus_per_instance", &jobs.gpus_per_instance, rows)?;
        check(at, "gpus_per_instance", &jobs.gpus_per_instance, |n| n as usize <= MAX_GPUS, "0 to 16")?;
        let amount = |name, values| {
            Column::new(at, name, values, rows, 0)?.check(at, name, |n| n <= MAX_AMOUNT, "at most 2147483646")
        };
        let counts = Column::new(at, "n_models", &jobs.n_models, rows, 0)?;
        let n_words = jobs.words.len();
        check(
            at,
            "models",
            &jobs.models,
            |n| (n as usize) < n_words,
            &format!("less than {n_words}, as many as words"),
        )?;
        let mut taker = Taker::new(at, "models", jobs.models.len());
        let models = (0..rows).map(|row| taker.take(counts.get(row))).collect::<Result<Vec<_>, _>>()?;
        taker.done()?;
        Ok(Self {
            jobs,
            instances: Column::new(at, "instances", &jobs.instances, rows, 1)?.check(
                at,
                "instances",
                |n| (1..=MAX_INSTANCES).contains(&n),
                "1 to 4294967294",
            )?,
            gpu_milli: Column::new(at, "gpu_milli", &jobs.gpu_milli, rows, u32::from(WHOLE_GPU))?.check(
                at,
                "gpu_milli",
                |n| (1..=u32::from(WHOLE_GPU)).contains(&n),
                "1 to 1000",
            )?,
            cpu_milli: amount("cpu_milli", &jobs.cpu_milli)?,
            memory_mib: amount("memory_mib", &jobs.memory_mib)?,
            pinned: Column::new(at, "pinned", &jobs.pinned, rows, false)?,
            within: within_column(at, &jobs.within, rows)?,
            models,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.models.len()
    }

    pub(super) fn instances(&self, row: usize) -> u32 {
        self.instances.get(row)
    }

    fn gpus(&self, row: usize) -> u8 {
        // At most 16: checked above.
        self.jobs.gpus_per_instance[row] as u8
    }

    fn models(&self, row: usize) -> impl Iterator<Item = &'a str> {
        let jobs = self.jobs;
        jobs.models[self.models[row].clone()].iter().map(move |&word| jobs.words[word as usize].as_str())
    }

    fn within(&self, row: usize) -> Option<Within> {
        within_of(self.within.get(row))
    }

    /// Hands a job to `use_it` as the cluster wants it.
    pub(super) fn with_spec<R>(&self, row: usize, times: JobTimes, use_it: impl FnOnce(&JobSpec<'_>) -> R) -> R {
        let models: Vec<&str> = self.models(row).collect();
        use_it(&JobSpec {
            name: &self.jobs.name[row],
            gpus: self.gpus(row),
            gpu_milli: self.gpu_milli.get(row) as u16,
            cpu_milli: self.cpu_milli.get(row),
            memory_mib: self.memory_mib.get(row),
            models: &models,
            within: self.within(row),
            pinned: self.pinned.get(row),
            times,
        })
    }

    /// Registers a job in a cluster.
    pub(super) fn register(&self, at: &str, row: usize, cluster: &mut Cluster) -> Result<JobId, FormatError> {
        let registered = self.with_spec(row, JobTimes::default(), |spec| cluster.register(spec, self.instances(row)));
        registered.map_err(|error| bad(at, "name", Some(row), error))
    }
}

/// The rows of `Seats`, checked.
pub(super) struct SeatRows<'a> {
    node: &'a [u32],
    gpus: Column<'a, u32>,
}

impl<'a> SeatRows<'a> {
    /// Checks the columns, for a cluster of `nodes` nodes.
    pub(super) fn new(at: &str, seats: &'a wire::Seats, nodes: usize) -> Result<Self, FormatError> {
        check(
            at,
            "node",
            &seats.node,
            |node| (node as usize) < nodes,
            &format!("less than {nodes}, as many as nodes"),
        )?;
        let gpus = Column::new(at, "gpus", &seats.gpus, seats.node.len(), 0)?;
        let gpus = gpus.check(at, "gpus", |mask| mask <= u32::from(GpuMask::MAX), "a mask of 16 bits")?;
        Ok(Self { node: &seats.node, gpus })
    }

    pub(super) fn len(&self) -> usize {
        self.node.len()
    }

    /// The node, and the devices if they are named.
    pub(super) fn get(&self, row: usize) -> (NodeId, Option<GpuMask>) {
        let mask = self.gpus.get(row) as GpuMask;
        (NodeId(self.node[row]), (mask != 0).then_some(mask))
    }

    /// The same by name.
    pub(super) fn spec(&self, cluster: &Cluster, row: usize) -> SeatSpec {
        let (node, gpus) = self.get(row);
        let gpus = gpus.map(|mask| gpu_indices(mask).map(u64::from).collect());
        SeatSpec { node: cluster.node_name(node).to_owned(), gpus }
    }
}

/// The rows of `Moves`, checked.
pub(super) struct MoveRows<'a> {
    moves: &'a wire::Moves,
    to: SeatRows<'a>,
}

/// `Seats` that are left out.
static NO_SEATS: wire::Seats = wire::Seats { node: Vec::new(), gpus: Vec::new() };

impl<'a> MoveRows<'a> {
    pub(super) fn new(at: &str, moves: &'a wire::Moves, nodes: usize) -> Result<Self, FormatError> {
        let rows = moves.job.len();
        full(at, "instance", &moves.instance, rows)?;
        let to = moves.to.as_ref().unwrap_or(&NO_SEATS);
        full(at, "to.node", &to.node, rows)?;
        Ok(Self { moves, to: SeatRows::new(&format!("{at}to."), to, nodes)? })
    }

    pub(super) fn len(&self) -> usize {
        self.to.len()
    }

    /// Where to.
    pub(super) fn to(&self, row: usize) -> (NodeId, Option<GpuMask>) {
        self.to.get(row)
    }

    /// Who, if it runs.
    pub(super) fn running(&self, cluster: &Cluster, row: usize) -> Option<InstanceId> {
        let job = cluster.find_job(&self.moves.job[row]).filter(|&job| cluster.job(job).runs())?;
        let instance = cluster.instances_of(job).nth(self.moves.instance[row] as usize)?;
        cluster.instance(instance).node().map(|_| instance)
    }

    /// All of it by name.
    pub(super) fn spec(&self, cluster: &Cluster, row: usize) -> MoveSpec {
        let SeatSpec { node, gpus } = self.to.spec(cluster, row);
        MoveSpec { job: self.moves.job[row].clone(), instance: u64::from(self.moves.instance[row]), node, gpus }
    }
}

/// The rows of `Running`, checked.
pub(super) struct RunningRows<'a> {
    pub(super) jobs: JobRows<'a>,
    pub(super) seats: SeatRows<'a>,
    gang: &'a [String],
    remaining_s: Column<'a, i64>,
    move_cost_s: Column<'a, i64>,
    /// By job: which of the seats are its.
    seats_of: Vec<Range<usize>>,
}

/// `Jobs` that are left out.
static NO_JOBS: wire::Jobs = wire::Jobs {
    name: Vec::new(),
    instances: Vec::new(),
    gpus_per_instance: Vec::new(),
    gpu_milli: Vec::new(),
    cpu_milli: Vec::new(),
    memory_mib: Vec::new(),
    pinned: Vec::new(),
    within: Vec::new(),
    n_models: Vec::new(),
    models: Vec::new(),
    words: Vec::new(),
};

impl<'a> RunningRows<'a> {
    pub(super) fn new(at: &str, running: &'a wire::Running, nodes: usize) -> Result<Self, FormatError> {
        let jobs = JobRows::new(&format!("{at}jobs."), running.jobs.as_ref().unwrap_or(&NO_JOBS))?;
        let seats = SeatRows::new(&format!("{at}seats."), running.seats.as_ref().unwrap_or(&NO_SEATS), nodes)?;
        let rows = jobs.len();
        let mut taker = Taker::new(at, "seats", seats.len());
        let seats_of = (0..rows).map(|row| taker.take(jobs.instances(row))).collect::<Result<Vec<_>, _>>()?;
        taker.done()?;
        if !running.gang.is_empty() {
            full(at, "gang", &running.gang, rows)?;
        }
        let seconds = |name, values| {
            Column::new(at, name, values, rows, -1)?.check(at, name, |n| n <= MAX_SECONDS, "at most 9007199254740991")
        };
        Ok(Self {
            remaining_s: seconds("remaining_s", &running.remaining_s)?,
            move_cost_s: seconds("move_cost_s", &running.move_cost_s)?,
            gang: &running.gang,
            jobs,
            seats,
            seats_of,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.seats_of.len()
    }

    pub(super) fn times(&self, row: usize) -> JobTimes {
        let known = |seconds: i64| u64::try_from(seconds).ok();
        JobTimes { remaining_s: known(self.remaining_s.get(row)), move_cost_s: known(self.move_cost_s.get(row)) }
    }

    pub(super) fn seats_of(&self, row: usize) -> Range<usize> {
        self.seats_of[row].clone()
    }

    /// A job by names.
    pub(super) fn spec(&self, cluster: &Cluster, row: usize) -> StartSpec {
        let times = self.times(row);
        let instances = self.seats_of(row).map(|seat| self.seats.spec(cluster, seat)).collect();
        self.jobs.with_spec(row, times, |spec| StartSpec {
            job: spec.name.to_owned(),
            gpus_per_instance: spec.gpus,
            gpu_milli: (spec.gpu_milli < WHOLE_GPU).then_some(spec.gpu_milli),
            cpu_milli: spec.cpu_milli,
            memory_mib: spec.memory_mib,
            migratable: !spec.pinned,
            models: spec.models.iter().map(|&model| model.to_owned()).collect(),
            within: spec.within.map(WithinSpec::from),
            remaining_s: times.remaining_s,
            move_cost_s: times.move_cost_s,
            gang: self.gang.get(row).filter(|gang| !gang.is_empty()).cloned(),
            instances,
        })
    }
}
