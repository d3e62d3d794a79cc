//! The `min_moves` of the placement cases, in both modes, with the nodes in file order and reversed.

use slotwise::plan::{Goal, Mode, plan};

use super::super::decide_cases::{cases, load};
use super::{options, verifier};

#[test]
fn the_fewest_moves_of_every_case_are_found_and_proved() {
    let mut seen = 0;
    for (name, case) in cases() {
        let Some(expected) = case["expect"].get("min_moves") else { continue };
        for reversed in [false, true] {
            let (state, queue) = load(&case, reversed).unwrap();
            let cluster = state.cluster();
            for job in queue.into_iter().map(|entry| entry.job()) {
                let Some(expected) = expected.get(cluster.job_name(job)) else { continue };
                for mode in Mode::ALL {
                    let options = options(cluster, mode);
                    let plan = plan(cluster, Goal::Job(job), &options);
                    let found = plan.feasible.map(|feasible| feasible.then_some(plan.steps.len() as u64));
                    let expected = expected[mode.name().replace('-', "_")].as_u64();
                    let place = format!("{name} {} {} reversed={reversed}", cluster.job_name(job), mode.name());
                    assert_eq!(found, Some(expected), "{place}");
                    assert!(plan.optimal, "{place}");
                    if plan.feasible == Some(true) {
                        verifier::check(cluster, Goal::Job(job), mode, &options.movable, &plan);
                    }
                    seen += 1;
                }
            }
        }
    }
    println!("{seen} plans");
}
