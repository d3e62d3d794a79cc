//! Traces of others: every trap that is known of each, on small samples of our own, and the real ones that are there.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use slotwise::cluster::{Cluster, ClusterBuilder, NodeSpec};
use slotwise::formats::*;
use slotwise::workload::{Outcome, TraceEvent, TraceJob, natural, replay, trace_to_queue};

use super::formats::{data, gz};

const PODS: &str = "\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p0,6000,12288,1,460,,LS,Running,427,1000,430
p1,8000,4096,8,1000,V100M32|V100M16|V100M32,BE,Succeeded,100,700,120
p2,1000,1024,0,0,,LS,Failed,500,500,500
p3,1000,1024,2,1000,T4,BE,Pending,400,900,
p4,1000,1024,1,1000,,LS,Running,100,300,100
p4,1000,1024,1,1000,,LS,Running,100,300,100
p5,1000,1024,1,1000,,LS,Failed,100,300,400
p6,1000,1024,17,1000,,LS,Failed,100,300,100
p7,1000,1024,1,1000,,LS,Failed,,300,100
p8,1000,1024,1,1000,,LS,Failed,100,,
p9,-1,1024,1,1000,,LS,Failed,100,300,100
";

const SPOT: &str = "\
job_type,job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,more
HP,j0,o1,A100,12,1,94,5,3600,
Spot,j1,o2,,1.5,8.0,2,0,59.5,
Spot,j2,o2,A10,4,0.5,1,1,60,
Odd,j3,o2,A10,4,0,3,1,60,
HP,j4,o2,A10,4,1,0,1,60,
HP,j5,o2,A10,4,17,1,1,60,
HP,j6,o2,A10,4,1,1,1,-60,
HP,j7,o2,A10,4,1,1,1,,
HP,j8,o2,A10,4,-2,1,1,1,
HP,j9,o2,A10,9999999,1,1,1,1,
";

const PHILLY: &str = "\
timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 07:01:55,66.0,1,66.0,11cb48
2017-10-09 06:13:03,2951.5,16,2951.0,6214e9
2017-10-09 06:13:03,1,12,1,6214e9
2017-10-09 06:13:03,-1,8,1,6214e9
2017-10-09 06:13:03,,8,1,6214e9
2017-10-09 06:13:03,1,0,1,6214e9
,1,1,1,6214e9
";

const PHILLY_LOG: &str = r#" [
{"status": "Pass", "vc": "v1", "jobid": "a_1", "user": "u1", "submitted_time": "2017-10-09 07:00:00", "attempts": [
  {"start_time": "2017-10-09 07:00:10", "end_time": "2017-10-09 07:00:20",
   "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu7"]}]},
  {"start_time": "2017-10-09 07:01:00", "end_time": "2017-10-09 07:01:50", "detail": [{"ip": "m1", "gpus": ["gpu0"]}]}]},
{"status": "Killed", "vc": "v1", "jobid": "a_2", "user": null, "submitted_time": "2017-10-09 06:59:00", "extra": [1],
 "attempts": [{"start_time": "2017-10-09 07:00:10", "end_time": null, "detail": [
   {"ip": "m1", "gpus": ["0", "1", "2", "3", "4", "5", "6", "7"]}, {"ip": "m2", "gpus": ["0", "1", "2", "3", "4", "5", "6", "7"]}]}]},
{"status": "Failed", "jobid": "a_3", "submitted_time": "2017-10-09 07:00:00", "attempts": []},
{"status": "Killed", "jobid": "a_4", "submitted_time": "2017-10-09 07:00:00", "attempts": [
  {"start_time": "None", "end_time": "", "detail": [{"ip": "m1", "gpus": ["gpu0"]}]}]},
{"status": "Pass", "jobid": "a_5", "submitted_time": null, "attempts": [
  {"start_time": "2017-10-09 07:00:10", "end_time": "2017-10-09 07:00:20", "detail": [{"ip": "m1", "gpus": ["gpu0"]}]}]},
{"status": "Pass", "jobid": "a_1", "submitted_time": "2017-10-09 07:00:00", "attempts": [
  {"start_time": "2017-10-09 07:00:10", "end_time": "2017-10-09 07:00:20", "detail": [{"ip": "m1", "gpus": ["gpu0"]}]}]},
{"status": "Pass", "jobid": "a_6", "submitted_time": "2017-10-09 07:00:00", "attempts": [
  {"start_time": "2017-10-09 07:00:30", "end_time": "2017-10-09 07:00:20", "detail": [{"ip": "m1", "gpus": ["gpu0"]}]}]}
]"#;

