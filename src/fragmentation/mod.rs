//! stub
use crate::workload::Demand;
/// Stub.
#[derive(Clone, Debug)]
pub struct PoolFragmentation {
    capacity: u8,
    demand: Demand,
}
impl PoolFragmentation {
    /// Stub.
    pub fn new(capacity: u8) -> Self {
        Self { capacity, demand: Demand::new() }
    }
    /// Stub.
    pub fn add(&mut self, gpus: u8, n: u64) {
        self.demand.add(gpus, n)
    }
    /// Stub.
    pub fn remove(&mut self, gpus: u8, n: u64) {
        self.demand.remove(gpus, n)
    }
    /// Stub.
    pub fn demand(&self) -> &Demand {
        &self.demand
    }
    /// Stub.
    pub fn phi_star(&mut self) -> u64 {
        u64::from(self.capacity > 0 && self.demand.gpus() % u64::from(self.capacity) != 0)
    }
}
