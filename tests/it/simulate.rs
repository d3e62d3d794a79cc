//! The simulator: schedules worked out by hand, one rule each, and a queue with a closed form.

use slotwise::anchor::Trigger;
use slotwise::cluster::{ClusterBuilder, JobSpec, JobTimes, NodeSpec, Seat};
use slotwise::decide::Policy;
use slotwise::simulate::{Discipline, Interval, Outcome, Scenario, Scheduler, SimOptions, Summary, simulate};
use slotwise::workload::TraceJob;

pub(crate) fn job(submit_s: u64, duration_s: u64, instances: u32, gpus_per_instance: u8) -> TraceJob {
    TraceJob { submit_s, duration_s, instances, gpus_per_instance, ..TraceJob::default() }
}

/// The jobs on nodes of 8 GPUs, named by their place in the list.
pub(crate) fn scenario(nodes: u64, jobs: &[TraceJob]) -> Scenario {
    let named = jobs.iter().enumerate().map(|(i, job)| TraceJob { name: format!("j{i}"), ..job.clone() });
    Scenario::homogeneous(nodes, 8, named.collect()).unwrap()
}

pub(crate) fn scheduler(word: &str) -> Scheduler {
    Scheduler::parse(word, (Trigger::EveryEvent, None)).unwrap()
}

fn play(nodes: u64, jobs: &[TraceJob], word: &str, discipline: Discipline, move_cost_s: u64) -> Outcome {
    let options = SimOptions { discipline, move_cost_s, seed: 1 };
    simulate(&scenario(nodes, jobs), scheduler(word), &options, &mut |_| {}).unwrap()
}

fn starts(outcome: &Outcome) -> Vec<u64> {
    outcome.jobs.iter().map(|job| job.start().unwrap()).collect()
}

fn finishes(outcome: &Outcome) -> Vec<u64> {
    outcome.jobs.iter().map(|job| job.finish().unwrap()).collect()
}

/// All schedulers, compaction triggers included.
pub(crate) fn all_schedulers() -> Vec<Scheduler> {
    let triggered = ["compass:when-blocked", "compass:never", "compass-paper:when-blocked", "compass-paper:never"];
    Scheduler::names().chain(triggered).map(scheduler).collect()
}

/// Those under whom nobody passes the head of a strict queue: one reorders it.
pub(crate) fn is_strict(who: Scheduler) -> bool {
    who.policy().and_then(Policy::reordering).is_none()
}

fn strict_names() -> impl Iterator<Item = &'static str> {
    Scheduler::names().filter(|word| is_strict(scheduler(word)))
}

#[test]
fn a_departure_makes_room_for_an_arrival_of_the_same_instant() {
    for word in Scheduler::names() {
        let outcome = play(1, &[job(0, 10, 1, 8), job(10, 5, 1, 8)], word, Discipline::Fifo, 8);
        assert_eq!(starts(&outcome), [0, 10], "{word}");
        assert_eq!((outcome.first_submit, outcome.end), (0, 15));
        assert_eq!(outcome.totals.peak_seconds, 0, "{word}");
        assert_eq!(outcome.totals.busy, 15 * 8);
    }
}

#[test]
fn nobody_overtakes_the_head_but_by_discipline() {
    let jobs = [
        job(0, 10, 1, 5),
        job(1, 10, 1, 8),
        job(2, 1, 1, 1),
        job(2, 30, 1, 3),
        TraceJob { priority: 7, ..job(2, 20, 1, 3) },
    ];
    let by = |discipline| starts(&play(1, &jobs, "best-fit", discipline, 0));
    assert_eq!(by(Discipline::Fifo), [0, 10, 20, 20, 20]);
    // The 8 GPUs are promised for 10, nothing is left over then: only the job of 1 s is out of the way.
    assert_eq!(by(Discipline::Easy), [0, 10, 2, 20, 20]);
    // At 2 the shortest comes first and fits, and so does nobody else while the next shortest waits for 8.
    assert_eq!(by(Discipline::Sjf), [0, 10, 2, 20, 20]);
    // At 2 the most important one takes the 3 free GPUs; the others come in their order.
    assert_eq!(by(Discipline::Priority), [0, 22, 32, 32, 2]);
}

