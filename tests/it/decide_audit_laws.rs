//! Audits of random clusters: each figure against its plain definition, or against what a policy can do.

use proptest::prelude::*;
use slotwise::anchor::State;
use slotwise::cluster::{Cluster, JobId, JobSpec, NodeId, Request, UNLIMITED, Within};
use slotwise::decide::{Audit, CommitLoop, Policy, Status, Stranded, Why, audit};
use slotwise::fragmentation::phi_star;
use slotwise::workload::{Demand, QueueEntry};

use crate::decide_support::{after, job_plan, node_plan, options, register, steps};

/// What best-fit, which places whatever fits, does with a job alone on a copy of the state.
fn alone(state: &State, job: JobId) -> Status {
    let mut copy = state.clone();
    CommitLoop::new(&mut copy, options(Policy::BestFit)).decide(QueueEntry::Submit(job), 0).status
}

/// Whether so many instances of a size fit, by GPUs alone.
fn fits(state: &State, gpus: u8, instances: u64, within: Option<Within>) -> bool {
    let Ok(instances) = u32::try_from(instances) else { return false };
    if instances == 0 {
        return true;
    }
    let mut cluster = state.cluster().clone();
    let job = cluster.register(&JobSpec { name: "probe", gpus, within, ..JobSpec::default() }, instances).unwrap();
    alone(&State::new(cluster), job) == Status::Placed
}

/// The free GPUs of a node by their causes, in the order of the documentation: cordon, model, CPU, memory, shape, usable.
fn causes(cluster: &Cluster, id: NodeId, asked: &[&Request]) -> [u64; 6] {
    let node = cluster.node(id);
    let free = u64::from(node.free_gpus());
    if !node.schedulable() {
        return [free, 0, 0, 0, 0, 0];
    }
    let allow: Vec<&&Request> = asked.iter().filter(|request| cluster.pool_admits(node.pool(), request)).collect();
    if asked.is_empty() {
        return [0, 0, 0, 0, 0, free];
    }
    if allow.is_empty() {
        return [0, free, 0, 0, 0, 0];
    }
    // The most GPUs, up to `most`, that some request could use if its amount could be divided.
    let enough = |most: u64, amount: u32, each: fn(&Request) -> u32| {
        let can = |gpus: u64| {
            let need =
                |request: &Request| u64::from(each(request)) * gpus <= u64::from(amount) * u64::from(request.gpus);
            amount == UNLIMITED || allow.iter().any(|request| need(request))
        };
        (0..=most).rev().find(|&gpus| can(gpus)).unwrap_or(0)
    };
    let by_cpu = enough(free, node.cpu_free(), |request| request.cpu_milli);
    let by_memory = enough(by_cpu, node.memory_free(), |request| request.memory_mib);
    fn fills(left: u64, sizes: &[u64]) -> bool {
        left == 0 || sizes.iter().any(|&size| size <= left && fills(left - size, sizes))
    }
    let sizes: Vec<u64> = allow.iter().map(|request| u64::from(request.gpus)).collect();
    let usable = (0..=by_memory).rev().find(|&gpus| fills(gpus, &sizes)).unwrap_or(0);
    [0, 0, free - by_cpu, by_cpu - by_memory, by_memory - usable, usable]
}

fn gpus_of(stranded: &Stranded) -> [u64; 6] {
    let Stranded { cordon, model, cpu, memory, shape, usable } = stranded;
    [cordon, model, cpu, memory, shape, usable].map(|part| part.gpus)
}

/// What is stranded of the nodes of a pool, or of all.
fn expected_causes(cluster: &Cluster, waiting: Option<&[JobId]>, pool: Option<usize>) -> [u64; 6] {
    let running = || cluster.job_ids().filter(|&job| cluster.job(job).runs()).collect();
    let jobs: Vec<JobId> = waiting.map_or_else(running, <[JobId]>::to_vec);
    let asked: Vec<&Request> = jobs.iter().map(|&job| cluster.request_of(job)).filter(|asked| asked.gpus > 0).collect();
    let mut sum = [0; 6];
    for id in cluster.node_ids().filter(|&id| pool.is_none_or(|pool| cluster.node(id).pool().index() == pool)) {
        sum.iter_mut().zip(causes(cluster, id, &asked)).for_each(|(sum, n)| *sum += n);
    }
    sum
}

fn check_stranded(cluster: &Cluster, audit: &Audit, waiting: Option<&[JobId]>) {
    let total = gpus_of(&audit.total.stranded);
    assert_eq!(total, expected_causes(cluster, waiting, None));
    assert_eq!(total.iter().sum::<u64>(), audit.total.free_gpus());
    assert_eq!(audit.total.stranded.gpus() + total[5], audit.total.free_gpus());
    for (number, pool) in audit.pools.iter().enumerate() {
        let found = gpus_of(&pool.figures.stranded);
        assert_eq!(found, expected_causes(cluster, waiting, Some(number)));
        assert_eq!(found.iter().sum::<u64>(), pool.figures.free_gpus());
    }
}

