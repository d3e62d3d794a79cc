//! What a caller of the operators may set.

use crate::cluster::Within;

/// When the invariant of §4 is restored by moving running instances. Fillers that Place and Remove draw are no
/// compaction; only the budget stops them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trigger {
    /// After every arrival and departure, as in the paper.
    #[default]
    EveryEvent,
    /// Only when a job cannot be placed though it would fit after compaction.
    WhenBlocked,
    /// Not at all.
    Never,
}

impl Trigger {
    /// All triggers.
    pub const ALL: [Self; 3] = [Self::EveryEvent, Self::WhenBlocked, Self::Never];

    /// The word on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::EveryEvent => "every-event",
            Self::WhenBlocked => "when-blocked",
            Self::Never => "never",
        }
    }

    /// The trigger of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|trigger| trigger.name() == name)
    }
}

/// Which operators run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variant {
    /// The invariant: after every event at most one slotted node of a pool has unprofiled room, at most one pool node is
    /// partial, and no vacancy is open while a pool node holds a 1-GPU instance.
    #[default]
    Invariant,
    /// Algorithm 1 as printed, which does not keep theorem 1.
    Paper,
}

/// The settings of the operators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Which operators.
    pub variant: Variant,
    /// When to compact.
    pub trigger: Trigger,
    /// The most instances an event may migrate (net); `None` is no limit. 0 stops filler moves too.
    pub migration_budget: Option<u32>,
    /// The only one of [`State::regions`](crate::anchor::State::regions) that a job may go to, whatever it asks itself.
    pub region: Option<(Within, usize)>,
}
