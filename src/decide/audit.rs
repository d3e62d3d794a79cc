//! The audit of a cluster: how fragmented it is, how much of that is avoidable, what that costs, and who waits for it.

mod compaction;
mod figures;
mod findings;
mod pending;
mod regions;
mod startable;
mod stranded;
mod threshold;

pub use compaction::Compaction;
pub use figures::{Figures, NodesByFree, PoolFigures, WccFigures};
pub use pending::{Pending, PendingGroups, PendingJobs};
pub use regions::{RegionFigures, Regions};
pub use startable::StartableJobs;
pub use stranded::{Part, Stranded};
pub use threshold::{Measure, NoThreshold, Threshold};

use figures::{both, pool_figures};

use crate::anchor::{PoolState, State};
use crate::cluster::{JobId, PoolId, Within};

/// What an audit says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// All pools together.
    pub total: Figures,
    /// Each pool, in file order.
    pub pools: Vec<PoolFigures>,
    /// The NVLink domains.
    pub domains: Regions,
    /// The racks.
    pub racks: Regions,
    /// What Compact alone would do.
    pub compaction: Compaction,
    /// Jobs of the usual sizes that could start, by size.
    pub startable: Vec<StartableJobs>,
    /// The jobs that wait; `None` if nobody said which.
    pub pending: Option<Pending>,
    /// Sentences, the most important first.
    pub findings: Vec<String>,
}

/// Audits a cluster, and the jobs that wait for it, if it is known which: they are registered, and do not run; of one of
/// several groups all are listed. The state
/// is only changed in that its pools remember their Φ*.
///
/// O(nodes + instances), what Compact takes on a copy, and a Φ* for each pool, domain and rack.
pub fn audit(state: &mut State, waiting: Option<&[JobId]>) -> Audit {
    let (compacted, compaction) = compaction::compacted(state);
    let asked = stranded::asked(state.cluster(), waiting);
    let mut pools = Vec::with_capacity(state.pools().len());
    for pool in (0..state.pools().len() as u32).map(PoolId) {
        let mut figures = pool_figures(state, &compacted, pool);
        figures.stranded = stranded::stranded(state.cluster(), state.pool(pool).nodes(), pool, &asked);
        pools.push(PoolFigures { pool, figures });
    }
    let largest = state.pools().iter().map(PoolState::capacity).max().unwrap_or(0);
    let mut total = Figures::zeros(largest);
    pools.iter().for_each(|pool| total.add(&pool.figures));
    total.outside_abs.sort_unstable();
    total.wcc = pools.iter().map(|pool| pool.figures.wcc).reduce(both).flatten();
    let mut audit = Audit {
        domains: regions::regions(state, Within::Domain, largest),
        racks: regions::regions(state, Within::Rack, largest),
        compaction,
        startable: startable::startable(state.cluster(), &total, &pools),
        pending: waiting.map(|jobs| pending::pending(state, jobs)),
        total,
        pools,
        findings: Vec::new(),
    };
    audit.findings = findings::findings(state.cluster(), &audit);
    audit
}
