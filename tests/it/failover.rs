//! Devices that fail, at every call: the run ends as if they had not, and the user hears of it once.

use std::sync::{Arc, Mutex};

use slotwise::anchor::State;
use slotwise::cluster::{Cluster, Edit};
use slotwise::decide::{CommitLoop, Decision, PlaceOptions, Policy};
use slotwise::evaluate::abi::{NONE, NodeEdit, ScoreRow};
use slotwise::evaluate::measure::Speed;
use slotwise::evaluate::twin::Reference;
use slotwise::evaluate::{
    Backend, Batch, Census, Choice, Cpu, Crossover, EvalError, Failover, NodeOrder, NodeQuery, NodeRows, Opener,
    Scores, open_safely, synthetic,
};

use crate::decide_support::{JobPlan, Step, options, plain_job, plain_nodes, queue, run};

/// A call of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Open,
    Load,
    Apply,
    Evaluate,
    Begin,
    Rank,
    Census,
}

const CALLS: [Call; 7] = [Call::Open, Call::Load, Call::Apply, Call::Evaluate, Call::Begin, Call::Rank, Call::Census];

/// What a device was asked, and at which of these calls it fails.
#[derive(Debug)]
struct Script {
    fails: Option<(Call, usize)>,
    asked: Vec<Call>,
    failed: bool,
}

type Shared = Arc<Mutex<Script>>;

fn script(fails: Option<(Call, usize)>) -> Shared {
    Arc::new(Mutex::new(Script { fails, asked: Vec::new(), failed: false }))
}

/// A device that computes what it should until it fails; it then leaves its work half done. What was begun is what the
/// nodes were then.
struct Mock {
    inside: Reference,
    begun: Option<(NodeQuery, Vec<u32>)>,
    script: Shared,
}

/// Notes a call; an error if this is the one that fails.
fn asked(script: &Shared, call: Call) -> Result<(), EvalError> {
    let mut script = script.lock().unwrap();
    assert!(!script.failed, "asked again after it failed");
    script.asked.push(call);
    let n = script.asked.iter().filter(|&&other| other == call).count();
    script.failed = script.fails == Some((call, n - 1));
    if script.failed { Err(EvalError::Device("unplugged".to_owned())) } else { Ok(()) }
}

fn device(name: &'static str, script: &Shared) -> Opener {
    let script = script.clone();
    Opener::new(name, move || {
        asked(&script, Call::Open)?;
        Ok(Box::new(Mock { inside: Reference::new(), begun: None, script }))
    })
}

impl Backend for Mock {
    fn name(&self) -> &'static str {
        "mock"
    }

    fn load(&mut self, nodes: &NodeRows) -> Result<(), EvalError> {
        asked(&self.script, Call::Load)?;
        self.begun = None;
        self.inside.load(nodes)
    }

    fn apply(&mut self, edits: &[NodeEdit]) -> Result<(), EvalError> {
        assert!(edits.is_sorted_by_key(|edit| edit.node) && !edits.is_empty());
        assert!(edits.windows(2).all(|pair| pair[0].node != pair[1].node), "a node twice");
        let failed = asked(&self.script, Call::Apply);
        self.begun = None;
        let done = if failed.is_err() { &edits[..edits.len() / 2] } else { edits };
        self.inside.apply(done)?;
        failed
    }

    fn evaluate(&mut self, batch: &Batch, out: &mut Scores) -> Result<(), EvalError> {
        out.rows = vec![ScoreRow { reason: NONE, ..ScoreRow::default() }; 3];
        out.best = vec![7; 3];
        asked(&self.script, Call::Evaluate)?;
        self.inside.evaluate(batch, out)
    }

    fn rank_nodes(&mut self, query: &NodeQuery, out: &mut Vec<u32>) -> Result<(), EvalError> {
        *out = vec![7; 3];
        asked(&self.script, Call::Rank)?;
        match self.begun.take().filter(|(begun, _)| begun == query) {
            Some((_, answer)) => *out = answer,
            None => self.inside.rank_nodes(query, out)?,
        }
        Ok(())
    }

    fn begin_ranking(&mut self, query: &NodeQuery) -> Result<bool, EvalError> {
        asked(&self.script, Call::Begin)?;
        let mut answer = Vec::new();
        self.inside.rank_nodes(query, &mut answer)?;
        self.begun = Some((query.clone(), answer));
        Ok(true)
    }

    fn census(&mut self, out: &mut Census) -> Result<(), EvalError> {
        out.reset(9);
        asked(&self.script, Call::Census)?;
        self.inside.census(out)
    }

    fn measure(&mut self, batch: &Batch, passes: usize) -> Result<Speed, EvalError> {
        self.inside.measure(batch, passes)
    }
}

