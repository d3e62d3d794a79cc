//! The findings of an audit: short sentences, what an operator can gain first.

use super::Audit;
use super::compaction::Compaction;
use super::figures::Figures;
use super::pending::{Pending, PendingGroups, PendingJobs};
use super::stranded::Part;
use crate::cluster::{Cluster, Node, NodeId};
use crate::decide::why::Why;

/// Nodes that a sentence names before it only counts.
const NAMED: usize = 3;

/// The sentences for a cluster of which the audit has all the rest.
pub(super) fn findings(cluster: &Cluster, audit: &Audit) -> Vec<String> {
    let total = &audit.total;
    let mut findings: Vec<String> = Vec::new();
    findings.extend(audit.pending.iter().flat_map(|pending| waiting(cluster, pending)));
    findings.extend(audit.pending.iter().filter_map(|pending| not_proven(cluster, pending)));
    findings.push(avoidable(total));
    findings.extend(gains(total));
    findings.extend(compaction(total, &audit.compaction));
    findings.extend(outside(cluster, total));
    findings.extend(composition(total));
    findings.extend(closed(cluster));
    findings.extend(broken(cluster));
    findings.extend(stranded(total, audit.pending.is_some()));
    findings.extend(overcommitted(cluster));
    findings
}

/// Who waits though GPUs are free, and who need not wait.
fn waiting<'a>(cluster: &'a Cluster, pending: &'a Pending) -> impl Iterator<Item = String> + 'a {
    let kinds = [
        (Some(Why::Fragmentation), "by the number of free GPUs and not by their shape"),
        (Some(Why::Constraint), "by GPUs, but CPU, memory, model or topology forbids it"),
        (None, "as the cluster is, each alone"),
    ];
    kinds.into_iter().filter_map(|(why, how)| {
        let alike: Vec<&PendingJobs> = pending.alike.iter().filter(|alike| alike.why == why).collect();
        let is_so = |pending: &&PendingGroups| match pending.refusal {
            Some(refusal) => refusal.proven && why == Some(refusal.why),
            None => why.is_none(),
        };
        let groups: Vec<&PendingGroups> = pending.groups.iter().filter(is_so).collect();
        let count = |alike: &[&PendingJobs]| alike.iter().map(|alike| alike.jobs.len() as u64).sum::<u64>();
        let n = count(&alike) + groups.len() as u64;
        let fit = plural(n, "waiting job fits", "waiting jobs fit");
        let (first, rest) = alike.split_at(alike.len().min(NAMED));
        let named = |alike: &&PendingJobs| {
            let (job, gpus) = (cluster.job_name(alike.jobs[0]), cluster.request(alike.request).gpus_text());
            let more = alike.jobs.len() as u64 - 1;
            let like_it = if more > 0 { format!(" and {} like it", grouped(more)) } else { String::new() };
            format!("{job} ({}×{gpus}){like_it}", grouped(alike.instances.into()))
        };
        let mut names: Vec<String> = first.iter().map(named).collect();
        let shown = groups.len().min(NAMED - first.len());
        names.extend(groups[..shown].iter().map(|pending| groups_text(cluster, pending)));
        let others = count(rest) + (groups.len() - shown) as u64;
        if others > 0 {
            names.push(format!("and {} of other shapes", grouped(others)));
        }
        (n > 0).then(|| format!("{} {fit} {how}: {}.", grouped(n), names.join(", ")))
    })
}

/// The jobs of several groups of which it is not known whether they fit.
fn not_proven(cluster: &Cluster, pending: &Pending) -> Option<String> {
    let open = |pending: &&PendingGroups| pending.refusal.is_some_and(|refusal| !refusal.proven);
    let open: Vec<&PendingGroups> = pending.groups.iter().filter(open).collect();
    let mut names: Vec<String> = open.iter().take(NAMED).map(|pending| groups_text(cluster, pending)).collect();
    if open.len() > NAMED {
        names.push(format!("and {} more", grouped((open.len() - NAMED) as u64)));
    }
    let n = open.len() as u64;
    let (jobs, they) = (plural(n, "waiting job", "waiting jobs"), plural(n, "it does", "they do"));
    (n > 0).then(|| {
        format!(
            "For {} {jobs} of several groups no place was found, but that {they} not fit is not proven: {}.",
            grouped(n),
            names.join(", ")
        )
    })
}

