//! What has to be settled before a plan, whoever asks for it.

use super::question::move_seconds;
use crate::cluster::{Cluster, JobId};

/// Steps of a search, as many as it takes in practice: some tens of seconds, so that it is seldom the clock that ends it.
pub const STEPS: u64 = 6_000_000;

/// Pins the running jobs that a selector names: a name, in which `*` is any text and `?` any one byte. The name of a job of
/// several groups names all of them. False if there is none.
pub fn pin(cluster: &Cluster, selector: &str, movable: &mut [bool]) -> bool {
    let mut found = false;
    for job in cluster.job_ids().filter(|&job| cluster.job(job).runs()) {
        let names = [cluster.job_name(job), cluster.whole_job_name(job)];
        if names.iter().any(|name| matches_selector(selector.as_bytes(), name.as_bytes())) {
            movable[job.index()] = false;
            found = true;
        }
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
