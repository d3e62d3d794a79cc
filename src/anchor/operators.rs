//! Place, Remove and Compact as one event each.

use super::rules::Rules;
use super::transaction::Transaction;
use crate::cluster::JobId;

/// Places all instances of a job inside Σ, with the moves that the rules allow, compaction included. False if it cannot
/// be done; the caller then drops the transaction.
pub fn place(_transaction: &mut Transaction<'_>, _job: JobId, _rules: &Rules) -> bool {
    false
}

/// Ends a running job: frees its instances, refills vacancies, re-places fillers, and compacts as the rules allow.
pub fn remove(transaction: &mut Transaction<'_>, job: JobId, _rules: &Rules) {
    let instances: Vec<_> = transaction.cluster().instances_of(job).collect();
    for instance in instances {
        let _ = transaction.free(instance);
    }
}
