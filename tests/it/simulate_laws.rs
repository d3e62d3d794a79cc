//! What holds for every trace, scheduler and discipline.

use proptest::prelude::*;
use slotwise::decide::Policy;
use slotwise::fragmentation::PhiStar;
use slotwise::simulate::{Cause, Discipline, Interval, Outcome, Scenario, Scheduler, SimOptions, explain, simulate};
use slotwise::workload::{Demand, TraceJob};

use crate::simulate::{all_schedulers, is_strict, job, scenario, scheduler};

fn jobs(sizes: &'static [u8], n: std::ops::Range<usize>) -> impl Strategy<Value = Vec<TraceJob>> {
    let one = (0u64..120, 0u64..50, 1u32..4, prop::sample::select(sizes), 0u32..3).prop_map(
        |(submit, duration, instances, gpus, priority)| TraceJob { priority, ..job(submit, duration, instances, gpus) },
    );
    prop::collection::vec(one, n)
}

const ANY: &[u8] = &[1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 8];
const FRIENDLY: &[u8] = &[1, 1, 1, 2, 2, 4, 4, 8];

fn play(scenario: &Scenario, who: Scheduler, discipline: Discipline, move_cost_s: u64) -> (Outcome, Vec<Interval>) {
    let mut intervals = Vec::new();
    let options = SimOptions { discipline, move_cost_s, seed: 5 };
    let outcome = simulate(scenario, who, &options, &mut |interval| intervals.push(*interval)).unwrap();
    (outcome, intervals)
}

