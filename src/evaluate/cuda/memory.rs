//! Memory of the device, and the pinned host memory that it is filled from.
//!
//! The automatic waits of the library are switched off: they cost several calls for every argument of a launch, and hide
//! their errors. What takes their place is little: a buffer is used on the stream that it was allocated on, but for the
//! resident rows, which `Device` orders by events; and host memory is touched again only after a wait.
#![expect(unsafe_code, reason = "memory is not cleared before it is written")]

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use bytemuck::Pod;
use cudarc::driver::{
    CudaContext, CudaSlice, CudaStream, CudaView, CudaViewMut, DevicePtr, DriverError, PinnedHostSlice, sys,
};
use rayon::prelude::*;

/// All rows are made of these.
const WORD: usize = size_of::<u32>();

/// Where a section of a buffer begins: a multiple of what the device reads at once.
const ALIGNMENT: usize = 256;

/// Copied to or from pinned memory by one thread; a core alone is slower than the bus.
const PIECE: usize = 512 << 10;

/// A context whose buffers do not wait for one another by themselves. It has none yet.
pub(super) fn without_automatic_waits(context: Arc<CudaContext>) -> Arc<CudaContext> {
    // SAFETY: no buffer has been made with the waits, and the rest of this module is written without them: a buffer is
    // used on the stream that allocated it, and freed in the order of that. The resident rows are used on a second one,
    // after a wait for what was put on the first, and are only touched there when the host has waited for the second.
    unsafe { context.disable_event_tracking() };
    context
}

/// Rows of one type in a buffer, on the host or the device.
#[derive(Debug)]
pub(super) struct Section<T> {
    /// In bytes.
    at: usize,
    len: usize,
    rows: PhantomData<T>,
}

impl<T> Clone for Section<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Section<T> {}

impl<T: Pod> Section<T> {
    fn words(self) -> Range<usize> {
        let first = self.at / WORD;
        first..first + self.len * size_of::<T>() / WORD
    }
}

/// Sections one after the other.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Layout {
    /// In bytes.
    pub(super) bytes: usize,
}

impl Layout {
    /// Adds a section at the end.
    pub(super) fn section<T: Pod>(&mut self, len: usize) -> Section<T> {
        let at = self.bytes;
        self.bytes = (at + len * size_of::<T>()).next_multiple_of(ALIGNMENT);
        Section { at, len, rows: PhantomData }
    }
}

/// Rows on the device, as a kernel is told of them.
#[derive(Debug)]
pub(super) struct Rows<'a, T> {
    /// 0 if there is no buffer, which holds no rows.
    pub(super) address: u64,
    pub(super) len: usize,
    buffer: PhantomData<&'a T>,
}

impl<T> Clone for Rows<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Rows<'_, T> {}

/// Words on the device. It grows, and forgets what it held when it does.
#[derive(Debug)]
pub(super) struct DeviceBuffer {
    stream: Arc<CudaStream>,
    words: Option<CudaSlice<u32>>,
}

impl DeviceBuffer {
    /// Empty, on this stream.
    pub(super) fn new(stream: &Arc<CudaStream>) -> Self {
        Self { stream: stream.clone(), words: None }
    }

    fn len(&self) -> usize {
        self.words.as_ref().map_or(0, CudaSlice::len)
    }

    /// Makes room for so many bytes. What the host put on other streams must not use it any more.
    pub(super) fn reserve(&mut self, bytes: usize) -> Result<(), DriverError> {
        let Some(words) = grown(self.len(), bytes) else { return Ok(()) };
        // The old one first: there may not be room for both.
        self.free();
        // SAFETY: every pattern of bits is a word, and a kernel or a download reads only what was written before.
        self.words = Some(unsafe { self.stream.alloc(words) }?);
        Ok(())
    }

    /// Gives its memory back.
    pub(super) fn free(&mut self) {
        self.words = None;
    }

    /// A section of it.
    pub(super) fn rows<T: Pod>(&self, section: Section<T>) -> Rows<'_, T> {
        let base = self.words.as_ref().map(|words| words.device_ptr(&self.stream).0);
        let address = base.map_or(0, |base| base + section.at as u64);
        Rows { address, len: section.len, buffer: PhantomData }
    }

    /// Copies words to the device, in the order of its stream. Words that are pinned must stay as they are until the
    /// stream has been waited for.
    pub(super) fn upload(&mut self, at: usize, words: &[u32]) -> Result<(), DriverError> {
        if words.is_empty() {
            return Ok(());
        }
        let stream = self.stream.clone();
        stream.memcpy_htod(words, &mut self.part_mut(at..at + words.len())?)
    }

    /// Copies rows to a section, at once.
    pub(super) fn upload_rows<T: Pod>(&mut self, section: Section<T>, rows: &[T]) -> Result<(), DriverError> {
        self.upload(section.words().start, bytemuck::cast_slice(rows))
    }

    /// Copies its first words to pinned memory, in the order of its stream. They are there once that was waited for.
    pub(super) fn download(&self, words: &mut [u32]) -> Result<(), DriverError> {
        if words.is_empty() {
            return Ok(());
        }
        self.stream.memcpy_dtoh(&self.part(0..words.len())?, words)
    }

    /// Sets its first bytes to zero, in the order of its stream.
    pub(super) fn clear(&mut self, bytes: usize) -> Result<(), DriverError> {
        let stream = self.stream.clone();
        stream.memset_zeros(&mut self.part_mut(0..bytes / WORD)?)
    }

    /// Copies the first bytes of another buffer, in the order of its stream.
    pub(super) fn copy_from(&mut self, other: &Self, bytes: usize) -> Result<(), DriverError> {
        let stream = self.stream.clone();
        stream.memcpy_dtod(&other.part(0..bytes / WORD)?, &mut self.part_mut(0..bytes / WORD)?)
    }

    fn part(&self, words: Range<usize>) -> Result<CudaView<'_, u32>, DriverError> {
        self.words.as_ref().and_then(|all| all.try_slice(words)).ok_or(TOO_SHORT)
    }

    fn part_mut(&mut self, words: Range<usize>) -> Result<CudaViewMut<'_, u32>, DriverError> {
        self.words.as_mut().and_then(|all| all.try_slice_mut(words)).ok_or(TOO_SHORT)
    }
}

