//! Exhaustive model check of the operators: all states that arrivals and departures can reach on a few small nodes, up
//! to the order of nodes and of instances of one size.

use std::collections::{BTreeSet, VecDeque};

use slotwise::anchor::{self, Rules, Shape, State, Trigger, Variant};
use slotwise::cluster::{ClusterBuilder, Composition, GpuMask, JobSpec, NodeId, NodeSpec, Request, Seat, slot_width};

/// What the nodes hold, sorted: a state up to symmetry.
type World = Vec<Composition>;

/// An event of the model.
#[derive(Clone, Debug)]
enum Event {
    /// A gang of `n` instances of a size arrives.
    Arrive { gpus: u8, n: u32 },
    /// One instance of a size leaves each of these nodes, as one job (a node may be named twice).
    Depart { gpus: u8, nodes: Vec<usize> },
}

/// Builds a world in which the departing instances are one job and every other instance is its own.
fn build(capacity: u8, world: &World, departing: Option<(u8, &[usize])>) -> State {
    let mut builder = ClusterBuilder::new();
    for i in 0..world.len() {
        builder.add_node(&NodeSpec { name: &format!("n{i}"), gpus: capacity, ..NodeSpec::default() }).unwrap();
    }
    let mut leaving = Vec::new();
    for (i, composition) in world.iter().enumerate() {
        let mut device = 0;
        for gpus in (1..=capacity).rev() {
            let leave = departing
                .map_or(0, |(g, nodes)| if g == gpus { nodes.iter().filter(|&&node| node == i).count() } else { 0 });
            for k in 0..composition.count(gpus) {
                let mask = (((1u32 << gpus) - 1) << device) as GpuMask;
                device += gpus;
                let seat = Seat { node: NodeId(i as u32), gpus: Some(mask) };
                if usize::from(k) < leave {
                    leaving.push(seat);
                } else {
                    let name = format!("r{i}-{gpus}-{k}");
                    builder.add_running(&JobSpec { name: &name, gpus, ..JobSpec::default() }, &[seat]).unwrap();
                }
            }
        }
    }
    if let Some((gpus, _)) = departing {
        builder.add_running(&JobSpec { name: "leaving", gpus, ..JobSpec::default() }, &leaving).unwrap();
    }
    State::new(builder.finish().unwrap())
}

fn world_of(state: &State) -> World {
    let mut world: World = state.cluster().nodes().iter().map(|node| node.composition()).collect();
    world.sort_unstable();
    world
}

/// Sum of slot widths, sum of vacancies, number of 1-GPU instances.
fn totals(capacity: u8, world: &World) -> (u32, u32, u32) {
    let (mut widths, mut vacancy, mut ones) = (0, 0, 0);
    for composition in world {
        ones += u32::from(composition.count(1));
        for gpus in 2..=capacity {
            let n = u32::from(composition.count(gpus));
            widths += n * u32::from(slot_width(gpus, capacity));
            vacancy += n * u32::from(slot_width(gpus, capacity) - gpus);
        }
    }
    (widths, vacancy, ones)
}

/// Whether the demand has a packing inside Σ, for capacities that are powers of two: slots of widths that divide the
/// capacity fill nodes without waste, and what the vacancies do not take needs pool nodes.
fn fits_in_space(capacity: u8, n_nodes: usize, (widths, vacancy, ones): (u32, u32, u32)) -> bool {
    let capacity = u32::from(capacity);
    widths.div_ceil(capacity) + ones.saturating_sub(vacancy).div_ceil(capacity) <= n_nodes as u32
}

/// The claims of the method about a compact world.
fn check_invariant(capacity: u8, world: &World) -> Result<(), String> {
    let shapes: Vec<Shape> = world.iter().map(|&c| Shape::of(capacity, c)).collect();
    let outside = shapes.iter().filter(|shape| !shape.in_space()).count();
    let allowed = usize::from(!fits_in_space(capacity, world.len(), totals(capacity, world)));
    let with_room = shapes.iter().filter(|shape| shape.has_anchor() && shape.room >= 2).count();
    let partial_pools = shapes.iter().filter(|s| !s.has_anchor() && s.ones > 0 && s.ones < capacity).count();
    let pool_nodes = shapes.iter().filter(|shape| !shape.has_anchor() && shape.ones > 0).count();
    let open = shapes.iter().filter(|shape| shape.open_vacancy() > 0).count();
    let wcc = {
        let (_, vacancy, ones) = totals(capacity, world);
        ones >= vacancy
    };
    let busy: u32 = world.iter().map(|c| u32::from(c.busy())).sum();
    let partial = world.iter().filter(|c| c.busy() > 0 && c.busy() < capacity).count() as u32;
    let phi = u32::from(!busy.is_multiple_of(u32::from(capacity)));
    if outside > allowed {
        Err(format!("{outside} nodes outside, {allowed} would do"))
    } else if with_room > 1 {
        Err("two slotted nodes have room".to_owned())
    } else if partial_pools > 1 {
        Err("two pool nodes are partial".to_owned())
    } else if open > 0 && pool_nodes > 0 {
        Err("a vacancy is open while a pool node holds an instance".to_owned())
    } else if wcc && outside == 0 && partial - phi > 2 {
        Err(format!("N·SIF is {}", partial - phi))
    } else {
        Ok(())
    }
}