#[test]
fn backfill_may_take_what_the_head_leaves_over() {
    // The head wants 6 of 8 GPUs at 10; 2 are left over then, for however long.
    let jobs = [job(0, 10, 1, 4), job(1, 10, 1, 6), job(2, 100, 1, 2), job(2, 100, 1, 1), job(3, 7, 1, 2)];
    let outcome = play(1, &jobs, "best-fit", Discipline::Easy, 0);
    assert_eq!(starts(&outcome), [0, 10, 2, 20, 3]);
}

#[test]
fn a_job_of_no_duration_departs_in_the_instant_in_which_it_starts() {
    for word in Scheduler::names() {
        let outcome = play(1, &[job(3, 0, 1, 8), job(3, 5, 1, 8), job(3, 0, 1, 1)], word, Discipline::Fifo, 8);
        assert_eq!(starts(&outcome), [3, 3, 8], "{word}");
        assert_eq!(finishes(&outcome), [3, 8, 8], "{word}");
        assert_eq!(outcome.totals.peak_seconds, 5);
    }
}

#[test]
fn a_gang_waits_for_all_its_nodes() {
    for word in strict_names() {
        let outcome = play(2, &[job(0, 10, 1, 8), job(1, 5, 2, 8), job(2, 1, 1, 8)], word, Discipline::Fifo, 8);
        assert_eq!(starts(&outcome), [0, 10, 15], "{word}");
        let totals = outcome.totals;
        assert_eq!((totals.peak_seconds, totals.peak_busy), (14, 9 * 8 + 5 * 16), "{word}");
        assert_eq!((totals.fragmented_seconds, totals.n_sif_max), (0, 0), "{word}");
        // One node for a second at each end.
        assert_eq!(totals.empty, 10 + 1, "{word}");
        assert_eq!(outcome.events, 9);
    }
}

#[test]
fn waiting_beside_enough_free_gpus_is_fragmentation() {
    let jobs = [job(0, 10, 1, 4), job(0, 10, 1, 4), job(0, 10, 1, 8)];
    let outcome = play(2, &jobs, "worst-fit", Discipline::Fifo, 8);
    assert_eq!(starts(&outcome), [0, 0, 10]);
    let totals = outcome.totals;
    assert_eq!((totals.peak_seconds, totals.fragmented_seconds), (10, 10));
    assert_eq!((totals.peak_n_sif, totals.n_sif_max, totals.peak_busy), (20, 2, 80));
    for word in ["compass", "best-fit", "sif-opt"] {
        assert_eq!(starts(&play(2, &jobs, word, Discipline::Fifo, 8)), [0, 0, 0], "{word}");
    }
}

#[test]
fn a_job_pauses_once_an_event_however_many_of_its_instances_move() {
    // Two single GPUs become the fillers of a slot that a job of 6 opens on the other node.
    let jobs = [job(0, 100, 2, 1), job(10, 50, 1, 6)];
    let outcome = play(2, &jobs, "compass", Discipline::Fifo, 8);
    assert_eq!(finishes(&outcome), [108, 60]);
    let pauses = outcome.pauses;
    assert_eq!((pauses.events, pauses.instances, pauses.gpus, pauses.pauses), (1, 2, 2, 1));
    assert_eq!(pauses.gpu_seconds_lost, 16);
    assert_eq!((outcome.jobs[0].pauses, outcome.jobs[1].pauses), (1, 0));
    let free = play(2, &jobs, "compass", Discipline::Fifo, 0);
    assert_eq!(finishes(&free), [100, 60]);
    assert_eq!(free.pauses.instances, 2);
    // What is moved in the instant in which it ends is not charged.
    let outcome = play(2, &[job(10, 0, 2, 1), job(10, 50, 1, 6)], "compass", Discipline::Fifo, 8);
    assert_eq!(finishes(&outcome), [10, 60]);
    assert_eq!((outcome.pauses.instances, outcome.pauses.pauses), (2, 0));
}

