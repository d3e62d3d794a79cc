//! Fragmentation as FGD measures it: how much of a node's idle GPUs the next pod, drawn from those that are typical,
//! could not use (Weng et al., *Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
//! Descent*, USENIX ATC 2023).
//!
//! A [`TypicalPod`] is a distinct request and how popular it is. For one of them, the fragment of a node is
//!
//! - all of its idle GPUs, if the pod asks for none, names models of which the node's is none, or does not fit (too few
//!   devices with enough left, or too little CPU; memory is not asked);
//! - otherwise what is left on the devices that have too little left for the pod.
//!
//! The fragment of the node is the mean of these by popularity. A placement is as good as the fragment that it leaves is
//! small, compared with the one it found.
//!
//! All of it is a pure function of plain integers, in two arithmetics: [`exact`] sums popularity times milli-GPU in
//! integers, and [`Gauge`] finds the same sooner; [`peer`] repeats the floating point of the authors' simulator, digit for
//! digit.

pub mod exact;
mod gauge;
pub mod peer;
mod typical;

pub use gauge::Gauge;
pub use typical::{COVERAGE_PERCENT, MAX_TYPICAL, MIX_PARTS, Typical, TypicalPod};

use crate::cluster::{Cluster, GpuMask, MAX_GPUS, NodeId, Request, UNLIMITED, WHOLE_GPU};

/// What of a node is left, as far as the measure looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Left {
    /// Free milli-cores; `UNLIMITED` if the node sets no limit.
    pub cpu_milli: u32,
    /// Thousandths that are left of each device, 0..=1000; 0 for one that is broken or not there.
    pub gpu_milli: [u16; MAX_GPUS],
}

/// What one instance asks for, as far as the measure looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ask {
    /// Milli-cores.
    pub cpu_milli: u32,
    /// Thousandths of each device: 1..=1000.
    pub gpu_milli: u16,
    /// Devices; 0 for a CPU-only instance.
    pub gpus: u8,
}

impl Ask {
    /// What an instance of a request asks for.
    pub fn of(request: &Request) -> Self {
        Self { cpu_milli: request.cpu_milli, gpu_milli: request.gpu_milli, gpus: request.gpus }
    }

    /// True if it asks for less than a whole device.
    pub fn is_share(&self) -> bool {
        self.gpus == 1 && self.gpu_milli < WHOLE_GPU
    }
}

impl Left {
    /// What is left of a node of a cluster.
    pub fn of(cluster: &Cluster, node: NodeId) -> Self {
        Self { cpu_milli: cluster.node(node).cpu_free(), gpu_milli: cluster.gpu_milli_left(node) }
    }

    /// All thousandths that are left.
    pub fn idle(&self) -> u32 {
        self.gpu_milli.iter().map(|&left| u32::from(left)).sum()
    }

    /// What would be left if these devices were given to an instance.
    #[must_use]
    pub fn without(&self, ask: &Ask, gpus: GpuMask) -> Self {
        let mut left = *self;
        if left.cpu_milli != UNLIMITED {
            left.cpu_milli -= ask.cpu_milli;
        }
        for (gpu, milli) in left.gpu_milli.iter_mut().enumerate() {
            *milli -= if gpus >> gpu & 1 == 1 { ask.gpu_milli } else { 0 };
        }
        left
    }

    /// The devices that have at least so much left.
    pub fn with_at_least(&self, gpu_milli: u16) -> GpuMask {
        let bit = |(gpu, &left): (usize, &u16)| GpuMask::from(left >= gpu_milli) << gpu;
        self.gpu_milli.iter().enumerate().map(bit).fold(0, |mask, bit| mask | bit)
    }
}

/// The devices that an instance may be given on a node, one choice after another: for a share each device that has
/// enough left, ascending; for whole devices the lowest that are free; for a CPU-only instance none. No choice at all if
/// the node has too little CPU or too few devices.
pub fn choices(left: &Left, ask: &Ask) -> impl Iterator<Item = GpuMask> + use<> {
    let able = left.with_at_least(ask.gpu_milli);
    let fits = left.cpu_milli >= ask.cpu_milli && able.count_ones() >= u32::from(ask.gpus);
    let mut rest = if ask.is_share() { able } else { 0 };
    let mut whole = crate::cluster::lowest_gpus(able, ask.gpus).filter(|_| fits && !ask.is_share());
    std::iter::from_fn(move || {
        if rest == 0 || !fits {
            return whole.take();
        }
        let lowest = rest & rest.wrapping_neg();
        rest &= rest - 1;
        Some(lowest)
    })
}

#[cfg(test)]
mod tests;
