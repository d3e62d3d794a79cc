//! Empty, partial and full nodes, and what fragmentation they add up to.

/// What a node's busy GPUs make of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// No GPU is busy.
    Empty,
    /// Some GPUs are busy, and not all.
    Partial,
    /// All GPUs are busy.
    Full,
}

/// The kind of a node with `busy` of `capacity` GPUs in use. A node without a usable GPU (capacity 0: all broken) is
/// full: it has no room.
pub const fn node_kind(busy: u8, capacity: u8) -> NodeKind {
    if busy >= capacity {
        NodeKind::Full
    } else if busy == 0 {
        NodeKind::Empty
    } else {
        NodeKind::Partial
    }
}

/// How many nodes of each kind there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCounts {
    /// Empty nodes.
    pub empty: u64,
    /// Partial nodes.
    pub partial: u64,
    /// Full nodes.
    pub full: u64,
}

impl NodeCounts {
    /// All nodes, N.
    pub const fn nodes(&self) -> u64 {
        self.empty + self.partial + self.full
    }

    /// One more node of a kind.
    pub fn add(&mut self, kind: NodeKind) {
        *self.of(kind) += 1;
    }

    /// One node of a kind less; there must be one.
    pub fn remove(&mut self, kind: NodeKind) {
        let count = self.of(kind);
        debug_assert!(*count > 0, "no {kind:?} node to remove");
        *count = count.saturating_sub(1);
    }

    fn of(&mut self, kind: NodeKind) -> &mut u64 {
        match kind {
            NodeKind::Empty => &mut self.empty,
            NodeKind::Partial => &mut self.partial,
            NodeKind::Full => &mut self.full,
        }
    }
}

impl FromIterator<NodeKind> for NodeCounts {
    fn from_iter<I: IntoIterator<Item = NodeKind>>(kinds: I) -> Self {
        let mut counts = Self::default();
        for kind in kinds {
            counts.add(kind);
        }
        counts
    }
}

/// Fragmentation of one pool or of a whole cluster (COMPASS-ABS, arXiv 2606.09200, eq. 1 and 2), in whole nodes.
///
/// Gross fragmentation is F = partial / N, inherent fragmentation F* = Φ*/N, and what a scheduler adds to it
/// SIF = F − F*. All three are kept as the integers over N. For a cluster of several pools, each a capacity and
/// model, they are sums over the pools: an instance counts in the pool where it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fragmentation {
    /// The nodes by kind.
    pub nodes: NodeCounts,
    /// Φ*: the partial nodes that no packing avoids.
    pub phi_star: u64,
    /// N·SIF: the avoidable partial nodes.
    pub n_sif: u64,
}

impl Fragmentation {
    /// One pool with these nodes and this Φ*.
    pub fn pool(nodes: NodeCounts, phi_star: u64) -> Self {
        // What runs is itself a packing, so it has at least Φ* partial nodes.
        debug_assert!(nodes.partial >= phi_star, "{} partial nodes are fewer than Φ* = {phi_star}", nodes.partial);
        Self { nodes, phi_star, n_sif: nodes.partial.saturating_sub(phi_star) }
    }

    /// Gross fragmentation F, for people to read; 0 without nodes.
    pub fn gross(&self) -> f64 {
        self.over_nodes(self.nodes.partial)
    }

    /// SIF, for people to read; 0 without nodes.
    pub fn sif(&self) -> f64 {
        self.over_nodes(self.n_sif)
    }

    fn over_nodes(&self, n: u64) -> f64 {
        if self.nodes.nodes() == 0 { 0.0 } else { n as f64 / self.nodes.nodes() as f64 }
    }
}

impl std::iter::Sum for Fragmentation {
    fn sum<I: Iterator<Item = Self>>(pools: I) -> Self {
        pools.fold(Self::default(), |mut sum, pool| {
            sum.nodes.empty += pool.nodes.empty;
            sum.nodes.partial += pool.nodes.partial;
            sum.nodes.full += pool.nodes.full;
            sum.phi_star += pool.phi_star;
            sum.n_sif += pool.n_sif;
            sum
        })
    }
}

/// N·ΔSIF: how many avoidable partial nodes a change adds, from its change of partial nodes and of Φ* (both summed over
/// the pools it touches).
pub const fn delta_n_sif(delta_partial: i64, delta_phi_star: i64) -> i64 {
    delta_partial - delta_phi_star
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds() {
        assert_eq!(node_kind(0, 8), NodeKind::Empty);
        assert_eq!(node_kind(1, 8), NodeKind::Partial);
        assert_eq!(node_kind(8, 8), NodeKind::Full);
        assert_eq!(node_kind(0, 0), NodeKind::Full);
    }

    #[test]
    fn pools_add_up() {
        let kinds = [(0, 8), (3, 8), (8, 8), (5, 8)];
        let nodes: NodeCounts = kinds.into_iter().map(|(busy, capacity)| node_kind(busy, capacity)).collect();
        assert_eq!(nodes, NodeCounts { empty: 1, partial: 2, full: 1 });
        let mut other = nodes;
        other.remove(NodeKind::Partial);
        let sum: Fragmentation = [Fragmentation::pool(nodes, 0), Fragmentation::pool(other, 1)].into_iter().sum();
        assert_eq!((sum.nodes.nodes(), sum.nodes.partial, sum.phi_star, sum.n_sif), (7, 3, 1, 2));
        assert_eq!(sum.sif(), 2.0 / 7.0);
        assert_eq!(Fragmentation::default().gross(), 0.0);
        assert_eq!(delta_n_sif(-2, 1), -3);
    }
}
