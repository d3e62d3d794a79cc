//! The CUDA backend from end to end, on a test double of the driver: see tests/cuda/standin.hpp. What it does and what
//! goes wrong is per process, so every run is a process of its own, which finds the double through `LD_LIBRARY_PATH`
//! alone. It ends with 86 if the double has complained of anything.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicUsize, Ordering};

use assert_cmd::Command;
use slotwise::cluster::{NodeId, Request};
use slotwise::evaluate::abi::{NONE, NodeAmounts, NodeEdit};
use slotwise::evaluate::conformance;
use slotwise::evaluate::cuda::DRIVER_FUNCTIONS;
use slotwise::evaluate::synthetic::{self, Numbers};
use slotwise::evaluate::twin::Reference;
use slotwise::evaluate::{Backend, Batch, Census, Cuda, EvalError, NodeOrder, NodeQuery, NodeRows, Scores};

use crate::cuda_build::{empty_library, misuse, stand_in};
use crate::cuda_process::{HANGS, Settings, calls, program, test_with, text};

/// The test `session`, in a process of its own.
fn session_with(settings: Settings) -> Output {
    test_with("cuda_driver::session", settings)
}

// --- A session: everything that a backend is asked for ---------------------------------------------------------------

/// On whatever driver there is: without one, or with one that fails, the session ends with an error in words. What it
/// does get is right.
#[test]
fn session() {
    match run_session() {
        Ok(()) => println!("session: all is well"),
        Err(error) => println!("session: {error}"),
    }
}

fn run_session() -> Result<(), EvalError> {
    let mut backend = Cuda::open()?;
    let result = ask_everything(&mut backend);
    if let Err(error @ EvalError::Device(_)) = &result {
        // It knows that it has failed, and says so at once.
        assert_eq!(backend.census(&mut Census::default()).as_ref(), Err(error));
        assert_eq!(backend.load(&NodeRows::default()).as_ref(), Err(error));
    }
    // Not every thread that drops it has used the device before.
    std::thread::spawn(move || drop(backend)).join().unwrap();
    result
}

fn ask_everything(backend: &mut Cuda) -> Result<(), EvalError> {
    let mut reference = Reference::new();
    for (nodes, seed) in [(700, 1), (40, 2)] {
        let cluster = synthetic::cluster(nodes, seed).unwrap();
        let rows = NodeRows::of(&cluster)?;
        backend.load(&rows)?;
        reference.load(&rows)?;
        // One chunk, several, and one of a single candidate.
        let small = synthetic::batch(&cluster, 60, 3, 2, seed)?;
        let large = synthetic::batch(&cluster, 2500, 1, 3, seed)?;
        let wide = synthetic::batch(&cluster, 2 * nodes, nodes, 5, seed)?;
        scores_agree(backend, &mut reference, &small)?;
        scores_agree(backend, &mut reference, &large)?;
        // Edits are on their way while the next ones come, and before both lanes use the nodes.
        let mut numbers = Numbers::new(seed);
        let other = synthetic::cluster(nodes, seed + 5).unwrap();
        for _ in 0..3 {
            let edited = (0..nodes as u32).map(NodeId).filter(|_| numbers.below(5) == 0);
            let edit = |node| {
                let bits = NodeEdit::of(&other, node).bits;
                // Too little for some of the needs.
                NodeEdit { bits, amounts: NodeAmounts { cpu: 8000, memory: 5 }, ..NodeEdit::of(&cluster, node) }
            };
            let edits: Vec<NodeEdit> = edited.map(edit).collect();
            backend.apply(&edits)?;
            reference.apply(&edits)?;
        }
        scores_agree(backend, &mut reference, &large)?;
        scores_agree(backend, &mut reference, &wide)?;
        let mut query = NodeQuery::new(&cluster, 9);
        for (gpus, order) in (0..=8).flat_map(|gpus| NodeOrder::ALL.map(|order| (gpus, order))) {
            query.push(&cluster, &Request { gpus, ..Request::default() }, order, None, None);
        }
        let (mut found, mut expected) = (vec![NONE - 1; 5], Vec::new());
        // Anew, ahead, and ahead with something else in between.
        for number in 0..3 {
            assert!(number == 0 || backend.begin_ranking(&query)?);
            if number == 2 {
                scores_agree(backend, &mut reference, &small)?;
            }
            backend.rank_nodes(&query, &mut found)?;
            reference.rank_nodes(&query, &mut expected)?;
            assert_eq!(found, expected);
        }
        let (mut found, mut expected) = (Census::default(), Census::default());
        backend.census(&mut found)?;
        reference.census(&mut expected)?;
        assert_eq!(found, expected);
        let speed = backend.measure(&large, 2)?;
        assert!(speed.touches_per_s > 0.0 && speed.of_limit() > 0.0, "{speed:?}");
        let unknown = NodeEdit { node: nodes as u32, ..NodeEdit::default() };
        assert!(matches!(backend.apply(&[unknown]), Err(EvalError::UnknownNode(..))));
        let other = backend.evaluate(&Batch::default(), &mut Scores::default());
        assert!(matches!(other, Err(EvalError::OtherCluster { .. })));
        // These are still on their way when the next nodes come, or the end.
        backend.apply(&[NodeEdit::of(&cluster, NodeId(0))])?;
        backend.begin_ranking(&query)?;
    }
    Ok(())
}

