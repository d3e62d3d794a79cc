//! What each reader makes of the traps of its trace.

use slotwise::cluster::{ClusterBuilder, NodeSpec};
use slotwise::formats::*;
use slotwise::workload::{Outcome, TraceEvent, TraceJob, replay};

use super::samples::{HELIOS, KALOS, PHILLY, PHILLY_LOG, PODS, SACCT, SEREN, SPOT, SWF};
use super::{check_laws, swf};

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
    // The share counts as a whole GPU.
    assert_eq!(replay(&trace.jobs, 8000, 100), [TraceEvent::Submit(0), TraceEvent::Submit(1)]);
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
        "1 of 10 jobs are censored",
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
    let error = foreign_trace("swf:x", None).unwrap_err().to_string();
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
