//! A plan: what moves where, and what is proved of it.

mod curve;

use serde::Serialize;

use super::decision::Mask;
use super::first::devices;
use super::json::append_line;
use super::number::{counted, grouped, signed};
use super::place::Totals;
use super::table::{Align, Rows, facts, printable};
use crate::anchor::State;
use crate::cluster::{Cluster, NodeId, Within};
use crate::plan::{Cost, Curve, Goal, Mode, NoOrder, NoPlan, Plan, PlanOptions, Relaxation};
use curve::{PointOut, curve_points, curve_table};

pub use curve::curve_svg;

/// Moves that the table shows.
const SHOWN: usize = 40;

/// A plan, and the cluster that it is for.
#[derive(Clone, Copy, Debug)]
pub struct PlanReport<'a> {
    /// The cluster before.
    pub cluster: &'a Cluster,
    /// What room was to be made for.
    pub goal: Goal,
    /// How moves are carried out.
    pub mode: Mode,
    /// What was to be the least.
    pub cost: Cost,
    /// The answer.
    pub plan: &'a Plan,
    /// What fewer moves would do, if that was asked.
    pub curve: Option<&'a Curve>,
    /// Totals before.
    pub before: Totals,
    /// Totals afterwards, if there is a plan.
    pub after: Option<Totals>,
}

#[derive(Serialize)]
struct Document<'a> {
    job: Option<&'a str>,
    goal: GoalOut,
    mode: &'static str,
    feasible: Option<bool>,
    moves: Option<u64>,
    optimal: bool,
    lower_bound: Option<u64>,
    moved_gpus: Option<u64>,
    jobs_disturbed: Option<u64>,
    seconds: Option<u64>,
    cost: CostOut,
    proved: Proved,
    steps: Vec<StepOut<'a>>,
    place: Vec<PlaceOut<'a>>,
    choice: Option<ChoiceOut>,
    why: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence: Option<EvidenceOut>,
    relax: Vec<RelaxOut<'a>>,
    n_sif: Change,
    partial: Change,
    phi_star: Change,
    ended_by_time_limit: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    curve: Option<Vec<PointOut>>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum GoalOut {
    Job,
    FreeNodes(u32),
    FreeDomain,
    FreeRack,
    LeastPartial,
}

#[derive(Serialize)]
struct CostOut {
    of: &'static str,
    value: Option<u64>,
}

#[derive(Serialize)]
struct Proved {
    cost: bool,
    second: bool,
    jobs: bool,
}

/// How the plan was chosen among those that are as good.
#[derive(Serialize)]
struct ChoiceOut {
    candidates: u64,
    chosen: u64,
    left_abs: Option<u64>,
    delta_sif_nodes: Option<i64>,
}

/// What proves that no order of moves makes room.
#[derive(Serialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
enum EvidenceOut {
    Stuck { instances: u64, of: u64 },
    Searched { states: u64 },
}

#[derive(Serialize)]
struct StepOut<'a> {
    job: &'a str,
    instance: u32,
    from: &'a str,
    to: &'a str,
    gpus: Mask,
}

#[derive(Serialize)]
struct PlaceOut<'a> {
    node: &'a str,
    gpus: Mask,
}

#[derive(Serialize)]
struct Change {
    before: i64,
    after: Option<i64>,
}