fn scores_agree(backend: &mut Cuda, reference: &mut Reference, batch: &Batch) -> Result<(), EvalError> {
    for check in conformance::scores(backend, reference, batch)? {
        assert_eq!(check.mismatch, None, "{}", check.kernel.name());
    }
    Ok(())
}

/// Little enough that batches go over in chunks of 64 KiB.
const LITTLE: (&str, &str) = ("STANDIN_MEMORY", "1500000");

#[test]
fn a_session_is_right_whatever_the_driver_does_in_between() {
    let (queued, eager) = (("STANDIN_ORDER", "queued"), ("STANDIN_ORDER", "eager"));
    let (forward, reverse) = (("STANDIN_THREADS", "forward"), ("STANDIN_THREADS", "reverse"));
    let (pools, none) = (("STANDIN_POOLS", "1"), ("STANDIN_POOLS", "0"));
    let enough = ("STANDIN_MEMORY", "1073741824");
    for order in [queued, eager] {
        for (threads, pools, memory) in
            [(forward, pools, enough), (reverse, none, LITTLE), (forward, none, enough), (reverse, pools, LITTLE)]
        {
            let settings = [order, threads, pools, memory];
            let output = session_with(&settings);
            assert_eq!(output.status.code(), Some(0), "{settings:?}: {}", text(&output.stderr));
            assert!(text(&output.stdout).contains("all is well"), "{settings:?}: {}", text(&output.stdout));
        }
    }
}

#[test]
fn what_is_called_is_what_is_asked_for_before() {
    let mut called = BTreeSet::new();
    for settings in [("STANDIN_POOLS", "1"), ("STANDIN_POOLS", "0"), ("STANDIN_FAIL", "launch:3:719:late")] {
        let calls = calls(&session_with(&[settings, LITTLE, ("STANDIN_COUNT", "1")]));
        called.extend(calls.into_keys().filter(|name| name.starts_with("cu")));
    }
    let asked: BTreeSet<String> = DRIVER_FUNCTIONS.map(str::to_owned).into();
    assert_eq!(called, asked);
}

// --- Planted faults --------------------------------------------------------------------------------------------------

/// Ways for a call to fail: out of memory, which passes; a failed launch, after which the context is of no use; a lost
/// device, which does not even take its memory back; and a failure that a later wait tells of.
const WAYS: [&str; 4] = ["2", "719:sticky", "999:lost", "719:late"];

