//! A plain NumPy program that scores the same batch, where there is one to be run.

use std::path::Path;
use std::process::Command;

use anyhow::Context;
use serde::Deserialize;

use super::super::{Failure, Talk};
use super::{BenchRow, SEED, Size, USUAL_GPUS, best, cluster, row};
use crate::evaluate::{Backend, Batch, Cpu, NodeRows, Scores, synthetic};

/// The program, which goes with this one.
const PROGRAM: &str = include_str!("../../../../benches/score_numpy.py");

/// Its exit code where there is no NumPy.
const NO_NUMPY: i32 = 3;

/// The most touches of the batch: as many as it scores in a fraction of a second.
const TOUCHES: usize = 1_000_000;

/// What it prints.
#[derive(Debug, Deserialize)]
struct Answer {
    seconds: f64,
    equal: bool,
}

pub(super) fn measure(size: &Size, threads: usize, talk: &Talk, rows: &mut Vec<BenchRow>) -> Result<(), Failure> {
    let gpus = size.gpus.iter().copied().filter(|&gpus| gpus <= USUAL_GPUS).max().unwrap_or(USUAL_GPUS);
    let cluster = cluster(gpus)?;
    let nodes = NodeRows::of(&cluster)?;
    let batch = synthetic::batch(&cluster, TOUCHES.min(size.touches), 4, 8, SEED)?;
    let mut cpu = Cpu::new(threads)?;
    let mut scores = Scores::default();
    cpu.load(&nodes)?;
    let seconds = best(size.passes, || cpu.evaluate(&batch, &mut scores))?;
    let answer = match run(&nodes, &batch, &scores, size.passes) {
        Ok(Some(answer)) => answer,
        Ok(None) => {
            talk.note("no comparison with NumPy: there is no python3 that has it");
            return Ok(());
        }
        Err(error) => return Err(Failure::Failed(error)),
    };
    if !answer.equal {
        return Err(Failure::failed("the NumPy program does not find the same scores"));
    }
    let touches = batch.touches().len() as f64;
    let figure = |threads, seconds: f64| BenchRow {
        gpus: Some(gpus),
        candidates_per_s: Some(batch.len() as f64 / seconds),
        ..row("score_numpy", "4 each, needs", threads, touches / seconds, "touches/s")
    };
    rows.push(figure(cpu.threads(), seconds));
    rows.push(BenchRow { backend: "numpy".to_owned(), ..figure(1, answer.seconds) });
    Ok(())
}

/// Its answer; `None` where it cannot be run.
fn run(nodes: &NodeRows, batch: &Batch, scores: &Scores, passes: usize) -> anyhow::Result<Option<Answer>> {
    let folder = tempfile::tempdir().context("cannot make a folder for the NumPy program")?;
    write(folder.path(), nodes, batch, scores).context("cannot write the files of the NumPy program")?;
    let mut command = Command::new("python3");
    command.args(["-c", PROGRAM]).arg(folder.path()).arg(passes.to_string());
    let Ok(output) = command.output() else { return Ok(None) };
    if output.status.code() == Some(NO_NUMPY) {
        return Ok(None);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "the NumPy program failed: {}", said.lines().last().unwrap_or_default());
    serde_json::from_slice(&output.stdout).context("cannot read what the NumPy program printed").map(Some)
}

/// The arrays as they are in memory; they are little-endian where this runs and where NumPy does.
fn write(folder: &Path, nodes: &NodeRows, batch: &Batch, scores: &Scores) -> std::io::Result<()> {
    let arrays: [(&str, &[u8]); 7] = [
        ("bits", bytemuck::cast_slice(&nodes.bits)),
        ("amounts", bytemuck::cast_slice(&nodes.amounts)),
        ("touches", bytemuck::cast_slice(batch.touches())),
        ("offsets", bytemuck::cast_slice(batch.offsets())),
        ("given", bytemuck::cast_slice(batch.given())),
        ("needs", bytemuck::cast_slice(batch.needs())),
        ("rows", bytemuck::cast_slice(&scores.rows)),
    ];
    arrays.iter().try_for_each(|(name, bytes)| std::fs::write(folder.join(name), bytes))
}
