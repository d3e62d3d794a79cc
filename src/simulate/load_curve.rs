//! What a scheduler made of the load that had arrived.

use super::measures::Interval;
use crate::cluster::WHOLE_GPU;

/// The time of a run by the load that had arrived: what all jobs asked for that were there, running or waiting, shares of a
/// GPU as such, in percent of the cluster. Where no job ever leaves this is all that has been submitted, as in the inflation curves of FGD (Weng et
/// al., *Beware of Fragmentation*, USENIX ATC 2023); otherwise what has left no longer counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadCurve {
    gpus: u64,
    /// By the percentage, rounded down.
    bins: Vec<LoadBin>,
}

/// The time in which the load was within one percent of the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadBin {
    /// Seconds.
    pub seconds: u64,
    /// What running jobs asked for, in thousandths of GPU-seconds. A device that shares lie on counts no more than they ask.
    pub allocated_milli: u128,
    /// Node-seconds of avoidable partial nodes.
    pub n_sif: u128,
}

impl LoadCurve {
    /// The last bin, in percent, to which all larger loads belong as well.
    pub const MOST_PERCENT: usize = 200;

    pub(super) fn new(gpus: u64) -> Self {
        Self { gpus, bins: vec![LoadBin::default(); Self::MOST_PERCENT + 1] }
    }

    /// The bins from 0 % on.
    pub fn bins(&self) -> &[LoadBin] {
        &self.bins
    }

    pub(super) fn add(&mut self, interval: &Interval) {
        let load = u128::from(interval.running_milli) + u128::from(interval.waiting_milli);
        let whole = u128::from(self.gpus) * u128::from(WHOLE_GPU);
        let percent = (load * 100).checked_div(whole).unwrap_or(0);
        let bin = &mut self.bins[percent.min(Self::MOST_PERCENT as u128) as usize];
        let seconds = interval.to - interval.from;
        bin.seconds += seconds;
        bin.allocated_milli += u128::from(seconds) * u128::from(interval.running_milli);
        bin.n_sif += u128::from(seconds) * u128::from(interval.n_sif);
    }
}
