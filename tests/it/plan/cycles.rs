//! Hitless plans where what is best with all movers stopped has cycles: an order, a detour or a proof that there is none.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use slotwise::cluster::{Cluster, ClusterBuilder, JobId, JobSpec, NodeId, NodeSpec, Seat};
use slotwise::plan::{Goal, Mode, NoOrder, NoPlan, Plan, plan};

use super::brute::World;
use super::{options, verifier};

/// Nodes of 8 GPUs, filled at random to 95 %, and a job for so much of what is free.
fn scattered(n: u32, sizes: &[u8], gpus: u8, percent: u32, seed: u64) -> (Cluster, JobId) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut builder = ClusterBuilder::new();
    for at in 0..n {
        builder.add_node(&NodeSpec { name: &format!("n{at}"), gpus: 8, ..NodeSpec::default() }).unwrap();
    }
    let mut free = vec![8u8; n as usize];
    let (mut busy, mut running, mut misses) = (0, 0, 0);
    while busy * 100 < n * 8 * 95 && misses < 100_000 {
        let (gpus, node) = (sizes[random.random_range(0..sizes.len())], random.random_range(0..n));
        if free[node as usize] < gpus {
            misses += 1;
            continue;
        }
        free[node as usize] -= gpus;
        busy += u32::from(gpus);
        let name = format!("run-{running}");
        running += 1;
        let spec = JobSpec { name: &name, gpus, ..JobSpec::default() };
        builder.add_running(&spec, &[Seat { node: NodeId(node), gpus: None }]).unwrap();
    }
    let mut cluster = builder.finish().unwrap();
    let instances = ((n * 8 - busy) / u32::from(gpus) * percent / 100).max(1);
    let job = cluster.register(&JobSpec { name: "job", gpus, ..JobSpec::default() }, instances).unwrap();
    (cluster, job)
}

/// A hitless plan that is verified step by step, and the plan with all movers stopped.
fn both(cluster: &Cluster, goal: Goal) -> (Plan, Plan) {
    let plans = [Mode::Hitless, Mode::StopFirst].map(|mode| {
        let options = options(cluster, mode);
        let found = plan(cluster, goal, &options);
        if found.feasible == Some(true) {
            verifier::check(cluster, goal, mode, &options.movable, &found);
        }
        found
    });
    let [hitless, stop_first] = plans;
    // What has an order can be done at once; what cannot be done at once has none.
    let (few, many) = (stop_first.steps.len(), hitless.steps.len());
    assert!(hitless.feasible != Some(true) || stop_first.feasible == Some(true) && many >= few);
    assert!(stop_first.feasible != Some(false) || hitless.feasible == Some(false));
    assert!(hitless.lower_bound.is_none_or(|bound| stop_first.lower_bound.is_some_and(|below| below <= bound)));
    assert_eq!(hitless.why == Some(NoPlan::HitlessOrder), hitless.no_order.is_some());
    (hitless, stop_first)
}

#[test]
fn full_clusters_of_any_size() {
    let (mut all, mut optimal, mut none, mut unknown, mut worst) = (0, 0, 0, 0, 1.0f64);
    for n in [50, 200, 1_000, 5_000] {
        for (sizes, seed) in [&[1, 1, 2, 2, 3, 4, 5][..], &[3, 4, 5], &[2, 3, 5, 6], &[1, 3, 6]].into_iter().zip(1..) {
            for (gpus, percent) in [(8, 100), (8, 60), (2, 100), (3, 100), (4, 100)] {
                let (cluster, job) = scattered(n, sizes, gpus, percent, seed);
                let (hitless, stop_first) = both(&cluster, Goal::Job(job));
                if stop_first.feasible != Some(true) {
                    continue;
                }
                all += 1;
                match hitless.feasible {
                    Some(true) => {
                        optimal += u32::from(hitless.optimal);
                        worst = worst.max(hitless.steps.len() as f64 / hitless.lower_bound.unwrap().max(1) as f64);
                    }
                    Some(false) => none += 1,
                    None => unknown += 1,
                }
            }
        }
    }
    println!(
        "{all} with a plan: {optimal} optimal in order, {none} proved to have no order, {unknown} unknown, at most {worst} times the bound"
    );
    assert!(all > 30 && none > 0 && unknown == 0 && optimal + none >= all - 1 && worst < 1.02);
}

/// Pairs of nodes that have to swap an instance of 2 and one of 3 for a guest of 2 to fit, and perhaps a node with 2 GPUs free.
/// CPU allows one guest a node, so that all places are needed in the end.
fn swaps(pairs: u32, spare: bool) -> (Cluster, JobId) {
    let mut builder = ClusterBuilder::new();
    let mut node = |name: String| {
        let spec = NodeSpec { name: &name, gpus: 8, cpu_milli: Some(1_000), ..NodeSpec::default() };
        builder.add_node(&spec).unwrap()
    };
    let mut seats: Vec<(NodeId, u8)> = Vec::new();
    for pair in 0..pairs {
        let (a, b) = (node(format!("a{pair}")), node(format!("b{pair}")));
        seats.extend([(a, 5), (a, 2), (b, 4), (b, 3)]);
    }
    if spare {
        seats.push((node("spare".to_owned()), 6));
    }
    for (at, &(node, gpus)) in seats.iter().enumerate() {
        let name = format!("run-{at}");
        let spec = JobSpec { name: &name, gpus, ..JobSpec::default() };
        builder.add_running(&spec, &[Seat { node, gpus: None }]).unwrap();
    }
    let mut cluster = builder.finish().unwrap();
    let spec = JobSpec { name: "job", gpus: 2, cpu_milli: 1_000, ..JobSpec::default() };
    let job = cluster.register(&spec, pairs + u32::from(spare)).unwrap();
    (cluster, job)
}

