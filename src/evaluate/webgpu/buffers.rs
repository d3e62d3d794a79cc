//! Buffers that are reused and grow.

use wgpu::BufferUsages;

use super::NAME;
use super::device::Device;
use crate::evaluate::backend::EvalError;

/// Part of a buffer that a kernel sees as one array.
#[derive(Clone, Debug)]
pub(super) struct Part {
    buffer: wgpu::Buffer,
    offset: u64,
    size: u64,
}

/// A kernel cannot be given nothing; this is more than any row is large.
const LEAST_PART: u64 = 64;

impl Part {
    pub(super) fn buffer(&self) -> &wgpu::Buffer {
        &self.buffer
    }

    /// Copies the beginning of this part to that of another buffer's.
    pub(super) fn copy_to(&self, to: &Self, bytes: u64, commands: &mut wgpu::CommandEncoder) {
        if bytes > 0 {
            commands.copy_buffer_to_buffer(&self.buffer, self.offset, &to.buffer, to.offset, bytes);
        }
    }

    pub(super) fn binding(&self) -> wgpu::BindingResource<'_> {
        wgpu::BindingResource::Buffer(wgpu::BufferBinding {
            buffer: &self.buffer,
            offset: self.offset,
            size: std::num::NonZero::new(self.size),
        })
    }
}

/// A buffer that grows with what it is used for. Growing drops what it held.
#[derive(Debug)]
pub(super) struct Store {
    name: &'static str,
    usage: BufferUsages,
    buffer: Option<wgpu::Buffer>,
}

impl Store {
    /// For what the kernels write, and the host writes at most in part.
    pub(super) fn rows(name: &'static str) -> Self {
        Self::new(name, BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::COPY_DST)
    }

    /// For what the host writes before each call.
    pub(super) fn input(name: &'static str) -> Self {
        Self::new(name, BufferUsages::STORAGE | BufferUsages::UNIFORM | BufferUsages::COPY_DST | BufferUsages::COPY_SRC)
    }

    /// For what the host reads.
    pub(super) fn answers(name: &'static str) -> Self {
        Self::new(name, BufferUsages::MAP_READ | BufferUsages::COPY_DST)
    }

    fn new(name: &'static str, usage: BufferUsages) -> Self {
        Self { name, usage, buffer: None }
    }

    /// Room for so many bytes, at the buffer's beginning.
    ///
    /// # Errors
    /// If the device has no such room.
    pub(super) fn room(&mut self, device: &Device, bytes: u64) -> Result<Part, EvalError> {
        let size = bytes.max(LEAST_PART).next_multiple_of(4);
        device.fits(self.name, size, device.limits.buffer)?;
        let buffer = match self.buffer.take().filter(|buffer| buffer.size() >= size) {
            Some(buffer) => buffer,
            None => {
                let grown = size.checked_next_power_of_two().unwrap_or(size).min(device.limits.buffer);
                device.allocate(self.name, self.usage, grown)?
            }
        };
        self.buffer = Some(buffer.clone());
        Ok(Part { buffer, offset: 0, size })
    }

    /// Makes arrays parts of the buffer and writes them, in one transfer that begins with the next commands.
    ///
    /// # Errors
    /// If the device has no room for them, or fails.
    pub(super) fn write<const N: usize>(
        &mut self,
        device: &Device,
        arrays: [&[u8]; N],
    ) -> Result<[Part; N], EvalError> {
        let aligned = |bytes: u64| bytes.next_multiple_of(device.alignment());
        let sizes = arrays.map(|array| (array.len() as u64).max(LEAST_PART));
        let all = self.room(device, sizes.iter().map(|&size| aligned(size)).sum())?;
        let fault = || device.check().err().unwrap_or_else(|| device.fail("nothing can be written to a buffer"));
        let mut view = std::num::NonZero::new(all.size)
            .and_then(|size| device.queue.write_buffer_with(&all.buffer, 0, size))
            .ok_or_else(fault)?;
        let mut offset = 0;
        let parts = std::array::from_fn(|i| {
            let (begin, size) = (offset, sizes[i]);
            offset += aligned(size);
            view.slice(begin as usize..begin as usize + arrays[i].len()).copy_from_slice(arrays[i]);
            Part { buffer: all.buffer.clone(), offset: begin, size }
        });
        drop(view);
        device.check()?;
        Ok(parts)
    }
}

impl Device {
    /// Where parts of a buffer may begin.
    fn alignment(&self) -> u64 {
        let limits = self.device.limits();
        u64::from(limits.min_storage_buffer_offset_alignment.max(limits.min_uniform_buffer_offset_alignment))
    }

    /// Whether an array is not too large.
    ///
    /// # Errors
    /// How large it is, and how large it may be.
    pub(super) fn fits(&self, what: &'static str, bytes: u64, most: u64) -> Result<(), EvalError> {
        if bytes <= most { Ok(()) } else { Err(EvalError::DoesNotFit { what, bytes, most }) }
    }

    fn allocate(&self, name: &'static str, usage: BufferUsages, size: u64) -> Result<wgpu::Buffer, EvalError> {
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let descriptor = wgpu::BufferDescriptor { label: Some(name), size, usage, mapped_at_creation: false };
        let buffer = self.device.create_buffer(&descriptor);
        // Nothing has been done yet, and the device is as it was.
        if pollster::block_on(scope.pop()).is_some() {
            return Err(EvalError::OutOfMemory(NAME));
        }
        self.check().map(|()| buffer)
    }

    /// Writes an array to the beginning of a part, so much at a time that what is under way stays small.
    ///
    /// # Errors
    /// If the device fails.
    pub(super) fn upload(&self, part: &Part, bytes: &[u8]) -> Result<(), EvalError> {
        let mut offset = part.offset;
        let step = (self.limits.piece.next_multiple_of(4)) as usize;
        for (number, chunk) in bytes.chunks(step).enumerate() {
            self.queue.write_buffer(&part.buffer, offset, chunk);
            offset += chunk.len() as u64;
            if number > 0 {
                self.wait(&self.send(self.commands().finish())?)?;
            }
        }
        self.check()
    }

    /// Hands the bytes of a buffer for answers to `take`, once the commands that fill it are done.
    ///
    /// # Errors
    /// If the device fails.
    pub(super) fn read(
        &self,
        sent: &wgpu::SubmissionIndex,
        answers: &Part,
        take: impl FnOnce(&[u8]),
    ) -> Result<(), EvalError> {
        let slice = answers.buffer.slice(..answers.size);
        // Whether it worked is seen when the range is asked for.
        slice.map_async(wgpu::MapMode::Read, |_| ());
        self.wait(sent)?;
        match slice.get_mapped_range() {
            Ok(view) => take(&view),
            Err(error) => return Err(self.fail(&error.to_string())),
        }
        answers.buffer.unmap();
        self.check()
    }
}
