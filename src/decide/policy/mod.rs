//! The policies, one file each, with their sources.

mod best_fit;
pub(super) mod ca_fgd;
mod compass;
mod compass_paper;
mod dot_product;
mod fgd;
mod first_fit;
mod gpu_clustering;
mod gpu_packing;
mod make_room;
mod mcg;
pub(super) mod random;
pub(super) mod score;
mod worst_fit;

use std::ops::RangeInclusive;
use std::str::FromStr;

use self::score::Score;
use super::mix::Moment;
use crate::anchor::Variant;

/// Who decides where a job goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// COMPASS-ABS with the invariant of its theorem 1 restored after every event.
    #[default]
    Compass,
    /// COMPASS-ABS, algorithm 1 as printed.
    CompassPaper,
    /// The node with the fewest free GPUs that still fits.
    BestFit,
    /// The node with the most free GPUs.
    WorstFit,
    /// The node of the lowest number that fits.
    FirstFit,
    /// Any node that fits, all equally likely.
    Random,
    /// The node whose fragment, for what is typical, grows the least.
    Fgd(Arithmetic),
    /// The node whose free amounts are least like what is asked.
    DotProduct(Arithmetic),
    /// Used devices before used nodes before empty nodes.
    GpuPacking(Arithmetic),
    /// Nodes of instances of one kind.
    GpuClustering(Arithmetic),
    /// The node with the least CPU and GPUs left, as FGD's simulator has it.
    BestFitPeer,
    /// Best-fit, and the fewest moves where a job is blocked for want of the right holes.
    MakeRoom,
    /// FGD for what is typical in the long run and now, with an admission that may wait. An approximation.
    CaFgd,
    /// FGD for what is typical and what waits, whose queue is reordered. An approximation.
    Mcg,
}

/// How a policy reorders the jobs that wait, where there is time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reordering {
    /// Among how many jobs at the front of the queue it chooses.
    pub window: usize,
    /// By how many jobs behind it a job may be overtaken; then nobody passes it any more.
    pub overtakings: u32,
}

/// In which numbers a policy of FGD's simulator compares nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// In integers without rounding; ties go to the lowest node.
    #[default]
    Exact,
    /// As that simulator does: rounded to integers from 0 to 100; ties go to the node of the smallest name.
    Peer,
}

impl Policy {
    /// All policies.
    pub const ALL: [Self; 18] = [
        Self::Compass,
        Self::CompassPaper,
        Self::BestFit,
        Self::WorstFit,
        Self::FirstFit,
        Self::Random,
        Self::Fgd(Arithmetic::Exact),
        Self::DotProduct(Arithmetic::Exact),
        Self::GpuPacking(Arithmetic::Exact),
        Self::GpuClustering(Arithmetic::Exact),
        Self::BestFitPeer,
        Self::Fgd(Arithmetic::Peer),
        Self::DotProduct(Arithmetic::Peer),
        Self::GpuPacking(Arithmetic::Peer),
        Self::GpuClustering(Arithmetic::Peer),
        Self::MakeRoom,
        Self::CaFgd,
        Self::Mcg,
    ];

    /// The word on the command line.
    pub const fn name(self) -> &'static str {
        use Arithmetic::{Exact, Peer};
        match self {
            Self::Compass => "compass",
            Self::CompassPaper => "compass-paper",
            Self::BestFit => "best-fit",
            Self::WorstFit => "worst-fit",
            Self::FirstFit => "first-fit",
            Self::Random => "random",
            Self::Fgd(Exact) => "fgd",
            Self::Fgd(Peer) => "fgd:peer",
            Self::DotProduct(Exact) => "dot-product",
            Self::DotProduct(Peer) => "dot-product:peer",
            Self::GpuPacking(Exact) => "gpu-packing",
            Self::GpuPacking(Peer) => "gpu-packing:peer",
            Self::GpuClustering(Exact) => "gpu-clustering",
            Self::GpuClustering(Peer) => "gpu-clustering:peer",
            Self::BestFitPeer => "best-fit:peer",
            Self::MakeRoom => "make-room",
            Self::CaFgd => "ca-fgd",
            Self::Mcg => "mcg",
        }
    }

    /// Whether it compacts, so that triggers mean something.
    pub const fn compacts(self) -> bool {
        matches!(self.method(), Method::Anchor(_))
    }

    /// Whether it moves running instances for a job that is blocked, if the commit loop was given somebody who knows which
    /// (see [`RoomMaker`](super::RoomMaker)).
    pub const fn makes_room(self) -> bool {
        matches!(self, Self::MakeRoom)
    }

    /// Whether it asks what is typical: FGD, and what is built on it.
    pub const fn asks_what_is_typical(self) -> bool {
        matches!(self, Self::Fgd(_) | Self::CaFgd | Self::Mcg)
    }

    /// For how many seconds after its submission it may hold back a job that could start, where there is time.
    pub const fn patience_s(self) -> Option<u64> {
        if matches!(self, Self::CaFgd) { Some(ca_fgd::PATIENCE_S) } else { None }
    }

    /// How it reorders the queue, if it does.
    pub const fn reordering(self) -> Option<Reordering> {
        if matches!(self, Self::Mcg) { Some(mcg::REORDERING) } else { None }
    }

    /// Whose demand counts as typical beside what always does.
    pub(super) const fn moment(self) -> Option<Moment> {
        match self {
            Self::CaFgd => Some(ca_fgd::MOMENT),
            Self::Mcg => Some(mcg::MOMENT),
            _ => None,
        }
    }

    /// How it decides.
    pub(super) const fn method(self) -> Method {
        match self {
            Self::Compass => Method::Anchor(compass::VARIANT),
            Self::CompassPaper => Method::Anchor(compass_paper::VARIANT),
            Self::BestFit => Method::Ordered(Order::FewestFree),
            Self::WorstFit => Method::Ordered(Order::MostFree),
            Self::FirstFit => Method::Ordered(Order::LowestNumber),
            Self::Random => Method::Random,
            Self::Fgd(arithmetic) => Method::Scored(Score::Fgd, arithmetic),
            Self::DotProduct(arithmetic) => Method::Scored(Score::DotProduct, arithmetic),
            Self::GpuPacking(arithmetic) => Method::Scored(Score::GpuPacking, arithmetic),
            Self::GpuClustering(arithmetic) => Method::Scored(Score::GpuClustering, arithmetic),
            Self::BestFitPeer => Method::Scored(Score::BestFit, Arithmetic::Peer),
            Self::MakeRoom => Method::Ordered(make_room::ORDER),
            Self::CaFgd | Self::Mcg => Method::Scored(Score::Fgd, Arithmetic::Exact),
        }
    }
}

