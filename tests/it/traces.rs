//! Traces of others: every trap that is known of each, on small samples of our own, and the real ones that are there.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use slotwise::cluster::Cluster;
use slotwise::formats::*;
use slotwise::workload::synthetic::Mix;
use slotwise::workload::{Outcome, TraceJob, natural, replay, trace_to_queue};

use super::formats::{data, gz};
use samples::{HELIOS, KALOS, PHILLY, PHILLY_LOG, PODS, SACCT, SEREN, SPOT, SWF};

mod each;
pub(crate) mod samples;

const RATIO: &str = "1/8";

fn swf(bytes: &[u8]) -> Result<Trace, FormatError> {
    read_swf_from("t", bytes, RATIO.parse().unwrap())
}

type Reader = fn(&[u8]) -> Result<Trace, FormatError>;

/// Every reader of a trace with its samples.
const READERS: [(Reader, &str); 9] = [
    (|bytes| read_openb_pods_from("t", bytes), PODS),
    (|bytes| read_alibaba_2026_jobs_from("t", bytes), SPOT),
    (|bytes| read_philly_from("t", bytes), PHILLY),
    (|bytes| read_philly_from("t", bytes), PHILLY_LOG),
    (|bytes| read_helios_from("t", bytes), HELIOS),
    (|bytes| read_acme_from("t", bytes), SEREN),
    (|bytes| read_acme_from("t", bytes), KALOS),
    (swf, SWF),
    (|bytes| read_sacct_from("t", bytes), SACCT),
];

/// What holds for every trace that was read.
fn check_laws(trace: &Trace) {
    let Trace { jobs, report } = trace;
    assert_eq!(report.rows, jobs.len() as u64 + report.left_out.values().sum::<u64>());
    assert!(jobs.is_sorted_by_key(|job| job.submit_s) && jobs.first().is_none_or(|job| job.submit_s == 0));
    for job in jobs {
        assert!(job.instances > 0 && job.gpus_per_instance <= 16 && job.duration_s <= TraceJob::FOREVER);
        assert!((1..=1000).contains(&job.gpu_milli) && (job.gpu_milli == 1000 || job.gpus_per_instance == 1));
        assert!(job.models.is_sorted_by(|a, b| a < b) && !job.name.is_empty());
    }
    // Names that are there twice would be refused here.
    let queue = trace_to_queue(jobs, &natural(jobs), &mut Cluster::default()).unwrap();
    assert_eq!(queue.len(), jobs.len() + jobs.iter().filter(|job| job.leaves()).count());
    assert!(replay(jobs, 100_000, 95).len() <= queue.len());
}

/// Hands the bytes to every reader of a trace. What is read obeys the laws; a fault has a line.
pub(crate) fn read_every_trace(bytes: &[u8]) {
    for (read, _) in READERS {
        match read(bytes) {
            Ok(trace) => check_laws(&trace),
            Err(error) => assert!(error.line().is_some(), "{error}"),
        }
    }
    if let Err(error) = read_openb_nodes_from("t", bytes) {
        assert!(error.line().is_some(), "{error}");
    }
}

#[test]
fn every_sample_obeys_the_laws_also_when_its_columns_are_turned_around() {
    for (read, sample) in READERS {
        let trace = read(sample.as_bytes()).unwrap();
        check_laws(&trace);
        assert!(!trace.jobs.is_empty());
        let delimiter = if sample == SACCT { '|' } else { ',' };
        if sample == SWF || sample == PHILLY_LOG {
            continue;
        }
        let turn = |line: &str| line.split(delimiter).rev().collect::<Vec<_>>().join(&delimiter.to_string());
        let turned: String = sample.lines().map(|line| turn(line) + "\r\n").collect();
        let again = read(turned.as_bytes()).unwrap();
        assert_eq!((&again.jobs, &again.report), (&trace.jobs, &trace.report));
    }
}

#[test]
fn the_real_openb_files_have_the_totals_that_are_known_of_them() {
    let Some(nodes) = data("alibaba-openb-2023/node_list_gpu_node.csv") else { return };
    let cluster = cluster_source(&format!("openb:{}", nodes.display()), None).unwrap().cluster;
    let of = |gpus: u8| cluster.nodes().iter().filter(|node| node.devices() == gpus).count();
    assert_eq!((cluster.nodes().len(), cluster.gpus()), (1213, 6212));
    assert_eq!([of(8), of(2), of(4), of(1)], [617, 518, 54, 24]);
    let sum = |amount: fn(&slotwise::cluster::Node) -> u32| {
        cluster.nodes().iter().map(|node| u64::from(amount(node))).sum::<u64>()
    };
    assert_eq!(sum(|node| node.cpu_milli()), 107_018_000);
    assert_eq!(sum(|node| node.memory_mib()) << 20, 528_302_452_244_480);

    let pods = |name: &str| {
        let path = data(&format!("alibaba-openb-2023/pod_list_{name}.csv.gz"))?;
        Some(foreign_trace(&format!("openb:{}", path.display()), None).unwrap().unwrap())
    };
    let Some(default) = pods("default") else { return };
    check_laws(&default);
    let count = |trace: &Trace, what: fn(&TraceJob) -> bool| trace.jobs.iter().filter(|&job| what(job)).count();
    assert_eq!((default.jobs.len(), default.report.rows, default.report.left_out.len()), (8152, 8152, 0));
    assert_eq!(count(&default, |job| job.gpus_per_instance == 0), 1088);
    assert_eq!(count(&default, TraceJob::is_share), 3078);
    assert_eq!(count(&default, |job| job.outcome == Outcome::Pending && job.censored), 897);
    assert_eq!(count(&default, |job| job.outcome == Outcome::Running && job.censored), 34);
    // One was created and deleted in one second, but had been scheduled then.
    assert!(default.jobs.iter().all(TraceJob::leaves));
    let Some(gpuspec) = pods("gpuspec10") else { return };
    assert_eq!(count(&gpuspec, |job| !job.models.is_empty()), 732);
    let Some(multigpu) = pods("multigpu20") else { return };
    assert_eq!((multigpu.jobs.len(), count(&multigpu, TraceJob::leaves)), (8324, 0));
}

