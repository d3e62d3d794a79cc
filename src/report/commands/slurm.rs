//! Commands for `scontrol`: a job is requeued as a whole, and told its nodes.

use std::collections::{BTreeMap, BTreeSet};

use super::super::plan::PlanReport;
use super::{Script, room, told};
use crate::cluster::{InstanceId, JobId};
use crate::formats::Handles;
use crate::plan::{Mode, Step};

/// A job of Slurm of which something moves.
struct Mover<'a> {
    /// Its number.
    id: &'a str,
    steps: Vec<&'a Step>,
    /// The nodes of all of it afterwards; `None` if two of its instances share one.
    nodes: Option<Vec<&'a str>>,
}

/// Appends the steps of a plan.
pub(super) fn write(script: &mut Script, report: &PlanReport<'_>, handles: &Handles) {
    let movers = movers(report, handles);
    if movers.is_empty() {
        return room(script, report);
    }
    script.comment(
        "Slurm moves no instance. A job is requeued as a whole and starts from the beginning, also on the nodes",
    );
    script
        .comment("that it keeps; it is held until it is told its nodes, and waits until they are free. Other jobs may");
    script.comment(
        "come before it, and Slurm chooses the devices. It starts two minutes later at the soonest, unless cred_expire",
    );
    script.comment("in AuthInfo of slurm.conf says how much later.");
    match report.mode {
        Mode::StopFirst => {
            script.part("All that move stop, and are held.");
            movers.iter().for_each(|mover| hold(script, report, mover));
            script.part("Where they go; once squeue shows them as pending.");
            movers.iter().for_each(|mover| direct(script, mover));
            script.part("They may start.");
            movers.iter().for_each(|mover| script.command(&["scontrol", "release", mover.id]));
        }
        Mode::Hitless => {
            for mover in &movers {
                script.part("Go on when the job before this one runs.");
                hold(script, report, mover);
                direct(script, mover);
                script.command(&["scontrol", "release", mover.id]);
            }
        }
    }
    room(script, report);
}

/// The jobs of which something moves, in the order of their first moves.
fn movers<'a>(report: &PlanReport<'a>, handles: &'a Handles) -> Vec<Mover<'a>> {
    let (cluster, plan) = (report.cluster, report.plan);
    let mut movers: Vec<Mover<'_>> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for step in &plan.steps {
        let Some(id) = handles.job(step.job) else { continue };
        let at = *places.entry(id).or_insert(movers.len());
        if at == movers.len() {
            movers.push(Mover { id, steps: Vec::new(), nodes: Some(Vec::new()) });
        }
        movers[at].steps.push(step);
    }
    let mut ends: BTreeMap<InstanceId, _> = BTreeMap::new();
    ends.extend(plan.steps.iter().map(|step| (step.instance, step.to)));
    let parts = |job: &JobId| cluster.job(*job).runs() && handles.job(*job).is_some_and(|id| places.contains_key(id));
    for job in cluster.job_ids().filter(parts) {
        let Some(mover) = handles.job(job).and_then(|id| movers.get_mut(places[id])) else { continue };
        for instance in cluster.instances_of(job) {
            let node = ends.get(&instance).copied().or(cluster.instance(instance).node());
            if let (Some(nodes), Some(node)) = (&mut mover.nodes, node) {
                nodes.push(cluster.node_name(node));
            }
        }
    }
    for mover in &mut movers {
        let distinct = |nodes: &Vec<&str>| nodes.iter().collect::<BTreeSet<_>>().len() == nodes.len();
        mover.nodes = mover.nodes.take().filter(distinct);
    }
    movers
}

fn hold(script: &mut Script, report: &PlanReport<'_>, mover: &Mover<'_>) {
    mover.steps.iter().for_each(|step| script.comment(&told(report, step)));
    script.command(&["scontrol", "requeuehold", mover.id]);
}

fn direct(script: &mut Script, mover: &Mover<'_>) {
    match &mover.nodes {
        Some(nodes) => {
            let (job, nodes) = (format!("JobId={}", mover.id), format!("ReqNodeList={}", nodes.join(",")));
            script.command(&["scontrol", "update", &job, &nodes]);
        }
        None => script.comment(&format!(
            "the plan has two instances of job {} on one node, which Slurm cannot be told: it will choose",
            mover.id
        )),
    }
}
