//! What has to be settled before a plan, whoever asks for it.

use super::question::move_seconds;
use crate::cluster::{Cluster, JobId};

/// Steps of a search, as many as it takes in practice: some tens of seconds, so that it is seldom the clock that ends it.
pub const STEPS: u64 = 6_000_000;

/// Steps for each point of a curve but the last, of which there may be fifty.
pub const STEPS_OF_A_POINT: u64 = 600_000;

/// The running jobs that a selector names, by their numbers: a name, in which `*` is any text and `?` any one byte. All
/// groups of a job go by its name too.
pub fn selected<'a>(cluster: &'a Cluster, selector: &'a str) -> impl Iterator<Item = JobId> + use<'a> {
    let fits = move |name: &str| matches_selector(selector.as_bytes(), name.as_bytes());
    let running = cluster.job_ids().filter(|&job| cluster.job(job).runs());
    running.filter(move |&job| fits(cluster.job_name(job)) || fits(cluster.whole_job_name(job)))
}

/// Pins the running jobs that a selector names, as [`selected`] has it. False if there is none.
pub fn pin(cluster: &Cluster, selector: &str, movable: &mut [bool]) -> bool {
    let mut found = false;
    for job in selected(cluster, selector) {
        movable[job.index()] = false;
        found = true;
    }
    found
}

/// The first running job that may be moved and of which nobody knows what a move costs: then seconds cannot be compared.
pub fn first_without_seconds(cluster: &Cluster, movable: &[bool]) -> Option<JobId> {
    let mut movers = cluster.job_ids().filter(|&job| cluster.job(job).runs() && movable[job.index()]);
    movers.find(|&job| move_seconds(cluster, job).is_none())
}

fn matches_selector(mut selector: &[u8], mut name: &[u8]) -> bool {
    // Where to go on with the last star taking one byte more.
    let mut again: Option<(&[u8], &[u8])> = None;
    loop {
        match (selector, name) {
            ([], []) => return true,
            ([b'*', rest @ ..], _) => {
                again = Some((rest, name));
                selector = rest;
            }
            ([one, rest @ ..], [byte, left @ ..]) if *one == b'?' || one == byte => (selector, name) = (rest, left),
            _ => match again {
                Some((rest, [_, left @ ..])) => {
                    again = Some((rest, left));
                    (selector, name) = (rest, left);
                }
                _ => return false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_names_with_stars() {
        let matches = |selector: &str, name: &str| matches_selector(selector.as_bytes(), name.as_bytes());
        for (selector, name) in [("a", "a"), ("*", ""), ("*", "abc"), ("a*c", "abbc"), ("*b*", "abc"), ("a?c", "abc")] {
            assert!(matches(selector, name), "{selector} {name}");
        }
        for (selector, name) in [("a", "ab"), ("", "a"), ("a*c", "abcd"), ("a?", "a"), ("*x*", "abc"), ("aa*a", "aa")] {
            assert!(!matches(selector, name), "{selector} {name}");
        }
    }
}
