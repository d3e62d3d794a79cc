//! Jobs that ask for shares of a GPU and fit as things are.

use proptest::prelude::*;
use slotwise::anchor::State;
use slotwise::decide::{CommitLoop, Policy, Status};
use slotwise::plan::{Goal, Mode, plan};
use slotwise::workload::QueueEntry;

use super::options;
use crate::decide_support::{after, job_plan, node_plan, options as place_options, register, steps};

proptest! {
    /// Whatever best-fit places needs no move, and the plan has a place for each instance.
    #[test]
    fn what_fits_moves_nothing(
        nodes in prop::collection::vec(node_plan(), 1..5),
        history in steps(3, 0..12),
        job in job_plan(4).prop_filter("a share", |job| job.milli < 1000),
    ) {
        let mut cluster = after(&nodes, &history).into_cluster();
        let job = register(&mut cluster, "asked", &job);
        let told = plan(&cluster, Goal::Job(job), &options(&cluster, Mode::StopFirst));
        let mut state = State::new(cluster);
        let status = CommitLoop::new(&mut state, place_options(Policy::BestFit)).decide(QueueEntry::Submit(job), 0).status;
        let fits = status == Status::Placed;
        let none = told.feasible == Some(true) && told.optimal && told.steps.is_empty();
        prop_assert_eq!(fits, none, "{:?}", told);
        if fits {
            let planned = told.after.unwrap();
            planned.check_books().unwrap();
            prop_assert_eq!(told.place.len(), planned.job(job).instances() as usize);
        }
    }
}
