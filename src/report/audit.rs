//! The audit of a cluster.

use serde::Serialize;
use serde::ser::Serializer;

use super::json::append_line;
use super::number::{grouped, percent};
use super::phi_star::{WccReport, wcc_text};
use super::table::{Align, Rows, facts};
use crate::cluster::{Cluster, MAX_GPUS, NodeId, PoolId};
use crate::decide::{Audit, Figures};

/// Nodes outside Σ that the table names.
const NAMED: usize = 20;

/// Appends the audit as one document.
///
/// # Errors
/// As [`append_line`].
pub fn audit_json(out: &mut Vec<u8>, cluster: &Cluster, audit: &Audit) -> Result<(), serde_json::Error> {
    let pools = audit.pools.iter().map(|pool| PoolOut {
        figures: FiguresOut::new(cluster, &pool.figures),
        pool: PoolKey::new(cluster, pool.pool),
    });
    append_line(
        out,
        &AuditOut {
            figures: FiguresOut::new(cluster, &audit.total),
            pools: pools.collect(),
            findings: &audit.findings,
        },
    )
}

#[derive(Serialize)]
struct AuditOut<'a> {
    #[serde(flatten)]
    figures: FiguresOut<'a>,
    pools: Vec<PoolOut<'a>>,
    findings: &'a [String],
}

#[derive(Serialize)]
struct PoolOut<'a> {
    #[serde(flatten)]
    figures: FiguresOut<'a>,
    pool: PoolKey<'a>,
}

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

#[derive(Serialize)]
struct FiguresOut<'a> {
    nodes: u64,
    gpus: u64,
    busy_gpus: u64,
    free_gpus: u64,
    empty: u64,
    partial: u64,
    full: u64,
    phi_star: u64,
    n_sif: i64,
    f: f64,
    sif: f64,
    wcc: Option<WccReport>,
    outside_abs: Vec<OutsideOut<'a>>,
    max_gang: BySize<'a>,
    max_gang_ideal: BySize<'a>,
}

#[derive(Serialize)]
struct OutsideOut<'a> {
    node: &'a str,
    reason: &'static str,
}

impl<'a> FiguresOut<'a> {
    fn new(cluster: &'a Cluster, figures: &'a Figures) -> Self {
        let outside = figures.outside_abs.iter();
        Self {
            nodes: figures.nodes,
            gpus: figures.gpus,
            busy_gpus: figures.busy_gpus,
            free_gpus: figures.free_gpus(),
            empty: figures.empty,
            partial: figures.partial,
            full: figures.full,
            phi_star: figures.phi_star,
            n_sif: figures.n_sif(),
            f: figures.f(),
            sif: figures.sif(),
            wcc: wcc(figures),
            outside_abs: outside
                .map(|&(node, why)| OutsideOut { node: cluster.node_name(node), reason: why.name() })
                .collect(),
            max_gang: BySize(&figures.max_gang),
            max_gang_ideal: BySize(&figures.max_gang_ideal),
        }
    }
}

fn wcc(figures: &Figures) -> Option<WccReport> {
    figures.wcc.map(|wcc| WccReport { holds: wcc.holds, slack: wcc.slack })
}

/// Counts by instance size, as an object in the order of the sizes.
struct BySize<'a>(&'a [(u8, u64)]);

impl Serialize for BySize<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

/// The audit for people: findings first, then the totals, nodes by free GPUs, pools, and which gangs fit.
pub fn audit_table(cluster: &Cluster, audit: &Audit) -> String {
    let mut text = String::from("FINDINGS\n");
    for finding in &audit.findings {
        text += &format!("- {}\n", super::table::printable(finding));
    }
    let total = &audit.total;
    text += "\nTOTALS\n";
    text += &facts(&[
        (
            "GPUs",
            format!(
                "{}: {} busy ({}), {} free",
                grouped(total.gpus),
                grouped(total.busy_gpus),
                percent(total.busy_gpus, total.gpus),
                grouped(total.free_gpus())
            ),
        ),
        (
            "nodes",
            format!(
                "{}: {} full, {} partial, {} empty",
                grouped(total.nodes),
                grouped(total.full),
                grouped(total.partial),
                grouped(total.empty)
            ),
        ),
        ("F", format!("{:.5} (partial nodes: {})", total.f(), grouped(total.partial))),
        ("Φ*", format!("{} of these are inherent: no packing of what runs avoids them", grouped(total.phi_star))),
        ("SIF", format!("{:.5} (avoidable partial nodes, N·SIF: {})", total.sif(), grouped(total.n_sif()))),
        ("WCC", wcc_text(wcc(total))),
        ("outside Σ", grouped(total.outside_abs.len() as u64)),
    ]);
    text += "\nNODES BY FREE GPUS\n";
    text += &by_free(cluster);
    if audit.pools.len() > 1 {
        text += "\nPOOLS\n";
        text += &pools(cluster, audit);
    }
    text += "\nINSTANCES THAT FIT, BY SIZE\n";
    text += &gangs(total);
    if !total.outside_abs.is_empty() {
        text += "\nNODES OUTSIDE Σ\n";
        text += &outside(cluster, total);
    }
    text
}