fn groups_text(cluster: &Cluster, pending: &PendingGroups) -> String {
    let group = |id| {
        let (instances, request) = (cluster.job(id).instances(), cluster.request_of(id));
        format!("{}×{}", grouped(instances.into()), request.gpus_text())
    };
    let groups: Vec<String> = pending.job.jobs().map(group).collect();
    format!("{} ({})", cluster.whole_job_name(pending.job.first()), groups.join(" + "))
}

fn avoidable(total: &Figures) -> String {
    let (partial, needed) = (total.partial, total.phi_star);
    match (partial, total.n_sif()) {
        (0, _) => "No node is partial.".to_owned(),
        (1, 0) => "The only partial node is unavoidable.".to_owned(),
        (_, 0) => format!("All {} partial nodes are unavoidable: no packing of what runs has fewer.", grouped(partial)),
        (1, _) => "The only partial node is avoidable: ideal packing leaves none.".to_owned(),
        (_, avoidable) => {
            let is = if avoidable == 1 { "is" } else { "are" };
            let left = if needed == 0 { "none".to_owned() } else { grouped(needed) };
            let (avoidable, partial) = (grouped(avoidable.unsigned_abs()), grouped(partial));
            format!("{avoidable} of {partial} partial nodes {is} avoidable: ideal packing leaves {left}.")
        }
    }
}

/// The sizes of which more would fit, the largest first.
fn gains(total: &Figures) -> impl Iterator<Item = String> {
    let pairs = total.max_gang.iter().zip(&total.max_gang_ideal).rev();
    pairs.filter(|((_, now), (_, then))| then > now).map(|(&(size, now), &(_, then))| {
        let instances = plural(then - now, "instance", "instances");
        let (more, now, then) = (grouped(then - now), grouped(now), grouped(then));
        format!("{more} more {size}-GPU {instances} would fit after ideal packing: {now} now, {then} then.")
    })
}

/// What can be had without another tool than Compact.
fn compaction(total: &Figures, compaction: &Compaction) -> Option<String> {
    let &Compaction { moves, moved_gpus, partial, .. } = compaction;
    let (s, nodes) = (plural(moves, "move", "moves"), plural(partial, "partial node", "partial nodes"));
    (moves > 0 && partial != total.partial).then(|| {
        let worse = if partial > total.partial {
            format!(", {} more than now: Σ has its price here", grouped(partial - total.partial))
        } else {
            String::new()
        };
        let (moves, gpus, partial) = (grouped(moves), grouped(moved_gpus), grouped(partial));
        format!("Compaction inside Σ takes {moves} {s} ({gpus} GPUs) and leaves {partial} {nodes}{worse}.")
    })
}

fn outside(cluster: &Cluster, total: &Figures) -> Option<String> {
    let nodes = &total.outside_abs;
    let names = named(nodes.iter().map(|&(node, why)| format!("{} ({})", cluster.node_name(node), why.name())));
    let n = nodes.len() as u64;
    let is = plural(n, "node is", "nodes are");
    (n > 0).then(|| format!("{} {is} outside the Anchor-Based Space: {names}.", grouped(n)))
}

fn composition(total: &Figures) -> Option<String> {
    let wcc = total.wcc.filter(|wcc| !wcc.holds)?;
    let missing = wcc.slack.unsigned_abs();
    let instances = plural(missing, "1-GPU instance is", "1-GPU instances are");
    Some(format!(
        "The Workload Composition Condition fails: {} {instances} missing to fill all slots of a pool.",
        grouped(missing)
    ))
}

