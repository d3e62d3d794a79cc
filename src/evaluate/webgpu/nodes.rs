//! The resident rows of the nodes: `apply_edits` and `census`.

use bytemuck::{cast_slice, cast_slice_mut};

use super::buffers::{Part, Store};
use super::device::{Device, Entry, put};
use crate::cluster::N_COMPOSITIONS;
use crate::evaluate::abi::NodeEdit;
use crate::evaluate::backend::EvalError;
use crate::evaluate::census::{Census, PoolCensus};
use crate::evaluate::kernels::Kernel;
use crate::evaluate::node_rows::NodeRows;

/// Nodes a workgroup counts before it adds up, as the kernel has it.
pub(super) const TILE: u64 = 4096;

/// The rows of the nodes on the device.
#[derive(Debug)]
pub(super) struct Resident {
    pub(super) nodes: usize,
    pub(super) pools: usize,
    pub(super) bits: Part,
    pub(super) amounts: Part,
    pub(super) attributes: Part,
    pub(super) gpu_milli: Part,
}

/// The kernels, and the buffers that they work on.
#[derive(Debug)]
pub(super) struct Nodes {
    apply: Entry,
    census: Entry,
    bits: Store,
    amounts: Store,
    attributes: Store,
    gpu_milli: Store,
    input: Store,
    pools: Store,
    compositions: Store,
    answers: Store,
    resident: Resident,
}

impl Nodes {
    pub(super) fn new(device: &Device, text: &dyn Fn(Kernel) -> String) -> Result<Self, EvalError> {
        let compile = |kernel: Kernel| device.compile(kernel, text(kernel), [kernel.name()]);
        let ([apply], [census]) = (compile(Kernel::apply_edits)?, compile(Kernel::census)?);
        let [mut bits, mut amounts, mut attributes, mut gpu_milli] =
            ["node bits", "node amounts", "node attributes", "what is left of devices"].map(Store::rows);
        let resident = Resident {
            nodes: 0,
            pools: 0,
            bits: bits.room(device, 0)?,
            amounts: amounts.room(device, 0)?,
            attributes: attributes.room(device, 0)?,
            gpu_milli: gpu_milli.room(device, 0)?,
        };
        Ok(Self {
            apply,
            census,
            bits,
            amounts,
            attributes,
            gpu_milli,
            input: Store::input("questions for nodes"),
            pools: Store::rows("counts of pools"),
            compositions: Store::rows("counts of compositions"),
            answers: Store::answers("counts"),
            resident,
        })
    }

    /// What is loaded.
    pub(super) fn resident(&self) -> &Resident {
        &self.resident
    }

    /// See `Backend::load`. Nothing changes if the device cannot hold the nodes.
    pub(super) fn load(&mut self, device: &Device, nodes: &NodeRows) -> Result<(), EvalError> {
        let arrays: [(_, &mut Store, &[u8]); 4] = [
            ("node bits", &mut self.bits, cast_slice(&nodes.bits)),
            ("node amounts", &mut self.amounts, cast_slice(&nodes.amounts)),
            ("node attributes", &mut self.attributes, cast_slice(&nodes.attributes)),
            ("what is left of devices", &mut self.gpu_milli, cast_slice(&nodes.gpu_milli)),
        ];
        for (what, _, bytes) in &arrays {
            device.fits(what, bytes.len() as u64, device.limits.binding.min(device.limits.buffer))?;
        }
        let mut parts = Vec::with_capacity(arrays.len());
        for (_, store, bytes) in arrays {
            let part = store.room(device, bytes.len() as u64)?;
            device.upload(&part, bytes)?;
            parts.push(part);
        }
        if let Ok([bits, amounts, attributes, gpu_milli]) = <[Part; 4]>::try_from(parts) {
            self.resident = Resident { nodes: nodes.len(), pools: nodes.pools, bits, amounts, attributes, gpu_milli };
        }
        Ok(())
    }

    /// See `Backend::apply`.
    pub(super) fn apply(&mut self, device: &Device, edits: &[NodeEdit]) -> Result<(), EvalError> {
        let resident = &self.resident;
        for edits in edits.chunks((device.limits.piece as usize / size_of::<NodeEdit>()).max(1)) {
            let params = [edits.len() as u32, 0, 0, 0];
            let [params, rows] = self.input.write(device, [cast_slice(&params), cast_slice(edits)])?;
            let bindings = [
                (0, &params),
                (1, &rows),
                (2, &resident.bits),
                (3, &resident.amounts),
                (4, &resident.attributes),
                (5, &resident.gpu_milli),
            ];
            let call = device.call(&self.apply, &bindings, edits.len().div_ceil(64) as u64);
            let mut commands = device.commands();
            put(&[call], &mut commands);
            device.send(commands.finish())?;
        }
        Ok(())
    }

    /// See `Backend::census`. So many pools at a time as the counts have room for.
    pub(super) fn census(&mut self, device: &Device, out: &mut Census) -> Result<(), EvalError> {
        let resident = &self.resident;
        out.reset(resident.pools);
        let composition_bytes = (N_COMPOSITIONS * size_of::<u32>()) as u64;
        let compositions = self.compositions.room(device, composition_bytes)?;
        let room = device.limits.binding.min(device.limits.buffer / 4);
        let step = (room as usize / size_of::<PoolCensus>()).max(1);
        for first in (0..resident.pools).step_by(step) {
            let counted = first..(first + step).min(resident.pools);
            let pool_bytes = (counted.len() * size_of::<PoolCensus>()) as u64;
            let pools = self.pools.room(device, pool_bytes)?;
            let answers = self.answers.room(device, pool_bytes + composition_bytes)?;
            let params = [resident.nodes as u32, first as u32, counted.len() as u32, u32::from(first == 0)];
            let [params] = self.input.write(device, [cast_slice(&params)])?;
            let bindings =
                [(0, &params), (1, &resident.bits), (2, &resident.attributes), (3, &pools), (4, &compositions)];
            let call = device.call(&self.census, &bindings, (resident.nodes as u64).div_ceil(TILE));
            let mut commands = device.commands();
            commands.clear_buffer(pools.buffer(), 0, Some(pool_bytes));
            commands.clear_buffer(compositions.buffer(), 0, Some(composition_bytes));
            put(&[call], &mut commands);
            commands.copy_buffer_to_buffer(pools.buffer(), 0, answers.buffer(), 0, pool_bytes);
            commands.copy_buffer_to_buffer(compositions.buffer(), 0, answers.buffer(), pool_bytes, composition_bytes);
            let sent = device.send(commands.finish())?;
            device.read(&sent, &answers, |bytes| {
                let (of_pools, of_compositions) = bytes.split_at(pool_bytes as usize);
                cast_slice_mut(&mut out.pools[counted.clone()]).copy_from_slice(of_pools);
                if first == 0 {
                    cast_slice_mut(&mut out.compositions)
                        .copy_from_slice(&of_compositions[..composition_bytes as usize]);
                }
            })?;
        }
        Ok(())
    }
}
