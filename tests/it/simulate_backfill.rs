//! EASY backfill: with shares of a GPU nothing that overtakes the head keeps it from what it is promised.

use std::collections::BTreeMap;

use proptest::prelude::*;
use slotwise::cluster::{Cluster, JobId, NodeId, gpu_indices};
use slotwise::simulate::{Discipline, Interval, Observer, Scenario, SimOptions, Stand, simulate_observed};
use slotwise::workload::TraceJob;

use crate::simulate::{job, scheduler};

fn share(submit_s: u64, duration_s: u64, instances: u32, gpu_milli: u16) -> TraceJob {
    TraceJob { gpu_milli, ..job(submit_s, duration_s, instances, 1) }
}

fn scenario(nodes: u64, gpus: u8, jobs: &[TraceJob]) -> Scenario {
    let named = jobs.iter().enumerate().map(|(i, job)| TraceJob { name: format!("j{i}"), ..job.clone() });
    Scenario::homogeneous(nodes, gpus, named.collect()).unwrap()
}

fn starts(nodes: u64, gpus: u8, jobs: &[TraceJob], discipline: Discipline) -> Vec<u64> {
    let options = SimOptions { discipline, ..SimOptions::default() };
    let scenario = scenario(nodes, gpus, jobs);
    let outcome = simulate_observed(&scenario, scheduler("best-fit"), &options, &mut Silent).unwrap();
    outcome.jobs.iter().map(|job| job.start().unwrap()).collect()
}

struct Silent;

impl Observer for Silent {
    fn interval(&mut self, _: &Interval, _: Stand<'_>) {}
}

#[test]
fn a_share_beside_others_keeps_no_whole_gpu_from_the_head() {
    // Two shares end at 10 and at 20, and are on one device: the head is promised it for 20, not for 10. A share of 30 s
    // would hold the device until 33, one of 17 s is gone by then.
    let jobs =
        [share(0, 10, 1, 400), share(0, 20, 1, 400), job(2, 5, 1, 1), share(3, 30, 1, 200), share(3, 17, 1, 200)];
    assert_eq!(starts(1, 1, &jobs, Discipline::Easy), [0, 0, 20, 25, 3]);
    assert_eq!(starts(1, 1, &jobs, Discipline::Fifo), [0, 0, 20, 25, 25]);
}

#[test]
fn what_the_head_leaves_over_is_counted_in_devices() {
    // Both devices are free at 10, and the head takes one of them: one share may lie on the other for long. A second one
    // would lie beside it, but where it will lie is not known before.
    let jobs =
        [share(0, 10, 5, 200), share(0, 10, 3, 200), job(2, 5, 1, 1), share(3, 90, 1, 200), share(3, 90, 1, 100)];
    assert_eq!(starts(1, 2, &jobs, Discipline::Easy), [0, 0, 10, 3, 10]);
}

#[test]
fn a_head_of_shares_is_promised_rests() {
    let jobs = |head, behind| {
        let other = job(0, 30, 1, 1);
        [share(0, 20, 1, 600), share(0, 30, 1, 300), other, share(2, 9, 1, head), behind, share(3, 17, 1, 100)]
    };
    // At 20 there are 700 thousandths of one device, room for one of 400: whoever stays longer waits for the head.
    let behind = share(3, 90, 1, 100);
    assert_eq!(starts(1, 2, &jobs(400, behind.clone()), Discipline::Easy), [0, 0, 0, 20, 20, 3]);
    // There is room for two of 300, and a share of 100 spoils one of them at most. It takes the rest that there is.
    assert_eq!(starts(1, 2, &jobs(300, behind), Discipline::Easy), [0, 0, 0, 20, 3, 20]);
    // A whole GPU would spoil three, if there were one.
    assert_eq!(starts(1, 2, &jobs(300, job(3, 90, 1, 1)), Discipline::Easy), [0, 0, 0, 20, 30, 3]);
}

/// What was promised to each head: the earliest time at which it could start if nobody else did any more.
struct Promises<'a> {
    scenario: &'a Scenario,
    starts: Vec<u64>,
    promised: BTreeMap<usize, u64>,
}

