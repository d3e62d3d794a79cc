//! Of plans that are as good the one that a backend scores best: never worse, nowhere different, and better where it matters.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use slotwise::anchor::State;
use slotwise::cluster::{Cluster, ClusterBuilder, InstanceId, JobId, JobSpec, NodeId, NodeSpec, Seat};
use slotwise::evaluate::twin::Reference;
use slotwise::evaluate::webgpu::AdapterChoice;
use slotwise::evaluate::{
    Backend, Batch, BatchBuilder, CandidateSet, Cpu, Move, NodeRows, PhiChanges, Place, Scores, WebGpu,
};
use slotwise::plan::{Goal, Mode, Plan, PlanOptions, choose, plan};

use super::{options, verifier};

/// Nodes of 4 and 8 GPUs that hold pinned instances and others, and a job that waits.
fn world(random: &mut ChaCha8Rng) -> (Cluster, JobId) {
    let mut builder = ClusterBuilder::new();
    let mut running = 0;
    for at in 0..random.random_range(4..12) {
        let (name, rack, gpus) = (format!("n{at}"), format!("r{}", at % 3), [4, 8, 8][random.random_range(0..3)]);
        let node = builder.add_node(&NodeSpec { name: &name, gpus, rack: Some(&rack), ..NodeSpec::default() }).unwrap();
        let mut free = gpus;
        while free > 0 && random.random_range(0..5) > 0 {
            let gpus = random.random_range(1..=free.min(4));
            free -= gpus;
            let (name, pinned) = (format!("run-{running}"), random.random_range(0..3) == 0);
            running += 1;
            builder
                .add_running(&JobSpec { name: &name, gpus, pinned, ..JobSpec::default() }, &[Seat { node, gpus: None }])
                .unwrap();
        }
    }
    let mut cluster = builder.finish().unwrap();
    let gpus = random.random_range(2..=8);
    let job =
        cluster.register(&JobSpec { name: "job", gpus, ..JobSpec::default() }, random.random_range(1..3)).unwrap();
    (cluster, job)
}

/// A plan as a candidate placement set.
fn candidate(job: JobId, plan: &Plan) -> CandidateSet {
    let place = plan.place.iter().map(|&(node, gpus)| Place { node, gpus: Some(gpus) });
    let mut moves: Vec<(InstanceId, Move)> = Vec::new();
    for step in &plan.steps {
        let one = Move { instance: step.instance, to: Place { node: step.to, gpus: Some(step.gpus) } };
        moves.retain(|&(instance, _)| instance != step.instance);
        moves.push((step.instance, one));
    }
    CandidateSet { job, place: place.collect(), moves: moves.into_iter().map(|(_, one)| one).collect(), given: None }
}

/// The ranks of two plans, as `score` has them.
fn ranks(cluster: &Cluster, job: JobId, plans: [&Plan; 2]) -> [u32; 2] {
    let sets = plans.map(|plan| candidate(job, plan));
    let mut phi = PhiChanges::new(&State::new(cluster.clone()));
    let mut batch = Batch::default();
    BatchBuilder::new().build(cluster, &sets, &mut |changes| phi.delta(changes), &mut batch).unwrap();
    let (mut backend, mut scores) = (Reference::new(), Scores::default());
    backend.load(&NodeRows::of(cluster).unwrap()).unwrap();
    backend.evaluate(&batch, &mut scores).unwrap();
    scores.ranks(&batch).try_into().unwrap()
}

fn n_sif(cluster: &Cluster) -> i64 {
    let mut state = State::new(cluster.clone());
    state.n_partial() as i64 - state.phi_star() as i64
}

fn chosen(cluster: &Cluster, goal: Goal, mode: Mode, backend: &mut dyn Backend) -> Plan {
    let mut found = plan(cluster, goal, &options(cluster, mode));
    choose(cluster, goal, mode, &mut found, backend).unwrap();
    found
}

#[test]
fn the_choice_is_never_worse_and_costs_no_more() {
    let mut random = ChaCha8Rng::seed_from_u64(4);
    let (mut all, mut several, mut better) = (0, 0, 0);
    while all < 500 {
        let (cluster, job) = world(&mut random);
        let (goal, mode) = (Goal::Job(job), Mode::ALL[random.random_range(0..2)]);
        let options = options(&cluster, mode);
        let plain = plan(&cluster, goal, &PlanOptions { ways: false, ..options.clone() });
        let best = chosen(&cluster, goal, mode, &mut Cpu::new(1).unwrap());
        assert_eq!((plain.feasible, plain.lower_bound, &plain.why), (best.feasible, best.lower_bound, &best.why));
        if plain.feasible != Some(true) {
            assert_eq!(best.choice, None);
            continue;
        }
        all += 1;
        verifier::check(&cluster, goal, mode, &options.movable, &best);
        assert_eq!((plain.cost, plain.moved_gpus(), plain.optimal), (best.cost, best.moved_gpus(), best.optimal));
        assert!(best.jobs_disturbed() <= plain.jobs_disturbed());
        let [before, after] = ranks(&cluster, job, [&plain, &best]);
        // Equals rank by their order, so that the plain one is first.
        let same = plain.steps == best.steps && plain.place == best.place;
        assert!(after < before || same, "{before} {after}");
        let choice = best.choice.unwrap();
        assert!(choice.chosen < choice.candidates && choice.candidates >= 1);
        let after = best.after.as_ref().unwrap();
        assert_eq!(choice.score.unwrap().delta_sif_nodes, n_sif(after) - n_sif(&cluster));
        (several, better) = (several + u32::from(choice.candidates > 1), better + u32::from(!same));
    }
    println!("{several} of {all} plans had others as good, {better} were better by score");
    assert!(several * 4 > all && better > 0);
}

