//! Of plans that are as good, the one that leaves the cluster best: scored by a backend, in one batch.

use super::question::{Goal, Plan};
use super::steps::Mode;
use super::ways::Way;
use crate::anchor::State;
use crate::cluster::{Cluster, InstanceId, JobId, JobSpec, NodeId};
use crate::evaluate::{
    Backend, Batch, BatchBuilder, CandidateSet, EvalError, Move, NodeRows, PhiChanges, Place, Scores, delta_sif_nodes,
};

/// How a plan was chosen among those that are as good: as cheap by what is asked, by the second measure, and by the jobs that
/// they disturb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// How many were scored, the plan included.
    pub candidates: u64,
    /// Which of them it is, from 0; they are in the order in which they were made, and 0 would be taken without scores.
    pub chosen: u64,
    /// What the plan does to the cluster, the job that waits included; `None` where `score` finds it infeasible, as where it
    /// moves instances of a gang that is spread over more regions than its job allows.
    pub score: Option<PlanScore>,
}

/// What a plan does to a cluster, as `score` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanScore {
    /// Nodes that it takes out of Σ.
    pub left_abs: u64,
    /// N·ΔSIF: avoidable partial nodes afterwards, less now.
    pub delta_sif_nodes: i64,
}

/// Replaces a feasible plan by the one of rank 1 among those that are as good, by the order of `score`: fewer nodes that leave
/// Σ, smaller N·ΔSIF, and so on, in the end the first made. What it costs and what is proved of it stay as they are.
///
/// `goal` and `mode` are those that the plan was made for. Every backend chooses the same.
///
/// # Errors
/// If the backend fails; the plan is then as it was.
pub fn choose(
    cluster: &Cluster,
    goal: Goal,
    mode: Mode,
    plan: &mut Plan,
    backend: &mut dyn Backend,
) -> Result<(), EvalError> {
    if plan.feasible != Some(true) || plan.ways.is_empty() {
        return Ok(());
    }
    let Some((copy, sets)) = candidates(cluster, goal, &plan.ways) else { return Ok(()) };
    let mut phi = PhiChanges::new(&State::new(copy.clone()));
    let mut batch = Batch::default();
    BatchBuilder::new().build(&copy, &sets, &mut |changes| phi.delta(changes), &mut batch)?;
    backend.load(&NodeRows::of(&copy)?)?;
    let mut scores = Scores::default();
    backend.evaluate(&batch, &mut scores)?;
    let best = scores.best.first().map(|&best| best as usize).filter(|&best| best < batch.len());
    let chosen = best.map_or(0, |best| batch.source(best));
    let score = best.map(|best| PlanScore {
        left_abs: u64::from(scores.rows[best].left),
        delta_sif_nodes: i64::from(delta_sif_nodes(&scores.rows[best], &batch.candidates()[best])),
    });
    if chosen == 0 || plan.take_way(cluster, goal, mode, chosen) {
        plan.choice = Some(Choice { candidates: plan.ways.len() as u64, chosen: chosen as u64, score });
    }
    Ok(())
}

/// Plans as candidate placement sets. A goal without a job gets one that takes nothing, on a node that no plan touches if there
/// is one. `None` if there is no node for it.
fn candidates(cluster: &Cluster, goal: Goal, ways: &[Way]) -> Option<(Cluster, Vec<CandidateSet>)> {
    let mut cluster = cluster.clone();
    let (job, place) = match goal {
        Goal::Job(job) => (job, None),
        Goal::FreeNodes(_) | Goal::FreeRegion(_) | Goal::LeastPartial => {
            let node = untouched(&cluster, ways)?;
            (nothing(&mut cluster)?, Some(Place { node, gpus: Some(0) }))
        }
    };
    let set = |way: &Way| {
        let own = way.place.iter().map(|&(node, gpus)| Place { node, gpus: Some(gpus) });
        let place = place.map_or_else(|| own.collect(), |place| vec![place]);
        CandidateSet { job, place, moves: net(way), given: None }
    };
    let sets = ways.iter().map(set).collect();
    Some((cluster, sets))
}

/// Where each instance that moves is in the end.
fn net(way: &Way) -> Vec<Move> {
    let mut moves: Vec<(InstanceId, usize)> = way.steps.iter().map(|step| step.instance).zip(0..).collect();
    moves.sort_unstable();
    let last = |pair: &(usize, &(InstanceId, usize))| moves.get(pair.0 + 1).is_none_or(|next| next.0 != pair.1.0);
    let to = |&(instance, at): &(InstanceId, usize)| {
        let step = &way.steps[at];
        Move { instance, to: Place { node: step.to, gpus: Some(step.gpus) } }
    };
    moves.iter().enumerate().filter(last).map(|(_, one)| to(one)).collect()
}

/// A node that takes instances, and that no plan touches if there is one.
fn untouched(cluster: &Cluster, ways: &[Way]) -> Option<NodeId> {
    let mut touched = vec![false; cluster.nodes().len()];
    for step in ways.iter().flat_map(|way| &way.steps) {
        (touched[step.from.index()], touched[step.to.index()]) = (true, true);
    }
    let open = cluster.node_ids().filter(|&node| cluster.node(node).schedulable());
    open.min_by_key(|node| (touched[node.index()], *node))
}

/// A job of one instance that takes nothing.
fn nothing(cluster: &mut Cluster) -> Option<JobId> {
    let name = (0..=cluster.jobs().len()).map(|n| format!("plan-{n}")).find(|name| cluster.find_job(name).is_none())?;
    cluster.register(&JobSpec { name: &name, gpus: 0, ..JobSpec::default() }, 1).ok()
}