const HELIOS: &str = "\
job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
1,u1,vcA,16,64,4,COMPLETED,2020-04-01 00:00:10,2020-04-01 00:00:20,2020-04-01 00:01:20,60,10
2,u1,vcA,0,10,3,FAILED,2020-04-01 00:00:00,2020-04-01 00:00:20,2020-04-01 00:01:20,60,20
3,u2,vcB,16,8,3,TIMEOUT,2020-04-01 00:00:10,2020-04-01 00:00:05,2020-04-01 00:01:20,99,0
4,u2,vcB,12,8,5,CANCELLED,2020-04-01 00:00:10,2020-04-01 00:00:20,2020-04-01 00:01:20,60,10
5,u2,vcB,1,8,1,CANCELLED,2020-04-01 00:00:10,,2020-04-01 00:01:20,0,70
6,u2,vcB,1,8,1,NODE_FAIL,2020-04-01 00:00:10,2020-04-01 00:00:20,None,60,10
7,u2,vcB,1,8,1,STRANGE,2020-04-01 00:00:10,2020-04-01 00:00:20,2020-04-01 00:00:20,0,10
8,u2,vcB,1.5,8,1,FAILED,2020-04-01 00:00:10,2020-04-01 00:00:20,2020-04-01 00:00:20,0,10
9,u2,vcB,,8,1,FAILED,2020-04-01 00:00:10,2020-04-01 00:00:20,2020-04-01 00:00:20,0,10
,u2,vcB,1,8,1,FAILED,2020-04-01 00:00:10,2020-04-01 00:00:20,2020-04-01 00:00:20,0,10
";

const SEREN: &str = "\
job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time
5778432,u4,1,8,120,Other,COMPLETED,2023-03-01 08:00:00+08:00,2023-03-01 08:00:03+08:00,2023-03-01 08:02:00+08:00,117,3,936
5778433,u4,2,9,1,Eval,FAILED,2023-03-01 00:30:00+00:00,2023-03-01 08:30:03+08:00,2023-03-01 08:31:03+08:00,60,3,540
";

const KALOS: &str = "\
job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,start_time,end_time,fail_time,stop_time,duration,queue,gpu_time
d1,u1,4,32,480,1000.0,100.0,Pretrain,COMPLETED,2023-05-17 11:00:58+00:00,2023-05-17 11:01:08+00:00,2023-05-17 11:01:16+00:00,,2023-05-17 11:01:16+00:00,18.0,10.0,576.0
d2,u1,1,1,4,10.0,,Other,FAILED,2023-05-17 11:00:58+00:00,2023-05-17 11:01:10+00:00,2023-05-17 11:02:20+00:00,,,82.0,12.0,82.0
";

const SWF: &str = "\
; Version: 2.2
;  UnixStartTime: 1000000
; MaxProcs: 128

  1 100 5 60.4 64 -1 -1 128 -1 -1 1 3 1 -1 2 -1 -1 -1
2 50 5 0 64 -1 -1 -1 -1 -1 0 3 1 -1 2 -1 -1 -1
3 50 5 -1 64 -1 -1 64 -1 -1 5 3 1 -1 2 -1 -1 -1
4 50 5 -1 64 -1 -1 64 -1 -1 1 3 1 -1 2 -1 -1 -1
5 50 5 10 65 -1 -1 -1 -1 -1 1 3 1 -1 2 -1 -1 -1
6 50 5 10 -1 -1 -1 -1 -1 -1 1 3 1 -1 2 -1 -1 -1
1 -1 5 10 64 -1 -1 128 -1 -1 2 3 1 -1 2 -1 -1 -1
7 -1 5 10 64 -1 -1 128 -1 -1 1 3 1 -1 2 -1 -1 -1
8 50 5 10 96 -1 -1 -1 -1 -1 1 -1 1 -1 -1 -1 -1 -1
9 50 5 10 96.5 -1 -1 -1 -1 -1 1 3 1 -1 2 -1 -1 -1
";