/// What the driver says of a range beyond its buffer.
const TOO_SHORT: DriverError = DriverError(sys::CUresult::CUDA_ERROR_INVALID_VALUE);

/// Words of the host that the device copies from or to by itself. It grows, and forgets what it held when it does.
#[derive(Debug)]
pub(super) struct Pinned {
    context: Arc<CudaContext>,
    flags: u32,
    words: Option<PinnedHostSlice<u32>>,
}

impl Pinned {
    /// For uploads: quick to write, very slow to read.
    pub(super) fn to_write(context: &Arc<CudaContext>) -> Self {
        Self { context: context.clone(), flags: sys::CU_MEMHOSTALLOC_WRITECOMBINED, words: None }
    }

    /// For downloads.
    pub(super) fn to_read(context: &Arc<CudaContext>) -> Self {
        Self { context: context.clone(), flags: 0, words: None }
    }

    /// Makes room for so many bytes. Nothing may be copying it.
    pub(super) fn reserve(&mut self, bytes: usize) -> Result<(), DriverError> {
        let Some(words) = grown(self.words.as_ref().map_or(0, PinnedHostSlice::len), bytes) else { return Ok(()) };
        self.free();
        // SAFETY: every pattern of bits is a word, and only what was written before is read: by an upload after it was
        // staged, by the host after a download.
        self.words = Some(unsafe { self.context.alloc_pinned_with_flags(words, self.flags) }?);
        Ok(())
    }

    /// Gives its memory back. Nothing may be copying it.
    pub(super) fn free(&mut self) {
        self.words = None;
    }

    /// Its words. Nothing may be copying them.
    pub(super) fn words(&mut self) -> Result<&mut [u32], DriverError> {
        self.words.as_mut().map_or(Ok(&mut []), PinnedHostSlice::as_mut_slice)
    }
}

/// How many words are to hold so many bytes, if the words that are there do not: half as many again at least, so that
/// batches that become larger one by one do not each pay for new memory.
fn grown(words: usize, bytes: usize) -> Option<usize> {
    let wanted = bytes.div_ceil(WORD);
    (wanted > words).then(|| wanted.max(words + words / 2))
}

/// Writes rows to their section of the host's words.
pub(super) fn stage<T: Pod>(words: &mut [u32], section: Section<T>, rows: &[T]) {
    copy(&mut words[section.words()], bytemuck::cast_slice(rows));
}

/// Reads the rows of a section of the host's words.
pub(super) fn unstage<T: Pod>(words: &[u32], section: Section<T>, rows: &mut [T]) {
    copy(bytemuck::cast_slice_mut(rows), &words[section.words()]);
}

fn copy(to: &mut [u32], from: &[u32]) {
    let piece = PIECE / WORD;
    if from.len() <= 2 * piece {
        return to.copy_from_slice(from);
    }
    to.par_chunks_mut(piece).zip(from.par_chunks(piece)).for_each(|(to, from)| to.copy_from_slice(from));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::abi::{ScoreRow, Touch};

    #[test]
    fn sections_are_aligned_and_apart() {
        let mut layout = Layout::default();
        let (a, b, c) = (layout.section::<Touch>(17), layout.section::<u32>(0), layout.section::<ScoreRow>(3));
        assert_eq!((a.words(), b.words(), c.words()), (0..68, 128..128, 128..152));
        assert_eq!(layout.bytes, 768);
    }

    #[test]
    fn memory_grows_by_half_at_least() {
        assert_eq!([grown(0, 0), grown(0, 5), grown(2, 8)], [None, Some(2), None]);
        assert_eq!([grown(100, 401), grown(100, 1000)], [Some(150), Some(250)]);
    }

    #[test]
    fn rows_survive_staging_in_pieces() {
        let mut layout = Layout::default();
        let (_, section) = (layout.section::<u32>(5), layout.section::<Touch>(200_000));
        let rows: Vec<Touch> = (0..200_000).map(|node| Touch { node, ..Touch::default() }).collect();
        let (mut words, mut back) = (vec![7; layout.bytes / WORD], vec![Touch::default(); 200_000]);
        stage(&mut words, section, &rows);
        unstage(&words, section, &mut back);
        assert_eq!(rows, back);
        assert_eq!(words[..64], [7; 64]);
    }
}
