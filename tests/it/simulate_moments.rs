//! The policies that choose the moment of a start: who is held back, and who goes first, worked out by hand.

use slotwise::simulate::{Cause, Discipline, Outcome, Scenario, SimOptions, Wait, explain, simulate};

use crate::simulate::{job, scenario, scheduler};

fn play(scenario: &Scenario, word: &str, discipline: Discipline) -> Outcome {
    let options = SimOptions { discipline, ..SimOptions::default() };
    simulate(scenario, scheduler(word), &options, &mut |_| {}).unwrap()
}

fn starts(scenario: &Scenario, word: &str) -> Vec<u64> {
    play(scenario, word, Discipline::Fifo).jobs.iter().map(|job| job.start().unwrap()).collect()
}

/// Nodes of 8 GPUs: all but two hold a job of 8 for long, one a job of 7 for as long and one of 1 for `short_s`, and one is
/// empty. At 10 comes a job of 1 GPU, at 15 one of 8.
fn nearly_full(nodes: u64, short_s: u64) -> Scenario {
    let mut jobs = vec![job(0, 1000, 1, 8); nodes as usize - 2];
    jobs.extend([job(0, 1000, 1, 7), job(0, short_s, 1, 1), job(10, 50, 1, 1), job(15, 50, 1, 8)]);
    scenario(nodes, &jobs)
}

/// When the last two of them start.
fn last_two(nodes: u64, short_s: u64, word: &str) -> [u64; 2] {
    let starts = starts(&nearly_full(nodes, short_s), word);
    [starts[starts.len() - 2], starts[starts.len() - 1]]
}

#[test]
fn at_a_peak_a_job_waits_for_a_place_that_hurts_nobody() {
    // Nine nodes, eight GPUs free of 72: a peak. The job of 1 would break the last empty node, which the job of 8 wants; at
    // 20 there is a place for it beside the 7.
    assert_eq!(last_two(9, 20, "ca-fgd"), [20, 20]);
    assert_eq!(last_two(9, 20, "fgd"), [10, 60]);
    // Its patience has an end, 300 s after it came.
    assert_eq!(last_two(9, 1000, "ca-fgd"), [310, 360]);
    // Eight of 64 are no peak.
    assert_eq!(last_two(8, 1000, "ca-fgd"), [10, 60]);
    // Backfill does not take from it what it could have at once.
    let easy = play(&nearly_full(9, 1000), "ca-fgd", Discipline::Easy);
    assert_eq!([9, 10].map(|position| easy.jobs[position].start()), [Some(310), Some(360)]);
}

#[test]
fn it_is_told_who_is_held_back() {
    let scenario = nearly_full(9, 20);
    let waits = |position| explain(&scenario, scheduler("ca-fgd"), &SimOptions::default(), position).unwrap().waits;
    assert_eq!(waits(9), [Wait { from: 10, to: 20, cause: Cause::Held }]);
    assert_eq!(waits(10), [Wait { from: 15, to: 20, cause: Cause::BehindHeld(9) }]);
}

#[test]
fn of_those_that_wait_the_one_goes_first_that_leaves_the_least_fragment() {
    // The job of 4 would leave 4 GPUs that the jobs of 8 cannot use.
    let jobs = [job(0, 10, 1, 8), job(1, 10, 1, 4), job(2, 10, 1, 8)];
    let scenario = scenario(1, &jobs);
    assert_eq!(starts(&scenario, "fgd"), [0, 10, 20]);
    assert_eq!(starts(&scenario, "mcg"), [0, 20, 10]);
    let told = explain(&scenario, scheduler("mcg"), &SimOptions::default(), 1).unwrap();
    // It is no head that it waits behind: it may start itself, and cannot.
    assert!(told.waits.iter().all(|wait| matches!(wait.cause, Cause::Blocked(_))), "{:?}", told.waits);
    assert_eq!(told.first_try.unwrap().at, 1);
}

#[test]
fn a_job_is_overtaken_sixteen_times_and_then_no_more() {
    let mut jobs = vec![job(0, 10, 1, 8), job(1, 10, 1, 4)];
    jobs.extend(vec![job(2, 10, 1, 8); 40]);
    let queue = scenario(1, &jobs);
    let begun = starts(&queue, "mcg");
    assert_eq!(begun[1], 170);
    assert_eq!(begun[2..].iter().filter(|&&start| start < 170).count(), 16);
    // The same where it is blocked: a gang that wants both nodes, one of which is busy until 100.
    let mut jobs = vec![job(0, 1000, 1, 8), job(1, 10, 2, 8)];
    jobs.extend(vec![job(2, 10, 1, 8); 40]);
    let queue = scenario(2, &jobs);
    let begun = starts(&queue, "mcg");
    assert_eq!(begun[1], 1000);
    assert_eq!(begun[2..].iter().filter(|&&start| start < 1000).count(), 16);
    let last = explain(&queue, scheduler("mcg"), &SimOptions::default(), 41).unwrap();
    assert!(matches!(last.waits[0], Wait { from: 2, to: 1000, cause: Cause::Behind(1, _) }), "{:?}", last.waits);
}
