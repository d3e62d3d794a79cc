//! The map of a cluster: a cell a node, by how full it is. Compact: a path a colour, a piece of it a run of equal cells.

use std::fmt::Write;

use maud::{Markup, html};

use super::palette::NODES;
use crate::cluster::Cluster;
use crate::simulate::Occupancy;

/// The most cells of a map; of a larger cluster, several nodes that follow one another share one.
const MOST_CELLS: usize = 16_384;

/// How full nodes are, in the order of [`NODES`].
pub(super) const CLASSES: [&str; NODES.len()] =
    ["empty", "up to ¼", "up to ½", "up to ¾", "more than ¾", "full", "no working GPU"];

const EMPTY: usize = 0;
const FULL: usize = 5;
const BROKEN: usize = 6;

/// The class of nodes that hold `busy` of their `gpus` working GPUs.
fn class(busy: u64, gpus: u64) -> usize {
    match (busy, gpus) {
        (_, 0) => BROKEN,
        (0, _) => EMPTY,
        (busy, gpus) if busy >= gpus => FULL,
        (busy, gpus) => (busy * 4).div_ceil(gpus) as usize,
    }
}

/// The map of a cluster at a moment.
#[derive(Clone, Debug)]
pub(super) struct Map {
    /// Nodes of each class.
    pub(super) counts: [u64; CLASSES.len()],
    /// Nodes a cell.
    pub(super) nodes_a_cell: usize,
    /// Cells by class, row by row.
    cells: Vec<usize>,
    columns: usize,
}

impl Map {
    pub(super) fn new(cluster: &Cluster, occupancy: &Occupancy) -> Self {
        let gpus = cluster.nodes().iter().map(|node| u64::from(node.capacity()));
        let nodes: Vec<(u64, u64)> = occupancy.busy.iter().map(|&busy| u64::from(busy)).zip(gpus).collect();
        let mut counts = [0; CLASSES.len()];
        for &(busy, gpus) in &nodes {
            counts[class(busy, gpus)] += 1;
        }
        let nodes_a_cell = nodes.len().div_ceil(MOST_CELLS).max(1);
        let cell = |nodes: &[(u64, u64)]| {
            let (busy, gpus) = nodes.iter().fold((0, 0), |sum, node| (sum.0 + node.0, sum.1 + node.1));
            class(busy, gpus)
        };
        let cells: Vec<usize> = nodes.chunks(nodes_a_cell).map(cell).collect();
        // Two and a half times as wide as high, and not so few columns that a handful of nodes fills the page.
        let columns = ((cells.len() as f64 * 2.5).sqrt().ceil() as usize).max(16);
        Self { counts, nodes_a_cell, cells, columns }
    }

    /// The nodes of each class, in words.
    pub(super) fn words(&self) -> String {
        let some = CLASSES.iter().zip(self.counts).filter(|&(_, n)| n > 0);
        let words: Vec<String> =
            some.map(|(class, n)| format!("{} {class}", super::super::number::grouped(n))).collect();
        words.join(", ")
    }

    /// The map as SVG. As a file of its own it says what it is, and how wide it is.
    pub(super) fn svg(&self, title: &str, file: bool) -> Markup {
        let (columns, rows) = (self.columns, self.cells.len().div_ceil(self.columns).max(1));
        let mut paths = vec![String::new(); CLASSES.len()];
        for (y, row) in self.cells.chunks(columns).enumerate() {
            let mut x = 0;
            for run in row.chunk_by(|one, next| one == next) {
                // Writing to a string does not fail.
                let _ = write!(paths[run[0]], "M{x} {y}h{}", run.len());
                x += run.len();
            }
        }
        let mut lines = String::new();
        for x in 1..columns {
            let _ = write!(lines, "M{x} 0v{rows}");
        }
        for y in 1..rows {
            let _ = write!(lines, "M0 {y}h{columns}");
        }
        let named = |at: usize| format!("{} {}", self.counts[at], CLASSES[at]);
        html! {
            svg xmlns=[file.then_some("http://www.w3.org/2000/svg")] viewBox=(format!("0 0 {columns} {rows}"))
                width=[file.then_some(960)] role="img" aria-label=[(!file).then_some(title)] class="map" {
                title { (title) }
                @for (at, path) in paths.iter().enumerate().filter(|(_, path)| !path.is_empty()) {
                    path d=(path) transform="translate(0 .5)" stroke=(NODES[at].hex()) fill="none" {
                        title { (named(at)) }
                    }
                }
                path d=(lines) class="lines" stroke="#FFFFFF" stroke-width=".12" fill="none" {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_quarters_between_empty_and_full() {
        let of_eight: Vec<usize> = (0..=8).map(|busy| class(busy, 8)).collect();
        assert_eq!(of_eight, [0, 1, 1, 2, 2, 3, 3, 4, 5]);
        assert_eq!([class(0, 1), class(1, 1), class(0, 0), class(1, 2), class(1, 3)], [0, 5, 6, 2, 2]);
    }

    #[test]
    fn the_worst_map_is_small() {
        let mut builder = crate::cluster::ClusterBuilder::new();
        for i in 0..40_000 {
            let name = format!("n{i}");
            builder.add_node(&crate::cluster::NodeSpec { name: &name, gpus: 2, ..Default::default() }).unwrap();
        }
        let cluster = builder.finish().unwrap();
        // No two cells that follow one another are equal.
        let busy = (0..40_000u32).map(|i| (i / 3 % 2 * 2) as u8).collect();
        let map = Map::new(&cluster, &Occupancy { at: 0, busy });
        assert_eq!(map.nodes_a_cell, 3);
        assert_eq!(map.counts, [20_001, 0, 0, 0, 0, 19_999, 0]);
        let svg = map.svg("<&>", false).into_string();
        assert!(svg.len() < 200_000, "{}", svg.len());
        assert!(svg.contains("&lt;&amp;&gt;") && !svg.contains("<&>"));
        assert!(!svg.contains("http:"));
    }
}
