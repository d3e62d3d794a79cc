//! What is kept of a run, against the totals of the run and the times of its jobs.

use std::collections::BTreeMap;

use proptest::prelude::*;
use slotwise::cluster::{ClusterBuilder, JobSpec, NodeId, NodeSpec, Seat};
use slotwise::simulate::{
    Discipline, Gauge, Keep, Outcome, Recorder, Scenario, Scheduler, SimOptions, Summary, minutes, simulate_observed,
};
use slotwise::workload::TraceJob;

use crate::simulate::{all_schedulers, job, scenario, scheduler};

const ALL: Keep = Keep { intervals: true, overview: true, allocations: true };

fn record(scenario: &Scenario, who: Scheduler, discipline: Discipline) -> (Outcome, Recorder) {
    let mut recorder = Recorder::new(scenario, ALL);
    let options = SimOptions { discipline, move_cost_s: 3, seed: 5 };
    let outcome = simulate_observed(scenario, who, &options, &mut recorder).unwrap();
    (outcome, recorder)
}

/// Every second of every device belongs to one job at most, but for the time before a job was moved: only where nothing
/// moves is the last allocation that of the whole time.
fn no_device_is_held_twice(scenario: &Scenario, outcome: &Outcome, recorder: &Recorder) {
    let allocations = recorder.allocations.as_ref().unwrap();
    let mut held: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
    for (position, (job, became)) in scenario.jobs().iter().zip(&outcome.jobs).enumerate() {
        let ranges = allocations.held(position);
        let devices: Vec<u64> = ranges.iter().cloned().flatten().collect();
        let runs = became.start().is_some() && outcome.scheduler != Scheduler::SifOpt;
        assert_eq!(devices.len() as u64, if runs { job.gpus() } else { 0 });
        assert!(devices.is_sorted() && ranges.windows(2).all(|pair| pair[0].end() + 1 < *pair[1].start()));
        for device in devices {
            assert!(device < scenario.cluster().gpus());
            held.entry(device).or_default().push((became.start().unwrap(), became.finish().unwrap_or(u64::MAX)));
        }
    }
    if outcome.pauses.instances == 0 {
        for times in held.values_mut() {
            times.sort_unstable();
            assert!(times.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{times:?}");
        }
    }
}

/// Everything that is kept adds up to the totals of the run.
fn sums_are_equal(scenario: &Scenario, outcome: &Outcome, recorder: &Recorder) {
    let totals = &outcome.totals;
    let overview = recorder.overview.as_ref().unwrap();
    let buckets = overview.curve.buckets();
    let sum = |gauge| buckets.iter().map(|bucket| bucket.extent(gauge).sum).sum::<u128>();
    let max = |gauge| buckets.iter().map(|bucket| bucket.extent(gauge).max).max().unwrap_or(0);
    let expected = [totals.n_sif, totals.busy, totals.empty, totals.waiting];
    assert_eq!(Gauge::ALL.map(sum), expected);
    assert_eq!((max(Gauge::NSif), max(Gauge::Waiting)), (totals.n_sif_max, totals.waiting_max));
    assert_eq!(buckets.iter().map(|bucket| bucket.seconds).sum::<u64>(), totals.seconds);

    let bins = overview.load.bins();
    assert_eq!(bins.iter().map(|bin| bin.seconds).sum::<u64>(), totals.seconds);
    assert_eq!(bins.iter().map(|bin| bin.allocated_milli).sum::<u128>(), totals.busy * 1000);
    assert_eq!(bins.iter().map(|bin| bin.n_sif).sum::<u128>(), totals.n_sif);
    // Nobody can hold more than has arrived.
    let gpus = u128::from(scenario.cluster().gpus());
    for (percent, bin) in bins.iter().enumerate() {
        assert!(
            bin.allocated_milli * 100 < (percent as u128 + 1) * gpus * 1000 * u128::from(bin.seconds)
                || bin.seconds == 0
        );
    }

    let by_minutes: Vec<_> = minutes(&recorder.intervals).collect();
    assert_eq!(by_minutes.iter().map(|minute| minute.busy_gpus).sum::<u128>(), totals.busy);
    assert_eq!(by_minutes.iter().map(|minute| minute.n_sif).sum::<u128>(), totals.n_sif);
    assert_eq!(by_minutes.iter().map(|minute| minute.seconds).sum::<u64>(), totals.seconds);

    let peak = || recorder.intervals.iter().filter(|interval| interval.waiting > 0);
    assert_eq!(totals.peak_busy_max, peak().map(|interval| interval.busy_gpus).max().unwrap_or(0));
    for interval in &recorder.intervals {
        let waits = |at: &(&TraceJob, _)| {
            let became: &slotwise::simulate::JobOutcome = at.1;
            at.0.submit_s <= interval.from && became.start().is_some_and(|start| start > interval.from)
        };
        let waiting = scenario.jobs().iter().zip(&outcome.jobs).filter(waits).map(|(job, _)| job.gpus()).sum::<u64>();
        assert_eq!(interval.waiting_milli, waiting * 1000);
        assert_eq!(interval.running_milli, interval.busy_gpus * 1000);
        // Every head here asks for GPUs: it lacks them, or they are there in pieces.
        assert_eq!(interval.lacking ^ interval.fragmented, interval.waiting > 0);
    }

    let most = recorder.intervals.iter().map(|interval| interval.busy_gpus).max().unwrap_or(0);
    assert!(overview.end.is_none());
    if outcome.scheduler == Scheduler::SifOpt {
        assert!(overview.busiest.is_none() && overview.peak_demand.is_none() && overview.most_fragmented.is_none());
    } else if let Some(busiest) = &overview.busiest {
        let at = |time| recorder.intervals.iter().find(|interval| interval.from == time).unwrap().busy_gpus;
        let busy = |busy: &[u8]| busy.iter().map(|&busy| u64::from(busy)).sum::<u64>();
        assert_eq!((busy(&busiest.busy), at(busiest.at)), (most, most));
        let most = overview.most_fragmented.as_ref();
        assert_eq!(most.map_or(0, |&(n_sif, _)| n_sif), totals.n_sif_max);
        if let Some((n_sif, occupancy)) = most {
            let first = recorder.intervals.iter().find(|interval| interval.n_sif == *n_sif).unwrap();
            assert_eq!((occupancy.at, busy(&occupancy.busy)), (first.from, first.busy_gpus));
            let partial = occupancy.busy.iter().filter(|&&busy| busy % 8 > 0).count() as u64;
            assert!(partial >= *n_sif);
        }
        let peak = overview.peak_demand.as_ref().unwrap();
        assert_eq!(busy(&peak.busy), at(peak.at));
        // The jobs that would run at that second if all ran at once are as many as ever.
        let demand = |second: u64| {
            let runs = |job: &&TraceJob| (job.submit_s..job.submit_s + job.duration_s).contains(&second);
            let accepted = scenario.jobs().iter().enumerate().filter(|&(position, _)| !scenario.is_rejected(position));
            accepted.map(|(_, job)| job).filter(runs).map(TraceJob::gpus).sum::<u64>()
        };
        let end = recorder.intervals.iter().find(|interval| interval.from == peak.at).unwrap().to;
        let most = (0..1200).map(demand).max().unwrap();
        assert!((peak.at..end).any(|second| demand(second) == most));
    } else {
        assert_eq!(most, 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn what_is_kept_is_what_happened(
        jobs in prop::collection::vec((0u64..900, 0u64..300, 1u32..4, 1u8..9), 0..60),
        nodes in 1u64..6,
        discipline in prop::sample::select(&Discipline::ALL[..]),
    ) {
        let jobs: Vec<TraceJob> = jobs.into_iter().map(|(s, d, n, g)| job(s, d, n, g)).collect();
        let scenario = scenario(nodes, &jobs);
        for who in all_schedulers() {
            let (outcome, recorder) = record(&scenario, who, discipline);
            sums_are_equal(&scenario, &outcome, &recorder);
            no_device_is_held_twice(&scenario, &outcome, &recorder);
        }
    }
}

#[test]
fn what_stays_is_there_at_the_end() {
    let jobs = [job(0, 10, 1, 8), job(2, TraceJob::FOREVER, 1, 3), job(20, TraceJob::FOREVER, 2, 8)];
    let scenario = scenario(3, &jobs);
    let (_, recorder) = record(&scenario, scheduler("best-fit"), Discipline::Fifo);
    let overview = recorder.overview.unwrap();
    let occupancy = |busy: &[u8], at| slotwise::simulate::Occupancy { at, busy: busy.to_vec() };
    // Nothing leaves after 20, so time ends there, and the end is the busiest.
    assert_eq!(overview.end, Some(occupancy(&[8, 3, 8], 20)));
    assert_eq!(overview.busiest, overview.end);
    assert_eq!(overview.peak_demand, overview.end);
    let allocations = recorder.allocations.unwrap();
    let held: Vec<_> = (0..3).map(|position| allocations.held(position).to_vec()).collect();
    assert_eq!(held, [vec![0..=7], vec![8..=10], vec![0..=7, 16..=23]]);
}

#[test]
fn shares_are_counted_as_what_they_are() {
    let share =
        |submit_s, duration_s, instances, gpu_milli| TraceJob { gpu_milli, ..job(submit_s, duration_s, instances, 1) };
    // Two devices: 800 and 400 thousandths, then 1,000 of them; a whole GPU waits from 5 to 20.
    let jobs = [share(0, 20, 3, 400), share(2, 10, 1, 600), job(5, 4, 1, 1), share(30, 1, 1, 100)];
    let mut builder = ClusterBuilder::new();
    builder.add_node(&NodeSpec { name: "n", gpus: 2, ..NodeSpec::default() }).unwrap();
    let named = jobs.into_iter().enumerate().map(|(i, job)| TraceJob { name: format!("j{i}"), ..job });
    let scenario = Scenario::new(builder.finish().unwrap(), named.collect()).unwrap();
    let (outcome, recorder) = record(&scenario, scheduler("best-fit"), Discipline::Fifo);
    let starts: Vec<_> = outcome.jobs.iter().map(|job| job.start().unwrap()).collect();
    assert_eq!(starts, [0, 2, 20, 30]);
    let milli: Vec<_> =
        recorder.intervals.iter().map(|one| (one.from, one.running_milli, one.waiting_milli, one.busy_gpus)).collect();
    let expected = [
        (0, 1200, 0, 2),
        (2, 1800, 0, 2),
        (5, 1800, 1000, 2),
        (12, 1200, 1000, 2),
        (20, 1000, 0, 1),
        (24, 0, 0, 0),
        (30, 100, 0, 1),
    ];
    assert_eq!(milli, expected);
    // From 12 to 20 rests of 200 and 600 are left, and 800 are less than a GPU.
    assert_eq!((outcome.totals.peak_seconds, outcome.totals.lacking_seconds), (15, 15));
    let overview = recorder.overview.unwrap();
    let bins = overview.load.bins().iter().enumerate().filter(|(_, bin)| bin.seconds > 0);
    let bins: Vec<_> = bins.map(|(percent, bin)| (percent, bin.seconds, bin.allocated_milli)).collect();
    let by_load =
        [(0, 6, 0), (5, 1, 100), (50, 4, 4000), (60, 2, 2400), (90, 3, 5400), (110, 8, 9600), (140, 7, 12_600)];
    assert_eq!(bins, by_load);
    // The most is asked for from 5 to 9, while the third job would run.
    assert_eq!(overview.peak_demand.unwrap().at, 5);
    // Two of the three shares lie on one device: it is there once.
    let held: Vec<_> = (0..4).map(|position| recorder.allocations.as_ref().unwrap().held(position).to_vec()).collect();
    assert_eq!(held, [vec![0..=1], vec![1..=1], vec![0..=0], vec![0..=0]]);
    // 1.2 GPUs are two, a tenth is one.
    let classes = Summary::of(&scenario, &outcome).classes.map(|class| class.jct.n);
    assert_eq!(classes, [0, 3, 1, 0, 0]);
    // Rests of 400, 400 and 200 are a whole GPU, in pieces: that is fragmentation.
    let pieces = [share(0, 9, 2, 600), job(1, 5, 1, 1)].into_iter().enumerate();
    let pieces = pieces.map(|(i, job)| TraceJob { name: format!("j{i}"), ..job }).collect();
    let mut builder = ClusterBuilder::new();
    builder.add_node(&NodeSpec { name: "n", gpus: 2, ..NodeSpec::default() }).unwrap();
    builder.add_node(&NodeSpec { name: "m", gpus: 1, ..NodeSpec::default() }).unwrap();
    let running = JobSpec { name: "r", gpus: 1, gpu_milli: 800, ..JobSpec::default() };
    builder.add_running(&running, &[Seat { node: NodeId(1), gpus: None }]).unwrap();
    let scenario = Scenario::new(builder.finish().unwrap(), pieces).unwrap();
    let (outcome, _) = record(&scenario, scheduler("best-fit"), Discipline::Fifo);
    assert_eq!((outcome.totals.fragmented_seconds, outcome.totals.lacking_seconds), (8, 0));
}
