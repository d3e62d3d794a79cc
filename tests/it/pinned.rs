//! What compaction does behind very many nodes that it cannot change.

use slotwise::anchor::{self, Rules, Shape, State};
use slotwise::cluster::{ClusterBuilder, Composition, JobSpec, NodeId, NodeSpec, Request, Seat};

/// More nodes than a step asks before it gives up on those that refuse.
const MANY: u32 = 1500;

/// A cluster of 8-GPU nodes: `MANY` that hold these pinned instances, then one for each list of movable ones.
fn cluster(pinned: &[u8], movable: &[&[u8]]) -> State {
    let mut builder = ClusterBuilder::new();
    let nodes = (0..MANY).map(|_| (pinned, true)).chain(movable.iter().map(|&sizes| (sizes, false)));
    let nodes: Vec<(&[u8], bool)> = nodes.collect();
    for number in 0..nodes.len() {
        builder.add_node(&NodeSpec { name: &format!("n{number}"), gpus: 8, ..NodeSpec::default() }).unwrap();
    }
    for (number, &(sizes, pinned)) in (0..).zip(&nodes) {
        for (i, &gpus) in sizes.iter().enumerate() {
            let spec = JobSpec { name: &format!("j{number}-{i}"), gpus, pinned, ..JobSpec::default() };
            builder.add_running(&spec, &[Seat { node: NodeId(number), gpus: None }]).unwrap();
        }
    }
    State::new(builder.finish().unwrap())
}

/// One event: a job of one instance arrives. Returns the migrations.
fn arrive(state: &mut State, gpus: u8) -> usize {
    let job = state.add_job("new", Request { gpus, ..Request::default() }, 1, true).unwrap().unwrap();
    let mut transaction = state.begin();
    assert!(anchor::place(&mut transaction, job, &Rules::default()));
    let migrations = transaction.migrations().len();
    transaction.commit();
    migrations
}

fn held(state: &State, number: u32) -> Composition {
    state.cluster().node(NodeId(number)).composition()
}

#[test]
fn a_node_outside_the_space_is_repaired_behind_many_that_cannot_be() {
    let mut state = cluster(&[4, 1], &[&[4, 1], &[], &[4, 2, 1], &[]]);
    assert_eq!(state.n_outside(), u64::from(MANY) + 2);
    arrive(&mut state, 8);
    assert_eq!(state.n_outside(), u64::from(MANY));
    for number in MANY..MANY + 4 {
        assert!(Shape::of(8, held(&state, number)).in_space());
    }
}

#[test]
fn a_node_that_is_pinned_can_still_help() {
    // The 3 goes into the other slot of a pinned node, where its vacancy takes the 1; nothing is empty.
    let mut state = cluster(&[4, 1], &[&[5, 3], &[]]);
    arrive(&mut state, 8);
    assert_eq!(state.n_outside(), u64::from(MANY) - 1);
}

#[test]
fn slots_leave_nodes_behind_many_that_are_pinned() {
    let mut state = cluster(&[4], &[&[4], &[4], &[]]);
    let with_room = |state: &State| state.pools()[0].n_with_room();
    assert_eq!(with_room(&state), MANY + 2);
    assert_eq!(arrive(&mut state, 8), 2);
    assert_eq!(with_room(&state), MANY - 2);
}

#[test]
fn a_vacancy_is_filled_from_behind_many_that_are_pinned() {
    let mut state = cluster(&[1], &[&[1], &[]]);
    assert_eq!(arrive(&mut state, 3), 1);
    assert_eq!(held(&state, MANY), Composition::EMPTY);
    assert_eq!(held(&state, MANY + 1), Composition::from_sizes([3, 1]).unwrap());
}
