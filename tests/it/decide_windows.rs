//! Windows, threads and backends never show in what the commit loop decides.

use proptest::prelude::*;
use slotwise::anchor::State;
use slotwise::cluster::Cluster;
use slotwise::decide::{CommitLoop, Decision, PlaceOptions, Policy};
use slotwise::evaluate::abi::NodeEdit;
use slotwise::evaluate::measure::Speed;
use slotwise::evaluate::{self, Backend, Batch, Census, Choice, EvalError, NodeQuery, Scores};
use slotwise::workload::QueueEntry;

use crate::decide_support::{JobPlan, Step, node_plan, options, plain_job, plain_nodes, queue, run, steps};

fn one_by_one(cluster: &Cluster, queue: &[QueueEntry], options: PlaceOptions) -> (Vec<Decision>, Cluster) {
    let mut state = State::new(cluster.clone());
    let mut decisions = Vec::new();
    for (index, &entry) in queue.iter().enumerate() {
        // A loop of its own for each entry: nothing can be left over from the one before.
        decisions.push(CommitLoop::new(&mut state, options).decide(entry, index).clone());
    }
    (decisions, state.into_cluster())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Windows and threads never show. Some clusters have more nodes than a window ranks.
    #[test]
    fn windows_and_threads_do_not_show(
        nodes in prop_oneof![
            prop::collection::vec(node_plan(), 1..30),
            prop::collection::vec(node_plan(), 70..140),
        ],
        steps in prop_oneof![steps(5, 1..60), steps(60, 1..60)],
        window in 1usize..80,
        threads in 1usize..4,
        at in 0usize..6,
    ) {
        let (cluster, queue) = queue(&nodes, &steps);
        let options = options(Policy::ALL[at]);
        let (expected, books) = one_by_one(&cluster, &queue, options);
        let (decisions, found) = run(&cluster, &queue, PlaceOptions { window, threads, ..options });
        prop_assert_eq!(&decisions, &expected);
        prop_assert_eq!(found.nodes(), books.nodes());
        found.check_books().unwrap();
        // A backend that ranks in place of the indexes does not show either.
        let mut state = State::new(cluster);
        let backend = evaluate::open(Choice::Cpu, threads).unwrap();
        let mut commit_loop = CommitLoop::with_backend(&mut state, PlaceOptions { window, threads, ..options }, backend);
        let mut decisions = Vec::new();
        commit_loop.run(&queue, &mut |decision| decisions.push(decision.clone()));
        prop_assert_eq!(commit_loop.backend_fault(), None);
        prop_assert_eq!(decisions, expected);
        prop_assert_eq!(state.cluster().nodes(), books.nodes());
    }
}

/// A backend that answers a few questions rightly and then fails.
struct Failing {
    inside: Box<dyn Backend>,
    answers: u32,
}

impl Backend for Failing {
    fn name(&self) -> &'static str {
        "failing"
    }

    fn load(&mut self, nodes: &slotwise::evaluate::NodeRows) -> Result<(), EvalError> {
        self.inside.load(nodes)
    }

    fn apply(&mut self, edits: &[NodeEdit]) -> Result<(), EvalError> {
        self.inside.apply(edits)
    }

    fn evaluate(&mut self, batch: &Batch, out: &mut Scores) -> Result<(), EvalError> {
        self.inside.evaluate(batch, out)
    }

    fn rank_nodes(&mut self, query: &NodeQuery, out: &mut Vec<u32>) -> Result<(), EvalError> {
        self.answers = self.answers.checked_sub(1).ok_or_else(|| EvalError::Device("unplugged".to_owned()))?;
        self.inside.rank_nodes(query, out)
    }

    fn census(&mut self, out: &mut Census) -> Result<(), EvalError> {
        self.inside.census(out)
    }

    fn measure(&mut self, batch: &Batch, passes: usize) -> Result<Speed, EvalError> {
        self.inside.measure(batch, passes)
    }
}

#[test]
fn a_backend_that_fails_changes_nothing() {
    let mut nodes = plain_nodes(100);
    nodes.iter_mut().enumerate().for_each(|(number, node)| node.cpu = Some(number as u32 % 7));
    let job = |number: u32| JobPlan { cpu: number % 3 + 1, ..plain_job(1 + (number % 3) as u8, 2) };
    let steps: Vec<Step> = (0..40).map(|number| Step::Submit(job(number))).collect();
    let (cluster, queue) = queue(&nodes, &steps);
    let options = PlaceOptions { window: 10, ..options(Policy::BestFit) };
    let (expected, _) = run(&cluster, &queue, options);
    for answers in 0..6 {
        let mut state = State::new(cluster.clone());
        let inside = evaluate::open(Choice::Cpu, 1).unwrap();
        let mut commit_loop = CommitLoop::with_backend(&mut state, options, Box::new(Failing { inside, answers }));
        let mut decisions = Vec::new();
        commit_loop.run(&queue, &mut |decision| decisions.push(decision.clone()));
        assert_eq!(decisions, expected);
        assert_eq!(commit_loop.backend_fault().is_some(), answers < 4);
    }
}
