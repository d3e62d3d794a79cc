//! The commit loop: decides a queue job by job, each on the state that the one before left.

mod groups;
mod moment;

use super::decision::{Decision, Status};
use super::groups::STEPS;
use super::mix::Mix;
use super::need::Needs;
use super::placer::Placer;
use super::policy::random::Draws;
use super::policy::score::Scoring;
use super::policy::{Method, Policy};
use super::ranking::Window;
use super::repack::Repack;
use super::room::{self, RoomLimits, RoomMaker, Worth};
use super::scorer::Scorer;
use super::why::{self, Why};
use crate::anchor::{self, Rules, State, Transaction, Trigger, Variant};
use crate::cluster::{JobId, NodeId, RequestId, Within};
use crate::evaluate::{Backend, EvalError};
use crate::fragmentation::fgd::Typical;
use crate::workload::QueueEntry;

/// The settings of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceOptions {
    /// Who decides.
    pub policy: Policy,
    /// When COMPASS compacts.
    pub trigger: Trigger,
    /// The most instances that an event may migrate; `None` is no limit.
    pub migration_budget: Option<u32>,
    /// The seed of the random policy.
    pub seed: u64,
    /// How many entries of the queue are ranked together. Never shows in a result.
    pub window: usize,
    /// How many threads rank; 0 is one a core. Never shows in a result.
    pub threads: usize,
}

impl Default for PlaceOptions {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            trigger: Trigger::default(),
            migration_budget: None,
            seed: 0,
            window: 256,
            threads: 0,
        }
    }
}

impl PlaceOptions {
    fn rules(&self, variant: Variant) -> Rules {
        Rules { variant, trigger: self.trigger, migration_budget: self.migration_budget, region: None }
    }
}

/// The most instances of a CPU-only gang. GPUs bound every other gang by what the cluster has; where nodes set no limit,
/// nothing but this keeps a line of a queue from asking for more instances than memory holds.
const MOST_CPU_ONLY: u32 = 1 << 24;

/// Decides the entries of a queue on a state. Holds the state for as long as it lives.
#[derive(Debug)]
pub struct CommitLoop<'s> {
    state: &'s mut State,
    options: PlaceOptions,
    needs: Needs,
    placer: Placer,
    window: Window,
    /// For the policies that score nodes.
    scorer: Option<Scorer>,
    /// For the policy that moves others.
    room_maker: Option<Box<dyn RoomMaker>>,
    /// What was refused since anything changed: the same need not be asked again.
    no_room: Vec<(RequestId, u32)>,
    /// What the starts of the next decisions are worth by that.
    worth: Option<Worth>,
    /// For those of them whose table of typical pods changes with what runs or waits.
    mix: Option<Mix>,
    /// The threads that rank, once a window has something to rank; `None` where they could not be started.
    threads: Option<Option<rayon::ThreadPool>>,
    /// The most steps of a search for a place of several groups.
    group_steps: u32,
    /// The only region that the job which is being decided may go to.
    region: Option<(Within, usize)>,
    /// GPUs of all nodes.
    gpus: u64,
    /// N·SIF of the state.
    n_sif: i64,
    decision: Decision,
}

impl<'s> CommitLoop<'s> {
    /// A loop that starts from this state.
    pub fn new(state: &'s mut State, options: PlaceOptions) -> Self {
        if matches!(options.policy.method(), Method::Ordered(_) | Method::Random) {
            state.index_free_gpus();
        }
        let n_sif = state.n_sif();
        let decision = Decision {
            job: JobId(0),
            status: Status::Absent,
            placements: Vec::new(),
            migrations: Vec::new(),
            delta_sif_nodes: None,
            in_abs: None,
            proven: None,
        };
        let commit_loop = Self {
            gpus: state.cluster().gpus(),
            state,
            options,
            needs: Needs::default(),
            placer: Placer::default(),
            window: Window::default(),
            scorer: None,
            room_maker: None,
            no_room: Vec::new(),
            worth: None,
            mix: None,
            threads: None,
            group_steps: STEPS,
            region: None,
            n_sif,
            decision,
        };
        match options.policy.method() {
            Method::Scored(..) => {
                let typical = moment::usual(commit_loop.state.cluster());
                commit_loop.with_typical(typical)
            }
            Method::Anchor(_) | Method::Ordered(_) | Method::Random => commit_loop,
        }
    }

    /// The same, with these typical pods for `fgd` and what is built on it, instead of those of the jobs that wait at the
    /// start, or of those that run if none waits.
    #[must_use]
    pub fn with_typical(mut self, typical: Typical) -> Self {
        if let Method::Scored(score, arithmetic) = self.options.policy.method() {
            let typical = self.mixed(typical);
            let cluster = self.state.cluster();
            let mut scorer = Scorer::new(cluster, Scoring::new(cluster, score, arithmetic, typical));
            if let Some(backend) = self.scorer.take().and_then(Scorer::into_backend) {
                scorer.score_on(backend, cluster);
            }
            self.scorer = Some(scorer);
        }
        self
    }

