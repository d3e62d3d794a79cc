//! `rank_nodes`: as many classes at a time as the counts of their keys have room for.

use std::ops::Range;

use bytemuck::{cast_slice, cast_slice_mut};

use super::buffers::Store;
use super::device::{Device, Entry, put};
use super::nodes::Resident;
use crate::evaluate::abi::NONE;
use crate::evaluate::backend::EvalError;
use crate::evaluate::kernels::Kernel;
use crate::evaluate::query::{DemandClass, NodeQuery};

/// Nodes of a tile, as the kernel has it.
pub(super) const TILE: usize = 512;

/// All keys are below.
pub(super) const KEYS: usize = 128;

/// Classes for which a workgroup counts at once.
pub(super) const CLASSES: u64 = 16;

/// The kernel, and the buffers that it works on.
#[derive(Debug)]
pub(super) struct Ranking {
    count: Entry,
    scan: Entry,
    place: Entry,
    input: Store,
    of_key: Store,
    below: Store,
    slots: Store,
    answers: Store,
    classes: Vec<DemandClass>,
    pool_bits: Vec<u32>,
}

impl Ranking {
    pub(super) fn new(device: &Device, text: &dyn Fn(Kernel) -> String) -> Result<Self, EvalError> {
        let kernel = Kernel::rank_nodes;
        let names = ["rank_nodes_count", "rank_nodes_scan", "rank_nodes_place"];
        let [count, scan, place] = device.compile(kernel, text(kernel), names)?;
        Ok(Self {
            count,
            scan,
            place,
            input: Store::input("classes"),
            of_key: Store::rows("counts of keys"),
            below: Store::rows("nodes of lower keys"),
            slots: Store::rows("slots"),
            answers: Store::answers("nodes"),
            classes: Vec::new(),
            pool_bits: Vec::new(),
        })
    }

    /// See `Backend::rank_nodes`.
    pub(super) fn rank(
        &mut self,
        device: &Device,
        nodes: &Resident,
        query: &NodeQuery,
        out: &mut Vec<u32>,
    ) -> Result<(), EvalError> {
        out.clear();
        out.resize(query.width(), NONE);
        // No class has more answers than nodes.
        let k = query.k().min(nodes.nodes);
        if k == 0 {
            return Ok(());
        }
        let step = step(device, nodes, query, k);
        for first in (0..query.len()).step_by(step) {
            let classes = first..(first + step).min(query.len());
            self.rank_some(device, nodes, query, k, classes, out)?;
        }
        Ok(())
    }

    fn rank_some(
        &mut self,
        device: &Device,
        nodes: &Resident,
        query: &NodeQuery,
        k: usize,
        classes: Range<usize>,
        out: &mut [u32],
    ) -> Result<(), EvalError> {
        self.collect(query, classes.clone());
        let (n, tiles) = (classes.len(), nodes.nodes.div_ceil(TILE));
        let params = [nodes.nodes, tiles, n, k].map(|number| number as u32);
        let arrays = [cast_slice(&params), cast_slice(&self.classes), cast_slice(&self.pool_bits)];
        let [params, rows, pool_bits] = self.input.write(device, arrays)?;
        let words = |words: usize| (words * size_of::<u32>()) as u64;
        let of_key = self.of_key.room(device, words(n * (tiles + 1) * KEYS))?;
        let below = self.below.room(device, words(n * KEYS))?;
        let slots = self.slots.room(device, words(n * k))?;
        let answers = self.answers.room(device, words(n * k))?;
        let asking = [
            (0, &params),
            (1, &nodes.bits),
            (2, &nodes.amounts),
            (3, &nodes.attributes),
            (4, &rows),
            (5, &pool_bits),
            (6, &of_key),
        ];
        let adding = [(0, &params), (6, &of_key), (7, &below), (8, &slots)];
        let placing = [&asking[..], &adding[2..]].concat();
        let (n, tiles) = (n as u64, tiles as u64);
        let calls = [
            device.call(&self.count, &asking, n.div_ceil(CLASSES) * tiles),
            device.call(&self.scan, &adding, n),
            device.call(&self.place, &placing, n * tiles),
        ];
        let mut commands = device.commands();
        put(&calls, &mut commands);
        let bytes = words(classes.len() * k);
        commands.copy_buffer_to_buffer(slots.buffer(), 0, answers.buffer(), 0, bytes);
        let sent = device.send(commands.finish())?;
        device.read(&sent, &answers, |found| {
            for (class, found) in classes.zip(found[..bytes as usize].chunks(k * size_of::<u32>())) {
                cast_slice_mut(&mut out[query.slots(class)][..k]).copy_from_slice(found);
            }
        })
    }

    /// Collects classes and their sets of pools, which then begin where they stand here.
    fn collect(&mut self, query: &NodeQuery, classes: Range<usize>) {
        self.classes.clear();
        self.pool_bits.clear();
        for class in &query.classes()[classes] {
            let mut class = *class;
            if class.pools_at != NONE {
                let at = class.pools_at as usize;
                class.pools_at = self.pool_bits.len() as u32;
                self.pool_bits.extend(&query.pool_bits()[at..at + words_of_pools(query)]);
            }
            self.classes.push(class);
        }
    }
}

fn words_of_pools(query: &NodeQuery) -> usize {
    query.pools().div_ceil(32)
}

/// Classes at a time: the counts of keys are within the scratch, all else within a binding.
fn step(device: &Device, nodes: &Resident, query: &NodeQuery, k: usize) -> usize {
    let counts = (nodes.nodes.div_ceil(TILE) + 1) * KEYS * size_of::<u32>();
    let others = size_of::<DemandClass>().max(4 * words_of_pools(query)).max(4 * k).max(4 * KEYS);
    let room = device.limits.binding.min(device.limits.buffer / 4) as usize;
    (device.limits.scratch as usize / counts).min(room / others).max(1)
}