#[test]
fn every_backend_chooses_the_same() {
    let mut backends: Vec<Box<dyn Backend>> =
        vec![Box::new(Reference::new()), Box::new(Cpu::new(1).unwrap()), Box::new(Cpu::new(3).unwrap())];
    match WebGpu::open(AdapterChoice::Any) {
        Ok(gpu) => backends.push(Box::new(gpu)),
        Err(error) => println!("without wgpu: {error}"),
    }
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let mut all = 0;
    while all < 12 {
        let (cluster, job) = world(&mut random);
        for (goal, mode) in [
            (Goal::Job(job), Mode::Hitless),
            (Goal::FreeNodes(2), Mode::StopFirst),
            (Goal::LeastPartial, Mode::StopFirst),
        ] {
            let plans: Vec<Plan> =
                backends.iter_mut().map(|backend| chosen(&cluster, goal, mode, backend.as_mut())).collect();
            for other in &plans {
                assert_eq!((&other.steps, &other.place), (&plans[0].steps, &plans[0].place));
                assert_eq!(other.choice, plans[0].choice);
            }
            if let Some(score) = plans[0].choice.and_then(|choice| choice.score) {
                let after = plans[0].after.as_ref().unwrap();
                assert_eq!(score.delta_sif_nodes, n_sif(after) - n_sif(&cluster), "{goal:?}");
                all += u32::from(plans[0].choice.is_some_and(|choice| choice.candidates > 1));
            }
        }
    }
}

/// Two nodes are alike to the program: 1 GPU leaves either, and 5 come. What is pinned there differs, and so whether the node is
/// in Σ then.
#[test]
fn a_plan_that_leaves_a_node_in_space_is_taken() {
    let mut builder = ClusterBuilder::new();
    for (name, gpus) in [("first", 8), ("second", 8), ("third", 1)] {
        builder.add_node(&NodeSpec { name, gpus, ..NodeSpec::default() }).unwrap();
    }
    for (at, (node, gpus, pinned)) in
        [(0, 3, true), (0, 1, false), (1, 1, true), (1, 1, true), (1, 1, true), (1, 1, false)].into_iter().enumerate()
    {
        let name = format!("run-{at}");
        let spec = JobSpec { name: &name, gpus, pinned, ..JobSpec::default() };
        builder.add_running(&spec, &[Seat { node: NodeId(node), gpus: None }]).unwrap();
    }
    let mut cluster = builder.finish().unwrap();
    let job = cluster.register(&JobSpec { name: "job", gpus: 5, ..JobSpec::default() }, 1).unwrap();
    let goal = Goal::Job(job);
    for mode in Mode::ALL {
        let options = options(&cluster, mode);
        let plain = plan(&cluster, goal, &PlanOptions { ways: false, ..options.clone() });
        let best = chosen(&cluster, goal, mode, &mut Cpu::new(1).unwrap());
        let left = |plan: &Plan| State::new(plan.after.clone().unwrap()).n_outside();
        assert_eq!((plain.steps.len(), best.steps.len()), (1, 1));
        // 3 and 5 GPUs are two anchors whose slots overflow the node; beside 1-GPU instances the 5 have a slot.
        assert_eq!((left(&plain), left(&best)), (1, 0));
        assert_eq!(best.choice.unwrap().score.unwrap().left_abs, 0);
        verifier::check(&cluster, goal, mode, &options.movable, &best);
    }
}

/// What moves may go to an empty node or to one that is partial anyway: both have as much room.
#[test]
fn a_plan_that_opens_no_node_is_taken() {
    let mut builder = ClusterBuilder::new();
    for (name, gpus) in [("empty", 4), ("half", 8), ("full", 8)] {
        builder.add_node(&NodeSpec { name, gpus, ..NodeSpec::default() }).unwrap();
    }
    for (name, node, gpus, pinned) in [("stays", 1, 4, true), ("moves", 2, 2, false)] {
        let spec = JobSpec { name, gpus, pinned, ..JobSpec::default() };
        builder.add_running(&spec, &[Seat { node: NodeId(node), gpus: None }]).unwrap();
    }
    let mut cluster = builder.finish().unwrap();
    let job = cluster.register(&JobSpec { name: "job", gpus: 8, ..JobSpec::default() }, 1).unwrap();
    let goal = Goal::Job(job);
    for mode in Mode::ALL {
        let plain = plan(&cluster, goal, &PlanOptions { ways: false, ..options(&cluster, mode) });
        let best = chosen(&cluster, goal, mode, &mut Reference::new());
        assert_eq!((plain.steps[0].to, best.steps[0].to), (NodeId(0), NodeId(1)));
        // N·SIF is the same, as the two are of different pools; fewer empty nodes opened comes later in the order.
        let empty = |plan: &Plan| plan.after.as_ref().unwrap().nodes().iter().filter(|node| node.busy() == 0).count();
        assert_eq!((empty(&plain), empty(&best)), (0, 1));
        assert_eq!(n_sif(plain.after.as_ref().unwrap()), n_sif(best.after.as_ref().unwrap()));
    }
}
