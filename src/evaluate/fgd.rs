//! Questions for the score of FGD: by how much the fragment of each node grows if it takes an instance.

use bytemuck::{Pod, Zeroable};

use super::abi::NONE;
use super::node_rows::NodeRows;
use super::query::{DemandClass, NodeOrder, NodeQuery};
use crate::cluster::{Cluster, GpuMask, PoolId, Request, UNLIMITED};
use crate::fragmentation::fgd::{Ask, Gauge, Left, Typical, TypicalPod, exact};

/// The score of a node for a class of demand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct FgdRow {
    /// By how much the fragment grows, popularity times milli-GPU: the low word of 64 bits, two's complement.
    pub growth_low: u32,
    /// The high word.
    pub growth_high: u32,
    /// The devices that the instance would get, `NONE` if the node cannot host it; the growth is 0 then.
    pub gpus: u32,
}

impl FgdRow {
    /// Of a node that cannot host the class.
    pub const REFUSED: Self = Self { growth_low: 0, growth_high: 0, gpus: NONE };

    /// Of a growth, if the node can host the class.
    fn new(growth: Option<(i64, GpuMask)>) -> Self {
        growth.map_or(Self::REFUSED, |(growth, gpus)| Self {
            growth_low: growth as u32,
            growth_high: (growth >> 32) as u32,
            gpus: gpus.into(),
        })
    }

    /// By how much the fragment grows, the less the better, and the devices; `None` if the node cannot host the class.
    pub fn growth(&self) -> Option<(i64, GpuMask)> {
        let growth = (u64::from(self.growth_high) << 32 | u64::from(self.growth_low)) as i64;
        (self.gpus != NONE).then_some((growth, self.gpus as GpuMask))
    }
}

/// Several classes of demand for which all nodes are to be scored, and the typical pods that fragments are of.
#[derive(Clone, Debug, Default)]
pub struct FgdQuery {
    demands: NodeQuery,
    pods: Vec<TypicalPod>,
    /// Words of a pool's set of typical pods, one set after another.
    words: usize,
    allowed: Vec<u32>,
    /// What processors score with.
    gauge: Gauge,
}

impl FgdQuery {
    /// No class yet.
    pub fn new(cluster: &Cluster, typical: &Typical) -> Self {
        let pools = (0..cluster.pools().len() as u32).map(PoolId);
        Self {
            demands: NodeQuery::new(cluster, 0),
            pods: typical.pods().to_vec(),
            words: typical.pods().len().div_ceil(32),
            allowed: pools.flat_map(|pool| typical.allowed(pool)).copied().collect(),
            gauge: Gauge::new(typical, cluster.pools().len()),
        }
    }

    /// Adds a class: an instance of this request. Its `within` binds instances together and is not looked at. Returns the
    /// class's number.
    pub fn push(&mut self, cluster: &Cluster, request: &Request) -> usize {
        self.demands.push(cluster, request, NodeOrder::FirstFit, None, None)
    }

    /// Forgets the classes, keeps the typical pods.
    pub fn clear(&mut self) {
        self.demands.clear();
    }

    /// The number of classes.
    pub fn len(&self) -> usize {
        self.demands.len()
    }

    /// True if there is no class.
    pub fn is_empty(&self) -> bool {
        self.demands.is_empty()
    }

    /// The classes. Their order says nothing here.
    pub fn demands(&self) -> &NodeQuery {
        &self.demands
    }

    /// The typical pods.
    pub fn pods(&self) -> &[TypicalPod] {
        &self.pods
    }

    /// Words of the set of typical pods that a pool's model is allowed to.
    pub fn words(&self) -> usize {
        self.words
    }

    /// Those sets, pool by pool: bit `i % 32` of word `i / 32` for pod `i`.
    pub fn allowed(&self) -> &[u32] {
        &self.allowed
    }

    /// The score of a node for a class, by the definition.
    pub fn score(&self, class: usize, state: &NodeRows, node: usize) -> FgdRow {
        self.score_by(class, state, node, |pool, left, ask| {
            let allowed = &self.allowed[pool.index() * self.words..(pool.index() + 1) * self.words];
            exact::growth(&self.pods, allowed, left, ask)
        })
    }

    /// The same, sooner.
    pub(super) fn score_by_gauge(&self, class: usize, state: &NodeRows, node: usize) -> FgdRow {
        self.score_by(class, state, node, |pool, left, ask| self.gauge.growth(pool, left, ask))
    }

    fn score_by(
        &self,
        class: usize,
        state: &NodeRows,
        node: usize,
        growth: impl FnOnce(PoolId, &Left, &Ask) -> Option<(i64, GpuMask)>,
    ) -> FgdRow {
        let class = &self.demands.classes()[class];
        if !self.demands.admits(class, state, node) {
            return FgdRow::REFUSED;
        }
        let cpu = state.amounts[node].cpu;
        let cpu_milli = if cpu == i32::MAX { UNLIMITED } else { amount(cpu) };
        let left = Left { cpu_milli, gpu_milli: state.gpu_milli[node].left };
        FgdRow::new(growth(PoolId(state.attributes[node].pool), &left, &ask(class)))
    }
}

/// What a class asks for.
fn ask(class: &DemandClass) -> Ask {
    Ask { cpu_milli: amount(class.cpu), gpu_milli: class.gpu_milli as u16, gpus: class.gpus as u8 }
}

/// Nothing, where it is negative: an overcommitted node has nothing left, and who asks for nothing says so by the least
/// of numbers.
fn amount(signed: i32) -> u32 {
    u32::try_from(signed).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growths_survive_in_words() {
        for growth in [0, 1, -1, i64::from(u32::MAX), -(1 << 40), (1 << 61) + 7] {
            assert_eq!(FgdRow::new(Some((growth, 0b1010))).growth(), Some((growth, 0b1010)));
        }
        assert_eq!(FgdRow::new(None).growth(), None);
        assert_eq!(size_of::<FgdRow>(), 12);
        assert_eq!(size_of::<TypicalPod>(), 16);
    }
}
