use proptest::prelude::*;

use super::*;
use crate::cluster::{ClusterBuilder, JobSpec, NodeSpec, PoolId};

const WHOLE: u32 = WHOLE_GPU as u32;

fn left(cpu_milli: u32, gpus: &[u16]) -> Left {
    let mut left = Left { cpu_milli, gpu_milli: [0; MAX_GPUS] };
    left.gpu_milli[..gpus.len()].copy_from_slice(gpus);
    left
}

fn pod(cpu_milli: u32, gpu_milli: u32, gpus: u32, count: u32) -> TypicalPod {
    TypicalPod { cpu_milli, gpu_milli, gpus, count }
}

#[test]
fn a_fragment_by_hand() {
    let node = left(4000, &[1000, 600, 0, 200]);
    let fragment = |pod: TypicalPod, allowed: u32| exact::fragment(&[pod], &[allowed], &node);
    // It fits on two devices; the third has too little.
    assert_eq!(fragment(pod(4000, 500, 1, 3), 1), 3 * 200);
    // One whole device is free, two are not.
    assert_eq!((fragment(pod(0, WHOLE, 1, 1), 1), fragment(pod(0, WHOLE, 2, 1), 1)), (800, 1800));
    // No CPU; not its model; no GPU wanted at all.
    assert_eq!(fragment(pod(4001, 500, 1, 1), 1), 1800);
    assert_eq!(fragment(pod(0, 500, 1, 1), 0), 1800);
    assert_eq!((fragment(pod(4001, 0, 0, 1), 1), fragment(pod(0, 0, 0, 1), 1)), (1800, 1800));
}

#[test]
fn the_choices_of_a_node() {
    let node = left(4000, &[1000, 600, 1000, 200, 600]);
    let all = |cpu_milli, gpu_milli, gpus| choices(&node, &Ask { cpu_milli, gpu_milli, gpus }).collect::<Vec<_>>();
    assert_eq!(all(0, 600, 1), [0b1, 0b10, 0b100, 0b1_0000]);
    assert_eq!(all(0, 1000, 1), [0b1]);
    assert_eq!(all(4000, 1000, 2), [0b101]);
    assert_eq!(all(0, 1000, 0), [0]);
    assert_eq!((all(0, 1000, 3), all(4001, 600, 1), all(4001, 1000, 0)), (vec![], vec![], vec![]));
}

#[test]
fn the_first_of_equal_devices_is_taken() {
    // A share of 400 leaves 200 on either device that has 600, which nobody can use.
    let pods = [pod(0, 400, 1, 1)];
    let node = left(UNLIMITED, &[1000, 600, 600]);
    let ask = Ask { cpu_milli: 7, gpu_milli: 400, gpus: 1 };
    assert_eq!(exact::growth(&pods, &[1], &node, &ask), Some((0, 0b1)));
    assert_eq!(peer::best(&pods, &[1.0], &[1], &node, &ask), Some((50, 0b1)));
    let pods = [pod(0, 700, 1, 1)];
    assert_eq!(exact::growth(&pods, &[1], &node, &ask), Some((-400, 0b10)));
    assert_eq!(peer::best(&pods, &[1.0], &[1], &node, &ask), Some((59, 0b10)));
    let whole = Ask { cpu_milli: 0, gpu_milli: 1000, gpus: 2 };
    assert_eq!(exact::growth(&pods, &[1], &node, &whole), None);
}

