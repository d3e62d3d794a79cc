//! Whether there is a CUDA driver that can be used, and which devices it has. Whatever is missing is said in words.
#![expect(unsafe_code, reason = "the driver is a foreign library that is looked for at run time")]

use std::ffi::c_int;
use std::sync::Arc;

use cudarc::driver::result::{self, device};
use cudarc::driver::sys::{self, CUdevice_attribute, CUresult};
use cudarc::driver::{CudaContext, DriverError};

use super::ptx;
use crate::evaluate::kernels::Kernel;

/// The functions of the driver library that are called. The library looks each up at its first use, and panics if it
/// is not there; so all are asked for before any is called.
pub const DRIVER_FUNCTIONS: [&str; 37] = [
    "cuInit",
    "cuDriverGetVersion",
    "cuGetErrorString",
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDeviceGetName",
    "cuDeviceTotalMem_v2",
    "cuDeviceGetAttribute",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2",
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuCtxSynchronize",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuEventElapsedTime",
    "cuMemGetInfo_v2",
    "cuMemAlloc_v2",
    "cuMemAllocAsync",
    "cuMemFree_v2",
    "cuMemFreeAsync",
    "cuMemHostAlloc",
    "cuMemFreeHost",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyDtoDAsync_v2",
    "cuMemsetD8Async",
    "cuModuleLoadData",
    "cuModuleUnload",
    "cuModuleGetFunction",
    "cuLaunchKernel",
];

/// The least compute capability that the PTX is made for.
const LEAST_CAPABILITY: (i32, i32) = (7, 5);

/// A driver that is there and initialised.
pub(super) struct Driver {
    /// As the driver tells it: 12080 is 12.8.
    version: i32,
}

/// A device that the driver knows.
pub(super) struct Found {
    ordinal: c_int,
    name: String,
    memory: usize,
    capability: (i32, i32),
}

/// Whether there is a driver and a device at all, whatever else is wrong with them.
pub(super) fn is_there() -> bool {
    // SAFETY: opens the library by its name and closes it again; what it does at that is up to the installed driver.
    if !unsafe { sys::is_culib_present() } {
        return false;
    }
    // SAFETY: as above. It was found a moment ago, and stays open from here on.
    let library = unsafe { sys::culib() };
    // SAFETY: only whether it is there is looked at; the address is not called, so its type does not matter.
    let starts = unsafe { library.get::<unsafe extern "C" fn()>(b"cuInit") }.is_ok();
    !starts || !matches!(result::init(), Err(DriverError(CUresult::CUDA_ERROR_NO_DEVICE)))
}

impl Driver {
    /// Looks for the library, for what is called of it, and for devices.
    pub(super) fn find() -> Result<Self, String> {
        // SAFETY: opens the library by its name and closes it again; what it does at that is the driver's business.
        if !unsafe { sys::is_culib_present() } {
            return Err("there is no CUDA driver library".into());
        }
        // SAFETY: as above. It was found a moment ago, and stays open from here on.
        let library = unsafe { sys::culib() };
        for name in DRIVER_FUNCTIONS {
            // SAFETY: only whether it is there is looked at; the address is not called, so its type does not matter.
            if unsafe { library.get::<unsafe extern "C" fn()>(name.as_bytes()) }.is_err() {
                return Err(format!("the CUDA driver library has no {name}"));
            }
        }
        match result::init() {
            Ok(()) => {}
            Err(DriverError(CUresult::CUDA_ERROR_NO_DEVICE)) => return Err("there is no CUDA device".into()),
            Err(error) => return Err(format!("the CUDA driver does not start: {}", words(error))),
        }
        let mut version = 0;
        // SAFETY: writes one integer, which outlives the call.
        unsafe { sys::cuDriverGetVersion(&mut version) }.result().map_err(words)?;
        let driver = Self { version };
        let needed = needed_version();
        if version < needed {
            let (has, needs) = (dotted(version), dotted(needed));
            return Err(format!("the driver is for CUDA {has}; the kernels need one for {needs} or later"));
        }
        Ok(driver)
    }

    /// The devices, of all capabilities.
    pub(super) fn devices(&self) -> Result<Vec<Found>, String> {
        let count = device::get_count().map_err(words)?;
        (0..count).map(|ordinal| Found::ask(ordinal).map_err(words)).collect()
    }

    /// The first device that can be used, and its context.
    pub(super) fn open(&self) -> Result<Arc<CudaContext>, String> {
        let devices = self.devices()?;
        let Some(device) = devices.iter().find(|device| device.too_old().is_none()) else {
            return Err(devices.first().and_then(Found::too_old).unwrap_or_else(|| "there is no CUDA device".into()));
        };
        CudaContext::new(device.ordinal as usize)
            .map_err(|error| format!("{} does not open: {}", device.name, words(error)))
    }

    /// What a person wants to know of a device.
    pub(super) fn describe(&self, device: &Found) -> String {
        let (major, minor) = device.capability;
        let gib = device.memory as f64 / f64::from(1 << 30);
        format!(
            "{}, {gib:.1} GiB, compute capability {major}.{minor}, driver for CUDA {}",
            device.name,
            dotted(self.version)
        )
    }
}

impl Found {
    fn ask(ordinal: c_int) -> Result<Self, DriverError> {
        let device = device::get(ordinal)?;
        let attribute = |which| {
            // SAFETY: the driver has just given this device.
            unsafe { device::get_attribute(device, which) }
        };
        let major = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        // SAFETY: as above.
        let memory = unsafe { device::total_mem(device) }?;
        Ok(Self { ordinal, name: device::get_name(device)?, memory, capability: (major, minor) })
    }

    /// Why it cannot be used, if it cannot.
    pub(super) fn too_old(&self) -> Option<String> {
        let ((major, minor), (least, least_minor)) = (self.capability, LEAST_CAPABILITY);
        (self.capability < LEAST_CAPABILITY).then(|| {
            format!("{} has compute capability {major}.{minor}; the kernels need {least}.{least_minor}", self.name)
        })
    }
}

/// The driver version that all PTX asks for.
fn needed_version() -> i32 {
    Kernel::ALL.iter().filter_map(|kernel| ptx::driver_version(kernel.ptx())).max().unwrap_or(0)
}

fn dotted(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// An error of the driver in the driver's own words.
pub(super) fn words(error: DriverError) -> String {
    match error.error_string() {
        Ok(text) => format!("{} ({:?})", text.to_string_lossy(), error.0),
        Err(_) => format!("{:?}", error.0),
    }
}