impl FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(word: &str) -> Result<Self, UnknownPolicy> {
        Self::ALL.into_iter().find(|policy| policy.name() == word).ok_or_else(|| UnknownPolicy(word.to_owned()))
    }
}

impl std::fmt::Display for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A word that names no policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no policy \"{0}\", expected one of {names}", names = Policy::ALL.map(Policy::name).join(", "))]
pub struct UnknownPolicy(String);

/// The ways to decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    /// Inside the space Σ, with moves.
    Anchor(Variant),
    /// The first node of a total order, without moves.
    Ordered(Order),
    /// By lot, without moves.
    Random,
    /// The node of the best score, instance after instance, without moves.
    Scored(Score, Arithmetic),
}

/// A total order of nodes by their free GPUs and number, and in the same way of regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Best-fit.
    FewestFree,
    /// Worst-fit.
    MostFree,
    /// First-fit.
    LowestNumber,
}

/// The place in an order, smallest first.
pub(super) type Key = (u64, u32);

impl Order {
    /// The place of a node or region with so many free GPUs and this number.
    pub(super) fn key(self, free: u64, number: u32) -> Key {
        match self {
            Order::FewestFree => best_fit::key(free, number),
            Order::MostFree => worst_fit::key(free, number),
            Order::LowestNumber => first_fit::key(free, number),
        }
    }

    /// The amounts of free GPUs whose nodes come at the `step`-th place of the order, the lowest number first among
    /// them; `None` after the last step. Amounts below `gpus` do not come at all.
    pub(super) fn levels(self, step: u8, gpus: u8) -> Option<RangeInclusive<u8>> {
        match self {
            Order::FewestFree => best_fit::levels(step, gpus),
            Order::MostFree => worst_fit::levels(step, gpus),
            Order::LowestNumber => first_fit::levels(step, gpus),
        }
    }

    /// Whether a node that just took an instance comes first again as long as it fits.
    pub(super) const fn stays(self) -> bool {
        !matches!(self, Order::MostFree)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for policy in Policy::ALL {
            assert_eq!(policy.name().parse(), Ok(policy));
        }
        let error = "fft".parse::<Policy>().unwrap_err().to_string();
        assert!(Policy::ALL.iter().all(|policy| error.contains(policy.name())), "{error}");
    }

    #[test]
    fn levels_and_keys_say_the_same() {
        for order in [Order::FewestFree, Order::MostFree, Order::LowestNumber] {
            for gpus in 0..=16 {
                let steps: Vec<_> = (0..).map_while(|step| order.levels(step, gpus)).collect();
                let mut by_step = Vec::new();
                for levels in steps {
                    let mut nodes: Vec<_> = levels.flat_map(|free| [(free, 3), (free, 7)]).collect();
                    nodes.sort_by_key(|&(_, number)| number);
                    by_step.extend(nodes);
                }
                let mut by_key = by_step.clone();
                by_key.sort_by_key(|&(free, number)| order.key(u64::from(free), number));
                assert_eq!(by_step, by_key);
                assert_eq!(by_step.len(), 2 * (17 - usize::from(gpus)));
            }
        }
    }
}
