//! Plans under disruption budgets against brute force: what is proved is true, and no budget is exceeded.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use slotwise::cluster::{Cluster, ClusterBuilder, DisruptionBudget, JobId, JobSpec, NodeId, NodeSpec, Seat};
use slotwise::plan::{Goal, Mode, Plan, PlanOptions, plan};

use super::{options, verifier};

const NODES: usize = 4;
const GPUS: usize = 4;

/// Running jobs of one instance, GPUs and node of each, and budgets: what they allow and for whom.
#[derive(Debug)]
struct World {
    running: Vec<(usize, usize)>,
    budgets: Vec<(u64, Vec<usize>)>,
}

fn random_world(random: &mut ChaCha8Rng) -> World {
    let mut running = Vec::new();
    for node in 0..NODES {
        let mut free = GPUS;
        while free > 0 && random.random_range(0..3) > 0 {
            let gpus = random.random_range(1..=free.min(3));
            free -= gpus;
            running.push((gpus, node));
        }
    }
    let budget = |random: &mut ChaCha8Rng| {
        let own = (0..running.len()).filter(|_| random.random_range(0..2) == 0).collect();
        (random.random_range(0..3), own)
    };
    let budgets = (0..random.random_range(1..3)).map(|_| budget(random)).collect();
    World { running, budgets }
}

impl World {
    fn cluster(&self) -> Cluster {
        let mut builder = ClusterBuilder::new();
        for at in 0..NODES {
            let name = format!("n{at}");
            builder.add_node(&NodeSpec { name: &name, gpus: GPUS as u8, ..NodeSpec::default() }).unwrap();
        }
        for (at, &(gpus, node)) in self.running.iter().enumerate() {
            let name = format!("run-{at}");
            let spec = JobSpec { name: &name, gpus: gpus as u8, ..JobSpec::default() };
            builder.add_running(&spec, &[Seat { node: NodeId(node as u32), gpus: None }]).unwrap();
        }
        builder.finish().unwrap()
    }

    fn options(&self, cluster: &Cluster, mode: Mode) -> PlanOptions {
        let budget = |(at, (allowed, own)): (usize, &(u64, Vec<usize>))| DisruptionBudget {
            name: format!("b{at}"),
            allowed: *allowed,
            jobs: own.iter().map(|&job| JobId(job as u32)).collect(),
        };
        PlanOptions { budgets: self.budgets.iter().enumerate().map(budget).collect(), ..options(cluster, mode) }
    }

    /// The fewest moves that free so many nodes, all at once, and what the budgets allow.
    fn fewest(&self, free: usize) -> Option<usize> {
        let mut best: Option<usize> = None;
        for code in 0..NODES.pow(self.running.len() as u32) {
            let mut rest = code;
            let at: Vec<usize> = self.running.iter().map(|_| (rest % NODES, rest /= NODES).0).collect();
            let mut busy = [0; NODES];
            self.running.iter().zip(&at).for_each(|(running, &node)| busy[node] += running.0);
            let moved: Vec<usize> = (0..at.len()).filter(|&job| at[job] != self.running[job].1).collect();
            let allowed = |(allowed, own): &(u64, Vec<usize>)| {
                moved.iter().filter(|job| own.contains(job)).count() as u64 <= *allowed
            };
            let fits = busy.iter().all(|&busy| busy <= GPUS);
            if fits && busy.iter().filter(|&&busy| busy == 0).count() >= free && self.budgets.iter().all(allowed) {
                best = Some(best.map_or(moved.len(), |best| best.min(moved.len())));
            }
        }
        best
    }

    fn moved_of(&self, plan: &Plan, budget: usize) -> u64 {
        plan.steps.iter().filter(|step| self.budgets[budget].1.contains(&step.job.index())).count() as u64
    }
}

#[test]
fn no_budget_is_exceeded_and_what_is_proved_is_true() {
    let mut random = ChaCha8Rng::seed_from_u64(8);
    let (mut proved, mut bound, mut all) = (0, 0, 0);
    while all < 300 {
        let world = random_world(&mut random);
        // Brute force looks at 4 to the power of these.
        if world.running.len() > 7 {
            continue;
        }
        let cluster = world.cluster();
        let goal = Goal::FreeNodes(random.random_range(1..3));
        let Goal::FreeNodes(free) = goal else { unreachable!() };
        let options = world.options(&cluster, Mode::StopFirst);
        let found = plan(&cluster, goal, &options);
        let truth = world.fewest(free as usize).map(|moves| moves as u64);
        let without = plan(&cluster, goal, &PlanOptions { budgets: Vec::new(), ..options.clone() });
        all += 1;
        proved += u32::from(found.optimal);
        bound += u32::from(found.steps != without.steps);
        assert!(truth.is_none_or(|truth| found.lower_bound.is_some_and(|bound| bound <= truth)), "{world:?}");
        match found.feasible {
            Some(true) => {
                verifier::check(&cluster, goal, Mode::StopFirst, &options.movable, &found);
                let moves = found.steps.len() as u64;
                assert!(truth.is_some_and(|truth| moves >= truth && (!found.optimal || moves == truth)), "{world:?}");
                for (at, (allowed, _)) in world.budgets.iter().enumerate() {
                    assert!(world.moved_of(&found, at) <= *allowed, "{world:?}");
                }
            }
            Some(false) => assert!(truth.is_none() && found.optimal, "{world:?}"),
            None => assert!(!found.optimal && found.why.is_none()),
        }
        let hitless = plan(&cluster, goal, &world.options(&cluster, Mode::Hitless));
        for (at, (allowed, _)) in world.budgets.iter().enumerate() {
            assert!(*allowed > 0 || world.moved_of(&hitless, at) == 0, "{world:?}");
        }
    }
    println!("{proved} of {all} proved, {bound} other than without budgets");
    assert!(proved * 10 > all * 6 && bound > 0);
}
