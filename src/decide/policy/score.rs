//! What the policies of FGD's simulator have in common: each scores every node that fits, and the best takes the instance.

use super::{Arithmetic, best_fit, dot_product, fgd, gpu_clustering, gpu_packing};
use crate::cluster::{Cluster, Composition, GpuMask, NodeId, PoolId, UNLIMITED};
use crate::fragmentation::fgd::{Ask, Gauge, Left, Typical, choices, peer};

/// Milli-cores of the node that makes CPU and GPUs comparable.
pub(super) const MILLI_CORES: f64 = 128_000.0;

/// Milli-GPU of that node.
pub(super) const GPU_MILLI: f64 = 8_000.0;

/// By what a policy scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::decide) enum Score {
    Fgd,
    DotProduct,
    GpuPacking,
    GpuClustering,
    BestFit,
}

/// A node, as the scores see it, and what is asked of it.
#[derive(Debug)]
pub(super) struct Node<'a> {
    pub(super) left: Left,
    pub(super) ask: &'a Ask,
    pub(super) pool: PoolId,
    pub(super) capacity: u8,
    pub(super) composition: Composition,
    /// Devices that nobody holds.
    pub(super) free: GpuMask,
    /// Devices that shares lie on.
    pub(super) shared: GpuMask,
}

impl Node<'_> {
    /// Free milli-cores; of a node without a limit just what is asked.
    pub(super) fn cpu_left(&self) -> u32 {
        if self.left.cpu_milli == UNLIMITED { self.ask.cpu_milli } else { self.left.cpu_milli }
    }

    /// Milli-GPU that are asked for.
    pub(super) fn asked_milli(&self) -> u32 {
        u32::from(self.ask.gpus) * u32::from(self.ask.gpu_milli)
    }
}

/// A policy's way to score, with what it needs to know.
#[derive(Clone, Debug)]
pub(in crate::decide) struct Scoring {
    score: Score,
    pub(in crate::decide) arithmetic: Arithmetic,
    typical: Typical,
    /// The typical pods, for FGD in integers.
    gauge: Gauge,
    /// Of the typical pods, for FGD as its simulator computes.
    popularity: Vec<f64>,
}

impl Scoring {
    pub(in crate::decide) fn new(cluster: &Cluster, score: Score, arithmetic: Arithmetic, typical: Typical) -> Self {
        let popularity = peer::popularity(typical.pods(), typical.total());
        let gauge = Gauge::new(&typical, cluster.pools().len());
        Self { score, arithmetic, typical, gauge, popularity }
    }

    /// The same with other typical pods; `None` if they are what they were.
    pub(in crate::decide) fn with_typical(&self, cluster: &Cluster, typical: Typical) -> Option<Self> {
        (typical != self.typical).then(|| Self::new(cluster, self.score, self.arithmetic, typical))
    }

    /// The typical pods, if a backend can score in the same way: `Kernel::score_fgd`.
    pub(in crate::decide) fn is_a_kernel(&self) -> Option<&Typical> {
        matches!((self.score, self.arithmetic), (Score::Fgd, Arithmetic::Exact)).then_some(&self.typical)
    }

    /// The place of a node among those that could take an instance, the least first, and the devices that it would get.
    /// `None` if CPU or devices do not suffice; cordon, model and memory are for the caller to know.
    pub(in crate::decide) fn of(&self, cluster: &Cluster, id: NodeId, ask: &Ask) -> Option<(i64, GpuMask)> {
        let held = cluster.node(id);
        let node = Node {
            left: Left::of(cluster, id),
            ask,
            pool: held.pool(),
            capacity: held.capacity(),
            composition: held.composition(),
            free: held.free(),
            shared: held.shared(),
        };
        let highest_first = |(score, gpus): (i64, GpuMask)| (-score, gpus);
        // All but FGD take the device of which the least is left that is enough, and the lowest free ones.
        let left = |gpus: &GpuMask| (node.left.gpu_milli.get(gpus.trailing_zeros() as usize).copied(), *gpus);
        let fullest = || choices(&node.left, ask).min_by_key(left);
        match (self.score, self.arithmetic) {
            (Score::Fgd, Arithmetic::Exact) => fgd::exact(&node, &self.gauge),
            (Score::Fgd, Arithmetic::Peer) => fgd::peer(&node, &self.typical, &self.popularity).map(highest_first),
            (Score::DotProduct, Arithmetic::Exact) => fullest().map(|gpus| (dot_product::exact(&node), gpus)),
            (Score::DotProduct, Arithmetic::Peer) => fullest().map(|gpus| (-dot_product::peer(&node), gpus)),
            (Score::GpuPacking, Arithmetic::Exact) => fullest().map(|gpus| (gpu_packing::exact(&node, gpus), gpus)),
            (Score::GpuPacking, Arithmetic::Peer) => fullest().map(|gpus| (-gpu_packing::peer(&node, gpus), gpus)),
            (Score::GpuClustering, Arithmetic::Exact) => fullest().map(|gpus| (gpu_clustering::exact(&node), gpus)),
            (Score::GpuClustering, Arithmetic::Peer) => fullest().map(|gpus| (-gpu_clustering::peer(&node), gpus)),
            (Score::BestFit, _) => fullest().map(|gpus| (-best_fit::peer(&node), gpus)),
        }
    }
}