#[test]
fn rounds_repack_what_runs_and_charge_for_it() {
    // Three nodes are half full when the 8 arrives; one round of 60 s later two of them hold all. Those that move pause.
    let jobs = [
        job(0, 500, 1, 4),
        job(0, 10, 1, 4),
        job(0, 500, 1, 4),
        job(0, 10, 1, 4),
        job(0, 500, 1, 4),
        job(0, 10, 1, 4),
        job(20, 100, 1, 8),
    ];
    for word in ["fft:60", "drr:60"] {
        let outcome = play(3, &jobs, word, Discipline::Fifo, 8);
        assert_eq!(starts(&outcome), [0, 0, 0, 0, 0, 0, 60], "{word}");
        assert_eq!((outcome.pauses.events, outcome.pauses.instances, outcome.pauses.gpu_seconds_lost), (1, 1, 32));
        let mut ends = finishes(&outcome);
        ends.sort_unstable();
        assert_eq!(ends, [10, 10, 10, 160, 500, 500, 508], "{word}");
    }
    // Best-fit alone lets it wait, and so do rounds that are longer.
    for word in ["best-fit", "fft:600", "drr:600"] {
        assert_eq!(starts(&play(3, &jobs, word, Discipline::Fifo, 8))[6], 500, "{word}");
    }
}

#[test]
fn a_wait_is_explained_from_its_beginning_to_its_end() {
    use slotwise::decide::{OfferKind, Why};
    use slotwise::simulate::{Cause, explain};
    let jobs = [job(0, 30, 1, 5), job(0, 10, 1, 4), job(2, 10, 1, 6), job(4, 10, 1, 2), job(5, 1, 1, 1)];
    let scenario = scenario(2, &jobs);
    let ask = |word: &str, discipline, position| {
        let options = SimOptions { discipline, move_cost_s: 8, seed: 1 };
        let told = explain(&scenario, scheduler(word), &options, position).unwrap();
        let outcome = simulate(&scenario, scheduler(word), &options, &mut |_| {}).unwrap();
        assert_eq!(told.outcome, outcome.jobs[position], "{word}");
        // Without a gap, from the submission to the start.
        let mut now = jobs[position].submit_s;
        for wait in &told.waits {
            assert!(wait.from == now && wait.to > now);
            now = wait.to;
        }
        assert_eq!(told.outcome.start(), Some(now));
        told
    };
    let waits = |told: &slotwise::simulate::Explanation| -> Vec<(u64, u64, Cause)> {
        told.waits.iter().map(|wait| (wait.from, wait.to, wait.cause)).collect()
    };
    // 3 and 4 GPUs are free of two nodes: enough for the 6, on no node. The 2 would fit, and may not overtake.
    let told = ask("best-fit", Discipline::Fifo, 2);
    assert_eq!(waits(&told), [(2, 10, Cause::Blocked(Why::Fragmentation))]);
    let first = told.first_try.unwrap();
    assert_eq!((first.at, first.free_gpus), (2, 7));
    let seen: Vec<_> = first.offers.iter().map(|offer| (offer.kind, offer.free, offer.nodes, offer.fit)).collect();
    assert_eq!(seen, [(OfferKind::Slotted, 3, 1, 0), (OfferKind::Slotted, 4, 1, 0)]);
    let told = ask("best-fit", Discipline::Fifo, 3);
    assert_eq!(waits(&told), [(4, 10, Cause::Behind(2, Why::Fragmentation))]);
    let first = told.first_try.unwrap();
    let seen: Vec<_> =
        first.offers.iter().map(|offer| (offer.free, offer.fit, offer.allowed, offer.first.len())).collect();
    assert_eq!((first.at, seen), (10, vec![(2, 1, 1, 1), (3, 1, 1, 1)]));
    // With backfill the 1 ends before the 6 could start; the 2 has what the 6 is promised.
    assert_eq!(waits(&ask("best-fit", Discipline::Easy, 4)), []);
    // COMPASS gives a 1 no unprofiled room of the node of the 4: it sees that it fits, and is not allowed.
    let jobs = [job(0, 30, 1, 4), job(0, 30, 1, 8), job(1, 1, 1, 1)];
    let scenario = crate::simulate::scenario(2, &jobs);
    let told = explain(&scenario, scheduler("compass"), &SimOptions::default(), 2).unwrap();
    assert_eq!(waits(&told), [(1, 30, Cause::Blocked(Why::Space))]);
    let first = told.first_try.unwrap();
    let seen: Vec<_> = first.offers.iter().map(|offer| (offer.kind, offer.fit, offer.allowed)).collect();
    assert_eq!(seen, [(OfferKind::Slotted, 1, 0), (OfferKind::Full, 0, 0)]);
}

