//! Backends against the twins.

use proptest::prelude::*;
use slotwise::cluster::Cluster;
use slotwise::evaluate::abi::{Candidate, NONE, Need, NodeEdit, Touch};
use slotwise::evaluate::conformance::{Extent, Faulty};
use slotwise::evaluate::measure::Speed;
use slotwise::evaluate::twin::Reference;
use slotwise::evaluate::{
    Backend, Batch, BatchRows, Census, Choice, Cpu, EvalError, FgdQuery, FgdRow, Kernel, NodeQuery, NodeRows, Reason,
    Scores, conformance, open, synthetic,
};

mod recount;

#[test]
fn the_processor_passes_the_suite_with_any_number_of_threads() {
    for threads in 1..=4 {
        every_check(&mut Cpu::new(threads).unwrap(), threads);
    }
}

#[test]
fn every_way_of_scoring_passes_the_suite() {
    every_check(&mut Cpu::new(1).unwrap(), 1);
    every_check(&mut Cpu::portable(1).unwrap(), 1);
    every_check(&mut Cpu::portable(2).unwrap(), 2);
}

fn every_check(cpu: &mut Cpu, threads: usize) {
    let checks = conformance::suite(cpu, 11).unwrap();
    for check in &checks {
        assert_eq!(check.mismatch, None, "{threads} threads: {check:?}");
    }
    assert!(checks.iter().map(|check| check.values).sum::<usize>() > 10_000);
}

/// A backend with one planted fault.
struct Spoilt<B>(B, Fault);

#[derive(Clone, Copy)]
enum Fault {
    Scores(fn(&mut Scores)),
    Nodes(fn(&mut Vec<u32>)),
    Census(fn(&mut Census)),
}

impl<B: Backend> Backend for Spoilt<B> {
    fn name(&self) -> &'static str {
        "faulty"
    }
    fn load(&mut self, nodes: &NodeRows) -> Result<(), EvalError> {
        self.0.load(nodes)
    }
    fn apply(&mut self, edits: &[NodeEdit]) -> Result<(), EvalError> {
        self.0.apply(edits)
    }
    fn evaluate(&mut self, batch: &Batch, out: &mut Scores) -> Result<(), EvalError> {
        self.0.evaluate(batch, out)?;
        if let Fault::Scores(fault) = self.1 {
            fault(out);
        }
        Ok(())
    }
    fn rank_nodes(&mut self, query: &NodeQuery, out: &mut Vec<u32>) -> Result<(), EvalError> {
        self.0.rank_nodes(query, out)?;
        if let Fault::Nodes(fault) = self.1 {
            fault(out);
        }
        Ok(())
    }
    fn score_fgd(&mut self, query: &FgdQuery, out: &mut Vec<FgdRow>) -> Result<(), EvalError> {
        self.0.score_fgd(query, out)
    }
    fn census(&mut self, out: &mut Census) -> Result<(), EvalError> {
        self.0.census(out)?;
        if let Fault::Census(fault) = self.1 {
            fault(out);
        }
        Ok(())
    }
    fn measure(&mut self, batch: &Batch, passes: usize) -> Result<Speed, EvalError> {
        self.0.measure(batch, passes)
    }
}

#[test]
fn the_suite_meets_what_it_is_for() {
    let checks = conformance::suite(&mut Reference::new(), 3).unwrap();
    // The twins after edits, against the twins loaded anew.
    assert_eq!(checks.iter().find(|check| check.mismatch.is_some()), None);
    for kernel in Kernel::ALL {
        assert!(checks.iter().filter(|check| check.kernel == *kernel && check.values > 0).count() > 20, "{kernel:?}");
    }
    let quick = conformance::suite_of(&mut Reference::new(), 3, Extent::Quick).unwrap();
    assert!(quick.len() * 2 < checks.len());
}

/// Every kernel's own check sees its own fault.
#[test]
fn a_fault_of_any_kernel_is_found() {
    for &kernel in Kernel::ALL {
        let mut inside = Reference::new();
        let checks = conformance::suite_of(&mut Faulty { inside: &mut inside, kernel }, 11, Extent::Quick).unwrap();
        let found = |at: Kernel| checks.iter().any(|check| check.kernel == at && check.mismatch.is_some());
        assert!(found(kernel), "{kernel:?}");
    }
}

#[test]
fn one_planted_fault_is_found() {
    let faults = [
        Fault::Scores(|out| out.rows.last_mut().into_iter().for_each(|row| row.residual ^= 1)),
        Fault::Scores(|out| out.rows.first_mut().into_iter().for_each(|row| row.delta_partial += 1)),
        Fault::Scores(|out| out.best.last_mut().into_iter().for_each(|best| *best ^= 1)),
        Fault::Nodes(|out| out.last_mut().into_iter().for_each(|node| *node ^= 1)),
        Fault::Nodes(|out| out.truncate(out.len().saturating_sub(1))),
        Fault::Census(|out| out.pools.truncate(out.pools.len().saturating_sub(1))),
        Fault::Census(|out| out.compositions.truncate(1)),
    ];
    for fault in faults {
        let checks = conformance::suite(&mut Spoilt(Reference::new(), fault), 11).unwrap();
        assert!(checks.iter().any(|check| check.mismatch.is_some()));
        assert!(checks.iter().any(|check| check.mismatch.is_none()));
    }
}

