//! The findings of an audit: short sentences, what an operator can gain first.

use super::audit::{Figures, Stranded, stranded};
use crate::cluster::{Cluster, Node, NodeId};

/// Nodes that a sentence names before it only counts.
const NAMED: usize = 3;

/// The sentences for a cluster whose figures are these.
pub(super) fn findings(cluster: &Cluster, total: &Figures) -> Vec<String> {
    let mut findings = vec![avoidable(total)];
    findings.extend(gains(total));
    findings.extend(outside(cluster, total));
    findings.extend(composition(total));
    findings.extend(closed(cluster));
    findings.extend(broken(cluster));
    findings.extend(by_cpu_or_memory(cluster));
    findings.extend(overcommitted(cluster));
    findings
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

fn by_cpu_or_memory(cluster: &Cluster) -> Option<String> {
    let Stranded { gpus, nodes } = stranded(cluster);
    let (is, on) = (plural(gpus, "free GPU is", "free GPUs are"), plural(nodes, "node", "nodes"));
    (gpus > 0).then(|| {
        let why = "the CPU or memory left there is too little even at the least that any running job asks a GPU";
        format!("{} {is} stranded on {} {on}: {why}.", grouped(gpus), grouped(nodes))
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