/// The processor behind these devices, and what it says.
pub(crate) fn failover(devices: Vec<Opener>, crossover: Crossover) -> (Failover, Arc<Mutex<Vec<String>>>) {
    let said = Arc::new(Mutex::new(Vec::new()));
    let ear = said.clone();
    let warn = Box::new(move |text: &str| ear.lock().unwrap().push(text.to_owned()));
    (Failover::new(Cpu::new(1).unwrap(), devices, crossover, warn), said)
}

/// All that a backend can be asked, on a cluster that changes.
pub(crate) fn conversation(backend: &mut dyn Backend) -> Result<Vec<(Scores, Vec<u32>, Census)>, EvalError> {
    let mut answers = Vec::new();
    for seed in 0..2 {
        let mut cluster = synthetic::cluster(60 + seed as usize, seed).unwrap();
        backend.load(&NodeRows::of(&cluster)?)?;
        for round in 0..4 {
            let batch = synthetic::batch(&cluster, 300, 3, 4, round)?;
            let (mut row, mut best, mut census) = (Scores::default(), Vec::new(), Census::default());
            backend.evaluate(&batch, &mut row)?;
            backend.begin_ranking(&query(&cluster))?;
            backend.rank_nodes(&query(&cluster), &mut best)?;
            backend.census(&mut census)?;
            answers.push((row, best, census));
            // Twice in a row, so that a node is edited twice before anybody asks.
            for part in 0..2 {
                backend.apply(&depart(&mut cluster, 5 * round as usize + part))?;
            }
        }
    }
    Ok(answers)
}

fn query(cluster: &Cluster) -> NodeQuery {
    let mut query = NodeQuery::new(cluster, 20);
    for job in cluster.job_ids().take(9) {
        let request = cluster.request_of(job).clone();
        for order in NodeOrder::ALL {
            query.push(cluster, &request, order, None, None);
        }
    }
    query
}

/// One instance leaves each of a few nodes.
fn depart(cluster: &mut Cluster, first: usize) -> Vec<NodeEdit> {
    let nodes = cluster.node_ids().skip(first).take(6);
    let leave = nodes.filter_map(|node| {
        let instance = cluster.instances_on(node).next()?;
        Some(Edit::Free { instance, node, gpus: cluster.instance(instance).gpus() })
    });
    let edits: Vec<Edit> = leave.collect();
    cluster.apply(&edits).unwrap();
    NodeEdit::after(cluster, &edits)
}

#[test]
fn every_call_may_fail() {
    let expected = conversation(&mut Reference::new()).unwrap();
    for call in CALLS {
        let mut failed = 0;
        for n in 0.. {
            let (first, second) = (script(Some((call, n))), script(None));
            let devices = vec![device("first", &first), device("second", &second)];
            let (mut backend, said) = failover(devices, Crossover::At(0));
            assert_eq!(conversation(&mut backend).unwrap(), expected, "{call:?} {n}");
            let said = said.lock().unwrap();
            if !first.lock().unwrap().failed {
                assert!(said.is_empty() && second.lock().unwrap().asked.is_empty());
                break;
            }
            failed += 1;
            let name = if call == Call::Open { "first" } else { "mock" };
            let text = format!("{name} failed (device error: unplugged): mock goes on, and the results are the same");
            assert_eq!(*said, [text], "{call:?} {n}");
            assert!(second.lock().unwrap().asked.starts_with(&[Call::Open, Call::Load]));
        }
        let expected = match call {
            Call::Open => 1,
            Call::Load => 2,
            Call::Apply => 6,
            Call::Evaluate | Call::Begin | Call::Rank | Call::Census => 8,
        };
        assert_eq!(failed, expected, "{call:?}");
    }
}