#[derive(Serialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
enum RelaxOut<'a> {
    MoreGpus { gpus: u64 },
    FreeGpus { nodes: Vec<&'a str> },
    Unpin { jobs: Vec<&'a str>, moves: u64 },
    WithoutCpuAndMemory,
    WithoutModelsAndTopology,
    StopFirst,
}

impl<'a> PlanReport<'a> {
    /// An answer to `goal`, with the totals before and after it.
    pub fn new(cluster: &'a Cluster, goal: Goal, options: &PlanOptions, plan: &'a Plan) -> Self {
        let totals = |cluster: &Cluster| Totals::of(&mut State::new(cluster.clone()));
        let (before, after) = (totals(cluster), plan.after.as_ref().map(totals));
        Self { cluster, goal, mode: options.mode, cost: options.cost, plan, curve: None, before, after }
    }
}

impl PlanReport<'_> {
    /// Appends it as one document.
    ///
    /// # Errors
    /// As [`append_line`].
    pub fn json(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        append_line(out, &self.document())
    }

    /// The document.
    pub(super) fn document(&self) -> impl Serialize + '_ {
        let (cluster, plan) = (self.cluster, self.plan);
        let there_is = plan.feasible == Some(true);
        let name = |&node: &NodeId| cluster.node_name(node);
        let relax = plan.relax.iter().map(|relaxation| match relaxation {
            Relaxation::Capacity(gpus) => RelaxOut::MoreGpus { gpus: *gpus },
            Relaxation::FreeGpus(nodes) => RelaxOut::FreeGpus { nodes: nodes.iter().map(name).collect() },
            Relaxation::Unpin { jobs, moves } => {
                RelaxOut::Unpin { jobs: jobs.iter().map(|&job| cluster.job_name(job)).collect(), moves: *moves }
            }
            Relaxation::WithoutCpuAndMemory => RelaxOut::WithoutCpuAndMemory,
            Relaxation::WithoutModelsAndTopology => RelaxOut::WithoutModelsAndTopology,
            Relaxation::StopFirst => RelaxOut::StopFirst,
        });
        let steps = plan.steps.iter().map(|step| StepOut {
            job: cluster.job_name(step.job),
            instance: cluster.position(step.instance),
            from: cluster.node_name(step.from),
            to: cluster.node_name(step.to),
            gpus: Mask(step.gpus),
        });
        Document {
            job: match self.goal {
                Goal::Job(job) => Some(cluster.job_name(job)),
                Goal::FreeNodes(_) | Goal::FreeRegion(_) | Goal::LeastPartial => None,
            },
            goal: match self.goal {
                Goal::Job(_) => GoalOut::Job,
                Goal::FreeNodes(count) => GoalOut::FreeNodes(count),
                Goal::FreeRegion(Within::Domain) => GoalOut::FreeDomain,
                Goal::FreeRegion(Within::Rack) => GoalOut::FreeRack,
                Goal::LeastPartial => GoalOut::LeastPartial,
            },
            mode: self.mode.name(),
            feasible: plan.feasible,
            moves: there_is.then_some(plan.steps.len() as u64),
            optimal: plan.optimal,
            lower_bound: plan.lower_bound,
            moved_gpus: there_is.then(|| plan.moved_gpus()),
            jobs_disturbed: there_is.then(|| plan.jobs_disturbed()),
            seconds: if there_is { plan.seconds(cluster) } else { None },
            cost: CostOut { of: self.cost.name(), value: there_is.then_some(plan.cost) },
            proved: Proved { cost: plan.optimal, second: plan.second_optimal, jobs: plan.jobs_optimal },
            steps: steps.collect(),
            place: plan
                .place
                .iter()
                .map(|&(node, gpus)| PlaceOut { node: cluster.node_name(node), gpus: Mask(gpus) })
                .collect(),
            choice: plan.choice.map(|choice| ChoiceOut {
                candidates: choice.candidates,
                chosen: choice.chosen,
                left_abs: choice.score.map(|score| score.left_abs),
                delta_sif_nodes: choice.score.map(|score| score.delta_sif_nodes),
            }),
            why: plan.why.map(NoPlan::name),
            evidence: plan.no_order.map(|evidence| match evidence {
                NoOrder::Stuck { stuck, movers } => EvidenceOut::Stuck { instances: stuck, of: movers },
                NoOrder::Searched { states } => EvidenceOut::Searched { states },
            }),
            relax: relax.collect(),
            n_sif: Change { before: self.before.n_sif, after: self.after.map(|after| after.n_sif) },
            partial: Change { before: self.before.partial as i64, after: self.after.map(|after| after.partial as i64) },
            phi_star: Change {
                before: self.before.phi_star as i64,
                after: self.after.map(|after| after.phi_star as i64),
            },
            ended_by_time_limit: plan.by_clock || self.curve.is_some_and(|curve| curve.by_clock),
            curve: self.curve.map(curve_points),
        }
    }

    /// For people.
    pub fn table(&self) -> String {
        let mut text = format!("{}\n", self.headline());
        if self.plan.feasible != Some(true) {
            text += &self.plan.no_order.map_or(String::new(), |evidence| format!("- {}\n", proof(evidence)));
            for relaxation in &self.plan.relax {
                text += &format!("- {}\n", self.relaxation(relaxation));
            }
            return text;
        }
        text += "\n";
        text += &facts(&self.facts());
        if !self.plan.steps.is_empty() {
            text += &format!("\n{}", self.steps());
        }
        if !self.plan.place.is_empty() {
            text += &format!("\n{}", self.places());
        }
        text += &format!("\n{}", self.change());
        self.curve.iter().for_each(|curve| text += &format!("\n{}", curve_table(curve)));
        text
    }

    fn room_for(&self) -> String {
        match self.goal {
            Goal::Job(job) => {
                let (instances, gpus) = (self.cluster.job(job).instances(), self.cluster.request_of(job).gpus);
                format!("{} ({} × {})", printable(self.cluster.job_name(job)), grouped(instances), counted(gpus, "GPU"))
            }
            Goal::FreeNodes(1) => "a free node".to_owned(),
            Goal::FreeNodes(count) => format!("{} free nodes", grouped(count)),
            Goal::FreeRegion(Within::Domain) => "a free domain".to_owned(),
            Goal::FreeRegion(Within::Rack) => "a free rack".to_owned(),
            Goal::LeastPartial => "the fewest partial nodes".to_owned(),
        }
    }

    /// What there is, in a sentence.
    pub(super) fn headline(&self) -> String {
        let (plan, goal) = (self.plan, self.room_for());
        let moves = plan.steps.len();
        let s = if moves == 1 { "" } else { "s" };
        match (plan.feasible, plan.why) {
            (Some(true), _) if self.goal == Goal::LeastPartial => {
                let partial = self.after.unwrap_or(self.before).partial;
                let mode = self.mode.name();
                let (lead, nodes) =
                    (if moves == 1 { "leads" } else { "lead" }, if partial == 1 { "node" } else { "nodes" });
                format!("{} move{s} {lead} to {} partial {nodes}, {mode}.", grouped(moves as i64), grouped(partial))
            }
            (Some(true), _) if moves == 0 => format!("Room for {goal} is there: nothing has to move."),
            (Some(true), _) => {
                format!("Room for {goal} takes {} move{s}, {}.", grouped(moves as i64), self.mode.name())
            }
            (Some(false), why) => format!("There is no plan for {goal}: {}.", why.map_or("", explained)),
            (None, _) => {
                let bound = plan
                    .lower_bound
                    .filter(|&bound| bound > 0)
                    .map_or(String::new(), |bound| format!(", and any takes at least {}", self.amount(bound)));
                format!("No plan for {goal} was found; that there is none is not proved{bound}.")
            }
        }
    }

    /// So much of what a plan is to have the least of.
    fn amount(&self, n: u64) -> String {
        let (one, many) = match self.cost {
            Cost::Moves => ("move", "moves"),
            Cost::Gpus => ("moved GPU", "moved GPUs"),
            Cost::Jobs => ("disturbed job", "disturbed jobs"),
            Cost::Seconds => ("second", "seconds"),
        };
        format!("{} {}", grouped(n), if n == 1 { one } else { many })
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let plan = self.plan;
        let (least, then) = match self.cost {
            Cost::Moves => ("moves", "GPUs"),
            Cost::Gpus => ("GPUs", "moves"),
            Cost::Jobs => ("jobs", "moves"),
            Cost::Seconds => ("seconds", "moves"),
        };
        let proved = if plan.optimal {
            let then = if plan.second_optimal { format!(", then the fewest {then}") } else { String::new() };
            let jobs = if plan.jobs_optimal && self.cost != Cost::Jobs { ", and the fewest jobs" } else { "" };
            format!("the fewest {least}{then}{jobs}")
        } else {
            match plan.lower_bound.unwrap_or(0) {
                0 => "nothing".to_owned(),
                bound => format!("no plan has fewer than {} {least}", grouped(bound)),
            }
        };
        let seconds = plan.seconds(self.cluster);
        let mut facts = vec![
            (
                "moves",
                format!("{}, {}", counted(plan.steps.len() as i64, "instance"), counted(plan.moved_gpus(), "GPU")),
            ),
            ("jobs disturbed", grouped(plan.jobs_disturbed())),
            ("seconds", seconds.map_or("not known of every job that moves".to_owned(), grouped)),
            ("proved", proved),
        ];
        if let Some((choice, score)) = plan.choice.and_then(|choice| Some((choice, choice.score?))) {
            let of = if choice.candidates == 1 {
                "no other as good was found".to_owned()
            } else {
                format!("best by score of {} as good", grouped(choice.candidates))
            };
            let left = match score.left_abs {
                0 => "no node leaves Σ".to_owned(),
                1 => "1 node leaves Σ".to_owned(),
                n => format!("{} nodes leave Σ", grouped(n)),
            };
            facts.push(("chosen", format!("{of}: {left}, N·ΔSIF {}", signed(score.delta_sif_nodes))));
        }
        facts
    }

    fn steps(&self) -> String {
        let (left, right) = (|name| (name, Align::Left), |name| (name, Align::Right));
        let columns = [right("MOVE"), left("JOB"), right("INSTANCE"), right("GPUS"), left("FROM"), left("TO")];
        let mut rows = Rows::new(&columns);
        for (number, step) in self.plan.steps.iter().enumerate().take(SHOWN) {
            rows.push([
                (number + 1).to_string(),
                self.cluster.job_name(step.job).to_owned(),
                self.cluster.position(step.instance).to_string(),
                step.gpus.count_ones().to_string(),
                self.cluster.node_name(step.from).to_owned(),
                self.cluster.node_name(step.to).to_owned(),
            ]);
        }
        more(rows, self.plan.steps.len())
    }

    fn places(&self) -> String {
        let place = if self.plan.steps.is_empty() { "PLACE" } else { "THEN" };
        let mut rows = Rows::new(&[(place, Align::Left)]);
        for &(node, gpus) in self.plan.place.iter().take(SHOWN) {
            rows.push([format!("{}{}", self.cluster.node_name(node), devices(gpus))]);
        }
        more(rows, self.plan.place.len())
    }

    fn change(&self) -> String {
        let right = |name| (name, Align::Right);
        let mut rows = Rows::new(&[("", Align::Left), right("BEFORE"), right("AFTER"), right("CHANGE")]);
        let after = self.after.unwrap_or(self.before);
        let mut row = |name: &str, before: i64, after: i64| {
            rows.push([name.to_owned(), grouped(before), grouped(after), signed(after - before)]);
        };
        row("GPUs busy", self.before.busy_gpus as i64, after.busy_gpus as i64);
        row("partial nodes", self.before.partial as i64, after.partial as i64);
        row("Φ*", self.before.phi_star as i64, after.phi_star as i64);
        row("N·SIF", self.before.n_sif, after.n_sif);
        rows.text()
    }

    /// What little more would allow a plan, in a sentence.
    pub(super) fn relaxation(&self, relaxation: &Relaxation) -> String {
        match relaxation {
            Relaxation::Capacity(1) => "at least 1 more free GPU is needed".to_owned(),
            Relaxation::Capacity(gpus) => format!("at least {} more free GPUs are needed", grouped(*gpus)),
            Relaxation::FreeGpus(nodes) => {
                let mut counts: Vec<(NodeId, u32)> = Vec::new();
                for &node in nodes {
                    match counts.last_mut() {
                        Some((last, n)) if *last == node => *n += 1,
                        _ => counts.push((node, 1)),
                    }
                }
                let some = counts.iter().take(5);
                let names: Vec<String> =
                    some.map(|&(node, n)| format!("{n} on {}", printable(self.cluster.node_name(node)))).collect();
                let rest = if counts.len() > 5 { ", …" } else { "" };
                format!("it would do if GPUs became free: {}{rest}", names.join(", "))
            }
            Relaxation::Unpin { jobs, moves } => {
                let names: Vec<String> =
                    jobs.iter().take(5).map(|&job| printable(self.cluster.job_name(job))).collect();
                let rest = if jobs.len() > 5 { ", …" } else { "" };
                let moves = grouped(*moves);
                let (job, their) = if jobs.len() == 1 { ("the job", "its") } else { ("the jobs", "their") };
                format!("it would do to unpin {job} {}{rest} and move {moves} of {their} instances", names.join(", "))
            }
            Relaxation::WithoutCpuAndMemory => "it would do without limits of CPU and memory".to_owned(),
            Relaxation::WithoutModelsAndTopology => "it would do without wishes of model and topology".to_owned(),
            Relaxation::StopFirst => "it would do to stop all movers first".to_owned(),
        }
    }
}

