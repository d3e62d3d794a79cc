//! The program: hands over to `slotwise::cli` and turns its answer into an exit code.

fn main() -> std::process::ExitCode {
    slotwise::cli::main()
}