#[test]
fn the_typical_pods_are_the_shortest_list_that_covers_enough() {
    let mut builder = ClusterBuilder::new();
    for (name, model) in [("n0", Some("B")), ("n1", None), ("n2", Some("A"))] {
        builder.add_node(&NodeSpec { name, gpus: 8, model, ..NodeSpec::default() }).unwrap();
    }
    let mut cluster = builder.finish().unwrap();
    let share = |cpu_milli, gpu_milli, memory_mib, models: &'static [&'static str]| JobSpec {
        name: "",
        gpus: 1,
        gpu_milli,
        cpu_milli,
        memory_mib,
        models,
        ..JobSpec::default()
    };
    // 90 of one kind (memory apart), five and four of others that tie with none, one that is left out.
    let specs = [
        (share(100, 500, 1, &[]), 50),
        (share(100, 500, 2, &[]), 40),
        (share(100, 200, 0, &["A"]), 4),
        (share(100, 200, 0, &["B", "A"]), 4),
        (JobSpec { cpu_milli: 9, ..JobSpec::default() }, 2),
    ];
    let mut requests = Vec::new();
    for (i, (spec, n)) in specs.iter().enumerate() {
        let job = cluster.register(&JobSpec { name: &format!("j{i}"), ..spec.clone() }, 1).unwrap();
        requests.push((cluster.job(job).request(), *n));
    }
    let typical = Typical::new(&cluster, requests.iter().map(|&(id, n)| (cluster.request(id), n)));
    // Of equal counts the larger kind comes first: "A|B" after "A".
    assert_eq!(typical.pods(), [pod(100, 500, 1, 90), pod(100, 200, 1, 4), pod(100, 200, 1, 4)]);
    assert_eq!(typical.total(), 100);
    let allowed = |pool| typical.allowed(PoolId(pool)).to_vec();
    assert_eq!((allowed(0), allowed(1), allowed(2)), (vec![0b011], vec![0b001], vec![0b111]));
    assert!(typical.allows(PoolId(0), 1) && !typical.allows(PoolId(0), 2));
    assert_eq!(Typical::new(&cluster, []).pods(), []);
}

#[test]
fn a_mix_counts_each_part_by_its_weight() {
    let both = Typical::with(vec![pod(0, WHOLE, 1, 3), pod(5, WHOLE, 2, 1)], vec![vec![0b11], vec![0b11]]);
    let one = Typical::with(vec![pod(0, WHOLE, 1, 900), pod(5, WHOLE, 2, 300)], vec![vec![0b11], vec![0b01]]);
    let mix = Typical::mix(&[(&both, 3), (&one, 1)]);
    let part = |n: u64| (MIX_PARTS * n / 16) as u32;
    // Three quarters of three quarters and a quarter of three quarters agree; the pairs differ in the second pool.
    assert_eq!(mix.pods(), [pod(0, WHOLE, 1, part(12)), pod(5, WHOLE, 2, part(3)), pod(5, WHOLE, 2, part(1))]);
    assert_eq!((mix.allowed(PoolId(0)), mix.allowed(PoolId(1)), mix.total()), (&[0b111][..], &[0b011][..], MIX_PARTS));
    // One part alone, or nothing, is as it was.
    let nothing = Typical::with(Vec::new(), vec![vec![], vec![]]);
    assert_eq!(Typical::mix(&[(&nothing, 5), (&one, 7), (&both, 0)]), one);
    assert_eq!(Typical::mix(&[(&nothing, 5), (&nothing, 7)]), nothing);
}

fn nodes() -> impl Strategy<Value = Left> {
    let milli = prop_oneof![2 => Just(0_u16), 3 => Just(WHOLE_GPU), 5 => 0..=WHOLE_GPU];
    let cpu = prop_oneof![4 => 0_u32..200, 1 => Just(UNLIMITED)];
    (cpu, prop::array::uniform16(milli)).prop_map(|(cpu_milli, gpu_milli)| Left { cpu_milli, gpu_milli })
}

fn pods() -> impl Strategy<Value = Vec<TypicalPod>> {
    let gpus = prop_oneof![2 => Just((0_u32, 0_u32)), 5 => (1..=WHOLE, Just(1)), 3 => (Just(WHOLE), 1_u32..=16)];
    let pod = (0_u32..250, gpus, 1_u32..10_000).prop_map(|(cpu, (milli, gpus), count)| pod(cpu, milli, gpus, count));
    prop::collection::vec(pod, 0..70)
}

fn asks() -> impl Strategy<Value = Ask> {
    let gpus =
        prop_oneof![1 => Just((WHOLE_GPU, 0_u8)), 5 => (1..=WHOLE_GPU, Just(1)), 3 => (Just(WHOLE_GPU), 1_u8..=16)];
    (0_u32..100, gpus).prop_map(|(cpu_milli, (gpu_milli, gpus))| Ask { cpu_milli, gpu_milli, gpus })
}