/// Runs one event. `None` if an arrival was blocked.
fn run(capacity: u8, world: &World, event: &Event, rules: &Rules) -> Option<World> {
    match event {
        Event::Arrive { gpus, n } => {
            let mut state = build(capacity, world, None);
            let request = Request { gpus: *gpus, ..Request::default() };
            let job = state.add_job("new", request, *n, true).unwrap().unwrap();
            let mut transaction = state.begin();
            let placed = anchor::place(&mut transaction, job, rules);
            if placed {
                transaction.commit();
            } else {
                drop(transaction);
                assert_eq!(world_of(&state), *world, "a blocked job left something");
            }
            state.cluster().check_books().unwrap();
            assert!(!placed || state.cluster().job(job).runs());
            placed.then(|| world_of(&state))
        }
        Event::Depart { gpus, nodes } => {
            let mut state = build(capacity, world, Some((*gpus, nodes)));
            let job = state.cluster().find_job("leaving").unwrap();
            let mut transaction = state.begin();
            anchor::remove(&mut transaction, job, rules);
            transaction.commit();
            state.cluster().check_books().unwrap();
            assert!(!state.cluster().job(job).runs());
            Some(world_of(&state))
        }
    }
}

fn demand(capacity: u8, world: &World) -> Vec<u32> {
    (1..=capacity).map(|gpus| world.iter().map(|c| u32::from(c.count(gpus))).sum()).collect()
}

fn events(capacity: u8, world: &World, max_gang: u32) -> Vec<Event> {
    let mut events = Vec::new();
    for gpus in 1..=capacity {
        events.extend((1..=max_gang).map(|n| Event::Arrive { gpus, n }));
        let homes: Vec<usize> = (0..world.len())
            .flat_map(|i| std::iter::repeat_n(i, usize::from(world[i].count(gpus)).min(max_gang as usize)))
            .collect();
        let mut seen = BTreeSet::new();
        for (at, &first) in homes.iter().enumerate() {
            let mut add = |nodes: Vec<usize>| {
                // Nodes that hold the same are the same.
                let key: Vec<_> =
                    nodes.iter().map(|&i| (world[i], nodes.iter().filter(|&&j| j == i).count())).collect();
                if seen.insert(key) {
                    events.push(Event::Depart { gpus, nodes });
                }
            };
            add(vec![first]);
            if max_gang >= 2 {
                homes[at + 1..].iter().for_each(|&second| add(vec![first, second]));
            }
        }
    }
    events
}

/// Explores everything reachable from the empty cluster; returns the number of states and the first violation.
fn explore(capacity: u8, n_nodes: usize, max_gang: u32, rules: &Rules) -> (usize, Option<String>) {
    let empty = vec![Composition::EMPTY; n_nodes];
    let mut seen = BTreeSet::from([empty.clone()]);
    let mut todo = VecDeque::from([empty]);
    while let Some(world) = todo.pop_front() {
        for event in events(capacity, &world, max_gang) {
            let after = run(capacity, &world, &event, rules);
            let what = || {
                let text = |world: &World| world.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
                format!("{} --{event:?}--> {}", text(&world), after.as_ref().map_or("blocked".to_owned(), text))
            };
            let mut expected = demand(capacity, &world);
            match (&event, &after) {
                (Event::Arrive { gpus, n }, None) => {
                    let (widths, vacancy, ones) = totals(capacity, &world);
                    let more = match gpus {
                        1 => (widths, vacancy, ones + n),
                        _ => {
                            let width = u32::from(slot_width(*gpus, capacity));
                            (widths + n * width, vacancy + n * (width - u32::from(*gpus)), ones)
                        }
                    };
                    if rules.variant == Variant::Invariant && fits_in_space(capacity, n_nodes, more) {
                        return (seen.len(), Some(format!("blocked though it fits inside Σ: {}", what())));
                    }
                    continue;
                }
                (Event::Arrive { gpus, n }, Some(_)) => expected[usize::from(*gpus) - 1] += n,
                (Event::Depart { gpus, nodes }, _) => expected[usize::from(*gpus) - 1] -= nodes.len() as u32,
            }
            let Some(after) = &after else { continue };
            assert_eq!(demand(capacity, after), expected, "lost or doubled: {}", what());
            if let Err(error) = check_invariant(capacity, after) {
                return (seen.len(), Some(format!("{error}: {}", what())));
            }
            if seen.insert(after.clone()) {
                todo.push_back(after.clone());
            }
        }
    }
    (seen.len(), None)
}

