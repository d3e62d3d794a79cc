//! How things stood over time, in a bounded number of buckets however long a run is.

use super::measures::Interval;

/// What a curve follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gauge {
    /// Avoidable partial nodes.
    NSif,
    /// GPUs that running jobs hold.
    BusyGpus,
    /// Schedulable nodes that hold nothing.
    EmptyNodes,
    /// Waiting jobs.
    Waiting,
}

impl Gauge {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::NSif, Self::BusyGpus, Self::EmptyNodes, Self::Waiting];

    fn of(self, interval: &Interval) -> u64 {
        match self {
            Self::NSif => interval.n_sif,
            Self::BusyGpus => interval.busy_gpus,
            Self::EmptyNodes => interval.empty_nodes,
            Self::Waiting => interval.waiting,
        }
    }
}

/// What a gauge did in a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Its smallest value.
    pub min: u64,
    /// Its largest value.
    pub max: u64,
    /// Its sum over the seconds.
    pub sum: u128,
}

/// A stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// The seconds of the run in it: its width, but for the last one.
    pub seconds: u64,
    /// By [`Gauge`].
    extents: [Extent; Gauge::ALL.len()],
}

impl Bucket {
    /// What a gauge did in it.
    pub fn extent(&self, gauge: Gauge) -> Extent {
        self.extents[gauge as usize]
    }

    /// The mean of a gauge over its time; 0 if it has none.
    pub fn mean(&self, gauge: Gauge) -> f64 {
        if self.seconds == 0 { 0.0 } else { self.extent(gauge).sum as f64 / self.seconds as f64 }
    }

    /// Both together.
    fn and(&self, other: &Self) -> Self {
        if self.seconds == 0 || other.seconds == 0 {
            return if self.seconds == 0 { *other } else { *self };
        }
        let mut both = Self { seconds: self.seconds + other.seconds, ..Self::default() };
        for (at, extent) in both.extents.iter_mut().enumerate() {
            let (one, other) = (self.extents[at], other.extents[at]);
            *extent = Extent { min: one.min.min(other.min), max: one.max.max(other.max), sum: one.sum + other.sum };
        }
        both
    }

    fn of(interval: &Interval, seconds: u64) -> Self {
        let extent = |gauge: Gauge| {
            let value = gauge.of(interval);
            Extent { min: value, max: value, sum: u128::from(value) * u128::from(seconds) }
        };
        Self { seconds, extents: Gauge::ALL.map(extent) }
    }
}

/// A run over time. Buckets of equal width follow one another from its start; when there are more than [`Curve::MOST`],
/// each two of them become one of twice the width. Minima, maxima and sums are those of the intervals, exactly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Curve {
    start: u64,
    /// The binary logarithm of the seconds of a bucket.
    log_width: u32,
    buckets: Vec<Bucket>,
}

impl Curve {
    /// The most buckets of a curve. A run of more than half as many seconds has more than half as many of them.
    pub const MOST: usize = 512;

    /// When the first bucket begins, in seconds of the trace.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// The seconds of a bucket.
    pub fn width(&self) -> u64 {
        1 << self.log_width
    }

    /// All buckets.
    pub fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    /// The seconds of all buckets.
    pub fn seconds(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.seconds).sum()
    }

    /// Adds an interval, which follows the one before.
    pub(super) fn add(&mut self, interval: &Interval) {
        if self.buckets.is_empty() {
            self.start = interval.from;
        }
        while (interval.to - 1 - self.start) >> self.log_width >= Self::MOST as u64 {
            self.widen();
        }
        let mut from = interval.from - self.start;
        let to = interval.to - self.start;
        while from < to {
            let at = from >> self.log_width;
            let end = (at + 1).saturating_mul(self.width()).min(to);
            let part = Bucket::of(interval, end - from);
            match self.buckets.get_mut(at as usize) {
                Some(bucket) => *bucket = bucket.and(&part),
                None => self.buckets.push(part),
            }
            from = end;
        }
    }

    fn widen(&mut self) {
        self.buckets = grouped(&self.buckets, 2).collect();
        self.log_width += 1;
    }

    /// The same in slots of `width` seconds, which is to be a multiple of its own.
    pub fn slots(&self, width: u64) -> Vec<Bucket> {
        let each = usize::try_from(width >> self.log_width).unwrap_or(usize::MAX).max(1);
        grouped(&self.buckets, each).collect()
    }
}

fn grouped(buckets: &[Bucket], each: usize) -> impl Iterator<Item = Bucket> + '_ {
    buckets.chunks(each).map(|some| some.iter().fold(Bucket::default(), |sum, bucket| sum.and(bucket)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(from: u64, to: u64, value: u64) -> Interval {
        Interval {
            from,
            to,
            running: 0,
            waiting: 7,
            running_milli: 0,
            waiting_milli: 0,
            busy_gpus: value,
            n_sif: 1,
            empty_nodes: 0,
            wcc: None,
            fragmented: false,
            lacking: false,
        }
    }

    #[test]
    fn buckets_are_what_a_second_by_second_account_says() {
        // Lengths and values with no pattern; each prefix is compared with an array of seconds.
        let mut state = 12_345u64;
        let mut next = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let (mut curve, mut seconds, mut now) = (Curve::default(), Vec::new(), 1000);
        for _ in 0..400 {
            let (length, value) = (1 + next(30), next(100));
            curve.add(&interval(now, now + length, value));
            seconds.extend(std::iter::repeat_n(value, length as usize));
            now += length;
            assert!(curve.buckets().len() <= Curve::MOST);
            assert!(seconds.len() <= Curve::MOST || curve.buckets().len() > Curve::MOST / 2);
        }
        assert!(curve.width() > 4);
        let wide = curve.width() * 5;
        let coarse = curve.slots(wide);
        for (width, buckets) in [(curve.width(), curve.buckets()), (wide, &coarse)] {
            assert_eq!(buckets.len(), seconds.len().div_ceil(width as usize));
            for (bucket, part) in buckets.iter().zip(seconds.chunks(width as usize)) {
                let extent = bucket.extent(Gauge::BusyGpus);
                assert_eq!(bucket.seconds, part.len() as u64);
                assert_eq!(extent.min, *part.iter().min().unwrap());
                assert_eq!(extent.max, *part.iter().max().unwrap());
                assert_eq!(extent.sum, part.iter().map(|&value| u128::from(value)).sum());
                assert_eq!(bucket.mean(Gauge::Waiting), 7.0);
            }
        }
    }

    #[test]
    fn the_longest_run_that_can_be_is_a_curve() {
        let mut curve = Curve::default();
        curve.add(&interval(0, 1, 1));
        curve.add(&interval(1, u64::MAX, 3));
        assert_eq!(curve.buckets().len(), Curve::MOST);
        assert_eq!(curve.buckets()[0].extent(Gauge::BusyGpus).min, 1);
        assert_eq!(curve.buckets().iter().map(|bucket| u128::from(bucket.seconds)).sum::<u128>(), u64::MAX.into());
        assert_eq!(Curve::default().slots(3), []);
    }
}