const SACCT: &str = "\
JobIDRaw|User|Account|Partition|QOS|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|State|NNodes|ReqTRES|AllocTRES|NodeList|Reservation
10|al|acc|gpu|normal|2024-01-02T00:00:10|x|2024-01-02T00:00:20|2024-01-02T00:01:20|60|60|COMPLETED|2|billing=8,cpu=64,gres/gpu:h100=8,gres/gpu=8,mem=1T,node=2|billing=8,cpu=64,gres/gpu:h100=8,gres/gpu=8,mem=1T,node=2|n[1-2]|\"r
10.batch|||||2024-01-02T00:00:10|x|2024-01-02T00:00:20|2024-01-02T00:01:20|60||COMPLETED|1||cpu=32,gres/gpu=4|n1|
11|bo|acc|gpu|normal|2024-01-02T00:00:00|x|2024-01-02T00:00:20|Unknown|3000|60|RUNNING|1|cpu=8,gres/gpu=1|cpu=8,gres/gpu:a100=1|n1|
12|bo|acc|gpu|normal|2024-01-02T00:00:30|x|Unknown|Unknown|0|60|PENDING|1|cpu=8,gres/gpu=1||None assigned|
13|bo|acc|gpu|normal|2024-01-02T00:00:30|x|2024-01-02T00:00:40|2024-01-02T00:00:50|10|60|CANCELLED by 1000|1|cpu=8|cpu=8|n1|
14|bo|acc|gpu|normal|2024-01-02T00:00:40|x|2024-01-02T00:00:40|2024-01-02T00:00:50|10|60|REQUEUED|1|gres/gpu=1|gres/gpu=1|n1|
14|bo|acc|gpu|normal|2024-01-02T00:00:50|x|2024-01-02T00:01:40|2024-01-02T00:03:20|100|60|COMPLETED|1|gres/gpu=1|gres/gpu=1|n1|
15|bo|acc|gpu|normal|2024-01-02T00:00:40|x|2024-01-02T00:00:40|2024-01-02T00:00:50|10|60|FAILED|1|cpu=1,gres/shard=2|cpu=1,gres/shard=2|n1|
16|bo|acc|gpu|normal|2024-01-02T00:00:40|x|2024-01-02T00:00:40|2024-01-02T00:00:50|10|60|FAILED|1|gres/gpu:a=1,gres/gpu:b=1|gres/gpu=2|n1|
17|bo|acc|gpu|normal|2024-01-02T00:00:40|x|2024-01-02T00:00:40|2024-01-02T00:00:50|10|60|FAILED|2|gres/gpu:a=9|gres/gpu:a=9|n1|
18|bo|acc|gpu|normal|2024-01-02T00:00:40|x|2024-01-02T00:00:40|2024-01-02T00:00:50|10|60|CANCELLED by 0|3|gres/gpu=16||n1|
19|bo|acc|gpu|normal|2024-01-02T00:00:40|x|2024-01-03T00:00:40|Unknown|0|60|PENDING|1|gres/gpu=1||n1|
";

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
    let jobs = trace.clone().without_shares().jobs;
    // Names that are there twice would be refused here.
    let queue = trace_to_queue(&jobs, &natural(&jobs), &mut Cluster::default()).unwrap();
    assert_eq!(queue.len(), jobs.len() + jobs.iter().filter(|job| job.leaves()).count());
    assert!(replay(&jobs, 100, 95).len() <= queue.len());
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

fn find<'a>(trace: &'a Trace, name: &str) -> &'a TraceJob {
    trace.jobs.iter().find(|job| job.name == name).unwrap_or_else(|| panic!("{name} in {trace:?}"))
}

/// Submission, duration, instances and GPUs an instance.
fn shape(trace: &Trace, name: &str) -> (u64, u64, u32, u8) {
    let job = find(trace, name);
    (job.submit_s, job.duration_s, job.instances, job.gpus_per_instance)
}

fn names(trace: &Trace) -> Vec<&str> {
    trace.jobs.iter().map(|job| &*job.name).collect()
}

fn left_out(trace: &Trace) -> Vec<(LeftOut, u64)> {
    trace.report.left_out.iter().map(|(&why, &n)| (why, n)).collect()
}

fn models(job: &TraceJob) -> Vec<&str> {
    job.models.iter().map(|model| &**model).collect()
}

