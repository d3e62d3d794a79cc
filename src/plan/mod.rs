//! Room for a job that waits, with the fewest moves of what runs, and the proof that fewer do not do.
//!
//! | file | what |
//! | --- | --- |
//! | `layout.rs` | instances and nodes that are alike, as classes |
//! | `columns.rs`, `packings.rs` | the integer program: who leaves, what the room then receives |
//! | `integer.rs`, `linear.rs` | solves it: floats propose, integers prove |
//! | `pack.rs` | few partial nodes instead of room |
//! | `realise.rs`, `manner.rs` | from classes back to nodes and instances, few jobs disturbed |
//! | `ways.rs`, `choose.rs` | several plans that are as good, and the one that a backend scores best |
//! | `amounts.rs`, `guests.rs` | what takes how much, and what the rest holds, node by node |
//! | `order.rs`, `walk.rs`, `detour.rs`, `shorten.rs` | moves one after another: an order, if need be with detours |
//! | `reach.rs` | what cannot move at all one after another: a bound |
//! | `exhaust.rs`, `hitless.rs` | a search of all states; all of that put together |
//! | `steps.rs` | the plan carried out on the ledger |
//! | `room.rs` | the fewest moves for the commit loop |
//! | `hosting.rs` | a bound without a program, by which racks and domains are ranked |
//! | `curve.rs` | how few partial nodes each number of moves reaches |
//! | `shares.rs` | a job of shares that fits as things are |
//! | `budgets.rs` | a plan that keeps to disruption budgets |
//! | `settings.rs` | what has to be settled before, whoever asks |
//! | `question.rs`, `site.rs`, `find.rs` | the question and its answer; all of it put together |
//! | `verdict.rs` | why there is no plan, and what little more would allow one |

mod amounts;
mod budgets;
mod choose;
mod columns;
mod curve;
mod detour;
mod exhaust;
mod find;
mod groups;
mod guests;
mod hitless;
mod hosting;
mod integer;
mod layout;
mod limits;
mod linear;
mod manner;
mod order;
mod pack;
mod packings;
mod question;
mod reach;
mod realise;
mod relocation;
mod room;
mod settings;
mod shares;
mod shorten;
mod site;
mod steps;
mod verdict;
mod walk;
mod ways;

pub use budgets::plan;
pub use choose::{Choice, PlanScore, choose};
pub use curve::{Curve, CurvePoint, curve};
pub use groups::as_one_group;
pub use hitless::NoOrder;
pub use integer::Effort;
pub use question::{Cost, Goal, Plan, PlanOptions};
pub use room::FewestMoves;
pub use settings::{STEPS, STEPS_OF_A_POINT, first_without_seconds, pin, selected};
pub use steps::{Mode, Step};
pub use verdict::{NoPlan, Relaxation};
