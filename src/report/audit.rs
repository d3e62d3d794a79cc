//! The audit of a cluster.

mod document;

use serde::Serialize;

use super::asks::{asks, refusal_text};
use super::number::{counted, grouped, percent};
use super::phi_star::{WccReport, wcc_text};
use super::table::{Align, Rows, facts, wrapped};
use crate::cluster::{Cluster, DomainId, NodeId, PoolId, RackId, Within};
use crate::decide::{Audit, Figures, Part, Pending, RegionFigures, Regions, Stranded, Why};

pub use document::audit_json;

/// Nodes outside Σ that the table names.
const NAMED: usize = 20;

/// Domains, racks and waiting jobs that the table names.
const SHOWN: usize = 5;

/// Characters of a line of findings.
const WIDTH: usize = 78;

#[derive(Serialize)]
struct PoolKey<'a> {
    capacity: u8,
    model: Option<&'a str>,
}

impl<'a> PoolKey<'a> {
    fn new(cluster: &'a Cluster, pool: PoolId) -> Self {
        let pool = cluster.pool(pool);
        Self { capacity: pool.capacity, model: pool.model.map(|model| cluster.model_name(model)) }
    }
}

fn wcc(figures: &Figures) -> Option<WccReport> {
    figures.wcc.map(|wcc| WccReport { holds: wcc.holds, slack: wcc.slack })
}

/// The audit for people: findings first, then the totals, who waits, what is stranded, which gangs fit, and where.
pub fn audit_table(cluster: &Cluster, audit: &Audit) -> String {
    let mut text = String::from("FINDINGS\n");
    for finding in &audit.findings {
        text += &format!("- {}\n", wrapped(finding, WIDTH).join("\n  "));
    }
    text += "\nTOTALS\n";
    text += &totals(audit);
    if let Some(pending) = audit.pending.as_ref().filter(|pending| pending.jobs() > 0) {
        text += "\nWAITING JOBS, EACH ALONE ON THE CLUSTER AS IT IS\n";
        text += &waiting(cluster, pending);
    }
    text += "\nNODES BY FREE GPUS\n";
    text += &by_free(&audit.total);
    text += "\nFREE GPUS, AND WHAT KEEPS THEM FROM USE\n";
    text += &stranded(&audit.total.stranded);
    if audit.pools.len() > 1 {
        text += "\nPOOLS\n";
        text += &pools(cluster, audit);
    }
    for (within, name, all) in [(Within::Domain, "DOMAINS", &audit.domains), (Within::Rack, "RACKS", &audit.racks)] {
        if !all.each.is_empty() {
            text += &format!("\n{name}\n{}", regions(cluster, within, all));
        }
    }
    text += "\nINSTANCES THAT FIT, BY SIZE\n";
    text += &gangs(audit);
    if !audit.startable.is_empty() {
        text += "\nJOBS THAT COULD START AT ONCE, BY SIZE\n";
        text += &startable(audit);
    }
    if !audit.total.outside_abs.is_empty() {
        text += "\nNODES OUTSIDE Σ\n";
        text += &outside(cluster, &audit.total);
    }
    text
}

fn totals(audit: &Audit) -> String {
    let (total, compaction) = (&audit.total, &audit.compaction);
    let [busy, free] = [total.busy_gpus, total.free_gpus()].map(grouped);
    let share = percent(total.busy_gpus, total.gpus);
    let [full, partial, empty] = [total.full, total.partial, total.empty].map(grouped);
    let (moves, moved) = (counted(compaction.moves, "move"), counted(compaction.moved_gpus, "GPU"));
    let left = grouped(compaction.partial);
    facts(&[
        ("GPUs", format!("{}: {busy} busy ({share}), {free} free", grouped(total.gpus))),
        ("nodes", format!("{}: {full} full, {partial} partial, {empty} empty", grouped(total.nodes))),
        ("F", format!("{:.5} (partial nodes: {partial})", total.f())),
        (
            "F*, Φ*",
            format!("{:.5} ({} of these no packing of what runs avoids)", total.f_star(), grouped(total.phi_star)),
        ),
        ("SIF", format!("{:.5} (avoidable partial nodes, N·SIF: {})", total.sif(), grouped(total.n_sif()))),
        ("WCC", wcc_text(wcc(total))),
        ("outside Σ", grouped(total.outside_abs.len() as u64)),
        ("Compact", format!("{moves} ({moved}), partial nodes left: {left}")),
    ])
}

