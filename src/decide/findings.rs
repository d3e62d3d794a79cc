//! The findings of an audit: short sentences, what an operator can gain first.

use super::audit::{Figures, Stranded, stranded};
use crate::cluster::{Cluster, NodeId};

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
        (_, 0) => format!("All {partial} partial nodes are unavoidable: no packing of what runs has fewer."),
        (1, _) => "The only partial node is avoidable: ideal packing leaves none.".to_owned(),
        (_, avoidable) => {
            let is = if avoidable == 1 { "is" } else { "are" };
            let left = if needed == 0 { "none".to_owned() } else { needed.to_string() };
            format!("{avoidable} of {partial} partial nodes {is} avoidable: ideal packing leaves {left}.")
        }
    }
}

/// The sizes of which more would fit, the largest first.
fn gains(total: &Figures) -> impl Iterator<Item = String> {
    let pairs = total.max_gang.iter().zip(&total.max_gang_ideal).rev();
    pairs.filter(|((_, now), (_, then))| then > now).map(|(&(size, now), &(_, then))| {
        let more = then - now;
        let instances = plural(more, "instance", "instances");
        format!("{more} more {size}-GPU {instances} would fit after ideal packing: {now} now, {then} then.")
    })
}

fn outside(cluster: &Cluster, total: &Figures) -> Option<String> {
    let nodes = &total.outside_abs;
    let names = named(nodes.iter().map(|&(node, why)| format!("{} ({})", cluster.node_name(node), why.name())));
    let (is, n) = (plural(nodes.len() as u64, "node is", "nodes are"), nodes.len());
    (n > 0).then(|| format!("{n} {is} outside the Anchor-Based Space: {names}."))
}

fn composition(total: &Figures) -> Option<String> {
    let wcc = total.wcc.filter(|wcc| !wcc.holds)?;
    let missing = wcc.slack.unsigned_abs();
    let instances = plural(missing, "1-GPU instance is", "1-GPU instances are");
    Some(format!(
        "The Workload Composition Condition fails: {missing} {instances} missing to fill all slots of a pool."
    ))
}

fn closed(cluster: &Cluster) -> Option<String> {
    let closed = || cluster.nodes().iter().filter(|node| !node.schedulable());
    let (nodes, free) = (closed().count() as u64, closed().map(|node| u64::from(node.free_gpus())).sum::<u64>());
    let (is, idle) = (plural(nodes, "node is", "nodes are"), plural(free, "free GPU takes", "free GPUs take"));
    (nodes > 0).then(|| match free {
        0 => format!("{nodes} {is} unschedulable."),
        _ => format!("{nodes} {is} unschedulable: {free} {idle} no new work there."),
    })
}

fn broken(cluster: &Cluster) -> Option<String> {
    let broken = || cluster.nodes().iter().filter(|node| node.capacity() < node.devices());
    let gpus: u64 = broken().map(|node| u64::from(node.devices() - node.capacity())).sum();
    let nodes = broken().count() as u64;
    let (is, on) = (plural(gpus, "GPU is", "GPUs are"), plural(nodes, "node", "nodes"));
    (nodes > 0).then(|| format!("{gpus} {is} unavailable on {nodes} {on}."))
}

fn by_cpu_or_memory(cluster: &Cluster) -> Option<String> {
    let Stranded { gpus, nodes } = stranded(cluster);
    let (is, on) = (plural(gpus, "free GPU is", "free GPUs are"), plural(nodes, "node", "nodes"));
    (gpus > 0).then(|| {
        let why = "the CPU or memory left there is too little even at the least that any running job asks a GPU";
        format!("{gpus} {is} stranded on {nodes} {on}: {why}.")
    })
}

fn overcommitted(cluster: &Cluster) -> Option<String> {
    let nodes: Vec<NodeId> = cluster.node_ids().filter(|&node| cluster.node(node).overcommitted()).collect();
    let names = named(nodes.iter().map(|&node| cluster.node_name(node).to_owned()));
    let (has, n) = (plural(nodes.len() as u64, "node has", "nodes have"), nodes.len());
    (n > 0).then(|| format!("{n} {has} more CPU or memory in use than there is: {names}."))
}

fn plural(n: u64, one: &'static str, many: &'static str) -> &'static str {
    if n == 1 { one } else { many }
}

/// The first few of a list, and how many more there are.
fn named(mut names: impl ExactSizeIterator<Item = String>) -> String {
    let n = names.len();
    let shown = names.by_ref().take(NAMED).collect::<Vec<_>>().join(", ");
    if n > NAMED { format!("{shown} and {} more", n - NAMED) } else { shown }
}