#[test]
fn a_chain_of_failures_ends_at_the_processor() {
    let expected = conversation(&mut Reference::new()).unwrap();
    let absent = || Opener::new("gone", || Err(EvalError::Absent { backend: "gone", why: "not here".to_owned() }));
    // One after the other, in calls of their own; those that are not there are passed over.
    let scripts = [(Call::Rank, 0), (Call::Census, 1), (Call::Apply, 1)].map(|fails| script(Some(fails)));
    let devices = scripts.iter().flat_map(|script| [absent(), device("mock", script)]).collect();
    let (mut backend, said) = failover(devices, Crossover::At(0));
    assert_eq!(conversation(&mut backend).unwrap(), expected);
    let said = said.lock().unwrap().clone();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[0].contains("mock goes on") && said[2].contains("cpu goes on"), "{said:?}");
    assert_eq!(backend.name(), "cpu");
    // All of them during one call: one warning that names all.
    let scripts = [(Call::Load, 0), (Call::Open, 0), (Call::Evaluate, 0)].map(|fails| script(Some(fails)));
    let devices = scripts.iter().map(|script| device("other", script)).collect();
    let (mut backend, said) = failover(devices, Crossover::At(0));
    assert_eq!(conversation(&mut backend).unwrap(), expected);
    let said = said.lock().unwrap().clone();
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!(said[0].matches("failed").count(), 3, "{said:?}");
}

#[test]
fn the_crossover_does_not_show() {
    let expected = conversation(&mut Reference::new()).unwrap();
    for crossover in [0, 1, 60, 61, 300, 2000, u64::MAX].map(Crossover::At).into_iter().chain([Crossover::Measured]) {
        let script = script(None);
        let (mut backend, said) = failover(vec![device("mock", &script)], crossover);
        assert_eq!(conversation(&mut backend).unwrap(), expected, "{crossover:?}");
        assert!(said.lock().unwrap().is_empty());
        let asked = script.lock().unwrap().asked.clone();
        let count = |call| asked.iter().filter(|&&other| other == call).count();
        match crossover {
            Crossover::At(0..=60) => assert_eq!([Call::Evaluate, Call::Census].map(count), [8, 8]),
            Crossover::At(300) => assert_eq!([Call::Evaluate, Call::Census].map(count), [8, 0]),
            Crossover::At(u64::MAX) | Crossover::Measured => assert_eq!(asked, [], "opened for nothing"),
            Crossover::At(_) => {}
        }
    }
}

/// Calls that are large enough to be measured on both, and devices that fail while they are.
#[test]
fn a_device_may_fail_while_it_is_measured() {
    let cluster = synthetic::cluster(500, 2).unwrap();
    let nodes = NodeRows::of(&cluster).unwrap();
    let batch = synthetic::batch(&cluster, 20_000, 4, 8, 2).unwrap();
    let ask = |backend: &mut dyn Backend| {
        let mut scores = Scores::default();
        backend.load(&nodes).unwrap();
        backend.evaluate(&batch, &mut scores).unwrap();
        scores
    };
    let expected = ask(&mut Reference::new());
    for fails in [None, Some((Call::Evaluate, 0)), Some((Call::Evaluate, 3)), Some((Call::Rank, 0))] {
        let script = script(fails);
        let (mut backend, said) = failover(vec![device("mock", &script)], Crossover::Measured);
        assert_eq!(ask(&mut backend), expected);
        assert_eq!(said.lock().unwrap().len(), usize::from(fails.is_some()));
        assert_eq!(script.lock().unwrap().failed, fails.is_some());
    }
}

