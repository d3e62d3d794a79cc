//! An entry point: its PTX is handed to the driver, and it is launched with arguments.
#![expect(unsafe_code, reason = "PTX is handed to the driver, and run by it")]

use std::sync::Arc;

use cudarc::driver::sys::CUresult;
use cudarc::driver::{CudaContext, CudaFunction, CudaModule, CudaStream, DriverError, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;

use super::driver::words;
use super::memory::Rows;
use super::ptx;
use crate::evaluate::kernels::Kernel;

/// An argument of a launch.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arg {
    Address(u64),
    Word(u32),
}

impl<T> From<Rows<'_, T>> for Arg {
    fn from(rows: Rows<'_, T>) -> Self {
        Self::Address(rows.address)
    }
}

impl From<u32> for Arg {
    fn from(word: u32) -> Self {
        Self::Word(word)
    }
}

impl From<usize> for Arg {
    /// All sizes of a chunk fit a word: `Batch` and `NodeRows` hold no more.
    fn from(n: usize) -> Self {
        Self::Word(n as u32)
    }
}

impl Arg {
    fn size(self) -> usize {
        match self {
            Self::Address(_) => size_of::<u64>(),
            Self::Word(_) => size_of::<u32>(),
        }
    }
}

/// An entry point.
#[derive(Debug)]
pub(super) struct Entry {
    function: CudaFunction,
    /// Threads a block.
    threads: u32,
    /// The sizes of its parameters, as the PTX declares them.
    sizes: Vec<usize>,
}

impl Entry {
    /// Puts a launch on a stream. All addresses among `args` are of rows that the kernel may use as its source says.
    pub(super) fn launch(
        &self,
        stream: &Arc<CudaStream>,
        grid: (usize, usize),
        args: &[Arg],
    ) -> Result<(), DriverError> {
        if !args.iter().map(|arg| arg.size()).eq(self.sizes.iter().copied()) {
            // The driver would read beyond the arguments.
            return Err(DriverError(CUresult::CUDA_ERROR_INVALID_VALUE));
        }
        let mut launch = stream.launch_builder(&self.function);
        for arg in args {
            match arg {
                Arg::Address(address) => launch.arg(address),
                Arg::Word(word) => launch.arg(word),
            };
        }
        let (x, y) = (grid.0 as u32, grid.1 as u32);
        let config = LaunchConfig { grid_dim: (x, y, 1), block_dim: (self.threads, 1, 1), shared_mem_bytes: 0 };
        // SAFETY: number and sizes of the arguments are those of the PTX, as was looked at above; their order and types
        // are those of the source, which the functions of `Kernels` follow line by line. The rows are of buffers of
        // this stream, or resident, with the lengths that are passed or documented; they are freed in the order of the
        // stream or after a wait. What is read was written before on this stream, or was waited for.
        unsafe { launch.launch(config) }.map(drop)
    }
}

/// The PTX of a kernel, handed to the driver.
pub(super) struct Loaded {
    kernel: Kernel,
    module: Arc<CudaModule>,
    declared: Vec<ptx::Entry<'static>>,
}

impl Loaded {
    pub(super) fn new(context: &Arc<CudaContext>, kernel: Kernel) -> Result<Self, String> {
        let module = context.load_module(Ptx::from_src(kernel.ptx()));
        let module = module.map_err(|error| format!("the kernel {} does not load: {}", kernel.name(), words(error)))?;
        Ok(Self { kernel, module, declared: ptx::entries(kernel.ptx()) })
    }

    pub(super) fn entry(&self, name: &str, threads: u32) -> Result<Entry, String> {
        let fail = |why| format!("the kernel {} has no entry point {name}: {why}", self.kernel.name());
        let declared = self.declared.iter().find(|entry| entry.name == name);
        let sizes = declared.ok_or_else(|| fail("its PTX declares none".into()))?.sizes.clone();
        let function = self.module.load_function(name).map_err(|error| fail(words(error)))?;
        Ok(Entry { function, threads, sizes })
    }
}