fn waiting(cluster: &Cluster, pending: &Pending) -> String {
    let [jobs, startable] = [pending.jobs(), pending.startable()].map(grouped);
    let [capacity, shape, other] =
        [Why::Capacity, Why::Fragmentation, Why::Constraint].map(|why| grouped(pending.blocked(why)));
    let mut text = format!("{jobs}: {startable} could start\n");
    text += &format!("blocked: {capacity} by capacity, {shape} by fragmentation, {other} by constraint\n");
    let though_free = || pending.alike.iter().filter(|alike| !matches!(alike.why, None | Some(Why::Capacity)));
    let mut rows = Rows::new(&[
        ("PENDING THOUGH FREE", Align::Left),
        ("ASKS", Align::Right),
        ("ALIKE", Align::Right),
        ("WHY", Align::Left),
    ]);
    for alike in though_free().take(SHOWN) {
        rows.push([
            cluster.job_name(alike.jobs[0]).to_owned(),
            format!("{} × {}", grouped(alike.instances), cluster.request(alike.request).gpus_text()),
            grouped(alike.jobs.len() as u64),
            alike.why.map_or("", Why::name).to_owned(),
        ]);
    }
    let groups = pending.groups.iter().filter_map(|one| Some((one.job, one.refusal?)));
    let groups = || groups.clone().filter(|(_, refusal)| refusal.why != Why::Capacity);
    for (job, refusal) in groups().take(SHOWN.saturating_sub(though_free().count())) {
        rows.push([
            cluster.whole_job_name(job.first()).to_owned(),
            asks(cluster, job.first()),
            grouped(1u64),
            refusal_text(refusal.why.name(), Some(refusal.proven)),
        ]);
    }
    if !rows.is_empty() {
        text += &rows.text();
        text += &more(though_free().count() + groups().count(), SHOWN, "kinds");
    }
    text
}

fn by_free(total: &Figures) -> String {
    let most = total.by_free.iter().map(|alike| alike.nodes).max().unwrap_or(0).max(1);
    let mut rows = Rows::new(&[
        ("FREE", Align::Right),
        ("NODES", Align::Right),
        ("UNSCHEDULABLE", Align::Right),
        ("", Align::Left),
    ]);
    for (free, alike) in total.by_free.iter().enumerate() {
        let length = (u128::from(alike.nodes) * 40).div_ceil(u128::from(most)) as usize;
        rows.push([free.to_string(), grouped(alike.nodes), grouped(alike.unschedulable), "█".repeat(length)]);
    }
    rows.text()
}

fn stranded(stranded: &Stranded) -> String {
    let &Stranded { cordon, model, cpu, memory, shape, usable } = stranded;
    let causes = [
        ("cordon", cordon, "the node is unschedulable"),
        ("model", model, "no job allows it"),
        ("CPU", cpu, "too little is left on the node"),
        ("memory", memory, "too little is left on the node"),
        ("shape", shape, "no mix of instance sizes fills them"),
        ("usable", usable, ""),
    ];
    let columns = [("", Align::Left), ("GPUS", Align::Right), ("NODES", Align::Right), ("", Align::Left)];
    let mut rows = Rows::new(&columns);
    for (name, Part { gpus, nodes }, text) in causes {
        rows.push([name.to_owned(), grouped(gpus), grouped(nodes), text.to_owned()]);
    }
    rows.text()
}

fn pools(cluster: &Cluster, audit: &Audit) -> String {
    let right = |name| (name, Align::Right);
    let columns = ["SIZE", "NODES", "GPUS", "FREE", "EMPTY", "PARTIAL", "Φ*", "N·SIF", "OUTSIDE"];
    let columns: Vec<_> = std::iter::once(("MODEL", Align::Left)).chain(columns.map(right)).collect();
    let mut rows = Rows::new(&columns);
    for pool in &audit.pools {
        let key = PoolKey::new(cluster, pool.pool);
        let figures = &pool.figures;
        let (empty, partial) = (figures.empty, figures.partial);
        let numbers = [figures.nodes, figures.gpus, figures.free_gpus(), empty, partial, figures.phi_star];
        let mut cells = vec![key.model.unwrap_or("(none)").to_owned(), key.capacity.to_string()];
        cells.extend(numbers.map(grouped));
        cells.extend([grouped(figures.n_sif()), grouped(figures.outside_abs.len() as u64)]);
        rows.push(cells);
    }
    rows.text()
}