/// The measure as the paper words it: a sum over devices and pods, in rational numbers with one denominator.
fn by_definition(pods: &[TypicalPod], allowed: &[u32], left: &Left) -> i128 {
    let mut sum = 0;
    for (i, pod) in pods.iter().enumerate() {
        let fits = pod.gpus > 0
            && allowed[i / 32] & 1 << (i % 32) != 0
            && left.cpu_milli >= pod.cpu_milli
            && left.gpu_milli.iter().filter(|&&g| u32::from(g) >= pod.gpu_milli).count() >= pod.gpus as usize;
        for &g in &left.gpu_milli {
            let of_use = fits && u32::from(g) >= pod.gpu_milli;
            sum += if of_use { 0 } else { i128::from(g) * i128::from(pod.count) };
        }
    }
    sum
}

proptest! {
    /// The fragment for a mix is the mean of the fragments for its parts, but for what is rounded down.
    #[test]
    fn a_mix_is_a_mean(
        parts in prop::collection::vec((pods(), prop::array::uniform3(any::<u32>()), 1u64..100), 1..4), left in nodes(),
    ) {
        let parts: Vec<(Typical, u64)> = parts
            .into_iter()
            .map(|(pods, allowed, weight)| (Typical::with(pods, vec![allowed.to_vec()]), weight))
            .filter(|(part, _)| !part.pods().is_empty())
            .collect();
        let mix = Typical::mix(&parts.iter().map(|(part, weight)| (part, *weight)).collect::<Vec<_>>());
        let mean = |part: &Typical| {
            let fragment = exact::fragment(part.pods(), part.allowed(PoolId(0)), &left);
            fragment as f64 / part.total().max(1) as f64
        };
        prop_assume!(!parts.is_empty());
        let weights: u64 = parts.iter().map(|(_, weight)| weight).sum();
        let expected: f64 = parts.iter().map(|(part, weight)| *weight as f64 * mean(part)).sum::<f64>() / weights as f64;
        // A part a pod is lost at most, each of which counts for what is idle.
        let lost = mix.pods().len() as f64 * 3.0 * f64::from(left.idle()) / MIX_PARTS as f64;
        prop_assert!((mean(&mix) - expected).abs() <= 2.0 * lost + 1e-6, "{} {}", mean(&mix), expected);
    }

    #[test]
    fn the_measure_is_what_its_definition_says(
        pods in pods(), allowed in prop::array::uniform3(any::<u32>()), left in nodes(), ask in asks(),
    ) {
        let expected = by_definition(&pods, &allowed, &left);
        prop_assert_eq!(i128::from(exact::fragment(&pods, &allowed, &left)), expected);
        let n: i128 = pods.iter().map(|pod| i128::from(pod.count)).sum();
        let popularity = peer::popularity(&pods, n as u64);
        let peer = peer::fragment(&pods, &popularity, &allowed, &left);
        prop_assert!((peer - expected as f64 / n.max(1) as f64).abs() < 1e-6 || n == 0);

        let growth = exact::growth(&pods, &allowed, &left, &ask);
        let typical = Typical::with(pods.clone(), vec![vec![0; 3], allowed.to_vec()]);
        prop_assert_eq!(Gauge::new(&typical, 2).growth(PoolId(1), &left, &ask), growth);
        let mut best: Option<(i128, GpuMask)> = None;
        for gpus in 0..=GpuMask::MAX {
            let share = ask.is_share();
            let fits = left.cpu_milli >= ask.cpu_milli
                && gpus.count_ones() == u32::from(ask.gpus)
                && (0..16).all(|i| gpus >> i & 1 == 0 || left.gpu_milli[i] >= ask.gpu_milli);
            // Whole devices: any would do as well, and the lowest are taken.
            let lowest = (0..16).all(|i| gpus >> i & 1 == 1 || left.gpu_milli[i] < ask.gpu_milli || gpus >> i == 0);
            if fits && (share || lowest) {
                let grows = by_definition(&pods, &allowed, &left.without(&ask, gpus)) - expected;
                best = best.into_iter().chain([(grows, gpus)]).min();
            }
        }
        prop_assert_eq!(growth.map(|(grows, gpus)| (i128::from(grows), gpus)), best);
    }
}
