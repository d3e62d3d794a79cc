//! The texts of the shaders: they are valid, go into every language that wgpu writes, and have the rows of the host.

use std::mem::offset_of;

use naga::back::{glsl, hlsl, msl, spv};
use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};
use slotwise::evaluate::abi::{
    Candidate, Need, NodeAmounts, NodeAttributes, NodeBits, NodeEdit, NodeGpuMilli, ScoreRow, Touch,
};
use slotwise::evaluate::{DemandClass, FgdRow, Kernel, WebGpu};
use slotwise::fragmentation::fgd::TypicalPod;

fn parsed(kernel: Kernel) -> (naga::Module, ModuleInfo) {
    let text = WebGpu::shader(kernel);
    let name = kernel.name();
    let module = naga::front::wgsl::parse_str(&text);
    let module = module.unwrap_or_else(|error| panic!("{name}: {}", error.emit_to_string(&text)));
    // No capability beyond the least.
    let mut validator = Validator::new(ValidationFlags::all(), Capabilities::empty());
    let info = validator.validate(&module);
    let info = info.unwrap_or_else(|error| panic!("{name}: {}", error.emit_to_string(&text)));
    (module, info)
}

#[test]
fn every_shader_is_valid_and_within_the_least_limits() {
    for &kernel in Kernel::ALL {
        let (module, info) = parsed(kernel);
        assert!(!module.entry_points.is_empty());
        let mut layouter = naga::proc::Layouter::default();
        layouter.update(module.to_ctx()).unwrap();
        for (number, entry) in module.entry_points.iter().enumerate() {
            assert!(entry.name.starts_with(kernel.name()), "{}", entry.name);
            assert!(entry.workgroup_size.iter().product::<u32>() <= 256, "{}", entry.name);
            let used = |space: fn(naga::AddressSpace) -> bool| {
                let info = info.get_entry_point(number);
                let variables = module.global_variables.iter();
                let used =
                    variables.filter(move |&(handle, variable)| !info[handle].is_empty() && space(variable.space));
                used.map(|(_, variable)| layouter[variable.ty].size).collect::<Vec<_>>()
            };
            let buffers = used(|space| matches!(space, naga::AddressSpace::Storage { .. })).len();
            assert!(buffers <= 8, "{}: {buffers} storage buffers", entry.name);
            let shared: u32 = used(|space| space == naga::AddressSpace::WorkGroup).iter().sum();
            assert!(shared <= 16_352, "{}: {shared} bytes", entry.name);
        }
    }
}

#[test]
fn every_shader_can_be_written_in_other_languages() {
    for &kernel in Kernel::ALL {
        let (module, info) = parsed(kernel);
        spv::write_vec(&module, &info, &spv::Options::default(), None).unwrap();
        // The least version that wgpu writes for.
        let options = msl::Options { lang_version: (2, 0), fake_missing_bindings: true, ..msl::Options::default() };
        let (text, _) = msl::write_string(&module, &info, &options, &msl::PipelineOptions::default()).unwrap();
        assert!(text.contains(kernel.name()));
        let options = hlsl::Options { fake_missing_bindings: true, ..hlsl::Options::default() };
        let mut text = String::new();
        hlsl::Writer::new(&mut text, &options, &hlsl::PipelineOptions::default()).write(&module, &info, None).unwrap();
        assert!(text.contains(kernel.name()));
        let options = glsl::Options { version: glsl::Version::Desktop(430), ..glsl::Options::default() };
        for entry in &module.entry_points {
            let pipeline = glsl::PipelineOptions {
                shader_stage: naga::ShaderStage::Compute,
                entry_point: entry.name.clone(),
                multiview: None,
            };
            let mut text = String::new();
            let policies = naga::proc::BoundsCheckPolicies::default();
            glsl::Writer::new(&mut text, &module, &info, &options, &pipeline, policies).unwrap().write().unwrap();
            assert!(text.contains("main"));
        }
    }
}

/// The fields of a row: in WGSL one word may hold several.
macro_rules! fields {
    ($row:ty: $($field:ident $(as $name:literal)?),*) => {
        (size_of::<$row>(), vec![$((fields!(@ $field $($name)?), offset_of!($row, $field))),*])
    };
    (@ $field:ident) => { stringify!($field) };
    (@ $field:ident $name:literal) => { $name };
}

#[test]
fn rows_are_the_same_bytes() {
    let rows = [
        ("NodeBits", fields!(NodeBits: capacity as "capacity_unused_free", state)),
        ("NodeAmounts", fields!(NodeAmounts: cpu, memory)),
        ("NodeAmounts", fields!(Need: cpu, memory)),
        ("NodeAttributes", fields!(NodeAttributes: pool, domain, rack, composition as "composition_flags")),
        ("NodeEdit", fields!(NodeEdit: node, unused, bits, amounts, attributes, gpu_milli)),
        ("Touch", fields!(Touch: node, need, freed as "freed_taken", step)),
        ("Candidate", fields!(Candidate: job, moves, moved_gpus, racks, domains, delta_phi_star, unused)),
        ("ScoreRow", fields!(ScoreRow: reason, delta_partial, left, entered, outside, opened, delta_empty, residual)),
        ("DemandClass", fields!(DemandClass: gpus, cpu, memory, order, domain, rack, pools_at, gpu_milli)),
        ("NodeGpuMilli", fields!(NodeGpuMilli: left)),
        ("TypicalPod", fields!(TypicalPod: cpu_milli, gpu_milli, gpus, count)),
        ("FgdRow", fields!(FgdRow: growth_low, growth_high, gpus)),
    ];
    for &kernel in Kernel::ALL {
        let (module, _) = parsed(kernel);
        let mut layouter = naga::proc::Layouter::default();
        layouter.update(module.to_ctx()).unwrap();
        for (name, (size, fields)) in &rows {
            let found = module.types.iter().find(|(_, ty)| ty.name.as_deref() == Some(name));
            let (handle, ty) = found.unwrap_or_else(|| panic!("no `{name}`"));
            let naga::TypeInner::Struct { members, span } = &ty.inner else { panic!("`{name}` is no struct") };
            assert_eq!((*span as usize, layouter[handle].to_stride() as usize), (*size, *size), "{name}");
            let found: Vec<_> =
                members.iter().map(|member| (member.name.as_deref().unwrap(), member.offset as usize)).collect();
            assert_eq!(found, *fields, "{name}");
        }
    }
    // Where halves of a word stand.
    assert_eq!(offset_of!(NodeBits, free), offset_of!(NodeBits, capacity) + 2);
    assert_eq!(offset_of!(Touch, taken), offset_of!(Touch, freed) + 2);
    assert_eq!(offset_of!(NodeAttributes, flags), offset_of!(NodeAttributes, composition) + 2);
}