/// True if one of the notes says this.
fn says(trace: &Trace, text: &str) -> bool {
    trace.report.notes().iter().any(|note| note.text.contains(text))
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
fn openb_pods_keep_shares_models_and_what_is_known_of_their_times() {
    let trace = read_openb_pods_from("t", PODS.as_bytes()).unwrap();
    assert_eq!(names(&trace), ["p1", "p4", "p3", "p0", "p2"]);
    assert_eq!(trace.report.start_s, 100);
    assert_eq!(shape(&trace, "p1"), (0, 580, 1, 8));
    assert_eq!(models(find(&trace, "p1")), ["V100M16", "V100M32"]);
    assert_eq!((find(&trace, "p1").cpu_milli, find(&trace, "p1").memory_mib), (8000, 4096));
    // CPU alone, and created and deleted at once.
    assert_eq!((shape(&trace, "p2"), find(&trace, "p2").gpu_milli), ((400, 0, 1, 0), 1000));
    // Running at the end of the trace; running until before; never scheduled.
    assert_eq!((find(&trace, "p0").gpu_milli, find(&trace, "p0").censored), (460, true));
    assert_eq!((shape(&trace, "p4"), find(&trace, "p4").censored), ((0, 200, 1, 1), false));
    assert_eq!((shape(&trace, "p3"), find(&trace, "p3").outcome), ((300, 500, 1, 2), Outcome::Pending));
    assert!(find(&trace, "p3").censored && says(&trace, "1 of 11 jobs were never scheduled"));
    let expected = [
        (LeftOut::Twice, 1),
        (LeftOut::TooWide, 1),
        (LeftOut::BelowZero, 1),
        (LeftOut::NoSubmission, 1),
        (LeftOut::NoDuration, 1),
        (LeftOut::NegativeDuration, 1),
    ];
    assert_eq!(left_out(&trace), expected);
    let whole = trace.without_shares();
    assert_eq!((names(&whole).len(), whole.report.left_out[&LeftOut::Share]), (4, 1));
    assert!(says(&whole, "1 of 11 jobs are left out: shares of a GPU"));
    for (row, expected) in [
        ("p,1,1,2,500", "t:2: gpu_milli: found 500 with 2 GPUs, expected 0 with none"),
        ("p,1,1,1,0", "t:2: gpu_milli: found 0 with 1 GPUs"),
        ("p,1,1,0,1", "t:2: gpu_milli: found 1 with 0 GPUs"),
        ("p,1,x,1,1000", "t:2: memory_mib: found \"x\", expected a number"),
        ("p,1.5,1,1,1000", "t:2: cpu_milli: found 1.5, expected a whole number"),
    ] {
        let text = format!("name,cpu_milli,memory_mib,num_gpu,gpu_milli\n{row}\n");
        let error = read_openb_pods_from("t", text.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn openb_pods_without_times_come_in_their_order_and_stay() {
    let text = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\nb,1,1,4,1000\na,1,1,1,500\nc,1,1,4,1000\nd,1,1,1,1000\n";
    let trace = read_openb_pods_from("t", text.as_bytes()).unwrap();
    check_laws(&trace);
    assert_eq!(names(&trace), ["b", "a", "c", "d"]);
    assert!(trace.jobs.iter().all(|job| !job.leaves() && job.submit_s == 0 && !job.censored));
    assert!(says(&trace, "the file has no times"));
    let jobs = trace.without_shares().jobs;
    assert_eq!(replay(&jobs, 8, 100), [TraceEvent::Submit(0), TraceEvent::Submit(1)]);
}

#[test]
fn openb_nodes_keep_model_cpu_and_memory() {
    let text = "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\nn1,96000,393216,0,\nn2,96000,786432,8,\n";
    let snapshot = read_openb_nodes_from("n", text.as_bytes()).unwrap();
    let mut expected = ClusterBuilder::new();
    let spec = |name, gpus, model, cpu, memory| NodeSpec {
        name,
        gpus,
        model,
        cpu_milli: Some(cpu),
        memory_mib: Some(memory),
        ..NodeSpec::default()
    };
    expected.add_node(&spec("n0", 2, Some("P100"), 64_000, 262_144)).unwrap();
    expected.add_node(&spec("n2", 8, None, 96_000, 786_432)).unwrap();
    assert_eq!(snapshot.cluster.nodes(), expected.finish().unwrap().nodes());
    assert_eq!(snapshot.notes[0].to_string(), "n: 1 nodes without GPUs are left out");
    for (row, expected) in [
        ("n2,1,1,1,", "n:5: sn: node \"n2\" is there twice"),
        (",1,1,1,", "n:5: sn: found no text"),
        ("n3,1,1,17,", "n:5: gpu: found \"17\", expected an integer from 0 to 16"),
        ("n3,-1,1,1,", "n:5: cpu_milli: found \"-1\""),
    ] {
        let error = read_openb_nodes_from("n", format!("{text}{row}\n").as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn spot_jobs_ask_per_worker() {
    let trace = read_alibaba_2026_jobs_from("t", SPOT.as_bytes()).unwrap();
    assert_eq!(names(&trace), ["j1", "j3", "j0"]);
    assert_eq!((shape(&trace, "j0"), find(&trace, "j0").gpus()), ((5, 3600, 94, 1), 94));
    assert_eq!((find(&trace, "j0").cpu_milli, find(&trace, "j0").priority), (12_000, 1));
    assert_eq!((shape(&trace, "j1"), find(&trace, "j1").cpu_milli), ((0, 60, 2, 8), 1500));
    assert_eq!((find(&trace, "j1").group.as_deref(), models(find(&trace, "j1"))), (Some("o2"), vec![]));
    assert!(says(&trace, "1 of 10 jobs are neither HP nor Spot"));
    let expected = [
        (LeftOut::NoWorkers, 1),
        (LeftOut::Share, 1),
        (LeftOut::TooWide, 1),
        (LeftOut::BelowZero, 1),
        (LeftOut::TooMuch, 1),
        (LeftOut::NoDuration, 1),
        (LeftOut::NegativeDuration, 1),
    ];
    assert_eq!(left_out(&trace), expected);
}

#[test]
fn philly_is_read_in_both_forms() {
    let trace = read_philly_from("t", PHILLY.as_bytes()).unwrap();
    assert_eq!(names(&trace), ["philly-2", "philly-1"]);
    assert_eq!(shape(&trace, "philly-2"), (0, 2952, 2, 8));
    assert_eq!(shape(&trace, "philly-1"), (2932, 66, 1, 1));
    assert_eq!(find(&trace, "philly-1").group.as_deref(), Some("11cb48"));
    let expected = [
        (LeftOut::NoGpus, 1),
        (LeftOut::Indivisible, 1),
        (LeftOut::NoSubmission, 1),
        (LeftOut::NoDuration, 1),
        (LeftOut::NegativeDuration, 1),
    ];
    assert_eq!(left_out(&trace), expected);

    let trace = read_philly_from("t", PHILLY_LOG.as_bytes()).unwrap();
    assert_eq!(names(&trace), ["a_2", "a_1"]);
    // From the first start to the last end, with the GPUs of the first attempt.
    assert_eq!((shape(&trace, "a_1"), find(&trace, "a_1").outcome), ((60, 100, 1, 3), Outcome::Completed));
    assert_eq!((find(&trace, "a_1").user.as_deref(), find(&trace, "a_1").group.as_deref()), (Some("u1"), Some("v1")));
    // Runs until the last moment that the log knows of.
    assert_eq!((shape(&trace, "a_2"), find(&trace, "a_2").outcome), ((0, 100, 2, 8), Outcome::Running));
    assert!(find(&trace, "a_2").censored && !find(&trace, "a_1").censored);
    assert!(says(&trace, "1 of 7 jobs were started again") && says(&trace, "attempts of different numbers of GPUs"));
    let expected = [
        (LeftOut::Twice, 1),
        (LeftOut::NoCount, 1),
        (LeftOut::NoSubmission, 1),
        (LeftOut::NeverStarted, 1),
        (LeftOut::NegativeDuration, 1),
    ];
    assert_eq!(left_out(&trace), expected);

    for (from, to, expected) in [
        (
            "2017-10-09 07:00:10",
            "2017-10-09 07:00:10 PDT",
            "[0].attempts[0].start_time: found \"2017-10-09 07:00:10 PDT\"",
        ),
        ("\"gpus\": [\"gpu7\"]", "\"gpus\": 7", "[0].attempts[0].detail[1].gpus: "),
        ("\"jobid\": \"a_1\", ", "", "[0]: missing field `jobid`"),
        ("\"jobid\": \"a_1\"", "\"jobid\": 1", "[0].jobid: found integer `1`, expected a string"),
        ("[\n{", "{\n\"x\":[{", "found map, expected a list of jobs"),
    ] {
        let error = read_philly_from("t", PHILLY_LOG.replacen(from, to, 1).as_bytes()).unwrap_err();
        assert!(error.line().is_some() && error.to_string().contains(expected), "{error}\n{expected}");
    }
}

#[test]
fn helios_jobs_are_split_by_nodes_or_eights() {
    let trace = read_helios_from("t", HELIOS.as_bytes()).unwrap();
    assert_eq!(names(&trace), ["2", "1", "3", "6", "7"]);
    assert_eq!((shape(&trace, "1"), find(&trace, "1").cpu_milli), ((10, 60, 4, 4), 16_000));
    assert_eq!((shape(&trace, "2"), find(&trace, "2").cpu_milli), ((0, 60, 3, 0), 3_334));
    assert_eq!((shape(&trace, "3"), find(&trace, "3").outcome), ((10, 75, 2, 8), Outcome::TimedOut));
    assert_eq!((shape(&trace, "6"), find(&trace, "6").censored), ((10, 60, 1, 1), true));
    assert_eq!((shape(&trace, "7"), find(&trace, "7").group.as_deref()), ((10, 0, 1, 1), Some("vcB")));
    for text in [
        "1 of 10 jobs state a duration that is not end - start",
        "1 of 10 jobs become as many instances as their node_num says",
        "1 of 10 jobs become instances of 8 GPUs",
        "1 of 10 jobs ask for no GPU",
        "1 of 10 jobs are in a state that is not known",
        "1 of 10 jobs start before they are submitted",
        "1 of 10 jobs had not ended",
        "5 jobs are kept, 4 of them with GPUs",
        "virtual clusters are kept as a column",
    ] {
        assert!(says(&trace, text), "{text} in {:?}", trace.report);
    }
    let expected = [
        (LeftOut::NoId, 1),
        (LeftOut::NoCount, 1),
        (LeftOut::Share, 1),
        (LeftOut::Indivisible, 1),
        (LeftOut::NeverStarted, 1),
    ];
    assert_eq!(left_out(&trace), expected);
    let error = read_helios_from("t", &b"job_id,user\n1,2\n"[..]).unwrap_err().to_string();
    assert_eq!(error, "t:1: found the columns job_id,user, expected a column `gpu_num`");
    let error = read_helios_from("t", HELIOS.replace("2020-04-01 00:00:05", "2020-04-01").as_bytes()).unwrap_err();
    let expected = "t:4: start_time: found \"2020-04-01\", expected a time such as 2017-10-09 07:01:55";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn acme_durations_are_end_minus_start_whatever_the_file_says() {
    let trace = read_acme_from("t", SEREN.as_bytes()).unwrap();
    assert_eq!((shape(&trace, "5778432"), trace.report.start_s), ((0, 117, 1, 8), 1_677_628_800));
    assert!(!says(&trace, "state a duration"));
    assert_eq!(left_out(&trace), [(LeftOut::Indivisible, 1)]);
    let trace = read_acme_from("t", KALOS.as_bytes()).unwrap();
    assert_eq!((shape(&trace, "d1"), shape(&trace, "d2")), ((0, 8, 4, 8), (0, 70, 1, 1)));
    assert_eq!(find(&trace, "d1").group.as_deref(), Some("Pretrain"));
    assert!(says(&trace, "2 of 2 jobs state a duration that is not end - start"));
}

#[test]
fn swf_needs_to_be_told_what_a_processor_is() {
    let trace = swf(SWF.as_bytes()).unwrap();
    assert_eq!(names(&trace), ["2", "1"]);
    assert_eq!((shape(&trace, "1"), shape(&trace, "2")), ((50, 60, 2, 8), (0, 0, 1, 8)));
    assert_eq!((find(&trace, "1").outcome, find(&trace, "2").outcome), (Outcome::Completed, Outcome::Failed));
    assert_eq!((find(&trace, "1").user.as_deref(), find(&trace, "1").group.as_deref()), (Some("3"), Some("2")));
    assert_eq!(trace.report.start_s, 1_000_050);
    assert!(says(&trace, "processors stand for GPUs at 1/8 GPUs each"));
    let expected = [
        (LeftOut::Burst, 1),
        (LeftOut::NoCount, 1),
        (LeftOut::Indivisible, 1),
        (LeftOut::OddProcessors, 2),
        (LeftOut::NoSubmission, 1),
        (LeftOut::NeverStarted, 1),
        (LeftOut::NoDuration, 1),
    ];
    assert_eq!(left_out(&trace), expected);
    for (text, expected) in [
        ("1 2 3\n", "t:1: found 3 fields, expected 18"),
        ("; x\n1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19\n", "t:2: found 19 fields, expected 18"),
        ("1 2 3 4 x 6 7 8 9 10 11 12 13 14 15 16 17 18", "t:1: allocated processors: found \"x\", expected a number"),
    ] {
        assert_eq!(swf(text.as_bytes()).unwrap_err().to_string(), expected);
    }
    for bad in ["", "0", "1/0", "-1", "1/2/3", "0.5", "x", "1/"] {
        assert!(bad.parse::<GpusPerProc>().is_err(), "{bad}");
    }
    let error = trace_source("swf:x", &TraceOptions::default()).unwrap_err().to_string();
    assert!(error.contains("--gpus-per-proc N or N/M"), "{error}");
}

#[test]
fn sacct_is_read_as_sites_have_it() {
    let trace = read_sacct_from("t", SACCT.as_bytes()).unwrap();
    assert_eq!(names(&trace), ["11", "10", "13", "14", "18"]);
    let ten = find(&trace, "10");
    assert_eq!((shape(&trace, "10"), models(ten)), ((10, 60, 2, 4), vec!["h100"]));
    assert_eq!((ten.cpu_milli, ten.memory_mib), (32_000, 524_288));
    assert_eq!((ten.user.as_deref(), ten.group.as_deref()), (Some("al"), Some("gpu")));
    // It got an a100 and asked for any GPU.
    let eleven = find(&trace, "11");
    assert_eq!((shape(&trace, "11"), eleven.censored, models(eleven)), ((0, 3000, 1, 1), true, vec![]));
    assert_eq!((shape(&trace, "13"), find(&trace, "13").outcome), ((30, 10, 1, 0), Outcome::Cancelled));
    // Requeued: the last run, from the first submission.
    assert_eq!((shape(&trace, "14"), find(&trace, "14").outcome), ((40, 100, 1, 1), Outcome::Completed));
    // Given nothing, so what it asked for counts; 3 nodes do not divide 16 GPUs.
    assert_eq!(shape(&trace, "18"), (40, 10, 2, 8));
    let expected = [
        (LeftOut::EarlierRun, 1),
        (LeftOut::Step, 1),
        (LeftOut::Share, 1),
        (LeftOut::Indivisible, 1),
        (LeftOut::Mixed, 1),
        (LeftOut::NeverStarted, 2),
    ];
    assert_eq!(left_out(&trace), expected);
    for (from, to, expected) in [
        ("cpu=64,", "cpu,", "t:2: ReqTRES: found \"cpu\", expected KIND=AMOUNT"),
        ("2024-01-02T00:00:10", "yesterday", "t:2: Submit: found \"yesterday\", expected a time"),
        ("ReqTRES|AllocTRES", "a|b", "t:1: found the columns"),
        ("JobIDRaw", "JobID", "t:1: found the columns"),
        ("|n[1-2]|", "|n|n|", "t:2: found 18 fields, expected 17"),
    ] {
        let error = read_sacct_from("t", SACCT.replacen(from, to, 1).as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}\n{expected}");
    }
}

#[test]
fn the_real_openb_files_have_the_totals_that_are_known_of_them() {
    let Some(nodes) = data("alibaba-openb-2023/node_list_gpu_node.csv") else { return };
    let cluster = cluster_source(&format!("openb:{}", nodes.display())).unwrap().cluster;
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
        Some(trace_source(&format!("openb:{}", path.display()), &TraceOptions::default()).unwrap().unwrap())
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
    let options = TraceOptions { gpus_per_proc: RATIO.parse().ok() };
    for (prefix, sample, submitted) in [
        ("openb", PODS, 4),
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
            let (queue, notes) = queue_source(&origin, &mut Cluster::default(), None, &options).unwrap();
            assert_eq!(queue.len(), submitted * 2, "{prefix}");
            assert!(prefix != "openb" || notes.iter().any(|note| note.text.contains("shares of a GPU")));
            let mut cluster = cluster_source("synthetic:100").unwrap().cluster;
            assert!(queue_source(&origin, &mut cluster, Some(50), &options).is_ok(), "{prefix}");
            // Only two of them can be clusters, and a list of jobs is none.
            assert!(cluster_source(&origin).is_err());
        }
        let error = queue_source(&format!("{prefix}:/none"), &mut Cluster::default(), None, &options).unwrap_err();
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
