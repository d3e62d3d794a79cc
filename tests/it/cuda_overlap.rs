//! The host decides a window of the queue while the CUDA device ranks nodes for the next one: seen in the order in which a
//! run calls the driver, on the test double of tests/cuda/standin.hpp.

use std::io::Write as _;

use slotwise::anchor::State;
use slotwise::decide::{CommitLoop, PlaceOptions, Policy};
use slotwise::evaluate::{Cuda, EvalError};

use crate::cuda_process::{Settings, test_with, text};
use crate::decide_support::{JobPlan, Step, options, plain_job, plain_nodes, queue, run};

const WINDOW: usize = 8;
const WINDOWS: usize = 5;

/// A queue is decided with the backend. Each decision is noted among the calls of the driver; without one, nothing is.
#[test]
fn windows() {
    if let Err(error) = run_windows() {
        println!("windows: {error}");
    }
}

fn run_windows() -> Result<(), EvalError> {
    let backend = Cuda::open()?;
    let mut nodes = plain_nodes(150);
    nodes.iter_mut().enumerate().for_each(|(number, node)| node.cpu = Some(number as u32 % 9));
    let job = |number: usize| JobPlan { cpu: number as u32 % 4 + 1, ..plain_job(1 + (number % 3) as u8, 3) };
    let steps: Vec<Step> = (0..WINDOWS * WINDOW).map(|number| Step::Submit(job(number))).collect();
    let (cluster, queue) = queue(&nodes, &steps);
    let options = PlaceOptions { window: WINDOW, ..options(Policy::BestFit) };
    let (expected, _) = run(&cluster, &queue, options);
    let mut state = State::new(cluster);
    let mut commit_loop = CommitLoop::with_backend(&mut state, options, Box::new(backend));
    let (mut decisions, mut notes) = (Vec::new(), std::io::stderr());
    commit_loop.run(&queue, &mut |decision| {
        writeln!(notes, "decides").unwrap();
        decisions.push(decision.clone());
    });
    assert_eq!(commit_loop.backend_fault(), None);
    assert_eq!(decisions, expected);
    println!("windows: all is well");
    Ok(())
}

#[test]
fn the_host_decides_a_window_while_the_device_ranks_for_the_next() {
    for order in ["queued", "eager"] {
        let settings: Settings = &[("STANDIN_TRACE", "1"), ("STANDIN_ORDER", order)];
        let output = test_with("cuda_overlap::windows", settings);
        let (said, noted) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{said}{noted}");
        assert!(said.contains("windows: all is well"), "{said}");
        let step = |line: &str| match line {
            "stand-in: launches rank_nodes_count" => Some("ask"),
            "stand-in: launches apply_edits" => Some("edit"),
            "stand-in: calls cuStreamSynchronize" => Some("wait"),
            "decides" => Some("decide"),
            _ => None,
        };
        let steps: Vec<&str> = noted.lines().filter_map(step).skip_while(|&step| step != "ask").collect();
        // The first window is asked for and waited for, as nothing was decided before it. From then on, what the device is
        // to rank for a window is on its way before the window before is decided, and waited for behind that.
        let decided = ["decide"; WINDOW];
        let mut expected = vec!["ask", "wait"];
        for _ in 1..WINDOWS {
            expected.extend(["ask"].iter().chain(&decided).chain(&["wait", "edit"]));
        }
        expected.extend(decided);
        assert_eq!(steps, expected, "{order}");
    }
}
