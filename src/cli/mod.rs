//! Arguments, options, and the one `match` that runs a command.

/// Parses the arguments and runs the command.
pub fn main() -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}
