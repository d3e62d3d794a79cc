//! Plans against brute force: all clusters of small families, both modes, the number of moves and whether there is a plan.

use std::collections::VecDeque;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use slotwise::cluster::{Cluster, ClusterBuilder, Composition, JobId, JobSpec, NodeId, NodeSpec, Seat, Within};
use slotwise::plan::{Cost, Goal, Mode, PlanOptions, curve, plan};

use super::{options, verifier};

/// A small cluster with one job that waits. Each running instance is a job of its own.
#[derive(Clone, Debug)]
pub(super) struct World {
    /// GPUs, CPU and rack of each node.
    nodes: Vec<(u8, Option<u32>, u8)>,
    /// GPUs, CPU, whether it is pinned, and the node of each running instance.
    running: Vec<(u8, u32, bool, usize)>,
    /// Instances, and GPUs and CPU of each.
    job: (u32, u8, u32),
    within: bool,
    /// Two running instances that are one job, of two groups if they are unlike, which stays within a rack.
    gang: Option<(usize, usize)>,
}

impl World {
    fn cluster(&self) -> (Cluster, JobId) {
        self.cluster_beside(0)
    }

    /// The cluster beside so many nodes of a model that is of no use to it, on which other instances may move.
    pub(super) fn cluster_beside(&self, others: u32) -> (Cluster, JobId) {
        let mut builder = ClusterBuilder::new();
        let models: &[&str] = if others > 0 { &["own"] } else { &[] };
        for (at, &(gpus, cpu_milli, rack)) in self.nodes.iter().enumerate() {
            let (name, rack, model) = (format!("n{at}"), format!("r{rack}"), models.first().copied());
            builder
                .add_node(&NodeSpec { name: &name, gpus, cpu_milli, model, rack: Some(&rack), ..NodeSpec::default() })
                .unwrap();
        }
        for at in 0..others {
            let name = format!("other-{at}");
            let node = NodeSpec { name: &name, gpus: 2, model: Some("other"), ..NodeSpec::default() };
            let node = builder.add_node(&node).unwrap();
            if at > 0 {
                let spec = JobSpec { name: &name, gpus: 2, models: &["other"], ..JobSpec::default() };
                builder.add_running(&spec, &[Seat { node, gpus: None }]).unwrap();
            }
        }
        for (at, running) in self.running.iter().enumerate() {
            let spec = |&(gpus, cpu_milli, pinned, _): &(u8, u32, bool, usize), within| JobSpec {
                gpus,
                cpu_milli,
                models,
                pinned,
                within,
                ..JobSpec::default()
            };
            let seat = |&(.., node): &(u8, u32, bool, usize)| Seat { node: NodeId(node as u32), gpus: None };
            let name = format!("run-{at}");
            match self.gang {
                Some((_, second)) if second == at => {}
                Some((first, second)) if first == at => {
                    let (spec, second) = (|running| spec(running, Some(Within::Rack)), &self.running[second]);
                    if self.gang_is_alike() {
                        let spec = JobSpec { name: &name, ..spec(running) };
                        builder.add_running(&spec, &[seat(running), seat(second)]).unwrap();
                        continue;
                    }
                    for (number, member) in [(1, running), (2, second)] {
                        let of_group = format!("{name}/{number}");
                        let spec = JobSpec { name: &of_group, ..spec(member) };
                        let job = builder.add_running(&spec, &[seat(member)]).unwrap();
                        builder.join_group(job, &name).unwrap();
                    }
                }
                _ => {
                    let spec = JobSpec { name: &name, ..spec(running, None) };
                    builder.add_running(&spec, &[seat(running)]).unwrap();
                }
            }
        }
        let mut cluster = builder.finish().unwrap();
        let (instances, gpus, cpu_milli) = self.job;
        let within = self.within.then_some(Within::Rack);
        let spec = JobSpec { name: "job", gpus, cpu_milli, models, within, ..JobSpec::default() };
        let job = cluster.register(&spec, instances).unwrap();
        (cluster, job)
    }

