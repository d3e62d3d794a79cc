//! Jobs, seats and moves, from columns.

use std::ops::Range;

use super::columns::{Column, Taker, bad, check, full};
use super::generated as wire;
use crate::cluster::{
    Cluster, GpuMask, InstanceId, JobId, JobSpec, JobTimes, MAX_AMOUNT, MAX_GPUS, NodeId, WHOLE_GPU, Within,
    gpu_indices,
};
use crate::formats::{FormatError, GroupSpec, MoveSpec, SeatSpec, StartSpec};
use crate::workload::QueueEntry;

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
    group_of: &'a [String],
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
        if !jobs.group_of.is_empty() {
            full(at, "group_of", &jobs.group_of, rows)?;
        }
        Ok(Self {
            jobs,
            group_of: &jobs.group_of,
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
        use_it(&self.spec(row, times, &models))
    }

    fn spec<'m>(&'m self, row: usize, times: JobTimes, models: &'m [&'m str]) -> JobSpec<'m> {
        JobSpec {
            name: &self.jobs.name[row],
            gpus: self.gpus(row),
            gpu_milli: self.gpu_milli.get(row) as u16,
            cpu_milli: self.cpu_milli.get(row),
            memory_mib: self.memory_mib.get(row),
            models,
            within: self.within(row),
            pinned: self.pinned.get(row),
            times,
        }
    }

    /// The job of several groups that a row is a group of.
    pub(super) fn group_of(&self, row: usize) -> Option<&'a str> {
        self.group_of.get(row).map(String::as_str).filter(|whole| !whole.is_empty())
    }

    /// Whether a row is that of a job, or of the first of its groups: the name may come again in a list of edits.
    pub(super) fn begins(&self, row: usize) -> bool {
        let Some(whole) = self.group_of(row) else { return true };
        let goes_on = row.checked_sub(1).is_some_and(|before| self.group_of(before) == Some(whole));
        !goes_on || self.jobs.name[row].strip_prefix(whole) == Some("/1")
    }

    /// The rows of the job that begins at a row, which `whole` is the name of if it has groups.
    ///
    /// # Errors
    /// If they are no such job; `at` stands before the names of columns.
    pub(super) fn job(&self, at: &str, first: usize) -> Result<(Range<usize>, Option<&'a str>), FormatError> {
        let Some(whole) = self.group_of(first) else { return Ok((first..first + 1, None)) };
        let others = (first + 1..self.len()).take_while(|&row| !self.begins(row)).count();
        let rows = first..first + 1 + others;
        if rows.len() == 1 {
            let text =
                format_args!("found {whole:?} in one row, expected it in two at least, or none: one group is a job");
            return Err(bad(at, "group_of", Some(first), text));
        }
        for row in rows.clone() {
            let (found, expected) = (&self.jobs.name[row], format!("{whole}/{}", row - first + 1));
            if *found != expected {
                let text =
                    format_args!("found {found:?}, expected {expected:?}, as the next group of {whole:?} is called");
                return Err(bad(at, "name", Some(row), text));
            }
            let alike = [
                ("within", self.within.get(row) == self.within.get(first)),
                ("pinned", self.pinned.get(row) == self.pinned.get(first)),
            ];
            if let Some((column, _)) = alike.iter().find(|(_, is)| !is) {
                return Err(bad(
                    at,
                    column,
                    Some(row),
                    format_args!("found another than for the first group of {whole:?}"),
                ));
            }
        }
        Ok((rows, Some(whole)))
    }

    /// Registers the job that begins at a row in a cluster.
    pub(super) fn register(&self, at: &str, first: usize, cluster: &mut Cluster) -> Result<QueueEntry, FormatError> {
        let (rows, whole) = self.job(at, first)?;
        let wrong = |error| bad(at, "name", Some(first), error);
        let Some(whole) = whole else {
            return Ok(QueueEntry::Submit(self.register_row(at, first, cluster)?));
        };
        let models: Vec<Vec<&str>> = rows.clone().map(|row| self.models(row).collect()).collect();
        let groups: Vec<_> = rows
            .zip(&models)
            .map(|(row, models)| (self.spec(row, JobTimes::default(), models), self.instances(row)))
            .collect();
        cluster.register_groups(whole, &groups).map(QueueEntry::SubmitGroups).map_err(wrong)
    }

    /// Registers the job of a row, which is no group.
    pub(super) fn register_row(&self, at: &str, row: usize, cluster: &mut Cluster) -> Result<JobId, FormatError> {
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
    from: Column<'a, u32>,
}

