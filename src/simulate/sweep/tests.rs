//! Cells and shards, what a fingerprint depends on, and the clusters of cells.

use crate::anchor::Trigger;
use crate::cluster::NodeId;
use crate::workload::NodeChange;

use super::*;

fn grid() -> Grid {
    let scheduler = |word| Scheduler::parse(word, (Trigger::EveryEvent, None)).unwrap();
    Grid {
        days: vec![Some(1), Some(4)],
        sizes: vec![Size::Nodes(3), Size::Eta("0.9".parse().unwrap())],
        move_costs_s: vec![1, 8, 9],
        seeds: vec![5],
        schedulers: vec![scheduler("compass"), scheduler("best-fit")],
    }
}

#[test]
fn every_point_of_the_grid_is_one_cell() {
    let grid = grid();
    assert_eq!(grid.n_cells(), 24);
    let cells: Vec<Cell> = (0..24).map(|number| grid.cell(number)).collect();
    let point = |cell: &Cell| (cell.day, format!("{:?}", cell.size), cell.move_cost_s, cell.scheduler.to_string());
    assert_eq!(point(&cells[0]), (Some(1), "Nodes(3)".to_owned(), 1, "compass".to_owned()));
    assert_eq!(point(&cells[23]), (Some(4), format!("{:?}", grid.sizes[1]), 9, "best-fit".to_owned()));
    let distinct: std::collections::BTreeSet<_> = cells.iter().map(point).collect();
    assert_eq!(distinct.len(), 24);
}

#[test]
fn shards_part_the_cells() {
    for of in 1..6 {
        for cell in 0..24 {
            assert_eq!((1..=of).filter(|&index| Shard { index, of }.has(cell)).count(), 1);
        }
    }
}

#[test]
fn whatever_changes_a_row_changes_the_fingerprint() {
    let options = SweepOptions { discipline: Discipline::Fifo, until: Until::LastEnd, gpus_per_node: 8, most_nodes: 9 };
    let job = |submit_s| TraceJob { name: "a".to_owned(), submit_s, gpus_per_instance: 1, ..TraceJob::default() };
    let of = |jobs: &[TraceJob], grid: &Grid, options: SweepOptions| {
        Sweep::new(jobs.to_vec(), None, grid.clone(), options).fingerprint().to_string()
    };
    let usual = of(&[job(1)], &grid(), options);
    assert_eq!(usual.len(), 32);
    assert_eq!(of(&[job(1)], &grid(), options), usual);
    let mut other = grid();
    other.seeds = vec![6];
    let named = TraceJob { models: vec!["A".into()], ..job(1) };
    for changed in [
        of(&[job(2)], &grid(), options),
        of(&[job(1), job(1)], &grid(), options),
        of(&[named], &grid(), options),
        of(&[job(1)], &other, options),
        of(&[job(1)], &grid(), SweepOptions { discipline: Discipline::Easy, ..options }),
    ] {
        assert_ne!(changed, usual);
    }
}

#[test]
fn events_of_nodes_are_part_of_the_fingerprint_in_their_order_of_time() {
    let options = SweepOptions { discipline: Discipline::Fifo, until: Until::LastEnd, gpus_per_node: 8, most_nodes: 9 };
    let of = |events: &[(u64, u32, NodeChange)]| {
        let event = |&(at_s, node, change)| NodeEvent { at_s, node: NodeId(node), change };
        let sweep = Sweep::new(Vec::new(), None, grid(), options);
        sweep.with_events(events.iter().map(event).collect()).fingerprint().to_string()
    };
    let (fail, back) = ((5, 0, NodeChange::Fail), (9, 0, NodeChange::Return));
    assert_eq!(of(&[]), Sweep::new(Vec::new(), None, grid(), options).fingerprint().to_string());
    assert_eq!(of(&[fail, back]), of(&[back, fail]));
    let others = [
        of(&[]),
        of(&[fail, back]),
        of(&[fail]),
        of(&[(6, 0, NodeChange::Fail)]),
        of(&[(5, 1, NodeChange::Fail)]),
        of(&[(5, 0, NodeChange::Drain)]),
    ];
    let distinct: std::collections::BTreeSet<&String> = others.iter().collect();
    assert_eq!(distinct.len(), others.len());
}

#[test]
fn the_smallest_cluster_is_that_of_the_quietest_scene() {
    let options =
        SweepOptions { discipline: Discipline::Fifo, until: Until::LastEnd, gpus_per_node: 8, most_nodes: 99 };
    let job = |day: u64, instances| TraceJob {
        name: format!("{day}"),
        submit_s: day * DAY_S,
        duration_s: 9,
        gpus_per_instance: 8,
        instances,
        ..TraceJob::default()
    };
    let nodes = |sizes: &[Size]| {
        let grid = Grid { days: vec![Some(1), Some(2), Some(4)], sizes: sizes.to_vec(), ..grid() };
        // Nobody asks for day 5, and on day 2 there is no job.
        let sweep = Sweep::new(vec![job(1, 7), job(4, 5), job(5, 1)], None, grid, options);
        sweep.smallest_cluster().unwrap().nodes().len()
    };
    let eta = Size::Eta("0.9".parse().unwrap());
    assert_eq!([nodes(&[eta]), nodes(&[Size::Nodes(6), Size::Nodes(3)])], [5, 3]);
}
