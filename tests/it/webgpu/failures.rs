//! What goes wrong is an error, stays one, and is neither a panic nor a wait without end.

use std::time::Duration;

use slotwise::cluster::Request;
use slotwise::decide::{PlaceOptions, Policy};
use slotwise::evaluate::abi::NodeEdit;
use slotwise::evaluate::measure::Speed;
use slotwise::evaluate::twin::Reference;
use slotwise::evaluate::webgpu::{AdapterChoice, Limits};
use slotwise::evaluate::{
    Backend, Batch, Census, Crossover, EvalError, Kernel, NodeOrder, NodeQuery, NodeRows, Opener, Scores, WebGpu,
    conformance, synthetic,
};

use super::open;
use crate::decide_support::{options, run};
use crate::failover::{asking_queue, conversation, decide, failover};

#[test]
fn a_fault_in_any_shader_is_found() {
    let faults = [
        (Kernel::score_candidates, "was_outside && !outside", "was_outside"),
        (Kernel::best_candidate, "vec4<i32>(8, 4, 2, 1)", "vec4<i32>(8, 4, 0, 1)"),
        (Kernel::rank_nodes, "for (var i = 0u; i < word; i++)", "for (var i = 0u; i + 1u < word; i++)"),
        (Kernel::apply_edits, "amounts[edit.node] = edit.amounts;", "amounts[edit.node].cpu = edit.amounts.cpu;"),
        (Kernel::census, "} else if lacks_vacancy(node.state) {", "} else if overflows(node.state) {"),
    ];
    for (kernel, right, wrong) in faults {
        let text = |of: Kernel| {
            let text = WebGpu::shader(of);
            assert!(of != kernel || text.contains(right), "{right}");
            if of == kernel { text.replace(right, wrong) } else { text }
        };
        let mut backend = WebGpu::open_altered(AdapterChoice::Any, &Limits::default(), &text).unwrap();
        let checks = conformance::suite(&mut backend, 11).unwrap();
        // An edit that is not applied is seen in what is then scored.
        let shows = |of: Kernel| of == kernel || kernel == Kernel::apply_edits;
        assert!(checks.iter().any(|check| check.mismatch.is_some() && shows(check.kernel)), "{wrong}");
    }
}

#[test]
fn what_does_not_compile_is_an_error() {
    for kernel in Kernel::ALL {
        let text = |of: Kernel| if of == *kernel { "fn".to_owned() } else { WebGpu::shader(of) };
        let opened = WebGpu::open_altered(AdapterChoice::Any, &Limits::default(), &text);
        assert!(matches!(opened, Err(EvalError::Device(_))), "{}", kernel.name());
    }
}

/// Every call, with a small cluster.
fn call_all(backend: &mut WebGpu) -> Vec<Result<(), EvalError>> {
    let cluster = synthetic::cluster(100, 1).unwrap();
    let batch = synthetic::batch(&cluster, 1000, 3, 1, 1).unwrap();
    let mut query = NodeQuery::new(&cluster, 3);
    query.push(&cluster, &Request::default(), NodeOrder::BestFit, None, None);
    vec![
        backend.load(&NodeRows::of(&cluster).unwrap()),
        backend.apply(&[NodeEdit::default()]),
        backend.evaluate(&batch, &mut Scores::default()),
        backend.rank_nodes(&query, &mut Vec::new()),
        backend.census(&mut Census::default()),
        backend.measure(&batch, 1).map(|_| ()),
    ]
}

#[test]
fn a_lost_device_fails_for_good() {
    let mut backend = open(&Limits::default());
    assert!(call_all(&mut backend).iter().all(Result::is_ok));
    backend.lose();
    let failed = call_all(&mut backend);
    assert!(failed.iter().any(|result| matches!(result, Err(EvalError::Device(why)) if why.contains("lost"))));
    for result in call_all(&mut backend) {
        assert!(matches!(result, Err(EvalError::Device(_))), "{result:?}");
    }
}

#[test]
fn a_command_that_is_refused_fails_for_good() {
    // The kernel then has no binding for what is given.
    let text = |kernel: Kernel| WebGpu::shader(kernel).replace("finished(row, given[candidate])", "row");
    let mut backend = WebGpu::open_altered(AdapterChoice::Any, &Limits::default(), &text).unwrap();
    let results = call_all(&mut backend);
    assert_eq!(results[0], Ok(()));
    let Err(EvalError::Device(why)) = &results[2] else { panic!("{results:?}") };
    assert!(why.contains("create_bind_group"), "{why}");
    for result in call_all(&mut backend) {
        assert_eq!(result, Err(EvalError::Device(why.clone())));
    }
}

#[test]
fn a_device_that_does_not_answer_is_given_up() {
    let mut backend = open(&Limits { patience: Duration::ZERO, ..Limits::default() });
    let cluster = synthetic::cluster(1000, 1).unwrap();
    let batch = synthetic::batch(&cluster, 300_000, 30, 0, 1).unwrap();
    backend.load(&NodeRows::of(&cluster).unwrap()).unwrap();
    for _ in 0..2 {
        let Err(EvalError::Device(why)) = backend.evaluate(&batch, &mut Scores::default()) else { panic!() };
        assert_eq!(why, "no answer for 0 s");
    }
}

