//! A device that has too little memory. Mesa's driver for processors takes it from the process, whose address space a test
//! can bound; that holds for all of the process, so it is one of its own.

use assert_cmd::Command;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use slotwise::evaluate::abi::{Candidate, Need, Touch};
use slotwise::evaluate::twin::Reference;
use slotwise::evaluate::webgpu::{AdapterChoice, Limits};
use slotwise::evaluate::{
    Backend, Batch, BatchRows, Census, Crossover, EvalError, NodeRows, Opener, Scores, WebGpu, synthetic,
};

use super::open;
use crate::failover::failover;

/// Set for the process whose memory is bounded.
const BOUNDED: &str = "SLOTWISE_TEST_BOUNDED";

/// Of one touch each. One piece of these needs more than the blocks that the allocator has taken for smaller ones.
const MANY: usize = 4_000_000;

#[test]
fn a_lack_of_memory_is_told_and_passes() {
    let adapter = open(&Limits::default()).adapter().to_owned();
    if !adapter.contains("llvmpipe") {
        println!("skipped: {adapter} has memory of its own");
        return;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "webgpu::memory::session", "--nocapture", "--test-threads=1"]).env(BOUNDED, "1");
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success() && said.contains("session: all is well"), "{said}");
}

/// Bounds the address space to what is taken now and so much more.
fn bound(more: u64) -> Rlimit {
    let before = getrlimit(Resource::As);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    let taken: u64 = size.trim().trim_end_matches(" kB").parse().unwrap();
    let current = Some((taken << 10) + more);
    setrlimit(Resource::As, Rlimit { current, ..before }).unwrap();
    before
}

fn batch(nodes: usize, candidates: usize) -> Batch {
    let touch = |at: usize| Touch { node: (at % nodes) as u32, ..Touch::default() };
    Batch::from_rows(BatchRows {
        nodes,
        touches: (0..candidates).map(touch).collect(),
        needs: vec![Need::NONE],
        offsets: (0..=candidates as u32).collect(),
        given: vec![0; candidates],
        candidates: vec![Candidate::default(); candidates],
        jobs: vec![0, candidates as u32],
    })
    .unwrap()
}

#[test]
fn session() {
    if std::env::var_os(BOUNDED).is_none() {
        return;
    }
    let cluster = synthetic::cluster(500, 3).unwrap();
    let nodes = NodeRows::of(&cluster).unwrap();
    let (small, large) = (batch(500, 1000), batch(500, MANY));
    let mut reference = Reference::new();
    reference.load(&nodes).unwrap();
    let mut expect = |batch: &Batch| {
        let mut expected = Scores::default();
        reference.evaluate(batch, &mut expected).unwrap();
        expected
    };
    let (of_small, of_large) = (expect(&small), expect(&large));
    // The room for the answers is there before.
    let mut found = of_large.clone();
    let mut backend = WebGpu::open(AdapterChoice::Software).unwrap();
    backend.load(&nodes).unwrap();
    backend.evaluate(&small, &mut found).unwrap();
    assert!(found == of_small);
    let before = bound(64 << 20);
    let refused = backend.evaluate(&large, &mut found);
    assert_eq!(refused, Err(EvalError::OutOfMemory("wgpu")));
    // It goes on working, and with more memory does this as well.
    backend.evaluate(&small, &mut found).unwrap();
    assert!(found == of_small);
    backend.census(&mut Census::default()).unwrap();
    setrlimit(Resource::As, before).unwrap();
    backend.evaluate(&large, &mut found).unwrap();
    assert!(found == of_large);
    drop(backend);
    // In the middle of a run the processor takes over.
    let device = Opener::new("wgpu", || Ok(Box::new(WebGpu::open(AdapterChoice::Software)?)));
    let (mut backend, said) = failover(vec![device], Crossover::At(0));
    backend.load(&nodes).unwrap();
    backend.evaluate(&small, &mut found).unwrap();
    let before = bound(64 << 20);
    backend.evaluate(&large, &mut found).unwrap();
    setrlimit(Resource::As, before).unwrap();
    assert!(found == of_large);
    let said = said.lock().unwrap().clone();
    assert_eq!(said, ["backend wgpu is out of memory: cpu goes on, and the results are the same"]);
    println!("session: all is well");
}
