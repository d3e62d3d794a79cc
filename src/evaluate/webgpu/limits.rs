//! How much of a device is used. All that is chunked is chunked by these numbers, so that tests can make them small.

use std::time::Duration;

use crate::evaluate::backend::EvalError;

/// The limits of a device that matter here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a buffer that a kernel sees at once.
    pub binding: u64,
    /// Bytes of a buffer.
    pub buffer: u64,
    /// Workgroups of a dispatch; a kernel walks its work in steps of so many.
    pub groups: u32,
    /// Bytes of the touches of a batch that go over at once, while those before are scored.
    pub piece: u64,
    /// Bytes for the counts of keys in `rank_nodes`.
    pub scratch: u64,
    /// How long a device may take for one piece of work before it counts as lost. None takes a second where it is
    /// real, some seconds where a processor stands in for it.
    pub patience: Duration,
}

impl Default for Limits {
    /// As much as the device has, up to what more of would not make anything faster.
    fn default() -> Self {
        Self {
            binding: u64::MAX,
            buffer: u64::MAX,
            groups: u32::MAX,
            piece: 64 << 20,
            scratch: 128 << 20,
            patience: Duration::from_secs(300),
        }
    }
}

/// Bytes below which a binding is of no use: the counts of compositions are as large.
const LEAST_BINDING: u64 = 4 << 10;

/// What is asked of a device besides, all of it within the defaults of WebGPU: storage buffers a kernel, threads of a
/// workgroup and bytes that they share.
const NEEDED: [(&str, u32); 3] =
    [("storage buffers a kernel", 8), ("threads a workgroup", 256), ("bytes a workgroup", 16_352)];

impl Limits {
    /// These limits on an adapter that has those.
    ///
    /// # Errors
    /// If the adapter has too little for any work.
    pub(super) fn within(&self, adapter: &wgpu::Limits) -> Result<Self, EvalError> {
        let found = [
            adapter.max_storage_buffers_per_shader_stage,
            adapter.max_compute_invocations_per_workgroup.min(adapter.max_compute_workgroup_size_x),
            adapter.max_compute_workgroup_storage_size,
        ];
        for ((what, needed), found) in NEEDED.into_iter().zip(found) {
            if found < needed {
                return Err(absent(format!("it has {found} {what}, {needed} are needed")));
            }
        }
        let binding = self.binding.min(adapter.max_storage_buffer_binding_size) & !3;
        let buffer = self.buffer.min(adapter.max_buffer_size) & !3;
        if binding < LEAST_BINDING || buffer < 4 * LEAST_BINDING {
            return Err(absent(format!("its buffers are of {buffer} bytes and bindings of {binding}: too small")));
        }
        Ok(Self {
            binding,
            buffer,
            groups: self.groups.min(adapter.max_compute_workgroups_per_dimension).max(1),
            piece: self.piece.min(binding).min(buffer / 4),
            scratch: self.scratch.min(binding).min(buffer),
            patience: self.patience,
        })
    }

    /// What is asked of an adapter, so that going beyond these limits is an error there too.
    pub(super) fn required(&self, adapter: &wgpu::Limits) -> wgpu::Limits {
        wgpu::Limits {
            max_storage_buffer_binding_size: self.binding,
            max_buffer_size: self.buffer,
            max_compute_workgroups_per_dimension: self.groups,
            ..wgpu::Limits::defaults().or_worse_values_from(adapter)
        }
    }
}

/// The backend cannot be used, for this reason.
pub(super) fn absent(why: String) -> EvalError {
    EvalError::Absent { backend: super::NAME, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lesser_of_two_limits_holds() {
        let adapter = wgpu::Limits::defaults();
        let limits = Limits::default().within(&adapter).unwrap();
        assert_eq!((limits.binding, limits.buffer, limits.groups), (128 << 20, 256 << 20, 65_535));
        assert_eq!((limits.piece, limits.scratch), (64 << 20, 128 << 20));
        let small = Limits { binding: 4097, piece: 100, groups: 0, ..Limits::default() };
        let limits = small.within(&adapter).unwrap();
        assert_eq!((limits.binding, limits.piece, limits.groups, limits.scratch), (4096, 100, 1, 4096));
        let required = limits.required(&adapter);
        assert_eq!(required.max_storage_buffer_binding_size, 4096);
        assert!(required.check_limits(&adapter));
    }

    #[test]
    fn what_is_too_small_is_refused_with_numbers() {
        let adapter = wgpu::Limits { max_storage_buffers_per_shader_stage: 4, ..wgpu::Limits::defaults() };
        let error = Limits::default().within(&adapter).unwrap_err().to_string();
        assert!(error.contains("it has 4 storage buffers a kernel, 8 are needed"), "{error}");
        let tiny = Limits { binding: 1000, ..Limits::default() };
        let error = tiny.within(&wgpu::Limits::defaults()).unwrap_err().to_string();
        assert!(error.contains("bindings of 1000"), "{error}");
    }
}
