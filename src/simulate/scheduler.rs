//! Who schedules in a simulation: a policy with its settings, or the oracle.

use std::fmt;
use std::str::FromStr;

use crate::anchor::Trigger;
use crate::decide::{PlaceOptions, Policy, Repack};

/// Who schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// A policy of `place`.
    Placing {
        /// Who decides where a job goes.
        policy: Policy,
        /// When COMPASS compacts.
        trigger: Trigger,
        /// The most instances that an event may migrate; `None` is no limit.
        migration_budget: Option<u32>,
        /// What each job that make-room moves must save its head of the queue in waiting, in seconds, if that is more than
        /// its pause. The more, the fewer moves.
        price_s: u64,
    },
    /// Best-fit, and at fixed times a repacking of all that runs.
    ///
    /// `fft` and `drr` of the evaluation of COMPASS-ABS (arXiv 2606.09200, §5), which tells no more of them than this: FFT
    /// places everything anew at the start of a round by an integer program, and best-fit within the round; DRR moves the
    /// jobs of the least used node onto well-used ones at the start of a cycle. Assumed here: rounds count from the first
    /// submission, 360 s each by default; a round comes after the departures and before the arrivals of its instant, and
    /// only where something started or left since the last; its moves are one event, so each job that it moves pauses once.
    /// FFT packs onto the fewest nodes, and moves nothing where that frees none. DRR goes on from node to node while one
    /// can be emptied whole, onto nodes that hold something. DRR in particular is an approximation.
    Rounds {
        /// What happens at the start of a round.
        repack: Repack,
        /// How long a round is, in seconds; at least 1.
        round_s: u64,
    },
    /// The oracle SIFOpt (COMPASS-ABS, arXiv 2606.09200, §5): after every event everything that runs is packed anew, for
    /// free. A job starts if and only if its instances and all that run fit onto the nodes somehow. Nothing is assigned
    /// to a node; a bound to compare with, not a policy to run.
    SifOpt,
}

/// The word for the oracle.
const SIF_OPT: &str = "sif-opt";

/// The words for those that repack.
const REPACKS: [(&str, Repack); 2] = [("fft", Repack::FewestNodes), ("drr", Repack::DrainLeastUsed)];

/// How long a round is where nobody says so.
pub const ROUND_S: u64 = 360;

/// A word that names no scheduler.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchedulerError {
    /// No such policy.
    #[error("there is no policy \"{0}\", expected one of {names}", names = Scheduler::names().collect::<Vec<_>>().join(", "))]
    Policy(String),
    /// No such trigger.
    #[error("found {0:?} behind the policy, expected every-event, when-blocked or never")]
    Trigger(String),
    /// A trigger for a policy that never compacts.
    #[error("found a trigger for \"{0}\", expected one for compass or compass-paper alone")]
    NoTrigger(String),
    /// No such round.
    #[error("found {0:?} behind the policy, expected the seconds of a round, at least 1")]
    Round(String),
    /// No such price.
    #[error("found {0:?} behind the policy, expected the seconds of waiting that a moved job must save")]
    Price(String),
    /// No such budget.
    #[error("found {0:?} behind the trigger or price, expected the most instances that an event may move")]
    Budget(String),
}

