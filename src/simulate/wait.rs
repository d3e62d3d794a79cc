//! How long a job would wait if nothing were moved: what moves can save.

use crate::cluster::{Cluster, JobId, Node, NodeId, UNLIMITED, Within};

/// What a node has free for instances of a job.
#[derive(Clone, Copy)]
struct Free {
    gpus: u32,
    cpu_milli: u64,
    memory_mib: u64,
}

/// The time until departures alone let a job start, were nothing else started: never longer than it would be, since each
/// share that leaves counts as the last on its device. `None` if they never do. `departures` are the running jobs that finish at all, soonest first.
///
/// O(nodes), and O(instances) of those that leave before.
pub(super) fn wait_without_moves(
    cluster: &Cluster,
    job: JobId,
    now: u64,
    departures: impl Iterator<Item = (u64, JobId)>,
) -> Option<u64> {
    let request = cluster.request_of(job);
    let wanted = u64::from(cluster.job(job).instances());
    let region = |node: NodeId| match request.within {
        None => Some(0),
        Some(within) => cluster.node(node).region(within).map(|region| region as usize),
    };
    let regions = match request.within {
        None => 1,
        Some(Within::Domain) => cluster.n_domains(),
        Some(Within::Rack) => cluster.n_racks(),
    };
    let times = |free: u64, each: u64| free.checked_div(each).unwrap_or(u64::MAX);
    let fit = |free: Free| {
        let by_gpus = times(free.gpus.into(), request.gpus.into());
        let by_cpu = times(free.cpu_milli, request.cpu_milli.into());
        by_gpus.min(by_cpu).min(times(free.memory_mib, request.memory_mib.into())).min(wanted)
    };
    let amount = |all: u32, used: u64| if all == UNLIMITED { u64::MAX } else { u64::from(all).saturating_sub(used) };
    let of_node = |node: &Node| Free {
        gpus: node.free_gpus().into(),
        cpu_milli: amount(node.cpu_milli(), node.cpu_used()),
        memory_mib: amount(node.memory_mib(), node.memory_used()),
    };
    let mut free: Vec<Free> = cluster.nodes().iter().map(of_node).collect();
    let mut fits = vec![0; regions];
    let hosts = |node: NodeId| region(node).filter(|_| cluster.admits(node, request));
    for node in cluster.node_ids() {
        if let Some(region) = hosts(node) {
            fits[region] += fit(free[node.index()]);
        }
    }
    if fits.iter().any(|&fits| fits >= wanted) {
        return Some(0);
    }
    let mut enough_at = None;
    for (finish, leaving) in departures {
        if enough_at.is_some_and(|at| finish > at) {
            break;
        }
        let left = cluster.request_of(leaving);
        for instance in cluster.instances_of(leaving) {
            let held = cluster.instance(instance);
            let Some(node) = held.node() else { continue };
            let Some(region) = hosts(node) else { continue };
            let free = &mut free[node.index()];
            let before = fit(*free);
            free.gpus = (free.gpus + held.gpus().count_ones()).min(u32::from(cluster.node(node).capacity()));
            free.cpu_milli = free.cpu_milli.saturating_add(left.cpu_milli.into());
            free.memory_mib = free.memory_mib.saturating_add(left.memory_mib.into());
            fits[region] += fit(*free) - before;
            if fits[region] >= wanted {
                enough_at = Some(finish);
            }
        }
    }
    enough_at.map(|at| at.saturating_sub(now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{ClusterBuilder, JobSpec, NodeSpec, Seat};

    #[test]
    fn departures_are_waited_for_until_the_holes_are_large_enough() {
        let mut builder = ClusterBuilder::new();
        let mut nodes = Vec::new();
        for (name, rack) in [("n0", "r0"), ("n1", "r0"), ("n2", "r1")] {
            nodes.push(builder.add_node(&NodeSpec { name, gpus: 8, rack: Some(rack), ..NodeSpec::default() }).unwrap());
        }
        let mut run = |name: &str, gpus: u8, node: usize| {
            let seat = Seat { node: nodes[node], gpus: None };
            builder.add_running(&JobSpec { name, gpus, ..JobSpec::default() }, &[seat]).unwrap();
        };
        run("a", 4, 0);
        run("b", 2, 0);
        run("c", 6, 1);
        run("d", 6, 2);
        let mut cluster = builder.finish().unwrap();
        let mut wait = |gpus: u8, instances: u32, within: Option<Within>| {
            let name = format!("w{gpus}-{instances}-{within:?}");
            let job =
                cluster.register(&JobSpec { name: &name, gpus, within, ..JobSpec::default() }, instances).unwrap();
            let leave = |name, at| (at, cluster.find_job(name).unwrap());
            let departures = [leave("b", 20), leave("a", 20), leave("d", 30), leave("c", 40)];
            wait_without_moves(&cluster, job, 10, departures.into_iter())
        };
        assert_eq!(wait(2, 3, None), Some(0));
        assert_eq!(wait(4, 1, None), Some(10));
        assert_eq!(wait(8, 1, None), Some(10));
        assert_eq!(wait(8, 2, None), Some(20));
        assert_eq!(wait(8, 2, Some(Within::Rack)), Some(30));
        assert_eq!(wait(8, 3, Some(Within::Rack)), None);
        assert_eq!(wait(8, 4, None), None);
    }

    #[test]
    fn cpu_and_memory_are_waited_for_too() {
        for memory in [false, true] {
            let mut builder = ClusterBuilder::new();
            let (cpu_milli, memory_mib) = if memory { (None, Some(8)) } else { (Some(8), None) };
            let spec = NodeSpec { name: "n", gpus: 8, cpu_milli, memory_mib, ..NodeSpec::default() };
            let seat = Seat { node: builder.add_node(&spec).unwrap(), gpus: None };
            let asks = |name, amount| JobSpec {
                name,
                gpus: 1,
                cpu_milli: if memory { 0 } else { amount },
                memory_mib: if memory { amount } else { 0 },
                ..JobSpec::default()
            };
            let a = builder.add_running(&asks("a", 3), &[seat]).unwrap();
            let b = builder.add_running(&asks("b", 3), &[seat]).unwrap();
            let mut cluster = builder.finish().unwrap();
            let job = cluster.register(&asks("waits", 4), 2).unwrap();
            let departures = [(20, a), (50, b)];
            assert_eq!(wait_without_moves(&cluster, job, 10, departures.into_iter()), Some(40));
            assert_eq!(wait_without_moves(&cluster, job, 10, departures[..1].iter().copied()), None);
        }
    }
}
