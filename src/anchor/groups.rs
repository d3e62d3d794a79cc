//! Place for a job of several groups: all groups inside Σ, or none.
//!
//! One group is placed completely (see `gang.rs`), but each takes room from the next, so the order of the groups matters,
//! and no order need do. The caller says which are tried.

use super::gang::{could_hold, place_gang, place_in, room_in};
use super::mover::Mover;
use crate::cluster::{GroupedJob, JobId, Within};

/// Places all groups of the job, whose instances have numbers, in the first of some orders that does. With `within` all
/// of them go to one region, of which the tightest comes first, as for a gang. False, with nothing changed, if none does.
pub(super) fn place_groups(mover: &mut Mover<'_, '_>, job: GroupedJob, orders: &[Vec<JobId>]) -> bool {
    let cluster = mover.transaction.cluster();
    let (within, numbers) = match (mover.region, cluster.request_of(job.first()).within) {
        (Some((within, number)), _) => (within, vec![number]),
        (None, Some(within)) => (within, regions(mover, job, within)),
        (None, None) => return orders.iter().any(|order| all_or_none(mover, order, &mut place_gang)),
    };
    numbers.into_iter().any(|number| {
        let nodes = mover.transaction.state().regions(within)[number].clone();
        orders.iter().any(|order| {
            all_or_none(mover, order, &mut |mover, group| {
                let request = mover.transaction.cluster().request_of(group).clone();
                place_in(mover, group, &request, Some(&nodes))
            })
        })
    })
}

/// Places group after group, or takes back those that were.
fn all_or_none(
    mover: &mut Mover<'_, '_>,
    order: &[JobId],
    place: &mut dyn FnMut(&mut Mover<'_, '_>, JobId) -> bool,
) -> bool {
    let (start, short) = (mover.checkpoint(), mover.short_of_budget);
    let placed = order.iter().all(|&group| place(mover, group));
    if !placed {
        mover.rollback(start);
        mover.short_of_budget = short;
    }
    placed
}

/// The regions that have the GPUs for each group, in the order in which they are tried.
fn regions(mover: &Mover<'_, '_>, job: GroupedJob, within: Within) -> Vec<usize> {
    let state = mover.transaction.state();
    let cluster = state.cluster();
    let groups = || job.jobs().map(|group| (cluster.request_of(group), cluster.job(group).instances()));
    let mut order: Vec<(bool, bool, u64, usize)> = Vec::new();
    for (number, nodes) in state.regions(within).iter().enumerate() {
        if groups().all(|(request, wanted)| could_hold(mover, nodes, request, wanted)) {
            let rooms = || groups().map(|(request, wanted)| (room_in(mover, nodes, request), u64::from(wanted)));
            let short = rooms().any(|(room, wanted)| room < wanted);
            order.push((short, state.is_intact(nodes), rooms().map(|(room, _)| room).sum(), number));
        }
    }
    order.sort_unstable();
    order.into_iter().map(|(.., number)| number).collect()
}
