//! What is measured while time passes: sums of integers over intervals.

/// A time in which nothing happened, and how things stood. Never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// From this second on.
    pub from: u64,
    /// Up to, and without, this one.
    pub to: u64,
    /// Running jobs.
    pub running: u64,
    /// Waiting jobs.
    pub waiting: u64,
    /// What the running jobs ask for, in thousandths of a GPU.
    pub running_milli: u64,
    /// What the waiting jobs ask for, in thousandths of a GPU.
    pub waiting_milli: u64,
    /// GPUs that running jobs hold; one that shares lie on is one.
    pub busy_gpus: u64,
    /// Avoidable partial nodes.
    pub n_sif: u64,
    /// Schedulable nodes that hold nothing.
    pub empty_nodes: u64,
    /// Whether the Workload Composition Condition holds in all pools; `None` where it has no meaning.
    pub wcc: Option<bool>,
    /// A job waits at the head of the queue although as much of the GPUs is free as it asks for, in thousandths: rests of
    /// shared ones count.
    pub fragmented: bool,
    /// A job waits at the head of the queue that asks for more than is free. Where a job waits and it is neither,
    /// the head asks for no GPU at all.
    pub lacking: bool,
}

/// Sums over all intervals, from the first submission to the last finish. The peak is the time in which the queue is not
/// empty (T_peak of COMPASS-ABS, arXiv 2606.09200, eq. 14).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Seconds.
    pub seconds: u64,
    /// Seconds of the peak.
    pub peak_seconds: u64,
    /// Seconds of the peak in which as many GPUs were free as the head asked for.
    pub fragmented_seconds: u64,
    /// Seconds of the peak in which fewer GPUs were free than the head asked for.
    pub lacking_seconds: u64,
    /// Seconds in which the Workload Composition Condition held.
    pub wcc_seconds: u64,
    /// Whether it had a meaning all the time.
    pub wcc_known: bool,
    /// GPU-seconds held.
    pub busy: u128,
    /// GPU-seconds held in the peak.
    pub peak_busy: u128,
    /// The most GPUs held in the peak: the allocation at saturation.
    pub peak_busy_max: u64,
    /// Node-seconds of avoidable partial nodes.
    pub n_sif: u128,
    /// Node-seconds of avoidable partial nodes in the peak.
    pub peak_n_sif: u128,
    /// Node-seconds of empty nodes.
    pub empty: u128,
    /// Job-seconds in the queue.
    pub waiting: u128,
    /// The most avoidable partial nodes.
    pub n_sif_max: u64,
    /// The longest queue.
    pub waiting_max: u64,
}

impl Totals {
    /// Before the first interval.
    pub(super) fn new() -> Self {
        Self { wcc_known: true, ..Self::default() }
    }

    /// Adds an interval.
    pub(super) fn add(&mut self, interval: &Interval) {
        let seconds = interval.to - interval.from;
        let times = |n: u64| u128::from(seconds) * u128::from(n);
        self.seconds += seconds;
        self.wcc_known &= interval.wcc.is_some();
        if interval.wcc == Some(true) {
            self.wcc_seconds += seconds;
        }
        self.busy += times(interval.busy_gpus);
        self.n_sif += times(interval.n_sif);
        self.empty += times(interval.empty_nodes);
        self.waiting += times(interval.waiting);
        self.n_sif_max = self.n_sif_max.max(interval.n_sif);
        self.waiting_max = self.waiting_max.max(interval.waiting);
        if interval.waiting > 0 {
            self.peak_seconds += seconds;
            self.peak_busy += times(interval.busy_gpus);
            self.peak_busy_max = self.peak_busy_max.max(interval.busy_gpus);
            self.peak_n_sif += times(interval.n_sif);
            if interval.fragmented {
                self.fragmented_seconds += seconds;
            }
            if interval.lacking {
                self.lacking_seconds += seconds;
            }
        }
    }
}
