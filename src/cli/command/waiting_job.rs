//! The job of a queue that `--job` names.

use std::collections::BTreeSet;

use strsim::osa_distance;

use super::super::input::Waiting;
use super::{Failure, Talk};
use crate::cluster::{Cluster, JobId};
use crate::plan::as_one_group;

/// The most names that an error lists.
const LISTED: usize = 3;

/// The job that is named, or the only one. One of several groups that ask for the same GPUs is taken as one group, with the
/// most CPU and memory of each, which the user is told; one of other groups is refused.
///
/// # Errors
/// If there is none of that name, or not one alone, or it has groups that are too unlike.
pub(super) fn waiting_job(
    name: Option<&str>,
    origin: &str,
    waiting: &Waiting,
    cluster: &mut Cluster,
    talk: &Talk,
) -> Result<JobId, Failure> {
    let job = named(name, origin, waiting, cluster)?;
    let Some(groups) = cluster.grouped_job_of(job) else { return Ok(job) };
    let name = cluster.whole_job_name(job).to_owned();
    let Some(together) = as_one_group(cluster, groups).map_err(Failure::input)? else {
        return Err(Failure::input(format_args!(
            "found the job {name:?} of groups that ask for unlike GPUs, for which no moves are planned, expected a job of \
             one group; audit --queue says whether it fits"
        )));
    };
    talk.note(format_args!(
        "{name:?} has several groups; taken as one, with the most CPU and memory of each, and without those that need no \
         GPU: what is enough for that is enough for the job, and less may do"
    ));
    Ok(together)
}

/// The job that is named, or the only one. It may go by what its owner calls it, if no other job is called so.
///
/// # Errors
/// If there is none of that name, or not one alone.
fn named(name: Option<&str>, origin: &str, waiting: &Waiting, cluster: &Cluster) -> Result<JobId, Failure> {
    let Waiting { queue, own_names } = waiting;
    let submitted = || queue.iter().filter(|entry| entry.is_submitted()).map(|entry| entry.job());
    let Some(name) = name else {
        return match (submitted().next(), submitted().count()) {
            (Some(job), 1) => Ok(job),
            (None, _) => {
                Err(Failure::input(format_args!("found no job that {origin} submits, expected one that waits")))
            }
            (_, n) => {
                let listed: Vec<&str> = submitted().take(LISTED).map(|job| cluster.whole_job_name(job)).collect();
                let more = if n > LISTED { ", …" } else { "" };
                Err(Failure::input(format_args!(
                    "found {n} jobs in {origin} and no --job, expected one of them: {}{more}",
                    listed.join(", ")
                )))
            }
        };
    };
    if let Some(job) = submitted().find(|&job| cluster.whole_job_name(job) == name) {
        return Ok(job);
    }
    let called: BTreeSet<&str> = own_names.iter().filter(|(own, _)| own == name).map(|(_, job)| &**job).collect();
    let jobs: Vec<JobId> = submitted().filter(|&job| called.contains(cluster.whole_job_name(job))).collect();
    match &jobs[..] {
        &[job] => Ok(job),
        [] => {
            let names =
                submitted().map(|job| cluster.whole_job_name(job)).chain(own_names.iter().map(|(own, _)| &**own));
            let near = nearest(name, names);
            let such = if near.is_empty() { String::new() } else { format!(", such as {}", near.join(", ")) };
            Err(Failure::input(format_args!("--job: found {name:?}, expected a job that {origin} submits{such}")))
        }
        several => {
            let names: Vec<&str> = several.iter().take(LISTED).map(|&job| cluster.whole_job_name(job)).collect();
            let more = if several.len() > LISTED { ", …" } else { "" };
            Err(Failure::input(format_args!(
                "--job: found {name:?}, which {} jobs of {origin} are called, expected one of {}{more}",
                several.len(),
                names.join(", ")
            )))
        }
    }
}

/// A few of the names that are nearly this one or have it in them, the nearest first.
fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let most = (name.chars().count() / 3).max(1);
    let near = names.filter_map(|other| {
        let distance = osa_distance(name, other);
        (distance <= most || other.contains(name)).then_some((distance, other))
    });
    let near: BTreeSet<(usize, &str)> = near.collect();
    near.into_iter().take(LISTED).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_those_with_few_other_letters_or_more_of_them() {
        let near = |name| nearest(name, ["train-a", "train-b", "eval", "big", "train-a", "x/train-a-long"].into_iter());
        assert_eq!(near("train-a"), ["train-a", "train-b", "x/train-a-long"]);
        assert_eq!(near("trian-b"), ["train-b", "train-a"]);
        assert_eq!(near("bug"), ["big"]);
        assert!(near("other").is_empty());
    }
}