#[test]
fn a_promise_to_the_head_is_told() {
    use slotwise::decide::Why;
    use slotwise::simulate::{Cause, explain};
    // 8 GPUs are promised to the head for 10; the 3 would run until 32.
    let jobs = [job(0, 10, 1, 5), job(1, 10, 1, 8), job(2, 30, 1, 3)];
    let scenario = scenario(1, &jobs);
    let options = SimOptions { discipline: Discipline::Easy, ..SimOptions::default() };
    let told = explain(&scenario, scheduler("best-fit"), &options, 2).unwrap();
    let waits: Vec<_> = told.waits.iter().map(|wait| (wait.from, wait.to, wait.cause)).collect();
    assert_eq!(waits, [(2, 10, Cause::Reserved(1)), (10, 20, Cause::Blocked(Why::Capacity))]);
    assert_eq!(told.first_try.unwrap().at, 10);
}

#[test]
fn departures_of_one_instant_are_one_event() {
    // Two nodes of two 4-GPU jobs each; three of the four leave together. One after another they would leave two halves
    // behind for a moment, and one of those would move.
    let jobs = [job(0, 100, 1, 4), job(0, 50, 1, 4), job(0, 50, 1, 4), job(0, 50, 1, 4)];
    for word in ["compass", "compass-paper"] {
        let outcome = play(2, &jobs, word, Discipline::Fifo, 8);
        assert_eq!(outcome.pauses.events, 0, "{word}");
        assert_eq!(finishes(&outcome), [100, 50, 50, 50]);
    }
    // If the last one stays a second longer, there is such a moment.
    let jobs = [job(0, 100, 1, 4), job(0, 50, 1, 4), job(0, 50, 1, 4), job(0, 51, 1, 4)];
    assert_eq!(play(2, &jobs, "compass", Discipline::Fifo, 8).pauses.instances, 1);
}

#[test]
fn what_can_never_run_is_left_out_or_waits_to_the_end() {
    let outcome = play(1, &[job(0, 10, 2, 5), job(4, 10, 1, 5)], "best-fit", Discipline::Fifo, 8);
    assert_eq!((outcome.jobs[0].start(), outcome.jobs[1].start()), (None, Some(4)));
    assert_eq!((outcome.first_submit, outcome.end), (4, 14));

    // A job without an end holds half of the node.
    let mut builder = ClusterBuilder::new();
    let node = builder.add_node(&NodeSpec { name: "n", gpus: 8, ..NodeSpec::default() }).unwrap();
    builder.add_running(&JobSpec { name: "r", gpus: 4, ..JobSpec::default() }, &[Seat { node, gpus: None }]).unwrap();
    let jobs = vec![
        TraceJob { name: "a".to_owned(), ..job(1, 2, 1, 4) },
        TraceJob { name: "b".to_owned(), ..job(2, 2, 1, 8) },
    ];
    let scenario = Scenario::new(builder.finish().unwrap(), jobs).unwrap();
    for word in Scheduler::names() {
        let outcome = simulate(&scenario, scheduler(word), &SimOptions::default(), &mut |_| {}).unwrap();
        // Where there are rounds, one more is tried, in vain.
        let end = scheduler(word).round_s().map_or(3, |round_s| 1 + round_s);
        assert_eq!((outcome.jobs[0].start(), outcome.jobs[1].start(), outcome.end), (Some(1), None, end), "{word}");
        let summary = Summary::of(&scenario, &outcome);
        assert_eq!((summary.jobs, summary.rejected, summary.waiting, summary.jct.n), (2, 0, 1, 1), "{word}");
    }
}

