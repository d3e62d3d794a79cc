//! A device as the tests of the CUDA kernels see it: buffers, launches, and what the kernels leave behind.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use bytemuck::Pod;

/// In which order threads and blocks run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    Forward,
    Reverse,
}

impl Order {
    pub(crate) const BOTH: [Self; 2] = [Self::Forward, Self::Reverse];
}

/// A buffer, or from where on in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffer {
    number: usize,
    offset: usize,
}

impl Buffer {
    /// From the `at`th row on.
    pub(crate) fn from<T>(self, at: usize) -> Self {
        Self { offset: self.offset + at * size_of::<T>(), ..self }
    }
}

/// What is handed to a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arg {
    Word(u32),
    At(Buffer),
}

impl From<usize> for Arg {
    fn from(word: usize) -> Self {
        Self::Word(u32::try_from(word).unwrap())
    }
}

impl From<u32> for Arg {
    fn from(word: u32) -> Self {
        Self::Word(word)
    }
}

impl From<Buffer> for Arg {
    fn from(buffer: Buffer) -> Self {
        Self::At(buffer)
    }
}

/// Collects what is to be done; it is done by `run`.
#[derive(Debug, Default)]
pub(crate) struct Device {
    script: Vec<u8>,
    buffers: usize,
    reads: Vec<usize>,
}

impl Device {
    /// A buffer with these rows.
    pub(crate) fn buffer<T: Pod>(&mut self, rows: &[T]) -> Buffer {
        let bytes: &[u8] = bytemuck::cast_slice(rows);
        writeln!(self.script, "buffer {}", bytes.len()).unwrap();
        self.script.extend_from_slice(bytes);
        self.buffers += 1;
        Buffer { number: self.buffers - 1, offset: 0 }
    }

    /// A buffer for so many rows, full of rubbish.
    pub(crate) fn poisoned<T>(&mut self, rows: usize) -> Buffer {
        self.buffer(&vec![0xa5_u8; rows * size_of::<T>()])
    }

    /// Runs a kernel.
    pub(crate) fn launch(&mut self, kernel: &str, grid: (usize, usize), threads: usize, args: &[Arg]) {
        let mut line = format!("launch {kernel} {} {} {threads}", grid.0, grid.1);
        for arg in args {
            match arg {
                Arg::Word(word) => write!(line, " {word}"),
                Arg::At(buffer) => write!(line, " &{}+{}", buffer.number, buffer.offset),
            }
            .unwrap();
        }
        writeln!(self.script, "{line}").unwrap();
    }

    /// Has `run` return a buffer as it is now.
    pub(crate) fn read<T>(&mut self, buffer: Buffer, rows: usize) {
        writeln!(self.script, "read {}", buffer.number).unwrap();
        self.reads.push(rows * size_of::<T>());
    }

    /// Does all of it, and gives what was read; or what went wrong.
    pub(crate) fn run(&self, runner: &Path, order: Order) -> Result<Vec<Vec<u8>>, String> {
        let mut command = Command::new(runner);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let output = std::thread::scope(|scope| {
            scope.spawn(move || {
                // A child that has failed does not read on; it says itself why.
                let order = format!("order {}\n", format!("{order:?}").to_lowercase());
                stdin.write_all(order.as_bytes()).and_then(|()| stdin.write_all(&self.script)).ok();
            });
            child.wait_with_output().unwrap()
        });
        if !output.status.success() {
            return Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)));
        }
        let mut rest = output.stdout.as_slice();
        let read = self.reads.iter().map(|&bytes| rest.split_off(..bytes).unwrap().to_vec()).collect();
        assert!(rest.is_empty());
        Ok(read)
    }
}

/// Bytes as rows.
pub(crate) fn rows<T: Pod>(bytes: &[u8]) -> Vec<T> {
    bytemuck::pod_collect_to_vec(bytes)
}
