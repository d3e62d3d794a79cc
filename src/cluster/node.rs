//! A node: its devices, what they hold, and its other resources.

use super::capacity::slot_width;
use super::composition::Composition;
use super::ids::{DomainId, PoolId, RackId};
use super::request::{UNLIMITED, Within};

/// A set of devices of one node: bit i is device i.
pub type GpuMask = u16;

/// One node, as the ledger keeps it. The bit planes (`busy`, `anchors`, `usable`) are derived from who holds what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub(super) owners_at: u32,
    pub(super) busy: GpuMask,
    pub(super) anchors: GpuMask,
    pub(super) shared: GpuMask,
    pub(super) usable: GpuMask,
    pub(super) composition: Composition,
    pub(super) devices: u8,
    pub(super) capacity: u8,
    pub(super) schedulable: bool,
    pub(super) pool: PoolId,
    pub(super) domain: Option<DomainId>,
    pub(super) rack: Option<RackId>,
    pub(super) cpu_milli: u32,
    pub(super) memory_mib: u32,
    pub(super) cpu_used: u64,
    pub(super) memory_used: u64,
}

impl Node {
    /// Devices that are held.
    pub fn busy(&self) -> GpuMask {
        self.busy
    }

    /// Devices that instances of two GPUs or more hold.
    pub fn anchors(&self) -> GpuMask {
        self.anchors
    }

    /// Devices that shares lie on; each counts as one busy instance of one GPU.
    pub fn shared(&self) -> GpuMask {
        self.shared
    }

    /// Devices that work, whoever holds them.
    pub fn usable(&self) -> GpuMask {
        self.usable
    }

    /// Devices that work and that nobody holds.
    pub fn free(&self) -> GpuMask {
        self.usable & !self.busy
    }

    /// The number of devices that work and that nobody holds.
    pub fn free_gpus(&self) -> u8 {
        self.capacity - self.composition.busy()
    }

    /// All devices, broken ones included.
    pub fn devices(&self) -> u8 {
        self.devices
    }

    /// The devices that work: what the method calls G. 0 if all are broken.
    pub fn capacity(&self) -> u8 {
        self.capacity
    }

    /// The multiset of instance sizes it holds.
    pub fn composition(&self) -> Composition {
        self.composition
    }

    /// Whether instances may be placed here or moved here.
    pub fn schedulable(&self) -> bool {
        self.schedulable
    }

    /// Its pool.
    pub fn pool(&self) -> PoolId {
        self.pool
    }

    /// Its NVLink domain, if known.
    pub fn domain(&self) -> Option<DomainId> {
        self.domain
    }

    /// Its rack, if known.
    pub fn rack(&self) -> Option<RackId> {
        self.rack
    }

    /// The number of its domain or rack, if known.
    pub fn region(&self, within: Within) -> Option<u32> {
        match within {
            Within::Domain => self.domain.map(|domain| domain.0),
            Within::Rack => self.rack.map(|rack| rack.0),
        }
    }

    /// All its milli-cores, or `UNLIMITED`.
    pub fn cpu_milli(&self) -> u32 {
        self.cpu_milli
    }

    /// All its MiB, or `UNLIMITED`.
    pub fn memory_mib(&self) -> u32 {
        self.memory_mib
    }

    /// Free milli-cores; `UNLIMITED` if it sets no limit, 0 if it is overcommitted.
    pub fn cpu_free(&self) -> u32 {
        free_amount(self.cpu_milli, self.cpu_used)
    }

    /// Free MiB; `UNLIMITED` if it sets no limit, 0 if it is overcommitted.
    pub fn memory_free(&self) -> u32 {
        free_amount(self.memory_mib, self.memory_used)
    }

    /// Whether its free CPU and memory are enough for this much.
    pub fn has_cpu_and_memory(&self, cpu_milli: u32, memory_mib: u32) -> bool {
        // `UNLIMITED` is more than any amount.
        self.cpu_free() >= cpu_milli && self.memory_free() >= memory_mib
    }

    /// How many instances that ask this much each its free CPU and memory are enough for; `u32::MAX` where nothing limits
    /// them.
    pub fn room_by_cpu_and_memory(&self, cpu_milli: u32, memory_mib: u32) -> u32 {
        let by = |free: u32, each: u32| if each == 0 || free == UNLIMITED { u32::MAX } else { free / each };
        by(self.cpu_free(), cpu_milli).min(by(self.memory_free(), memory_mib))
    }

    /// Milli-cores in use, which a snapshot may have at more than there are.
    pub fn cpu_used(&self) -> u64 {
        self.cpu_used
    }

    /// MiB in use, which a snapshot may have at more than there are.
    pub fn memory_used(&self) -> u64 {
        self.memory_used
    }

    /// True if more milli-cores or MiB are in use than there are.
    pub fn overcommitted(&self) -> bool {
        (self.cpu_milli != UNLIMITED && self.cpu_used > u64::from(self.cpu_milli))
            || (self.memory_mib != UNLIMITED && self.memory_used > u64::from(self.memory_mib))
    }

    /// The width of the slot that an anchor of `gpus` needs here.
    pub fn slot_width(&self, gpus: u8) -> u8 {
        slot_width(gpus, self.capacity)
    }
}

fn free_amount(all: u32, used: u64) -> u32 {
    if all == UNLIMITED { UNLIMITED } else { u64::from(all).saturating_sub(used) as u32 }
}

/// The lowest `n` devices of a set; `None` if it has fewer.
pub fn lowest_gpus(set: GpuMask, n: u8) -> Option<GpuMask> {
    if set.count_ones() < u32::from(n) {
        return None;
    }
    let mut rest = set;
    for _ in 0..n {
        rest &= rest - 1;
    }
    Some(set & !rest)
}

/// The devices of a set, ascending.
pub fn gpu_indices(set: GpuMask) -> impl Iterator<Item = u8> {
    (0..GpuMask::BITS as u8).filter(move |&i| set >> i & 1 == 1)
}