    /// The same, with somebody who knows which moves make room, if the policy asks for that. Without, it is best-fit.
    #[must_use]
    pub fn with_room_maker(mut self, room_maker: Box<dyn RoomMaker>) -> Self {
        self.room_maker = Some(room_maker).filter(|_| self.options.policy.makes_room());
        self
    }

    /// From now on looks in at most so many steps for where the groups of a job fit together; 2^18 else, which are a tenth
    /// of a second. With fewer a place may be missed, and less is proved; with none a job that does not fit group after
    /// group is blocked.
    pub fn set_group_steps(&mut self, steps: u32) {
        self.group_steps = steps;
    }

    /// What it is worth to make room for the job of each of the next decisions; `None` is any price, as at first.
    pub fn set_worth(&mut self, worth: Option<Worth>) {
        self.worth = worth;
    }

    /// The same, with a backend that ranks nodes for the windows, or scores them for `fgd`. It never shows in a result;
    /// should it fail, the loop goes on without it (see [`CommitLoop::backend_fault`]).
    pub fn with_backend(state: &'s mut State, options: PlaceOptions, backend: Box<dyn Backend>) -> Self {
        let mut commit_loop = Self::new(state, options);
        match options.policy.method() {
            Method::Ordered(_) => commit_loop.window.rank_on(backend, commit_loop.state),
            Method::Scored(..) => {
                if let Some(scorer) = &mut commit_loop.scorer {
                    scorer.score_on(backend, commit_loop.state.cluster());
                }
            }
            Method::Anchor(_) | Method::Random => {}
        }
        commit_loop
    }

    /// Why the backend is no longer used, if it failed.
    pub fn backend_fault(&self) -> Option<&EvalError> {
        self.window.fault().or_else(|| self.scorer.as_ref()?.fault())
    }

    /// The state as the decisions so far left it.
    pub fn state(&self) -> &State {
        self.state
    }

    /// Who decides.
    pub fn policy(&self) -> Policy {
        self.options.policy
    }

    /// N·SIF of that state.
    pub fn n_sif(&self) -> i64 {
        self.n_sif
    }

    /// Decides all entries in order and shows each decision to `sink`.
    pub fn run(&mut self, queue: &[QueueEntry], sink: &mut dyn FnMut(&Decision)) {
        let mut index = 0;
        let mut windows = queue.chunks(self.options.window.max(1)).peekable();
        while let Some(entries) = windows.next() {
            self.open_window(entries, windows.peek().copied().unwrap_or_default());
            for &entry in entries {
                sink(self.decide_one(entry, index));
                index += 1;
            }
        }
        self.window.close();
    }

    /// Decides one entry; `index` is its place in the queue. The same as in [`CommitLoop::run`], without a window.
    pub fn decide(&mut self, entry: QueueEntry, index: usize) -> &Decision {
        self.window.close();
        self.decide_one(entry, index)
    }

    /// The same where the job may go to one of [`State::regions`] alone, which is then not chosen. What it says of `within`
    /// itself binds it when it is moved later. Nobody makes room for it; and that GPUs cannot be packed is said of the whole
    /// cluster, and of no job of several groups.
    pub fn decide_in(&mut self, region: (Within, usize), entry: QueueEntry, index: usize) -> &Decision {
        self.window.close();
        self.region = Some(region);
        self.decide_one(entry, index);
        self.region = None;
        &self.decision
    }

    /// Ends jobs that leave at one instant, as one event: the cluster is compacted once, after the last. Jobs that do not
    /// run are passed over.
    pub fn remove_together(&mut self, jobs: &[JobId]) -> &Decision {
        self.window.close();
        self.begin(jobs.first().copied().unwrap_or(JobId(0)));
        self.decision.status = self.remove(jobs);
        self.account();
        &self.decision
    }

    /// Nodes stop or start to take instances, and jobs end with that, all as one event: `cordoned` and `uncordoned` nodes that
    /// are so already are passed over, and so are `ended` jobs that do not run.
    pub fn change_nodes(&mut self, cordoned: &[NodeId], uncordoned: &[NodeId], ended: &[JobId]) -> &Decision {
        self.window.close();
        self.begin(ended.first().copied().unwrap_or(JobId(0)));
        let mut transaction = self.state.begin();
        for &node in cordoned {
            let _ = transaction.cordon(node);
        }
        for &node in uncordoned {
            let _ = transaction.uncordon(node);
        }
        end(&mut transaction, ended, &self.options);
        self.decision.record(&mut self.window, &transaction);
        tell(&mut self.scorer, &transaction);
        transaction.commit();
        self.note_left(ended);
        self.decision.status = Status::Removed;
        self.account();
        &self.decision
    }