#[test]
fn the_invariant_holds_in_every_reachable_state() {
    let large = std::env::var_os("SLOTWISE_NIGHTLY").is_some();
    let mut worlds = vec![(1, 3, 2), (2, 3, 2), (4, 1, 3), (4, 2, 2), (4, 3, 2), (8, 1, 2), (8, 2, 2), (8, 3, 2)];
    if large {
        worlds.extend([(4, 5, 3), (8, 3, 3), (8, 4, 1), (16, 1, 2), (16, 2, 1)]);
    }
    for (capacity, n_nodes, max_gang) in worlds {
        let (states, violation) = explore(capacity, n_nodes, max_gang, &Rules::default());
        println!("{n_nodes} nodes of {capacity}: {states} states");
        assert_eq!(violation, None, "{n_nodes} nodes of {capacity}");
        assert!(states > 1);
    }
}

/// All worlds, reachable or not: every real cluster starts outside Σ.
fn all_worlds(capacity: u8, n_nodes: usize) -> Vec<World> {
    let mut worlds = vec![Vec::new()];
    for _ in 0..n_nodes {
        let longer = |world: &World| {
            let world = world.clone();
            let least = world.last().copied();
            Composition::all(capacity).filter(move |&c| least.is_none_or(|least| c >= least)).map(move |composition| {
                let mut world = world.clone();
                world.push(composition);
                world
            })
        };
        worlds = worlds.iter().flat_map(longer).collect();
    }
    worlds
}

#[test]
fn a_cluster_that_starts_outside_the_space_is_brought_into_it() {
    let large = std::env::var_os("SLOTWISE_NIGHTLY").is_some();
    for (capacity, n_nodes) in if large { vec![(4, 3), (8, 2), (8, 3)] } else { vec![(4, 3), (8, 2)] } {
        let outside = |world: &World| world.iter().filter(|&&c| !Shape::of(capacity, c).in_space()).count();
        let (mut started_outside, mut unrepaired) = (0, 0);
        for world in all_worlds(capacity, n_nodes) {
            for event in events(capacity, &world, 1) {
                let Some(after) = run(capacity, &world, &event, &Rules::default()) else { continue };
                started_outside += usize::from(outside(&world) > 0);
                let fits = fits_in_space(capacity, n_nodes, totals(capacity, &after));
                if fits {
                    assert_eq!(check_invariant(capacity, &after), Ok(()), "{world:?} {event:?} {after:?}");
                } else {
                    unrepaired += 1;
                    let left = usize::from(matches!(event, Event::Depart { .. }));
                    assert!(outside(&after) <= outside(&world).max(left), "{world:?} {event:?} {after:?}");
                }
            }
        }
        println!(
            "{n_nodes} nodes of {capacity}: {started_outside} events from outside, {unrepaired} without a packing"
        );
        assert!(started_outside > 0 && unrepaired > 0);
    }
}

#[test]
fn the_printed_pseudocode_breaks_the_invariant() {
    let rules = Rules { variant: Variant::Paper, ..Rules::default() };
    let (_, violation) = explore(8, 3, 1, &rules);
    assert!(violation.is_some());
    // The counter-example of the method: {4}, {2,2,2} and six 1-GPU instances; nothing is compacted.
    let world: World =
        [&[4][..], &[2, 2, 2], &[1; 6]].map(|sizes| Composition::from_sizes(sizes.iter().copied()).unwrap()).to_vec();
    let mut before = world.clone();
    before[0] = before[0].with(4).unwrap();
    before.sort_unstable();
    let four = before.iter().position(|c| c.count(4) == 2).unwrap();
    let depart = Event::Depart { gpus: 4, nodes: vec![four] };
    let mut expected = world;
    expected.sort_unstable();
    assert_eq!(run(8, &before, &depart, &rules), Some(expected.clone()));
    assert!(check_invariant(8, &expected).unwrap_err().contains("two slotted nodes"));
    let compacted = run(8, &before, &depart, &Rules::default()).unwrap();
    assert_eq!(check_invariant(8, &compacted), Ok(()));
}

#[test]
fn without_a_trigger_or_a_budget_nothing_moves() {
    let world: World =
        [&[4][..], &[2, 2, 2]].map(|sizes| Composition::from_sizes(sizes.iter().copied()).unwrap()).to_vec();
    let arrive = Event::Arrive { gpus: 8, n: 1 };
    let still = |rules: &Rules| run(8, &world, &Event::Arrive { gpus: 2, n: 1 }, rules).unwrap();
    for rules in
        [Rules { trigger: Trigger::Never, ..Rules::default() }, Rules { migration_budget: Some(0), ..Rules::default() }]
    {
        assert_eq!(run(8, &world, &arrive, &rules), None);
        let mut expected: World =
            [&[4][..], &[2, 2, 2, 2]].map(|sizes| Composition::from_sizes(sizes.iter().copied()).unwrap()).to_vec();
        expected.sort_unstable();
        assert_eq!(still(&rules), expected);
    }
}
