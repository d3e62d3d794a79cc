//! Who schedules in a simulation: a policy with its settings, or the oracle.

use std::fmt;
use std::str::FromStr;

use crate::anchor::Trigger;
use crate::decide::{PlaceOptions, Policy};

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
    },
    /// The oracle SIFOpt (COMPASS-ABS, arXiv 2606.09200, §5): after every event everything that runs is packed anew, for
    /// free. A job starts if and only if its instances and all that run fit onto the nodes somehow. Nothing is assigned
    /// to a node; a bound to compare with, not a policy to run.
    SifOpt,
}

/// The word for the oracle.
const SIF_OPT: &str = "sif-opt";

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
}

impl Scheduler {
    /// The words of all schedulers.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Policy::ALL.into_iter().map(Policy::name).chain([SIF_OPT])
    }

    /// Reads `POLICY` or, for those that compact, `POLICY:TRIGGER`; what is not said comes from `defaults`.
    ///
    /// # Errors
    /// If there is no such policy or trigger, or the policy has none.
    pub fn parse(word: &str, defaults: (Trigger, Option<u32>)) -> Result<Self, SchedulerError> {
        // A colon may also be part of the policy's own name.
        let whole = Policy::from_str(word).is_ok();
        let parts = word.split_once(':').filter(|_| !whole);
        let (name, trigger) = parts.map_or((word, None), |(name, trigger)| (name, Some(trigger)));
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
        Ok(policy.map_or(Self::SifOpt, |policy| Self::Placing { policy, trigger, migration_budget: defaults.1 }))
    }

    /// What the commit loop is to do; `None` for the oracle.
    pub(super) fn place_options(self, seed: u64) -> Option<PlaceOptions> {
        match self {
            Self::Placing { policy, trigger, migration_budget } => {
                // A pass decides one job at a time, so there is no window to rank.
                Some(PlaceOptions { policy, trigger, migration_budget, seed, window: 1, threads: 1 })
            }
            Self::SifOpt => None,
        }
    }

    /// The policy, if it is not the oracle.
    pub fn policy(self) -> Option<Policy> {
        match self {
            Self::Placing { policy, .. } => Some(policy),
            Self::SifOpt => None,
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
            Self::Placing { policy, migration_budget, .. } if compacts(policy) => migration_budget,
            _ => None,
        }
    }
}

impl fmt::Display for Scheduler {
    /// As [`Scheduler::parse`] reads it; the usual trigger is left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.policy().map_or(SIF_OPT, Policy::name))?;
        match self.trigger() {
            Some(trigger) if trigger != Trigger::default() => write!(f, ":{}", trigger.name()),
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
        for word in Scheduler::names().chain(["compass:when-blocked", "compass-paper:never"]) {
            assert_eq!(Scheduler::parse(word, defaults).unwrap().to_string(), word);
        }
        let trigger = |word| Scheduler::parse(word, (Trigger::Never, Some(3))).unwrap().trigger();
        assert_eq!(trigger("compass"), Some(Trigger::Never));
        assert_eq!(trigger("compass:every-event"), Some(Trigger::EveryEvent));
        assert_eq!(trigger("best-fit"), None);
        for bad in [
            "",
            "fft",
            "fgd:when-blocked",
            "first-fit:peer",
            "compass:",
            "compass:often",
            "best-fit:never",
            "sif-opt:never",
        ] {
            assert!(Scheduler::parse(bad, defaults).is_err(), "{bad}");
        }
    }
}
