//! Shares of devices: what the ledger keeps of them.

use proptest::prelude::*;
use slotwise::cluster::*;

/// A cluster of two nodes, of 4 and 2 devices, and queued jobs of these thousandths (1000 and more: whole GPUs).
fn cluster(jobs: &[u16]) -> Cluster {
    let mut builder = ClusterBuilder::new();
    for (name, gpus) in [("n0", 4), ("n1", 2)] {
        let spec = NodeSpec { name, gpus, cpu_milli: Some(6), unavailable: 0b10, ..NodeSpec::default() };
        builder.add_node(&spec).unwrap();
    }
    let mut cluster = builder.finish().unwrap();
    for (i, &milli) in jobs.iter().enumerate() {
        let (gpus, gpu_milli) = if milli < WHOLE_GPU { (1, milli) } else { ((milli / WHOLE_GPU) as u8, WHOLE_GPU) };
        let spec = JobSpec { name: &format!("j{i}"), gpus, gpu_milli, cpu_milli: 1, ..JobSpec::default() };
        let job = cluster.register(&spec, 1).unwrap();
        assert!(cluster.number_instances(job));
    }
    cluster
}

fn take(instance: u32, node: u32, gpus: GpuMask) -> Edit {
    Edit::Take { instance: InstanceId(instance), node: NodeId(node), gpus }
}

/// Everything that a cluster keeps of what runs.
fn kept(cluster: &Cluster) -> (Vec<Node>, Vec<Instance>, Vec<[u16; MAX_GPUS]>) {
    let instances = cluster.job_ids().flat_map(|job| cluster.instances_of(job));
    let instances = instances.map(|instance| *cluster.instance(instance)).collect();
    (cluster.nodes().to_vec(), instances, cluster.node_ids().map(|node| cluster.gpu_milli_left(node)).collect())
}

#[test]
fn a_shared_device_counts_as_one_busy_instance() {
    let mut cluster = cluster(&[300, 600, 200, 1000]);
    let node = NodeId(0);
    cluster.apply(&[take(0, 0, 0b100), take(1, 0, 0b100)]).unwrap();
    let held = cluster.node(node);
    assert_eq!((held.busy(), held.shared(), held.anchors(), held.free_gpus()), (0b100, 0b100, 0, 2));
    assert_eq!(held.composition().to_string(), "{1}");
    assert_eq!(cluster.gpu_milli_left(node)[..4], [1000, 0, 100, 1000]);
    assert_eq!((cluster.owner(node, 2), cluster.instances_on(node).count()), (None, 0));
    // Whoever ends what runs on the node ends the shares too.
    assert_eq!((cluster.jobs_on(node), cluster.jobs_on(NodeId(1))), (vec![JobId(0), JobId(1)], Vec::new()));
    // Not enough left for 200; a whole GPU never goes to a shared device, nor a share to one that is held whole.
    assert_eq!(cluster.apply(&[take(2, 0, 0b100)]), Err(EditError::GpuBusy(node)));
    assert_eq!(cluster.apply(&[take(3, 0, 0b100)]), Err(EditError::GpuBusy(node)));
    cluster.apply(&[take(3, 0, 0b1)]).unwrap();
    assert_eq!(cluster.apply(&[take(2, 0, 0b1)]), Err(EditError::GpuBusy(node)));
    assert_eq!(cluster.apply(&[take(2, 0, 0b10)]), Err(EditError::NoSuchGpu(node)));
    assert_eq!(cluster.apply(&[take(2, 0, 0b1100)]), Err(EditError::WrongCount(InstanceId(2))));
    // The device stays busy until the last share is gone.
    cluster.apply(&[take(0, 0, 0b100).inverse()]).unwrap();
    assert_eq!((cluster.node(node).busy(), cluster.gpu_milli_left(node)[2]), (0b101, 400));
    cluster.apply(&[take(1, 0, 0b100).inverse()]).unwrap();
    assert_eq!((cluster.node(node).busy(), cluster.node(node).shared(), cluster.gpu_milli_left(node)[2]), (1, 0, 1000));
    assert_eq!(cluster.check_books(), Ok(()));
}

#[test]
fn the_device_for_a_share_is_the_fullest_that_has_enough_left() {
    let mut cluster = cluster(&[300, 600, 300, 1000]);
    let of = |cluster: &Cluster, milli| cluster.device_for_share(NodeId(0), milli);
    assert_eq!(of(&cluster, 999), Some(0b1));
    cluster.apply(&[take(0, 0, 0b1000), take(1, 0, 0b100)]).unwrap();
    assert_eq!((of(&cluster, 400), of(&cluster, 401), of(&cluster, 701)), (Some(0b100), Some(0b1000), Some(0b1)));
    assert_eq!((cluster.room_on_shared(NodeId(0), 350), cluster.room_on_shared(NodeId(1), 1)), (3, 0));
    cluster.apply(&[take(3, 0, 0b1), take(2, 0, 0b100)]).unwrap();
    assert_eq!((of(&cluster, 100), of(&cluster, 101), of(&cluster, 701)), (Some(0b100), Some(0b1000), None));
}

#[test]
fn a_snapshot_seats_shares_that_name_no_device_beside_others() {
    let text = r#"{"schema":1,"nodes":[{"name":"n","gpus":2}],"running":[
        {"job":"a","gpus_per_instance":1,"gpu_milli":700,"instances":[{"node":"n","gpus":[1]}]},
        {"job":"b","gpus_per_instance":1,"gpu_milli":300,"instances":[{"node":"n"},{"node":"n"}]}]}"#;
    let cluster = slotwise::formats::read_cluster_from("c", text.as_bytes()).unwrap().cluster;
    let gpus: Vec<GpuMask> = cluster.instances_of(JobId(1)).map(|instance| cluster.instance(instance).gpus()).collect();
    assert_eq!(gpus, [0b10, 0b1]);
    assert_eq!(cluster.check_books(), Ok(()));
}

proptest! {
    /// Batches of edits, of which some cannot be: each applies whole or not at all, and is undone as if it had not been.
    #[test]
    fn edits_are_all_or_nothing_and_can_be_undone(
        milli in prop::collection::vec(prop_oneof![4 => 1_u16..1000, 1 => Just(1000_u16), 1 => Just(2000_u16)], 1..12),
        batches in prop::collection::vec(prop::collection::vec((any::<prop::sample::Index>(), 0_u32..2, 0_u16..16), 1..6), 1..12),
    ) {
        let mut cluster = cluster(&milli);
        for batch in batches {
            let edit = |&(at, node, gpus): &(prop::sample::Index, u32, u16)| {
                let instance = InstanceId(at.index(milli.len()) as u32);
                let held = cluster.instance(instance);
                match held.node() {
                    Some(node) => Edit::Free { instance, node, gpus: held.gpus() },
                    None if milli[instance.index()] <= WHOLE_GPU => take(instance.0, node, 1 << (gpus % 4)),
                    None => take(instance.0, node, gpus),
                }
            };
            let edits: Vec<Edit> = batch.iter().map(edit).collect();
            let before = kept(&cluster);
            match cluster.apply(&edits) {
                Err(_) => prop_assert_eq!(kept(&cluster), before),
                Ok(()) => {
                    prop_assert_eq!(cluster.check_books(), Ok(()));
                    let after = kept(&cluster);
                    cluster.undo(&edits);
                    prop_assert_eq!(kept(&cluster), before);
                    prop_assert_eq!(cluster.check_books(), Ok(()));
                    cluster.apply(&edits).unwrap();
                    prop_assert_eq!(kept(&cluster), after);
                }
            }
        }
    }
}
