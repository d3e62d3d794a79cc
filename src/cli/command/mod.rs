//! The commands, one file each.

mod audit;
mod bench;
mod devices;
mod explain;
mod generate;
mod import;
mod phi_star;
mod place;
mod plan;
mod score;
mod serve;
mod simulate;
mod stress;
mod sweep;
mod verify;
mod waiting_job;

use super::args::{Command, EvaluateArgs, GenerateCommand};
use super::failure::Failure;
use super::options::Options;
use super::output::{Output, Talk};
use crate::evaluate::{Backend, open_safely};

/// Runs the command.
///
/// # Errors
/// Why it did not end well.
pub(super) fn run(options: Options, talk: &Talk) -> Result<(), Failure> {
    match &options.command {
        Command::Score(args) => score::run(args, &options, talk),
        Command::Place(args) => place::run(args, &options, talk),
        Command::Plan(args) => plan::run(args, &options, talk),
        Command::Explain(args) => explain::run(args, &options, talk),
        Command::Audit(args) => audit::run(args, &options, talk),
        Command::PhiStar(args) => phi_star::run(args, &options),
        Command::Devices => devices::run(&options),
        Command::Generate(GenerateCommand::Cluster(args)) => generate::cluster(args, &options, talk),
        Command::Generate(GenerateCommand::Queue(args)) => generate::queue(args, &options, talk),
        Command::Generate(GenerateCommand::Trace(args)) => generate::trace(args, &options, talk),
        Command::Import(import) => import::run(import, &options, talk),
        Command::Stress(args) => stress::run(args, &options, talk),
        Command::Simulate(args) => simulate::run(args, &options, talk),
        Command::Sweep(args) => sweep::run(args, &options, talk),
        Command::Merge(args) => sweep::merge(args, &options, talk),
        Command::Serve(args) => serve::run(args, &options, talk),
        Command::Verify(args) => verify::run(args, &options, talk),
        Command::Bench(args) => bench::run(args, &options, talk),
    }
}

/// Opens the backend that is wanted. If its device fails, another goes on, and the user is told.
///
/// # Errors
/// If a device that is named is not there.
fn open_backend(args: &EvaluateArgs, options: &Options, talk: &Talk) -> Result<Box<dyn Backend>, Failure> {
    let (choice, talk) = (args.backend.backend, *talk);
    let crossover = args.crossover.unwrap_or(choice.usual_crossover());
    let warn = Box::new(move |text: &str| talk.warn(text));
    Ok(Box::new(open_safely(choice, options.threads, crossover, warn)?))
}

/// Writes a result that is whole in memory.
fn write_all(options: &Options, bytes: &[u8]) -> Result<(), Failure> {
    let mut output = Output::open(options.out.as_deref())?;
    output.write(bytes)?;
    output.finish()
}