/// Fails every call of a session once in each of these ways, or every `step`th of those faults, and looks at how each
/// session ends. Returns how many sessions that were, and how many of them ended well all the same.
fn sweep(step: usize, pools: &str) -> (usize, usize) {
    let setting = ("STANDIN_POOLS", pools);
    let n = calls(&session_with(&[setting, LITTLE, ("STANDIN_COUNT", "1")]))["any"];
    let all = (1..=n).flat_map(|at| WAYS.map(|way| format!("any:{at}:{way}")));
    let faults: Vec<String> = all.step_by(step).collect();
    let (next, well) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        while let Some(fault) = faults.get(next.fetch_add(1, Ordering::Relaxed)) {
            let output = session_with(&[setting, LITTLE, ("STANDIN_FAIL", fault), ("STANDIN_COUNT", "1")]);
            let (said, noted) = (text(&output.stdout), text(&output.stderr));
            // Not 101, which is a panic or a wrong answer; not 86, a complaint; no signal, and none of ours for a hang.
            assert_eq!(output.status.code(), Some(0), "{fault}: {said}\n{noted}");
            let ended_well = said.contains("all is well");
            let told = ["device error", "out of memory", "cannot be used"].iter().any(|words| said.contains(words));
            assert!(ended_well != told, "{fault}: {said}");
            well.fetch_add(usize::from(ended_well), Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    (faults.len(), well.into_inner())
}

#[test]
fn some_calls_fail_and_no_answer_is_wrong() {
    let (runs, well) = sweep(23, "1");
    println!("{runs} faults planted, {well} sessions went well all the same");
    // A lack of memory is got over, nothing else is; the last calls have nobody to tell.
    assert!(0 < well && well < runs / 2, "{well} of {runs}");
}

#[test]
#[ignore = "minutes: see tests/nightly.sh"]
fn every_call_fails_once_in_every_way_and_no_answer_is_wrong() {
    for pools in ["1", "0"] {
        let (runs, well) = sweep(1, pools);
        println!("{runs} faults planted with pools {pools}, {well} sessions went well all the same");
        assert!(0 < well && well < runs / 2, "{well} of {runs}");
    }
}

#[test]
fn a_lack_of_memory_is_got_over_where_smaller_chunks_do() {
    for at in [1, 4, 9, 12] {
        let fault = format!("alloc:{at}:2");
        let output = session_with(&[("STANDIN_FAIL", &fault)]);
        assert_eq!(output.status.code(), Some(0), "{fault}: {}", text(&output.stderr));
        assert!(text(&output.stdout).contains("all is well"), "{fault}: {}", text(&output.stdout));
    }
    // Not even the nodes fit.
    let output = session_with(&[("STANDIN_MEMORY", "10000")]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("backend cuda is out of memory"), "{}", text(&output.stdout));
}

// --- The program -----------------------------------------------------------------------------------------------------

#[test]
fn the_program_verifies_in_every_order() {
    let settings: [Settings; 4] = [
        &[("STANDIN_ORDER", "queued"), ("STANDIN_THREADS", "forward")],
        &[("STANDIN_ORDER", "queued"), ("STANDIN_THREADS", "reverse"), ("STANDIN_POOLS", "0")],
        &[("STANDIN_ORDER", "eager"), ("STANDIN_THREADS", "forward"), ("STANDIN_MEMORY", "2000000")],
        &[("STANDIN_ORDER", "eager"), ("STANDIN_THREADS", "reverse"), ("STANDIN_DEVICES", "2")],
    ];
    for settings in settings {
        let output = program(&stand_in(), settings, "verify --backend cuda --quick --format json");
        assert_eq!(output.status.code(), Some(0), "{settings:?}: {}{}", text(&output.stdout), text(&output.stderr));
        let lines = text(&output.stdout);
        assert_eq!(lines.lines().filter(|line| line.contains("\"ok\":true")).count(), 10, "{settings:?}: {lines}");
    }
}

#[test]
fn scores_are_those_of_the_processor() {
    let words = "score --cluster cluster.json --queue queue.jsonl --candidates candidates.jsonl --backend";
    let cpu = program(&stand_in(), &[], &format!("{words} cpu"));
    let cuda = program(&stand_in(), &[], &format!("{words} cuda"));
    assert_eq!((cpu.status.code(), cuda.status.code()), (Some(0), Some(0)), "{}", text(&cuda.stderr));
    assert!(!cpu.stdout.is_empty());
    assert_eq!(text(&cpu.stdout), text(&cuda.stdout));
}

#[test]
fn what_is_missing_is_said_in_words() {
    let empty = empty_library();
    let double = stand_in();
    let cases: [(&Path, Settings, &str); 6] = [
        (&empty, &[], "the CUDA driver library has no cuInit"),
        (
            &double,
            &[("STANDIN_DRIVER", "11080")],
            "the driver is for CUDA 11.8; the kernels need one for 12.0 or later",
        ),
        (&double, &[("STANDIN_CAPABILITY", "70")], "compute capability 7.0; the kernels need 7.5"),
        (&double, &[("STANDIN_FAIL", "cuInit:1:999")], "the CUDA driver does not start"),
        (&double, &[("STANDIN_FAIL", "cuDevicePrimaryCtxRetain:1:46")], "does not open"),
        (&double, &[("STANDIN_FAIL", "cuModuleLoadData:3:222")], "does not load"),
    ];
    let none = program(&double, &[("STANDIN_DEVICES", "0")], "verify --backend cuda --quick");
    assert_eq!(none.status.code(), Some(1));
    assert!(text(&none.stderr).contains("backend cuda is not available: there is no CUDA device"));
    for (folder, settings, why) in cases {
        let output = program(folder, settings, "verify --backend cuda --quick");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{why}: {said}");
        assert!(said.contains("backend cuda cannot be used: ") && said.contains(why), "{said}");
        assert!(output.stdout.is_empty());
    }
}

/// Any call of the driver may fail while a queue is placed: the processor goes on, and every decision is the same.
#[test]
fn a_queue_is_placed_alike_whatever_fails() {
    // Requests of many kinds that ask for CPU: those are ranked on the backend, a window at a time.
    let mut lines = String::new();
    for number in 0..300 {
        let (gpus, cpu) = (1 + number % 8, 1000 * (1 + number % 11));
        lines += &format!(
            "{{\"job\": \"q{number}\", \"instances\": 2, \"gpus_per_instance\": {gpus}, \"cpu_milli\": {cpu}}}\n"
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let queue = folder.path().join("queue.jsonl");
    std::fs::write(&queue, lines).unwrap();
    let queue = queue.display();
    let words = format!("place --cluster synthetic:2000:3 --queue {queue} --policy best-fit --window 32 --backend");
    let cpu = program(&stand_in(), &[], &format!("{words} cpu"));
    let cuda = |settings: Settings| program(&stand_in(), settings, &format!("{words} cuda"));
    let whole = cuda(&[("STANDIN_COUNT", "1")]);
    assert_eq!((whole.status.code(), text(&whole.stdout)), (Some(0), text(&cpu.stdout)), "{}", text(&whole.stderr));
    let n = calls(&whole)["any"];
    let mut gone_on = 0;
    for at in (1..=n).step_by((n as usize / 12).max(1)) {
        for way in ["719:sticky", "999:lost", "719:late"] {
            let fault = format!("any:{at}:{way}");
            let output = cuda(&[("STANDIN_FAIL", &fault)]);
            let said = text(&output.stderr);
            // Before the first decision a device that was named must be there; afterwards another one goes on.
            if output.status.code() == Some(1) {
                assert!(said.contains("backend cuda cannot be used") && output.stdout.is_empty(), "{fault}: {said}");
                continue;
            }
            assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), text(&cpu.stdout)), "{fault}: {said}");
            let warnings = said.lines().filter(|line| line.contains("warning") && line.contains("cuda")).count();
            assert!(warnings <= 1, "{fault}: {said}");
            gone_on += warnings;
        }
    }
    assert!(gone_on > 0);
}

#[test]
fn failures_in_the_middle_of_a_run_end_it_with_a_reason() {
    for fault in ["launch:40:719", "launch:40:719:late", "copy:50:999:lost", "wait:60:700:sticky", "any:900:702:late"] {
        let output = program(&stand_in(), &[("STANDIN_FAIL", fault)], "verify --backend cuda --quick");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{fault}: {said}");
        assert!(said.contains("device error: ") && said.contains("(CUDA_ERROR_"), "{fault}: {said}");
    }
}

#[test]
fn devices_are_listed_with_what_they_are() {
    let list = |settings: Settings| {
        let output = program(&stand_in(), settings, "devices --format json");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let devices = said["devices"].as_array().unwrap().iter().filter(|device| device["backend"] == "cuda");
        (said["auto"].clone(), devices.cloned().collect::<Vec<_>>())
    };
    let (auto, two) = list(&[("STANDIN_DEVICES", "2"), ("STANDIN_MEMORY", "0x200000000")]);
    assert_eq!((auto, two.len()), ("cuda".into(), 2));
    assert_eq!(two[1]["name"], "test double 1, 8.0 GiB, compute capability 9.0, driver for CUDA 12.8");
    assert_eq!((&two[0]["usable"], &two[0]["auto"]), (&true.into(), &true.into()));
    let (auto, old) = list(&[("STANDIN_CAPABILITY", "61")]);
    assert!(auto != "cuda" && old[0]["usable"] == false, "{old:?}");
    assert!(old[0]["why"].as_str().unwrap().contains("the kernels need 7.5"), "{old:?}");
}

/// What never complains proves nothing.
#[test]
fn the_double_complains_of_what_is_wrong() {
    let misuse = misuse();
    let ptx = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/ptx/census.ptx");
    let run = |wrong: &str| Command::new(&misuse).arg(wrong).arg(&ptx).timeout(HANGS).output().unwrap();
    let output = run("right");
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
    for (wrong, complaint) in [
        ("no context", "no context is current"),
        ("too long a copy", "the destination is 1001 bytes at 0"),
        ("race", "race: a download on stream"),
        ("reads too early", "is not there yet"),
        ("kernel reads too far", "illegal address in census"),
        ("kernel writes too far", "census wrote past the end"),
        ("kernel of freed memory", "which is freed"),
        ("too many threads", "512 threads a block, compiled for 256"),
        ("unload before launch", "launched after its module was unloaded"),
        ("pinned freed in use", "is freed while copies of it are queued"),
        ("double free", "is freed twice"),
        ("copy of freed memory", "which is freed"),
        ("leak of memory", "leak: device buffer"),
        ("leak of pinned memory", "leak: pinned buffer"),
        ("leak of a stream", "leak: 1 streams"),
        ("leak of a context", "leak: a context"),
    ] {
        let output = run(wrong);
        let said = text(&output.stderr);
        assert!(said.contains(complaint), "{wrong}: {said}");
        // Data that is not there yet is for the program to notice.
        assert_eq!(output.status.code(), Some(if wrong == "reads too early" { 0 } else { 86 }), "{wrong}: {said}");
    }
    let output = session_with(&[("STANDIN_FAIL", "no rule")]);
    assert_eq!(output.status.code(), Some(86), "{}", text(&output.stderr));
}
