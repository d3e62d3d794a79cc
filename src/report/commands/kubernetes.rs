//! Commands for `kubectl`: a pod is deleted, and whatever made it makes it anew.

use std::collections::BTreeSet;

use super::super::plan::PlanReport;
use super::{Script, line, room, told};
use crate::cluster::{InstanceId, NodeId};
use crate::formats::Handles;
use crate::plan::Mode;

/// Appends the steps of a plan.
pub(super) fn write(script: &mut Script, report: &PlanReport<'_>, handles: &Handles) {
    let (cluster, plan) = (report.cluster, report.plan);
    if plan.steps.is_empty() {
        return room(script, report);
    }
    script.comment("Kubernetes moves no pod. A pod that is deleted is made anew by its controller and starts from the");
    script.comment(
        "beginning, under another name as a rule; the scheduler chooses its node, and may choose another than",
    );
    script
        .comment("the plan. Where a controller restarts a gang as a whole, all pods of the gang stop. kubectl delete");
    script.comment("does not ask PodDisruptionBudgets.");
    let closed = nodes_to_close(report);
    if !closed.is_empty() {
        script.part("Keep new pods off the nodes that are only left, and off those that room is made on.");
        closed.iter().for_each(|&node| script.command(&["kubectl", "cordon", &node_word(report, node)]));
    }
    script.part(match report.mode {
        Mode::StopFirst => "All that move; they have their places once all of them have stopped.",
        Mode::Hitless => "One after another: go on when the pod that was made anew runs.",
    });
    let mut moved: BTreeSet<InstanceId> = BTreeSet::new();
    let mut target = None;
    for step in &plan.steps {
        if target != Some(step.to) {
            script.comment(&format!("to node {}:", cluster.node_name(step.to)));
            target = Some(step.to);
        }
        let pod = handles.pod(cluster, step.instance).and_then(|pod| pod.split_once('/'));
        match pod {
            Some((namespace, name)) if moved.insert(step.instance) => {
                // A name behind a stroke is never taken for an option.
                let (namespace, pod) = (format!("--namespace={namespace}"), format!("pod/{name}"));
                script.command(&["kubectl", "delete", &namespace, &pod]);
            }
            Some(_) => script.comment(&format!("once more, by its new name: {}", told(report, step))),
            None => script.comment(&format!("no pod is known of {}", told(report, step))),
        }
    }
    room(script, report);
    if !closed.is_empty() {
        script.part("When all that moved runs again (kubectl get pods -A -o wide), open the nodes to what waits:");
        for &node in &closed {
            script.comment(&line(&["kubectl", "uncordon", &node_word(report, node)]));
        }
    }
}

/// Nodes that are left and not gone to, or that room is made on, if pods may come there now.
fn nodes_to_close(report: &PlanReport<'_>) -> BTreeSet<NodeId> {
    let plan = report.plan;
    let targets: BTreeSet<NodeId> = plan.steps.iter().map(|step| step.to).collect();
    let left = plan.steps.iter().map(|step| step.from).chain(plan.place.iter().map(|&(node, _)| node));
    left.filter(|node| !targets.contains(node) && report.cluster.node(*node).schedulable()).collect()
}

fn node_word(report: &PlanReport<'_>, node: NodeId) -> String {
    format!("node/{}", report.cluster.node_name(node))
}
