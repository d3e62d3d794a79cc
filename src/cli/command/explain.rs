//! `explain`: why a job waits, where it nearly fits, and the plan that would let it start.

use super::super::args::{ExplainArgs, Format};
use super::super::input;
use super::plan::{note_share, report, settings, warn_of_the_clock};
use super::waiting_job::waiting_job;
use super::{Failure, Options, Talk, open_backend, write_all};
use crate::anchor::State;
use crate::decide::obstacles;
use crate::formats::Snapshot;
use crate::plan::{Goal, choose, plan};
use crate::report::ObstaclesReport;

pub(super) fn run(args: &ExplainArgs, options: &Options, talk: &Talk) -> Result<(), Failure> {
    let Snapshot { mut cluster, budgets, .. } = input::cluster(&args.cluster.cluster, args.cluster.keys(), talk)?;
    let waiting = input::waiting(&args.queue, args.cluster.keys(), &mut cluster, talk)?;
    let job = waiting_job(args.job.as_deref(), &args.queue, &waiting, &mut cluster, talk)?;
    note_share(&cluster, job, talk);
    let (goal, settings) = (Goal::Job(job), settings(&cluster, budgets, &args.how)?);
    let state = State::new(cluster);
    let obstacles = obstacles(&state, job);
    let mut backend = open_backend(&args.evaluate, options, talk)?;
    let mut answer = plan(state.cluster(), goal, &settings);
    choose(state.cluster(), goal, settings.mode, &mut answer, backend.as_mut())?;
    warn_of_the_clock(answer.by_clock, &args.how, talk);
    let plan = report(state.cluster(), goal, &settings, &answer);
    let report = ObstaclesReport { state: &state, job, obstacles: &obstacles, plan };
    let mut bytes = Vec::new();
    match options.format {
        Format::Json => report.json(&mut bytes)?,
        Format::Table => bytes.extend(report.table().bytes()),
    }
    write_all(options, &bytes)
}