impl Scheduler {
    /// The words of all schedulers.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Policy::ALL.into_iter().map(Policy::name).chain(REPACKS.map(|(name, _)| name)).chain([SIF_OPT])
    }

    /// Reads `POLICY`; for those that compact also `POLICY:TRIGGER` or `POLICY:TRIGGER:BUDGET`, for the one that makes room
    /// `POLICY:PRICE` or `POLICY:PRICE:BUDGET`, where what is not said comes from `defaults`; and for those that repack
    /// `POLICY:SECONDS`.
    ///
    /// # Errors
    /// If there is no such policy or trigger, the policy has none, or the budget is no number.
    pub fn parse(word: &str, defaults: (Trigger, Option<u32>)) -> Result<Self, SchedulerError> {
        for (name, repack) in REPACKS {
            let round = match word.strip_prefix(name) {
                Some("") => Some(ROUND_S),
                Some(rest) => rest.strip_prefix(':').map(|round| round.parse().unwrap_or(0)),
                None => None,
            };
            match round {
                None => {}
                Some(0) => return Err(SchedulerError::Round(word[name.len() + 1..].to_owned())),
                Some(round_s) => return Ok(Self::Rounds { repack, round_s }),
            }
        }
        // A colon may also be part of the policy's own name.
        let whole = Policy::from_str(word).is_ok();
        let mut parts = word.splitn(if whole { 1 } else { 3 }, ':');
        let (name, second, budget) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
        let makes_room = Policy::from_str(name).is_ok_and(Policy::makes_room);
        let (price, trigger) = if makes_room { (second, None) } else { (None, second) };
        let policy = match Policy::from_str(name) {
            Ok(policy) => Some(policy),
            Err(_) if name == SIF_OPT => None,
            Err(_) => return Err(SchedulerError::Policy(name.to_owned())),
        };
        if trigger.is_some() && !policy.is_some_and(compacts) {
            return Err(SchedulerError::NoTrigger(name.to_owned()));
        }
        let trigger = match trigger {
            None => defaults.0,
            Some(word) => Trigger::from_name(word).ok_or_else(|| SchedulerError::Trigger(word.to_owned()))?,
        };
        let migration_budget = match budget {
            None => defaults.1,
            Some(word) => Some(word.parse().map_err(|_| SchedulerError::Budget(word.to_owned()))?),
        };
        let price_s = match price {
            None => 0,
            Some(word) => word.parse().map_err(|_| SchedulerError::Price(word.to_owned()))?,
        };
        Ok(policy.map_or(Self::SifOpt, |policy| Self::Placing { policy, trigger, migration_budget, price_s }))
    }

    /// Its word, without its settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Placing { policy, .. } => policy.name(),
            Self::Rounds { repack, .. } => {
                REPACKS.iter().find(|(_, other)| *other == repack).map_or("", |(name, _)| name)
            }
            Self::SifOpt => SIF_OPT,
        }
    }

    /// What the commit loop is to do; `None` for the oracle.
    pub(super) fn place_options(self, seed: u64) -> Option<PlaceOptions> {
        match self {
            Self::Placing { policy, trigger, migration_budget, .. } => {
                // A pass decides one job at a time, so there is no window to rank.
                Some(PlaceOptions { policy, trigger, migration_budget, seed, window: 1, threads: 1 })
            }
            Self::Rounds { .. } => {
                Some(PlaceOptions { policy: Policy::BestFit, seed, window: 1, threads: 1, ..PlaceOptions::default() })
            }
            Self::SifOpt => None,
        }
    }

    /// What happens at the start of a round, and how long a round is, if there are rounds.
    pub(super) fn rounds(self) -> Option<(Repack, u64)> {
        match self {
            Self::Rounds { repack, round_s } => Some((repack, round_s)),
            _ => None,
        }
    }

    /// How long a round is, if there are rounds.
    pub fn round_s(self) -> Option<u64> {
        self.rounds().map(|(_, round_s)| round_s)
    }

    /// The policy, if it is one of `place` and nothing else.
    pub fn policy(self) -> Option<Policy> {
        match self {
            Self::Placing { policy, .. } => Some(policy),
            _ => None,
        }
    }

    /// The least that a job which it moves for a blocked one must save that one in waiting, if it moves any for that.
    pub fn price_s(self) -> Option<u64> {
        match self {
            Self::Placing { policy, price_s, .. } if policy.makes_room() => Some(price_s),
            _ => None,
        }
    }

    /// When it compacts, if it ever does.
    pub fn trigger(self) -> Option<Trigger> {
        match self {
            Self::Placing { policy, trigger, .. } if compacts(policy) => Some(trigger),
            _ => None,
        }
    }

    /// The most instances that an event may migrate, if it migrates and there is a limit.
    pub fn migration_budget(self) -> Option<u32> {
        match self {
            Self::Placing { policy, migration_budget, .. } if compacts(policy) || policy.makes_room() => {
                migration_budget
            }
            _ => None,
        }
    }
}

impl fmt::Display for Scheduler {
    /// As [`Scheduler::parse`] reads it; the usual round is left out, and the usual trigger or price where no budget stands
    /// behind it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if let Some(round_s) = self.round_s().filter(|round_s| *round_s != ROUND_S) {
            return write!(f, ":{round_s}");
        }
        match (self.trigger(), self.migration_budget()) {
            (Some(trigger), Some(budget)) => write!(f, ":{}:{budget}", trigger.name()),
            (Some(trigger), None) if trigger != Trigger::default() => write!(f, ":{}", trigger.name()),
            (None, budget) => match (self.price_s(), budget) {
                (None | Some(0), None) => Ok(()),
                (price_s, None) => write!(f, ":{}", price_s.unwrap_or(0)),
                (price_s, Some(budget)) => write!(f, ":{}:{budget}", price_s.unwrap_or(0)),
            },
            _ => Ok(()),
        }
    }
}

fn compacts(policy: Policy) -> bool {
    matches!(policy, Policy::Compass | Policy::CompassPaper)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_back() {
        let defaults = (Trigger::EveryEvent, None);
        for word in Scheduler::names().chain([
            "compass:when-blocked",
            "compass-paper:never",
            "compass:every-event:4",
            "make-room:300",
            "make-room:0:4",
            "fft:60",
            "drr:1",
        ]) {
            assert_eq!(Scheduler::parse(word, defaults).unwrap().to_string(), word);
        }
        let trigger = |word| Scheduler::parse(word, (Trigger::Never, Some(3))).unwrap().trigger();
        assert_eq!(trigger("compass"), Some(Trigger::Never));
        assert_eq!(trigger("compass:every-event"), Some(Trigger::EveryEvent));
        assert_eq!(trigger("best-fit"), None);
        for bad in [
            "",
            "fgd:when-blocked",
            "first-fit:peer",
            "compass:",
            "compass:often",
            "best-fit:never",
            "sif-opt:never",
            "compass:never:x",
            "make-room:often",
            "make-room:4:often",
            "make-room:4:4:4",
            "fft:",
            "fft:0",
            "drr:x",
            "drr:1:2",
            "fftx",
        ] {
            assert!(Scheduler::parse(bad, defaults).is_err(), "{bad}");
        }
    }
}
