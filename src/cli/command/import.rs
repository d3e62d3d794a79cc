//! `import`: another scheduler's dump becomes a snapshot and a queue.

use super::super::args::ImportCommand;
use super::super::input;
use super::{Failure, Options, Output, Talk};
use crate::formats::{read_kubernetes, read_slurm, write_queue, write_snapshot};

pub(super) fn run(import: &ImportCommand, options: &Options, talk: &Talk) -> Result<(), Failure> {
    let files: Vec<&str> = import.files().iter().map(String::as_str).collect();
    let mut dump = match import {
        ImportCommand::Kubernetes(args) => read_kubernetes(&files, args.topology_keys.as_ref())?,
        ImportCommand::Slurm(_) => read_slurm(&files)?,
    };
    input::tell(&dump.snapshot.notes, talk);
    input::expect_nodes(&files.join(","), &dump.snapshot.cluster)?;
    // Both files are begun before either is written, and get their names when both are whole.
    let queue_out = import.queue_out().map(|path| Output::open(Some(path))).transpose()?;
    let mut output = Output::open(options.out.as_deref())?;
    output.pass(|out| write_snapshot(&dump.snapshot, out))?;
    if let Some(mut queue_out) = queue_out {
        let mut cluster = std::mem::take(&mut dump.snapshot.cluster);
        let (queue, notes) = dump.queue(&files.join(","), &mut cluster)?;
        input::tell(&notes, talk);
        queue_out.pass(|out| write_queue(&cluster, &queue, out))?;
        output.finish()?;
        queue_out.finish()
    } else {
        output.finish()
    }
}
