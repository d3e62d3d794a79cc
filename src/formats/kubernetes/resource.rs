//! What a resource stands for, by its name.

/// What a resource stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resource {
    /// Whole GPUs.
    Gpu,
    /// Slices of GPUs.
    Slice,
    /// Shares of GPUs.
    Share,
    /// Something else.
    Other,
}

/// By its name.
pub(super) fn resource(name: &str) -> Resource {
    match name {
        "nvidia.com/gpu" | "amd.com/gpu" | "gpu.intel.com/i915" | "gpu.intel.com/xe" => Resource::Gpu,
        "nvidia.com/gpu.shared" | "nvidia.com/gpumem" | "nvidia.com/gpucores" | "nvidia.com/gpumem-percentage" => {
            Resource::Share
        }
        _ if name.starts_with("nvidia.com/mig-") => Resource::Slice,
        _ if name.starts_with("volcano.sh/vgpu-") || name.starts_with("amd.com/gpu-") => Resource::Share,
        _ if name.starts_with("alibabacloud.com/gpu-") || name.starts_with("aliyun.com/gpu-") => Resource::Share,
        _ => Resource::Other,
    }
}
