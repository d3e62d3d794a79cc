//! The Workload Composition Condition.

use super::reduce::Counts;
use crate::cluster::{MAX_GPUS, slot_width};
use crate::workload::Demand;

/// The Workload Composition Condition of a demand (COMPASS-ABS, arXiv 2606.09200, eq. 9, for any capacity that is a
/// power of two): there are enough 1-GPU instances to fill every slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wcc {
    /// Whether it holds; exactly if `slack >= 0`.
    pub holds: bool,
    /// 1-GPU instances beyond those that the slots need; negative if some are missing. Saturates.
    pub slack: i64,
}

/// The condition for `demand` on nodes of `capacity` GPUs, or `None` where it has no meaning: at a capacity that is no
/// power of two. O(1).
///
/// No size of the demand may be larger than the capacity; what is larger is not counted.
pub fn wcc(capacity: u8, demand: &Demand) -> Option<Wcc> {
    let counts = super::counts(demand);
    let fillers = fillers_needed(usize::from(capacity), &counts)?;
    Some(Wcc::from_slack(i128::from(counts[1]) - i128::from(fillers)))
}

impl Wcc {
    /// The condition with this slack.
    pub(super) fn from_slack(slack: i128) -> Self {
        let bound = if slack < 0 { i64::MIN } else { i64::MAX };
        Self { holds: slack >= 0, slack: i64::try_from(slack).unwrap_or(bound) }
    }
}

/// How many fillers the slot of one instance of `gpus` needs; 0 for a 1-GPU instance.
pub(super) fn vacancy(capacity: u8, gpus: u8) -> u8 {
    if (2..=capacity).contains(&gpus) { slot_width(gpus, capacity) - gpus } else { 0 }
}

/// How many 1-GPU instances it takes to fill the slots of all others; `None` if the capacity is no power of two.
pub(super) fn fillers_needed(capacity: usize, counts: &Counts) -> Option<u64> {
    if !capacity.is_power_of_two() || capacity > MAX_GPUS {
        return None;
    }
    let needed = (2..=capacity).map(|gpus| u64::from(vacancy(capacity as u8, gpus as u8)).saturating_mul(counts[gpus]));
    Some(needed.fold(0, u64::saturating_add))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_condition_of_the_paper_at_capacity_eight() {
        let demand: Demand = [(1, 10), (3, 2), (5, 1), (6, 1), (7, 2), (4, 9)].into_iter().collect();
        assert_eq!(wcc(8, &demand), Some(Wcc { holds: true, slack: 10 - 2 - 3 - 2 - 2 }));
        let demand: Demand = [(3, 1)].into_iter().collect();
        assert_eq!(wcc(8, &demand), Some(Wcc { holds: false, slack: -1 }));
        assert_eq!(wcc(6, &demand), None);
        assert_eq!(wcc(12, &demand), None);
    }
}