fn by_free(cluster: &Cluster) -> String {
    let (mut open, mut closed) = ([0u64; MAX_GPUS + 1], [0u64; MAX_GPUS + 1]);
    for node in cluster.nodes() {
        let counts = if node.schedulable() { &mut open } else { &mut closed };
        counts[usize::from(node.free_gpus())] += 1;
    }
    let largest = cluster.nodes().iter().map(|node| usize::from(node.capacity())).max().unwrap_or(0);
    let most = open.iter().zip(&closed).map(|(open, closed)| open + closed).max().unwrap_or(0).max(1);
    let mut rows = Rows::new(&[
        ("FREE", Align::Right),
        ("NODES", Align::Right),
        ("UNSCHEDULABLE", Align::Right),
        ("", Align::Left),
    ]);
    for free in 0..=largest {
        let nodes = open[free] + closed[free];
        let length = (u128::from(nodes) * 40).div_ceil(u128::from(most)) as usize;
        rows.push([free.to_string(), grouped(nodes), grouped(closed[free]), "█".repeat(length)]);
    }
    rows.text()
}

fn pools(cluster: &Cluster, audit: &Audit) -> String {
    let right = |name| (name, Align::Right);
    let columns = ["GPUS/NODE", "NODES", "GPUS", "FREE", "EMPTY", "PARTIAL", "FULL", "Φ*", "N·SIF", "OUTSIDE Σ"];
    let columns: Vec<_> = std::iter::once(("MODEL", Align::Left)).chain(columns.map(right)).collect();
    let mut rows = Rows::new(&columns);
    for pool in &audit.pools {
        let key = PoolKey::new(cluster, pool.pool);
        let figures = &pool.figures;
        let numbers = [
            figures.nodes,
            figures.gpus,
            figures.free_gpus(),
            figures.empty,
            figures.partial,
            figures.full,
            figures.phi_star,
        ];
        let mut cells = vec![key.model.unwrap_or("(none)").to_owned(), key.capacity.to_string()];
        cells.extend(numbers.map(grouped));
        cells.extend([grouped(figures.n_sif()), grouped(figures.outside_abs.len() as u64)]);
        rows.push(cells);
    }
    rows.text()
}

fn gangs(total: &Figures) -> String {
    let right = |name| (name, Align::Right);
    let mut rows = Rows::new(&["GPUS/INSTANCE", "NOW", "IDEALLY PACKED", "MORE"].map(right));
    for (&(size, now), &(_, then)) in total.max_gang.iter().zip(&total.max_gang_ideal) {
        let more = then as i128 - now as i128;
        rows.push([size.to_string(), grouped(now), grouped(then), grouped(more)]);
    }
    rows.text()
}

fn outside(cluster: &Cluster, total: &Figures) -> String {
    let mut rows = Rows::new(&[("NODE", Align::Left), ("HOLDS", Align::Left), ("REASON", Align::Left)]);
    let holds = |id: NodeId| cluster.node(id).composition().to_string();
    for &(node, why) in total.outside_abs.iter().take(NAMED) {
        rows.push([cluster.node_name(node).to_owned(), holds(node), why.name().to_owned()]);
    }
    let more = total.outside_abs.len().saturating_sub(NAMED);
    if more > 0 { format!("{}and {} more\n", rows.text(), grouped(more as u64)) } else { rows.text() }
}
