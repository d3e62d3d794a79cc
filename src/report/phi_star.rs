//! Φ* of a demand.

use serde::Serialize;

use super::number::grouped;
use super::table::facts;
use crate::fragmentation::{Solution, Wcc};

/// What `phi-star` answers; also its JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PhiStarReport {
    phi_star: u64,
    wcc: Option<WccReport>,
    total_gpus: u64,
    method: &'static str,
}

/// The Workload Composition Condition in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct WccReport {
    pub(super) holds: bool,
    pub(super) slack: i64,
}

impl PhiStarReport {
    /// The answer for a demand of so many GPUs.
    pub fn new(solution: Solution, wcc: Option<Wcc>, total_gpus: u64) -> Self {
        let wcc = wcc.map(|wcc| WccReport { holds: wcc.holds, slack: wcc.slack });
        Self { phi_star: solution.partial, wcc, total_gpus, method: solution.method.name() }
    }

    /// For people.
    pub fn table(&self) -> String {
        facts(&[
            ("Φ*", format!("{} (partial nodes in the best packing)", grouped(self.phi_star))),
            ("WCC", wcc_text(self.wcc)),
            ("GPUs", grouped(self.total_gpus)),
            ("proved by", self.method.to_owned()),
        ])
    }
}

/// The condition in words.
pub(super) fn wcc_text(wcc: Option<WccReport>) -> String {
    match wcc {
        None => "has no meaning at a capacity that is no power of two".to_owned(),
        Some(WccReport { holds: true, slack }) => format!("holds (slack {})", grouped(slack)),
        Some(WccReport { holds: false, slack }) => {
            format!("fails (slack {})", grouped(slack))
        }
    }
}