    /// Free GPUs and CPU of each node, if the instances are on these nodes; `None` if they do not fit there.
    fn rooms(&self, at: &[usize]) -> Option<Vec<(i64, i64)>> {
        let mut rooms: Vec<(i64, i64)> =
            self.nodes.iter().map(|&(gpus, cpu, _)| (i64::from(gpus), cpu.map_or(i64::MAX / 2, i64::from))).collect();
        for (&(gpus, cpu, ..), &node) in self.running.iter().zip(at) {
            rooms[node].0 -= i64::from(gpus);
            rooms[node].1 -= i64::from(cpu);
        }
        rooms.iter().all(|&(gpus, cpu)| gpus >= 0 && cpu >= 0).then_some(rooms)
    }

    fn job_fits(&self, rooms: &[(i64, i64)]) -> bool {
        let (instances, gpus, cpu) = self.job;
        let room = |&(free, free_cpu): &(i64, i64)| {
            let by = |free: i64, each: i64| if each == 0 { i64::MAX } else { free / each };
            by(free, i64::from(gpus)).min(by(free_cpu, i64::from(cpu)))
        };
        let racks: Vec<u8> = if self.within { (0..3).collect() } else { vec![u8::MAX] };
        racks.iter().any(|&rack| {
            let here = rooms.iter().zip(&self.nodes).filter(|(_, node)| rack == u8::MAX || node.2 == rack);
            here.map(|(free, _)| room(free)).sum::<i64>() >= i64::from(instances)
        })
    }

    fn gang_is_alike(&self) -> bool {
        let asks = |at: usize| (self.running[at].0, self.running[at].1, self.running[at].2);
        self.gang.is_some_and(|(first, second)| asks(first) == asks(second))
    }

    fn gang_is_together(&self, at: &[usize]) -> bool {
        self.gang.is_none_or(|(first, second)| self.nodes[at[first]].2 == self.nodes[at[second]].2)
    }

    /// The fewest moves if all movers stop first.
    pub(super) fn stop_first(&self) -> Option<usize> {
        let start: Vec<usize> = self.running.iter().map(|running| running.3).collect();
        let mut best = None;
        self.assign(&mut start.clone(), 0, 0, &mut best);
        best
    }

    fn assign(&self, at: &mut Vec<usize>, next: usize, moves: usize, best: &mut Option<usize>) {
        if best.is_some_and(|best| moves >= best) {
            return;
        }
        let Some(&(.., pinned, home)) = self.running.get(next) else {
            if self.gang_is_together(at) && self.rooms(at).is_some_and(|rooms| self.job_fits(&rooms)) {
                *best = Some(moves);
            }
            return;
        };
        self.assign(at, next + 1, moves, best);
        for node in (0..self.nodes.len()).filter(|&node| node != home && !pinned) {
            at[next] = node;
            self.assign(at, next + 1, moves + 1, best);
        }
        at[next] = home;
    }

    /// The fewest moves one after another.
    pub(super) fn hitless(&self) -> Option<usize> {
        let n = self.nodes.len();
        let code = |at: &[usize]| at.iter().fold(0, |code, node| code * n + node);
        let start: Vec<usize> = self.running.iter().map(|running| running.3).collect();
        let mut seen = vec![false; n.pow(start.len() as u32)];
        seen[code(&start)] = true;
        let mut queue = VecDeque::from([(start, 0)]);
        while let Some((at, moves)) = queue.pop_front() {
            if self.job_fits(&self.rooms(&at).expect("only what fits is queued")) {
                return Some(moves);
            }
            for instance in (0..at.len()).filter(|&instance| !self.running[instance].2) {
                for node in 0..n {
                    let mut next = at.clone();
                    next[instance] = node;
                    if self.rooms(&next).is_some() && !std::mem::replace(&mut seen[code(&next)], true) {
                        queue.push_back((next, moves + 1));
                    }
                }
            }
        }
        None
    }

    /// The fewest partial nodes that each number of moves leaves if all movers stop first.
    fn least_partial(&self) -> Vec<usize> {
        let n = self.nodes.len();
        let all = n.pow(self.running.len() as u32);
        let mut best = vec![usize::MAX; self.running.len() + 1];
        for code in 0..all {
            let mut rest = code;
            let at: Vec<usize> = self.running.iter().map(|_| (rest % n, rest /= n).0).collect();
            let stays = |(running, &node): (&(u8, u32, bool, usize), &usize)| running.3 == node;
            if self.running.iter().zip(&at).any(|(running, &node)| running.2 && running.3 != node) {
                continue;
            }
            let Some(rooms) = self.rooms(&at) else { continue };
            let partial = rooms.iter().zip(&self.nodes).filter(|((free, _), node)| *free > 0 && *free < node.0.into());
            let moves = self.running.iter().zip(&at).filter(|&pair| !stays(pair)).count();
            best[moves] = best[moves].min(partial.count());
        }
        best
    }

