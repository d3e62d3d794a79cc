//! How things stood by minutes.

use super::measures::Interval;

/// Sums over one minute of the trace's time, of which the first and the last of a run may be cut short. Divided by
/// `seconds` each is the mean over the minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Minute {
    /// When it begins: a multiple of 60.
    pub time: u64,
    /// The seconds of it that belong to the run: 1 to 60.
    pub seconds: u64,
    /// Job-seconds of running jobs.
    pub running: u128,
    /// Job-seconds of waiting jobs.
    pub waiting: u128,
    /// GPU-seconds held.
    pub busy_gpus: u128,
    /// Node-seconds of avoidable partial nodes.
    pub n_sif: u128,
    /// Node-seconds of empty nodes.
    pub empty_nodes: u128,
}

/// Seconds of a minute.
const MINUTE: u64 = 60;

impl Minute {
    fn add(&mut self, interval: &Interval, seconds: u64) {
        let times = |n: u64| u128::from(n) * u128::from(seconds);
        self.seconds += seconds;
        self.running += times(interval.running);
        self.waiting += times(interval.waiting);
        self.busy_gpus += times(interval.busy_gpus);
        self.n_sif += times(interval.n_sif);
        self.empty_nodes += times(interval.empty_nodes);
    }
}

/// How many minutes the intervals of a run touch.
pub fn n_minutes(intervals: &[Interval]) -> u64 {
    let (Some(first), Some(last)) = (intervals.first(), intervals.last()) else { return 0 };
    last.to.div_ceil(MINUTE) - first.from / MINUTE
}

/// The intervals of a run, which follow one another, by minutes.
pub fn minutes(intervals: &[Interval]) -> impl Iterator<Item = Minute> + '_ {
    let (mut at, mut left) = (0, intervals.first().map_or(0, |first| first.from));
    std::iter::from_fn(move || {
        let time = left / MINUTE * MINUTE;
        let mut minute = Minute { time, ..Minute::default() };
        while let Some(interval) = intervals.get(at) {
            let to = interval.to.min(time.saturating_add(MINUTE));
            minute.add(interval, to - left);
            left = to;
            if to < interval.to {
                break;
            }
            at += 1;
            if to.is_multiple_of(MINUTE) {
                break;
            }
        }
        (minute.seconds > 0).then_some(minute)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(from: u64, to: u64, busy_gpus: u64) -> Interval {
        Interval {
            from,
            to,
            running: 1,
            waiting: 2,
            running_milli: 0,
            waiting_milli: 0,
            busy_gpus,
            n_sif: 3,
            empty_nodes: 4,
            wcc: None,
            fragmented: false,
            lacking: false,
        }
    }

    #[test]
    fn a_minute_is_what_the_intervals_in_it_add_up_to() {
        let intervals = [interval(50, 55, 8), interval(55, 130, 2), interval(130, 180, 1), interval(180, 181, 7)];
        let of = |minute: Minute| (minute.time, minute.seconds, minute.busy_gpus, minute.running, minute.empty_nodes);
        let found: Vec<_> = minutes(&intervals).map(of).collect();
        assert_eq!(found, [(0, 10, 50, 10, 40), (60, 60, 120, 60, 240), (120, 60, 70, 60, 240), (180, 1, 7, 1, 4)]);
        assert_eq!(n_minutes(&intervals), 4);
        assert_eq!((n_minutes(&[]), minutes(&[]).count()), (0, 0));
        let end = [interval(u64::MAX - 61, u64::MAX, 1)];
        assert_eq!(minutes(&end).map(|minute| minute.seconds).sum::<u64>(), 61);
        assert_eq!(minutes(&end).count() as u64, n_minutes(&end));
    }
}
