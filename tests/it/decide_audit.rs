//! Audits: figures against a plain recount, and findings word by word.

use slotwise::anchor::{Outside, State};
use slotwise::cluster::NodeId;
use slotwise::decide::{Audit, WccFigures, audit};
use slotwise::formats::read_cluster_from;

fn audit_of(snapshot: &str) -> Audit {
    audit(&mut State::new(read_cluster_from("snapshot", snapshot.as_bytes()).unwrap().cluster), None)
}

const MIXED: &str = r#"{"nodes": [
    {"name": "a", "gpus": 8, "model": "H100", "cpu_milli": 64000},
    {"name": "b", "gpus": 8, "model": "H100", "cpu_milli": 9000},
    {"name": "c", "gpus": 8, "model": "H100", "schedulable": false},
    {"name": "d", "gpus": 4, "unavailable": [1]},
    {"name": "e", "gpus": 1, "unavailable": [0]}],
  "running": [
    {"job": "one", "gpus_per_instance": 1, "cpu_milli": 1000, "instances": [{"node": "a"}]},
    {"job": "four", "gpus_per_instance": 4, "cpu_milli": 8000, "instances": [{"node": "a"}, {"node": "b"}]},
    {"job": "five", "gpus_per_instance": 5, "cpu_milli": 5000, "instances": [{"node": "c"}]},
    {"job": "three", "gpus_per_instance": 3, "cpu_milli": 3000, "instances": [{"node": "c"}]},
    {"job": "cores", "gpus_per_instance": 0, "cpu_milli": 2000, "instances": [{"node": "b"}]}]}"#;

#[test]
fn figures_of_a_mixed_cluster() {
    let Audit { total, pools, .. } = audit_of(MIXED);
    assert_eq!((total.nodes, total.gpus, total.busy_gpus, total.free_gpus()), (5, 27, 17, 10));
    assert_eq!((total.empty, total.partial, total.full), (1, 2, 2));
    // 17 GPUs of 8-GPU nodes: 4+4, 5+3 and a single one.
    assert_eq!((total.phi_star, total.n_sif()), (1, 1));
    assert_eq!(total.outside_abs, [(NodeId(0), Outside::NoVacancy), (NodeId(2), Outside::SlotsOverflow)]);
    assert_eq!((total.f(), total.sif()), (0.4, 0.2));
    // Three GPUs a node: the condition has no meaning there.
    assert_eq!(total.wcc, None);
    let wcc: Vec<_> = pools.iter().map(|pool| pool.figures.wcc).collect();
    assert_eq!(wcc, [Some(WccFigures { holds: false, slack: -3 }), None, None]);
    // Now: 3 free on a, 4 on b, 3 on d. Ideally, c aside: 4+4 on one node, 1 on the other, so 7 free together.
    assert_eq!(total.max_gang[..4], [(1, 10), (2, 4), (3, 3), (4, 1)]);
    assert_eq!(total.max_gang_ideal[..4], [(1, 10), (2, 4), (3, 3), (4, 1)]);
    let ideal: Vec<_> = total.max_gang_ideal[4..].to_vec();
    assert_eq!(ideal, [(5, 1), (6, 1), (7, 1), (8, 0)]);
    assert_eq!(total.max_gang[4..], [(5, 0), (6, 0), (7, 0), (8, 0)]);
    let sum =
        |size: usize| pools.iter().map(|pool| pool.figures.max_gang.get(size).map_or(0, |&(_, n)| n)).sum::<u64>();
    assert_eq!(sum(0), 10);
}

#[test]
fn findings_of_a_mixed_cluster() {
    let expected = [
        "1 of 2 partial nodes is avoidable: ideal packing leaves 1.",
        "1 more 7-GPU instance would fit after ideal packing: 0 now, 1 then.",
        "1 more 6-GPU instance would fit after ideal packing: 0 now, 1 then.",
        "1 more 5-GPU instance would fit after ideal packing: 0 now, 1 then.",
        "Compaction inside Σ takes 2 moves (5 GPUs) and leaves 1 partial node.",
        "2 nodes are outside the Anchor-Based Space: a (no-vacancy), c (slots-overflow).",
        "1 node is unschedulable: c.",
        "2 GPUs are unavailable on 2 nodes: d, e.",
        "4 free GPUs are stranded by CPU on 1 node: the CPU left there is too little even at the least that any running \
         job asks a GPU.",
        "1 node has more CPU or memory in use than there is: b.",
    ];
    assert_eq!(audit_of(MIXED).findings, expected);
}

#[test]
fn an_empty_and_a_full_cluster() {
    let empty = audit_of(r#"{"nodes": []}"#);
    assert_eq!((empty.total.nodes, empty.total.f(), empty.total.wcc), (0, 0.0, None));
    assert_eq!(empty.findings, ["No node is partial."]);
    let full = audit_of(
        r#"{"nodes": [{"name": "a", "gpus": 2}], "running": [
            {"job": "x", "gpus_per_instance": 2, "instances": [{"node": "a"}]}]}"#,
    );
    assert_eq!((full.total.full, full.total.phi_star), (1, 0));
    assert_eq!(full.total.wcc, Some(WccFigures { holds: true, slack: 0 }));
    // Sizes that no node here has are answered too.
    assert_eq!(full.total.max_gang, [(1, 0), (2, 0), (4, 0), (8, 0)]);
    assert_eq!(full.total.max_gang, full.total.max_gang_ideal);
}

#[test]
fn unavoidable_partial_nodes_are_called_so() {
    let one = r#"{"nodes": [{"name": "a", "gpus": 8}], "running": [
        {"job": "x", "gpus_per_instance": 4, "instances": [{"node": "a"}]}]}"#;
    assert_eq!(audit_of(one).findings, ["The only partial node is unavoidable."]);
    let two = r#"{"nodes": [{"name": "a", "gpus": 8}, {"name": "b", "gpus": 8}], "running": [
        {"job": "x", "gpus_per_instance": 5, "instances": [{"node": "a"}, {"node": "b"}]}]}"#;
    let expected = [
        "All 2 partial nodes are unavoidable: no packing of what runs has fewer.",
        "The Workload Composition Condition fails: 6 1-GPU instances are missing to fill all slots of a pool.",
        "6 free GPUs are stranded by shape on 2 nodes: no mix of the instance sizes of running jobs fills what is free there.",
    ];
    assert_eq!(audit_of(two).findings, expected);
}

#[test]
fn compaction_moves_nothing_that_is_pinned() {
    let half = |job: &str, node: &str, migratable: bool| {
        format!(
            r#"{{"job": "{job}", "gpus_per_instance": 4, "migratable": {migratable}, "instances": [{{"node": "{node}"}}]}}"#
        )
    };
    let of = |x: bool, y: bool| {
        let running = [half("x", "a", x), half("y", "b", y)].join(",");
        let nodes = r#"{"name": "a", "gpus": 8}, {"name": "b", "gpus": 8}"#;
        let audit = audit_of(&format!(r#"{{"nodes": [{nodes}], "running": [{running}]}}"#));
        let of_8 = |sizes: &[(u8, u64)]| sizes.iter().find(|(size, _)| *size == 8).map(|&(_, n)| n);
        let total = &audit.total;
        let gangs = [&total.max_gang, &total.max_gang_compacted, &total.max_gang_ideal].map(|sizes| of_8(sizes));
        (audit.compaction.moves, gangs.map(Option::unwrap))
    };
    assert_eq!(of(true, true), (1, [0, 1, 1]));
    assert_eq!(of(true, false), (1, [0, 1, 1]));
    assert_eq!(of(false, false), (0, [0, 0, 1]));
}
