//! Room for a job that waits, with the fewest moves of what runs, and the proof that fewer do not do.
//!
//! | file | what |
//! | --- | --- |
//! | `layout.rs` | instances and nodes that are alike, as classes |
//! | `columns.rs` | the integer program: who leaves, what the room then receives |
//! | `integer.rs`, `linear.rs` | solves it: floats propose, integers prove |
//! | `pack.rs` | few partial nodes instead of room |
//! | `realise.rs` | from classes back to nodes and instances, few jobs disturbed |
//! | `order.rs`, `exhaust.rs` | moves one after another: an order, or an exhaustive search |
//! | `steps.rs` | the plan carried out on the ledger |
//! | `room.rs` | the fewest moves for the commit loop |
//! | `hosting.rs` | a bound without a program, by which racks and domains are ranked |
//! | `curve.rs` | how few partial nodes each number of moves reaches |
//! | `shares.rs` | a job of shares that fits as things are |
//! | `budgets.rs` | a plan that keeps to disruption budgets |
//! | `settings.rs` | what has to be settled before, whoever asks |
//! | `question.rs`, `site.rs`, `find.rs` | the question and its answer; all of it put together |
//! | `verdict.rs` | why there is no plan, and what little more would allow one |

mod budgets;
mod columns;
mod curve;
mod exhaust;
mod find;
mod hosting;
mod integer;
mod layout;
mod linear;
mod order;
mod pack;
mod question;
mod realise;
mod room;
mod settings;
mod shares;
mod site;
mod steps;
mod verdict;

pub use budgets::plan;
pub use curve::{Curve, CurvePoint, curve};
pub use integer::Effort;
pub use question::{Cost, Goal, Plan, PlanOptions};
pub use room::FewestMoves;
pub use settings::{STEPS, first_without_seconds, pin};
pub use steps::{Mode, Step};
pub use verdict::{NoPlan, Relaxation};