/// In place of the number of a node, where that is not said.
pub(in crate::serve) const NOT_SAID: u32 = u32::MAX;

/// `Seats` that are left out.
static NO_SEATS: wire::Seats = wire::Seats { node: Vec::new(), gpus: Vec::new() };

impl<'a> MoveRows<'a> {
    pub(super) fn new(at: &str, moves: &'a wire::Moves, nodes: usize) -> Result<Self, FormatError> {
        let rows = moves.job.len();
        full(at, "instance", &moves.instance, rows)?;
        let to = moves.to.as_ref().unwrap_or(&NO_SEATS);
        full(at, "to.node", &to.node, rows)?;
        let from = Column::new(at, "from", &moves.from, rows, NOT_SAID)?.check(
            at,
            "from",
            |node| (node as usize) < nodes || node == NOT_SAID,
            &format!("less than {nodes}, as many as nodes, or 4294967295"),
        )?;
        Ok(Self { moves, to: SeatRows::new(&format!("{at}to."), to, nodes)?, from })
    }

    pub(super) fn len(&self) -> usize {
        self.to.len()
    }

    /// Where to.
    pub(super) fn to(&self, row: usize) -> (NodeId, Option<GpuMask>) {
        self.to.get(row)
    }

    /// Where from, if that is said.
    fn from(&self, row: usize) -> Option<NodeId> {
        Some(self.from.get(row)).filter(|&node| node != NOT_SAID).map(NodeId)
    }

    /// Who, if it runs, and runs there.
    pub(super) fn running(&self, cluster: &Cluster, row: usize) -> Option<InstanceId> {
        let job = cluster.find_job(&self.moves.job[row]).filter(|&job| cluster.job(job).runs())?;
        let instance = cluster.instances_of(job).nth(self.moves.instance[row] as usize)?;
        let node = cluster.instance(instance).node()?;
        self.from(row).is_none_or(|from| from == node).then_some(instance)
    }

    /// All of it by name.
    pub(super) fn spec(&self, cluster: &Cluster, row: usize) -> MoveSpec {
        let SeatSpec { node, gpus } = self.to.spec(cluster, row);
        let from = self.from(row).map(|from| cluster.node_name(from).to_owned());
        MoveSpec { job: self.moves.job[row].clone(), instance: u64::from(self.moves.instance[row]), node, from, gpus }
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
    group_of: Vec::new(),
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

    /// The job that begins at a row, by names; and the rows of it.
    ///
    /// # Errors
    /// If they are no such job; `at` stands before the names of columns.
    pub(super) fn spec(&self, at: &str, cluster: &Cluster, first: usize) -> Result<(StartSpec, usize), FormatError> {
        let (rows, whole) = self.jobs.job(&format!("{at}jobs."), first)?;
        let gang = self.gang.get(first).filter(|gang| !gang.is_empty());
        let alone = self.alone(cluster, first);
        let Some(whole) = whole else { return Ok((StartSpec { gang: gang.cloned(), ..alone }, 1)) };
        for row in rows.clone() {
            let times = |row| (self.remaining_s.get(row).max(-1), self.move_cost_s.get(row).max(-1));
            if times(row) != times(first) {
                let text = format_args!("found other times than for the first group of {whole:?}");
                return Err(bad(at, "remaining_s", Some(row), text));
            }
            if self.gang.get(row).is_some_and(|gang| !gang.is_empty()) {
                let text = format_args!(
                    "found one for a group of {whole:?}, expected none: all groups of a job start at once"
                );
                return Err(bad(at, "gang", Some(row), text));
            }
        }
        let n_rows = rows.len();
        let groups = rows.map(|row| self.alone(cluster, row)).map(GroupSpec::from).collect();
        let StartSpec { migratable, within, remaining_s, move_cost_s, .. } = alone;
        let (job, rest) = (whole.to_owned(), StartSpec::default());
        Ok((StartSpec { job, migratable, within, remaining_s, move_cost_s, groups, ..rest }, n_rows))
    }

    /// A row as a job of its own.
    fn alone(&self, cluster: &Cluster, row: usize) -> StartSpec {
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
            within: spec.within.map(Into::into),
            remaining_s: times.remaining_s,
            move_cost_s: times.move_cost_s,
            gang: None,
            instances,
            groups: Vec::new(),
        })
    }
}