#[test]
fn a_swap_without_a_spare_place_is_proved_to_be_none() {
    for pairs in [1, 3, 60] {
        let (cluster, job) = swaps(pairs, false);
        let (hitless, stop_first) = both(&cluster, Goal::Job(job));
        assert_eq!(stop_first.steps.len() as u32, 2 * pairs);
        assert_eq!((hitless.feasible, hitless.why), (Some(false), Some(NoPlan::HitlessOrder)));
        let movers = u64::from(4 * pairs);
        assert_eq!(hitless.no_order, Some(NoOrder::Stuck { stuck: movers, movers }));
    }
}

#[test]
fn a_swap_takes_a_detour_through_a_spare_place() {
    for pairs in [1, 2, 40, 400] {
        let (cluster, job) = swaps(pairs, true);
        let (hitless, stop_first) = both(&cluster, Goal::Job(job));
        assert_eq!(stop_first.steps.len() as u32, 2 * pairs);
        // The place on the spare node is needed in the end, so that one instance must go there and leave again.
        assert_eq!((hitless.feasible, hitless.steps.len() as u32), (Some(true), 2 * pairs + 1), "{pairs}");
        assert!(hitless.lower_bound >= Some(u64::from(2 * pairs)));
        assert_eq!(hitless.optimal, hitless.lower_bound == Some(u64::from(2 * pairs + 1)));
    }
}

#[test]
fn few_partial_nodes_in_an_order() {
    let (mut all, mut as_few) = (0, 0);
    for (n, seed) in [(50, 1), (200, 2), (1_000, 3)] {
        for sizes in [&[1, 1, 2, 2, 3, 4, 5][..], &[2, 3, 5, 6]] {
            let (cluster, _) = scattered(n, sizes, 8, 100, seed);
            let (hitless, stop_first) = both(&cluster, Goal::LeastPartial);
            assert_eq!((hitless.feasible, stop_first.feasible), (Some(true), Some(true)));
            let partial = |plan: &Plan| {
                let nodes = plan.after.as_ref().unwrap().nodes().iter();
                nodes.filter(|node| node.free_gpus() > 0 && node.free_gpus() < node.capacity()).count()
            };
            all += 1;
            as_few += u32::from(partial(&hitless) == partial(&stop_first));
            assert!(partial(&hitless) >= partial(&stop_first));
        }
    }
    println!("{as_few} of {all} with as few partial nodes as at once");
    assert!(as_few * 2 > all);
}

/// Small clusters beside so many nodes of another kind that no search looks at all states.
#[test]
fn what_is_found_without_a_search_is_often_best_and_never_claimed_wrongly() {
    let mut random = ChaCha8Rng::seed_from_u64(9);
    let (mut all, mut longer, mut best, mut proved, mut none, mut proved_none, mut missed, mut most) =
        (0, 0, 0, 0, 0, 0, 0, 1.0f64);
    while all + none < 400 {
        let world = World::crowded(&mut random);
        let Some(at_once) = world.stop_first().filter(|&moves| moves > 0) else { continue };
        let truth = world.hitless();
        // Those are of interest that have no order as they stand; of the others a few.
        let detours = truth != Some(at_once);
        if !detours && random.random_range(0..20) > 0 {
            continue;
        }
        let (cluster, job) = world.cluster_beside(66);
        let (hitless, _) = both(&cluster, Goal::Job(job));
        let Some(truth) = truth else {
            none += 1;
            proved_none += u32::from(hitless.feasible == Some(false));
            assert!(hitless.feasible != Some(true), "{world:?}");
            continue;
        };
        all += 1;
        longer += u32::from(detours);
        assert!(hitless.feasible != Some(false), "{world:?}");
        assert!(hitless.lower_bound.is_some_and(|bound| bound <= truth as u64), "{world:?}");
        if hitless.feasible.is_none() {
            missed += 1;
            continue;
        }
        let moves = hitless.steps.len();
        assert!(moves >= truth && (!hitless.optimal || moves == truth), "{world:?}");
        (best, proved) = (best + u32::from(moves == truth), proved + u32::from(hitless.optimal));
        most = most.max(moves as f64 / truth as f64);
    }
    println!(
        "{all} with an order, {longer} of them longer than at once: {best} best, {proved} proved, {missed} not found, at most {most} times the best; {none} without: \
         {proved_none} proved"
    );
    assert!(best * 10 >= all * 8 && missed * 20 <= all && most <= 2.0 && proved_none * 2 > none);
}