    /// The fewest GPUs, and of plans with so few the fewest moves, if all movers stop first.
    fn least_gpus(&self) -> Option<(u64, usize)> {
        let n = self.nodes.len();
        let mut best: Option<(u64, usize)> = None;
        for code in 0..n.pow(self.running.len() as u32) {
            let mut rest = code;
            let at: Vec<usize> = self.running.iter().map(|_| (rest % n, rest /= n).0).collect();
            let moved = || self.running.iter().zip(&at).filter(|(running, node)| running.3 != **node);
            let fits = || self.rooms(&at).is_some_and(|rooms| self.job_fits(&rooms));
            let found = (moved().map(|(running, _)| u64::from(running.0)).sum(), moved().count());
            let better = best.is_none_or(|best| found < best);
            if better && moved().all(|(running, _)| !running.2) && fits() {
                best = Some(found);
            }
        }
        best
    }

    /// Three or four nodes of 4 to 6 GPUs, almost full, of which CPU lets each have but one instance of the job that waits.
    pub(super) fn crowded(random: &mut ChaCha8Rng) -> Self {
        let nodes: Vec<_> = (0..random.random_range(3..=4)).map(|_| (random.random_range(4..=6), Some(1), 0)).collect();
        let mut running = Vec::new();
        for (at, &(gpus, ..)) in nodes.iter().enumerate() {
            let mut free: u8 = gpus - random.random_range(0..=2);
            while free > 0 && running.len() < 9 {
                let gpus = random.random_range(1..=free.min(3));
                free -= gpus;
                running.push((gpus, 0, random.random_range(0..8) == 0, at));
            }
        }
        let job = (random.random_range(1..=3), random.random_range(2..=3), 1);
        Self { nodes, running, job, within: false, gang: None }
    }

    fn check_other_costs(&self) {
        let (cluster, job) = self.cluster();
        let mut options = options(&cluster, Mode::StopFirst);
        options.cost = Cost::Gpus;
        let by_gpus = plan(&cluster, Goal::Job(job), &options);
        let truth = self.least_gpus();
        assert!(by_gpus.optimal && by_gpus.feasible == Some(truth.is_some()), "{self:?}");
        if let Some((gpus, moves)) = truth {
            verifier::check(&cluster, Goal::Job(job), Mode::StopFirst, &options.movable, &by_gpus);
            assert_eq!((by_gpus.cost, by_gpus.moved_gpus(), by_gpus.steps.len()), (gpus, gpus, moves), "{self:?}");
        }
        // Every running job here has one instance, so that jobs are moves.
        options.cost = Cost::Jobs;
        let by_jobs = plan(&cluster, Goal::Job(job), &options);
        assert!(by_jobs.optimal, "{self:?}");
        let jobs = by_jobs.feasible.unwrap().then_some(by_jobs.cost as usize);
        assert_eq!(jobs, self.stop_first(), "{self:?}");
        self.check_limits(&cluster, job, jobs);
    }

    /// Whatever is to be the least, there is a plan within a limit where there is one, and none is said to be only where there
    /// is none.
    fn check_limits(&self, cluster: &Cluster, job: JobId, fewest: Option<usize>) {
        let free = options(cluster, Mode::StopFirst);
        for cost in [Cost::Moves, Cost::Gpus, Cost::Jobs] {
            for most in 0..3 {
                let moves = PlanOptions { cost, max_moves: Some(most), ..free.clone() };
                let jobs = PlanOptions { cost, max_jobs_disturbed: Some(most), ..free.clone() };
                for options in [moves, jobs] {
                    let plan = plan(cluster, Goal::Job(job), &options);
                    let truth = fewest.is_some_and(|fewest| fewest as u64 <= most);
                    assert_eq!(plan.feasible, Some(truth), "{options:?} {self:?}");
                    assert!(plan.steps.len() as u64 <= most, "{options:?} {self:?}");
                    if truth {
                        verifier::check(cluster, Goal::Job(job), Mode::StopFirst, &options.movable, &plan);
                    }
                }
            }
        }
    }

