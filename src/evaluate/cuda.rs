//! The backend of NVIDIA's devices: the nodes are resident, batches go over in chunks, and scores come back.
//!
//! Only the driver is needed, and it is looked for at run time; the kernels come with the program as PTX. Nothing here
//! panics where there is no driver, no device or too old a one: those are errors.
//!
//! The host waits inside the driver, for no longer than a chunk takes. No signal is held back meanwhile: an interrupt
//! ends the program at once, and the driver cleans up behind it.

mod chunks;
mod device;
mod driver;
mod kernels;
mod lane;
mod memory;
mod ptx;
mod ranking;

use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult;

pub use driver::DRIVER_FUNCTIONS;

use self::device::Device;
use self::driver::{Driver, words};
use self::kernels::Kernels;
use super::abi::NodeEdit;
use super::backend::{Backend, DeviceInfo, EvalError};
use super::batch::{Batch, Scores};
use super::census::Census;
use super::measure::Speed;
use super::node_rows::NodeRows;
use super::query::NodeQuery;

/// The name of the backend, as in `--backend`.
const NAME: &str = "cuda";

/// Evaluates on the first CUDA device that can be used. `CUDA_VISIBLE_DEVICES` says which there are.
///
/// An error of the device other than a lack of memory is the end of it: every later call gives the same error at once.
/// The driver may then have done some of what it was asked for and not the rest, so nothing on the device can be
/// trusted.
#[derive(Debug)]
pub struct Cuda {
    device: Result<Device, EvalError>,
}

impl Cuda {
    /// Opens the device and loads the kernels.
    ///
    /// # Errors
    /// `Absent` if there is no driver library, or no device. `Unusable`, with the reason: a library without the functions
    /// that are called, a driver that does not understand the kernels, a device that is too old, or one that does not
    /// open.
    pub fn open() -> Result<Self, EvalError> {
        let open = || {
            let context = Driver::find()?.open()?;
            let context = memory::without_automatic_waits(context);
            let kernels = Kernels::load(&context)?;
            Device::new(context, kernels).map_err(words)
        };
        let device = open().map_err(|why| match driver::is_there() {
            true => EvalError::Unusable { backend: NAME, why },
            false => EvalError::Absent { backend: NAME, why },
        })?;
        Ok(Self { device: Ok(device) })
    }

    fn device(&self) -> Result<&Device, EvalError> {
        self.device.as_ref().map_err(EvalError::clone)
    }

    /// Does something on the device. If there is too little memory, once more with what else it holds given back and
    /// smaller chunks; all work can be done again from the start.
    fn run<T>(&mut self, mut work: impl FnMut(&mut Device) -> Result<T, DriverError>) -> Result<T, EvalError> {
        let device = self.device.as_mut().map_err(|error| error.clone())?;
        let mut attempt = |device: &mut Device| {
            let result = work(device)?;
            device.check().map(|()| result)
        };
        let mut result = attempt(device);
        if is_out_of_memory(&result) {
            result = device.shrink().and_then(|()| attempt(device));
        }
        if is_out_of_memory(&result) && device.shrink().is_ok() {
            return Err(EvalError::OutOfMemory(NAME));
        }
        result.map_err(|error| {
            let error = EvalError::Device(words(error));
            self.device = Err(error.clone());
            error
        })
    }
}

fn is_out_of_memory<T>(result: &Result<T, DriverError>) -> bool {
    matches!(result, Err(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY)))
}

impl Backend for Cuda {
    fn name(&self) -> &'static str {
        NAME
    }

    fn load(&mut self, nodes: &NodeRows) -> Result<(), EvalError> {
        self.run(|device| device.load(nodes))
    }

    /// Puts the edits on their way and returns; what is asked afterwards finds them applied.
    fn apply(&mut self, edits: &[NodeEdit]) -> Result<(), EvalError> {
        EvalError::check_edits(edits, self.device()?.nodes())?;
        self.run(|device| device.apply(edits))
    }

    fn evaluate(&mut self, batch: &Batch, out: &mut Scores) -> Result<(), EvalError> {
        EvalError::check_batch(batch, self.device()?.nodes())?;
        out.resize(batch);
        self.run(|device| device.evaluate(batch, out))
    }

    fn rank_nodes(&mut self, query: &NodeQuery, out: &mut Vec<u32>) -> Result<(), EvalError> {
        EvalError::check_query(query, self.device()?.pools())?;
        out.resize(query.width(), 0);
        self.run(|device| device.rank_nodes(query, out))
    }

    fn begin_ranking(&mut self, query: &NodeQuery) -> Result<bool, EvalError> {
        EvalError::check_query(query, self.device()?.pools())?;
        self.run(|device| device.begin_ranking(query))
    }

    fn census(&mut self, out: &mut Census) -> Result<(), EvalError> {
        self.run(|device| device.census(out))
    }

    fn measure(&mut self, batch: &Batch, passes: usize) -> Result<Speed, EvalError> {
        EvalError::check_batch(batch, self.device()?.nodes())?;
        self.run(|device| device.measure(batch, passes))
    }
}

/// Every CUDA device, and whether it can be used; or one line that says why there is none.
pub fn devices() -> Vec<DeviceInfo> {
    let info =
        |name, why: Option<String>| DeviceInfo { backend: NAME, name, usable: why.is_none(), software: false, why };
    let list = || {
        let driver = Driver::find()?;
        let devices = driver.devices()?;
        Ok::<_, String>(devices.iter().map(|device| info(driver.describe(device), device.too_old())).collect())
    };
    list().unwrap_or_else(|why| vec![info(String::new(), Some(why))])
}