#[test]
fn models_cpu_and_memory_bind_on_a_cluster_that_has_them_alone() {
    let mut builder = ClusterBuilder::new();
    for (name, model, cpu) in [("a", "A", Some(1000)), ("b", "B", None)] {
        builder
            .add_node(&NodeSpec { name, gpus: 8, model: Some(model), cpu_milli: cpu, ..NodeSpec::default() })
            .unwrap();
    }
    let on = |name: &str, models: &[&str], cpu_milli, job: TraceJob| TraceJob {
        name: name.to_owned(),
        models: models.iter().map(|&model| model.into()).collect(),
        cpu_milli,
        ..job
    };
    let jobs = vec![
        on("first", &["A"], 600, job(0, 10, 1, 1)),
        // No CPU until the first has left.
        on("second", &["A"], 600, job(1, 5, 1, 1)),
        on("no such model", &["C"], 0, job(2, 5, 1, 1)),
        on("never enough CPU", &["A"], 501, job(3, 5, 2, 1)),
        on("without a GPU", &["B"], 501, job(10, 5, 9, 0)),
        on("more GPUs than model A has", &["A"], 0, job(11, 5, 3, 4)),
    ];
    let on_it = Scenario::new(builder.finish().unwrap(), jobs.clone()).unwrap();
    let anywhere = Scenario::homogeneous(2, 8, jobs).unwrap();
    for word in ["compass", "compass-paper", "best-fit", "worst-fit", "first-fit", "random"] {
        let begun = |scenario: &Scenario| {
            let outcome = simulate(scenario, scheduler(word), &SimOptions::default(), &mut |_| {}).unwrap();
            assert_eq!(outcome.totals.fragmented_seconds, if scenario.n_rejected() > 0 { 9 } else { 0 }, "{word}");
            outcome.jobs.iter().map(slotwise::simulate::JobOutcome::start).collect::<Vec<_>>()
        };
        assert_eq!(begun(&on_it), [Some(0), Some(10), None, None, Some(10), None], "{word}");
        assert_eq!(begun(&anywhere), [0, 1, 2, 3, 10, 11].map(Some), "{word}");
    }
}

#[test]
fn who_stays_forever_has_no_finish_and_keeps_what_it_has() {
    let jobs = [job(0, TraceJob::FOREVER, 1, 4), job(1, 4, 1, 4), job(2, TraceJob::FOREVER, 1, 8), job(3, 1, 1, 4)];
    let scenario = scenario(1, &jobs);
    for (discipline, last) in [(Discipline::Fifo, None), (Discipline::Easy, Some(5))] {
        for word in strict_names() {
            let options = SimOptions { discipline, ..SimOptions::default() };
            let outcome = simulate(&scenario, scheduler(word), &options, &mut |_| {}).unwrap();
            assert_eq!(outcome.jobs[0].start(), Some(0), "{word}");
            assert_eq!(outcome.jobs[0].finish(), None, "{word}");
            assert_eq!(outcome.jobs[1].finish(), Some(5), "{word}");
            assert_eq!((outcome.jobs[2].start(), outcome.jobs[3].start()), (None, last), "{word}");
            let summary = Summary::of(&scenario, &outcome);
            let ended = 1 + u64::from(last.is_some());
            assert_eq!((summary.running, summary.waiting, summary.jct.n), (1, 3 - ended, ended), "{word}");
        }
    }
}

#[test]
fn what_runs_at_first_leaves_when_its_time_is_up_and_pays_its_own_price() {
    let mut builder = ClusterBuilder::new();
    for name in ["n0", "n1"] {
        builder.add_node(&NodeSpec { name, gpus: 8, ..NodeSpec::default() }).unwrap();
    }
    let node = builder.find_node("n0").unwrap();
    let times = JobTimes { remaining_s: Some(20), move_cost_s: Some(3) };
    let spec = JobSpec { name: "r", gpus: 1, times, ..JobSpec::default() };
    builder.add_running(&spec, &[Seat { node, gpus: None }]).unwrap();
    let jobs = [job(100, 10, 1, 7), job(101, 1, 2, 8)];
    let jobs =
        jobs.iter().zip(["a", "b"]).map(|(job, name)| TraceJob { name: name.to_owned(), ..job.clone() }).collect();
    let scenario = Scenario::new(builder.finish().unwrap(), jobs).unwrap();
    let options = SimOptions { move_cost_s: 8, ..SimOptions::default() };
    let outcome = simulate(&scenario, scheduler("compass"), &options, &mut |_| {}).unwrap();
    // It fills the slot of the 7, pauses for 3 s and ends at 123; then both nodes are free.
    assert_eq!(starts(&outcome), [100, 123]);
    assert_eq!(outcome.pauses.gpu_seconds_lost, 3);
}

