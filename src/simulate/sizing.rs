//! How large a cluster a trace needs (COMPASS-ABS, arXiv 2606.09200, eq. 12 and 13).

use std::collections::BTreeMap;
use std::str::FromStr;

use crate::workload::TraceJob;

/// A share in (0, 1], kept as the decimal fraction that was written.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    numerator: u64,
    denominator: u64,
}

impl PartialEq for Share {
    /// 0.9 and 0.90 are the same share.
    fn eq(&self, other: &Self) -> bool {
        // Nine digits each.
        self.numerator * other.denominator == other.numerator * self.denominator
    }
}

impl Eq for Share {}

impl Default for Share {
    /// 0.90, the middle one of the method's evaluation.
    fn default() -> Self {
        Self { numerator: 90, denominator: 100 }
    }
}

/// A text that is no share.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found {0:?}, expected a decimal fraction above 0 and up to 1, of at most nine digits, such as 0.90")]
pub struct ShareError(String);

impl Share {
    /// The part of a whole of which this is at most the share.
    fn is_reached(self, part: u128, whole: u128) -> bool {
        // Times in seconds and nine digits leave room: 2^64 · 10^9 is far below 2^128.
        part * u128::from(self.denominator) >= whole * u128::from(self.numerator)
    }

    /// As a floating point number, for reports.
    pub fn as_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

impl FromStr for Share {
    type Err = ShareError;

    fn from_str(text: &str) -> Result<Self, ShareError> {
        let wrong = || ShareError(text.to_owned());
        let (whole, digits) = text.split_once('.').unwrap_or((text, ""));
        let plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if !plain(whole) || !plain(digits) || whole.len() + digits.len() == 0 || digits.len() > 9 {
            return Err(wrong());
        }
        let denominator = 10u64.pow(digits.len() as u32);
        let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| wrong())? };
        let digits: u64 = if digits.is_empty() { 0 } else { digits.parse().map_err(|_| wrong())? };
        let numerator = whole.checked_mul(denominator).and_then(|whole| whole.checked_add(digits)).ok_or_else(wrong)?;
        if (1..=denominator).contains(&numerator) { Ok(Self { numerator, denominator }) } else { Err(wrong()) }
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.denominator == 1 {
            return write!(f, "{}", self.numerator);
        }
        let width = self.denominator.ilog10() as usize;
        write!(f, "{}.{:0width$}", self.numerator / self.denominator, self.numerator % self.denominator)
    }
}

/// Where the horizon ends over which the demand of a trace is looked at. It starts at the first submission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Until {
    /// When the last job would have ended.
    #[default]
    LastEnd,
    /// At the last submission.
    LastSubmit,
}

/// p_η: the least `d` such that for at least a share `eta` of the horizon all jobs that would run then, each from its
/// submission for its duration, ask for at most `d` GPUs. Times in which nothing would run count. `jobs` are sorted by
/// submission.
///
/// The source knows whole GPUs alone. Shares are summed as such, and the sum is rounded up: a quantile of sums that are
/// rounded up is the same.
pub fn concurrent_demand(jobs: &[TraceJob], eta: Share, until: Until) -> u64 {
    let Some(first) = jobs.first() else { return 0 };
    let mut ends: Vec<(u64, u64)> =
        jobs.iter().map(|job| (job.submit_s.saturating_add(job.duration_s), job.demand_milli())).collect();
    ends.sort_unstable();
    let end = match until {
        Until::LastEnd => ends.last().map_or(0, |&(end, _)| end),
        Until::LastSubmit => jobs.last().map_or(0, |job| job.submit_s),
    };
    let mut seconds_at: BTreeMap<u64, u64> = BTreeMap::new();
    let (mut starting, mut ending) = (jobs.iter().peekable(), ends.iter().peekable());
    let (mut now, mut demand) = (first.submit_s, 0u64);
    while now < end {
        while let Some(job) = starting.next_if(|job| job.submit_s <= now) {
            demand = demand.saturating_add(job.demand_milli());
        }
        while let Some(&(_, milli)) = ending.next_if(|&&(at, _)| at <= now) {
            demand = demand.saturating_sub(milli);
        }
        let next_start = starting.peek().map_or(end, |job| job.submit_s);
        let next_end = ending.peek().map_or(end, |&&(at, _)| at);
        let next = next_start.min(next_end).min(end);
        *seconds_at.entry(demand).or_default() += next - now;
        now = next;
    }
    let whole = u128::from(end.saturating_sub(first.submit_s));
    let mut part = 0;
    for (&demand, &seconds) in &seconds_at {
        part += u128::from(seconds);
        if eta.is_reached(part, whole) {
            return demand.div_ceil(u64::from(TraceJob::WHOLE));
        }
    }
    0
}