/// Every way of scoring, on the same cluster.
fn all_ways(cluster: &Cluster) -> [Box<dyn Backend>; 4] {
    let mut ways: [Box<dyn Backend>; 4] = [
        Box::new(Reference::new()),
        Box::new(Cpu::portable(1).unwrap()),
        Box::new(Cpu::new(1).unwrap()),
        Box::new(Cpu::new(3).unwrap()),
    ];
    ways.iter_mut().for_each(|way| way.load(&NodeRows::of(cluster).unwrap()).unwrap());
    ways
}

/// A batch of one job whose candidates have the touches of `of`, each alone.
fn alone(of: &Batch, change: impl Fn(Touch) -> Touch) -> Batch {
    let n = of.touches().len() as u32;
    Batch::from_rows(BatchRows {
        nodes: of.nodes(),
        touches: of.touches().iter().map(|&touch| change(touch)).collect(),
        offsets: (0..=n).collect(),
        given: vec![0; n as usize],
        candidates: vec![Candidate::default(); n as usize],
        jobs: vec![0, n],
        needs: vec![Need::NONE],
    })
    .unwrap()
}

#[test]
fn of_ties_the_first_is_best() {
    let cluster = synthetic::cluster(40, 3).unwrap();
    let batch = alone(&synthetic::batch(&cluster, 700, 1, 0, 3).unwrap(), |_| Touch { node: 7, ..Touch::default() });
    for mut way in all_ways(&cluster) {
        let mut scores = Scores::default();
        way.evaluate(&batch, &mut scores).unwrap();
        assert!(scores.rows.iter().all(|row| *row == scores.rows[0] && row.reason == 0));
        assert_eq!(scores.best, [0]);
        assert!(scores.ranks(&batch).into_iter().eq(1..=700));
    }
}

#[test]
fn none_is_best_where_all_are_infeasible() {
    let cluster = synthetic::cluster(40, 3).unwrap();
    // The devices 8.. are nowhere.
    let batch = alone(&synthetic::batch(&cluster, 700, 1, 0, 3).unwrap(), |touch| Touch { taken: 1 << 9, ..touch });
    for mut way in all_ways(&cluster) {
        let mut scores = Scores::default();
        way.evaluate(&batch, &mut scores).unwrap();
        assert!((0..700).all(|candidate| scores.reason(candidate) == Some(Reason::GpuBusy)));
        assert_eq!(scores.best, [NONE]);
        assert_eq!(scores.ranks(&batch), [0; 700]);
    }
}

#[test]
fn foreign_batches_and_edits_are_refused() {
    let cluster = synthetic::cluster(10, 1).unwrap();
    let other = synthetic::cluster(11, 1).unwrap();
    let mut cpu = open(Choice::Cpu, 1).unwrap();
    cpu.load(&NodeRows::of(&cluster).unwrap()).unwrap();
    let batch = synthetic::batch(&other, 10, 1, 0, 1).unwrap();
    assert!(matches!(cpu.evaluate(&batch, &mut Scores::default()), Err(EvalError::OtherCluster { .. })));
    assert_eq!(cpu.apply(&[NodeEdit { node: 10, ..NodeEdit::default() }]), Err(EvalError::UnknownNode(10, 10)));
}

#[test]
fn rows_are_checked() {
    let good = BatchRows {
        nodes: 2,
        touches: vec![Touch::default(), Touch { node: 1, ..Touch::default() }],
        offsets: vec![0, 2],
        given: vec![0],
        candidates: vec![Candidate::default()],
        jobs: vec![0, 1],
        needs: vec![Need::NONE],
    };
    assert!(Batch::from_rows(good.clone()).is_ok());
    let bad: [fn(&mut BatchRows); 8] = [
        |rows| rows.nodes = 1,
        |rows| rows.touches[0].node = 1,
        |rows| rows.touches[0].need = 1,
        |rows| rows.offsets = vec![0, 1],
        |rows| rows.given[0] = 99,
        |rows| rows.candidates[0].delta_phi_star = i32::MIN,
        |rows| rows.jobs = vec![],
        |rows| rows.needs.clear(),
    ];
    for spoil in bad {
        let mut rows = good.clone();
        spoil(&mut rows);
        assert!(Batch::from_rows(rows).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn threads_do_not_matter(
        seed in any::<u64>(), nodes in 1usize..80, per in 1usize..80, asking in 0u32..4, threads in 1usize..5,
        touches in prop_oneof![Just(900usize), Just(10_000)],
    ) {
        let cluster = synthetic::cluster(nodes, seed).unwrap();
        let batch = synthetic::batch(&cluster, touches, per, asking, seed).unwrap();
        let (mut cpu, mut reference) = (Cpu::new(threads).unwrap(), Reference::new());
        cpu.load(&NodeRows::of(&cluster).unwrap()).unwrap();
        reference.load(&NodeRows::of(&cluster).unwrap()).unwrap();
        for check in conformance::scores(&mut cpu, &mut reference, &batch).unwrap() {
            prop_assert_eq!(check.mismatch, None);
        }
    }
}
