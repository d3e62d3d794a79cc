//! Arguments, options, and the one `match` that runs a command.
//!
//! Parse, then resolve, then do: `args` says what may be written, `options` what it means here, `command` does it. This
//! is the only module that prints, and `output` the only file of it that does.

mod args;
mod command;
mod failure;
mod help;
mod input;
mod interrupt;
mod options;
mod output;

use std::process::ExitCode;

use clap::FromArgMatches;

use args::Args;
use failure::Failure;
use options::Options;
use output::Talk;

/// Parses the arguments, runs the command, and says how it went: 0 = ran, 1 = failed, 2 = bad input or usage, 3 = a
/// threshold that the user set was crossed.
pub fn main() -> ExitCode {
    let parsed = Args::program().try_get_matches().and_then(|matches| Args::from_arg_matches(&matches));
    let args = match parsed {
        Ok(args) => args,
        Err(answer) if answer.use_stderr() => {
            output::say_usage(&answer.render().to_string());
            return ExitCode::from(2);
        }
        // The text of --help or of --version.
        Err(answer) => return exit_code(output::print_help(&answer.render().to_string())),
    };
    let talk = Talk::new(args.global.quiet);
    let result = match args.command {
        None => output::print_help(&Args::program().render_help().to_string()),
        Some(command) => Options::resolve(args.global, command, output::stdout_is_terminal())
            .and_then(|options| command::run(options, &talk)),
    };
    exit_code(result)
}

fn exit_code(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::say_failure(&failure);
            ExitCode::from(failure.code())
        }
    }
}
