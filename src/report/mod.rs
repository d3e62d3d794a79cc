//! From results to bytes: tables for people, JSON for machines. Pure functions; who writes them where is for `cli`.

mod asks;
mod audit;
mod bench;
mod commands;
mod decision;
mod devices;
mod explain;
mod first;
mod json;
mod number;
mod obstacles;
mod phi_star;
mod place;
mod plan;
mod score;
mod simulate;
mod stress;
mod sweep;
mod table;
mod verify;

pub use asks::{asks, refusal_text};
pub use audit::{audit_json, audit_table};
pub use bench::{BenchRow, bench_table, compare_with_cpu};
pub use commands::plan_commands;
pub use decision::{decision_json, explained_decision_json};
pub use devices::{devices_json, devices_table};
pub use explain::{OffersOut, explanation_json, explanation_table};
pub use json::append_line;
pub use number::{asked, gpus, grouped, percent, rate, seconds};
pub use obstacles::ObstaclesReport;
pub use phi_star::PhiStarReport;
pub use place::{PlaceSummary, Tally, Totals};
pub use plan::{PlanReport, curve_svg};
pub use score::ScoreRows;
pub use simulate::{
    ChartError, MINUTES_HEADER, Page, PageError, PageSource, Run, SERIES_HEADER, Setting, append_minute_row,
    append_series_row, jobset_header, jobset_rows, picture_names, simulation_json, simulation_table,
};
pub use stress::{Latency, StressReport};
pub use sweep::{days_not_compared, sweep_row, sweep_table};
pub use verify::{CheckRow, verify_table};