    fn check_least_partial(&self) {
        let (cluster, _) = self.cluster();
        let options = options(&cluster, Mode::StopFirst);
        let plan = plan(&cluster, Goal::LeastPartial, &options);
        verifier::check(&cluster, Goal::LeastPartial, Mode::StopFirst, &options.movable, &plan);
        assert!(plan.optimal && plan.feasible == Some(true), "{self:?}");
        let after = plan.after.as_ref().expect("there is a plan");
        let partial = after.nodes().iter().filter(|node| node.free_gpus() > 0 && node.free_gpus() < node.capacity());
        let truth = self.least_partial();
        let best = truth.iter().zip(0..).min().expect("moving nothing is a plan");
        assert_eq!((&partial.count(), plan.steps.len()), best, "{self:?}");
        let curve = curve(&cluster, &plan, &options);
        assert_eq!(curve.points.len(), plan.steps.len() + 1);
        let mut least = usize::MAX;
        for (point, (moves, &partial)) in curve.points.iter().zip(truth.iter().enumerate()) {
            least = least.min(partial);
            assert_eq!((point.moves, point.partial, point.proved), (moves as u64, least as u64, true), "{self:?}");
        }
        self.check_hitless_curve(&cluster, &truth);
    }

    /// An order of moves does no more than the moves at once, and what is proved of it cannot be had with fewer.
    fn check_hitless_curve(&self, cluster: &Cluster, at_once: &[usize]) {
        let options = options(cluster, Mode::Hitless);
        let plan = plan(cluster, Goal::LeastPartial, &options);
        let curve = curve(cluster, &plan, &options);
        let mut least = usize::MAX;
        for (moves, point) in curve.points.iter().enumerate() {
            // An instance may move twice, so that there may be more moves than instances.
            least = least.min(at_once.get(moves).copied().unwrap_or(usize::MAX));
            assert!(point.moves == moves as u64 && point.partial >= least as u64, "{self:?}");
        }
        assert!(curve.points[0].proved && curve.points.is_sorted_by(|a, b| a.partial >= b.partial), "{self:?}");
    }

    fn check(&self) {
        let (cluster, job) = self.cluster();
        for mode in Mode::ALL {
            let options = options(&cluster, mode);
            let plan = plan(&cluster, Goal::Job(job), &options);
            let truth = if mode == Mode::StopFirst { self.stop_first() } else { self.hitless() };
            let found = plan.feasible.map(|feasible| feasible.then_some(plan.steps.len()));
            assert_eq!(found, Some(truth), "{} {self:?}", mode.name());
            assert!(plan.optimal, "not proved: {} {self:?}", mode.name());
            if truth.is_some() {
                verifier::check(&cluster, Goal::Job(job), mode, &options.movable, &plan);
            } else {
                assert!(plan.why.is_some());
            }
        }
    }
}

/// All clusters of so many nodes of 4 GPUs, up to the order of the nodes, with each job of up to 4 GPUs that waits.
fn all_of(nodes: usize, every: usize) -> usize {
    let contents: Vec<Composition> = Composition::all(4).collect();
    let mut chosen = vec![0usize; nodes];
    let (mut at, mut checked) = (0, 0);
    loop {
        let mut running = Vec::new();
        for (node, &content) in chosen.iter().enumerate() {
            for size in (1..=4).rev() {
                running.extend((0..contents[content].count(size)).map(|_| (size, 0, false, node)));
            }
        }
        let free = 4 * nodes - running.iter().map(|running| usize::from(running.0)).sum::<usize>();
        for size in 2..=4u8 {
            for instances in 1..=nodes as u32 {
                at += 1;
                if usize::from(size) * instances as usize > free + 1 || at % every != 0 {
                    continue;
                }
                let mut running = running.clone();
                // Every third has a pin or two.
                if (at / every).is_multiple_of(3) && !running.is_empty() {
                    let n = running.len();
                    running[at % n].2 = true;
                    running[at / 7 % n].2 = true;
                }
                let nodes = vec![(4, None, 0); nodes];
                let world = World { nodes, running, job: (instances, size, 0), within: false, gang: None };
                world.check();
                checked += 1;
            }
        }
        // The next multiset of contents.
        let Some(digit) = (0..nodes).rev().find(|&digit| chosen[digit] + 1 < contents.len()) else { return checked };
        let next = chosen[digit] + 1;
        chosen[digit..].fill(next);
    }
}