/// N(η): the nodes of `capacity` GPUs that hold p_η, and at least as many as the largest job needs by itself, on whose
/// devices as many shares lie as go on one; at least one. Jobs whose instances no such node can hold are passed over.
pub fn nodes_for(jobs: &[TraceJob], eta: Share, until: Until, capacity: u8) -> u64 {
    let alone = |job: &TraceJob| match capacity.checked_div(job.gpus_per_instance) {
        None | Some(0) => 0,
        Some(on_a_node) => {
            let on_a_device = u32::from(TraceJob::WHOLE / job.gpu_milli.max(1));
            u64::from(job.instances.div_ceil(u32::from(on_a_node) * on_a_device))
        }
    };
    let largest = jobs.iter().map(alone).max().unwrap_or(0);
    concurrent_demand(jobs, eta, until).div_ceil(u64::from(capacity.max(1))).max(largest).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(submit_s: u64, duration_s: u64, instances: u32, gpus_per_instance: u8) -> TraceJob {
        TraceJob { submit_s, duration_s, instances, gpus_per_instance, ..TraceJob::default() }
    }

    #[test]
    fn shares_are_decimal_fractions() {
        for (text, shown) in
            [("0.90", "0.90"), (".5", "0.5"), ("1", "1"), ("1.0", "1.0"), ("0.000000001", "0.000000001")]
        {
            assert_eq!(text.parse::<Share>().unwrap().to_string(), shown);
        }
        for bad in ["", ".", "0", "1.1", "2", "-0.5", "0.9x", "0.1234567890", "1e-1", "99999999999999999999"] {
            assert!(bad.parse::<Share>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_quantile_is_the_least_that_covers_the_share_gaps_included() {
        // 8 GPUs in [10, 20), 12 in [20, 30), 4 in [30, 40), nothing in [40, 90), 1 in [90, 110).
        let jobs = [job(10, 20, 1, 8), job(20, 20, 1, 4), job(90, 20, 1, 1)];
        let at = |eta: &str, until| concurrent_demand(&jobs, eta.parse().unwrap(), until);
        assert_eq!(at("0.5", Until::LastEnd), 0);
        assert_eq!(at("0.51", Until::LastEnd), 1);
        assert_eq!(at("0.7", Until::LastEnd), 1);
        assert_eq!(at("0.8", Until::LastEnd), 4);
        assert_eq!(at("0.9", Until::LastEnd), 8);
        assert_eq!(at("0.901", Until::LastEnd), 12);
        // [10, 90): 50 of 80 seconds nothing.
        assert_eq!(at("0.625", Until::LastSubmit), 0);
        assert_eq!(at("0.626", Until::LastSubmit), 4);
        assert_eq!(concurrent_demand(&[], "1".parse().unwrap(), Until::LastEnd), 0);
        assert_eq!(concurrent_demand(&[job(3, 0, 1, 8)], "1".parse().unwrap(), Until::LastEnd), 0);
    }

    #[test]
    fn shares_are_summed_and_the_sum_is_rounded_up() {
        let share = |submit_s, duration_s, instances, gpu_milli| TraceJob {
            gpu_milli,
            ..job(submit_s, duration_s, instances, 1)
        };
        // 1.2 GPUs in [0, 10), 2.001 in [10, 20), 0.801 in [20, 30), 8.801 in [30, 40).
        let jobs = [share(0, 20, 3, 400), share(10, 30, 1, 801), job(30, 10, 1, 8)];
        let at = |eta: &str| concurrent_demand(&jobs, eta.parse().unwrap(), Until::LastEnd);
        assert_eq!(["0.25", "0.26", "0.5", "0.51", "0.75", "0.76"].map(at), [1, 2, 2, 3, 3, 9]);
        let nodes = |jobs: &[TraceJob], eta: &str| nodes_for(jobs, eta.parse().unwrap(), Until::LastEnd, 8);
        assert_eq!((nodes(&jobs, "0.75"), nodes(&jobs, "1")), (1, 2));
        // Two of 400 go on a device, 16 on a node; of 501 one and 8.
        assert_eq!(nodes(&[share(0, 1, 33, 400), share(50, 900, 1, 1)], "0.1"), 3);
        assert_eq!(nodes(&[share(0, 1, 33, 501), share(50, 900, 1, 1)], "0.1"), 5);
    }

    #[test]
    fn the_largest_job_has_room_by_itself() {
        let eta: Share = "0.1".parse().unwrap();
        // Five instances of 3 GPUs: two on a node.
        assert_eq!(nodes_for(&[job(0, 1, 5, 3), job(100, 900, 1, 1)], eta, Until::LastEnd, 8), 3);
        assert_eq!(nodes_for(&[job(0, 100, 17, 1)], eta, Until::LastEnd, 8), 3);
        assert_eq!(nodes_for(&[job(0, 100, 2, 16)], eta, Until::LastEnd, 8), 4);
        assert_eq!(nodes_for(&[], eta, Until::LastEnd, 8), 1);
    }
}
