//! The numbers that the kernels' texts share with the host.

use std::mem::offset_of;

use super::{WebGpu, nodes, rank, score};
use crate::cluster::N_COMPOSITIONS;
use crate::evaluate::abi::{NONE, NodeAttributes, PackedState};
use crate::evaluate::census::PoolCensus;
use crate::evaluate::kernels::Kernel;
use crate::evaluate::query::NodeOrder;
use crate::evaluate::reason::Reason;

fn parsed(kernel: Kernel) -> naga::Module {
    naga::front::wgsl::parse_str(&WebGpu::shader(kernel)).unwrap()
}

/// A constant of a kernel, worked out.
fn constant(module: &naga::Module, name: &str) -> u32 {
    let found = module.constants.iter().find(|(_, constant)| constant.name.as_deref() == Some(name));
    let (_, constant) = found.unwrap_or_else(|| panic!("no `{name}`"));
    match module.global_expressions[constant.init] {
        naga::Expression::Literal(naga::Literal::U32(number)) => number,
        ref other => panic!("`{name}` is {other:?}"),
    }
}

#[test]
fn all_kernels_have_the_constants_of_the_rows() {
    for &kernel in Kernel::ALL {
        let module = parsed(kernel);
        for (name, expected) in [
            ("NONE", NONE),
            ("ANCHOR", PackedState::ANCHOR),
            ("SLACK", PackedState::SLACK),
            ("NOT_FULL", PackedState::NOT_FULL),
            ("NOT_EMPTY", PackedState::NOT_EMPTY),
            ("OVERFLOW", PackedState::OVERFLOW),
            ("WAS_OUTSIDE", PackedState::WAS_OUTSIDE),
            ("SCHEDULABLE", u32::from(NodeAttributes::SCHEDULABLE) << 16),
        ] {
            assert_eq!(constant(&module, name), expected, "{}: {name}", kernel.name());
        }
    }
}

#[test]
fn each_kernel_has_the_constants_of_its_host() {
    let word = |offset: usize| (offset / size_of::<u32>()) as u32;
    let scoring = [
        ("TILE", score::TILE as u32),
        ("JOINERS", score::JOINERS as u32),
        ("REASON_GPU_BUSY", Reason::GpuBusy.number()),
        ("REASON_NO_CPU", Reason::NoCpu.number()),
        ("REASON_NO_MEMORY", Reason::NoMemory.number()),
    ];
    let ranking = [
        ("TILE", rank::TILE as u32),
        ("KEYS", rank::KEYS as u32),
        ("CLASSES", rank::CLASSES as u32),
        ("FIRST_FIT", NodeOrder::FirstFit as u32),
        ("BEST_FIT", NodeOrder::BestFit as u32),
        ("WORST_FIT", NodeOrder::WorstFit as u32),
    ];
    let counting = [
        ("TILE", nodes::TILE as u32),
        ("N_COMPOSITIONS", N_COMPOSITIONS as u32),
        ("POOL_WORDS", word(size_of::<PoolCensus>())),
        ("POOL_NODES", word(offset_of!(PoolCensus, nodes))),
        ("POOL_UNSCHEDULABLE", word(offset_of!(PoolCensus, unschedulable))),
        ("POOL_EMPTY", word(offset_of!(PoolCensus, empty))),
        ("POOL_PARTIAL", word(offset_of!(PoolCensus, partial))),
        ("POOL_FULL", word(offset_of!(PoolCensus, full))),
        ("POOL_SLOTS_OVERFLOW", word(offset_of!(PoolCensus, slots_overflow))),
        ("POOL_NO_VACANCY", word(offset_of!(PoolCensus, no_vacancy))),
        ("POOL_BY_FREE", word(offset_of!(PoolCensus, by_free))),
    ];
    for (kernel, pairs) in
        [(Kernel::score_candidates, &scoring[..]), (Kernel::rank_nodes, &ranking[..]), (Kernel::census, &counting[..])]
    {
        let module = parsed(kernel);
        for &(name, expected) in pairs {
            assert_eq!(constant(&module, name), expected, "{}: {name}", kernel.name());
        }
    }
}

#[test]
fn heads_are_as_large_as_the_host_has_them() {
    let module = parsed(Kernel::score_candidates);
    let head = module.types.iter().find(|(_, ty)| ty.name.as_deref() == Some("Head")).unwrap().1;
    let naga::TypeInner::Struct { span, .. } = head.inner else { panic!("no struct") };
    assert_eq!(u64::from(span), score::HEAD);
}
