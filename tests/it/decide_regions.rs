//! Jobs that may go to one given region alone, against the same cluster with all other nodes closed.

use proptest::prelude::*;
use slotwise::anchor::{State, Trigger};
use slotwise::cluster::{Cluster, NodeId, Within};
use slotwise::decide::{CommitLoop, Decision, PlaceOptions, Policy, Status};
use slotwise::workload::QueueEntry;

use crate::decide_support::{JobPlan, after, job_plan, node_plan, options, register, register_groups, steps};

/// What is decided of a job in a region, and of the same job where all nodes but those of the region are closed.
fn both(
    cluster: &Cluster,
    options: PlaceOptions,
    plans: &[JobPlan],
    region: (Within, usize),
) -> ((Decision, Cluster), Decision) {
    let enter = |cluster: &mut Cluster, within: Option<Within>| match plans {
        [plan] => QueueEntry::Submit(register(cluster, "job", &JobPlan { within, ..plan.clone() })),
        several => QueueEntry::SubmitGroups(register_groups(cluster, "job", several, within)),
    };
    let mut here = cluster.clone();
    // Whether it wishes for the same itself makes no difference.
    let entry = enter(&mut here, plans[0].within.map(|_| region.0));
    let mut here = State::new(here);
    let decision = CommitLoop::new(&mut here, options).decide_in(region, entry, 0).clone();
    let mut closed = cluster.clone();
    let entry = enter(&mut closed, None);
    let mut closed = State::new(closed);
    let others: Vec<NodeId> = cluster.node_ids().filter(|&node| !closed.is_in(node, region)).collect();
    let mut transaction = closed.begin();
    for node in others {
        if transaction.cluster().node(node).schedulable() {
            transaction.cordon(node).unwrap();
        }
    }
    transaction.commit();
    let expected = CommitLoop::new(&mut closed, options).decide(entry, 0).clone();
    ((decision, here.into_cluster()), expected)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Every policy goes where it would if there were no other region, and nowhere else.
    #[test]
    fn a_region_is_all_there_is(
        nodes in prop::collection::vec(node_plan(), 1..8),
        history in steps(3, 0..16),
        plans in prop::collection::vec(job_plan(3), 1..=3),
        level in prop_oneof![Just(Within::Domain), Just(Within::Rack)],
        number in any::<prop::sample::Index>(),
    ) {
        let state = after(&nodes, &history);
        let regions = state.regions(level).len();
        if regions == 0 {
            return Ok(());
        }
        let region = (level, number.index(regions));
        let cluster = state.into_cluster();
        for policy in Policy::ALL {
            let options = PlaceOptions { trigger: Trigger::Never, migration_budget: Some(0), ..options(policy) };
            let ((decision, here), expected) = both(&cluster, options, &plans, region);
            here.check_books().unwrap();
            let placed = decision.status == Status::Placed;
            // Whether unlike groups find each other is luck where lots are drawn, of which other nodes take some.
            if policy != Policy::Random || plans.len() == 1 {
                prop_assert_eq!(placed, expected.status == Status::Placed, "{:?}: {:?}, {:?}", policy, decision, expected);
            }
            let here = State::new(here);
            prop_assert!(decision.placements.iter().all(|&(node, _)| here.is_in(node, region)), "{policy:?}");
            if matches!(policy, Policy::BestFit | Policy::WorstFit | Policy::FirstFit | Policy::Compass) {
                prop_assert_eq!(&decision.placements, &expected.placements, "{:?}", policy);
            }
            if !placed {
                prop_assert_eq!(decision.proven.is_some(), plans.len() > 1);
            }
        }
    }
}