#[test]
fn what_the_caller_does_wrong_is_told_to_the_caller() {
    let script = script(None);
    let (mut backend, said) = failover(vec![device("mock", &script)], Crossover::At(0));
    let (cluster, other) = (synthetic::cluster(10, 1).unwrap(), synthetic::cluster(11, 1).unwrap());
    backend.load(&NodeRows::of(&cluster).unwrap()).unwrap();
    let batch = synthetic::batch(&other, 10, 1, 0, 1).unwrap();
    assert!(matches!(backend.evaluate(&batch, &mut Scores::default()), Err(EvalError::OtherCluster { .. })));
    assert!(matches!(backend.measure(&batch, 1), Err(EvalError::OtherCluster { .. })));
    let many = synthetic::cluster(6000, 1).unwrap();
    let foreign = NodeQuery::new(&many, 1);
    assert!(matches!(backend.rank_nodes(&foreign, &mut Vec::new()), Err(EvalError::OtherCluster { .. })));
    let edit = NodeEdit { node: 10, ..NodeEdit::default() };
    assert_eq!(backend.apply(&[edit]), Err(EvalError::UnknownNode(10, 10)));
    assert_eq!((said.lock().unwrap().len(), script.lock().unwrap().asked.len()), (0, 0));
}

#[test]
fn a_device_that_is_named_must_be_there() {
    let warn = || Box::new(|text: &str| panic!("{text}"));
    for choice in [Choice::Auto, Choice::Cpu] {
        assert_eq!(open_safely(choice, 1, Crossover::At(0), warn()).unwrap().name(), "cpu");
    }
    let script = script(Some((Call::Open, 0)));
    let (mut backend, _) = failover(vec![device("mock", &script)], Crossover::At(0));
    assert_eq!(backend.open_first(), Err(EvalError::Device("unplugged".to_owned())));
}

/// A queue whose windows have nodes ranked, and whose jobs leave again.
pub(crate) fn asking_queue() -> (Cluster, Vec<slotwise::workload::QueueEntry>) {
    let mut nodes = plain_nodes(100);
    nodes.iter_mut().enumerate().for_each(|(number, node)| node.cpu = Some(number as u32 % 7));
    let job = |number: u32| JobPlan { cpu: number % 3 + 1, ..plain_job(1 + (number % 3) as u8, 2) };
    let steps: Vec<Step> = (0..60).map(|number| Step::Submit(job(number))).collect();
    queue(&nodes, &steps)
}

pub(crate) fn decide(
    cluster: &Cluster,
    queue: &[slotwise::workload::QueueEntry],
    options: PlaceOptions,
    backend: Failover,
) -> Vec<Decision> {
    let mut state = State::new(cluster.clone());
    let mut commit_loop = CommitLoop::with_backend(&mut state, options, Box::new(backend));
    let mut decisions = Vec::new();
    commit_loop.run(queue, &mut |decision| decisions.push(decision.clone()));
    assert_eq!(commit_loop.backend_fault(), None);
    state.into_cluster().check_books().unwrap();
    decisions
}

#[test]
fn a_placement_run_survives_every_failure() {
    let (cluster, queue) = asking_queue();
    for policy in [Policy::BestFit, Policy::WorstFit, Policy::FirstFit] {
        let options = PlaceOptions { window: 6, ..options(policy) };
        let (expected, _) = run(&cluster, &queue, options);
        let mut failures = 0;
        for call in [Call::Open, Call::Load, Call::Apply, Call::Begin, Call::Rank] {
            for n in 0.. {
                let (first, second) = (script(Some((call, n))), script(Some((call, n))));
                let devices = vec![device("first", &first), device("second", &second)];
                let (backend, said) = failover(devices, Crossover::At(0));
                assert_eq!(decide(&cluster, &queue, options, backend), expected, "{policy:?} {call:?} {n}");
                let failed = [&first, &second].map(|script| script.lock().unwrap().failed);
                let calls = said.lock().unwrap().len();
                assert_eq!(
                    said.lock().unwrap().concat().matches("failed").count(),
                    failed.iter().filter(|&&failed| failed).count()
                );
                assert!(calls <= 2);
                if !failed[0] {
                    break;
                }
                failures += 1;
            }
        }
        assert!(failures > 15, "{policy:?}: {failures}");
    }
}
