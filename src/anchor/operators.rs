//! Place, Remove and Compact as one event each (§4.3 and algorithm 1).

use super::compact::{compact as compact_pool, drain_excess, replace_excess};
use super::gang::{fill_vacancy, place_gang};
use super::groups::place_groups as place_all;
use super::mover::Mover;
use super::paper;
use super::rules::{Rules, Trigger, Variant};
use super::shape::{Kind, Shape};
use super::transaction::Transaction;
use crate::cluster::{GroupedJob, JobId, PoolId, slot_width};

/// Places all instances of a job inside Σ, with the moves that the rules allow, compaction included.
///
/// First as the cluster stands; if that fails and the rules allow compaction at all, after a compaction. False if it
/// cannot be done; the transaction then holds moves that nobody wants, and the caller drops it.
///
/// O(log nodes) an instance that asks GPUs alone, and O(1) moves, as long as the cluster starts inside the invariant.
pub fn place(transaction: &mut Transaction<'_>, job: JobId, rules: &Rules) -> bool {
    if !transaction.start(job) {
        return false;
    }
    let mut mover = Mover::new(transaction, rules);
    let mut placed = place_gang(&mut mover, job);
    if !placed && compactable(rules) && may_fit_when_compact(&mover, job) {
        placed = compact_now(&mut mover) && place_gang(&mut mover, job);
    }
    if placed {
        after_event(&mut mover, rules);
    }
    placed
}

/// The same for all groups of a job as one event, in the first of these orders of the groups that does.
pub fn place_groups(transaction: &mut Transaction<'_>, job: GroupedJob, orders: &[Vec<JobId>], rules: &Rules) -> bool {
    if !transaction.start_groups(job) {
        return false;
    }
    let mut mover = Mover::new(transaction, rules);
    let mut placed = place_all(&mut mover, job, orders);
    if !placed && compactable(rules) && may_fit_all(&mover, job) {
        placed = compact_now(&mut mover) && place_all(&mut mover, job, orders);
    }
    if placed {
        after_event(&mut mover, rules);
    }
    placed
}

/// The same condition for each group that asks GPUs, of which there must be one.
fn may_fit_all(mover: &Mover<'_, '_>, job: GroupedJob) -> bool {
    let asks = |group: &JobId| mover.transaction.cluster().request_of(*group).gpus > 0;
    job.jobs().any(|group| asks(&group)) && job.jobs().filter(asks).all(|group| may_fit_when_compact(mover, group))
}

/// Whether the rules allow a compaction for a job that does not fit.
fn compactable(rules: &Rules) -> bool {
    rules.trigger != Trigger::Never && rules.variant == Variant::Invariant
}

/// Compacts for a job that does not fit. False if that changed nothing.
fn compact_now(mover: &mut Mover<'_, '_>) -> bool {
    let before = mover.transaction.log().len();
    compact_dirty(mover);
    for pool in 0..mover.transaction.state().pools().len() as u32 {
        drain_excess(mover, PoolId(pool));
    }
    mover.transaction.log().len() > before
}

/// A necessary condition for a job to fit after compaction, from counts alone: it spares the compaction of a cluster for
/// a job that is too large for it. Pools with nodes outside Σ always may.
fn may_fit_when_compact(mover: &Mover<'_, '_>, job: JobId) -> bool {
    let state = mover.transaction.state();
    let cluster = state.cluster();
    let request = cluster.request_of(job);
    // Nobody knows here how many shares find a place beside others.
    let wanted = if request.is_share() { 1 } else { u64::from(cluster.job(job).instances()) };
    if request.gpus == 0 {
        return false;
    }
    let mut most = 0u64;
    for (id, pool) in state.pools().iter().enumerate() {
        let capacity = pool.capacity();
        if request.gpus > capacity || !cluster.pool_admits(PoolId(id as u32), request) {
            continue;
        }
        if pool.n_outside() > 0 {
            return true;
        }
        let (mut widths, mut vacancy) = (0, 0);
        for (gpus, n) in pool.fragmentation().demand().sizes().filter(|&(gpus, _)| gpus >= 2) {
            let width = slot_width(gpus, capacity);
            widths += u64::from(width) * n;
            vacancy += u64::from(width - gpus) * n;
        }
        let pooled = pool.fragmentation().demand().count(1).saturating_sub(vacancy);
        let left = (u64::from(capacity) * pool.nodes().len() as u64).saturating_sub(widths);
        let for_ones = pool.fragmentation().demand().count(1);
        if request.gpus == 1 {
            most += left.saturating_sub(pooled) + vacancy.saturating_sub(for_ones);
        } else {
            let by_width = left / u64::from(slot_width(request.gpus, capacity));
            most += by_width.min(left.saturating_sub(pooled) / u64::from(request.gpus));
        }
    }
    wanted <= most
}

/// Ends a running job: frees its instances, draws fillers for what they leave open, re-places the fillers of slots that
/// are dissolved, and compacts as the rules allow.
pub fn remove(transaction: &mut Transaction<'_>, job: JobId, rules: &Rules) {
    remove_together(transaction, &[job], rules);
}

/// Ends running jobs as one event: all of them are gone before the first filler moves, and compaction runs once.
pub fn remove_together(transaction: &mut Transaction<'_>, jobs: &[JobId], rules: &Rules) {
    for &job in jobs {
        for instance in transaction.cluster().instances_of(job) {
            // One that does not run is freed already.
            let _ = transaction.free(instance);
        }
    }
    let freed = transaction.log().len();
    let mut mover = Mover::new(transaction, rules);
    for at in 0..freed {
        let node = mover.transaction.log()[at].node();
        let held = mover.transaction.cluster().node(node);
        if !held.schedulable() {
            continue;
        }
        match Shape::of(held.capacity(), held.composition()).kind {
            Kind::Outside(_) => replace_excess(&mut mover, node),
            Kind::Slotted if rules.variant == Variant::Invariant => fill_vacancy(&mut mover, node),
            Kind::Slotted | Kind::Empty | Kind::Pool => {}
        }
    }
    after_event(&mut mover, rules);
}

/// Compacts as an event of its own, with nothing that comes or goes. What one event leaves another may still repair.
pub fn compact(transaction: &mut Transaction<'_>, rules: &Rules) {
    after_event(&mut Mover::new(transaction, rules), rules);
}

#[inline]
fn after_event(mover: &mut Mover<'_, '_>, rules: &Rules) {
    if rules.trigger == Trigger::EveryEvent {
        restore(mover, rules.variant);
    }
    if mover.transaction.n_freed() > 0 {
        mover.transaction.settle();
    }
}

fn restore(mover: &mut Mover<'_, '_>, variant: Variant) {
    match variant {
        Variant::Invariant => compact_dirty(mover),
        Variant::Paper => {
            while let Some(pool) = mover.transaction.state_mut().take_dirty() {
                paper::compact(mover, pool);
                mover.transaction.state_mut().clear_dirty(pool);
            }
        }
    }
}

/// Compacts all pools that changed since they were last compact.
#[inline]
fn compact_dirty(mover: &mut Mover<'_, '_>) {
    let mut unfinished = Vec::new();
    while let Some(pool) = mover.transaction.state_mut().take_dirty() {
        if mover.transaction.state().pool(pool).is_compact() {
            continue;
        }
        if !compact_pool(mover, pool) {
            unfinished.push(pool);
        }
        // Its own moves have marked it again.
        mover.transaction.state_mut().clear_dirty(pool);
    }
    for pool in unfinished {
        mover.transaction.state_mut().mark_dirty(pool);
    }
}
