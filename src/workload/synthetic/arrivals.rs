//! When jobs arrive: a Poisson process whose rate may vary over time.
//!
//! All of it is one idea: the gaps between arrivals are drawn at the mean rate, and a clock that runs faster where the rate
//! is higher turns them into times. Rates are in percent of the mean, times in milliseconds; all are integers.

use super::Dice;

/// How the rate of arrivals varies. Over a long time each has the same mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arrivals {
    /// Not at all: a Poisson process.
    #[default]
    Poisson,
    /// With the hour of the day, [`HOURS`]: few at night, two humps with lunch between them, some in the evening, the same
    /// every day.
    Diurnal,
    /// Calm times of three hours on average at half the mean rate, and bursts of twenty minutes on average at 5.5 times
    /// the mean rate; both lengths are exponential (a Markov-modulated Poisson process of two states).
    Bursts,
}

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;

/// The rate of each hour of a day in percent of the mean. The shape is the one that the published traces of training
/// clusters share (day and night, lunch and dinner); the numbers are round ones of ours.
pub const HOURS: [u64; 24] =
    [70, 55, 40, 30, 25, 25, 30, 45, 80, 130, 165, 160, 115, 120, 165, 175, 170, 160, 130, 105, 115, 120, 100, 70];

/// The mean lengths and the rates of calm times and of bursts.
const CALM: (u64, u64) = (3 * HOUR, 50);
const BURST: (u64, u64) = (20 * MINUTE, 550);

impl Arrivals {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Poisson, Self::Diurnal, Self::Bursts];

    /// The word on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Poisson => "poisson",
            Self::Diurnal => "diurnal",
            Self::Bursts => "bursts",
        }
    }

    /// The process of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|arrivals| arrivals.name() == name)
    }
}

/// The time, which runs by gaps at the mean rate.
#[derive(Debug)]
pub(super) struct Clock {
    arrivals: Arrivals,
    dice: Dice,
    now: u64,
    /// Until when the rate is what it is, and how many spells of it there were before.
    until: u64,
    spell: u64,
}

impl Clock {
    /// Midnight of the first day.
    pub(super) fn new(arrivals: Arrivals, seed: u64) -> Self {
        let mut clock = Self { arrivals, dice: Dice::new(seed, 4), now: 0, until: 0, spell: 0 };
        clock.until = clock.length();
        clock
    }

    /// The milliseconds since midnight of the first day.
    pub(super) fn now(&self) -> u64 {
        self.now
    }

    fn rate(&self) -> u64 {
        match self.arrivals {
            Arrivals::Poisson => 100,
            Arrivals::Diurnal => HOURS[(self.spell % 24) as usize],
            Arrivals::Bursts => {
                if self.spell.is_multiple_of(2) {
                    CALM.1
                } else {
                    BURST.1
                }
            }
        }
    }

    /// How long the rate stays.
    fn length(&mut self) -> u64 {
        match self.arrivals {
            Arrivals::Poisson => u64::MAX,
            Arrivals::Diurnal => HOUR,
            Arrivals::Bursts => self.dice.exponential(if self.spell.is_multiple_of(2) { CALM.0 } else { BURST.0 }),
        }
    }

    /// Lets as much time pass as has `gap` milliseconds at the mean rate.
    pub(super) fn advance(&mut self, gap: u64) {
        // In hundredths of a millisecond at the mean rate.
        let mut left = u128::from(gap) * 100;
        loop {
            let rate = u128::from(self.rate());
            let spell = u128::from(self.until - self.now) * rate;
            if left < spell || self.until == u64::MAX {
                self.now = self.now.saturating_add(u64::try_from(left / rate).unwrap_or(u64::MAX));
                return;
            }
            left -= spell;
            self.now = self.until;
            self.spell += 1;
            self.until = self.until.saturating_add(self.length());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_process_has_the_mean_rate() {
        assert_eq!(HOURS.iter().sum::<u64>(), 2400);
        assert_eq!(CALM.0 * CALM.1 + BURST.0 * BURST.1, (CALM.0 + BURST.0) * 100);
        for arrivals in Arrivals::ALL {
            let mut clock = Clock::new(arrivals, 3);
            for _ in 0..1_000_000 {
                clock.advance(10_000);
            }
            // Rounding down loses a half millisecond a gap; the spells of bursts scatter by a few percent.
            let off = clock.now().abs_diff(10_000_000_000);
            assert!(off < if arrivals == Arrivals::Bursts { 500_000_000 } else { 1_000_000 }, "{arrivals:?}: {off}");
            assert_eq!(Arrivals::from_name(arrivals.name()), Some(arrivals));
        }
    }

    #[test]
    fn a_day_has_its_humps_and_a_burst_is_one() {
        let per_hour = |arrivals: Arrivals| {
            let (mut clock, mut dice, mut hours) = (Clock::new(arrivals, 7), Dice::new(7, 5), vec![0u64; 24 * 60]);
            while let Some(hour) = hours.get_mut((clock.now() / HOUR) as usize) {
                *hour += 1;
                clock.advance(dice.exponential(HOUR / 100));
            }
            hours
        };
        let days = per_hour(Arrivals::Diurnal);
        for (hour, &rate) in HOURS.iter().enumerate() {
            let n: u64 = days.iter().skip(hour).step_by(24).sum();
            // 60 days of about `rate` arrivals each: four standard deviations.
            let off = n.abs_diff(60 * rate) as f64;
            assert!(off < 4.0 * (60.0 * rate as f64).sqrt(), "hour {hour}: {n}");
        }
        // The variance of a Poisson process is its mean; that of bursts is many times as much.
        let dispersion = |hours: &[u64]| {
            let mean = hours.iter().sum::<u64>() as f64 / hours.len() as f64;
            hours.iter().map(|&n| (n as f64 - mean).powi(2)).sum::<f64>() / hours.len() as f64 / mean
        };
        assert!((0.8..1.2).contains(&dispersion(&per_hour(Arrivals::Poisson))));
        assert!(dispersion(&per_hour(Arrivals::Bursts)) > 20.0);
    }
}
