//! Readers on random input: what was written is read again, and nothing makes one panic.

use proptest::prelude::*;
use slotwise::cluster::Cluster;
use slotwise::formats::*;
use slotwise::workload::TraceJob;
use slotwise::workload::synthetic::arbitrary_cluster;

use super::{SNAPSHOT, gz, told};
use crate::traces::read_every_trace;

/// Every reader on the same bytes: none may panic.
fn read_everything(bytes: &[u8]) {
    let _ = read_cluster_from("f", bytes);
    let _ = read_queue_from("f", bytes, &mut Cluster::default());
    let _ = read_candidates_from("f", bytes);
    let _ = read_alibaba_2026_from("f", bytes);
    read_every_trace(bytes);
    let _ = read_trace_from("f", bytes);
    if let Ok(mut source) = Source::new("f", std::io::Cursor::new(bytes.to_vec())) {
        let _ = read_cluster_from("f", source.reader());
    }
}

const VALID: [&str; 5] = [
    SNAPSHOT,
    "{\"job\":\"x\",\"instances\":2,\"gpus_per_instance\":16,\"models\":[\"H100\"],\"within\":\"rack\"}\n{\"remove\":\"x\"}\n",
    "{\"job\":\"b\",\"candidate\":\"c\",\"place\":[{\"node\":\"n\",\"gpus\":[0]}],\"migrate\":[{\"job\":\"a\",\"instance\":7,\"node\":\"n\"}]}\n",
    "gpu_model,gpu_capacity_num,cpu_num,node_name\nA10,1,128,2\nA100,8,96,3\n",
    "{\"job\":\"t\",\"submit_s\":7,\"duration_s\":9,\"gpus_per_instance\":3,\"instances\":2,\"priority\":1}\n\
     {\"job\":\"u\",\"submit_s\":7,\"duration_s\":9,\"gpus_per_instance\":1,\"gpu_milli\":250}\n",
];

proptest! {
    #[test]
    fn a_cluster_is_read_as_it_was_written(seed: u64, n_nodes in 0u32..40) {
        let cluster = arbitrary_cluster(seed, n_nodes);
        prop_assert_eq!(cluster.check_books(), Ok(()));
        let mut text = Vec::new();
        write_cluster(&cluster, Some("now \" \\ \n"), &mut text).unwrap();
        let again = read_cluster_from("c", &text[..]).unwrap();
        prop_assert_eq!(again.cluster.check_books(), Ok(()));
        prop_assert_eq!(again.as_of.as_deref(), Some("now \" \\ \n"));
        prop_assert_eq!(told(&again.cluster), told(&cluster));
        prop_assert_eq!(again.cluster.nodes(), cluster.nodes());
        prop_assert_eq!(again.cluster.jobs(), cluster.jobs());
        prop_assert_eq!(again.cluster.requests(), cluster.requests());
        for job in cluster.job_ids() {
            for instance in cluster.instances_of(job) {
                prop_assert_eq!(again.cluster.instance(instance), cluster.instance(instance));
            }
            prop_assert_eq!(again.cluster.job_times(job), cluster.job_times(job));
        }
    }

    #[test]
    fn a_trace_is_read_as_it_was_written(
        jobs in prop::collection::vec(((0..99u64, 0..99u64), (1..9u32, 1..17u8), 1..1000u16, 0..3u32), 0..30),
    ) {
        let job = |(number, ((submit_s, duration_s), (instances, gpus_per_instance), milli, priority))| TraceJob {
            name: format!("j\"{number}"),
            submit_s,
            duration_s,
            instances,
            gpus_per_instance,
            gpu_milli: if gpus_per_instance == 1 && milli < 700 { milli } else { TraceJob::WHOLE },
            priority,
            ..TraceJob::default()
        };
        let mut jobs: Vec<TraceJob> = jobs.into_iter().enumerate().map(job).collect();
        jobs.sort_by_key(|job| job.submit_s);
        let mut text = Vec::new();
        write_trace(&jobs, &mut text).unwrap();
        prop_assert_eq!(read_trace_from("t", &text[..]).unwrap().0, jobs);
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        read_everything(&bytes);
    }

    #[test]
    fn no_change_of_a_valid_input_makes_a_reader_panic(
        which in 0..VALID.len(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0u8..4), 1..6),
        packed: bool,
    ) {
        const WORDS: [&str; 14] =
            ["-1", "0", "17", "99999999999999999999", "1e400", "null", "\"", "{", "}", "[", "]", ",", "\\ud800", "\u{0}"];
        let mut bytes = VALID[which].as_bytes().to_vec();
        for (at, word, kind) in changes {
            let place = at.index(bytes.len().max(1)).min(bytes.len());
            match kind {
                0 => bytes.truncate(place),
                1 => { bytes.splice(place..place, WORDS[word.index(WORDS.len())].bytes()); }
                2 if place < bytes.len() => { bytes.remove(place); }
                _ => {
                    let from = word.index(bytes.len().max(1)).min(place);
                    let piece = bytes[from..place].to_vec();
                    bytes.splice(place..place, piece);
                }
            }
        }
        if packed {
            bytes = gz(&String::from_utf8_lossy(&bytes));
        }
        read_everything(&bytes);
    }
}
