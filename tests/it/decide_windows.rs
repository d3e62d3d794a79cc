//! Windows, threads and backends never show in what the commit loop decides.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use slotwise::anchor::State;
use slotwise::cluster::Cluster;
use slotwise::decide::{Arithmetic, CommitLoop, Decision, PlaceOptions, Policy, Status};
use slotwise::evaluate::abi::NodeEdit;
use slotwise::evaluate::measure::Speed;
use slotwise::evaluate::twin::Reference;
use slotwise::evaluate::{
    self, Backend, Batch, Census, Choice, EvalError, FgdQuery, FgdRow, NodeQuery, NodeRows, Scores,
};
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
        let mut state = State::new(cluster.clone());
        let backend = evaluate::open(Choice::Cpu, threads).unwrap();
        let mut commit_loop = CommitLoop::with_backend(&mut state, PlaceOptions { window, threads, ..options }, backend);
        let mut decisions = Vec::new();
        commit_loop.run(&queue, &mut |decision| decisions.push(decision.clone()));
        prop_assert_eq!(commit_loop.backend_fault(), None);
        prop_assert_eq!(&decisions, &expected);
        prop_assert_eq!(state.cluster().nodes(), books.nodes());
        // Nor does one that ranks for a window while the one before is decided.
        let options = PlaceOptions { window, threads, ..options };
        prop_assert_eq!(run_ahead(&cluster, &queue, options).0, expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// A backend that scores nodes for FGD does not show, nor do windows.
    #[test]
    fn a_backend_that_scores_does_not_show(
        nodes in prop::collection::vec(node_plan(), 1..30),
        steps in steps(5, 2..60),
        window in 1usize..80,
    ) {
        let (cluster, queue) = queue(&nodes, &steps);
        let options = options(Policy::Fgd(Arithmetic::Exact));
        let (expected, _) = run(&cluster, &queue, options);
        let (decisions, notes) = run_ahead(&cluster, &queue, PlaceOptions { window, ..options });
        prop_assert_eq!(decisions, expected);
        // Nothing but scores is asked for, and not without need.
        prop_assert!(notes.matches(['a', 'A', 'b']).next().is_none() && notes.matches('f').count() <= steps.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Nor do they where what is typical changes with what runs or waits, in the middle of a window.
    #[test]
    fn a_table_that_changes_shows_no_window_and_no_backend(
        nodes in prop::collection::vec(node_plan(), 1..30),
        steps in steps(9, 2..90),
        window in 2usize..80,
        threads in 1usize..4,
        policy in prop::sample::select(&[Policy::CaFgd, Policy::Mcg][..]),
    ) {
        let (cluster, queue) = queue(&nodes, &steps);
        let options = options(policy);
        let (expected, books) = run(&cluster, &queue, options);
        let mut state = State::new(cluster.clone());
        let mut commit_loop = CommitLoop::new(&mut state, options);
        for ((index, &entry), expected) in queue.iter().enumerate().zip(&expected) {
            // To ask what a start would cost changes nothing either.
            let growth = commit_loop.growth(entry.job());
            prop_assert_eq!(commit_loop.growth(entry.job()), growth);
            let decision = commit_loop.decide(entry, index);
            prop_assert_eq!(decision, expected);
            let submitted = matches!(entry, QueueEntry::Submit(_));
            prop_assert!(!submitted || growth.is_some() == (decision.status == Status::Placed));
        }
        let options = PlaceOptions { window, threads, ..options };
        let (decisions, found) = run(&cluster, &queue, options);
        prop_assert_eq!(&decisions, &expected);
        prop_assert_eq!(found.nodes(), books.nodes());
        let mut state = State::new(cluster.clone());
        let backend = evaluate::open(Choice::Cpu, threads).unwrap();
        let mut commit_loop = CommitLoop::with_backend(&mut state, options, backend);
        let mut decisions = Vec::new();
        commit_loop.run(&queue, &mut |decision| decisions.push(decision.clone()));
        prop_assert_eq!(commit_loop.backend_fault(), None);
        prop_assert_eq!(&decisions, &expected);
        prop_assert_eq!(run_ahead(&cluster, &queue, options).0, expected);
    }
}

#[test]
fn requests_are_scored_in_bulk_when_they_come_for_the_first_time() {
    let (cluster, queue) = limited_queue(12);
    let options = PlaceOptions { window: 4, ..options(Policy::Fgd(Arithmetic::Exact)) };
    let (decisions, notes) = run_ahead(&cluster, &queue, options);
    assert_eq!(decisions, run(&cluster, &queue, options).0);
    // There are three kinds of jobs, all of them among the first.
    assert_eq!(notes, "fdddddddddddd");
}

/// A backend that answers with what it found when the question was begun, as a device does, and notes what it does: edits,
/// begun questions, and answers of these or anew.
struct Ahead {
    inside: Reference,
    begun: Option<(NodeQuery, Vec<u32>)>,
    notes: Arc<Mutex<String>>,
}

impl Ahead {
    fn note(&self, what: char) {
        self.notes.lock().unwrap().push(what);
    }
}

impl Backend for Ahead {
    fn name(&self) -> &'static str {
        "ahead"
    }

    fn load(&mut self, nodes: &NodeRows) -> Result<(), EvalError> {
        self.inside.load(nodes)
    }

    fn apply(&mut self, edits: &[NodeEdit]) -> Result<(), EvalError> {
        if !edits.is_empty() {
            self.note('e');
            self.begun = None;
        }
        self.inside.apply(edits)
    }

    fn evaluate(&mut self, batch: &Batch, out: &mut Scores) -> Result<(), EvalError> {
        self.inside.evaluate(batch, out)
    }

    fn rank_nodes(&mut self, query: &NodeQuery, out: &mut Vec<u32>) -> Result<(), EvalError> {
        match self.begun.take().filter(|(begun, _)| begun == query) {
            Some((_, answer)) => {
                self.note('a');
                *out = answer;
                Ok(())
            }
            None => {
                self.note('A');
                self.inside.rank_nodes(query, out)
            }
        }
    }

    fn begin_ranking(&mut self, query: &NodeQuery) -> Result<bool, EvalError> {
        assert!(self.begun.is_none(), "nobody asked for the answer");
        self.note('b');
        let mut answer = Vec::new();
        self.inside.rank_nodes(query, &mut answer)?;
        self.begun = Some((query.clone(), answer));
        Ok(true)
    }

    fn score_fgd(&mut self, query: &FgdQuery, out: &mut Vec<FgdRow>) -> Result<(), EvalError> {
        self.note('f');
        self.inside.score_fgd(query, out)
    }

    fn census(&mut self, out: &mut Census) -> Result<(), EvalError> {
        self.inside.census(out)
    }

    fn measure(&mut self, batch: &Batch, passes: usize) -> Result<Speed, EvalError> {
        self.inside.measure(batch, passes)
    }
}

/// What is decided with that backend, and its notes, with the decisions among them.
fn run_ahead(cluster: &Cluster, queue: &[QueueEntry], options: PlaceOptions) -> (Vec<Decision>, String) {
    let notes = Arc::new(Mutex::new(String::new()));
    let backend = Ahead { inside: Reference::new(), begun: None, notes: notes.clone() };
    let mut state = State::new(cluster.clone());
    let mut commit_loop = CommitLoop::with_backend(&mut state, options, Box::new(backend));
    let mut decisions = Vec::new();
    commit_loop.run(queue, &mut |decision| {
        notes.lock().unwrap().push('d');
        decisions.push(decision.clone());
    });
    assert_eq!(commit_loop.backend_fault(), None);
    (decisions, notes.lock().unwrap().clone())
}

#[test]
fn a_window_is_ranked_while_the_one_before_is_decided() {
    let (cluster, queue) = limited_queue(23);
    let options = PlaceOptions { window: 5, ..options(Policy::WorstFit) };
    let (decisions, notes) = run_ahead(&cluster, &queue, options);
    assert_eq!(decisions, run(&cluster, &queue, options).0);
    // The first window has none before; nothing comes behind the last.
    assert_eq!(notes, "Abdddddaebdddddaebdddddaebdddddaeddd");
}

/// A queue whose requests ask for CPU, on nodes that have more or less of it.
fn limited_queue(jobs: u32) -> (Cluster, Vec<QueueEntry>) {
    let mut nodes = plain_nodes(100);
    nodes.iter_mut().enumerate().for_each(|(number, node)| node.cpu = Some(number as u32 % 7));
    let job = |number: u32| JobPlan { cpu: number % 3 + 1, ..plain_job(1 + (number % 3) as u8, 2) };
    let steps: Vec<Step> = (0..jobs).map(|number| Step::Submit(job(number))).collect();
    queue(&nodes, &steps)
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

    fn load(&mut self, nodes: &NodeRows) -> Result<(), EvalError> {
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

    fn score_fgd(&mut self, query: &FgdQuery, out: &mut Vec<FgdRow>) -> Result<(), EvalError> {
        self.inside.score_fgd(query, out)
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
    let (cluster, queue) = limited_queue(40);
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