/// Everything that can be recounted from the times of the jobs alone.
fn recount(scenario: &Scenario, outcome: &Outcome, intervals: &[Interval], move_cost_s: u64) {
    let nodes = scenario.cluster().nodes().len() as u64;
    let mut solver = PhiStar::new(8);
    let mut work = 0;
    for (position, (job, became)) in scenario.jobs().iter().zip(&outcome.jobs).enumerate() {
        let (Some(start), Some(finish)) = (became.start(), became.finish()) else {
            assert!(scenario.is_rejected(position), "job {position} never ran on a cluster that empties");
            continue;
        };
        assert!(start >= job.submit_s);
        assert_eq!(finish, start + job.duration_s + move_cost_s * u64::from(became.pauses), "job {position}");
        work += u128::from(finish - start) * u128::from(job.gpus());
    }
    assert_eq!(outcome.totals.busy, work);
    // Time runs on without a gap, from the first submission to the last finish.
    let mut now = outcome.first_submit;
    for interval in intervals {
        assert!(interval.from == now && interval.to > now);
        now = interval.to;
        let runs = |at: &(&TraceJob, &slotwise::simulate::JobOutcome)| {
            at.1.start().is_some_and(|start| start <= interval.from) && at.1.finish() > Some(interval.from)
        };
        let waits = |at: &(&TraceJob, &slotwise::simulate::JobOutcome)| {
            at.0.submit_s <= interval.from && at.1.start().is_some_and(|start| start > interval.from)
        };
        let all = || scenario.jobs().iter().zip(&outcome.jobs);
        let demand: Demand =
            all().filter(runs).map(|(job, _)| (job.gpus_per_instance, u64::from(job.instances))).collect();
        assert_eq!(interval.busy_gpus, demand.gpus());
        assert_eq!(interval.running, all().filter(runs).count() as u64);
        assert_eq!(interval.waiting, all().filter(waits).count() as u64);
        // No device is promised twice: what runs can be packed into the nodes.
        assert!(solver.fewest_nodes(&demand) <= nodes);
    }
    assert_eq!(now, outcome.end);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn the_books_are_right(
        jobs in jobs(ANY, 0..60),
        nodes in 1u64..6,
        move_cost_s in 0u64..5,
        discipline in prop::sample::select(&Discipline::ALL[..]),
    ) {
        let scenario = scenario(nodes, &jobs);
        for who in all_schedulers() {
            let (outcome, intervals) = play(&scenario, who, discipline, move_cost_s);
            recount(&scenario, &outcome, &intervals, move_cost_s);
            prop_assert_eq!(&play(&scenario, who, discipline, move_cost_s).0, &outcome);
        }
    }

    /// With shares: every job ends, in its time, and at no time is more promised than there is.
    #[test]
    fn shares_hold_no_more_than_there_is(
        mut jobs in jobs(ANY, 1..60),
        milli in prop::collection::vec(prop_oneof![1 => Just(TraceJob::WHOLE), 2 => 1..TraceJob::WHOLE], 60),
        nodes in 1u64..4,
        discipline in prop::sample::select(&Discipline::ALL[..]),
    ) {
        for (job, &gpu_milli) in jobs.iter_mut().zip(&milli).filter(|(job, _)| job.gpus_per_instance == 1) {
            job.gpu_milli = gpu_milli;
        }
        let scenario = scenario(nodes, &jobs);
        for who in all_schedulers().into_iter().filter(|&who| who != Scheduler::SifOpt) {
            let (outcome, intervals) = play(&scenario, who, discipline, 2);
            for (position, (job, became)) in scenario.jobs().iter().zip(&outcome.jobs).enumerate() {
                match (became.start(), became.finish()) {
                    (Some(start), Some(finish)) => {
                        prop_assert_eq!(finish, start + job.duration_s + 2 * u64::from(became.pauses));
                    }
                    _ => prop_assert!(scenario.is_rejected(position), "job {} never ran under {}", position, who),
                }
            }
            for interval in &intervals {
                let runs = scenario.jobs().iter().zip(&outcome.jobs).filter(|(_, became)| {
                    became.start().is_some_and(|start| start <= interval.from) && became.finish() > Some(interval.from)
                });
                let (gpus, milli) = runs.fold((0, 0), |(gpus, milli), (job, _)| {
                    (gpus + job.gpus(), milli + job.gpus() * u64::from(job.gpu_milli))
                });
                prop_assert!(milli <= interval.busy_gpus * u64::from(TraceJob::WHOLE));
                prop_assert!(interval.busy_gpus <= gpus.min(8 * nodes));
            }
        }
    }

    #[test]
    fn nobody_overtakes_in_a_strict_queue(jobs in jobs(ANY, 1..60), nodes in 1u64..6) {
        let scenario = scenario(nodes, &jobs);
        for who in all_schedulers().into_iter().filter(|&who| is_strict(who)) {
            let (outcome, _) = play(&scenario, who, Discipline::Fifo, 3);
            let starts: Vec<u64> = outcome.jobs.iter().filter_map(slotwise::simulate::JobOutcome::start).collect();
            prop_assert!(starts.is_sorted(), "{}: {:?}", who, starts);
        }
    }

    /// Whoever reorders the queue lets nobody starve.
    #[test]
    fn nobody_is_overtaken_more_often_than_agreed(
        jobs in prop_oneof![jobs(ANY, 1..60), jobs(&[1, 8], 40..160)],
        nodes in 1u64..4,
    ) {
        let scenario = scenario(nodes, &jobs);
        for who in all_schedulers().into_iter().filter(|&who| !is_strict(who)) {
            let most = who.policy().and_then(Policy::reordering).unwrap().overtakings as usize;
            let (outcome, _) = play(&scenario, who, Discipline::Fifo, 0);
            let starts: Vec<Option<u64>> = outcome.jobs.iter().map(slotwise::simulate::JobOutcome::start).collect();
            for (position, start) in starts.iter().enumerate().filter(|(_, start)| start.is_some()) {
                let passed = starts[position + 1..].iter().filter(|other| other.is_some() && *other < start).count();
                prop_assert!(passed <= most, "job {}: {} passed it", position, passed);
            }
        }
    }

    /// Nobody is held back for longer than the policy's patience.
    #[test]
    fn patience_has_an_end(mut jobs in jobs(ANY, 1..40), nodes in 1u64..6) {
        jobs.iter_mut().for_each(|job| (job.submit_s, job.duration_s) = (10 * job.submit_s, 50 * job.duration_s));
        let scenario = scenario(nodes, &jobs);
        for who in all_schedulers().into_iter().filter(|who| who.policy().and_then(Policy::patience_s).is_some()) {
            let patience_s = who.policy().and_then(Policy::patience_s).unwrap();
            for (position, job) in scenario.jobs().iter().enumerate() {
                let told = explain(&scenario, who, &SimOptions::default(), position).unwrap();
                for wait in told.waits.iter().filter(|wait| wait.cause == Cause::Held) {
                    prop_assert!(wait.to <= job.submit_s + patience_s, "job {}: {:?}", position, wait);
                }
            }
        }
    }

    #[test]
    fn compass_keeps_theorem_one(jobs in jobs(FRIENDLY, 1..80), nodes in 1u64..8, move_cost_s in 0u64..5) {
        let scenario = scenario(nodes, &jobs);
        let (outcome, intervals) = play(&scenario, scheduler("compass"), Discipline::Fifo, move_cost_s);
        prop_assert!(intervals.iter().all(|interval| interval.wcc == Some(true)));
        prop_assert!(outcome.totals.n_sif_max <= 2);
        // AFR <= 2 / N.
        prop_assert!(outcome.totals.peak_n_sif <= 2 * u128::from(outcome.totals.peak_seconds));
    }

    #[test]
    fn the_oracle_starts_every_job_first(jobs in jobs(ANY, 1..60), nodes in 1u64..6, move_cost_s in 0u64..3) {
        let scenario = scenario(nodes, &jobs);
        let (oracle, _) = play(&scenario, Scheduler::SifOpt, Discipline::Fifo, move_cost_s);
        for who in all_schedulers().into_iter().filter(|&who| is_strict(who)) {
            let (outcome, _) = play(&scenario, who, Discipline::Fifo, move_cost_s);
            for (position, (first, other)) in oracle.jobs.iter().zip(&outcome.jobs).enumerate() {
                prop_assert!(first.start() <= other.start(), "job {} under {}", position, who);
            }
        }
    }

    /// On nodes of one kind, with nobody pinned, the fewest moves let a job start whenever some packing does.
    #[test]
    fn room_that_costs_nothing_is_made_whenever_there_is_any(jobs in jobs(ANY, 1..60), nodes in 1u64..6) {
        let scenario = scenario(nodes, &jobs);
        let (oracle, _) = play(&scenario, Scheduler::SifOpt, Discipline::Fifo, 0);
        let (outcome, _) = play(&scenario, scheduler("make-room"), Discipline::Fifo, 0);
        for (position, (first, other)) in oracle.jobs.iter().zip(&outcome.jobs).enumerate() {
            prop_assert_eq!(first.start(), other.start(), "job {}", position);
        }
    }

    #[test]
    fn moves_for_free_move_no_finish(jobs in jobs(ANY, 1..60), nodes in 1u64..6) {
        let scenario = scenario(nodes, &jobs);
        for who in all_schedulers() {
            let (outcome, _) = play(&scenario, who, Discipline::Fifo, 0);
            for (job, became) in scenario.jobs().iter().zip(&outcome.jobs) {
                if let (Some(start), Some(finish)) = (became.start(), became.finish()) {
                    prop_assert_eq!(finish - start, job.duration_s);
                }
            }
            prop_assert_eq!(outcome.pauses.gpu_seconds_lost, 0);
        }
    }
}