/// How many there are of which kind, and those with the most partial nodes.
fn regions(cluster: &Cluster, within: Within, regions: &Regions) -> String {
    let busy = regions.each.iter().filter(|one| one.free_gpus() == 0).count();
    let partial = regions.each.iter().filter(|one| one.partial > 0).count();
    let [all, busy, with_partial] = [regions.each.len(), busy, partial].map(|n| grouped(n as u64));
    let intact = grouped(regions.intact);
    let mut text = format!("{all}: {intact} intact, {busy} without a free GPU, {with_partial} with partial nodes\n");
    let mut worst: Vec<(u32, &RegionFigures)> =
        (0u32..).zip(&regions.each).filter(|(_, one)| one.partial > 0).collect();
    worst.sort_by_key(|&(number, one)| (std::cmp::Reverse((one.partial, one.free_gpus())), number));
    let (name, right) = (|name| (name, Align::Left), |name| (name, Align::Right));
    let first = name(if within == Within::Domain { "RACK/DOMAIN" } else { "RACK" });
    let columns = ["NODES", "GPUS", "FREE", "EMPTY", "PARTIAL", "FULL", "Φ*", "N·SIF", "CORDONED"];
    let columns: Vec<_> = std::iter::once(first).chain(columns.map(right)).collect();
    let mut rows = Rows::new(&columns);
    for &(number, one) in worst.iter().take(SHOWN) {
        let numbers = [one.nodes, one.gpus, one.free_gpus(), one.empty, one.partial, one.full, one.phi_star];
        let mut cells = vec![region_name(cluster, within, number)];
        cells.extend(numbers.map(grouped));
        cells.extend([grouped(one.n_sif()), grouped(one.unschedulable)]);
        rows.push(cells);
    }
    if !rows.is_empty() {
        text += &rows.text();
        text += &more(worst.len(), SHOWN, "with partial nodes");
    }
    text
}

/// The name of a domain, with its rack's, or of a rack.
pub(super) fn region_name(cluster: &Cluster, within: Within, number: u32) -> String {
    match within {
        Within::Rack => cluster.rack_name(RackId(number)).to_owned(),
        Within::Domain => {
            let rack = cluster.domain_rack(DomainId(number)).map(|rack| cluster.rack_name(rack));
            let domain = cluster.domain_name(DomainId(number));
            rack.map_or(domain.to_owned(), |rack| format!("{rack}/{domain}"))
        }
    }
}

fn gangs(audit: &Audit) -> String {
    let total = &audit.total;
    let columns = ["GPUS/INSTANCE", "NOW", "COMPACTED", "IDEAL", "IN ONE DOMAIN", "IN ONE RACK"];
    let mut rows = Rows::new(&columns.map(|name| (name, Align::Right)));
    let of = |list: Option<&Vec<(u8, u64)>>, at: usize| list.map_or("-".to_owned(), |list| grouped(list[at].1));
    for (at, &(size, now)) in total.max_gang.iter().enumerate() {
        rows.push([
            size.to_string(),
            grouped(now),
            of(Some(&total.max_gang_compacted), at),
            of(Some(&total.max_gang_ideal), at),
            of(audit.domains.max_gang.as_ref(), at),
            of(audit.racks.max_gang.as_ref(), at),
        ]);
    }
    rows.text()
}

fn startable(audit: &Audit) -> String {
    let mut rows = Rows::new(&["GPUS/JOB", "AS", "NOW", "COMPACTED", "IDEAL"].map(|name| (name, Align::Right)));
    for jobs in &audit.startable {
        let shape = format!("{} × {}", grouped(jobs.instances), jobs.gpus_per_instance);
        let [now, compacted, ideal] = [jobs.now, jobs.compacted, jobs.ideal].map(grouped);
        rows.push([grouped(jobs.gpus), shape, now, compacted, ideal]);
    }
    rows.text()
}

fn outside(cluster: &Cluster, total: &Figures) -> String {
    let mut rows = Rows::new(&[("NODE", Align::Left), ("HOLDS", Align::Left), ("REASON", Align::Left)]);
    let holds = |id: NodeId| cluster.node(id).composition().to_string();
    for &(node, why) in total.outside_abs.iter().take(NAMED) {
        rows.push([cluster.node_name(node).to_owned(), holds(node), why.name().to_owned()]);
    }
    rows.text() + &more(total.outside_abs.len(), NAMED, "")
}

/// How many more there are than are shown.
fn more(all: usize, shown: usize, what: &str) -> String {
    match all.saturating_sub(shown) {
        0 => String::new(),
        more => format!("{}\n", format!("and {} more {what}", grouped(more as u64)).trim_end()),
    }
}