#[test]
fn traces_become_queues_packed_or_plain_and_say_what_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    let ratio = RATIO.parse().ok();
    for (prefix, sample, submitted) in [
        ("openb", PODS, 5),
        ("alibaba-2026", SPOT, 3),
        ("philly", PHILLY, 2),
        ("philly", PHILLY_LOG, 2),
        ("helios", HELIOS, 5),
        ("acme", KALOS, 2),
        ("swf", SWF, 2),
        ("sacct", SACCT, 5),
    ] {
        for bytes in [sample.as_bytes().to_vec(), gz(sample)] {
            let path = directory.path().join("trace");
            std::fs::write(&path, bytes).unwrap();
            let origin = format!("{prefix}:{}", path.display());
            let (queue, notes) = queue_source(&origin, &mut Cluster::default(), None, ratio, None).unwrap();
            assert_eq!(queue.len(), submitted * 2, "{prefix}");
            let options = TraceOptions { gpus: 100, load_percent: 95, mix: Mix::Gfs, gpus_per_proc: ratio };
            let (jobs, told) = trace_source(&origin, &options).unwrap();
            assert_eq!((jobs.len(), told), (submitted, notes), "{prefix}");
            assert_eq!(
                trace_source(&origin, &TraceOptions { gpus_per_proc: None, ..options }).is_err(),
                prefix == "swf"
            );
            let mut cluster = cluster_source("synthetic:100", None).unwrap().cluster;
            assert!(queue_source(&origin, &mut cluster, Some(50), ratio, None).is_ok(), "{prefix}");
            // Only two of them can be clusters, and a list of jobs is none.
            assert!(cluster_source(&origin, None).is_err());
        }
        let error = queue_source(&format!("{prefix}:/none"), &mut Cluster::default(), None, ratio, None).unwrap_err();
        assert!(error.to_string().ends_with("found no such file, expected one to read"));
    }
}

#[test]
fn no_change_of_a_sample_makes_a_reader_panic_and_every_fault_has_a_line() {
    const WORDS: [&str; 18] = [
        "-1",
        "0",
        "1.5",
        "17",
        "1e400",
        "99999999999999999999",
        "None",
        "null",
        "\"",
        "{",
        "[",
        "]",
        ",",
        "|",
        "\n",
        ";",
        "9999-12-31 23:59:59",
        "\u{0}",
    ];
    let rounds = if std::env::var_os("SLOTWISE_NIGHTLY").is_some() { 20_000 } else { 400 };
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let mut faults = 0;
    for (read, sample) in READERS {
        for _ in 0..rounds {
            let mut bytes = sample.as_bytes().to_vec();
            for _ in 0..random.random_range(1..5) {
                let at = random.random_range(0..bytes.len());
                match random.random_range(0..6) {
                    0 => bytes.truncate(at + 1),
                    1 => bytes[at] = random.random(),
                    2 => drop(bytes.remove(at)),
                    3 => {
                        // Another value for a field, which most often leaves the rest intact.
                        let is_end = |byte: &u8| b",| \n".contains(byte);
                        let end = bytes[at..].iter().position(is_end).map_or(bytes.len(), |length| at + length);
                        let word = WORDS[random.random_range(0..WORDS.len())];
                        bytes.splice(at..end, word.bytes());
                    }
                    4 => {
                        let word = WORDS[random.random_range(0..WORDS.len())];
                        bytes.splice(at..at, word.bytes());
                    }
                    _ => {
                        let piece = bytes[at..].iter().copied().take(80).collect::<Vec<_>>();
                        let to = random.random_range(0..=bytes.len());
                        bytes.splice(to..to, piece);
                    }
                }
                if bytes.is_empty() {
                    break;
                }
            }
            match read(&bytes) {
                Ok(trace) => check_laws(&trace),
                Err(error) => {
                    faults += 1;
                    assert!(error.line().is_some(), "{error}");
                }
            }
        }
    }
    assert!(faults > rounds, "{faults}");
}