    /// Repacks what runs, as one event. The policy must be one that places without moves.
    pub fn repack(&mut self, how: Repack) -> &Decision {
        debug_assert!(!matches!(self.options.policy.method(), Method::Anchor(_)), "no index by free GPUs");
        self.window.close();
        self.begin(JobId(0));
        let mut transaction = self.state.begin();
        how.run(&mut transaction);
        self.decision.record(&mut self.window, &transaction);
        tell(&mut self.scorer, &transaction);
        transaction.commit();
        self.decision.status = Status::Removed;
        self.account();
        &self.decision
    }

    fn open_window(&mut self, entries: &[QueueEntry], next: &[QueueEntry]) {
        let method = self.options.policy.method();
        if entries.len() < 2 || !matches!(method, Method::Ordered(_) | Method::Scored(..)) {
            return self.window.close();
        }
        let cluster = self.state.cluster();
        let submitted = |entry: &QueueEntry| match *entry {
            QueueEntry::Submit(job) => Some(cluster.job(job).request()),
            // Groups take room from each other, which a ranking does not know.
            QueueEntry::SubmitGroups(_) | QueueEntry::Remove(_) | QueueEntry::RemoveGroups(_) => None,
        };
        let requests = |entries: &[QueueEntry]| entries.iter().filter_map(submitted).collect::<Vec<_>>();
        let [now, next] = [entries, next].map(requests);
        now.iter().chain(&next).for_each(|&request| self.needs.resolve(cluster, request));
        if let Some(scorer) = &mut self.scorer {
            scorer.prepare(cluster, &self.needs, &now);
        }
        let Method::Ordered(order) = method else { return };
        let threads = self.threads.get_or_insert_with(|| {
            let builder = rayon::ThreadPoolBuilder::new().num_threads(self.options.threads);
            // Without threads of its own the loop ranks on the one that it has.
            if self.options.threads == 1 { None } else { builder.build().ok() }
        });
        self.window.open(self.state, &self.needs, order, [&now, &next], threads.as_ref());
    }

    #[inline(never)]
    fn decide_one(&mut self, entry: QueueEntry, index: usize) -> &Decision {
        self.begin(entry.job());
        self.decision.status = match entry {
            QueueEntry::Submit(job) => self.submit(job, index),
            QueueEntry::Remove(job) => self.remove(&[job]),
            QueueEntry::SubmitGroups(job) => self.submit_groups(job, index),
            QueueEntry::RemoveGroups(job) => self.remove_groups(job),
        };
        self.account();
        &self.decision
    }

    /// Clears the decision for the next one.
    fn begin(&mut self, job: JobId) {
        self.decision.job = job;
        self.decision.placements.clear();
        self.decision.migrations.clear();
        self.decision.delta_sif_nodes = None;
        self.decision.in_abs = None;
        self.decision.proven = None;
    }

    /// Keeps N·SIF, if something changed, and the table of typical pods.
    #[inline(always)]
    fn account(&mut self) {
        self.refresh_table();
        if matches!(self.decision.status, Status::Placed | Status::Removed) {
            self.no_room.clear();
            let n_sif = self.state.n_sif();
            self.decision.delta_sif_nodes = Some(n_sif - self.n_sif);
            self.n_sif = n_sif;
        }
    }

    fn submit(&mut self, job: JobId, index: usize) -> Status {
        match self.place(job, index) {
            Status::Blocked(Why::Fragmentation | Why::Constraint) if self.region.is_none() && self.make_room(job) => {
                Status::Placed
            }
            status => status,
        }
    }

    /// Why a job is blocked, as far as that shows before it is tried: before its instances get numbers, which a blocked job
    /// would keep, since there may be billions of them.
    #[inline(always)]
    fn refused(&mut self, job: JobId) -> Option<Why> {
        let cluster = self.state.cluster();
        let registered = cluster.job(job);
        self.needs.resolve(cluster, registered.request());
        let (need, instances) = (self.needs.of(registered.request()), registered.instances());
        let by_gpus = match self.options.policy.method() {
            // What moves instances can mend fragmentation.
            Method::Anchor(_) => why::lacks_capacity(self.state, need, instances).then_some(Why::Capacity),
            Method::Ordered(_) | Method::Random | Method::Scored(..) => why::why_by_gpus(self.state, need, instances),
        };
        let too_many = || {
            need.gpus == 0 && instances > 1 && (instances > MOST_CPU_ONLY || !why::fits(self.state, need, instances))
        };
        by_gpus.or_else(|| too_many().then_some(Why::Constraint))
    }

