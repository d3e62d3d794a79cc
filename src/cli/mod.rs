//! Arguments, options, and the one `match` that runs a command.
//!
//! Parse, then resolve, then do: `args` says what may be written, `options` what it means here, `command` does it. This
//! is the only module that prints, and `output` the only file of it that does.

mod args;
mod command;
mod failure;
mod help;
mod input;
mod options;
mod output;
mod run;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use failure::Failure;
use options::Options;
use output::Talk;

/// Parses the arguments, runs the command, and says how it went: 0 = ran, 1 = failed, 2 = bad input or usage, 3 = a
/// threshold that the user set was crossed.
pub fn main() -> ExitCode {
    let args = match args::Args::try_parse() {
        Ok(args) => args,
        // The text of an error, of --help or of --version; there is nobody left to tell if it cannot be printed.
        Err(answer) => {
            let _ = answer.print();
            return ExitCode::from(if answer.use_stderr() { 2 } else { 0 });
        }
    };
    let talk = Talk::new(args.global.quiet);
    let result = match args.command {
        None => output::print_help(&args::Args::command().render_help().to_string()),
        Some(command) => Options::resolve(args.global, command, output::stdout_is_terminal())
            .and_then(|options| command::run(options, &talk)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            talk.failure(&failure);
            ExitCode::from(Failure::code(&failure))
        }
    }
}
