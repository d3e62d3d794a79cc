//! A device: what is compiled for it, what is asked of it, and what went wrong with it.
//!
//! wgpu reports an error to a handler and goes on with an object that does nothing. The first error is kept here, and
//! everything after it fails with that error: a result is only ever handed out if nothing went wrong before.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use super::adapter::Opened;
use super::buffers::Part;
use super::limits::Limits;
use crate::evaluate::backend::EvalError;
use crate::evaluate::kernels::Kernel;

/// An open device.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) device: wgpu::Device,
    pub(super) queue: wgpu::Queue,
    pub(super) limits: Limits,
    fault: Arc<OnceLock<String>>,
}

/// An entry point of a kernel, compiled.
#[derive(Debug)]
pub(super) struct Entry {
    pipeline: wgpu::ComputePipeline,
    layout: wgpu::BindGroupLayout,
}

/// A call of an entry point.
#[derive(Debug)]
pub(super) struct Call<'a> {
    entry: &'a Entry,
    bindings: wgpu::BindGroup,
    groups: u32,
}

impl Device {
    pub(super) fn new(opened: Opened) -> Self {
        let Opened { device, queue, limits, .. } = opened;
        let fault = Arc::new(OnceLock::new());
        let first = Arc::clone(&fault);
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| _ = first.set(error.to_string())));
        let first = Arc::clone(&fault);
        device.set_device_lost_callback(move |reason, message| {
            let why = if message.is_empty() { format!("{reason:?}") } else { message };
            _ = first.set(format!("the device was lost: {why}"));
        });
        Self { device, queue, limits, fault }
    }

    /// Whether all went well so far.
    ///
    /// # Errors
    /// The first thing that did not.
    pub(super) fn check(&self) -> Result<(), EvalError> {
        self.fault.get().map_or(Ok(()), |fault| Err(EvalError::Device(fault.clone())))
    }

    /// Something went wrong that wgpu has no handler for; perhaps because of something that it has one for.
    pub(super) fn fail(&self, why: &str) -> EvalError {
        _ = self.poll(wgpu::PollType::Poll);
        EvalError::Device(self.fault.get_or_init(|| why.to_owned()).clone())
    }

    /// Lets wgpu call its handlers, and waits if asked to. `None` if the driver says that the device is lost: wgpu panics
    /// there, and only there. None of our state is involved.
    fn poll(&self, how: wgpu::PollType) -> Option<Result<wgpu::PollStatus, wgpu::PollError>> {
        catch_unwind(AssertUnwindSafe(|| self.device.poll(how))).ok()
    }

    /// Compiles entry points of a kernel from its text.
    ///
    /// # Errors
    /// If the text, or the driver's compiler, is at fault.
    pub(super) fn compile<const N: usize>(
        &self,
        kernel: Kernel,
        text: String,
        entry_points: [&str; N],
    ) -> Result<[Entry; N], EvalError> {
        let module = self.device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some(kernel.name()),
            source: wgpu::ShaderSource::Wgsl(text.into()),
        });
        let entries = entry_points.map(|entry_point| {
            let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: Some(entry_point),
                layout: None,
                module: &module,
                entry_point: Some(entry_point),
                compilation_options: wgpu::PipelineCompilationOptions {
                    // The kernels write what they read.
                    zero_initialize_workgroup_memory: false,
                    ..Default::default()
                },
                cache: None,
            });
            let layout = pipeline.get_bind_group_layout(0);
            Entry { pipeline, layout }
        });
        self.check()?;
        Ok(entries)
    }

    /// A call of an entry point with these bindings, for so many workgroups' work.
    pub(super) fn call<'a>(&self, entry: &'a Entry, bindings: &[(u32, &Part)], groups: u64) -> Call<'a> {
        let entries: Vec<_> = bindings
            .iter()
            .map(|&(binding, part)| wgpu::BindGroupEntry { binding, resource: part.binding() })
            .collect();
        let bindings = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &entry.layout,
            entries: &entries,
        });
        Call { entry, bindings, groups: groups.min(u64::from(self.limits.groups)) as u32 }
    }

    /// Commands that are not sent yet.
    pub(super) fn commands(&self) -> wgpu::CommandEncoder {
        self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default())
    }

    /// Sends commands, after what was written before; does not wait for them.
    ///
    /// # Errors
    /// If anything went wrong so far.
    pub(super) fn send(&self, commands: wgpu::CommandBuffer) -> Result<wgpu::SubmissionIndex, EvalError> {
        let sent = self.queue.submit([commands]);
        self.check().map(|()| sent)
    }

    /// Waits for commands that were sent.
    ///
    /// # Errors
    /// If anything went wrong, or the device does not answer within its `patience`.
    pub(super) fn wait(&self, sent: &wgpu::SubmissionIndex) -> Result<(), EvalError> {
        let wait = wgpu::PollType::Wait { submission_index: Some(sent.clone()), timeout: Some(self.limits.patience) };
        let why = match self.poll(wait) {
            Some(Ok(_)) => return self.check(),
            Some(Err(wgpu::PollError::Timeout)) => format!("no answer for {} s", self.limits.patience.as_secs()),
            Some(Err(error)) => error.to_string(),
            None => "the device was lost".to_owned(),
        };
        // To give back a queue is to wait for it, which is what went wrong.
        std::mem::forget((self.device.clone(), self.queue.clone()));
        Err(self.fail(&why))
    }
}

impl Call<'_> {
    /// Puts the call among the commands of a pass.
    pub(super) fn put(&self, pass: &mut wgpu::ComputePass<'_>) {
        if self.groups > 0 {
            pass.set_pipeline(&self.entry.pipeline);
            pass.set_bind_group(0, &self.bindings, &[]);
            pass.dispatch_workgroups(self.groups, 1, 1);
        }
    }
}

/// Puts calls among commands, one after the other.
pub(super) fn put(calls: &[Call<'_>], commands: &mut wgpu::CommandEncoder) {
    let mut pass = commands.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
    calls.iter().for_each(|call| call.put(&mut pass));
}