#[test]
fn the_oracle_says_where_it_cannot_be() {
    let mut builder = ClusterBuilder::new();
    builder.add_node(&NodeSpec { name: "a", gpus: 8, ..NodeSpec::default() }).unwrap();
    builder.add_node(&NodeSpec { name: "b", gpus: 4, ..NodeSpec::default() }).unwrap();
    let scenario = Scenario::new(builder.finish().unwrap(), Vec::new()).unwrap();
    let error = simulate(&scenario, Scheduler::SifOpt, &SimOptions::default(), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("found 2 pools"), "{error}");
    assert!(simulate(&scenario, scheduler("compass"), &SimOptions::default(), &mut |_| {}).is_ok());
}

#[test]
fn intervals_tell_the_queue_and_the_condition() {
    let mut seen: Vec<Interval> = Vec::new();
    let jobs = [job(0, 10, 1, 7), job(2, 3, 1, 2), job(4, 4, 1, 1)];
    let options = SimOptions::default();
    simulate(&scenario(1, &jobs), scheduler("compass"), &options, &mut |interval| seen.push(*interval)).unwrap();
    let brief: Vec<_> = seen.iter().map(|i| (i.from, i.to, i.running, i.waiting, i.wcc, i.fragmented)).collect();
    // The single GPU waits for the slot of the 2 to go: COMPASS gives it no unprofiled room.
    let expected = [
        (0, 2, 1, 0, Some(false), false),
        (2, 4, 1, 1, Some(false), false),
        (4, 10, 1, 2, Some(false), false),
        (10, 13, 1, 1, Some(true), true),
        (13, 17, 1, 0, Some(true), false),
    ];
    assert_eq!(brief, expected);
}

/// A stream of random numbers in (0, 1).
struct Uniform(u64);

impl Uniform {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64 + 1e-17
    }
}

/// 1-GPU jobs on a node of 8 GPUs are a queue M/M/8: Erlang's C formula has the mean wait.
#[test]
fn one_gpu_jobs_wait_as_long_as_erlang_says() {
    let (servers, service, load) = (8u32, 10_000.0, 0.8);
    let offered = load * f64::from(servers);
    let mut uniform = Uniform(42);
    let mut exponential = |mean: f64| -mean * uniform.next().ln();
    let mut now = 0.0;
    let jobs: Vec<TraceJob> = (0..150_000)
        .map(|_| {
            now += exponential(service / offered);
            job(now.round() as u64, exponential(service).round() as u64, 1, 1)
        })
        .collect();
    // The blocking probability by its recursion, then the probability to wait, then the mean wait.
    let blocking = (1..=servers).fold(1.0, |b, n| offered * b / (f64::from(n) + offered * b));
    let waits = blocking / (1.0 - load * (1.0 - blocking));
    let expected = waits * service / (f64::from(servers) * (1.0 - load));
    let scenario = scenario(1, &jobs);
    for word in ["best-fit", "sif-opt", "compass"] {
        let outcome = simulate(&scenario, scheduler(word), &SimOptions::default(), &mut |_| {}).unwrap();
        let mean = Summary::of(&scenario, &outcome).wait.mean().unwrap();
        // 150,000 correlated waits: a standard error of about 2 %.
        assert!((mean / expected - 1.0).abs() < 0.06, "{word}: {mean} s, expected {expected} s");
        let busy = outcome.totals.busy as f64 / outcome.totals.seconds as f64 / f64::from(servers);
        assert!((busy - load).abs() < 0.01, "{word}: {busy}");
    }
}

#[test]
fn a_seed_decides_what_is_random_and_nothing_else_does() {
    let jobs: Vec<TraceJob> = (0..200).map(|i| job(i, 7 + i * 31 % 90, 1, 1 + (i % 5) as u8)).collect();
    let scenario = scenario(4, &jobs);
    let run = |word, seed| {
        simulate(&scenario, scheduler(word), &SimOptions { seed, ..SimOptions::default() }, &mut |_| {}).unwrap()
    };
    assert_eq!(run("random", 3), run("random", 3));
    assert_ne!(run("random", 3), run("random", 4));
    assert_eq!(run("compass", 3), run("compass", 4));
    assert_eq!(run("random", 3).scheduler.policy(), Some(Policy::Random));
}