fn closed(cluster: &Cluster) -> Option<String> {
    let closed = nodes_that(cluster, |node| !node.schedulable());
    let free: u64 = closed.iter().map(|&node| u64::from(cluster.node(node).free_gpus())).sum();
    let n = closed.len() as u64;
    let (is, idle) = (plural(n, "node is", "nodes are"), plural(free, "free GPU takes", "free GPUs take"));
    let (n_closed, names) = (grouped(n), names(cluster, &closed));
    (n > 0).then(|| match free {
        0 => format!("{n_closed} {is} unschedulable: {names}."),
        _ => format!("{n_closed} {is} unschedulable, and {} {idle} no new work there: {names}.", grouped(free)),
    })
}

fn broken(cluster: &Cluster) -> Option<String> {
    let broken = nodes_that(cluster, |node| node.capacity() < node.devices());
    let unusable = |&node: &NodeId| u64::from(cluster.node(node).devices() - cluster.node(node).capacity());
    let gpus: u64 = broken.iter().map(unusable).sum();
    let n = broken.len() as u64;
    let (is, on) = (plural(gpus, "GPU is", "GPUs are"), plural(n, "node", "nodes"));
    let names = names(cluster, &broken);
    (n > 0).then(|| format!("{} {is} unavailable on {} {on}: {names}.", grouped(gpus), grouped(n)))
}

/// What strands free GPUs, cordons aside, of which another sentence tells.
fn stranded(total: &Figures, by_waiting: bool) -> impl Iterator<Item = String> {
    let job = if by_waiting { "waiting job" } else { "running job" };
    let scarce = |what| format!("the {what} left there is too little even at the least that any {job} asks a GPU");
    let causes = [
        (total.stranded.model, "model", format!("no {job} allows it")),
        (total.stranded.cpu, "CPU", scarce("CPU")),
        (total.stranded.memory, "memory", scarce("memory")),
        (total.stranded.shape, "shape", format!("no mix of the instance sizes of {job}s fills what is free there")),
    ];
    causes.into_iter().filter(|(part, ..)| part.gpus > 0).map(|(Part { gpus, nodes }, by, why)| {
        let (is, on) = (plural(gpus, "free GPU is", "free GPUs are"), plural(nodes, "node", "nodes"));
        format!("{} {is} stranded by {by} on {} {on}: {why}.", grouped(gpus), grouped(nodes))
    })
}

fn overcommitted(cluster: &Cluster) -> Option<String> {
    let nodes = nodes_that(cluster, Node::overcommitted);
    let n = nodes.len() as u64;
    let (has, names) = (plural(n, "node has", "nodes have"), names(cluster, &nodes));
    (n > 0).then(|| format!("{} {has} more CPU or memory in use than there is: {names}.", grouped(n)))
}

fn nodes_that(cluster: &Cluster, are_so: impl Fn(&Node) -> bool) -> Vec<NodeId> {
    cluster.node_ids().filter(|&node| are_so(cluster.node(node))).collect()
}

fn names(cluster: &Cluster, nodes: &[NodeId]) -> String {
    named(nodes.iter().map(|&node| cluster.node_name(node).to_owned()))
}

/// A number with its thousands set apart. (What tables use is in `report`, which this module does not know.)
fn grouped(n: u64) -> String {
    if n < 1000 { n.to_string() } else { format!("{},{:03}", grouped(n / 1000), n % 1000) }
}

fn plural(n: u64, one: &'static str, many: &'static str) -> &'static str {
    if n == 1 { one } else { many }
}

/// The first few of a list, and how many more there are.
fn named(mut names: impl ExactSizeIterator<Item = String>) -> String {
    let n = names.len();
    let shown = names.by_ref().take(NAMED).collect::<Vec<_>>().join(", ");
    if n > NAMED { format!("{shown} and {} more", grouped((n - NAMED) as u64)) } else { shown }
}