#[test]
fn a_cluster_that_does_not_fit_is_refused_with_numbers() {
    let mut backend = open(&Limits { binding: 16 << 10, ..Limits::default() });
    assert!(call_all(&mut backend).iter().all(Result::is_ok));
    let larger = NodeRows::of(&synthetic::cluster(1025, 1).unwrap()).unwrap();
    let refused = backend.load(&larger);
    assert_eq!(refused, Err(EvalError::DoesNotFit { what: "node attributes", bytes: 16_400, most: 16_384 }));
    // What was loaded still is.
    let mut census = Census::default();
    backend.census(&mut census).unwrap();
    assert_eq!(census.total().nodes, 100);
    assert_eq!(backend.load(&NodeRows::of(&synthetic::cluster(1024, 1).unwrap()).unwrap()), Ok(()));
}

#[test]
fn what_is_about_other_nodes_is_refused() {
    let mut backend = open(&Limits::default());
    let cluster = synthetic::cluster(10, 1).unwrap();
    backend.load(&NodeRows::of(&cluster).unwrap()).unwrap();
    let other = synthetic::cluster(11, 1).unwrap();
    let batch = synthetic::batch(&other, 10, 1, 0, 1).unwrap();
    assert!(matches!(backend.evaluate(&batch, &mut Scores::default()), Err(EvalError::OtherCluster { .. })));
    assert!(matches!(backend.measure(&batch, 1), Err(EvalError::OtherCluster { .. })));
    let beyond = [NodeEdit::of(&cluster, slotwise::cluster::NodeId(0)), NodeEdit { node: 10, ..NodeEdit::default() }];
    assert_eq!(backend.apply(&beyond), Err(EvalError::UnknownNode(10, 10)));
    // Nothing of it is a failure of the device.
    assert!(call_all(&mut backend).iter().all(Result::is_ok));
}

/// A device that is lost before the call of this number.
struct Fragile {
    inside: WebGpu,
    calls_left: Option<usize>,
}

impl Fragile {
    fn device(calls_left: usize) -> Opener {
        let open = move || Fragile { inside: open(&Limits::default()), calls_left: Some(calls_left) };
        Opener::new("wgpu", move || Ok(Box::new(open())))
    }

    fn inside(&mut self) -> &mut WebGpu {
        match self.calls_left {
            Some(0) => self.inside.lose(),
            _ => self.calls_left = self.calls_left.map(|left| left - 1),
        }
        &mut self.inside
    }
}

impl Backend for Fragile {
    fn name(&self) -> &'static str {
        self.inside.name()
    }

    fn load(&mut self, nodes: &NodeRows) -> Result<(), EvalError> {
        self.inside().load(nodes)
    }

    fn apply(&mut self, edits: &[NodeEdit]) -> Result<(), EvalError> {
        self.inside().apply(edits)
    }

    fn evaluate(&mut self, batch: &Batch, out: &mut Scores) -> Result<(), EvalError> {
        self.inside().evaluate(batch, out)
    }

    fn rank_nodes(&mut self, query: &NodeQuery, out: &mut Vec<u32>) -> Result<(), EvalError> {
        self.inside().rank_nodes(query, out)
    }

    fn begin_ranking(&mut self, query: &NodeQuery) -> Result<bool, EvalError> {
        self.inside().begin_ranking(query)
    }

    fn census(&mut self, out: &mut Census) -> Result<(), EvalError> {
        self.inside().census(out)
    }

    fn measure(&mut self, batch: &Batch, passes: usize) -> Result<Speed, EvalError> {
        self.inside().measure(batch, passes)
    }
}

#[test]
fn a_run_survives_the_loss_of_its_device() {
    let expected = conversation(&mut Reference::new()).unwrap();
    let (cluster, queue) = asking_queue();
    let options = PlaceOptions { window: 6, ..options(Policy::BestFit) };
    let (decisions, _) = run(&cluster, &queue, options);
    for calls_left in (0..40).step_by(7) {
        let (mut backend, said) = failover(vec![Fragile::device(calls_left)], Crossover::At(0));
        assert_eq!(conversation(&mut backend).unwrap(), expected, "{calls_left}");
        assert_eq!(backend.name(), "cpu");
        let said = said.lock().unwrap();
        assert!(said.len() == 1 && said[0].starts_with("wgpu failed"), "{calls_left}: {said:?}");
    }
    for calls_left in (0..25).step_by(4) {
        let (backend, said) = failover(vec![Fragile::device(calls_left)], Crossover::At(0));
        assert_eq!(decide(&cluster, &queue, options, backend), decisions, "{calls_left}");
        assert_eq!(said.lock().unwrap().len(), 1, "{calls_left}");
    }
}
