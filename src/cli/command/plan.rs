//! `plan`: room for a job that waits, with the fewest moves.

use std::time::{Duration, Instant};

use super::super::args::{Format, PlanArgs, PlanHow};
use super::super::input;
use super::waiting_job::waiting_job;
use super::{Failure, Options, Output, Talk, open_backend, write_all};
use crate::cluster::{Cluster, DisruptionBudget, JobId, Within};
use crate::formats::Snapshot;
use crate::plan::{
    Cost, Effort, Goal, Plan, PlanOptions, STEPS, STEPS_OF_A_POINT, choose, curve, first_without_seconds, pin, plan,
};
use crate::report::{PlanReport, curve_svg, plan_commands};

pub(super) fn run(args: &PlanArgs, options: &Options, talk: &Talk) -> Result<(), Failure> {
    let origin = &args.cluster.cluster;
    let Snapshot { mut cluster, handles, budgets, .. } = input::cluster(origin, args.cluster.keys(), talk)?;
    if args.commands && handles.is_none() {
        let expected = "expected kubernetes:FILE or slurm:FILE, which tell what pods and jobs are called there";
        return Err(Failure::input(format_args!("--commands: found the cluster {origin:?}, {expected}")));
    }
    let goal = match (&args.queue, args.free_nodes) {
        (Some(origin), _) => {
            let waiting = input::waiting(origin, args.cluster.keys(), &mut cluster, talk)?;
            let job = waiting_job(args.job.as_deref(), origin, &waiting, &mut cluster, talk)?;
            note_share(&cluster, job, talk);
            Goal::Job(job)
        }
        (None, Some(count)) => Goal::FreeNodes(count),
        (None, None) if args.target.is_some() => Goal::LeastPartial,
        (None, None) => Goal::FreeRegion(if args.free_domain { Within::Domain } else { Within::Rack }),
    };
    if let Goal::FreeRegion(within) = goal {
        let (option, what, n) = match within {
            Within::Domain => ("--free-domain", "domain", cluster.n_domains()),
            Within::Rack => ("--free-rack", "rack", cluster.n_racks()),
        };
        if n == 0 {
            let text = format_args!("{option}: found no node with a {what}, expected some in the cluster");
            return Err(Failure::input(text));
        }
    }
    if args.curve && goal != Goal::LeastPartial {
        return Err(Failure::input("--curve: found another goal, expected --target sif=0"));
    }
    if args.curve && args.cost != Cost::Moves {
        return Err(Failure::input(format_args!("--curve: found --cost {}, expected moves", args.cost.name())));
    }
    let svg = args.svg.as_deref().map(|path| Output::open(Some(path))).transpose()?;
    let mut settings = settings(&cluster, budgets, &args.how)?;
    settings.cost = args.cost;
    settings.max_moves = args.max_moves;
    settings.max_jobs_disturbed = args.max_jobs_disturbed;
    if args.cost == Cost::Seconds {
        all_seconds_known(&cluster, &settings.movable)?;
    }
    let mut backend = open_backend(&args.evaluate, options, talk)?;
    note_pinned(origin, &cluster, goal, talk);
    let mut answer = plan(&cluster, goal, &settings);
    choose(&cluster, goal, settings.mode, &mut answer, backend.as_mut())?;
    settings.effort = Effort::new(STEPS_OF_A_POINT, deadline(&args.how));
    let curve = (args.curve && answer.after.is_some()).then(|| curve(&cluster, &answer, &settings));
    let by_clock = answer.by_clock || curve.as_ref().is_some_and(|curve| curve.by_clock);
    warn_of_the_clock(by_clock, &args.how, talk);
    let report = PlanReport { curve: curve.as_ref(), ..report(&cluster, goal, &settings, &answer) };
    let mut bytes = Vec::new();
    match (handles.filter(|_| args.commands), options.format) {
        (Some(handles), _) => bytes.extend(plan_commands(&report, &handles).bytes()),
        (None, Format::Json) => report.json(&mut bytes)?,
        (None, Format::Table) => bytes.extend(report.table().bytes()),
    }
    match (svg, &curve) {
        (Some(mut svg), Some(curve)) => {
            svg.write(curve_svg(curve).map_err(|error| Failure::Failed(error.into()))?.as_bytes())?;
            write_all(options, &bytes)?;
            svg.finish()
        }
        // Without a plan there is no curve, and no file.
        _ => write_all(options, &bytes),
    }
}

/// How to plan, by the options that every plan has.
///
/// # Errors
/// If a selector of pins names no running job.
pub(super) fn settings(
    cluster: &Cluster,
    budgets: Vec<DisruptionBudget>,
    how: &PlanHow,
) -> Result<PlanOptions, Failure> {
    let mut settings = PlanOptions::new(cluster, how.mode, Effort::new(STEPS, deadline(how)));
    settings.budgets = budgets;
    for selector in &how.pin {
        if !pin(cluster, selector, &mut settings.movable) {
            let expected = "expected the name of a running job, * and ?";
            return Err(Failure::input(format_args!("--pin: found {selector:?}, {expected}")));
        }
    }
    Ok(settings)
}

/// When the time is up that a search may take.
fn deadline(how: &PlanHow) -> Option<Instant> {
    Instant::now().checked_add(Duration::from_secs(how.time_limit))
}

/// The answer with the totals before and after it.
pub(super) fn report<'a>(cluster: &'a Cluster, goal: Goal, settings: &PlanOptions, answer: &'a Plan) -> PlanReport<'a> {
    PlanReport::new(cluster, goal, settings, answer)
}

/// Says how many running jobs of a dump stay where they are, and what its reader goes by.
fn note_pinned(origin: &str, cluster: &Cluster, goal: Goal, talk: &Talk) {
    let why = if origin.starts_with("kubernetes:") {
        "their pods would not be made again, or a disruption budget of theirs allows none"
    } else if origin.starts_with("slurm:") {
        "they are not requeued or no batch jobs, or are bound to a reservation or to nodes by name"
    } else {
        return;
    };
    let running = || cluster.job_ids().filter(|&job| cluster.job(job).runs());
    let pinned = running().filter(|&job| !cluster.job(job).migratable()).count();
    if goal == Goal::LeastPartial && pinned > 0 {
        talk.note(format_args!("{pinned} of {} running jobs stay where they are: {why}", running().count()));
    }
}

/// Says that a plan is for whole GPUs where the job asks for a share of one.
pub(super) fn note_share(cluster: &Cluster, job: JobId, talk: &Talk) {
    if cluster.request_of(job).is_share() {
        talk.note("shares of a GPU are not planned for: room is made for whole ones");
    }
}

/// Says that the clock ended the search.
pub(super) fn warn_of_the_clock(by_clock: bool, how: &PlanHow, talk: &Talk) {
    if by_clock {
        talk.warn(format_args!("the time limit of {} s ended the search: another run may find more", how.time_limit));
    }
}

/// Refuses seconds where a job that may be moved says nothing of them.
fn all_seconds_known(cluster: &Cluster, movable: &[bool]) -> Result<(), Failure> {
    match first_without_seconds(cluster, movable) {
        None => Ok(()),
        Some(job) => Err(Failure::input(format_args!(
            "--cost seconds: found neither move_cost_s nor remaining_s on the running job {:?}, expected one of them on \
             every job that may be moved",
            cluster.job_name(job)
        ))),
    }
}
