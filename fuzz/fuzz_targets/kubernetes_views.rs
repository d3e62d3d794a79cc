//! No bytes make the readers of single objects of Kubernetes panic, as the watch reads them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use slotwise::formats::{
    TopologyKeys, read_claim_view, read_node_view, read_pod_group_view, read_pod_view, read_slice_view,
};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(node) = read_node_view("node", bytes) {
        let keys = TopologyKeys::of_nodes([&node].into_iter());
        let (domain, rack) = node.place(&keys);
        assert!(domain.is_none_or(|domain| !domain.is_empty()) && rack.is_none_or(|rack| !rack.is_empty()));
        assert!(node.gpus().is_none_or(|(devices, working)| working <= devices && devices <= 16));
    }
    let _ = read_pod_view("pod", bytes);
    let _ = read_claim_view("claim", bytes);
    let _ = read_slice_view("slice", bytes);
    let _ = read_pod_group_view("group", bytes);
});