fn more(rows: Rows, all: usize) -> String {
    let more = all.saturating_sub(SHOWN);
    if more > 0 { format!("{}and {} more\n", rows.text(), grouped(more as i64)) } else { rows.text() }
}

/// Why there is no order of moves, in a sentence.
fn proof(evidence: NoOrder) -> String {
    match evidence {
        NoOrder::Stuck { stuck, movers } => format!(
            "{} of {} instances that may move never find a free place, and without them there is no room",
            grouped(stuck),
            grouped(movers)
        ),
        NoOrder::Searched { states: 1 } => "no instance that may move finds a free place".to_owned(),
        NoOrder::Searched { states } => format!("all {} states that moves lead to were looked at", grouped(states)),
    }
}

/// A reason in a few words.
fn explained(why: NoPlan) -> &'static str {
    match why {
        NoPlan::Capacity => "capacity, too few GPUs are free",
        NoPlan::HitlessOrder => "hitless-order, no order of moves finds each target free",
        NoPlan::Pinned => "pinned, what must not move is in the way",
        NoPlan::Constraint => "constraint, CPU, memory, model or topology forbids it",
        NoPlan::Fragmentation => "fragmentation, no packing of what runs leaves room",
        NoPlan::MaxMoves => "max-moves, it takes more moves than allowed",
        NoPlan::MaxJobsDisturbed => "max-jobs-disturbed, it disturbs more jobs than allowed",
    }
}