fn nightly() -> bool {
    std::env::var_os("SLOTWISE_NIGHTLY").is_some()
}

#[test]
fn all_clusters_of_two_nodes() {
    println!("{} clusters", all_of(2, 1));
}

#[test]
fn all_clusters_of_three_nodes() {
    println!("{} clusters", all_of(3, if nightly() { 1 } else { 5 }));
}

/// A cluster of up to four nodes with limits of CPU or not, racks, and pins.
fn random_world(random: &mut ChaCha8Rng) -> World {
    let n = random.random_range(2..=4usize);
    let with_cpu = random.random_range(0..2) == 0;
    let node = |random: &mut ChaCha8Rng| {
        let gpus = [2, 4, 4, 8][random.random_range(0..4)];
        (gpus, with_cpu.then(|| u32::from(gpus) * 2), random.random_range(0..2))
    };
    let nodes = (0..n).map(|_| node(random)).collect();
    let within = random.random_range(0..4) == 0;
    let mut world = World { nodes, running: Vec::new(), job: (1, 1, 0), within, gang: None };
    for _ in 0..random.random_range(1..=7) {
        let node = random.random_range(0..n);
        let running = (random.random_range(1..=3), random.random_range(0..=4), random.random_range(0..6) == 0, node);
        world.running.push(running);
        let at: Vec<usize> = world.running.iter().map(|running| running.3).collect();
        if world.rooms(&at).is_none() {
            world.running.pop();
        }
    }
    world.job = (random.random_range(1..=2), random.random_range(1..=5), random.random_range(0..=6));
    world
}

#[test]
fn random_clusters_with_cpu_racks_and_pins() {
    let mut random = ChaCha8Rng::seed_from_u64(5);
    for _ in 0..if nightly() { 20_000 } else { 1_500 } {
        random_world(&mut random).check();
    }
}

#[test]
fn fewest_partial_nodes_and_other_costs() {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    for _ in 0..if nightly() { 5_000 } else { 500 } {
        let world = random_world(&mut random);
        world.check_least_partial();
        world.check_other_costs();
    }
}

#[test]
fn gangs_that_must_stay_together_are_bounded_honestly() {
    let mut random = ChaCha8Rng::seed_from_u64(6);
    let (mut proved, mut all) = (0, 0);
    for _ in 0..if nightly() { 20_000 } else { 2_000 } {
        let mut world = random_world(&mut random);
        let n = world.running.len();
        if n < 2 {
            continue;
        }
        let (first, second) = (random.random_range(0..n - 1), n - 1);
        if random.random_range(0..2) == 0 {
            let node = world.running[second].3;
            world.running[second] = (world.running[first].0, world.running[first].1, false, node);
            world.running[first].2 = false;
        }
        let at: Vec<usize> = world.running.iter().map(|running| running.3).collect();
        if world.rooms(&at).is_none() || world.nodes[at[first]].2 != world.nodes[at[second]].2 {
            continue;
        }
        world.gang = Some((first, second));
        let (cluster, job) = world.cluster();
        let options = options(&cluster, Mode::StopFirst);
        let plan = plan(&cluster, Goal::Job(job), &options);
        let truth = world.stop_first().map(|moves| moves as u64);
        all += 1;
        proved += u32::from(plan.optimal);
        assert!(truth.is_none() || plan.lower_bound.is_some_and(|bound| Some(bound) <= truth), "{world:?}");
        match plan.feasible {
            Some(true) => {
                verifier::check(&cluster, Goal::Job(job), Mode::StopFirst, &options.movable, &plan);
                let moves = plan.steps.len() as u64;
                assert!(truth.is_some_and(|truth| moves >= truth && (!plan.optimal || moves == truth)), "{world:?}");
            }
            Some(false) => assert_eq!(truth, None, "{world:?}"),
            None => {}
        }
    }
    println!("{proved} of {all} proved");
    assert!(proved * 100 > all * 97);
}
