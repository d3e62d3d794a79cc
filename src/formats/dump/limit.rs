//! Limits on how many instances may be stopped at a time.

use std::collections::BTreeSet;

use crate::cluster::{DisruptionBudget, JobId};

use super::assembly::Origin;

/// A disruption budget as a dump has it.
#[derive(Clone, Debug)]
pub(in crate::formats) struct DumpLimit {
    pub(in crate::formats) name: String,
    pub(in crate::formats) allowed: u64,
    /// The names of its jobs in the dump.
    pub(in crate::formats) jobs: BTreeSet<String>,
}

impl DumpLimit {
    /// For the jobs of the cluster that came of those of the dump.
    pub(in crate::formats) fn of(self, origins: &[Origin]) -> DisruptionBudget {
        let own = origins.iter().enumerate().filter(|(_, origin)| self.jobs.contains(&origin.name));
        let jobs = own.map(|(number, _)| JobId(number as u32)).collect();
        DisruptionBudget { name: self.name, allowed: self.allowed, jobs }
    }
}
