//! The integration tests, one program for all of them.
#![expect(clippy::print_stdout, reason = "tests say what they skipped and how much they covered")]

mod cli;
mod decide;
mod decide_audit;
mod decide_cases;
mod decide_choices;
mod decide_cost;
mod decide_support;
mod decide_windows;
mod evaluate;
mod formats;
mod layers;
mod model_check;
mod operators;
mod simulate;
mod simulate_laws;