fn check_regions(state: &State, audit: &Audit, within: Within) {
    let cluster = state.cluster();
    let regions = if within == Within::Domain { &audit.domains } else { &audit.racks };
    assert_eq!(regions.each.len(), state.regions(within).len());
    let mut intact = 0;
    for (nodes, found) in state.regions(within).iter().zip(&regions.each) {
        let nodes: Vec<_> = nodes.iter().map(|&id| cluster.node(id)).collect();
        let count =
            |is_so: fn(&slotwise::cluster::Node) -> bool| nodes.iter().filter(|node| is_so(node)).count() as u64;
        let sum = |of: fn(&slotwise::cluster::Node) -> u8| nodes.iter().map(|node| u64::from(of(node))).sum::<u64>();
        assert_eq!(found.nodes, nodes.len() as u64);
        assert_eq!((found.gpus, found.free_gpus()), (sum(|node| node.capacity()), sum(|node| node.free_gpus())));
        assert_eq!(found.gpus + found.unavailable_gpus, sum(|node| node.devices()));
        assert_eq!(found.unschedulable, count(|node| !node.schedulable()));
        assert_eq!(found.full, count(|node| node.free_gpus() == 0));
        assert_eq!(found.empty, count(|node| node.free_gpus() > 0 && node.free_gpus() == node.capacity()));
        assert_eq!(found.empty + found.partial + found.full, found.nodes);
        let whole =
            found.gpus > 0 && nodes.iter().all(|node| node.schedulable() && node.free_gpus() == node.capacity());
        assert_eq!(found.intact(), whole);
        intact += u64::from(whole);
        let mut least = 0;
        for pool in 0..cluster.pools().len() {
            let held = nodes.iter().filter(|node| node.pool().index() == pool);
            let sizes = held.flat_map(|node| node.composition().counts().iter().enumerate());
            let demand: Demand = sizes.map(|(gpus, &n)| (gpus as u8, u64::from(n))).collect();
            if demand.gpus() > 0 {
                least += phi_star(cluster.pools()[pool].capacity, &demand).unwrap().partial;
            }
        }
        assert_eq!(found.phi_star, least);
    }
    assert_eq!(regions.intact, intact);
    assert_eq!(regions.max_gang.is_none(), regions.each.is_empty());
    for &(size, n) in regions.max_gang.iter().flatten() {
        assert!(fits(state, size, n, Some(within)), "{n} of {size}");
        assert!(!fits(state, size, n + 1, Some(within)), "{} of {size}", n + 1);
    }
}

/// What compass makes of the cluster by events that need nothing, until nothing moves; `None` where no event takes place.
fn compacted_by_events(state: &State) -> Option<State> {
    let mut state = State::new(state.cluster().clone());
    for event in 0.. {
        let mut cluster = state.into_cluster();
        let nothing = JobSpec { name: &format!("event {event}"), ..JobSpec::default() };
        let job = cluster.register(&nothing, 1).unwrap();
        state = State::new(cluster);
        let decision = CommitLoop::new(&mut state, options(Policy::Compass)).decide(QueueEntry::Submit(job), 0).clone();
        if decision.status != Status::Placed {
            return None;
        }
        if decision.migrations.is_empty() {
            break;
        }
    }
    Some(state)
}

fn check_compaction(state: &State, audit: &Audit) {
    let Some(compact) = compacted_by_events(state) else { return };
    assert_eq!((audit.compaction.partial, audit.compaction.outside), (compact.n_partial(), compact.n_outside()));
    for &(size, n) in &audit.total.max_gang_compacted {
        assert_eq!(n, compact.pools().iter().map(|pool| pool.max_instances(size)).sum::<u64>());
    }
    let before = state.cluster();
    let instances = before.job_ids().filter(|&job| before.job(job).runs()).flat_map(|job| before.instances_of(job));
    let moved: Vec<_> =
        instances.filter(|&one| before.instance(one).node() != compact.cluster().instance(one).node()).collect();
    let gpus = moved.iter().map(|&one| u64::from(before.request_of(before.instance(one).job()).gpus)).sum();
    assert_eq!((audit.compaction.moves, audit.compaction.moved_gpus), (moved.len() as u64, gpus));
}

fn check(state: &mut State, waiting: Option<&[JobId]>) {
    let audit = audit(state, waiting);
    let cluster = state.cluster();
    check_stranded(cluster, &audit, waiting);
    check_compaction(state, &audit);
    check_regions(state, &audit, Within::Domain);
    check_regions(state, &audit, Within::Rack);
    for (free, alike) in audit.total.by_free.iter().enumerate() {
        let here = || cluster.nodes().iter().filter(|node| usize::from(node.free_gpus()) == free);
        assert_eq!(alike.nodes, here().count() as u64);
        assert_eq!(alike.unschedulable, here().filter(|node| !node.schedulable()).count() as u64);
    }
    let compacted = audit.total.max_gang_compacted.iter().zip(&audit.total.max_gang_ideal);
    for (&(size, now), (compacted, ideal)) in audit.total.max_gang.iter().zip(compacted) {
        assert!(fits(state, size, now, None) && !fits(state, size, now + 1, None), "{now} of {size}");
        assert!(compacted <= ideal && now <= ideal.1);
    }
    let Some(pending) = &audit.pending else { return assert!(waiting.is_none()) };
    assert_eq!(pending.jobs(), waiting.map_or(0, <[JobId]>::len) as u64);
    for alike in &pending.alike {
        for &job in &alike.jobs {
            let expected = match alone(state, job) {
                Status::Blocked(why) => Some(why),
                _ => None,
            };
            assert_eq!(alike.why, expected);
        }
    }
    let kinds = [Why::Capacity, Why::Fragmentation, Why::Constraint];
    assert_eq!(pending.startable() + kinds.map(|why| pending.blocked(why)).iter().sum::<u64>(), pending.jobs());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 160, ..ProptestConfig::default() })]

    #[test]
    fn figures_are_what_they_say(
        nodes in prop::collection::vec(node_plan(), 1..7),
        history in steps(3, 0..14),
        waiting in prop::collection::vec(job_plan(4), 0..5),
        known in any::<bool>(),
    ) {
        let mut cluster = after(&nodes, &history).into_cluster();
        let named = waiting.iter().enumerate();
        let jobs: Vec<JobId> = named.map(|(at, plan)| register(&mut cluster, &format!("w{at}"), plan)).collect();
        check(&mut State::new(cluster), known.then_some(&jobs[..]));
    }
}