impl Observer for Promises<'_> {
    fn interval(&mut self, interval: &Interval, stand: Stand<'_>) {
        let jobs = self.scenario.jobs();
        let waits = |&at: &usize| jobs[at].submit_s <= interval.from && self.starts[at] > interval.from;
        let Some(head) = (0..jobs.len()).find(waits) else { return };
        // Without those that have just overtaken it.
        let just = |at: usize| at > head && self.starts[at] == interval.from;
        let finish = |at: usize| self.starts[at] + jobs[at].duration_s;
        let at = earliest(self.scenario, stand.cluster.unwrap(), head, interval.from, &just, &finish);
        let promised = self.promised.entry(head).or_insert(at);
        *promised = at.min(*promised);
    }
}

fn earliest(
    scenario: &Scenario,
    cluster: &Cluster,
    head: usize,
    now: u64,
    left_out: &dyn Fn(usize) -> bool,
    finish: &dyn Fn(usize) -> u64,
) -> u64 {
    let jobs = scenario.jobs();
    let mut left: BTreeMap<(NodeId, u8), u16> = cluster.node_ids().map(|node| ((node, 0), TraceJob::WHOLE)).collect();
    let mut running: Vec<(u64, JobId)> = Vec::new();
    for at in (0..jobs.len()).filter(|&at| !left_out(at) && cluster.job(scenario.job_id(at)).runs()) {
        running.push((finish(at), scenario.job_id(at)));
    }
    let each = |job: JobId, change: &mut dyn FnMut(&mut u16, u16), left: &mut BTreeMap<(NodeId, u8), u16>| {
        for instance in cluster.instances_of(job).map(|instance| cluster.instance(instance)) {
            for gpu in gpu_indices(instance.gpus()) {
                change(left.get_mut(&(instance.node().unwrap(), gpu)).unwrap(), cluster.request_of(job).gpu_milli);
            }
        }
    };
    for &(_, job) in &running {
        each(job, &mut |left, milli| *left -= milli, &mut left);
    }
    running.sort_unstable();
    let fits = |left: &BTreeMap<(NodeId, u8), u16>| {
        left.values().map(|left| u32::from(left / jobs[head].gpu_milli)).sum::<u32>() >= jobs[head].instances
    };
    let mut time = now;
    for (finish, job) in running {
        if fits(&left) && finish > time {
            break;
        }
        time = finish;
        each(job, &mut |left, milli| *left += milli, &mut left);
    }
    assert!(fits(&left));
    time
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// On nodes of one GPU, where nothing but the devices is in the way, the promise can be kept, and is.
    #[test]
    fn no_head_starts_later_than_it_was_promised(
        jobs in prop::collection::vec(
            (0u64..60, 1u64..40, 1u32..4, prop_oneof![1 => Just(TraceJob::WHOLE), 2 => 1..TraceJob::WHOLE, 1 => Just(250)]),
            1..50,
        ),
        nodes in 3u64..6,
        policy in prop::sample::select(&["best-fit", "worst-fit", "first-fit", "random", "gpu-packing"][..]),
    ) {
        let mut jobs: Vec<TraceJob> = jobs.into_iter().map(|(at, s, n, milli)| share(at, s, n, milli)).collect();
        jobs.sort_by_key(|job| job.submit_s);
        let scenario = scenario(nodes, 1, &jobs);
        let options = SimOptions { discipline: Discipline::Easy, move_cost_s: 0, seed: 3 };
        let who = scheduler(policy);
        let outcome = simulate_observed(&scenario, who, &options, &mut Silent).unwrap();
        let starts: Vec<u64> = outcome.jobs.iter().map(|job| job.start().unwrap()).collect();
        let mut seen = Promises { scenario: &scenario, starts: starts.clone(), promised: BTreeMap::new() };
        simulate_observed(&scenario, who, &options, &mut seen).unwrap();
        for (&head, &promised) in &seen.promised {
            prop_assert!(starts[head] <= promised, "job {} starts at {}, promised {}", head, starts[head], promised);
        }
    }
}