    /// Places a job as the policy does by itself.
    fn place(&mut self, job: JobId, index: usize) -> Status {
        if let Some(why) = self.refused(job) {
            return Status::Blocked(why);
        }
        let registered = *self.state.cluster().job(job);
        let (need, instances) = (self.needs.of(registered.request()), registered.instances());
        let method = self.options.policy.method();
        let mut transaction = self.state.begin();
        if !transaction.start(job) {
            return Status::Blocked(if need.gpus == 0 { Why::Constraint } else { Why::Capacity });
        }
        let placed = match method {
            Method::Anchor(variant) => {
                let rules = Rules { region: self.region, ..self.options.rules(variant) };
                anchor::place(&mut transaction, job, &rules)
            }
            Method::Ordered(order) => match self.region {
                None => self.placer.place_in_order(&mut transaction, job, &self.needs, &self.window, order),
                Some(region) => self.placer.fill_region(&mut transaction, job, need, region, order),
            },
            Method::Random => {
                let (needs, mut draws) = (&self.needs, Draws::new(self.options.seed, index));
                match self.region {
                    None => self.placer.place_by_lot(&mut transaction, job, needs, &mut draws),
                    Some(region) => self.placer.fill_region_by_lot(&mut transaction, job, needs, region, &mut draws),
                }
            }
            Method::Scored(..) => self.scorer.as_mut().is_some_and(|scorer| {
                let sum = match self.region {
                    None => scorer.place(&mut transaction, job, &self.needs),
                    Some(_) => scorer.place_in(&mut transaction, job, &self.needs, self.region),
                };
                sum.is_some()
            }),
        };
        if placed {
            self.decision.keep_start(&mut self.window, transaction, job);
            self.note_started(job);
            return Status::Placed;
        }
        drop(transaction);
        match method {
            Method::Anchor(_) => Status::Blocked(why::why_in(self.state, need, instances, self.region)),
            // These find a placement if there is one, and GPUs alone would have done.
            Method::Ordered(_) | Method::Random | Method::Scored(..) => {
                debug_assert_eq!(why::why_in(self.state, need, instances, self.region), Why::Constraint);
                Status::Blocked(Why::Constraint)
            }
        }
    }

    /// Starts a job that does not fit as things are, by the moves of whoever knows some. False, with nothing changed, if
    /// nobody does.
    fn make_room(&mut self, job: JobId) -> bool {
        let Some(room_maker) = &mut self.room_maker else { return false };
        let limits = RoomLimits { most_moves: self.options.migration_budget, worth: self.worth };
        let registered = self.state.cluster().job(job);
        let (id, instances) = (registered.request(), registered.instances());
        let asked = (id, instances);
        if limits.forbid_all()
            || self.no_room.contains(&asked)
            || !room::lacks_gpus(self.state, self.state.cluster().request(id), instances)
            || !room::may_fit_repacked(self.state, self.needs.of(id), instances)
        {
            return false;
        }
        let Some(room) = room_maker.make_room(self.state.cluster(), job, limits) else {
            // What a start is worth changes with time; all else only with what is committed.
            if limits.worth.is_none() {
                self.no_room.push(asked);
            }
            return false;
        };
        let mut transaction = self.state.begin();
        if !transaction.start(job) || room.carry_out(&mut transaction, job).is_err() {
            return false;
        }
        self.decision.keep_start(&mut self.window, transaction, job);
        true
    }

    fn remove(&mut self, jobs: &[JobId]) -> Status {
        self.note_left(jobs);
        if !jobs.iter().any(|&job| self.state.cluster().job(job).runs()) {
            return Status::Absent;
        }
        let mut transaction = self.state.begin();
        end(&mut transaction, jobs, &self.options);
        self.decision.record(&mut self.window, &transaction);
        tell(&mut self.scorer, &transaction);
        transaction.commit();
        Status::Removed
    }
}

/// Ends jobs as one event.
fn end(transaction: &mut Transaction<'_>, jobs: &[JobId], options: &PlaceOptions) {
    match options.policy.method() {
        Method::Anchor(variant) => anchor::remove_together(transaction, jobs, &options.rules(variant)),
        Method::Ordered(_) | Method::Random | Method::Scored(..) => {
            for &job in jobs {
                for instance in transaction.cluster().instances_of(job) {
                    // One that does not run is freed already.
                    let _ = transaction.free(instance);
                }
            }
        }
    }
}

/// Tells who keeps scores which nodes an event changed.
fn tell(scorer: &mut Option<Scorer>, transaction: &Transaction<'_>) {
    if let Some(scorer) = scorer {
        transaction.log().iter().for_each(|edit| scorer.changed(edit.node()));
    }
}
